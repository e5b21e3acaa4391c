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
