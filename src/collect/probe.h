/*
 * probe.h - what CUDA and CUPTI say when they are really asked.
 *
 * In a child with a time limit: it makes a CUDA context on the first card
 * (some hundred MiB of its memory, a second of time), asks CUPTI for the
 * counters' availability and starts and stops each kind of collection once.
 * Nothing of that stays behind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { PROBE_NOT_TRIED = -1 };

/* Results as CUDA's and CUPTI's own numbers: 0 success; PROBE_NOT_TRIED. */
struct probe {
	int cuda_init, cuda_context;
	int cupti_version; /* API version; 0 unknown */
	int cc_major, cc_minor;
	char chip[32]; /* "GH100" */
	int activity, counters, pc_sampling, pm_sampling;
	char missing[64]; /* the library or function that was not there */
};

/* Nothing tried. */
void probe_none(struct probe *ret_probe);

/* `cupti` is the library to use. ERR_BUSY: no answer in time; ERR_IO: the
 * child died. What was learnt before stands in *ret_probe even then. */
int probe_run(const char *cupti, int64_t limit_ms, struct probe *ret_probe, struct err *err);

/* CUPTI's name of a result, without CUPTI_ERROR_; "unknown result" if we don't
 * know it. */
const char *probe_cupti_result(int result);
