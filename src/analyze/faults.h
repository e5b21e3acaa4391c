/*
 * faults.h - the parts of analyze_faults.
 *
 * Private to analyze/. Events lie in order of time, then source and line.
 */
#pragma once

#include "analyze/facts.h"

/* Incidents, roles and what each group counts. */
void fault_roles(struct facts *facts);
/* What the incidents of each group have in common. */
void fault_patterns(struct facts *facts);

/* One clock for both sources: the same file, or both in UTC. */
static inline bool fault_comparable(const struct session *session, uint32_t a, uint32_t b)
{
	return a == b || (session->sources.at[a].has_utc && session->sources.at[b].has_utc);
}

/* How far the clocks of two comparable sources may be apart; INT64_MAX unknown. */
int64_t fault_clock_error(const struct session *session, uint32_t a, uint32_t b);
