/*
 * kernel_log.h - faults from the kernel log of this machine, as they happen.
 *
 * Where the log is read: /dev/kmsg, which needs CAP_SYSLOG where
 * kernel.dmesg_restrict is 1; else a log file that is followed (kern.log), also
 * when it is rotated; `journalctl -k -f` only if asked for, as it is a process
 * of its own. Opening falls from one to the next and keeps the reason in one
 * line. Only what is written after opening counts, unless `from_start`.
 *
 * Faults of NVML come from elsewhere: pass both through fault_known
 * (model/fault.h), and what two sources tell counts once.
 *
 * Times are ns since 1970: of /dev/kmsg by the offset of the clocks now; of
 * stamps without a zone the time of reading, with has_time false.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "model/fault.h"

struct kernel_log_opts {
	const char *kmsg;         /* NULL: /dev/kmsg; "": don't */
	const char *const *files; /* to follow, the first that can be read; NULL: the usual ones */
	bool journal;             /* ask journalctl where /dev/kmsg is closed to us */
	bool from_start;
};

struct kernel_log;

/* ERR_MISSING: no log can be read here; the line says why, and what would mend it. */
int kernel_log_open(const struct kernel_log_opts *opts, struct kernel_log **ret_log,
		    struct err *err);
void kernel_log_close(struct kernel_log *log);
DEFINE_OWNED(kernel_log, kernel_log_close);

/* The next fault: 1; 0: none now. Never waits. Identities and driver versions
 * come too (fault.kind). ERR_IO: the log is gone. */
int kernel_log_take(struct kernel_log *log, struct fault *ret_fault, struct err *err);

/* Readable when there is more; -1 for a file, which is to be asked about once a second. */
int kernel_log_fd(const struct kernel_log *log);

/* "/dev/kmsg", "/var/log/kern.log", "journalctl"; good until kernel_log_close. */
const char *kernel_log_name(const struct kernel_log *log);
/* Why it is not /dev/kmsg, in one line; "" if it is. */
const char *kernel_log_reason(const struct kernel_log *log);
/* Records that were overwritten before we came to read them. */
int64_t kernel_log_lost(const struct kernel_log *log);
