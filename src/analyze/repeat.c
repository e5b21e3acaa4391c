#include "analyze/repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/order.h"
#include "base/map.h"
#include "base/mem.h"

/* What is looked at to find the unit: from the middle, where a loop runs as it
 * does. A unit must come four times in it. */
static const size_t WINDOW = 1 << 16;

/* Marks that come fewer times bound fewer than three whole units, and three is
 * the least that "again and again" can mean. */
static const uint32_t MARKS_LEAST = 4;
/* A kind of work that comes less often can't show that it is repeated. */
static const size_t KIND_LEAST = 3;
/* One that comes only in a stretch of a quarter of what is looked at is no part of
 * what goes on throughout: tuning at the start, one evaluation. */
static const size_t STRETCH_PARTS = 4;

/* Of the kinds of work, each counted once however often it comes, so many must
 * come equally often in each unit. Random sequences have up to 0.3 (a count equals
 * the median of its kind by chance), one layer of a network that is taken for the
 * whole at most 0.7 in generated ones: what lies outside it is in one unit of many. */
static const double SCORE_LEAST = 0.8;
/* Marks of one unit differ by so much; of those the shortest unit counts. */
static const double SCORE_SAME = 0.03;
/* Equal: within a tenth, so exactly up to nine. */
static const uint32_t COUNT_TENTH = 10;

/* Chance grants one agreement of a count with another with a probability of some
 * 0.4; of 20 and more, four fifths come about by chance once in 3,000 times. */
static const size_t AGREEMENTS_LEAST = 20;

/* A unit with so many of a shorter unit in it is no step but an epoch: the deepest
 * networks in use have some 130 layers (Llama 3.1 405B: 126). */
static const size_t NESTED_MOST = 130;

/* Units must hold half of the launches: else they are not what the thread does. */
static const double COVER_LEAST = 0.5;

/* Marks that are tried: those of the counts that most marks have. */
enum { BUCKETS = 8 * 17, BUCKETS_TRIED = 16, MARKS_A_BUCKET = 6, NOT_SEEN = UINT32_MAX };

struct mark {
	uint32_t before, kind; /* before: NOT_SEEN, it may be anything */
	uint32_t count, bucket, population;
	uint64_t gap_ns; /* sum */
};

struct able {
	uint32_t count, kind;
};

struct seeker {
	uint32_t *kind_of; /* by `what`, NOT_SEEN: not in the window */
	uint32_t *kinds;   /* of the window, a kind each place */
	size_t count, kind_count;
	uint32_t *first, *places; /* places of kind k: places[first[k]] .. first[k + 1] */
	struct able *able;        /* kinds that can speak */
	size_t able_count;
	uint32_t *unit_of; /* of a place; NOT_SEEN before the first mark */
	int64_t *counts;   /* of one kind, by unit */
	VEC(struct mark) marks;
};

struct judgement {
	double score;
	size_t units, told; /* whole ones; kinds that speak */
};

static bool is_mark(const struct mark *mark, uint32_t before, uint32_t kind)
{
	return kind == mark->kind && (mark->before == NOT_SEEN || mark->before == before);
}

/* Each kind has one voice: those that are heard quickly come first. */
static int by_count(const void *a, const void *b)
{
	const struct able *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static void able_find(struct seeker *seeker)
{
	seeker->able = mem_alloc((seeker->kind_count + 1) * sizeof(*seeker->able));
	for (uint32_t k = 0; k < seeker->kind_count; k++) {
		const uint32_t *places = seeker->places + seeker->first[k];
		uint32_t count = seeker->first[k + 1] - seeker->first[k];

		if (count >= KIND_LEAST &&
		    STRETCH_PARTS * (places[count - 1] - places[0]) >= seeker->count)
			seeker->able[seeker->able_count++] = (struct able){ count, k };
	}
	qsort(seeker->able, seeker->able_count, sizeof(*seeker->able), by_count);
}

static void kinds_number(struct seeker *seeker, const struct repeat_item *items, uint32_t whats)
{
	uint32_t *next;

	memset(seeker->kind_of, 0xff, whats * sizeof(*seeker->kind_of));
	for (size_t i = 0; i < seeker->count; i++) {
		uint32_t *kind = &seeker->kind_of[items[i].what];

		if (*kind == NOT_SEEN)
			*kind = (uint32_t)seeker->kind_count++;
		seeker->kinds[i] = *kind;
	}
	seeker->first = mem_zero((seeker->kind_count + 2) * sizeof(*seeker->first));
	next = seeker->first + 1;
	for (size_t i = 0; i < seeker->count; i++)
		next[seeker->kinds[i] + 1]++;
	for (size_t k = 0; k < seeker->kind_count; k++)
		next[k + 1] += next[k];
	for (size_t i = 0; i < seeker->count; i++)
		seeker->places[next[seeker->kinds[i]]++] = (uint32_t)i;
	able_find(seeker);
}

static void mark_count(struct seeker *seeker, struct map *slot, uint32_t before, uint32_t kind,
		       uint32_t gap_ns)
{
	uint64_t key = (uint64_t)before << 32 | kind;
	uint64_t *found = map_find(slot, key);
	struct mark *mark;

	if (found) {
		mark = &seeker->marks.at[*found];
	} else {
		map_put(slot, key, seeker->marks.count);
		mark = VEC_ADD(&seeker->marks);
		mark->before = before;
		mark->kind = kind;
	}
	mark->count++;
	mark->gap_ns += gap_ns;
}

/* Marks of the counts that most marks have come first, and among those of one
 * count the ones that most of the thread's absence lies before. */
static int by_promise(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	double left = (double)x->gap_ns / x->count, right = (double)y->gap_ns / y->count;

	if (x->population != y->population)
		return x->population > y->population ? -1 : 1;
	if (x->bucket != y->bucket)
		return x->bucket < y->bucket ? -1 : 1;
	if (left < right || left > right)
		return left > right ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->before > y->before) - (x->before < y->before);
}

