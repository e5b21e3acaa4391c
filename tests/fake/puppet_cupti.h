/* puppet_cupti.h - what the files of CUPTI's puppet share: see puppet_cuda.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cupti_abi.h"

enum {
	RESULT_INVALID_PARAMETER = 1,
	RESULT_NOT_READY = 13,
	RESULT_INVALID_KIND = 21,
	RESULT_NOT_SUPPORTED = 27,
	RESULT_UNKNOWN = 999,
};

/* puppet_word.c
 * The word `name` of PUPPET_CUPTI: its number, 1 if it has none, 0 if it is not there. */
uint32_t puppet_word(const char *name);

/* puppet_holes.c; under the lock */
/* Is it the record at `at`? Then that is one of a kernel that has not ended from now on. */
bool puppet_hole(uint8_t *at, const struct cupti_kernel *record);
bool puppet_has_hole(const uint8_t *buffer, size_t bytes);
/* All of them are as if they had. */
void puppet_fill_holes(void);

/* puppet_samples.c */
/* Be busy so long, or sleep. */
void puppet_wait_ns(long ns);
/* A kernel ran in the context. */
void puppet_sampled(void *context, const char *function);
/* The context is no more. */
void puppet_sampled_gone(void *context);
