/* puppet_call.h - what the files of the driver's puppet share: a call in flight. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fake/puppet_cuda.h"

enum {
	PUPPET_NOT_INITIALIZED = 3,
	PUPPET_INVALID_VALUE = 1,
	PUPPET_ILLEGAL_ADDRESS = 700,
	PUPPET_KERNEL_NS = 500,
};

struct puppet_stream {
	uint32_t id;
	_Atomic uint64_t free_ns;
};

/* Its number first, its device second: libcupti looks there, and for its default stream third. */
struct puppet_context {
	uint32_t id, device;
	struct puppet_stream null;
};

/* CUDA does not survive fork: in a child all calls fail, and are traced all the
 * same. */
struct puppet_call {
	struct puppet_event event;
	bool alive;
};

/* `params`: what callbacks are shown, a word each. */
struct puppet_call puppet_begin(uint32_t domain, uint32_t cbid, const void *params);
int puppet_end(struct puppet_call *call, int result);
/* What the call makes happen; its own times are filled in later. */
struct puppet_event puppet_event_of(const struct puppet_call *call, enum puppet_what what);
/* After all that is on the stream, and told to whoever listens. */
void puppet_run_on(struct puppet_stream *stream, struct puppet_event *event, uint64_t ns);
void puppet_tell(const struct puppet_event *event);
uint32_t puppet_new_id(void);
/* What CUDA makes of NULL. */
struct puppet_stream *puppet_stream(void *stream);
/* The thread is capturing: the launch is a node now. */
bool puppet_captured(const void *function, const unsigned int *shape);