static void marks_find(struct seeker *seeker, const struct repeat_item *items)
{
	uint32_t population[BUCKETS] = { 0 };
	struct map slot = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < seeker->count; i++) {
		mark_count(seeker, &slot, NOT_SEEN, seeker->kinds[i], items[i].gap_ns);
		if (i)
			mark_count(seeker, &slot, seeker->kinds[i - 1], seeker->kinds[i],
				   items[i].gap_ns);
	}
	map_done(&slot);
	for (size_t i = 0; i < seeker->marks.count; i++) {
		struct mark mark = seeker->marks.at[i];

		if (mark.count < MARKS_LEAST)
			continue;
		mark.bucket = (uint32_t)(8 * log2(mark.count));
		population[mark.bucket]++;
		seeker->marks.at[kept++] = mark;
	}
	seeker->marks.count = kept;
	for (size_t i = 0; i < kept; i++)
		seeker->marks.at[i].population = population[seeker->marks.at[i].bucket];
	if (kept)
		qsort(seeker->marks.at, kept, sizeof(*seeker->marks.at), by_promise);
}

/* How often `kind` comes in most of the units (0: in few), and the share of units
 * in which it does so; false if it comes too seldom in them. */
static bool kind_judge(struct seeker *seeker, uint32_t kind, size_t units, uint32_t *ret_usual,
		       double *ret_share)
{
	const uint32_t *places = seeker->places + seeker->first[kind];
	size_t count = seeker->first[kind + 1] - seeker->first[kind];
	size_t seen = 0, with = 0, absent, same = 0, middle = (units - 1) / 2;
	uint32_t last = NOT_SEEN;
	int64_t usual;

	*ret_usual = 0;
	*ret_share = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t unit = seeker->unit_of[places[i]];

		if (unit >= units)
			continue;
		if (unit != last)
			seeker->counts[with++] = 0;
		last = unit;
		seeker->counts[with - 1]++;
		seen++;
	}
	if (seen < KIND_LEAST)
		return false;
	absent = units - with;
	if (middle < absent)
		return true;
	order_values(seeker->counts, with);
	usual = seeker->counts[middle - absent];
	for (size_t i = 0; i < with; i++)
		same += llabs(seeker->counts[i] - usual) <= usual / COUNT_TENTH;
	*ret_usual = (uint32_t)usual;
	*ret_share = (double)same / (double)units;
	return true;
}

/* Units from mark to mark into unit_of; how many whole ones, as the last may be cut
 * off. */
static size_t units_number(struct seeker *seeker, const struct mark *mark)
{
	uint32_t unit = NOT_SEEN, from = 0; /* NOT_SEEN + 1 is 0 */

	for (uint32_t k = seeker->first[mark->kind]; k < seeker->first[mark->kind + 1]; k++) {
		uint32_t place = seeker->places[k];

		if (!is_mark(mark, place ? seeker->kinds[place - 1] : NOT_SEEN, mark->kind))
			continue;
		for (; from < place; from++)
			seeker->unit_of[from] = unit;
		unit++;
	}
	for (; from < seeker->count; from++)
		seeker->unit_of[from] = unit;
	return unit;
}

/* How alike is what lies between the occurrences of `mark`; what is usual in it,
 * if `usual` (by kind) is given. */
