/*
 * memory_facts.h - what a program held, of memory and of objects, and left behind.
 *
 * Definitions: doc/analysis.md, "Memory".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Blocks of one size, obtained again and again and never given back. */
struct leak_fact {
	int64_t block_bytes, count;
	uint32_t site; /* string: where all of them were asked for; 0: unknown, or several places */
};

/* What a program makes and has to destroy itself. */
enum held_kind { HELD_STREAM, HELD_EVENT, HELD_GRAPH, HELD_GRAPH_EXEC, HELD_KINDS };

struct object_fact {
	int64_t live;     /* at the end; FACT_UNKNOWN */
	int64_t leaked;   /* of those, made again and again */
	const char *site; /* where all of the leaked were made; NULL: unknown, or several places */
};

/* Blocks that are held at the end, by where they were asked for. */
struct site_fact {
	uint32_t site; /* string; 0: unknown */
	int64_t count, bytes;
	double growth_bytes_per_step; /* what steps left behind; NAN: no steps, or in few of them */
};

struct memory_fact {
	uint32_t device;                                     /* SESSION_NONE: memory of the host */
	int64_t peak_bytes, live_bytes, reserved_peak_bytes; /* FACT_UNKNOWN */
	int64_t alloc_count, free_count;
	double growth_bytes_per_step; /* NAN */
	size_t steps;                 /* of the process that this is told of */
	VEC(struct leak_fact) leaks;  /* largest blocks first */
	VEC(struct site_fact) sites;  /* most bytes first */
	struct object_fact objects[HELD_KINDS];
};
