#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
#include "rules/tell.h"
#include "rules/tell_thread.h"

#include <string.h>

/* Idle time for want of work, as a share of the span, that is worth a finding.
 * Idle warnings of comparable tools start at 15 %; a tenth is where advice
 * begins to pay. doc/rules/gpu_starved.md */
static const double STARVED_SHARE = 0.10;
/* From here on nothing else matters. */
static const double STARVED_BAD_SHARE = 0.5;

/* The loader is blamed for what it covers: half of the starved time, and
 * enough of the span that mending it would show. */
static const double LOADER_PART = 0.5;
static const double LOADER_SHARE = 0.05;

/* A thing that the thread did is named for what it covers: less than a twentieth
 * of the time explains nothing of it. */
static const double NAMED_PART = 0.05;

/* A call of CUDA's answers for the time that it takes half of. */
static const double CALL_PART = 0.5;

/* Without a name that says loading: that many gaps must end in an upload, and for
 * half of the steps there must be one. A loop does that when it fetches its batch. */
static const int64_t UPLOADS_LEAST = 3;
static const double UPLOADS_A_STEP = 0.5;

struct starved {
	struct judged judged;
	int64_t ns;        /* idle because the host was late */
	int64_t loader_ns; /* of that, while the launching thread loaded data */
	uint32_t loader_name;
	const struct during *other; /* the longest of what is no loading; NULL */
};

static struct starved starved_of(const struct device_fact *device)
{
	struct judged judged = device_judged(device);
	const struct idle_fact *idle = &judged.idle[IDLE_HOST_LATE];
	struct starved starved = { .ns = idle->ns, .judged = judged };

	for (size_t i = 0; i < idle->during.count; i++) {
		const struct during *during = &idle->during.at[i];

		if (during->phase == PHASE_LOADER) {
			if (!starved.loader_ns)
				starved.loader_name = during->name;
			starved.loader_ns += during->ns;
		} else if (!starved.other && (double)during->ns >= NAMED_PART * (double)idle->ns) {
			starved.other = during;
		}
	}
	return starved;
}

/* A range that is as long as a step and longer says nothing of what is done in it. */
static bool names_work(const struct facts *facts, const struct during *during)
{
	if (during->kind == ACTIVITY_CALL || during->kind == ACTIVITY_UNKNOWN)
		return false;
	if (during->kind != ACTIVITY_RANGE)
		return true;
	if (facts->steps.name == during->name)
		return false;
	for (size_t i = 0; i < facts->ranges.count; i++)
		if (facts->ranges.at[i].name == during->name && facts->ranges.at[i].count > 0)
			return facts->ranges.at[i].sum_ns / facts->ranges.at[i].count <
			       facts->steps.p50_ns;
	return true;
}

/* Gaps end in an upload, step by step, and nothing says that the host did something
 * else in them. */
static bool likely_loading(const struct facts *facts, const struct starved *starved)
{
	const struct idle_fact *idle = &starved->judged.idle[IDLE_HOST_LATE];
	const struct during *other = starved->other;
	bool named = other && names_work(facts, other);
	const struct step_facts *steps = &facts->steps;
	double steps_each =
		steps->step.count ? (double)steps_of(steps, steps->step.at[0].source) : 0;

	return share_of(idle->upload_ns, idle->ns) >= LOADER_PART &&
	       share_of(idle->upload_ns, starved->judged.span_ns) >= LOADER_SHARE &&
	       idle->upload_count >= UPLOADS_LEAST && steps->step.count &&
	       (double)idle->upload_count >= UPLOADS_A_STEP * steps_each &&
	       !(named && share_of(other->ns, idle->ns) >= LOADER_PART);
}

/* With one worker that loads beside the rest of the step, the shorter of both
 * vanishes behind the longer: the least that moving the loader away brings. At
 * most all starved time goes, and the waits. A recording with stacks slows the
 * launching too, and can't tell how much of that idle time is its own doing. */
static void loader_impact(const struct facts *facts, const struct starved *starved,
			  struct finding *finding)
{
	const struct judged *judged = &starved->judged;
	int64_t rest_ns = judged->span_ns - starved->loader_ns;
	int64_t low_ns = starved->loader_ns < rest_ns ? starved->loader_ns : rest_ns;
	int64_t high_ns = starved->ns + judged->idle[IDLE_SYNC_BLOCKED].ns;

