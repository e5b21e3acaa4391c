/*
 * recording_bench.h - what tests of recordings on disk share: a folder, and the
 * lanes of a machine's cards.
 */
#pragma once

#include "model/session.h"
#include "temp_folder.h"

/* Lane i is that of card i. */
static inline void describe_boards(struct session *session, uint32_t boards)
{
	uint32_t source = session_source(session, "nvml", "this machine");

	session->sources.at[source].has_utc = true;
	for (uint32_t i = 0; i < boards; i++) {
		struct device device = { .scope = DEVICE_OF_SMI, .source = source, .ordinal = i };
		struct lane lane = { .kind = LANE_BOARD,
				     .source = source,
				     .process = SESSION_NONE,
				     .context = -1,
				     .stream = -1,
				     .tid = -1 };

		lane.device = session_device(session, &device);
		(void)session_lane(session, &lane);
	}
}
