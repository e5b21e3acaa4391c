/* Large compressed input, which a thread decodes ahead of the reader. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

/* Well past the first 4 MiB, and more than the blocks of the ring. */
enum { LEN = 12 << 20, PACKED_ROOM = 4 << 20 };

struct sample {
	char *text, *packed;
	size_t len; /* of packed */
};

static void sample_done(struct sample *sample)
{
	free(sample->text);
	free(sample->packed);
}

static void gzip_add(struct sample *sample, const char *at, size_t len)
{
	z_stream z = { 0 };

	cr_assert_eq(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)at;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)(sample->packed + sample->len);
	z.avail_out = (uInt)(PACKED_ROOM - sample->len);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	sample->len = PACKED_ROOM - z.avail_out;
}

/* Every line tells its place, so bytes that got lost or swapped show. */
static void sample_init(struct sample *sample, int members)
{
	sample->text = mem_alloc(LEN + 16);
	for (size_t at = 0; at < LEN; at += 16)
		(void)snprintf(sample->text + at, 17, "%014zx.\n", at);
	sample->packed = mem_alloc(PACKED_ROOM);
	sample->len = 0;
	for (int i = 0; i < members; i++)
		gzip_add(sample, sample->text + (size_t)LEN / (size_t)members * (size_t)i,
			 LEN / (size_t)members);
}

/* Reads on to the end: the bytes are the sample's, and how many there were. */
static size_t read_on(struct input *input, const struct sample *sample, size_t want,
		      struct err *err, int64_t *ret_last)
{
	const char *at;
	int64_t len;

	while ((len = input_fill(input, want, &at, err)) > 0) {
		size_t take = (size_t)len < want ? (size_t)len : want;
		size_t place = (size_t)input_offset(input);

		cr_assert_leq(place + take, LEN);
		cr_assert(!memcmp(at, sample->text + place, take));
		input_skip(input, take);
	}
	*ret_last = len;
	return (size_t)input_offset(input);
}

static size_t read_all(struct input *input, const struct sample *sample, size_t want)
{
	struct err err = { 0 };
	int64_t last;
	size_t len = read_on(input, sample, want, &err, &last);

	cr_assert_eq(last, 0);
	return len;
}

Test(io_ahead, large_gzip_and_zstd_give_the_same_bytes_as_plain, .timeout = 60)
{
	static const size_t wants[] = { 1 << 18, 77777, 6 << 20 };
	struct sample sample = { 0 };

	sample_init(&sample, 3);
	for (size_t i = 0; i < 6; i++) {
		OWN(input_closep) struct input *input = NULL;

		if (i == 3)
			sample.len = ZSTD_compress(sample.packed, PACKED_ROOM, sample.text, LEN, 1);
		input = input_memory("x", sample.packed, sample.len);
		cr_assert_eq(read_all(input, &sample, wants[i % 3]), LEN);
		cr_assert_not(input_truncated(input));
	}
	sample_done(&sample);
}

Test(io_ahead, bytes_behind_the_last_member_are_padding, .timeout = 60)
{
	OWN(input_closep) struct input *input = NULL;
	struct sample sample = { 0 };

	sample_init(&sample, 1);
	memset(sample.packed + sample.len, 0, 1024);
	input = input_memory("x", sample.packed, sample.len + 1024);
	cr_assert_eq(read_all(input, &sample, 1 << 18), LEN);
	cr_assert_not(input_truncated(input));
	sample_done(&sample);
}

Test(io_ahead, a_cut_gzip_gives_what_was_before_the_cut, .timeout = 60)
{
	OWN(input_closep) struct input *input = NULL;
	struct sample sample = { 0 };
	size_t len;

	sample_init(&sample, 2);
	input = input_memory("x", sample.packed, sample.len / 8 * 7);
	len = read_all(input, &sample, 1 << 18);
	cr_assert_gt(len, (size_t)LEN / 4 * 3);
	cr_assert_lt(len, LEN);
	cr_assert(input_truncated(input));
	sample_done(&sample);
}