	if (facts->host_time_inflated)
		high_ns += judged->idle[IDLE_LAUNCH_RATE].ns;
	if (low_ns > starved->ns)
		low_ns = starved->ns;
	finding_impact(finding, low_ns < 0 ? 0 : low_ns, high_ns, part_judged(judged),
		       judged->span_ns);
}

static const struct advice LOADER_ADVICE[] = {
	{ N_("Load in worker processes: DataLoader(num_workers=4 or more, "
	     "persistent_workers=True, prefetch_factor=2 or more), so that the next batch is made "
	     "while this one computes"),
	  N_("Load in a thread of its own, one or two batches ahead, into buffers that are used "
	     "in turn, so that the next batch is made while this one computes") },
	{ N_("Take decoding and augmentation off the main thread: cache what is the same each "
	     "time, or do it on the GPU (DALI, torchvision.transforms.v2 on CUDA tensors)"),
	  N_("Make each batch cheaper: keep what is the same each time, read in large pieces, or "
	     "decode on the GPU") },
	{ N_("pin_memory=True with .to(device, non_blocking=True), so that the upload overlaps "
	     "too"),
	  N_("Load into pinned memory (cudaMallocHost) and upload with cudaMemcpyAsync on a "
	     "stream of its own, so that the upload overlaps too") },
};

static const struct advice LOADER_NEXT = {
	N_("time an epoch of the loader alone, without the model: is it faster than the GPU's "
	   "steps?"),
	N_("time the loading alone, without the GPU: is it faster than the GPU's steps?"),
};

/* Who knows the thread's stacks already needs no other tool for them. */
static const struct advice STACKS_NEXT = {
	N_("py-spy record -o profile.svg --subprocesses -- python YOUR_SCRIPT"),
	N_("perf record -g -- COMMAND, then perf report: where the loading spends its time"),
};

static void loader_advice(const struct facts *facts, struct finding *finding, const char *loader)
{
	/* PyTorch's names of its two iterators: torch/utils/data/dataloader.py. */
	if (!strstr(loader, "_MultiProcessingDataLoaderIter")) {
		advise(facts, finding, LOADER_ADVICE, 3);
		return;
	}
	finding_advice(finding,
		       _("The workers don't keep up: raise num_workers towards the number of free "
			 "CPU cores and prefetch_factor above 2; keep persistent_workers=True"));
	finding_advice(finding, _("Make each item cheaper: decode and augment once and "
				  "cache, use a faster decoder, or do it on the GPU (DALI, "
				  "torchvision.transforms.v2 on CUDA tensors)"));
	advise(facts, finding, &LOADER_ADVICE[2], 1);
}

static void loader_next(const struct facts *facts, struct finding *finding,
			const struct idle_fact *idle)
{
	advise_next(facts, finding, LOADER_NEXT);
	if (!idle->python && !idle->cpu)
		advise_next(facts, finding, STACKS_NEXT);
}

/* What kept the thread away beside the loader. */
static void tell_beside(const struct facts *facts, const struct starved *starved,
			struct finding *finding, struct findings *findings)
{
	const struct during *other = starved->other;
	struct unit_text ns;

	if (!other || !names_work(facts, other))
		return;
	finding->claim = finding_text(findings, _("%s For %s it was in %s."), finding->claim,
				      units_ns(&ns, other->ns), tell_name(facts, other->name));
	finding_evidence(finding, "idle.host_late.during", (double)other->ns, "ns",
			 tell_name(facts, other->name));
	finding_advice(finding, finding_text(findings,
					     _("What the thread does in %s comes on top: do it in "
					       "another thread, or less often"),
					     tell_name(facts, other->name)));
}

static void tell_loader(const struct facts *facts, const struct rule *rule,
			const struct device_fact *device, const struct starved *starved,
			struct findings *findings)
{
	double share = share_of(starved->ns, starved->judged.span_ns);
	struct finding *finding = finding_add(
		findings, rule, share >= STARVED_BAD_SHARE ? SEVERITY_BAD : SEVERITY_WARN);
	const char *loader = tell_name(facts, starved->loader_name);
	struct unit_text ns, loader_ns, text;

