/*
 * trace_builder.h - a trace written by hand, a line an event.
 *
 * One process on device 0 with streams and threads by number. Times are us for
 * readability; the analyses get ns.
 */
#pragma once

#include <criterion/criterion.h>

#include "memory_store.h"

struct trace {
	struct store *store;
	struct facts *facts;
	uint32_t source, device, process;
	uint64_t correlation; /* the last one given out */
};

static inline uint32_t trace_text(struct trace *trace, const char *text)
{
	return session_string(trace->store->session, text, strlen(text));
}

static inline struct trace trace_new(void)
{
	struct trace trace = { .store = memory_store_new() };
	struct session *session = trace.store->session;
	struct device device = { .scope = DEVICE_OF_SOURCE };

	trace.source = session_source(session, "kineto", "invented.json");
	device.source = trace.source;
	trace.device = session_device(session, &device);
	trace.process = session_process(session, trace.source, 100);
	return trace;
}

static inline uint32_t trace_stream(struct trace *trace, int64_t stream)
{
	struct lane lane = { .kind = LANE_STREAM,
			     .source = trace->source,
			     .device = trace->device,
			     .process = SESSION_NONE,
			     .context = 1,
			     .stream = stream,
			     .tid = -1 };

	return session_lane(trace->store->session, &lane);
}

static inline uint32_t trace_thread(struct trace *trace, int64_t tid)
{
	struct lane lane = { .kind = LANE_THREAD,
			     .source = trace->source,
			     .device = SESSION_NONE,
			     .process = trace->process,
			     .context = -1,
			     .stream = -1,
			     .tid = tid };

	return session_lane(trace->store->session, &lane);
}

/* A CUDA call of thread `tid`; its correlation. */
static inline uint64_t trace_call(struct trace *trace, int64_t tid, const char *name,
				  int64_t start_us, int64_t end_us)
{
	struct call call = { .kind = CALL_RUNTIME,
			     .lane = trace_thread(trace, tid),
			     .start_ns = start_us * 1000,
			     .end_ns = end_us * 1000,
			     .name = trace_text(trace, name),
			     .correlation = ++trace->correlation };

	sink_call(&trace->store->sink, &call, NULL);
	return call.correlation;
}

/* Something else on a thread. */
static inline void trace_host(struct trace *trace, int64_t tid, enum call_kind kind,
			      const char *name, int64_t start_us, int64_t end_us)
{
	struct call call = { .kind = kind,
			     .lane = trace_thread(trace, tid),
			     .start_ns = start_us * 1000,
			     .end_ns = end_us * 1000,
			     .name = trace_text(trace, name) };

	sink_call(&trace->store->sink, &call, NULL);
}

static inline void trace_range(struct trace *trace, int64_t tid, enum range_kind kind,
			       const char *name, int64_t start_us, int64_t end_us)
{
	struct range range = { .kind = kind,
			       .lane = trace_thread(trace, tid),
			       .start_ns = start_us * 1000,
			       .end_ns = end_us * 1000,
			       .name = trace_text(trace, name) };

	sink_range(&trace->store->sink, &range, NULL);
}

static inline void trace_kernel(struct trace *trace, int64_t stream, const char *name,
				int64_t start_us, int64_t end_us, uint64_t correlation)
{
	struct kernel_key key = { .name = trace_text(trace, name), .shared_bytes = -1 };
	struct op op = { .kind = OP_KERNEL,
			 .lane = trace_stream(trace, stream),
			 .start_ns = start_us * 1000,
			 .end_ns = end_us * 1000,
			 .name = key.name,
			 .key = session_key(trace->store->session, &key),
			 .bytes = EVENT_UNKNOWN,
			 .correlation = correlation };

	sink_op(&trace->store->sink, &op, NULL);
}

static inline void trace_copy(struct trace *trace, int64_t stream, enum copy_kind kind,
			      enum host_memory memory, int64_t bytes, int64_t start_us,
			      int64_t end_us, uint64_t correlation)
{
	struct op op = { .kind = OP_MEMCPY,
			 .lane = trace_stream(trace, stream),
			 .start_ns = start_us * 1000,
			 .end_ns = end_us * 1000,
			 .bytes = bytes,
			 .copy = kind,
			 .host_memory = memory,
			 .correlation = correlation };

	sink_op(&trace->store->sink, &op, NULL);
}

/* A kernel with its launch: called at `launch_us` for 5 us, running from
 * `start_us` to `end_us`. */
static inline void trace_launch(struct trace *trace, int64_t tid, int64_t launch_us,
				int64_t start_us, int64_t end_us)
{
	uint64_t id = trace_call(trace, tid, "cudaLaunchKernel", launch_us, launch_us + 5);

	trace_kernel(trace, 7, "some_kernel", start_us, end_us, id);
}

/* Analyse; the device's facts, borrowed until trace_done. */
static inline const struct device_fact *trace_analyze(struct trace *trace)
{
	struct err err = { 0 };

	cr_assert_eq(facts_build(trace->store, &trace->facts, &err), 0, "%s", err.line);
	return &trace->facts->devices.at[trace->device];
}

static inline void trace_done(struct trace *trace)
{
	facts_free(trace->facts);
	store_close(trace->store);
}
