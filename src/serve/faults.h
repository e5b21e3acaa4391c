/*
 * faults.h - the kernel log in the monitor's loop: faults for the recording, the
 * flight recorder and the counts that metrics show.
 *
 * A log that can't be read is told in a line, and the monitor goes on without.
 */
#pragma once

#include "base/own.h"
#include "model/fault.h"
#include "present/prometheus.h"

struct faults;

/* `file`: follow this one; NULL: /dev/kmsg, then the usual files. NULL if there is
 * none to read: `tell` got the reason. */
struct faults *faults_open(const char *file, void (*tell)(void *arg, const char *line), void *arg);
void faults_close(struct faults *faults);
DEFINE_OWNED(faults, faults_close);

/* Readable when there is more; -1: ask once a second. */
int faults_fd(const struct faults *faults);
/* The next one. False: none now. A file is looked at once a second. */
bool faults_take(struct faults *faults, int64_t monotonic_ns, struct fault *ret);

/* How often each Xid was seen, since the start. */
const struct prometheus_xid *faults_xids(const struct faults *faults, size_t *ret_count);