static struct judgement mark_judge(struct seeker *seeker, const struct mark *mark, uint32_t *usual)
{
	struct judgement judgement = { 0 };
	double sum = 0;

	judgement.units = units_number(seeker, mark);
	for (size_t i = 0; i < seeker->able_count; i++) {
		double left = (double)(seeker->able_count - i);
		uint32_t kind = seeker->able[i].kind, count;
		double share;

		/* Even if all the others agreed: most marks end here. */
		if (!usual && sum + left < SCORE_LEAST * ((double)judgement.told + left))
			return (struct judgement){ 0 };
		if (!kind_judge(seeker, kind, judgement.units, &count, &share))
			continue;
		if (usual)
			usual[kind] = count;
		/* The mark itself agrees by construction. */
		if (kind == mark->kind)
			continue;
		judgement.told++;
		sum += share;
	}
	judgement.score = judgement.told ? sum / (double)judgement.told : 0;
	return judgement;
}

static bool is_shown(const struct judgement *judgement)
{
	return judgement->score >= SCORE_LEAST &&
	       (judgement->units - 1) * judgement->told >= AGREEMENTS_LEAST;
}

struct trial {
	const struct mark *mark;
	struct judgement judgement;
};

/* Of marks that are equally good the shortest unit, or one of nearly as many
 * units that more of the thread's absence lies before: there a step begins. */
static const struct trial *choose_of(const struct trial *trials, size_t count, double best,
				     size_t units_least)
{
	const struct trial *chosen = NULL;
	size_t most = 0;

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < count; i++) {
			const struct trial *at = &trials[i];

			if (!is_shown(&at->judgement) || at->judgement.score < best - SCORE_SAME ||
			    at->judgement.units < units_least)
				continue;
			if (!round && at->judgement.units > most)
				most = at->judgement.units;
			if (round && 10 * at->judgement.units >= 9 * most &&
			    (!chosen || (double)at->mark->gap_ns * chosen->mark->count >
						(double)chosen->mark->gap_ns * at->mark->count))
				chosen = at;
		}
	return chosen;
}

static const struct trial *choose(const struct trial *trials, size_t count)
{
	const struct trial *chosen, *within;
	double best = 0, best_within = 0;

	for (size_t i = 0; i < count; i++)
		if (trials[i].judgement.score > best)
			best = trials[i].judgement.score;
	chosen = choose_of(trials, count, best, 0);
	if (!chosen)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (trials[i].judgement.units > NESTED_MOST * chosen->judgement.units &&
		    trials[i].judgement.score > best_within)
			best_within = trials[i].judgement.score;
	within = choose_of(trials, count, best_within, NESTED_MOST * chosen->judgement.units + 1);
	return within ? within : chosen;
}

/* The unit's mark; NULL if nothing is repeated. *usual: count in a unit by kind. */
static const struct mark *unit_find(struct seeker *seeker, uint32_t *usual, double *ret_score)
{
	struct trial trials[BUCKETS_TRIED * MARKS_A_BUCKET];
	size_t count = 0, buckets = 0, of_bucket = 0;
	const struct trial *chosen;

	for (size_t i = 0; i < seeker->marks.count; i++) {
		const struct mark *mark = &seeker->marks.at[i];

		if (!i || mark->bucket != mark[-1].bucket) {
			if (buckets++ == BUCKETS_TRIED)
				break;
			of_bucket = 0;
		}
		if (of_bucket++ >= MARKS_A_BUCKET)
			continue;
		trials[count].mark = mark;
		trials[count++].judgement = mark_judge(seeker, mark, NULL);
	}
	chosen = choose(trials, count);
	if (!chosen)
		return NULL;
	*ret_score = mark_judge(seeker, chosen->mark, usual).score;
	return chosen->mark;
}

struct cutter {
	const struct seeker *seeker;
	const struct repeat_item *items;
	const uint32_t *usual;
	uint32_t *seen;  /* by kind, all 0 between two units */
	size_t kinds;    /* with a usual count */
	size_t launches; /* the sum of these */
	struct repeat *out;
};

/* [first, end) is a unit if its work is what is usual. */
static void cut(struct cutter *cutter, size_t first, size_t end)
{
	size_t same = 0;

	for (size_t i = first; i < end; i++) {
		uint32_t kind = cutter->seeker->kind_of[cutter->items[i].what];

		if (kind != NOT_SEEN)
			cutter->seen[kind]++;
	}
	for (size_t i = first; i < end; i++) {
		uint32_t kind = cutter->seeker->kind_of[cutter->items[i].what];
		int64_t usual, seen;

		if (kind == NOT_SEEN || !cutter->seen[kind])
			continue;
		usual = cutter->usual[kind];
		seen = cutter->seen[kind];
		same += usual && llabs(seen - usual) <= usual / COUNT_TENTH;
		cutter->seen[kind] = 0;
	}
	/* A unit with much before or after it is none. */
	if (cutter->kinds && (double)same >= SCORE_LEAST * (double)cutter->kinds &&
	    SCORE_LEAST * (double)(end - first) <= (double)cutter->launches)
		*VEC_ADD(&cutter->out->units) = (struct repeat_unit){ first, end };
}

