/*
 * progress.h - a line on the terminal while a long import runs.
 *
 * A sink in front of another one that counts what passes. Without a terminal
 * on stderr there is no such sink and nothing is counted: progress_sink gives
 * the other one back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/sink.h"

struct progress {
	struct sink sink; /* first: a sink call finds us by it */
	struct sink *behind;
	const char *what;
	int64_t events;
	int64_t shown_ns; /* when the line was last drawn */
	bool drawn;
};

/* The sink to use; borrowed, lives as long as both arguments. */
struct sink *progress_sink(struct progress *progress, struct sink *behind);
void progress_start(struct progress *progress, const char *what);
/* Wipe the line. */
void progress_stop(struct progress *progress);
