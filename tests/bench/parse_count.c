/*
 * parse_count - how fast a trace is read when nothing is done with it.
 *
 *	parse_count FILE                  parse into a sink that counts
 *	parse_count --inflate-only FILE   zlib alone: what the reader is measured against
 *
 * Prints events, checksums over what they hold, and MB/s of text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/io.h"
#include "base/mem.h"
#include "model/sink.h"
#include "read/reader.h"

struct count {
	struct sink sink;
	uint64_t events, starts, durations, correlations, names, since_details;
};

/* Read as the store reads them: the table of details is emptied now and then. */
static void count_event(struct sink *sink, int64_t start, int64_t end, uint64_t correlation,
			uint32_t name)
{
	struct count *count = (struct count *)sink;

	count->events++;
	count->starts += (uint64_t)start;
	count->durations += (uint64_t)end - (uint64_t)start;
	count->correlations += correlation;
	count->names += name;
	if (++count->since_details == 65536) {
		count->since_details = 0;
		intern_free(sink->session->details);
		sink->session->details = intern_new();
		sink->session->details_generation++;
	}
}

static int count_op(struct sink *sink, const struct op *event, struct err *err)
{
	(void)err;
	count_event(sink, event->start_ns, event->end_ns, event->correlation, event->name);
	return 0;
}

static int count_call(struct sink *sink, const struct call *event, struct err *err)
{
	(void)err;
	count_event(sink, event->start_ns, event->end_ns, event->correlation, event->name);
	return 0;
}

static int count_range(struct sink *sink, const struct range *event, struct err *err)
{
	(void)err;
	count_event(sink, event->start_ns, event->end_ns, 0, event->name);
	return 0;
}

#define COUNT_INSTANT(kind)                                                                   \
	static int count_##kind(struct sink *sink, const struct kind *event, struct err *err) \
	{                                                                                     \
		(void)err;                                                                    \
		count_event(sink, event->time_ns, event->time_ns, 0, 0);                      \
		return 0;                                                                     \
	}
COUNT_INSTANT(link)
COUNT_INSTANT(alloc)
COUNT_INSTANT(sample)
COUNT_INSTANT(stall)
COUNT_INSTANT(mark)
#undef COUNT_INSTANT

static int count_counter(struct sink *sink, const struct counter *event, struct err *err)
{
	(void)err;
	count_event(sink, 0, 0, 0, event->name);
	return 0;
}

static const struct sink_ops count_ops = {
#define X(kind) .kind = count_##kind,
	SINK_LIST(X)
#undef X
};

static double now_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* zlib alone, without anything of ours round it: the yardstick. One member. */
static int inflate_only(const char *path, int64_t *ret_bytes, struct err *err)
{
	enum { IN_BYTES = 256 << 10, OUT_BYTES = 256 << 10 };
	OWN(own_fclosep) FILE *file = fopen(path, "rb");
	OWN(own_freep) unsigned char *in = mem_alloc(IN_BYTES + OUT_BYTES);
	unsigned char *out = in + IN_BYTES;
	z_stream z = { 0 };
	int ret = Z_OK;

	if (!file)
		return err_errno(err, "%s", path);
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return err_set(err, ERR_IO, "%s: zlib cannot start", path);
	while (ret == Z_OK) {
		if (!z.avail_in) {
			z.next_in = in;
			z.avail_in = (uInt)fread(in, 1, IN_BYTES, file);
		}
		z.next_out = out;
		z.avail_out = OUT_BYTES;
		ret = inflate(&z, Z_NO_FLUSH);
		*ret_bytes += OUT_BYTES - z.avail_out;
	}
	(void)inflateEnd(&z);
	return ret == Z_STREAM_END ? 0 : err_set(err, ERR_FORMAT, "%s: no gzip", path);
}

static int parse(const char *path, struct count *count, int64_t *ret_bytes, struct err *err)
{
	OWN(input_closep) struct input *input = NULL;
	const char *at;
	uint32_t source;

	if (input_open(path, &input, err) < 0)
		return -1;
	count->sink.ops = &count_ops;
	count->sink.session = session_new();
	source = session_source(count->sink.session, reader_kineto.name, path);
	if (reader_kineto.read(input, &count->sink, source, err) < 0)
		return -1;
	while (input_fill(input, 1, &at, err) > 0)
		input_skip(input, 1);
	*ret_bytes = input_offset(input);
	return 0;
}

int main(int argc, char **argv)
{
	bool only = argc == 3 && !strcmp(argv[1], "--inflate-only");
	struct count count = { 0 };
	struct err err = { 0 };
	int64_t bytes = 0;
	double start = now_s();
	int ret;

	if (argc != 2 && !only) {
		(void)fprintf(stderr, "usage: parse_count [--inflate-only] FILE\n");
		return 2;
	}
	ret = only ? inflate_only(argv[2], &bytes, &err) : parse(argv[1], &count, &bytes, &err);
	if (ret < 0) {
		(void)fprintf(stderr, "parse_count: %s\n", err.line);
		return 1;
	}
	(void)printf("events %" PRIu64 " starts %016" PRIx64 " durations %016" PRIx64
		     " correlations %016" PRIx64 " names %016" PRIx64 " bytes %" PRId64
		     " MB/s %.0f\n",
		     count.events, count.starts, count.durations, count.correlations, count.names,
		     bytes, (double)bytes / 1e6 / (now_s() - start));
	session_free(count.sink.session);
	return 0;
}
