/*
 * stream_waits.h - streams that were made to wait for what was on another one.
 */
#pragma once

#include <stdint.h>

struct stream_wait_fact {
	uint32_t device, source;
	int64_t context;
	int64_t stream, on_stream; /* that waited, that it waited for */
	int64_t count;             /* waits for an event whose record is known */
	int64_t held_count;        /* of those, the other stream was not yet so far */
	int64_t held_ns;           /* in which the stream had work, and waited */
	int64_t longest_ns;
	uint32_t longest_name; /* string: what it waited for then */
};
