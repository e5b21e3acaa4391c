/*
 * tell_wait.h - what the rules on waits say in the same words: who waits, for what, and
 * what the device had done by then. Each adds a sentence to the finding's claim.
 */
#pragma once

#include "rules/rule.h"

/* "thread loader (12) of train.py (pid 10)" */
const char *tell_waiting(const struct facts *facts, struct findings *findings, uint32_t lane);
/* "thread 12" */
const char *tell_tid(const struct facts *facts, struct findings *findings, uint32_t lane);
/* "cudaStreamSynchronize for stream 13 of GPU 0" */
const char *tell_wait_call(const struct facts *facts, struct findings *findings,
			   const struct wait_fact *wait);
/* Where in the program; nothing if nobody looked. */
void tell_wait_stack(const struct wait_fact *wait, struct findings *findings,
		     struct finding *finding);
/* What ended last there, and what was launched and has no end. */
void tell_wait_device(const struct facts *facts, const struct wait_fact *wait,
		      struct findings *findings, struct finding *finding);
