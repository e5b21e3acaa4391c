#include "rules/tell.h"

#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "base/units.h"

/* "Cause named only if it covers >= 80 % of the cost" is what a maintained tool
 * of this kind asks for (traceopt-ai/traceml, issue 165); we ask the same of
 * the launches on which all causes of idle time rest. */
static const double LAUNCH_COVERAGE_LEAST = 0.8;

const char *tell_device(const struct facts *facts, struct findings *findings, uint32_t device)
{
	const struct device *row;
	const char *name;
	int64_t number = device;

	if (!facts->session || device >= facts->session->devices.count)
		return finding_text(findings, _("GPU %u"), device);
	row = &facts->session->devices.at[device];
	name = session_text(facts->session, row->name);
	if (row->ordinal >= 0)
		number = row->ordinal;
	if (!*name)
		return finding_text(findings, _("GPU %lld"), (long long)number);
	return finding_text(findings, _("GPU %lld (%s)"), (long long)number, name);
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
