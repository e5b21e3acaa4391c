/*
 * Calls into the runtime and driver: one pass over them for sums by name and for the
 * times of launches by device.
 */
#include "analyze/timeline.h"

#include <ctype.h>
#include <stdlib.h>

#include "analyze/order.h"
#include "base/interval.h"
#include "base/str.h"

/* By number of the name. */
struct call_sum {
	int64_t count, without_op, captured, sum_ns, max_ns;
	enum capture_call capture;
};

/* Of launches on one device. */
struct launch_sum {
	int64_t count, sum_ns;
	struct quantiles length, gap;
	uint32_t before; /* the last one, if at or behind the first call of the thread */
	int64_t before_ns;
};

static int calls_by_sum(const void *a, const void *b)
{
	const struct call_fact *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

bool call_is_cuda(const char *name)
{
	return str_starts(str_of(name), "hip") ||
	       (str_starts(str_of(name), "cu") &&
		(isupper((unsigned char)name[2]) || str_starts(str_of(name), "cuda")));
}

/* Calls whose work on the device should be in the recording. */
bool launch_call_name(const char *name)
{
	static const char *const starts[] = {
		"cudaLaunchKernel",          "cuLaunchKernel",        "cudaLaunchCooperativeKernel",
		"cuLaunchCooperativeKernel", "cudaGraphLaunch",       "cuGraphLaunch",
		"hipLaunchKernel",           "hipModuleLaunchKernel", "hipExtLaunchKernel",
		"hipExtModuleLaunchKernel",  "hipGraphLaunch"
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (str_starts(str_of(name), starts[i]))
			return true;
	return false;
}

enum capture_call capture_call_name(const char *name)
{
	static const char *const ends[] = { "cudaStreamEndCapture", "cuStreamEndCapture",
					    "hipStreamEndCapture" };
	static const char *const begins[] = { "cudaStreamBeginCapture", "cuStreamBeginCapture",
					      "hipStreamBeginCapture" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (str_starts(str_of(name), begins[i]))
			return CAPTURE_BEGINS;
		if (str_starts(str_of(name), ends[i]))
			return CAPTURE_ENDS;
	}
	return CAPTURE_NONE;
}

/* The thread's calls begin with `first`. */
static void launch_add(struct launch_sum *sum, const struct tl_calls *calls, uint32_t first,
		       uint32_t call)
{
	int64_t start = call_start(calls, call), ns = call_ns(calls, call);

	quantiles_add(&sum->length, ns);
	if (sum->count && sum->before >= first)
		quantiles_add(&sum->gap, start - sum->before_ns);
	sum->before = call;
	sum->before_ns = start;
	sum->sum_ns += ns;
	sum->count++;
}

static void call_add(struct call_sum *sum, int64_t ns, bool without_op, bool captured)
{
	sum->count++;
	sum->without_op += without_op && !captured;
	sum->captured += without_op && captured;
	sum->sum_ns = capped_add(sum->sum_ns, ns);
	if (ns > sum->max_ns)
		sum->max_ns = ns;
}

static void names_out(const struct timeline *timeline, const struct call_sum *sums,
		      struct facts *facts)
{
	for (size_t i = 0; i < timeline->calls.names.count; i++) {
		uint32_t name = timeline->calls.names.at[i];
		const char *text = session_text(timeline->session, name);
		struct call_fact *fact;

		if (!sums[i].count)
			continue;
		fact = VEC_ADD(&facts->calls);
		fact->name = name;
		fact->synchronising = sync_call_name(text);
		fact->count = sums[i].count;
		fact->sum_ns = sums[i].sum_ns;
		fact->max_ns = sums[i].max_ns;
		if (launch_call_name(text)) {
			facts->unmatched_calls += sums[i].without_op;
			facts->captured_calls += sums[i].captured;
		}
	}
	if (facts->calls.count)
		qsort(facts->calls.at, facts->calls.count, sizeof(*facts->calls.at), calls_by_sum);
}

static void launches_out(struct launch_sum *sums, struct facts *facts)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		struct device_fact *fact = &facts->devices.at[i];

		if (sums[i].count) {
			fact->launch_count = sums[i].count;
			fact->launch_sum_ns = sums[i].sum_ns;
			fact->launch_p50_ns = quantiles_get(&sums[i].length, 0.5);
			fact->launch_gap_p50_ns = quantiles_get(&sums[i].gap, 0.5);
		}
		quantiles_done(&sums[i].length);
		quantiles_done(&sums[i].gap);
	}
}

