/*
 * What the kernel around us allows: processes, log, perf events, preloading.
 */
#include <errno.h>
#include <string.h>

#include "rules/check_part.h"

/* Processes of other PID namespaces that the driver names are not ours to look
 * up. All of them unknown is the sign; ours is known in any case. */
void check_processes(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;

	diagnosis->costs = _("names, users and host load of the processes on a card");
	if (!scene_has_gpu(scene, diagnosis))
		return;
	if (host->rights.first_pid_namespace == TRUTH_NO) {
		diagnose(
			diagnosis, CHECK_LIMITED, "%s",
			_("Own PID namespace: the driver's process numbers are the host's, so here "
			  "only totals."));
		mend(diagnosis, CURE_HOST_PID, place_of(host));
	} else if (host->wsl) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("WSL: the driver does not list the processes' memory."));
	} else if (scene_is_vgpu_guest(scene)) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("A vGPU: processes of other guests on the card are not seen."));
	} else if (host->rights.first_pid_namespace == TRUTH_UNKNOWN) {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("/proc/self/ns can't be read."));
	} else {
		diagnose(diagnosis, CHECK_OK, "%s", _("All processes of the card, with names."));
	}
}

void check_kernel_log(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;
	enum place place = place_of(host);

	diagnosis->costs = _("Xid faults, cards fallen off the bus, OOM kills");
	if (host->wsl) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("WSL: the driver that reports faults runs in Windows."));
		mend(diagnosis, CURE_KMSG, place);
	} else if (!host->kmsg_error) {
		diagnose(diagnosis, CHECK_OK, "%s", "/dev/kmsg");
	} else if (host->log_file) {
		diagnose(diagnosis, CHECK_OK, _("From %s; /dev/kmsg: %s."), host->log_file,
			 strerror(host->kmsg_error));
	} else if (host->kmsg_error == ENOENT) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("This container has no /dev/kmsg and no log files of the host."));
		mend(diagnosis, CURE_KMSG, place);
	} else {
		diagnose(diagnosis, CHECK_NO,
			 host->dmesg_restrict == 1 ? _("/dev/kmsg: %s: dmesg_restrict is 1, and "
						       "CAP_SYSLOG is not here.")
						   : _("/dev/kmsg: %s."),
			 strerror(host->kmsg_error));
		mend(diagnosis, CURE_KMSG, place);
	}
}

void check_perf(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;
	enum place place = place_of(host);
	bool has = host_has_cap(host, CAP_BIT_PERFMON) == TRUTH_YES ||
		   host_has_cap(host, CAP_BIT_SYS_ADMIN) == TRUTH_YES;

	diagnosis->costs = _("what the launching thread computed while the card was idle");
	if (!host->perf_error) {
		diagnose(diagnosis, CHECK_OK, _("perf_event_paranoid %d%s."), host->perf_paranoid,
			 has ? _(", with the right to see more") : "");
	} else if (host->perf_error == ENOSYS) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 host->gvisor ? _("gVisor's kernel has no perf events.")
				      : _("This kernel has no perf events."));
	} else if (host->perf_error > 0 && host->rights.seccomp == 2 && host->perf_paranoid <= 2) {
		diagnose(diagnosis, CHECK_NO,
			 _("perf_event_open: %s: the container's seccomp "
			   "profile forbids it."),
			 strerror(host->perf_error));
		mend(diagnosis, CURE_PERF, place);
		mend(diagnosis, CURE_PERF_SYSCALL, place);
	} else if (host->perf_error > 0 || (host->perf_paranoid > 2 && !has)) {
		diagnose(diagnosis, CHECK_NO,
			 _("perf_event_paranoid is %d: programs may not measure "
			   "themselves."),
			 host->perf_paranoid);
		mend(diagnosis, CURE_PERF, place);
	} else if (host->perf_paranoid > -100 && host->rights.seccomp != 2) {
		diagnose(diagnosis, CHECK_OK, _("perf_event_paranoid %d%s."), host->perf_paranoid,
			 has ? _(", with the right to see more") : "");
	} else {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s",
			 _("Not tried, and a seccomp filter is on."));
	}
}

/* Preloading needs no right; it needs our C library. */
void check_osrt(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;

	diagnosis->costs = _("which system call the launching thread waited in");
	if (host->glibc == TRUTH_NO) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("musl's C library: neither CUDA nor sonde's library runs with it."));
		mend(diagnosis, CURE_GLIBC, place_of(host));
	} else if (host->glibc == TRUTH_UNKNOWN) {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("No C library was found."));
	} else if (host->hami.library) {
		diagnose(diagnosis, CHECK_OK, _("Preloaded beside %s."), host->hami.library);
	} else {
		diagnose(diagnosis, CHECK_OK, "%s",
			 _("Preloading needs no right; static and setuid programs are left out."));
	}
}
