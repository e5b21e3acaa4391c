#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

/*
 * Two stages: `raw` holds bytes as they lie in the file, `out` what the caller
 * sees. Without compression they are one (raw is unused and read() fills out).
 * Unread bytes of `out` move to its front only when the room behind them runs
 * out, so a caller that asks for a little at a time does not pay for moving.
 */
enum coding { CODING_UNKNOWN, CODING_PLAIN, CODING_GZIP, CODING_ZSTD };

static const size_t OUT_ROOM = 4u << 20;
static const size_t RAW_ROOM = 256u << 10;
static const size_t WANT_MAX = 256u << 20;

struct input {
	char *name;
	int fd; /* -1: from memory, or used up */
	const char *memory;
	size_t memory_left;
	enum coding coding;
	bool raw_end; /* no more bytes to be had from the file */
	bool end;     /* no more bytes to be had from the decoder */
	bool truncated;
	bool in_stream; /* a compressed member has begun and not ended */
	char *raw;
	size_t raw_at, raw_len;
	char *out;
	size_t out_at, out_len, out_room;
	int64_t offset;
	z_stream gzip;
	ZSTD_DStream *zstd;
};

static struct input *input_new(const char *name)
{
	struct input *input = mem_zero(sizeof(*input));

	input->name = mem_text(name);
	input->fd = -1;
	input->raw = mem_alloc(RAW_ROOM);
	input->out_room = OUT_ROOM;
	input->out = mem_alloc(input->out_room);
	return input;
}

int input_open(const char *path, struct input **ret_input, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	OWN(input_closep) struct input *input = input_new(is_stdin ? "standard input" : path);
	struct stat st;

	input->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (input->fd < 0)
		return err_errno(err, "%s", input->name);
	if (fstat(input->fd, &st) < 0)
		return err_errno(err, "%s", input->name);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: is a directory", input->name);
	(void)posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret_input = STEAL(input);
	return 0;
}

struct input *input_memory(const char *name, const void *at, size_t len)
{
	struct input *input = input_new(name);

	input->memory = at;
	input->memory_left = len;
	return input;
}

void input_close(struct input *input)
{
	if (!input)
		return;
	own_closep(&input->fd);
	if (input->coding == CODING_GZIP)
		(void)inflateEnd(&input->gzip);
	(void)ZSTD_freeDStream(input->zstd);
	free(input->name);
	free(input->raw);
	free(input->out);
	free(input);
}

