/*
 * Can CUPTI trace, sample and count? Concluded from rights, card and driver;
 * with a probe, from what CUPTI itself said.
 */
#include <string.h>

#include "base/str.h"
#include "rules/check_part.h"

/* cupti_result.h */
enum { CUPTI_HARDWARE_BUSY = 26, CUPTI_INSUFFICIENT_PRIVILEGES = 35, CUPTI_VGPU_PRIVILEGES = 40 };

/* Compute capability times ten. cupti_profiler_target.h asks for 7.0;
 * NVIDIA's range and PM samples refuse below 7.5. */
enum { CC_PC_SAMPLING = 70, CC_COUNTERS = 75, CC_GA100 = 80 };

/* From R565 on CAP_PERFMON is enough for counters: NVIDIA's page on
 * ERR_NVGPUCTRPERM. */
static const char DRIVER_PERFMON[] = "565";
/* Continuous PC sampling is steady from CUDA 12.8.1's driver on: parcagpu. */
static const char DRIVER_PC_SAMPLING[] = "570.124";
/* cuptiPmSampling came with CUDA 12.6's driver generation. */
static const char DRIVER_PM_SAMPLING[] = "560";

static bool older(const struct scene *scene, const char *version)
{
	const char *driver = scene_driver(scene);

	return driver && version_compare(driver, version) < 0;
}

/* The library that would be loaded: the first whose CUDA the driver can run;
 * a newer minor version runs too, a newer major version does not. */
static const struct host_cupti *cupti_of(const struct scene *scene)
{
	struct str rest = scene->cards ? str_of(scene->cards->cuda) : (struct str){ 0 };
	int64_t cuda;

	if (!str_to_i64(str_cut(&rest, '.'), &cuda))
		cuda = 0;
	for (size_t i = 0; i < scene->host->cuptis.count; i++) {
		if (!cuda || scene->host->cuptis.at[i].major <= cuda)
			return &scene->host->cuptis.at[i];
	}
	return NULL;
}

const char *check_cupti(const struct scene *scene)
{
	const struct host_cupti *cupti = cupti_of(scene);

	return cupti ? cupti->path : NULL;
}

static void need_cupti(const struct scene *scene, struct diagnosis *diagnosis)
{
	enum place place = place_of(scene->host);

	if (scene->host->cuptis.count)
		diagnose(diagnosis, CHECK_NO, _("%s is for a newer CUDA than driver %s runs."),
			 scene->host->cuptis.at[0].path, scene_driver(scene));
	else
		diagnose(diagnosis, CHECK_NO, "%s", _("No libcupti of CUDA 12 or 13 was found."));
	mend(diagnosis, older(scene, "580") ? CURE_CUPTI_12 : CURE_CUPTI_13, place);
}

/* What CUPTI itself said of a kind of collection; false if it was not asked. */
static bool probed(const struct scene *scene, int result, struct diagnosis *diagnosis,
		   bool *ret_rights)
{
	*ret_rights = false;
	if (!scene->probe || result == PROBE_NOT_TRIED)
		return false;
	*ret_rights = result == CUPTI_INSUFFICIENT_PRIVILEGES;
	if (!result) {
		diagnose(diagnosis, CHECK_OK, _("Tried on %s: it works."), scene->probe->chip);
	} else if (result == CUPTI_HARDWARE_BUSY) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("Tried: another program holds the card's counters."));
		mend(diagnosis, CURE_PAUSE_DCGM, place_of(scene->host));
	} else if (result == CUPTI_VGPU_PRIVILEGES) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("Tried: the host does not let this vGPU be profiled."));
		mend(diagnosis, CURE_VGPU, place_of(scene->host));
	} else if (!*ret_rights) {
		diagnose(diagnosis, CHECK_NO, _("Tried: CUPTI says %s (%d)."),
			 probe_cupti_result(result), result);
	}
	return true;
}

