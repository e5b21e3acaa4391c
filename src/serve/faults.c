#include "serve/faults.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/kernel_log.h"

static const int64_t FILE_NS = 1000000000;
/* Cards times the Xids there are would be more, but not in one life. */
enum { XIDS_MAX = 512 };

struct faults {
	struct kernel_log *log;
	int64_t next_ns;
	VEC(struct prometheus_xid) xids;
	void (*tell)(void *arg, const char *line);
	void *arg;
};

struct faults *faults_open(const char *file, void (*tell)(void *arg, const char *line), void *arg)
{
	OWN(faults_closep) struct faults *faults = mem_zero(sizeof(*faults));
	const char *const files[] = { file, NULL };
	const struct kernel_log_opts opts = { .kmsg = file ? "" : NULL,
					      .files = file ? files : NULL };
	struct err err = { 0 };

	faults->tell = tell;
	faults->arg = arg;
	if (kernel_log_open(&opts, &faults->log, &err) < 0) {
		(void)err_context(&err, "goes on without the kernel log");
		tell(arg, err.line);
		return NULL;
	}
	return STEAL(faults);
}

void faults_close(struct faults *faults)
{
	if (!faults)
		return;
	kernel_log_close(faults->log);
	VEC_DONE(&faults->xids);
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

bool faults_take(struct faults *faults, int64_t monotonic_ns, struct fault *ret)
{
	struct err err = { 0 };
	int got;

	if (!faults->log || (faults_fd(faults) < 0 && monotonic_ns < faults->next_ns))
		return false;
	got = kernel_log_take(faults->log, ret, &err);
	if (got > 0) {
		count(faults, ret);
		return true;
	}
	if (got < 0) {
		(void)err_context(&err, "goes on without the kernel log");
		faults->tell(faults->arg, err.line);
		kernel_log_close(STEAL(faults->log));
	}
	faults->next_ns = monotonic_ns + FILE_NS;
	return false;
}

const struct prometheus_xid *faults_xids(const struct faults *faults, size_t *ret_count)
{
	*ret_count = faults->xids.count;
	return faults->xids.at;
}
