#include "rules/kernel_time.h"

#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "rules/tell.h"

struct finding *kernel_finding(const struct facts *facts, const struct rule *rule, uint32_t index,
			       enum severity severity, struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, severity);

	finding->kernel = index;
	finding->device = facts->kernels.at[index].device;
	finding->grade = facts->kernels.at[index].bound.grade;
	return finding;
}

/* The length of a name up to its arguments: the first parenthesis that belongs
 * to neither a template nor an unnamed namespace. */
static size_t length_of(const char *name)
{
	static const char unnamed[] = "(anonymous namespace)";
	int depth = 0;
	size_t at = 0;

	while (name[at]) {
		if (!strncmp(name + at, unnamed, sizeof(unnamed) - 1)) {
			at += sizeof(unnamed) - 1;
			continue;
		}
		if (name[at] == '(' && depth <= 0)
			break;
		depth += (name[at] == '<') - (name[at] == '>');
		at++;
	}
	return at;
}

const char *kernel_where(const struct facts *facts, const struct kernel_fact *kernel,
			 struct findings *findings)
{
	const char *name;

	if (!facts->session || kernel->key >= facts->session->keys.count)
		return _("unnamed");
	name = tell_name(facts, facts->session->keys.at[kernel->key].name);
	return finding_text(findings, "%.*s", (int)length_of(name), name);
}

/* NULL without a timeline. */
static const struct device_fact *device_of(const struct facts *facts, uint32_t device)
{
	for (size_t i = 0; i < facts->devices.count; i++)
		if (facts->devices.at[i].device == device && facts->devices.at[i].has_timeline)
			return &facts->devices.at[i];
	return NULL;
}

void kernel_impact(const struct facts *facts, const struct kernel_fact *kernel,
		   struct finding *finding, double share)
{
	bool timed = kernel->count > 0 && kernel->sum_ns > 0;
	const struct device_fact *device = timed ? device_of(facts, kernel->device) : NULL;
	double ns = timed ? (double)kernel->sum_ns : kernel->counters.duration_ns;

	if (!isfinite(share) || !(ns > 0))
		return;
	share = fmin(fmax(share, 0), 1);
	finding_impact(finding, 0, whole_of(share * ns),
		       device ? whole_of_device(device) : STRETCH_SPAN,
		       device ? device->span_ns : 0);
}

static bool has_evidence(const struct finding *finding, const char *metric)
{
	for (size_t i = 0; i < finding->evidence.count; i++) {
		if (!strcmp(finding->evidence.at[i].metric, metric))
			return true;
	}
	return false;
}

void kernel_numbers(const struct kernel_fact *kernel, struct finding *finding, const char *where)
{
	for (size_t i = 0; i < kernel->bound.numbers.count; i++) {
		const struct number *number = &kernel->bound.numbers.at[i];

		if (!has_evidence(finding, number->metric))
			finding_evidence(finding, number->metric, number->value, number->unit,
					 where);
	}
}

double kernel_stall(const struct kernel_fact *kernel, const char *reason)
{
	for (size_t i = 0; i < kernel->stalls.count; i++)
		if (!strcmp(kernel->stalls.at[i].reason, reason))
			return kernel->stalls.at[i].share;
	return 0;
}

bool kernel_bound_by(const struct kernel_fact *kernel, enum bound_class bound, const char *unit)
{
	if (!kernel->has_bound || kernel->bound.bound != bound)
		return false;
	return !unit || (kernel->bound.unit && !strcmp(kernel->bound.unit, unit));
}
