#include "rules/tell.h"

#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "base/units.h"

/* "Cause named only if it covers >= 80 % of the cost" is what a maintained tool
 * of this kind asks for (traceopt-ai/traceml, issue 165); we ask the same of
 * the launches on which all causes of idle time rest. */
static const double LAUNCH_COVERAGE_LEAST = 0.8;

/* Does another device bear the same number: that of another rank's file? */
static bool has_twin(const struct session *session, uint32_t device)
{
	for (uint32_t i = 0; i < session->devices.count; i++)
		if (i != device &&
		    session->devices.at[i].ordinal == session->devices.at[device].ordinal &&
		    session->devices.at[i].part == session->devices.at[device].part)
			return true;
	return false;
}

const char *tell_device(const struct facts *facts, struct findings *findings, uint32_t device)
{
	const struct session *session = facts->session;
	const struct device *row;

	if (!session || device >= session->devices.count)
		return finding_text(findings, _("GPU %u"), device);
	row = &session->devices.at[device];
	if (row->ordinal < 0 && row->pci_bus)
		return finding_text(
			findings, "%s %s",
			!strcmp(session_text(session, row->name), "NVSwitch") ? "NVSwitch" : "GPU",
			session_text(session, row->pci_bus));
	if (row->ordinal < 0)
		return _("the GPU");
	if (has_twin(session, device) && row->source < session->sources.count &&
	    session->sources.at[row->source].rank >= 0)
		return finding_text(findings, _("GPU %lld of rank %lld"), (long long)row->ordinal,
				    (long long)session->sources.at[row->source].rank);
	if (row->part)
		return finding_text(findings, _("GPU %lld %s"), (long long)row->ordinal,
				    session_text(session, row->part));
	return finding_text(findings, _("GPU %lld"), (long long)row->ordinal);
}

const char *tell_file(const struct facts *facts, uint32_t source)
{
	const char *path, *slash;

	if (!facts->session || source >= facts->session->sources.count)
		return "";
	path = session_text(facts->session, facts->session->sources.at[source].file);
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

const char *tell_name(const struct facts *facts, uint32_t name)
{
	const char *text = facts->session ? session_text(facts->session, name) : "";

	return *text ? text : _("unnamed");
}

void tell_host_doubt(const struct facts *facts, struct findings *findings, struct finding *finding)
{
	if (!facts->host_time_inflated)
		return;
	finding_lose_grade(finding);
	finding->claim = finding_text(findings,
				      _("%s The trace was taken with Python stacks, which slows "
					"the host: its times are too long."),
				      finding->claim);
	finding_next(finding, _("record again with with_stack=False to see the host's true times"));
}

/* From a tenth on it is more than a matter of a digit. */
static const int64_t RECORDER_PARTS = 10;
/* What PC sampling adds to a launch at the least, on an H200: doc/measured.md. */
static const int64_t SAMPLED_LAUNCH_NS = 1000;

static bool is_good_part(int64_t ns, int64_t idle_ns)
{
	return ns > 0 && ns >= idle_ns / RECORDER_PARTS;
}

void tell_callbacks_doubt(const struct facts *facts, struct findings *findings,
			  struct finding *finding, int64_t idle_ns)
{
	struct unit_text text;
	int64_t ns = 0;

	for (size_t i = 0; i < facts->callbacks.count; i++)
		ns = capped_add(ns, facts->callbacks.at[i].sum_ns);
	if (!is_good_part(ns, idle_ns))
		return;
	finding->claim = finding_text(findings,
				      _("%s sonde's own callbacks in the program took %s of the "
					"host's time: in part this may be their doing."),
				      finding->claim, units_ns(&text, ns));
	finding_lose_grade(finding);
	if (facts->pc_samplings.count)
		finding_next(finding, _("record again without --pc-sampling"));
}

void tell_sampling_doubt(const struct facts *facts, struct findings *findings,
			 struct finding *finding, int64_t idle_ns, int64_t launches)
{
	bool was_on = false;

	for (size_t i = 0; i < facts->pc_samplings.count; i++)
		was_on = was_on || facts->pc_samplings.at[i].covered_ns > 0;
	if (!was_on ||
	    !is_good_part(whole_of((double)launches * (double)SAMPLED_LAUNCH_NS), idle_ns))
		return;
	finding->claim = finding_text(findings,
				      _("%s PC sampling was on, which makes each launch 1 to 9 us "
					"slower: in part this is its doing."),
				      finding->claim);
	finding_lose_grade(finding);
	finding_next(finding, _("record again without --pc-sampling"));
}

void tell_setup(struct findings *findings, const struct device_fact *device,
		struct finding *finding)
{
	struct unit_text ns, span;

	if (!device->steady.has)
		return;
	finding->claim = finding_text(findings,
				      _("%s This is of the steady %s; the set-up of %s before is "
					"left out."),
				      finding->claim, units_ns(&span, device->steady.span_ns),
				      units_ns(&ns, device->setup.ns));
}

bool tell_enough_launches(const struct facts *facts, const struct rule *rule,
			  const struct device_fact *device, struct findings *findings)
{
	struct unit_text share;

	if (device->coverage >= LAUNCH_COVERAGE_LEAST)
		return true;
	if (isnan(device->coverage))
		findings_abstain(findings, rule,
				 _("%s: the recording has no launches to judge idle time by"),
				 tell_device(facts, findings, device->device));
	else
		findings_abstain(findings, rule,
				 _("%s: only %s of the kernels have their launch in the recording"),
				 tell_device(facts, findings, device->device),
				 units_share(&share, device->coverage));
	return false;
}