/* The waits of the host in the span of the only device; of several it is not known for
 * which it waited. */
struct waits {
	struct device_fact *fact; /* NULL: none are looked for */
	int64_t from, to;
	const struct pauses *pauses;
	VEC(struct interval) at;
};

static struct waits waits_of(const struct timeline *timeline, struct facts *facts)
{
	struct waits waits = { 0 };
	const struct tl_device *device;

	if (timeline->only_device == TL_NONE || !timeline->calls.count)
		return waits;
	device = &timeline->devices[timeline->only_device];
	if (!device->count || facts->devices.at[timeline->only_device].span_ns <= 0)
		return waits;
	waits.fact = &facts->devices.at[timeline->only_device];
	waits.pauses = &device->pauses;
	waits.from = op_start(&timeline->ops, device_op(device, 0));
	waits.to = waits.from + waits.fact->span_ns + waits.fact->paused_ns;
	return waits;
}

static void waits_add(struct waits *waits, int64_t start, int64_t end)
{
	if (start < waits->to && end > waits->from)
		*VEC_ADD(&waits->at) = (struct interval){ start > waits->from ? start : waits->from,
							  end < waits->to ? end : waits->to };
}

/* As one, however many threads waited. */
static void waits_out(struct waits *waits)
{
	if (waits->fact) {
		size_t count = interval_union(waits->at.at, waits->at.count);
		int64_t ns = interval_length(waits->at.at, count);

		/* One may reach out of the window that it began in. */
		for (size_t i = 0; i < count; i++)
			ns -= pauses_within(waits->pauses, waits->at.at[i].start,
					    waits->at.at[i].end);
		waits->fact->host_wait_ns = ns;
	}
	VEC_DONE(&waits->at);
}

void call_facts(const struct timeline *timeline, struct facts *facts)
{
	const struct tl_calls *calls = &timeline->calls;
	struct call_sum *by_name = mem_zero((calls->names.count + 1) * sizeof(*by_name));
	struct launch_sum *by_device = mem_zero((facts->devices.count + 1) * sizeof(*by_device));
	struct waits waits = waits_of(timeline, facts);

	for (size_t i = 0; i < calls->names.count; i++)
		by_name[i].capture =
			capture_call_name(session_text(timeline->session, calls->names.at[i]));
	for (size_t s = 0; s < calls->segments.count; s++) {
		uint32_t first = calls->segments.at[s].first;
		size_t captures = 0;

		for (uint32_t i = first; i < first + calls->segments.at[s].count; i++) {
			uint32_t op = calls->first_op[i], device = timeline->only_device;
			struct call_sum *sum = &by_name[calls->what[i] & (CALL_WAITS - 1)];

			call_add(sum, call_ns(calls, i), op == TL_NONE,
				 capture_step(sum->capture, &captures));
			if (waits.fact && call_waits(calls, i))
				waits_add(&waits, call_start(calls, i), call_end(calls, i));
			if (op == TL_NONE)
				continue;
			if (device == TL_NONE)
				device = op_segment(timeline, op)->device;
			launch_add(&by_device[device], calls, first, i);
		}
	}
	names_out(timeline, by_name, facts);
	launches_out(by_device, facts);
	waits_out(&waits);
	free(by_name);
	free(by_device);
}
