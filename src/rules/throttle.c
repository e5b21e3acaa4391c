#include "rules/throttle.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"

/* A clock that is lower by so much costs compute-bound kernels as much time. */
static const double DEEP_SHARE = 0.10;

static bool has_reason(const struct episode *episode, const char *const *reasons)
{
	for (; *reasons; reasons++)
		if (!strcmp(episode->reason, *reasons))
			return true;
	return false;
}

static int64_t length_of(const struct episode *episode)
{
	return episode->last_sample - episode->first_sample + 1;
}

struct throttle throttle_of(const struct device_fact *device, const char *const *reasons)
{
	struct throttle throttle = { .lost_ns = FACT_UNKNOWN, .by_plateau = true };

	for (size_t i = 0; i < device->episodes.count; i++) {
		const struct episode *at = &device->episodes.at[i];
		double lost = at->mhz_lost / at->mhz_before;

		if (!has_reason(at, reasons))
			continue;
		throttle.count++;
		throttle.samples += length_of(at);
		throttle.by_plateau = throttle.by_plateau && at->by_plateau;
		if (!throttle.longest || length_of(at) > length_of(throttle.longest))
			throttle.longest = at;
		if (isnan(lost) || at->end_ns <= at->start_ns)
			continue;
		if (throttle.lost_ns == FACT_UNKNOWN)
			throttle.lost_ns = 0;
		throttle.lost_ns =
			capped_add(throttle.lost_ns,
				   whole_of(lost * ((double)at->end_ns - (double)at->start_ns)));
	}
	return throttle;
}

const char *throttle_when(const struct facts *facts, struct findings *findings,
			  const struct device_fact *device, const struct throttle *throttle)
{
	const struct episode *at = throttle->longest;
	const char *file = tell_file(facts, at->source);
	struct unit_text length, interval;
	const char *when;

	when = at->first_sample == at->last_sample
		       ? finding_text(findings, _("in sample %lld of %s"),
				      (long long)at->first_sample, file)
		       : finding_text(findings, _("in samples %lld to %lld of %s"),
				      (long long)at->first_sample, (long long)at->last_sample,
				      file);
	if (at->source != device->system.source || device->system.interval_ns == FACT_UNKNOWN)
		return when;
	units_ns(&length, whole_of((double)length_of(at) * (double)device->system.interval_ns));
	units_ns(&interval, device->system.interval_ns);
	if (device->system.interval_assumed)
		return finding_text(findings,
				    _("%s (about %s at the tool's default interval of %s: the file "
				      "has no time stamps)"),
				    when, length.at, interval.at);
	return finding_text(findings, _("%s (%s at one sample every %s)"), when, length.at,
			    interval.at);
}

const char *throttle_depth(struct findings *findings, const struct throttle *throttle)
{
	const struct episode *at = throttle->longest;
	struct unit_text share;

	if (isnan(at->mhz_in))
		return _("the file has no clock, so how deep is unknown");
	if (isnan(at->mhz_lost))
		return finding_text(
			findings,
			_("SM clock %.0f MHz; no higher one was seen, so how deep is unknown"),
			at->mhz_in);
	return finding_text(findings, _("SM clock %.0f MHz instead of %.0f MHz, %s lower"),
			    at->mhz_in, at->mhz_before,
			    units_share(&share, at->mhz_lost / at->mhz_before));
}

/* A sample stands for the interval that begins with it. */
static int64_t recorded_ns(const struct system_facts *system)
{
	int64_t interval_ns = system->interval_ns > 0 ? system->interval_ns : 0;

	return capped_add(system->last_ns - system->first_ns, interval_ns);
}

/* Which kernels ran meanwhile, and how much longer than otherwise. */
static void tell_held(const struct facts *facts, struct findings *findings,
		      const struct device_fact *device, struct finding *finding)
{
	struct buf list = { 0 };

	for (size_t i = 0; i < device->held.count; i++) {
		const struct held_kernel *kernel = &device->held.at[i];
		const char *name = "";
		struct unit_text ns;

		if (facts->session && kernel->key < facts->session->keys.count)
			name = session_text(facts->session,
					    facts->session->keys.at[kernel->key].name);
		buf_printf(&list, "%s%.*s (%s", i ? ", " : "", (int)strcspn(name, "("), name,
			   units_ns(&ns, kernel->ns));
		if (isfinite(kernel->slower))
			buf_printf(&list, _(", %.2f x its time otherwise"), kernel->slower);
		buf_printf(&list, ")");
	}
	if (list.len)
		finding->claim =
			finding_text(findings, _("%s Meanwhile ran: %s."), finding->claim, list.at);
	buf_done(&list);
}

void throttle_complete(const struct facts *facts, struct findings *findings,
		       const struct device_fact *device, const struct throttle *throttle,
		       struct finding *finding)
{
	const struct episode *at = throttle->longest;
	const struct system_facts *system = &device->system;
	const char *where = tell_device(facts, findings, device->device);

	finding->device = device->device;
	finding->severity =
		at->mhz_lost >= DEEP_SHARE * at->mhz_before ? SEVERITY_WARN : SEVERITY_NOTE;
	finding_evidence(finding, "episodes", (double)throttle->count, "count", where);
	finding_evidence(finding, "first_sample", (double)at->first_sample, "count", where);
	finding_evidence(finding, "last_sample", (double)at->last_sample, "count", where);
	finding_evidence(finding, "sm_mhz", at->mhz_in, "MHz", where);
	finding_evidence(finding, "mhz_lost", at->mhz_lost, "MHz", where);
	finding_evidence(finding, "power_w", at->power_w, "W", where);
	finding_evidence(finding, "temp_c", at->temp_c, "C", where);
	if (throttle->lost_ns != FACT_UNKNOWN)
		finding_impact(finding, 0, throttle->lost_ns, STRETCH_SAMPLES, recorded_ns(system));
	if (throttle->by_plateau)
		finding->grade = GRADE_LOW;
	tell_held(facts, findings, device, finding);
}