static void cut_all(struct cutter *cutter, const struct mark *mark, size_t count)
{
	uint32_t before = NOT_SEEN;
	size_t first = 0;

	for (size_t k = 0; k < cutter->seeker->kind_count; k++) {
		cutter->kinds += cutter->usual[k] > 0;
		cutter->launches += cutter->usual[k];
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t kind = cutter->seeker->kind_of[cutter->items[i].what];

		if (kind != NOT_SEEN && is_mark(mark, before, kind)) {
			cut(cutter, first, i);
			first = i;
		}
		before = kind;
	}
	cut(cutter, first, count);
}

static bool is_most(const struct repeat *repeat, size_t count)
{
	size_t held = 0;

	for (size_t i = 0; i < repeat->units.count; i++)
		held += repeat->units.at[i].end - repeat->units.at[i].first;
	return repeat->units.count >= MARKS_LEAST - 1 &&
	       (double)held >= COVER_LEAST * (double)count;
}

/* What is looked at in turn: all, without the start, without start and end. What a
 * program does only then (tuning, compiling, an evaluation) is in no unit, but in
 * the way of finding one. */
static const struct {
	int from, to; /* quarters */
} PARTS[] = { { 0, 4 }, { 1, 4 }, { 1, 3 } };

static struct repeat_item *get(const struct repeat_source *source, size_t first, size_t count)
{
	struct repeat_item *items = mem_alloc((count + 1) * sizeof(*items));

	source->get(source, first, count, items);
	return items;
}

/* Look for the unit in [from, to); false if there is none. */
static bool part_find(const struct repeat_source *source, uint32_t whats, size_t from, size_t to,
		      struct repeat *ret_repeat)
{
	struct seeker seeker = { .count = to - from < WINDOW ? to - from : WINDOW };
	struct cutter cutter = { .seeker = &seeker, .out = ret_repeat };
	struct repeat_item *some, *all = NULL;
	const struct mark *mark;
	uint32_t *usual;

	seeker.kind_of = mem_alloc(whats * sizeof(*seeker.kind_of));
	seeker.kinds = mem_alloc(seeker.count * sizeof(*seeker.kinds));
	seeker.places = mem_alloc(seeker.count * sizeof(*seeker.places));
	seeker.unit_of = mem_alloc(seeker.count * sizeof(*seeker.unit_of));
	seeker.counts = mem_alloc(seeker.count * sizeof(*seeker.counts));
	some = get(source, from + (to - from - seeker.count) / 2, seeker.count);
	kinds_number(&seeker, some, whats);
	marks_find(&seeker, some);
	usual = mem_zero(seeker.kind_count * sizeof(*usual));
	mark = unit_find(&seeker, usual, &ret_repeat->score);
	if (mark) {
		all = get(source, 0, source->count);
		cutter.items = all;
		cutter.usual = usual;
		cutter.seen = mem_zero(seeker.kind_count * sizeof(*cutter.seen));
		cut_all(&cutter, mark, source->count);
	}
	if (!is_most(ret_repeat, source->count))
		ret_repeat->units.count = 0;
	free(all);
	free(some);
	free(cutter.seen);
	free(usual);
	free(seeker.kind_of);
	free(seeker.kinds);
	free(seeker.first);
	free(seeker.places);
	free(seeker.able);
	free(seeker.unit_of);
	free(seeker.counts);
	VEC_DONE(&seeker.marks);
	return ret_repeat->units.count > 0;
}

bool repeat_find(const struct repeat_source *source, uint32_t whats, struct repeat *ret_repeat)
{
	size_t count = source->count;
	bool found = false;

	memset(ret_repeat, 0, sizeof(*ret_repeat));
	for (size_t i = 0; i < sizeof(PARTS) / sizeof(*PARTS) && !found; i++) {
		size_t from = count * PARTS[i].from / 4, to = count * PARTS[i].to / 4;

		if (to - from >= MARKS_LEAST)
			found = part_find(source, whats, from, to, ret_repeat);
	}
	return found;
}

void repeat_done(struct repeat *repeat)
{
	VEC_DONE(&repeat->units);
}
