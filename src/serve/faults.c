#include "serve/faults.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/kernel_log.h"

static const int64_t FILE_NS = 1000000000;
/* So long the kernel log has to tell what NVML has told: a file gets its lines
 * from a daemon that may collect them for a second. */
static const int64_t WAIT_NS = 1500000000;
/* Cards times the Xids there are would be more, but not in one life. */
enum { XIDS_MAX = 512 };

struct faults {
	struct kernel_log *log;
	int64_t next_ns;
	VEC(struct prometheus_xid) xids;
	/* Of NVML, in order of their time. */
	VEC(struct waiting {
		struct fault fault;
		int64_t due_ns;
	})
	waiting;
	struct fault_memory memory;
	int64_t overwritten; /* records, as told */
	void (*tell)(void *arg, const char *line);
	void *arg;
};

/* journalctl is a process of its own: only where nothing else can be read. */
static int open_log(struct faults *faults, const char *file, struct err *err)
{
	const char *const files[] = { file, NULL };
	struct kernel_log_opts opts = { .kmsg = file ? "" : NULL, .files = file ? files : NULL };
	int ret = kernel_log_open(&opts, &faults->log, err);

	if (ret == ERR_MISSING && !file) {
		opts.journal = true;
		ret = kernel_log_open(&opts, &faults->log, err);
	}
	return ret;
}

struct faults *faults_open(const char *file, void (*tell)(void *arg, const char *line), void *arg)
{
	OWN(faults_closep) struct faults *faults = mem_zero(sizeof(*faults));
	struct err err = { 0 };
	char line[512];

	faults->tell = tell;
	faults->arg = arg;
	if (open_log(faults, file, &err) < 0) {
		(void)err_context(&err, "goes on without the kernel log");
		tell(arg, err.line);
	} else if (!file && *kernel_log_reason(faults->log)) {
		(void)snprintf(line, sizeof(line), "reads the kernel log from %s: %s",
			       kernel_log_name(faults->log), kernel_log_reason(faults->log));
		tell(arg, line);
	}
	return STEAL(faults);
}

void faults_close(struct faults *faults)
{
	if (!faults)
		return;
	kernel_log_close(faults->log);
	VEC_DONE(&faults->xids);
	VEC_DONE(&faults->waiting);
	free(faults);
}

int faults_fd(const struct faults *faults)
{
	return faults->log ? kernel_log_fd(faults->log) : -1;
}

static void count(struct faults *faults, const struct fault *fault)
{
	struct prometheus_xid *xid = NULL;

	if (fault->kind != FAULT_XID || !fault_has(fault, FAULT_NUMBER))
		return;
	for (size_t i = 0; !xid && i < faults->xids.count; i++) {
		struct prometheus_xid *at = &faults->xids.at[i];

		if (at->xid == (uint32_t)fault->number &&
		    !strncmp(at->pci_bus, fault->pci, sizeof(at->pci_bus) - 1))
			xid = at;
	}
	if (!xid && faults->xids.count == XIDS_MAX)
		return;
	if (!xid) {
		xid = VEC_ADD(&faults->xids);
		xid->xid = (uint32_t)fault->number;
		(void)snprintf(xid->pci_bus, sizeof(xid->pci_bus), "%.19s", fault->pci);
	}
	xid->count++;
	xid->last_utc_ns = fault->time_ns;
}

void faults_add(struct faults *faults, const struct fault *fault, int64_t monotonic_ns)
{
	*VEC_ADD(&faults->waiting) =
		(struct waiting){ *fault, monotonic_ns + (faults->log ? WAIT_NS : 0) };
}

int64_t faults_due(const struct faults *faults)
{
	return faults->waiting.count ? faults->waiting.at[0].due_ns : INT64_MAX;
}

static void tell_overwritten(struct faults *faults)
{
	int64_t count = kernel_log_lost(faults->log) - faults->overwritten;
	char line[160];

	if (!count)
		return;
	faults->overwritten += count;
	(void)snprintf(
		line, sizeof(line),
		"%lld record(s) of the kernel log were overwritten before they could be read",
		(long long)count);
	faults->tell(faults->arg, line);
}

int64_t faults_overwritten(const struct faults *faults)
{
	return faults->overwritten;
}

/* The next of the log. */
static bool take_log(struct faults *faults, int64_t monotonic_ns, struct fault *ret)
{
	struct err err = { 0 };
	int got;

	if (!faults->log || (faults_fd(faults) < 0 && monotonic_ns < faults->next_ns &&
			     monotonic_ns < faults_due(faults)))
		return false;
	while ((got = kernel_log_take(faults->log, ret, &err)) > 0)
		if (!fault_known(&faults->memory, ret))
			return true;
	tell_overwritten(faults);
	if (got < 0) {
		(void)err_context(&err, "goes on without the kernel log");
		faults->tell(faults->arg, err.line);
		kernel_log_close(STEAL(faults->log));
	}
	faults->next_ns = monotonic_ns + FILE_NS;
	return false;
}

/* The next of NVML that the log has not told. */
static bool take_waiting(struct faults *faults, int64_t monotonic_ns, struct fault *ret)
{
	while (faults->waiting.count && faults->waiting.at[0].due_ns <= monotonic_ns) {
		*ret = faults->waiting.at[0].fault;
		faults->waiting.count--;
		memmove(faults->waiting.at, faults->waiting.at + 1,
			faults->waiting.count * sizeof(*faults->waiting.at));
		if (!fault_known(&faults->memory, ret))
			return true;
	}
	return false;
}

bool faults_take(struct faults *faults, int64_t monotonic_ns, struct fault *ret)
{
	if (!take_log(faults, monotonic_ns, ret) && !take_waiting(faults, monotonic_ns, ret))
		return false;
	count(faults, ret);
	return true;
}

const struct prometheus_xid *faults_xids(const struct faults *faults, size_t *ret_count)
{
	*ret_count = faults->xids.count;
	return faults->xids.at;
}
