#include "cmd/run_system.h"

#include <poll.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/collector.h"
#include "collect/sampler.h"
#include "serve/pace.h"

static const int64_t FAST_NS = 100000000;

struct run_system {
	struct collector *collector;
	struct sampler *sampler;
	struct snapshot snapshot;
	struct sink *sink;
	struct pace pace;
	bool asked, gave_up;
	struct err complaint;
};

int run_system_open(const char *library, struct sink *sink, struct run_system **ret_system,
		    struct err *err)
{
	OWN(run_system_closep) struct run_system *system = mem_zero(sizeof(*system));
	struct collector_opts opts = { .library = library };

	system->sink = sink;
	system->pace.interval_ns = FAST_NS;
	system->pace.needs = PACE_RUN;
	if (collector_open(&opts, &system->collector, err) < 0)
		return err->code;
	*ret_system = STEAL(system);
	return 0;
}

void run_system_close(struct run_system *system)
{
	if (!system)
		return;
	collector_close(system->collector);
	sampler_free(system->sampler);
	snapshot_done(&system->snapshot);
	free(system);
}

static bool is_readable(int fd)
{
	struct pollfd poll_for = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&poll_for, 1, 0) > 0;
}

static void give_up(struct run_system *system, const struct err *why)
{
	system->gave_up = true;
	if (!system->sampler)
		system->complaint = *why;
}

static void ask(struct run_system *system)
{
	int64_t now = clock_steady_ns();
	struct err err = { 0 };
	bool round;

	if (now < pace_next(&system->pace))
		return;
	if (collector_ask(system->collector, pace_ask(&system->pace, now, &round), &err) < 0)
		give_up(system, &err);
	else
		system->asked = true;
}

/* The kernel log is not read beside a run: what NVML tells is all there is. */
static int push_faults(struct run_system *system, struct err *err)
{
	const struct snapshot *snapshot = &system->snapshot;
	uint32_t source = sampler_source(system->sampler);
	struct fault fault;
	int ret = 0;

	for (size_t i = 0; i < snapshot->events.count && ret >= 0; i++)
		if (board_event_fault(snapshot, &snapshot->events.at[i], &fault))
			ret = fault_push(system->sink, source, &fault, err);
	return ret;
}

int run_system_tick(struct run_system *system, struct err *err)
{
	struct err own = { 0 };

	if (!system || system->gave_up)
		return 0;
	if (!system->asked) {
		ask(system);
		return 0;
	}
	if (!is_readable(collector_fd(system->collector)) &&
	    clock_steady_ns() < collector_deadline_ns(system->collector))
		return 0;
	system->asked = false;
	if (collector_take(system->collector, &system->snapshot, &own) < 0) {
		give_up(system, &own);
		return 0;
	}
	(void)pace_took(&system->pace, system->snapshot.wall_ns);
	if (!system->sampler)
		system->sampler = sampler_new(system->sink, FAST_NS);
	if (sampler_push(system->sampler, &system->snapshot, err) < 0)
		return err->code;
	return push_faults(system, err);
}

int64_t run_system_cpu_ns(const struct run_system *system)
{
	return system ? collector_cpu_ns(system->collector) : 0;
}

const char *run_system_complaint(const struct run_system *system)
{
	return system && system->complaint.line[0] ? system->complaint.line : NULL;
}
