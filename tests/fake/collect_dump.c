/*
 * What the collector collects, as text: for the GPU scripts and the replay test.
 *
 *	collect_dump ROUNDS INTERVAL_MS [GROUPS]
 *
 * Each value is a line `value ROUND UTC_NS BOARD METRIC VALUE ORIGIN`; processes,
 * what each round cost, and at the end what each call cost follow the same way.
 * Values that are absent are told once, at the end, with the reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "collect/collector.h"

static void print_board(int round, const struct snapshot *snapshot, size_t b)
{
	const struct board *board = &snapshot->boards.at[b];
	double value;

	for (int m = 0; m < METRIC_COUNT; m++)
		if (board_get(board, (enum metric)m, &value, NULL))
			printf("value %d %" PRId64 " %zu %s %.17g %s\n", round, snapshot->utc_ns, b,
			       metric_name((enum metric)m), value,
			       origin_name((enum origin)board->origin[m]));
}

static void print_processes(int round, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];
		double bytes = -1, sm = -1;

		(void)sample_get(&process->sample, METRIC_proc_mem_used_bytes, &bytes);
		(void)sample_get(&process->sample, METRIC_proc_sm_pct, &sm);
		printf("process %d %u %" PRId64 " %u %.0f %.0f\n", round, process->board,
		       process->pid, process->kinds, bytes, sm);
	}
}

static void print_end(const struct snapshot *snapshot)
{
	for (size_t b = 0; b < snapshot->boards.count; b++) {
		const struct board *board = &snapshot->boards.at[b];

		printf("board %zu %s|%s|%s|parent %d|cc %d.%d|mig %d|persistence %d|compute %d|"
		       "virtual %d|ecc %d|gpm %d|state %d\n",
		       b, board->name, board->uuid, board->pci_bus, board->parent, board->cc_major,
		       board->cc_minor, board->mig_mode, board->persistence, board->compute_mode,
		       board->virtualization, board->ecc_mode, board->gpm, board->state);
		for (int m = 0; m < METRIC_COUNT; m++)
			if (!origin_has((enum origin)board->origin[m]) && board->origin[m])
				printf("absent %zu %s %s\n", b, metric_name((enum metric)m),
				       origin_name((enum origin)board->origin[m]));
	}
	for (size_t i = 0; i < snapshot->costs.count; i++) {
		const struct call_cost *cost = &snapshot->costs.at[i];

		printf("cost %s %" PRIu64 " %" PRIu64 " %.1f %.1f\n", cost->name, cost->count,
		       cost->failed, (double)cost->total_ns / 1e3 / (double)cost->count,
		       (double)cost->max_ns / 1e3);
	}
	printf("library %s driver %s nvml %s cuda %s wrapper %s rss %" PRId64 "\n",
	       snapshot->library, snapshot->driver, snapshot->nvml, snapshot->cuda,
	       snapshot->wrapper[0] ? snapshot->wrapper : "-", snapshot->rss_bytes);
}

static double cpu_ms(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1e3 +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e3;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 2;
	long interval_ms = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;
	uint32_t groups = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : COLLECT_ALL;
	struct collector *collector = NULL;
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };
	struct rusage self, child;
	struct timespec due;

	if (collector_open(&(struct collector_opts){ 0 }, &collector, &err) < 0) {
		fprintf(stderr, "collect_dump: %s\n", err.line);
		return 1;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &due);
	for (int round = 0; round < rounds; round++) {
		bool last = round == rounds - 1;

		if (collector_ask(collector, groups | (last ? COLLECT_COSTS : 0), &err) < 0 ||
		    collector_take(collector, &snapshot, &err) < 0) {
			printf("failed %d %d %s\n", round, collector_status(collector), err.line);
		} else {
			printf("round %d %u %.1f %.1f %s %.1f %u %zu\n", round, snapshot.calls,
			       (double)snapshot.wall_ns / 1e3, (double)snapshot.cpu_ns / 1e3,
			       snapshot.slowest, (double)snapshot.slowest_ns / 1e3,
			       snapshot.generation, snapshot.points.count);
			for (size_t b = 0; b < snapshot.boards.count; b++)
				print_board(round, &snapshot, b);
			print_processes(round, &snapshot);
		}
		(void)fflush(stdout);
		due.tv_nsec += interval_ms % 1000 * 1000000L;
		due.tv_sec += interval_ms / 1000 + due.tv_nsec / 1000000000L;
		due.tv_nsec %= 1000000000L;
		if (!last)
			(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
	print_end(&snapshot);
	collector_close(collector);
	(void)getrusage(RUSAGE_SELF, &self);
	(void)getrusage(RUSAGE_CHILDREN, &child);
	printf("cpu self %.2f ms child %.2f ms maxrss self %ld child %ld KiB\n", cpu_ms(&self),
	       cpu_ms(&child), self.ru_maxrss, child.ru_maxrss);
	snapshot_done(&snapshot);
	return 0;
}
