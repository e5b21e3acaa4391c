#include "read/reader.h"

#include <string.h>

static const struct reader *const readers[] = {
#define X(name) &reader_##name,
	READER_LIST(X)
#undef X
};

enum { READER_COUNT = sizeof(readers) / sizeof(readers[0]) };

static const size_t PROBE_BYTES = 64 << 10;
/* What a reader claims of so little that the rest need not be waited for. */
static const int SURE = 80;

static const struct reader *probe(const char *at, size_t len, int *ret_sure)
{
	const struct reader *best = NULL;
	int sure = 0;

	for (size_t i = 0; i < READER_COUNT; i++) {
		int claim = readers[i]->probe(at, len);

		if (claim > sure) {
			sure = claim;
			best = readers[i];
		}
	}
	*ret_sure = sure;
	return best;
}

const struct reader *reader_probe(const char *at, size_t len)
{
	int sure;

	return probe(at, len, &sure);
}

/* Of a slow pipe less may do. There the last line is left out: it may be half a header. */
static int64_t probe_input(struct input *input, const struct reader **ret_reader, struct err *err)
{
	size_t seen = 0;

	for (;;) {
		const char *at, *end;
		int64_t len = input_fill_some(input, seen, PROBE_BYTES, &at, err);
		size_t part;
		int sure;

		if (len < 0)
			return len;
		part = (size_t)len < PROBE_BYTES ? (size_t)len : PROBE_BYTES;
		if (part == PROBE_BYTES || input_ended(input)) {
			*ret_reader = reader_probe(at, part);
			return len;
		}
		end = memrchr(at, '\n', part);
		*ret_reader = probe(at, end ? (size_t)(end - at) + 1 : part, &sure);
		if (sure >= SURE)
			return len;
		seen = part;
	}
}

static int pause_sink(void *arg, int64_t *ret_again_ns, struct err *err)
{
	return sink_pause(arg, ret_again_ns, err);
}

int reader_import(const char *path, struct sink *sink, uint32_t *ret_source, struct err *err)
{
	OWN(input_closep) struct input *input = NULL;
	const struct reader *reader = NULL;
	const char *at;
	int64_t len;
	int ret = input_open(path, &input, err);

	if (ret < 0)
		return ret;
	input_on_pause(input, pause_sink, sink);
	len = probe_input(input, &reader, err);
	if (len >= 0)
		len = input_fill(input, 1, &at, err);
	if (len < 0)
		return (int)len;
	if (!len && input_truncated(input))
		return err_set(err, ERR_FORMAT,
			       "%s: is cut off or damaged before anything of it could be unpacked",
			       input_name(input));
	if (!len)
		return err_set(err, ERR_FORMAT, "%s: is empty", input_name(input));
	/* The one that people have most often and nobody else reads. */
	if (!reader && len >= 4 && !memcmp(at, "NVR", 4))
		return err_set(err, ERR_FORMAT,
			       "%s: is a report of Nsight Compute: read what \"ncu --import FILE "
			       "--page raw --csv --print-units base\" prints of it",
			       input_name(input));
	if (!reader)
		return err_set(err, ERR_FORMAT, "%s: no reader knows this format",
			       input_name(input));
	*ret_source = session_source(sink->session, reader->name, input_name(input));
	return reader->read(input, sink, *ret_source, err);
}