Test(io_ahead, a_damaged_gzip_gives_what_was_before_the_damage, .timeout = 60)
{
	OWN(input_closep) struct input *input = NULL;
	struct sample sample = { 0 };
	size_t len;

	sample_init(&sample, 2);
	/* The second member is no deflate stream any more. */
	memset(sample.packed + sample.len / 2 + 1000, 0xff, 1000);
	input = input_memory("x", sample.packed, sample.len);
	/* Damage may give wrong bytes before inflate sees it: only the first
	 * member is sure. */
	memcpy(sample.text + LEN / 2, sample.text, LEN / 2);
	while (input_offset(input) < LEN / 2) {
		const char *at;
		int64_t got = input_fill(input, 1, &at, NULL);
		size_t left = (size_t)(LEN / 2 - input_offset(input));

		cr_assert_gt(got, 0);
		got = (size_t)got < left ? got : (int64_t)left;
		cr_assert(!memcmp(at, sample.text + input_offset(input), (size_t)got));
		input_skip(input, (size_t)got);
	}
	for (const char *at; input_fill(input, 1, &at, NULL) > 0;)
		input_skip(input, 1);
	len = (size_t)input_offset(input);
	cr_assert_lt(len, LEN);
	cr_assert(input_truncated(input));
	sample_done(&sample);
}

Test(io_ahead, closing_before_the_end_ends_the_thread, .timeout = 60)
{
	struct sample sample = { 0 };

	sample_init(&sample, 1);
	for (size_t stop = 3 << 20; stop < LEN; stop += 700001) {
		OWN(input_closep)
		struct input *input = input_memory("x", sample.packed, sample.len);
		const char *at;

		while ((size_t)input_offset(input) < stop) {
			cr_assert_gt(input_fill(input, 65536, &at, NULL), 0);
			input_skip(input, 65536);
		}
	}
	sample_done(&sample);
}

/* A pair of sockets: what is written to *ret_far comes from standard input. */
static void stdin_from_socket(int *ret_far)
{
	int pair[2];
	int room = 4 << 20;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	cr_assert_eq(dup2(pair[1], STDIN_FILENO), STDIN_FILENO);
	(void)close(pair[1]);
	*ret_far = pair[0];
}

/* Zeros compress to what a socket holds without anybody reading; without their
 * end, so that there is something to wait for. How many can be had of them. */
static int64_t send_zeros(int to)
{
	OWN(input_closep) struct input *input = NULL;
	struct sample sample = { 0 };
	const char *at;
	int64_t got;
	int64_t sum;

	sample.text = mem_zero(LEN);
	sample.packed = mem_alloc(PACKED_ROOM);
	gzip_add(&sample, sample.text, LEN);
	sample.len -= 100;
	cr_assert_eq(write(to, sample.packed, sample.len), (ssize_t)sample.len);
	input = input_memory("x", sample.packed, sample.len);
	while ((got = input_fill(input, 1, &at, NULL)) > 0)
		input_skip(input, (size_t)got);
	sum = input_offset(input);
	cr_assert_gt(sum, 8 << 20);
	sample_done(&sample);
	return sum;
}

Test(io_ahead, closing_does_not_wait_for_a_writer_that_never_ends, .timeout = 60)
{
	for (int round = 0; round < 5; round++) {
		OWN(own_closep) int far = -1;
		struct input *input = NULL;
		const char *at;
		int64_t all;

		stdin_from_socket(&far);
		all = send_zeros(far);
		cr_assert_eq(input_open("-", &input, NULL), 0);
		while (input_offset(input) < all) {
			int64_t got = input_fill(input, 1, &at, NULL);

			cr_assert_gt(got, 0);
			input_skip(input, (size_t)got);
		}
		/* The thread has nothing left and waits for more. */
		input_close(input);
	}
}

Test(io_ahead, an_error_comes_behind_the_bytes_before_it_with_file_and_place, .timeout = 60)
{
	OWN(input_closep) struct input *input = NULL;
	struct err err = { 0 };
	const char *at;
	char want[128];
	int64_t got, all;
	int far;

	stdin_from_socket(&far);
	all = send_zeros(far);
	/* Bytes that nobody took make the end of the connection an error. */
	cr_assert_eq(write(STDIN_FILENO, "x", 1), 1);
	(void)close(far);
	cr_assert_eq(input_open("-", &input, NULL), 0);
	while ((got = input_fill(input, 1, &at, &err)) > 0)
		input_skip(input, (size_t)got);
	cr_assert_eq(got, ERR_IO);
	cr_assert_eq(input_offset(input), all);
	(void)snprintf(want, sizeof(want), "standard input: at byte %lld: Connection reset by peer",
		       (long long)input_offset(input));
	cr_assert_str_eq(err.line, want);
	/* It stays. */
	cr_assert_eq(input_fill(input, 1, &at, &err), ERR_IO);
	cr_assert_str_eq(err.line, want);
}

