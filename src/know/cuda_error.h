/*
 * cuda_error.h - what calls of CUDA return when they fail. The runtime's and the driver's
 * numbers for these are the same.
 *
 * Read only and thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cuda_error {
	int64_t number;
	const char *name;    /* the runtime's: "cudaErrorIllegalAddress" */
	const char *meaning; /* marked N_ */
	bool of_kernel;      /* a kernel that ran before is at fault, not the call */
};

/* NULL: not one of those that are known. */
const struct cuda_error *cuda_error_find(int64_t number);
