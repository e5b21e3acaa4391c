#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"
#include "rules/throttle.h"

#include <math.h>

/* A power limit that shows in one sample only is a peak, not a wall. */
static const int64_t WALL_SAMPLES = 2;

static double limit_of(const struct device_fact *device, enum metric metric)
{
	const struct metric_stats *stats = &device->system.metric[metric];

	return stats->count ? stats->last : NAN;
}

static const char *limit_text(struct findings *findings, double limit_w)
{
	if (isnan(limit_w))
		return _("the limit itself is in none of the files");
	return finding_text(findings, _("the limit is %.0f W"), limit_w);
}

static void advice(struct findings *findings, const struct device_fact *device,
		   struct finding *finding)
{
	double limit_w = limit_of(device, METRIC_power_limit_w);
	double most_w = limit_of(device, METRIC_power_max_limit_w);

	if (limit_w < most_w)
		finding_advice(finding,
			       finding_text(findings,
					    _("The limit is below the board's highest: where power "
					      "and cooling allow it, as root: nvidia-smi -pl %.0f"),
					    most_w));
	finding_advice(
		finding,
		_("For dense matrix work a power wall is normal: the card does all it may. Compare "
		  "cards and runs at equal limits, and by work done rather than by clock"));
	finding_advice(finding, _("Spend less energy for the same result: lower precision (BF16, "
				  "FP8), fewer bytes moved, sparsity, fused kernels"));
	finding_advice(
		finding,
		_("Lowering the limit or adding load makes it worse; other cards of the node have "
		  "budgets of their own and are not to blame, unless the node caps them together"));
	if (isnan(limit_w))
		finding_next(finding, _("nvidia-smi -q -d POWER (shows the limit in force)"));
	finding_next(finding, _("nvidia-smi "
				"--query-gpu=timestamp,index,power.draw,power.limit,clocks.sm,"
				"clocks_event_reasons.active --format=csv -lms 500"));
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, const struct throttle *throttle,
		 struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_NOTE);
	const struct episode *at = throttle->longest;
	double limit_w = limit_of(device, METRIC_power_limit_w);
	const char *power = isnan(at->power_w)
				    ? _("power was not recorded")
				    : finding_text(findings, _("power at %.0f W"), at->power_w);

	finding->claim = finding_text(findings, _("%s ran against its power limit %s: %s; %s, %s."),
				      tell_device(facts, findings, device->device),
				      throttle_when(facts, findings, device, throttle),
				      throttle_depth(findings, throttle), power,
				      limit_text(findings, limit_w));
	if (throttle->by_plateau)
		finding->claim =
			finding_text(findings,
				     _("%s No limit was recorded: this is read from a clock that "
				       "fell while power stayed at its highest."),
				     finding->claim);
	throttle_complete(facts, findings, device, throttle, finding);
	finding_evidence(finding, "power_limit_w", limit_w, "W",
			 tell_device(facts, findings, device->device));
	advice(findings, device, finding);
	if (throttle->by_plateau)
		finding->runner_up = _("a clock set by hand or by a policy (nvidia-smi -lgc)");
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	static const char *const REASONS[] = { "power", NULL };

	for (size_t i = 0; i < facts->devices.count; i++) {
		struct throttle throttle = throttle_of(&facts->devices.at[i], REASONS);

		if (throttle.longest && throttle.samples >= WALL_SAMPLES)
			tell(facts, rule, &facts->devices.at[i], &throttle, findings);
	}
}

const struct rule rule_power_wall = {
	.id = "power_wall",
	.title = N_("The power limit holds the clock down"),
	.why = N_("At its power limit a GPU lowers its clock until it fits; all compute slows with "
		  "it."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
