/*
 * serve_made [LISTEN]: an exporter of invented cards, for tests that are clients.
 *
 * Prints its address, serves until stdin ends, then prints what became of the
 * connections. A line on stdin is a step: counters move, and "lost" loses a card.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "made_snapshot.h"
#include "serve/exporter.h"

struct state {
	struct snapshot snapshot;
	double step;
	struct proc proc;
	struct prometheus_xid xid;
};

static const struct proc *find(void *arg, int64_t pid)
{
	struct state *state = arg;

	return pid == state->proc.pid ? &state->proc : NULL;
}

static void current(void *arg, struct prometheus_input *ret)
{
	struct state *state = arg;

	ret->snapshot = &state->snapshot;
	ret->find_proc = find;
	ret->arg = state;
	ret->xids = &state->xid;
	ret->xid_count = 1;
	ret->own.collector_rss_bytes = 6 << 20;
	ret->own.snapshots = (uint64_t)state->step + 1;
}

/* False at the end of stdin. */
static bool take_step(struct state *state)
{
	char line[64];
	ssize_t len = read(STDIN_FILENO, line, sizeof(line) - 1);

	if (len <= 0)
		return false;
	line[len] = '\0';
	state->step++;
	snapshot_done(&state->snapshot);
	made_busy(&state->snapshot, 8, state->step);
	made_set(made_instance(&state->snapshot, 0), METRIC_sm_active_pct, 25);
	if (!strncmp(line, "lost", 4))
		state->snapshot.boards.at[1].state = BOARD_LOST;
	return true;
}

int main(int argc, char **argv)
{
	struct state state = {
		.proc = { .pid = 4000,
			  .user = "ann",
			  .command = "python \"a b\" \\ x\ny",
			  .pod = "train-0",
			  .namespace = "ml" },
		.xid = { "0000:80:00", 79, 2, 1700000000000000000 },
	};
	struct exporter_opts opts = {
		.listen = argc > 1 ? argv[1] : "0",
		.dcgm_names = true,
		.processes = true,
		.current = current,
		.arg = &state,
	};
	OWN(exporter_closep) struct exporter *exporter = NULL;
	struct pollfd pollfd = { .fd = STDIN_FILENO, .events = POLLIN };
	struct err err = { 0 };

	made_busy(&state.snapshot, 8, 0);
	made_set(made_instance(&state.snapshot, 0), METRIC_sm_active_pct, 25);
	if (exporter_open(&opts, &exporter, &err) < 0) {
		fprintf(stderr, "serve_made: %s\n", err.line);
		snapshot_done(&state.snapshot);
		return -err.code;
	}
	printf("%s\n", exporter_address(exporter));
	fflush(stdout);
	while (exporter_poll(exporter, &pollfd, 1, -1) >= 0 && take_step(&state))
		exporter_renew(exporter);
	snapshot_done(&state.snapshot);
	return 0;
}