void check_tracing(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host_device *uvm = host_device_find(scene->host, "nvidia-uvm");
	const struct host_cupti *cupti = cupti_of(scene);
	const char *version;
	bool rights;

	diagnosis->costs = _("kernels, copies, launches: the whole timeline");
	if (!scene_has_gpu(scene, diagnosis))
		return;
	if (!cupti) {
		need_cupti(scene, diagnosis);
		return;
	}
	if (scene->probe && (scene->probe->cuda_init > 0 || scene->probe->cuda_context > 0)) {
		diagnose(diagnosis, CHECK_NO,
			 _("Tried: CUDA does not start (CUresult %d, %d for a context)."),
			 scene->probe->cuda_init, scene->probe->cuda_context);
		return;
	}
	if (probed(scene, scene->probe ? scene->probe->activity : PROBE_NOT_TRIED, diagnosis,
		   &rights))
		return;
	version = cupti->version ? cupti->version : _("version not in its name");
	if (!scene->host->libcuda.path && !scene->host->wsl) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("libcuda.so.1 is not here: no CUDA program can run."));
		mend(diagnosis, CURE_UTILITY, place_of(scene->host));
	} else if (uvm && !uvm->present && !scene->host->wsl && !scene->host->jetson) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("/dev/nvidia-uvm is not here: no CUDA program can run."));
		mend(diagnosis, CURE_GIVE_GPU, place_of(scene->host));
	} else if (host_process_find(scene->host, ROLE_NSYS) ||
		   host_process_find(scene->host, ROLE_NCU)) {
		diagnose(diagnosis, CHECK_OK,
			 _("With %s (%s). Not for a program that Nsight already profiles: before "
			   "CUDA 13.3 a process has one CUPTI subscriber."),
			 cupti->path, version);
	} else {
		diagnose(diagnosis, CHECK_OK, _("With %s (%s)."), cupti->path, version);
	}
}

/* May this process read counters? false: *diagnosis says why not. */
static bool may_count(const struct scene *scene, struct diagnosis *diagnosis, bool refused)
{
	const struct host *host = scene->host;
	enum place place = place_of(host);
	bool old = !scene_driver(scene) || older(scene, DRIVER_PERFMON);
	bool has = host_has_cap(host, CAP_BIT_SYS_ADMIN) == TRUTH_YES ||
		   (!old && host_has_cap(host, CAP_BIT_PERFMON) == TRUTH_YES);
	uint64_t wanted =
		(uint64_t)1 << CAP_BIT_SYS_ADMIN | (old ? 0 : (uint64_t)1 << CAP_BIT_PERFMON);
	bool held = host->rights.caps_known == TRUTH_YES && host->rights.caps_effective & wanted;
	bool bounded = host->rights.caps_known == TRUTH_YES && host->rights.caps_bounding & wanted;

	if (!refused && (host->counters_admin == TRUTH_NO || has))
		return true;
	if (!refused && host->counters_admin == TRUTH_UNKNOWN) {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s",
			 host->wsl ? _("Windows decides who may read counters.")
				   : _("Who may read counters can't be seen here: try --probe."));
		if (host->wsl)
			mend(diagnosis, CURE_COUNTERS, place);
		return false;
	}
	diagnose(diagnosis, CHECK_NO,
		 _("The driver gives counters to administrators only "
		   "(RmProfilingAdminOnly 1), and %s is not here."),
		 old ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
	if (held && host->rights.first_user_namespace == TRUTH_NO)
		mend(diagnosis, CURE_USER_NAMESPACE, place);
	else if (bounded && (place & (PLACE_DOCKER | PLACE_PODMAN | PLACE_POD)))
		mend(diagnosis, CURE_COUNTERS_USER, place);
	else
		mend(diagnosis, old ? CURE_COUNTERS_OLD : CURE_COUNTERS, place);
	return false;
}

/* What all three ways of reading counters need. true: no objection so far. */
static bool can_count(const struct scene *scene, struct diagnosis *diagnosis, int least_cc,
		      int result)
{
	bool refused, asked;

	if (!scene_has_gpu(scene, diagnosis))
		return false;
	if (!cupti_of(scene)) {
		need_cupti(scene, diagnosis);
		return false;
	}
	asked = probed(scene, result, diagnosis, &refused);
	if (asked && !refused)
		return false;
	if (scene_lowest_cc(scene) && scene_lowest_cc(scene) < least_cc) {
		diagnose(diagnosis, CHECK_NO,
			 _("The card has compute capability %d.%d, this needs %d.%d."),
			 scene_lowest_cc(scene) / 10, scene_lowest_cc(scene) % 10, least_cc / 10,
			 least_cc % 10);
		return false;
	}
	if (scene_is_vgpu_guest(scene)) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("A vGPU: counters only if its host allows profiling."));
		mend(diagnosis, CURE_VGPU, place_of(scene->host));
		return false;
	}
	return may_count(scene, diagnosis, refused);
}

