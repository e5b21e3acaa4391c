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

/* puppet_samples.c */
/* Be busy so long, or sleep. */
void puppet_wait_ns(long ns);
/* A kernel ran in the context. */
void puppet_sampled(void *context, const char *function);
/* The context is no more. */
void puppet_sampled_gone(void *context);
