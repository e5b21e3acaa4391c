/*
 * thread_io - the thread that decodes ahead, under the thread sanitizer.
 *
 * Reads, leaves early at many places, and leaves while the thread waits for a
 * pipe. What the bytes are is the business of tests/unit/test_io.c; here only
 * their number is looked at. Status 0 if that is right; the sanitizer ends the
 * program with another one when it sees a race.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"
#include "base/mem.h"

enum { LEN = 8 << 20, PACKED_ROOM = 4 << 20 };

static size_t pack(char *to)
{
	char *text = mem_alloc(LEN + 16);
	z_stream z = { 0 };

	for (size_t at = 0; at < LEN; at += 16)
		(void)snprintf(text + at, 17, "%015x\n", (unsigned int)(at / 16 % 65536));
	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	z.next_in = (Bytef *)text;
	z.avail_in = LEN;
	z.next_out = (Bytef *)to;
	z.avail_out = PACKED_ROOM;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	(void)deflateEnd(&z);
	free(text);
	return PACKED_ROOM - z.avail_out;
}

/* How far it came; -1: not the way it should. */
static int64_t read_until(struct input *input, int64_t stop, bool is_cut)
{
	int64_t got = 1;

	while (got > 0 && input_offset(input) < stop) {
		const char *at;

		got = input_fill(input, 1, &at, NULL);
		if (got > 0)
			input_skip(input, (size_t)got);
	}
	return got == 0 && input_truncated(input) != is_cut ? -1 : input_offset(input);
}

static int expect(const char *what, int64_t found, int64_t least, int64_t most)
{
	if (found >= least && found <= most)
		return 0;
	(void)fprintf(stderr, "%s: came to byte %lld, not %lld to %lld\n", what, (long long)found,
		      (long long)least, (long long)most);
	return 1;
}

/* A pipe with the beginning of the file in it and its writer still there. */
static int leave_a_pipe(const char *packed, size_t len)
{
	struct input *input = input_memory("x", packed, len);
	int64_t all = read_until(input, INT64_MAX, true);
	int64_t came;
	int ends[2];

	input_close(input);
	if (pipe(ends) < 0 || dup2(ends[0], STDIN_FILENO) < 0)
		return 1;
	(void)close(ends[0]);
	/* A pipe that takes all of it without a reader. */
	if (fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) < 0 ||
	    write(ends[1], packed, len) != (ssize_t)len || input_open("-", &input, NULL) < 0)
		return 1;
	came = read_until(input, all, false);
	input_close(input);
	(void)close(ends[1]);
	return expect("a pipe that is left", came, 5 << 20, LEN) |
	       expect("a pipe that is left", came, all, all);
}

int main(void)
{
	char *packed = mem_alloc(PACKED_ROOM);
	size_t len = pack(packed);
	int failed = 0;

	for (int64_t stop = 3 << 20; stop <= LEN + (1 << 20); stop += 1 << 18) {
		struct input *input = input_memory("x", packed, len);

		failed |= expect("left early", read_until(input, stop, false),
				 stop < LEN ? stop : LEN, LEN);
		input_close(input);
	}
	for (size_t cut = 1; cut < len / 4; cut += len / 16) {
		struct input *input = input_memory("x", packed, len - cut);

		failed |= expect("cut", read_until(input, INT64_MAX, true), LEN / 2, LEN);
		input_close(input);
	}
	failed |= leave_a_pipe(packed, len / 4 * 3);
	free(packed);
	return failed;
}
