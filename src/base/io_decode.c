#include "base/io_decode.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

enum coding { CODING_UNKNOWN, CODING_PLAIN, CODING_GZIP, CODING_ZSTD };

static const size_t RAW_ROOM = 256u << 10;
/* What one read of a plain file brings: little enough that it is still in a
 * core's cache when the reader looks at it. */
static const size_t PLAIN_MAX = 512u << 10;

/* `raw` holds bytes as they lie in a compressed file; a plain one goes straight
 * to the caller, but for the first bytes, which told that it is plain. */
struct decoder {
	int fd; /* -1: from memory */
	int wake_fd;
	const char *memory;
	size_t memory_left;
	enum coding coding;
	bool raw_end; /* no more bytes to be had from the file */
	bool end;     /* no more bytes to be had from here */
	bool truncated;
	bool in_stream; /* a compressed member has begun and not ended */
	bool gave;      /* some byte came out */
	bool owes;      /* more may come out without more going in */
	char *raw;
	size_t raw_at, raw_len;
	z_stream *gzip; /* zlib keeps a pointer back to it: it must not move */
	ZSTD_DStream *zstd;
};

struct decoder *decoder_new(int fd, const void *memory, size_t len)
{
	struct decoder *decoder = mem_zero(sizeof(*decoder));

	decoder->fd = fd;
	decoder->wake_fd = -1;
	decoder->memory = memory;
	decoder->memory_left = len;
	decoder->raw = mem_alloc(RAW_ROOM);
	return decoder;
}

void decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return;
	own_closep(&decoder->fd);
	if (decoder->gzip)
		(void)inflateEnd(decoder->gzip);
	free(decoder->gzip);
	(void)ZSTD_freeDStream(decoder->zstd);
	free(decoder->raw);
	free(decoder);
}

void decoder_wake_by(struct decoder *decoder, int wake_fd)
{
	decoder->wake_fd = wake_fd;
}

/* False: woken, or `timeout_ms` went by; below 0: never. A file of a disk is always
 * ready. */
static bool wait_ready(const struct decoder *decoder, int timeout_ms)
{
	struct pollfd fds[2] = { { decoder->fd, POLLIN, 0 }, { decoder->wake_fd, POLLIN, 0 } };
	int ready;

	do
		ready = poll(fds, 2, timeout_ms);
	while (ready < 0 && (errno == EINTR || errno == EAGAIN));
	return ready && !fds[1].revents;
}

