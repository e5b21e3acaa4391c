#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
#include "rules/tell.h"
#include "rules/tell_thread.h"

/* Idle time between launches that came, but too slowly, as a share of the span.
 * The same share as for a starved GPU: doc/rules/launch_bound.md */
static const double LAUNCH_BOUND_SHARE = 0.10;
/* From here on it is worth a note: a part of each step that launches many small
 * kernels hides in the share of the whole. */
static const double LAUNCH_NOTE_SHARE = 0.03;
/* With what the device itself takes from one short kernel to the next, where that is a
 * tenth of both and more, and most kernels are short. */
static const double SHORT_NOTE_SHARE = 0.02;
static const double TURNAROUND_PART = 0.1;
static const double LAUNCH_BOUND_BAD_SHARE = 0.5;

/* Fewer launches have no rate. */
static const int64_t LAUNCHES_LEAST = 50;

static void evidence(const struct facts *facts, struct findings *findings,
		     const struct device_fact *device, const struct judged *judged, bool of_short,
		     struct finding *finding)
{
	const char *where = tell_device(facts, findings, device->device);

	finding_evidence(finding, "idle.launch_rate", (double)judged->idle[IDLE_LAUNCH_RATE].ns,
			 "ns", where);
	if (of_short)
		finding_evidence(finding, "idle.turnaround",
				 (double)judged->idle[IDLE_DEPENDENCY].turnaround_ns, "ns", where);
	finding_evidence(finding, "kernel_count", (double)judged->kernel_count, "count", where);
	finding_evidence(finding, "kernel_p50_ns", (double)device->kernel_p50_ns, "ns", where);
	finding_evidence(finding, "launch_gap_p50_ns", (double)device->launch_gap_p50_ns, "ns",
			 where);
	finding_evidence(finding, "small_kernels", (double)device->small_kernels, "count", where);
}

static const struct advice ADVICE[] = {
	{ N_("Launch many kernels at once: CUDA graphs (torch.cuda.graph, or "
	     "torch.compile(mode=\"reduce-overhead\")); shapes and addresses must then stay the "
	     "same"),
	  N_("Launch many kernels at once: a CUDA graph (cudaStreamBeginCapture round a step, "
	     "cudaGraphInstantiate once, cudaGraphLaunch in each step); addresses must then stay "
	     "the same") },
	{ N_("Launch fewer: torch.compile fuses elementwise operators; use fused optimizers "
	     "(fused=True or foreach=True)"),
	  N_("Launch fewer: make one kernel of those that follow each other on the same data") },
	{ N_("Give each kernel more to do: a bigger batch, if memory and convergence allow it"),
	  N_("Give each kernel more to do: several rows, tiles or problems in one grid") },
};

/* Most kernels come from graphs: the call launches so many on average. */
static const double GRAPH_KERNELS = 2;

static double kernels_a_launch(const struct device_fact *device)
{
	return device->launch_count > 0
		       ? (double)device->kernel_count / (double)device->launch_count
		       : 0;
}

static void advice(const struct facts *facts, const struct device_fact *device,
		   struct finding *finding)
{
	if (kernels_a_launch(device) >= GRAPH_KERNELS)
		finding_advice(finding,
			       _("Put more into each CUDA graph: what is lost here is between "
				 "graphs, and a graph of several steps is one launch"));
	else
		advise(facts, finding, &ADVICE[0], 1);
	advise(facts, finding, &ADVICE[1], sizeof(ADVICE) / sizeof(*ADVICE) - 1);
	finding_next(finding, _("sonde report --layer timeline --top 30 PROFILE"));
	finding_next(finding, _("sonde sql PROFILE \"SELECT name, count(*), avg(duration_ns) FROM "
				"kernel GROUP BY name ORDER BY 2 DESC LIMIT 20\""));
}

/* Lost between short kernels, whether the next was queued or not. */
static int64_t between_ns(const struct judged *judged)
{
	return judged->idle[IDLE_LAUNCH_RATE].ns + judged->idle[IDLE_DEPENDENCY].turnaround_ns;
}

/* A note that is of the short kernels, whoever is late. */
static bool is_of_short(const struct device_fact *device, const struct judged *judged)
{
	int64_t turn_ns = judged->idle[IDLE_DEPENDENCY].turnaround_ns;

	return device->small_kernels > device->kernel_count / 2 &&
	       share_of(judged->idle[IDLE_LAUNCH_RATE].ns, judged->span_ns) < LAUNCH_BOUND_SHARE &&
	       share_of(between_ns(judged), judged->span_ns) >= SHORT_NOTE_SHARE &&
	       (double)turn_ns >= TURNAROUND_PART * (double)between_ns(judged);
}

