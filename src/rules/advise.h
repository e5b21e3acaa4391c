/*
 * advise.h - what to do, by the kind of program that was recorded.
 *
 * A program of a framework is mended in Python, any other in its own calls of
 * CUDA; what to measure next depends on who recorded it. Which it was is told
 * here and nowhere else: a rule has its texts for both kinds in one table.
 */
#pragma once

#include <stddef.h>

#include "rules/rule.h"

/* A trace that says nothing of it is taken for a framework's: most are. */
enum program { PROGRAM_FRAMEWORK, PROGRAM_NATIVE };

enum program program_of(const struct facts *facts);

/* Recorded by `sonde run`, not imported. */
bool recorded_by_run(const struct facts *facts);

/* N_() texts; NULL: nothing to say to such a program. */
struct advice {
	const char *framework, *native;
};

/* Each of them as advice, in this order. */
void advise(const struct facts *facts, struct finding *finding, const struct advice *list,
	    size_t count);

/* To run next. */
void advise_next(const struct facts *facts, struct finding *finding, struct advice next);

/* How ranges come into a recording. */
void advise_ranges(const struct facts *facts, struct finding *finding);