/* Up to `room` bytes of the file as it lies; 0 at its end. */
static ssize_t read_file(struct decoder *decoder, char *to, size_t room, struct err *err)
{
	ssize_t got;

	if (decoder->raw_end)
		return 0;
	if (decoder->fd < 0) {
		size_t len = decoder->memory_left < room ? decoder->memory_left : room;

		if (len)
			memcpy(to, decoder->memory, len);
		decoder->memory += len;
		decoder->memory_left -= len;
		decoder->raw_end = !len;
		return (ssize_t)len;
	}
	if (decoder->wake_fd >= 0 && !wait_ready(decoder, -1)) {
		decoder->raw_end = true;
		return 0;
	}
	do
		got = read(decoder->fd, to, room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(err, ERR_IO, "%s", strerror(errno));
	decoder->raw_end = !got;
	return got;
}

/* The next step can't do with the raw bytes that are there. */
static bool wants_raw(const struct decoder *decoder)
{
	size_t left = decoder->raw_len - decoder->raw_at;

	if (decoder->raw_end)
		return false;
	if (decoder->coding == CODING_UNKNOWN)
		return left < 4;
	if (decoder->coding == CODING_PLAIN)
		return !left;
	/* Between members: what tells the next one from padding. */
	return !decoder->owes && left < (decoder->in_stream ? 1 : 2);
}

static int fill_raw(struct decoder *decoder, struct err *err)
{
	ssize_t got;

	memmove(decoder->raw, decoder->raw + decoder->raw_at, decoder->raw_len - decoder->raw_at);
	decoder->raw_len -= decoder->raw_at;
	decoder->raw_at = 0;
	got = read_file(decoder, decoder->raw + decoder->raw_len, RAW_ROOM - decoder->raw_len, err);
	if (got < 0)
		return (int)got;
	decoder->raw_len += (size_t)got;
	return 0;
}

static int detect(struct decoder *decoder, struct err *err)
{
	static const unsigned char gzip_magic[] = { 0x1f, 0x8b, 8 };
	static const unsigned char zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	size_t len = decoder->raw_len - decoder->raw_at;
	const char *at = decoder->raw + decoder->raw_at;

	if (len >= 3 && !memcmp(at, gzip_magic, 3)) {
		decoder->gzip = mem_zero(sizeof(*decoder->gzip));
		if (inflateInit2(decoder->gzip, 15 + 16) != Z_OK)
			return err_set(err, ERR_IO, "zlib cannot start");
		decoder->coding = CODING_GZIP;
	} else if (len >= 4 && !memcmp(at, zstd_magic, 4)) {
		decoder->zstd = ZSTD_createDStream();
		if (!decoder->zstd)
			return err_set(err, ERR_IO, "zstd cannot start");
		/* 128 MiB of window is what the zstd program accepts by default. */
		(void)ZSTD_DCtx_setParameter(decoder->zstd, ZSTD_d_windowLogMax, 27);
		decoder->coding = CODING_ZSTD;
	} else {
		decoder->coding = CODING_PLAIN;
	}
	return 0;
}

static void stop_damaged(struct decoder *decoder)
{
	decoder->end = true;
	decoder->truncated = true;
}

/* One step of inflate: bytes written. Members follow each other; bytes behind
 * the last one that are no member are padding and end the stream. */
static size_t step_gzip(struct decoder *decoder, char *to, size_t room)
{
	z_stream *z = decoder->gzip;
	int ret;

	z->next_in = (Bytef *)(decoder->raw + decoder->raw_at);
	z->avail_in = (uInt)(decoder->raw_len - decoder->raw_at);
	z->next_out = (Bytef *)to;
	z->avail_out = (uInt)room;
	ret = inflate(z, Z_NO_FLUSH);
	decoder->raw_at = decoder->raw_len - z->avail_in;
	decoder->in_stream = true;
	room -= z->avail_out;
	if (ret == Z_STREAM_END) {
		decoder->in_stream = false;
		(void)inflateReset(z);
	} else if (ret != Z_OK && ret != Z_BUF_ERROR) {
		stop_damaged(decoder);
	}
	return room;
}

static size_t step_zstd(struct decoder *decoder, char *to, size_t room)
{
	ZSTD_inBuffer in = { decoder->raw, decoder->raw_len, decoder->raw_at };
	ZSTD_outBuffer out = { to, room, 0 };
	size_t ret = ZSTD_decompressStream(decoder->zstd, &out, &in);

	decoder->raw_at = in.pos;
	if (ZSTD_isError(ret))
		stop_damaged(decoder);
	else
		decoder->in_stream = ret != 0;
	return out.pos;
}

static bool member_follows(const struct decoder *decoder)
{
	const unsigned char *at = (const unsigned char *)decoder->raw + decoder->raw_at;

	return decoder->coding == CODING_ZSTD ||
	       (decoder->raw_len - decoder->raw_at >= 2 && at[0] == 0x1f && at[1] == 0x8b);
}

static size_t step_decode(struct decoder *decoder, char *to, size_t room)
{
	size_t got;

	if (!decoder->in_stream &&
	    (decoder->raw_at == decoder->raw_len || (decoder->gave && !member_follows(decoder)))) {
		decoder->end = true;
		return 0;
	}
	got = decoder->coding == CODING_GZIP ? step_gzip(decoder, to, room)
					     : step_zstd(decoder, to, room);
	decoder->owes = decoder->in_stream && got == room;
	/* No progress with the file at its end: the stream was cut. */
	if (!got && decoder->raw_at == decoder->raw_len && decoder->raw_end && decoder->in_stream)
		stop_damaged(decoder);
	return got;
}

static int64_t step_plain(struct decoder *decoder, char *to, size_t room, struct err *err)
{
	size_t left = decoder->raw_len - decoder->raw_at;
	int64_t got;

	if (left) {
		size_t len = left < room ? left : room;

		memcpy(to, decoder->raw + decoder->raw_at, len);
		decoder->raw_at += len;
		return (int64_t)len;
	}
	got = read_file(decoder, to, room < PLAIN_MAX ? room : PLAIN_MAX, err);
	decoder->end = !got;
	return got;
}

int64_t decoder_read(struct decoder *decoder, char *to, size_t room, struct err *err)
{
	int64_t got;
	int ret = 0;

	if (decoder->end)
		return 0;
	/* A plain file's bytes go straight to the caller. */
	if (decoder->coding != CODING_PLAIN && wants_raw(decoder)) {
		ret = fill_raw(decoder, err);
		if (ret < 0 || wants_raw(decoder))
			return ret;
	}
	if (decoder->coding == CODING_UNKNOWN)
		ret = detect(decoder, err);
	if (ret < 0)
		return ret;
	got = decoder->coding == CODING_PLAIN ? step_plain(decoder, to, room, err)
					      : (int64_t)step_decode(decoder, to, room);
	decoder->gave |= got > 0;
	return got;
}

bool decoder_ended(const struct decoder *decoder)
{
	return decoder->end;
}

bool decoder_ready(const struct decoder *decoder, int64_t timeout_ns)
{
	static const int64_t NS_A_MS = 1000000;
	int64_t timeout_ms = timeout_ns / NS_A_MS + (timeout_ns % NS_A_MS > 0);

	if (decoder->fd < 0 || decoder->end || !wants_raw(decoder))
		return true;
	return wait_ready(decoder, timeout_ns < 0         ? -1
				   : timeout_ms > INT_MAX ? INT_MAX
							  : (int)timeout_ms);
}

bool decoder_packed(const struct decoder *decoder)
{
	return decoder->coding == CODING_GZIP || decoder->coding == CODING_ZSTD;
}

bool decoder_truncated(const struct decoder *decoder)
{
	return decoder->truncated;
}
