/*
 * Stall reasons by PC sampling: counts of (function, offset, reason) summed up
 * for each kernel name of a device. Continuous sampling knows the function and
 * not the launch, so all kernels of a name share them.
 *
 * Each reason is there twice: of all samples, and "_not_issued", of those in
 * which the scheduler issued nothing; the second is a part of the first, and
 * two more names are totals. Nothing is ever added over all of them: the list
 * of reasons is read by name (bound_stalls.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/bound.h"
#include "base/map.h"
#include "store/store.h"

/* doc/bound.md, step 7: latency binds below this share of issue slots in use. */
static const double STARVED_ISSUE_SHARE = 0.6;

/* What a share that was seen in so many looks may be at most. Wilson's bound (1927): of
 * few looks, or of a share near 0, the plain one would say there is no doubt. */
static double share_at_most(double share, double looks)
{
	double z2 = STALL_SIGMAS * STALL_SIGMAS / looks;

	return (share + z2 / 2 + sqrt(z2 * (share * (1 - share) + z2 / 4))) / (1 + z2);
}

struct tally {
	uint32_t device, function, reason;
	double samples;
};

struct tallies {
	VEC(struct tally) at;
	struct map index; /* hash of the three -> place */
};

static void tally_add(struct tallies *tallies, uint32_t device, uint32_t function, uint32_t reason,
		      int64_t samples)
{
	/* 20 bits of device, 22 each of the others. Where they don't do, a reason has
	 * several rows, which of_function adds up. */
	uint64_t key = (uint64_t)device << 44 ^ (uint64_t)function << 22 ^ reason;
	uint64_t *found = map_find(&tallies->index, key);
	struct tally *at = found ? &tallies->at.at[*found] : NULL;

	if (!at || at->device != device || at->function != function || at->reason != reason) {
		map_put(&tallies->index, key, tallies->at.count);
		at = VEC_ADD(&tallies->at);
		*at = (struct tally){ device, function, reason, 0 };
	}
	at->samples += (double)samples;
}

static int read_stalls(struct store *store, struct tallies *tallies, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_stall),
		.columns = COL_BIT(COL_function) | COL_BIT(COL_reason) | COL_BIT(COL_samples),
	};
	const struct session *session = store_session(store);
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int ret = store_query_open(store, &query, &cursor, err);

	while (ret >= 0 && (ret = store_next(cursor, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.count; i++)
			if (batch.col[COL_samples][i] > 0)
				tally_add(tallies, session->lanes.at[batch.lane].device,
					  (uint32_t)batch.col[COL_function][i],
					  (uint32_t)batch.col[COL_reason][i],
					  batch.col[COL_samples][i]);
	}
	return ret;
}

static int by_function(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->reason > y->reason) - (x->reason < y->reason);
}

struct issue {
	double share; /* of the samples that say which reason, those in which something was
			 issued; NAN where the list lacks what it takes to tell */
	bool sure;    /* it is below the bound by more than chance */
};

/* `speak_as_one` samples each. */
static struct issue issue_of(const struct metric_table *table, double speak_as_one)
{
	static const char before[] = "smsp__pcsamp_warps_issue_stalled_", after[] = "_not_issued";
	double all = 0, idle = 0, share;

	for (size_t i = 0; i < table->rows.count; i++) {
		const char *name = table->rows.at[i].name;
		size_t len = strlen(name);

		if (strncmp(name, before, sizeof(before) - 1) != 0)
			continue;
		if (len > sizeof(after) && !strcmp(name + len - (sizeof(after) - 1), after))
			idle += table->rows.at[i].value;
		else
			all += table->rows.at[i].value;
	}
	if (!(idle > 0) || all < idle)
		return (struct issue){ .share = NAN };
	share = 1 - idle / all;
	return (struct issue){
		.share = share,
		.sure = share_at_most(share, all / speak_as_one) < STARVED_ISSUE_SHARE,
	};
}

/* Samples that speak as one: all SMs are sampled at the same moments, and those that began
 * a launch together run in step (doc/measured.md). The SMs with a block of it, at most. */
static double in_step(const struct facts *facts, uint32_t device, uint32_t function)
{
	const struct session *session = facts->session;
	double sms =
		device < session->devices.count ? (double)session->devices.at[device].sm_count : 0;
	double blocks = 0;

	for (size_t i = 0; i < facts->kernels.count; i++) {
		const struct kernel_fact *kernel = &facts->kernels.at[i];
		const struct kernel_key *key;

		if (kernel->key >= session->keys.count || kernel->device != device)
			continue;
		key = &session->keys.at[kernel->key];
		if (key->name == function)
			blocks = fmax(blocks, (double)key->grid[0] * key->grid[1] * key->grid[2]);
	}
	if (blocks > 0 && blocks < sms)
		sms = blocks;
	return fmax(sms, 1);
}

