/*
 * puppet.h - what the puppet of NVIDIA's management library plays.
 *
 * The file named by PUPPET_NVML says it, and is read again whenever it changes,
 * so a test changes the world by renaming another file over it. Lines:
 *
 *	CALL[.ARG] VALUE...      what a function gives; !N: it fails with status N
 *	gpu                      a card; lines below are about it
 *	like N                   all that was said of card N up to now
 *	mig GI CI                an instance of the last card; lines below are about it
 *	name TEXT, uuid TEXT, bus 0000:83:00.0
 *	field ID VALUE           for nvmlDeviceGetFieldValues
 *	ring TYPE MS VALUE       a point every MS milliseconds
 *	gpm ID VALUE             a card with such a line has GPM
 *	process PID KINDS BYTES [SM MEM ENC DEC]      kinds C, G, M; instance of the last mig
 *	use PID AGE_MS SM MEM    a row of process use as it stands, junk allowed
 *	stride BYTES             of process rows (32: drivers 535.43 to 535.85)
 *	event TYPE DATA [GI CI]  once, to who registered for it before
 *	lost [STATUS]            every question about the card fails
 *	hang CALL, crash CALL, slow CALL MS
 *	replay FILE              answers come from a recorded log instead (beside the script)
 *
 * VALUE is a number, N+R (grows by R a second), N++R (by R with each call) or N~R
 * (differs by up to R from call to call).
 * What is not said is not supported (status 3); lines before the first `gpu`
 * are about the whole library.
 *
 * The file named by PUPPET_TALLY, if there is one, is mapped and holds how often
 * each field and GPM metric was asked for: 32 bits each, the metrics after
 * PUPPET_FIELDS fields.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fake/nvml_spec.h"

enum {
	PUPPET_DEVICES = 64,
	PUPPET_LINES = 4096,
	PUPPET_TEXT = 128,
	PUPPET_FIELDS = 512,
	PUPPET_TALLY = 2 * PUPPET_FIELDS
};

/* One line about one device, or the library (device -1). */
struct puppet_line {
	int device;
	char word[64];          /* "nvmlDeviceGetClockInfo.1", "field", "process", ... */
	char text[PUPPET_TEXT]; /* the rest */
	uint64_t calls;         /* that took its value */
};

struct puppet_device {
	bool exists;
	int parent; /* -1: a card */
	uint32_t index, gpu_instance, compute_instance;
};

struct puppet {
	struct puppet_line lines[PUPPET_LINES];
	int line_count;
	struct puppet_device devices[PUPPET_DEVICES];
	int device_count;
	uint32_t card_count;
	int64_t since_ns; /* when the script was read */
	char replay[512]; /* "" none */
};

/* The script as it stands now. */
struct puppet *puppet_now(void);
/* The first line of this word about the device (or the library) whose text begins
 * with `first`, if that is not NULL. */
struct puppet_line *puppet_find(struct puppet *puppet, int device, const char *word,
				const char *first);
/* Value number `n` of a text, which grows as it says. False: there is none. */
bool puppet_value(struct puppet *puppet, struct puppet_line *line, int n, double *ret_value);
/* A call in the replayed log: its status, with what comes out put in place. */
int puppet_replay(const char *path, enum spec_call call, const char *spec, uintptr_t *args);
int64_t puppet_clock_ns(void);
/* One more in PUPPET_TALLY. */
void puppet_tally(uint32_t place);

extern const char *const puppet_names[SPEC_COUNT];
extern const char *const puppet_specs[SPEC_COUNT];