	finding->title = _("The GPU waits for the data loader");
	finding->claim = finding_text(findings,
				      _("%s had nothing queued for %s (%s of the span); in %s of "
					"that the launching thread was loading data (%s)."),
				      tell_device(facts, findings, device->device),
				      units_ns(&ns, starved->ns), units_share(&text, share),
				      units_ns(&loader_ns, starved->loader_ns), loader);
	finding_evidence(finding, "idle.host_late.during.loader", (double)starved->loader_ns, "ns",
			 loader);
	loader_advice(facts, finding, loader);
	tell_beside(facts, starved, finding, findings);
	loader_impact(facts, starved, finding);
	loader_next(facts, finding, &starved->judged.idle[IDLE_HOST_LATE]);
}

/* What a wait asks for, whatever it is that the thread does; false: nothing of its own. */
static bool wait_advice(struct finding *finding, enum thread_wait wait)
{
	switch (wait) {
	case THREAD_STORAGE:
		finding_advice(finding,
			       _("Read ahead: worker processes, fewer and larger files, a local "
				 "copy or the page cache instead of a network file system"));
		return true;
	case THREAD_NO_CORE:
		finding_advice(finding,
			       _("More threads and workers want to run than there are cores: fewer "
				 "workers, OMP_NUM_THREADS=1 in them, or more cores for the job "
				 "(taskset -p, the container's CPU limit)"));
		return true;
	default:
		return false;
	}
}

/* What to do about data that comes late, by what the thread waits for. */
static void upload_advice(const struct facts *facts, struct finding *finding, enum thread_wait wait)
{
	bool has_workers = (wait == THREAD_LOCK || wait == THREAD_PIPE) &&
			   program_of(facts) == PROGRAM_FRAMEWORK;

	(void)wait_advice(finding, wait);
	loader_advice(facts, finding, has_workers ? "_MultiProcessingDataLoaderIter" : "");
}

/* The loader by its trace, not by its name. */
static void tell_upload(const struct facts *facts, const struct rule *rule,
			const struct device_fact *device, struct starved *starved,
			struct findings *findings)
{
	const struct idle_fact *idle = &starved->judged.idle[IDLE_HOST_LATE];
	double share = share_of(starved->ns, starved->judged.span_ns);
	struct finding *finding = finding_add(
		findings, rule, share >= STARVED_BAD_SHARE ? SEVERITY_BAD : SEVERITY_WARN);
	struct unit_text ns, upload_ns, text, count;

	finding->title = _("The GPU waits for the host, likely for data");
	finding->claim = finding_text(
		findings,
		_("%s had nothing queued for %s (%s of the span); %s of that, in %s gaps, ended "
		  "with an upload: likely data loading.%s"),
		tell_device(facts, findings, device->device), units_ns(&ns, starved->ns),
		units_share(&text, share), units_ns(&upload_ns, idle->upload_ns),
		units_count(&count, idle->upload_count), tell_thread(facts, idle, findings));
	finding->grade = idle->thread_state || idle->python ? GRADE_MEDIUM : GRADE_LOW;
	finding->runner_up = _("the host does something else before each upload");
	finding_evidence(finding, "idle.host_late.upload_ns", (double)idle->upload_ns, "ns", "");
	finding_evidence(finding, "idle.host_late.upload_count", (double)idle->upload_count,
			 "count", "");
	upload_advice(facts, finding, thread_wait(facts, idle));
	starved->loader_ns = idle->upload_ns;
	loader_impact(facts, starved, finding);
	loader_next(facts, finding, idle);
}

static const char *host_claim(const struct facts *facts, const struct device_fact *device,
			      const struct starved *starved, struct findings *findings)
{
	const struct idle_fact *idle = &starved->judged.idle[IDLE_HOST_LATE];
	double share = share_of(starved->ns, starved->judged.span_ns);
	const char *device_text = tell_device(facts, findings, device->device);
	const char *thread = tell_thread(facts, idle, findings);
	const struct during *other = starved->other;
	struct unit_text ns, other_ns, text;

	(void)units_ns(&ns, starved->ns);
	(void)units_share(&text, share);
	if (other && other->range)
		return finding_text(findings,
				    _("%s had nothing queued for %s (%s of the span); the "
				      "launching thread was longest in %s inside %s (%s).%s"),
				    device_text, ns.at, text.at, tell_name(facts, other->name),
				    tell_name(facts, other->range), units_ns(&other_ns, other->ns),
				    thread);
	if (other)
		return finding_text(findings,
				    _("%s had nothing queued for %s (%s of the span); the "
				      "launching thread was longest in %s (%s).%s"),
				    device_text, ns.at, text.at, tell_name(facts, other->name),
				    units_ns(&other_ns, other->ns), thread);
	if (*thread)
		return finding_text(findings, _("%s had nothing queued for %s (%s of the span).%s"),
				    device_text, ns.at, text.at, thread);
	return finding_text(findings,
			    _("%s had nothing queued for %s (%s of the span); what the host did "
			      "then is not in the recording."),
			    device_text, ns.at, text.at);
}

