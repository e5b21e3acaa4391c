#include "present/text.h"

#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/units.h"
#include "rules/short_name.h"
#include "present/source_devices.h"

/* Kernels of one short name: all instances of a template, all grids. */
struct group {
	const char *name;
	int64_t count, sum_ns, min_ns, max_ns;
	int64_t bound_ns; /* of sum_ns, with a verdict */
	size_t keys;
	enum bound_class bound;
	bool collective, mixed_bound, has_bound;
	const char *group;     /* of the bound: "memory", "fma" */
	const char *stall;     /* that leads, of the instance with most time */
	bool sure_stall;       /* by more than chance */
	int64_t stall_samples; /* of that reason */
	int64_t pc_samples;    /* of all reasons, of the same instance */
	int64_t stall_ns;      /* that time */
};

struct groups {
	VEC(struct group) all;
};

static const char *kernel_name(const struct facts *facts, const struct kernel_fact *kernel)
{
	const struct session *session = facts->session;

	if (kernel->key >= session->keys.count)
		return "?";
	return session_text(session, session->keys.at[kernel->key].name);
}

static void add_to_group(struct group *group, const struct kernel_fact *kernel)
{
	group->min_ns =
		!group->keys || kernel->min_ns < group->min_ns ? kernel->min_ns : group->min_ns;
	group->max_ns =
		!group->keys || kernel->max_ns > group->max_ns ? kernel->max_ns : group->max_ns;
	group->keys++;
	group->count += kernel->count;
	group->sum_ns += kernel->sum_ns;
	group->collective = group->collective || kernel->collective;
	if (kernel->pc_samples && kernel->sum_ns >= group->stall_ns) {
		group->stall = kernel->top_stall;
		group->sure_stall = kernel->sure_stall;
		group->stall_samples = kernel->top_samples;
		group->pc_samples = kernel->pc_samples;
		group->stall_ns = kernel->sum_ns;
	}
	if (kernel->has_bound) {
		group->mixed_bound = group->mixed_bound ||
				     (group->has_bound && group->bound != kernel->bound.bound);
		group->bound = kernel->bound.bound;
		group->group = kernel->bound.unit;
		group->has_bound = true;
		group->bound_ns += kernel->sum_ns;
	}
}

static void collect(struct page *page, const struct facts *facts, struct groups *groups)
{
	OWN(intern_freep) struct intern *names = intern_new();
	struct map index = { 0 };

	for (size_t i = 0; i < facts->kernels.count; i++) {
		const struct kernel_fact *kernel = &facts->kernels.at[i];
		struct buf text = { 0 };
		uint64_t *found;
		uint32_t id;

		if (kernel->count <= 0)
			continue;
		short_name(kernel_name(facts, kernel), &text);
		id = intern_add(names, text.at ? text.at : "", text.len);
		found = map_find(&index, id);
		if (!found) {
			map_put(&index, id, groups->all.count);
			VEC_ADD(&groups->all)->name =
				page_printf(page, "%s", text.at ? text.at : "");
			found = map_find(&index, id);
		}
		add_to_group(&groups->all.at[*found], kernel);
		buf_done(&text);
	}
	map_done(&index);
}

static int by_sum(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	if (left->sum_ns != right->sum_ns)
		return left->sum_ns < right->sum_ns ? 1 : -1;
	return strcmp(left->name, right->name);
}

static const struct column KERNEL_COLUMNS[] = {
	{ N_("kernel"), false, true, 0 },
	{ N_("time"), true, false, 0 },
	{ N_("share"), true, false, 0 },
	{ N_("calls"), true, false, 0 },
	{ N_("mean"), true, false, 1 },
	{ N_("shortest"), true, false, 3 },
	{ N_("longest"), true, false, 2 },
	{ N_("bound"), false, false, 1 },
	{ N_("top stall, of samples"), false, false, 1 },
};

/* A verdict on a small part of the instances is none on all. */
static const char *group_bound(const struct group *group)
{
	if (group->collective)
		return _("collective");
	if (!group->has_bound || group->bound_ns < group->sum_ns / 2)
		return NULL;
	return group->mixed_bound ? _("differs") : bound_name(group->bound);
}