/* A full queue is a unit that is busy: that is a matter of throughput, which
 * samples can't tell from latency. */
static bool is_throttle(const char *reason)
{
	return strstr(reason, "throttle") != NULL;
}

static void number(struct bound_fact *bound, const char *metric, double value, const char *unit)
{
	*VEC_ADD(&bound->numbers) = (struct number){ metric, value, unit };
}

/* Latency, as far as samples alone can say it: the schedulers had nothing to
 * issue for most of the time, and one group of reasons says why. */
static void judge(struct facts *facts, struct kernel_fact *kernel, const struct stall_list *stalls,
		  const struct issue *issue)
{
	struct bound_fact *bound = &kernel->bound;
	enum stall_group group = 0;

	for (int g = 0; g < STALL_OTHER; g++)
		if (stalls->share[g] > stalls->share[group])
			group = g;
	if (kernel->has_bound || kernel->collective || stalls->few ||
	    !(issue->share < STARVED_ISSUE_SHARE) || !stalls->at.count ||
	    is_throttle(stalls->at.at[0].reason))
		return;
	kernel->has_bound = true;
	bound->bound = BOUND_LATENCY;
	bound->runner_up_unit = "";
	if (stalls->share[group] < BOUND_STALL_SHARE) {
		bound->unit = "mixed";
		bound->grade = GRADE_LOW;
	} else {
		bound->unit = stall_group_name(group);
		bound->grade = group == STALL_MEMORY || !issue->sure ? GRADE_LOW : GRADE_MEDIUM;
	}
	if (group == STALL_MEMORY) {
		bound->runner_up = BOUND_DRAM;
		bound->runner_up_unit = "dram";
		bound->next = "ncu --section SpeedOfLight (whether it is latency or the memory's "
			      "bandwidth)";
	} else {
		bound->next = "ncu --set full (how busy the units are meanwhile)";
	}
	number(bound, arena_printf(&facts->arena, "stall group %s", stall_group_name(group)),
	       100 * stalls->share[group], "%");
	number(bound, arena_printf(&facts->arena, "stall share %s", stalls->at.at[0].reason),
	       100 * stalls->at.at[0].share, "%");
	number(bound, "issue slots in use", 100 * issue->share, "%");
	number(bound, "PC samples without an issue", stalls->samples, "count");
}

static void of_function(struct facts *facts, const struct tally *at, size_t count)
{
	const struct session *session = facts->session;
	struct metric_table table = { 0 };
	struct stall_list stalls = { 0 };
	struct stall_lead lead;
	struct issue issue;
	double one;

	for (size_t i = 0; i < count; i++) {
		if (i && at[i].reason == at[i - 1].reason)
			table.rows.at[table.rows.count - 1].value += at[i].samples;
		else
			metric_table_add(&table, session_text(session, at[i].reason), "",
					 at[i].samples);
	}
	metric_table_sort(&table);
	stall_list_read(&table, &stalls);
	one = in_step(facts, at->device, at->function);
	issue = issue_of(&table, one);
	stall_lead_read(&table, one, &lead);
	for (size_t i = 0; i < facts->kernels.count && isfinite(stalls.samples); i++) {
		struct kernel_fact *kernel = &facts->kernels.at[i];

		if (kernel->key >= session->keys.count || kernel->stalls.count ||
		    kernel->device != at->device ||
		    session->keys.at[kernel->key].name != at->function)
			continue;
		for (size_t k = 0; k < stalls.at.count; k++)
			*VEC_ADD(&kernel->stalls) = stalls.at.at[k];
		kernel->stall_samples = (int64_t)stalls.samples;
		kernel->top_stall = lead.reason;
		kernel->sure_stall = lead.sure;
		kernel->top_samples = (int64_t)lead.samples;
		kernel->pc_samples = (int64_t)lead.all;
		judge(facts, kernel, &stalls, &issue);
	}
	stall_list_done(&stalls);
	metric_table_done(&table);
}

int analyze_stalls(struct store *store, struct facts *facts, struct err *err)
{
	struct tallies tallies = { 0 };
	int ret = read_stalls(store, &tallies, err);

	if (tallies.at.count)
		qsort(tallies.at.at, tallies.at.count, sizeof(*tallies.at.at), by_function);
	for (size_t i = 0; ret >= 0 && i < tallies.at.count;) {
		size_t n = 1;

		while (i + n < tallies.at.count &&
		       tallies.at.at[i + n].device == tallies.at.at[i].device &&
		       tallies.at.at[i + n].function == tallies.at.at[i].function)
			n++;
		of_function(facts, &tallies.at.at[i], n);
		i += n;
	}
	VEC_DONE(&tallies.at);
	map_done(&tallies.index);
	return ret < 0 ? ret : 0;
}
