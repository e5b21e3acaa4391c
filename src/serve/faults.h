/*
 * faults.h - the kernel log and the driver's events in the monitor's loop: faults
 * for the recording, the flight recorder and the counts that metrics show.
 *
 * A log that can't be read is told in a line, and the monitor goes on with what
 * NVML tells. Where both tell of a fault it comes once, as the log has it, which
 * knows the process and the words: so an event of NVML waits for the log first.
 */
#pragma once

#include "base/own.h"
#include "model/fault.h"
#include "present/prometheus.h"

struct faults;

/* `file`: follow this one; NULL: /dev/kmsg, then the usual files, then journalctl.
 * `tell` gets the reason if it is not /dev/kmsg, and if there is none to read. */
struct faults *faults_open(const char *file, void (*tell)(void *arg, const char *line), void *arg);
void faults_close(struct faults *faults);
DEFINE_OWNED(faults, faults_close);

/* What NVML told. */
void faults_add(struct faults *faults, const struct fault *fault, int64_t monotonic_ns);

/* Readable when there is more; -1: ask once a second. */
int faults_fd(const struct faults *faults);
/* When there is one without that; INT64_MAX: never. */
int64_t faults_due(const struct faults *faults);
/* The next one. False: none now. A file is looked at once a second. */
bool faults_take(struct faults *faults, int64_t monotonic_ns, struct fault *ret);

/* Records of the kernel log that were overwritten unread, so far; told, too. */
int64_t faults_overwritten(const struct faults *faults);

/* How often each Xid was seen, since the start. */
const struct prometheus_xid *faults_xids(const struct faults *faults, size_t *ret_count);