/* "latency: sync" where samples named the group. */
static const char *bound_cell(struct page *page, const struct group *group)
{
	const char *bound = group_bound(group);

	if (bound && group->has_bound && !group->mixed_bound && group->bound == BOUND_LATENCY &&
	    group->group && *group->group)
		return page_printf(page, "%s: %s", bound, group->group);
	return bound;
}

/* "long_scoreboard 50 % of 1,204"; "wait? 34 % of 90" where another may lead as well;
 * "none of 12" where none is named. */
static const char *stall_cell(struct page *page, const struct group *group)
{
	struct unit_text share, count;

	if (!group->pc_samples)
		return NULL;
	(void)units_count(&count, group->pc_samples);
	if (!group->stall)
		return page_printf(page, _("none of %s"), count.at);
	return page_printf(
		page, group->sure_stall ? _("%s %s of %s") : _("%s? %s of %s"), group->stall,
		units_share(&share, (double)group->stall_samples / (double)group->pc_samples),
		count.at);
}

/* Of a launch, on an H200: doc/measured.md. In the run itself it can't be measured, as
 * sampling can't be switched off. */
enum { SAMPLED_LAUNCH_NS_LEAST = 1000, SAMPLED_LAUNCH_NS_MOST = 9000 };

static void sampling_cost(struct page *page, const struct facts *facts, const struct groups *groups)
{
	int64_t launches = 0, on_ns = 0;
	struct unit_text count, least, most;

	for (size_t i = 0; i < groups->all.count; i++)
		launches += groups->all.at[i].pc_samples ? groups->all.at[i].count : 0;
	for (size_t i = 0; i < facts->pc_samplings.count; i++)
		on_ns += facts->pc_samplings.at[i].covered_ns;
	/* Below a thousandth it is not worth a line. */
	if (!on_ns || (double)launches * SAMPLED_LAUNCH_NS_MOST < (double)on_ns / 1e3)
		return;
	page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
		  page_printf(page,
			      _("PC sampling makes each launch 1 to 9 us slower (measured on "
				"H200s), these %s by %s to %s in all; it can't be switched off in "
				"the run."),
			      units_count(&count, launches),
			      units_ns(&least, launches * SAMPLED_LAUNCH_NS_LEAST),
			      units_ns(&most, launches * SAMPLED_LAUNCH_NS_MOST)));
}

/* Whether there are stall reasons, and what they rest on. */
static void stall_remark(struct page *page, const struct facts *facts, const struct groups *groups)
{
	const char *state =
		session_text(facts->session, profile_env(facts->session, "pc_sampling"));
	size_t sampled = 0;

	for (size_t i = 0; i < groups->all.count; i++)
		sampled += groups->all.at[i].pc_samples > 0;
	if (sampled) {
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  _("Stall reasons are shares of a kernel's PC samples; none is named of "
			    "fewer than 30. With \"?\" the next may lead as well: SMs that run in "
			    "step were looked at too seldom to tell (1 in 100)."));
		sampling_cost(page, facts, groups);
	} else if (!strcmp(state, "off") && groups->all.count)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  _("Why warps stall is not recorded: PC sampling is off unless asked for, "
			    "as it makes each launch 1 to 9 us slower (a fifth of a program that "
			    "launches much). With it: sonde run --pc-sampling on -- COMMAND"));
	else if (!strcmp(state, "on") && groups->all.count)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  _("PC sampling was asked for and brought no sample: what the recording "
			    "lacks says why, or no kernel ran long enough for one (--pc-period)."));
}

