#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"
#include "rules/throttle.h"

#include <math.h>
#include <string.h>

/* The driver's flag for heat is told at once; it should never be set. */
static const int64_t HOT_SAMPLES = 1;

static const char *cause_of(const char *reason)
{
	if (!strcmp(reason, "thermal"))
		return _("heat");
	if (!strcmp(reason, "power_brake"))
		return _("the external power brake");
	return _("a hardware slowdown");
}

static void advice(const struct episode *at, struct finding *finding)
{
	if (strcmp(at->reason, "thermal") != 0) {
		finding_advice(finding,
			       _("Power supply, cables, power distribution and the BMC's power "
				 "cap: the board is told from outside to slow down"));
		finding_next(finding, _("nvidia-smi -q -d PERFORMANCE,POWER"));
		return;
	}
	finding_advice(finding, _("Cooling: airflow, fans, dust, inlet temperature, a neighbour's "
				  "exhaust; for passively cooled boards the chassis fans"));
	finding_advice(
		finding,
		_("Until that is mended, a lower power limit (as root: nvidia-smi -pl WATTS) gives "
		  "a steadier, cooler clock; here, unlike at a power wall, it can help"));
	finding_next(finding, _("nvidia-smi -q -d TEMPERATURE,PERFORMANCE"));
	finding_next(finding, _("nvidia-smi dmon -s pcv -d 1 (temperatures, clocks, violations)"));
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, const struct throttle *throttle,
		 struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_NOTE);
	const struct metric_stats *slowdown = &device->system.metric[METRIC_temp_slowdown_c];
	const struct episode *at = throttle->longest;
	const char *where = tell_device(facts, findings, device->device);

	if (strcmp(at->reason, "thermal") != 0)
		finding->title = _("The board is told to slow down");
	finding->claim =
		finding_text(findings, _("%s was slowed by %s %s: %s."), where,
			     cause_of(at->reason), throttle_when(facts, findings, device, throttle),
			     throttle_depth(findings, throttle));
	if (!isnan(at->temp_c))
		finding->claim = finding_text(findings, _("%s The GPU reached %.0f C."),
					      finding->claim, at->temp_c);
	throttle_complete(facts, findings, device, throttle, finding);
	if (slowdown->count)
		finding_evidence(finding, "temp_slowdown_c", slowdown->last, "C", where);
	/* Unlike a power wall this is never how it should be. */
	if (finding->severity < SEVERITY_WARN)
		finding->severity = SEVERITY_WARN;
	advice(at, finding);
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	static const char *const HEAT[] = { "thermal", NULL };
	static const char *const BRAKE[] = { "power_brake", NULL };
	static const char *const *const KINDS[] = { HEAT, BRAKE };

	for (size_t i = 0; i < facts->devices.count; i++)
		for (size_t k = 0; k < sizeof(KINDS) / sizeof(KINDS[0]); k++) {
			struct throttle throttle = throttle_of(&facts->devices.at[i], KINDS[k]);

			if (throttle.longest && throttle.samples >= HOT_SAMPLES)
				tell(facts, rule, &facts->devices.at[i], &throttle, findings);
		}
}

const struct rule rule_thermal_throttle = {
	.id = "thermal_throttle",
	.title = N_("Heat holds the clock down"),
	.why = N_("A GPU that reaches its slowdown temperature cuts its clock, at once and deeply, "
		  "to protect itself."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
