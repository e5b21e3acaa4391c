/*
 * remote.h - the memory of another process, read without disturbing it.
 *
 * process_vm_readv, but only of pages that are there: what is swapped out, was
 * never touched, or waits for somebody to provide it (userfaultfd, a file system
 * that hangs) would be fetched for us, and we would wait for that.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct remote;

/* Fails if the process is gone (ERR_MISSING), or if its pages can't be asked for
 * (ERR_UNSUPPORTED). Rights to read it show with the first read. */
int remote_open(const char *root, int64_t pid, struct remote **ret_remote, struct err *err);
void remote_close(struct remote *remote);
DEFINE_OWNED(remote, remote_close);

enum { REMOTE_BYTES_MAX = 65536 };

/* All `bytes`, up to REMOTE_BYTES_MAX, from `address`; false with errno: EFAULT (not
 * there), EPERM, ESRCH, ... */
bool remote_read(struct remote *remote, uint64_t address, void *to, size_t bytes);
/* The same of pages of a program's file, which are brought in if need be. */
bool remote_fetch(struct remote *remote, uint64_t address, void *to, size_t bytes);