static const char *claim(const struct facts *facts, struct findings *findings,
			 const struct device_fact *device, const struct judged *judged,
			 bool of_short)
{
	const struct idle_fact *rate = &judged->idle[IDLE_LAUNCH_RATE];
	const char *where = tell_device(facts, findings, device->device);
	double share = share_of(rate->ns, judged->span_ns);
	struct unit_text ns, percent, median, gap, count, lost, turn;

	if (!of_short)
		return finding_text(
			findings,
			_("%s ran dry between launches for %s (%s of the span): %s kernels with a "
			  "median of %s, while a launch comes every %s.%s"),
			where, units_ns(&ns, rate->ns), units_share(&percent, share),
			units_count(&count, judged->kernel_count),
			units_ns(&median, device->kernel_p50_ns),
			units_ns(&gap, device->launch_gap_p50_ns),
			tell_thread(facts, rate, findings));
	return finding_text(
		findings,
		_("%s lost %s (%s of the span) between short kernels (%s of %s are shorter than "
		  "%s): %s as the next was not launched yet, %s on the way to one that was."),
		where, units_ns(&lost, between_ns(judged)),
		units_share(&percent, share_of(between_ns(judged), judged->span_ns)),
		units_count(&count, device->small_kernels), units_count(&gap, device->kernel_count),
		units_ns(&median, SMALL_KERNEL_NS), units_ns(&ns, rate->ns),
		units_ns(&turn, judged->idle[IDLE_DEPENDENCY].turnaround_ns));
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, struct findings *findings)
{
	struct judged judged = device_judged(device);
	int64_t idle_ns = judged.idle[IDLE_LAUNCH_RATE].ns;
	double share = share_of(idle_ns, judged.span_ns);
	bool of_short = is_of_short(device, &judged);
	int64_t high_ns = of_short ? between_ns(&judged) : idle_ns;
	struct finding *finding = finding_add(findings, rule,
					      share >= LAUNCH_BOUND_BAD_SHARE ? SEVERITY_BAD
					      : share >= LAUNCH_BOUND_SHARE   ? SEVERITY_WARN
									      : SEVERITY_NOTE);
	/* Even a host that does nothing but launch needs its launch calls. */
	int64_t low_ns = idle_ns - judged.launch_sum_ns;

	finding->device = device->device;
	if (of_short)
		finding->title = _("Time is lost between many short kernels");
	finding->claim = claim(facts, findings, device, &judged, of_short);
	finding->coverage = device->coverage;
	finding_impact(finding, low_ns > 0 ? low_ns : 0, high_ns, part_judged(&judged),
		       judged.span_ns);
	evidence(facts, findings, device, &judged, of_short, finding);
	advice(facts, device, finding);
	tell_setup(findings, device, finding);
	tell_host_doubt(facts, findings, finding);
	tell_sampling_doubt(facts, findings, finding, high_ns, device->launch_count);
	/* Recording a stack at each call is just what makes launches slow. While
	 * the host is late for other reasons as well, mend those first. */
	if (!facts->host_time_inflated || judged.idle[IDLE_HOST_LATE].ns < idle_ns)
		return;
	finding->severity = SEVERITY_NOTE;
	finding->held_back = true;
	finding->held_back_why =
		_("held back: recording stacks slows launches most of all, and the "
		  "host is late for longer; judge it by a recording without");
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct judged judged;

		if (!device->has_timeline || device->span_ns <= 0 || device->idle_ns <= 0 ||
		    device->launch_count < LAUNCHES_LEAST)
			continue;
		if (!tell_enough_launches(facts, rule, device, findings))
			continue;
		judged = device_judged(device);
		if (share_of(judged.idle[IDLE_LAUNCH_RATE].ns, judged.span_ns) >=
			    LAUNCH_NOTE_SHARE ||
		    is_of_short(device, &judged))
			tell(facts, rule, device, findings);
	}
}

const struct rule rule_launch_bound = {
	.id = "launch_bound",
	.title = N_("The host can't launch fast enough"),
	.why = N_("A kernel that is shorter than the host's work for its launch leaves the GPU "
		  "idle until the next one comes."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
