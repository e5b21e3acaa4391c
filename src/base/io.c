#include "base/io.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io_ahead.h"
#include "base/io_decode.h"
#include "base/mem.h"

/*
 * A decoder gives the file's bytes with compression undone; `out` is what the
 * caller sees of them. Unread bytes of `out` move to its front only when the
 * room behind them runs out, so a caller that asks for a little at a time does
 * not pay for moving.
 *
 * A compressed file that turns out to be large is decoded by a thread of its
 * own from there on: small files, and fuzzers, stay as cheap as they were.
 */
static const size_t OUT_ROOM = 512u << 10;
static const size_t WANT_MAX = 256u << 20;
static const int64_t AHEAD_FROM = 4 << 20;
/* How long a pipe may have nothing to give before that is a pause. A writer that is
 * merely slower than we are fills a window meanwhile. */
static const int64_t PATIENCE_NS = 1000000000 / 32;

struct input {
	char *name;
	struct decoder *decoder;
	struct ahead *ahead;
	bool ahead_tried;
	bool end;
	bool slow; /* no file of a disk: reading it may take as long as others like */
	input_pause *pause;
	void *pause_arg;
	char *out;
	size_t out_at, out_len, out_room;
	int64_t offset;
};

static struct input *input_new(const char *name)
{
	struct input *input = mem_zero(sizeof(*input));

	input->name = mem_text(name);
	input->out_room = OUT_ROOM;
	input->out = mem_alloc(input->out_room);
	return input;
}

int input_open(const char *path, struct input **ret_input, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	OWN(input_closep) struct input *input = input_new(is_stdin ? "standard input" : path);
	int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_errno(err, "%s", input->name);
	input->decoder = decoder_new(fd, NULL, 0);
	if (fstat(fd, &st) < 0)
		return err_errno(err, "%s", input->name);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: is a directory", input->name);
	input->slow = !S_ISREG(st.st_mode);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret_input = STEAL(input);
	return 0;
}

struct input *input_memory(const char *name, const void *at, size_t len)
{
	struct input *input = input_new(name);

	input->decoder = decoder_new(-1, at, len);
	return input;
}

void input_close(struct input *input)
{
	if (!input)
		return;
	ahead_stop(input->ahead);
	decoder_free(input->decoder);
	free(input->name);
	free(input->out);
	free(input);
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

static bool is_ready(const struct input *input, int64_t timeout_ns)
{
	return input->ahead ? ahead_ready(input->ahead, timeout_ns)
			    : decoder_ready(input->decoder, timeout_ns);
}

/* Of a pipe: 1: there is something to read, or its end; 0: not by `until_ns`, and the
 * caller has enough. */
static int await(const struct input *input, bool enough, int64_t until_ns, struct err *err)
{
	for (;;) {
		int64_t now_ns = clock_steady_ns();
		int64_t left_ns = until_ns == INT64_MAX ? -1 : until_ns - now_ns;
		int ret = 0;

		if (until_ns != INT64_MAX && left_ns < 0)
			left_ns = 0;
		if (is_ready(input, left_ns))
			return 1;
		until_ns = INT64_MAX;
		if (input->pause)
			ret = input->pause(input->pause_arg, &until_ns, err);
		if (ret < 0 || enough)
			return ret;
	}
}

/* More bytes behind those in `out`, if the file has some to give. */
static int read_more(struct input *input, struct err *err)
{
	char *to = input->out + input->out_len;
	size_t room = input->out_room - input->out_len;
	int64_t got;

	if (!input->ahead_tried &&
	    input->offset + (int64_t)(input->out_len - input->out_at) >= AHEAD_FROM) {
		input->ahead_tried = true;
		if (decoder_packed(input->decoder))
			input->ahead = ahead_start(input->decoder);
	}
	got = input->ahead ? ahead_read(input->ahead, to, room, err)
			   : decoder_read(input->decoder, to, room, err);
	if (got < 0)
		return err_context(err, "%s: at byte %lld", input->name, (long long)input->offset);
	input->out_len += (size_t)got;
	input->end = !got && (input->ahead || decoder_ended(input->decoder));
	return 0;
}

/* `want` bytes, or at least `need` where they have to be waited for. */
static int64_t fill(struct input *input, size_t need, size_t want, const char **ret_at,
		    struct err *err)
{
	int64_t until_ns = 0;

	if (want > WANT_MAX)
		return err_set(err, ERR_LIMIT, "%s: at byte %lld: a record of over %zu MiB",
			       input->name, (long long)input->offset, WANT_MAX >> 20);
	if (input->out_len - input->out_at < want)
		make_room(input, want);
	while (!input->end && input->out_len - input->out_at < want) {
		int ret = 1;

		if (input->slow && !until_ns)
			until_ns = clock_steady_ns() + PATIENCE_NS;
		if (input->slow)
			ret = await(input, input->out_len - input->out_at >= need, until_ns, err);
		if (!ret)
			break;
		if (ret > 0)
			ret = read_more(input, err);
		if (ret < 0)
			return ret;
	}
	*ret_at = input->out + input->out_at;
	return (int64_t)(input->out_len - input->out_at);
}

int64_t input_fill(struct input *input, size_t want, const char **ret_at, struct err *err)
{
	want = want ? want : 1;
	return fill(input, want, want, ret_at, err);
}

int64_t input_fill_some(struct input *input, size_t have, size_t want, const char **ret_at,
			struct err *err)
{
	return fill(input, have + 1, want > have ? want : have + 1, ret_at, err);
}

void input_on_pause(struct input *input, input_pause *pause, void *arg)
{
	input->pause = pause;
	input->pause_arg = arg;
}

void input_skip(struct input *input, size_t len)
{
	input->out_at += len;
	input->offset += (int64_t)len;
	if (input->out_at == input->out_len)
		input->out_at = input->out_len = 0;
}

bool input_ended(const struct input *input)
{
	return input->end;
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
	/* While the thread runs, what it met is known once the reader got there. */
	return (input->end || !input->ahead) && decoder_truncated(input->decoder);
}