/* Up to `room` bytes of the file as it lies; 0 at its end. */
static ssize_t read_file(struct input *input, char *to, size_t room, struct err *err)
{
	ssize_t got;

	if (input->raw_end)
		return 0;
	if (input->memory || input->fd < 0) {
		size_t len = input->memory_left < room ? input->memory_left : room;

		if (len)
			memcpy(to, input->memory, len);
		input->memory += len;
		input->memory_left -= len;
		input->raw_end = !len;
		return (ssize_t)len;
	}
	do
		got = read(input->fd, to, room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(err, "%s: at byte %lld", input->name, (long long)input->offset);
	input->raw_end = !got;
	return got;
}

/* At least one raw byte, unless the file is at its end. */
static int fill_raw(struct input *input, size_t want, struct err *err)
{
	while (input->raw_len - input->raw_at < want && !input->raw_end) {
		ssize_t got;

		memmove(input->raw, input->raw + input->raw_at, input->raw_len - input->raw_at);
		input->raw_len -= input->raw_at;
		input->raw_at = 0;
		got = read_file(input, input->raw + input->raw_len, RAW_ROOM - input->raw_len, err);
		if (got < 0)
			return (int)got;
		input->raw_len += (size_t)got;
	}
	return 0;
}

static int detect(struct input *input, struct err *err)
{
	static const unsigned char gzip_magic[] = { 0x1f, 0x8b, 8 };
	static const unsigned char zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	int ret = fill_raw(input, 4, err);
	size_t len = input->raw_len - input->raw_at;
	const char *at = input->raw + input->raw_at;

	if (ret < 0)
		return ret;
	input->coding = CODING_PLAIN;
	if (len >= 3 && !memcmp(at, gzip_magic, 3)) {
		if (inflateInit2(&input->gzip, 15 + 16) != Z_OK)
			return err_set(err, ERR_IO, "%s: zlib cannot start", input->name);
		input->coding = CODING_GZIP;
	} else if (len >= 4 && !memcmp(at, zstd_magic, 4)) {
		input->zstd = ZSTD_createDStream();
		if (!input->zstd)
			return err_set(err, ERR_IO, "%s: zstd cannot start", input->name);
		/* 128 MiB of window is what the zstd program accepts by default. */
		(void)ZSTD_DCtx_setParameter(input->zstd, ZSTD_d_windowLogMax, 27);
		input->coding = CODING_ZSTD;
	}
	return 0;
}

static void stop_damaged(struct input *input)
{
	input->end = true;
	input->truncated = true;
}

/* One step of inflate into `out`. Members follow each other; bytes behind the
 * last one that are no member are padding and end the stream. */
static void step_gzip(struct input *input)
{
	z_stream *z = &input->gzip;
	int ret;

	z->next_in = (Bytef *)(input->raw + input->raw_at);
	z->avail_in = (uInt)(input->raw_len - input->raw_at);
	z->next_out = (Bytef *)(input->out + input->out_len);
	z->avail_out = (uInt)(input->out_room - input->out_len);
	ret = inflate(z, Z_NO_FLUSH);
	input->raw_at = input->raw_len - z->avail_in;
	input->out_len = input->out_room - z->avail_out;
	input->in_stream = true;
	if (ret == Z_STREAM_END) {
		input->in_stream = false;
		(void)inflateReset(z);
	} else if (ret != Z_OK && ret != Z_BUF_ERROR) {
		stop_damaged(input);
	}
}

static void step_zstd(struct input *input)
{
	ZSTD_inBuffer in = { input->raw, input->raw_len, input->raw_at };
	ZSTD_outBuffer out = { input->out, input->out_room, input->out_len };
	size_t ret = ZSTD_decompressStream(input->zstd, &out, &in);

	input->raw_at = in.pos;
	input->out_len = out.pos;
	if (ZSTD_isError(ret))
		stop_damaged(input);
	else
		input->in_stream = ret != 0;
}

static bool member_follows(const struct input *input)
{
	const unsigned char *at = (const unsigned char *)input->raw + input->raw_at;

	return input->coding == CODING_ZSTD ||
	       (input->raw_len - input->raw_at >= 2 && at[0] == 0x1f && at[1] == 0x8b);
}

static int step_decode(struct input *input, struct err *err)
{
	size_t before = input->out_len;
	int ret = fill_raw(input, 2, err);

	if (ret < 0)
		return ret;
	if (input->raw_at == input->raw_len && !input->in_stream) {
		input->end = true;
		return 0;
	}
	if (!input->in_stream && before + (size_t)input->offset && !member_follows(input)) {
		input->end = true;
		return 0;
	}
	if (input->coding == CODING_GZIP)
		step_gzip(input);
	else
		step_zstd(input);
	/* No progress with the file at its end: the stream was cut. */
	if (input->out_len == before && input->raw_at == input->raw_len && input->raw_end &&
	    input->in_stream)
		stop_damaged(input);
	return 0;
}

static int step_plain(struct input *input, struct err *err)
{
	size_t left = input->raw_len - input->raw_at;
	ssize_t got;

	if (left) {
		size_t room = input->out_room - input->out_len;
		size_t len = left < room ? left : room;

		memcpy(input->out + input->out_len, input->raw + input->raw_at, len);
		input->raw_at += len;
		input->out_len += len;
		return 0;
	}
	got = read_file(input, input->out + input->out_len, input->out_room - input->out_len, err);
	if (got < 0)
		return (int)got;
	input->out_len += (size_t)got;
	input->end = !got;
	return 0;
}

/* Room for `want` bytes from out_at on, and some to read into. */
static void make_room(struct input *input, size_t want)
{
	if (input->out_at && input->out_at + want > input->out_room) {
		memmove(input->out, input->out + input->out_at, input->out_len - input->out_at);
		input->out_len -= input->out_at;
		input->out_at = 0;
	}
	if (want > input->out_room) {
		input->out_room = want + OUT_ROOM;
		input->out = mem_resize(input->out, input->out_room);
	}
}

int64_t input_fill(struct input *input, size_t want, const char **ret_at, struct err *err)
{
	int ret = 0;

	if (want > WANT_MAX)
		return err_set(err, ERR_LIMIT, "%s: at byte %lld: a record of over %zu MiB",
			       input->name, (long long)input->offset, WANT_MAX >> 20);
	if (!want)
		want = 1;
	if (input->coding == CODING_UNKNOWN)
		ret = detect(input, err);
	if (ret >= 0 && input->out_len - input->out_at < want)
		make_room(input, want);
	while (ret >= 0 && !input->end && input->out_len - input->out_at < want) {
		if (input->coding == CODING_PLAIN)
			ret = step_plain(input, err);
		else
			ret = step_decode(input, err);
	}
	if (ret < 0)
		return ret;
	*ret_at = input->out + input->out_at;
	return (int64_t)(input->out_len - input->out_at);
}

void input_skip(struct input *input, size_t len)
{
	input->out_at += len;
	input->offset += (int64_t)len;
	if (input->out_at == input->out_len)
		input->out_at = input->out_len = 0;
}

const char *input_name(const struct input *input)
{
	return input->name;
}

int64_t input_offset(const struct input *input)
{
	return input->offset;
}

bool input_truncated(const struct input *input)
{
	return input->truncated;
}