/* Most of the time was in a call of CUDA's: not in one of the system's, which the list
 * has as well. */
static bool in_cuda_call(const struct facts *facts, const struct starved *starved)
{
	const struct during *other = starved->other;

	return other && other->kind == ACTIVITY_CALL && facts->session &&
	       call_is_cuda(session_text(facts->session, other->name)) &&
	       share_of(other->ns, starved->ns) >= CALL_PART;
}

static void host_advice(const struct facts *facts, struct finding *finding,
			const struct starved *starved)
{
	const struct idle_fact *idle = &starved->judged.idle[IDLE_HOST_LATE];
	bool in_call = in_cuda_call(facts, starved);

	if (in_call)
		finding_advice(
			finding,
			_("A CUDA call that takes so long loads modules, makes or ends a context, "
			  "allocates memory, or waits: record after some steps of warming up, and "
			  "allocate once"));
	if (!wait_advice(finding, thread_wait(facts, idle)) && !in_call)
		finding_advice(finding,
			       _("Move that work out of the launching thread or between launches: "
				 "other threads or processes, asynchronously, or less often"));
}

static void tell_host(const struct facts *facts, const struct rule *rule,
		      const struct device_fact *device, const struct starved *starved,
		      struct findings *findings)
{
	double share = share_of(starved->ns, starved->judged.span_ns);
	struct finding *finding = finding_add(
		findings, rule, share >= STARVED_BAD_SHARE ? SEVERITY_BAD : SEVERITY_WARN);

	finding->claim = host_claim(facts, device, starved, findings);
	if (!starved->other)
		finding_lose_grade(finding);
	else
		finding_evidence(finding, "idle.host_late.during", (double)starved->other->ns, "ns",
				 tell_name(facts, starved->other->name));
	host_advice(facts, finding, starved);
	/* Work of the host can be hidden only behind work of the device: the busy
	 * time at most is there to hide it. */
	finding_impact(finding,
		       starved->ns < starved->judged.busy_ns ? starved->ns / 2
							     : starved->judged.busy_ns / 2,
		       starved->ns, part_judged(&starved->judged), starved->judged.span_ns);
	/* Who sees that the time went into a call of CUDA needs no ranges. */
	if (!in_cuda_call(facts, starved))
		advise_ranges(facts, finding);
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct starved starved;
		struct finding *finding;

		if (!device->has_timeline || device->span_ns <= 0 || device->idle_ns <= 0)
			continue;
		if (!tell_enough_launches(facts, rule, device, findings))
			continue;
		starved = starved_of(device);
		if (share_of(starved.ns, starved.judged.span_ns) < STARVED_SHARE)
			continue;
		if (share_of(starved.loader_ns, starved.ns) >= LOADER_PART &&
		    share_of(starved.loader_ns, starved.judged.span_ns) >= LOADER_SHARE)
			tell_loader(facts, rule, device, &starved, findings);
		else if (likely_loading(facts, &starved))
			tell_upload(facts, rule, device, &starved, findings);
		else
			tell_host(facts, rule, device, &starved, findings);
		finding = &findings->at.at[findings->at.count - 1];
		finding->device = device->device;
		finding->coverage = device->coverage;
		finding_evidence(finding, "idle.host_late", (double)starved.ns, "ns",
				 tell_device(facts, findings, device->device));
		finding_evidence(finding, starved.judged.steady ? "steady.span_ns" : "span_ns",
				 (double)starved.judged.span_ns, "ns", "");
		tell_setup(findings, device, finding);
		tell_host_doubt(facts, findings, finding);
		tell_callbacks_doubt(facts, findings, finding, starved.ns);
	}
}

const struct rule rule_gpu_starved = {
	.id = "gpu_starved",
	.title = N_("The GPU waits for the host"),
	.why = N_("Time with no kernel and no copy in flight or queued is time the host was late."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