/* Things that do not forbid counting but change it; else OK with `why`. */
static void conclude(const struct scene *scene, struct diagnosis *diagnosis, const char *why)
{
	const struct host_process *dcgm = host_process_find(scene->host, ROLE_DCGM);
	const struct host_process *ncu = host_process_find(scene->host, ROLE_NCU);

	if (dcgm || ncu) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("%s (process %lld) may hold the card's counters; one program can."),
			 dcgm ? dcgm->command : ncu->command,
			 (long long)(dcgm ? dcgm->pid : ncu->pid));
		if (dcgm)
			mend(diagnosis, CURE_PAUSE_DCGM, place_of(scene->host));
	} else if (scene->host->hami.present) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("Under HAMi's hooks; nobody has shown it to work: try --probe."));
	} else if (scene_has_mig(scene)) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("MIG: units that instances share (L2, DRAM) give no value unless the "
			   "compute instance fills its GPU instance."));
	} else {
		diagnose(diagnosis, CHECK_OK, "%s", why);
	}
}

void check_pc_sampling(const struct scene *scene, struct diagnosis *diagnosis)
{
	int result = scene->probe ? scene->probe->pc_sampling : PROBE_NOT_TRIED;

	diagnosis->costs = _("stall reasons, per kernel and instruction");
	if (!can_count(scene, diagnosis, CC_PC_SAMPLING, result))
		return;
	if (older(scene, DRIVER_PC_SAMPLING)) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("Driver %s: continuous sampling is steady from %s on."),
			 scene_driver(scene), DRIVER_PC_SAMPLING);
		mend(diagnosis, CURE_NEW_DRIVER, place_of(scene->host));
		return;
	}
	conclude(scene, diagnosis, _("Rights and card allow it."));
}

void check_pm_sampling(const struct scene *scene, struct diagnosis *diagnosis)
{
	int result = scene->probe ? scene->probe->pm_sampling : PROBE_NOT_TRIED;

	diagnosis->costs = _("which unit is busy, every 10 to 100 microseconds");
	if (!can_count(scene, diagnosis, CC_COUNTERS, result))
		return;
	if (older(scene, DRIVER_PM_SAMPLING)) {
		diagnose(diagnosis, CHECK_NO, _("Driver %s: it came with %s."), scene_driver(scene),
			 DRIVER_PM_SAMPLING);
		mend(diagnosis, CURE_NEW_DRIVER, place_of(scene->host));
		return;
	}
	if (scene_lowest_cc(scene) == CC_GA100 || scene_lowest_cc(scene) == CC_COUNTERS) {
		diagnose(
			diagnosis, CHECK_LIMITED, "%s",
			_("This card samples by clock cycles, not by time, and its clock varies."));
		return;
	}
	conclude(scene, diagnosis, _("Rights and card allow it; it takes turns with PC sampling."));
}

void check_counters(const struct scene *scene, struct diagnosis *diagnosis)
{
	int result = scene->probe ? scene->probe->counters : PROBE_NOT_TRIED;

	diagnosis->costs = _("what binds a kernel: compute, memory, latency");
	if (!can_count(scene, diagnosis, CC_COUNTERS, result))
		return;
	if (scene->host->libnvperf == TRUTH_NO) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("libnvperf_host.so, which turns counters into metrics, is not beside "
			   "libcupti."));
		return;
	}
	conclude(scene, diagnosis, _("Rights and card allow it."));
}

void check_holders(const struct scene *scene, struct diagnosis *diagnosis)
{
	static const enum host_role holders[] = { ROLE_DCGM, ROLE_NCU, ROLE_NSYS };

	for (size_t i = 0; i < sizeof(holders) / sizeof(*holders); i++) {
		const struct host_process *process = host_process_find(scene->host, holders[i]);

		if (!process)
			continue;
		diagnose(diagnosis, CHECK_LIMITED,
			 _("%s: process %lld (%s). Counters have one holder at a time; SM activity "
			   "does not need them."),
			 role_name(process->role), (long long)process->pid, process->command);
		if (process->role == ROLE_DCGM)
			mend(diagnosis, CURE_PAUSE_DCGM, place_of(scene->host));
		return;
	}
	if (scene->host->rights.first_pid_namespace == TRUTH_YES)
		diagnose(diagnosis, CHECK_OK, "%s", _("No DCGM, ncu or nsys runs."));
	else
		diagnose(diagnosis, CHECK_UNKNOWN, "%s",
			 _("Processes outside this container can't be seen."));
}
