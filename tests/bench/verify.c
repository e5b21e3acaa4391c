/*
 * verify - count in a profile what trace_gen counted in the trace.
 *
 *	verify PROFILE TOTALS
 *
 * Prints the fields that differ; status 1 if any does.
 */
#include <string.h>

#include "base/str.h"
#include "bench/totals.h"
#include "store/store.h"

static const uint32_t INTERVALS =
	STORE_BIT(STORE_kernel) | STORE_BIT(STORE_memcpy) | STORE_BIT(STORE_memset) |
	STORE_BIT(STORE_graph) | STORE_BIT(STORE_device_other) | STORE_BIT(STORE_runtime) |
	STORE_BIT(STORE_driver) | STORE_BIT(STORE_op) | STORE_BIT(STORE_python) |
	STORE_BIT(STORE_overhead) | STORE_BIT(STORE_sync) | STORE_BIT(STORE_os) |
	STORE_BIT(STORE_call_other) | STORE_BIT(STORE_range);

static uint64_t sum_of(const int64_t *column, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; column && i < count; i++)
		sum += (uint64_t)column[i];
	return sum;
}

/* Markers are "#" and eight hex digits, put in by the generator. */
static uint64_t markers(const char *text)
{
	uint64_t sum = 0;

	for (const char *at = text; (at = strchr(at, '#')); at++) {
		uint64_t marker;

		if (strlen(at) > 8 && str_to_hex((struct str){ at + 1, 8 }, &marker))
			sum += marker;
	}
	return sum;
}

static uint64_t name_hash(const struct session *session, const struct store_batch *batch, size_t i)
{
	uint32_t id = (uint32_t)batch->col[COL_name][i];
	size_t len;
	const char *text = intern_get(session->strings, id, &len);

	return totals_hash(text, len);
}

static void count_batch(const struct session *session, const struct store_batch *batch,
			struct totals *totals)
{
	const int64_t *detail = batch->col[COL_detail];

	if (batch->kind == STORE_link) {
		totals->arrows += batch->count;
		return;
	}
	if (batch->kind == STORE_alloc || batch->kind == STORE_mark) {
		totals->instants += batch->count;
		return;
	}
	totals->intervals += batch->count;
	totals->arrows += sum_of(batch->col[COL_flow], batch->count);
	totals->start_sum += sum_of(batch->col[COL_start], batch->count);
	totals->duration_sum += sum_of(batch->col[COL_duration], batch->count);
	totals->correlation_sum += sum_of(batch->col[COL_correlation], batch->count);
	if (batch->kind == STORE_kernel) {
		totals->kernels += batch->count;
		totals->kernel_ns += sum_of(batch->col[COL_duration], batch->count);
	}
	for (size_t i = 0; i < batch->count; i++) {
		totals->name_sum += name_hash(session, batch, i);
		if (batch->kind == STORE_op && detail && detail[i])
			totals->marker_sum +=
				markers(intern_get(session->details, (uint32_t)detail[i], NULL));
	}
}

static int compare(const struct totals *found, const char *path)
{
	FILE *file = fopen(path, "r");
	struct totals want = { 0 };
	int differ = 0;

	if (!file)
		return 2;
#define X(field)                                            \
	if (fscanf(file, "%*s %" SCNu64, &want.field) != 1) \
		differ = 2;
	TOTALS_LIST(X)
#undef X
	(void)fclose(file);
	want.objects = 0;
#define X(field)                                                                              \
	if (want.field != found->field) {                                                     \
		(void)printf(#field ": trace %" PRIu64 ", profile %" PRIu64 "\n", want.field, \
			     found->field);                                                   \
		differ = 1;                                                                   \
	}
	TOTALS_LIST(X)
#undef X
	return differ;
}

int main(int argc, char **argv)
{
	struct store_query query = { 0 };
	OWN(store_closep) struct store *store = NULL;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	struct totals totals = { 0 };
	struct err err = { 0 };
	int ret = -1;

	query.kinds =
		INTERVALS | STORE_BIT(STORE_link) | STORE_BIT(STORE_alloc) | STORE_BIT(STORE_mark);
	query.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_correlation) |
			COL_BIT(COL_name) | COL_BIT(COL_detail) | COL_BIT(COL_flow);
	if (argc == 3 && store_open(argv[1], &store, &err) == 0)
		ret = store_query_open(store, &query, &cursor, &err);
	while (ret >= 0 && (ret = store_next(cursor, &batch, &err)) > 0)
		count_batch(store_session(store), &batch, &totals);
	if (ret < 0) {
		(void)fprintf(stderr, "verify: %s\n", err.line);
		return 2;
	}
	return compare(&totals, argv[2]);
}