void text_kernels(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = KERNEL_COLUMNS, .column_count = 9 };
	int64_t sum_ns = 0, rest_ns = 0;
	struct groups groups = { 0 };

	collect(page, facts, &groups);
	if (groups.all.count)
		qsort(groups.all.at, groups.all.count, sizeof(*groups.all.at), by_sum);
	for (size_t i = 0; i < groups.all.count; i++)
		sum_ns += groups.all.at[i].sum_ns;
	for (size_t i = 0; i < groups.all.count; i++) {
		const struct group *group = &groups.all.at[i];

		if (i >= (size_t)page->top) {
			rest_ns += group->sum_ns;
			continue;
		}
		table_cell(&table, group->name);
		table_cell(&table, cell_ns(page, group->sum_ns));
		table_cell(&table, cell_of(page, group->sum_ns, sum_ns));
		table_cell(&table, cell_count(page, group->count));
		table_cell(&table, cell_ns(page, group->sum_ns / group->count));
		table_cell(&table, cell_ns(page, group->min_ns));
		table_cell(&table, cell_ns(page, group->max_ns));
		table_cell(&table, bound_cell(page, group));
		table_cell(&table, stall_cell(page, group));
	}
	if (groups.all.count) {
		struct unit_text sum;

		page_heading(page, _("Kernels"),
			     page_printf(page, _("%s in all"), units_ns(&sum, sum_ns)));
		table_print(page, &table, 2);
	}
	if (groups.all.count > (size_t)page->top)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("and %d more: %s"), (int)groups.all.count - page->top,
				      cell_ns(page, rest_ns)));
	stall_remark(page, facts, &groups);
	VEC_DONE(&groups.all);
}

static const struct column COUNTER_COLUMNS[] = {
	{ N_("kernel"), false, true, 0 }, { N_("time"), true, false, 0 },
	{ N_("bound"), false, false, 0 }, { N_("unit"), false, false, 1 },
	{ N_("sure"), false, false, 4 },  { N_("SM %"), true, false, 3 },
	{ N_("mem %"), true, false, 5 },  { N_("DRAM %"), true, false, 2 },
	{ N_("occ. %"), true, false, 3 }, { N_("top stall"), false, false, 6 },
};

static const char *percent(struct page *page, double value)
{
	return isfinite(value) ? page_printf(page, "%.0f", value) : NULL;
}

static void counter_row(struct page *page, const struct facts *facts,
			const struct kernel_fact *kernel, struct table *table)
{
	const struct kernel_counters *counters = &kernel->counters;
	struct buf name = { 0 };
	bool has = kernel->has_counters;

	short_name(kernel_name(facts, kernel), &name);
	table_cell(table, page_printf(page, "%s", name.at ? name.at : ""));
	buf_done(&name);
	table_cell(table, has && isfinite(counters->duration_ns)
				  ? cell_ns(page, (int64_t)counters->duration_ns)
				  : NULL);
	table_cell(table, kernel->has_bound ? bound_name(kernel->bound.bound) : NULL);
	table_cell(table, kernel->has_bound && kernel->bound.unit && *kernel->bound.unit
				  ? _(kernel->bound.unit)
				  : NULL);
	table_cell(table, kernel->has_bound ? grade_name(kernel->bound.grade) : NULL);
	table_cell(table, has ? percent(page, counters->sm_pct) : NULL);
	table_cell(table, has ? percent(page, counters->memory_pct) : NULL);
	table_cell(table, has ? percent(page, counters->dram_pct) : NULL);
	table_cell(table, has ? percent(page, counters->achieved_occupancy_pct) : NULL);
	table_cell(table, kernel->stalls.count ? kernel->stalls.at[0].reason : NULL);
}

/* Of the kernels without a finding of their own, what the counters say. The
 * default number of rows is larger: a file of counters has nothing else. */
void text_counters(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = COUNTER_COLUMNS, .column_count = 10 };
	size_t shown = 0, limit = (size_t)page->top * 4, measured = 0;

	for (size_t i = 0; i < facts->kernels.count; i++) {
		if (!facts->kernels.at[i].counter_launches)
			continue;
		measured++;
		if (shown < limit) {
			counter_row(page, facts, &facts->kernels.at[i], &table);
			shown++;
		}
	}
	if (!measured)
		return;
	page_heading(page, _("What binds each kernel"), _("of the peak rate, not of time"));
	table_print(page, &table, 2);
	if (measured > shown)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("and %d more"), (int)(measured - shown)));
}