static int count_pause(void *arg, int64_t *ret_again_ns, struct err *err)
{
	(void)ret_again_ns;
	(void)err;
	++*(int *)arg;
	return 0;
}

/* A stream that goes on, up to where a reader may see all of the text. */
static size_t pack_open(int coding, const char *text, char *to, size_t room)
{
	ZSTD_inBuffer in = { text, strlen(text), 0 };
	ZSTD_outBuffer out = { to, room, 0 };
	ZSTD_CStream *zstd = ZSTD_createCStream();
	z_stream z = { 0 };

	if (coding == 0)
		memcpy(to, text, out.pos = in.size);
	cr_assert_eq(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	if (coding == 1) {
		z.next_in = (Bytef *)(uintptr_t)text;
		z.avail_in = (uInt)in.size;
		z.next_out = (Bytef *)to;
		z.avail_out = (uInt)room;
		cr_assert_eq(deflate(&z, Z_SYNC_FLUSH), Z_OK);
		out.pos = room - z.avail_out;
	}
	if (coding == 2) {
		cr_assert_eq(ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush), 0);
		cr_assert_eq(in.pos, in.size);
	}
	(void)deflateEnd(&z);
	(void)ZSTD_freeCStream(zstd);
	return out.pos;
}

Test(io, what_a_slow_pipe_gave_is_handed_on_and_the_pause_told, .timeout = 60)
{
	for (int coding = 0; coding < 3; coding++) {
		static const char text[] = "a few bytes, and then nothing for now\n";
		OWN(input_closep) struct input *input = NULL;
		int far, pauses = 0;
		char packed[256];
		const char *at;
		size_t len = pack_open(coding, text, packed, sizeof(packed));

		stdin_from_socket(&far);
		cr_assert_eq(write(far, packed, len), (ssize_t)len);
		cr_assert_eq(input_open("-", &input, NULL), 0);
		input_on_pause(input, count_pause, &pauses);
		cr_assert_eq(input_fill_some(input, 0, 4096, &at, NULL), (int64_t)strlen(text));
		cr_assert(!memcmp(at, text, strlen(text)));
		cr_assert_eq(pauses, 1);
		cr_assert_not(input_ended(input));
		/* The end is told as soon as it is there: nobody pauses. */
		(void)shutdown(far, SHUT_WR);
		cr_assert_eq(input_fill_some(input, strlen(text), 4096, &at, NULL),
			     (int64_t)strlen(text));
		cr_assert(input_ended(input));
		cr_assert_eq(pauses, 1);
		cr_assert_eq(input_truncated(input), coding != 0);
		(void)close(far);
	}
}

static int fail_pause(void *arg, int64_t *ret_again_ns, struct err *err)
{
	int *calls = arg;

	*ret_again_ns = 0;
	return ++*calls < 3 ? 0 : err_set(err, ERR_IO, "no room");
}

Test(io, a_pause_is_called_again_when_it_asks_and_may_fail, .timeout = 60)
{
	OWN(input_closep) struct input *input = NULL;
	struct err err = { 0 };
	const char *at;
	int far, calls = 0;

	stdin_from_socket(&far);
	cr_assert_eq(write(far, "abc", 3), 3);
	cr_assert_eq(input_open("-", &input, NULL), 0);
	input_on_pause(input, fail_pause, &calls);
	/* Less than was asked for is not enough for input_fill. */
	cr_assert_eq(input_fill(input, 4096, &at, &err), ERR_IO);
	cr_assert_eq(calls, 3);
	cr_assert_str_eq(err.line, "no room");
	(void)close(far);
}

Test(io_ahead, a_slow_pipe_that_is_decoded_ahead_is_handed_on_too, .timeout = 60)
{
	OWN(input_closep) struct input *input = NULL;
	const char *at;
	int64_t all, got;
	int far, pauses = 0;

	stdin_from_socket(&far);
	all = send_zeros(far);
	cr_assert_eq(input_open("-", &input, NULL), 0);
	input_on_pause(input, count_pause, &pauses);
	while (input_offset(input) < all) {
		got = input_fill_some(input, 0, 1 << 20, &at, NULL);
		cr_assert_gt(got, 0);
		input_skip(input, (size_t)got);
	}
	cr_assert_eq(input_offset(input), all);
	(void)close(far);
	cr_assert_eq(input_fill_some(input, 0, 1 << 20, &at, NULL), 0);
}
