#include "read/reader.h"

#include <string.h>

static const struct reader *const readers[] = {
#define X(name) &reader_##name,
	READER_LIST(X)
#undef X
};

enum { READER_COUNT = sizeof(readers) / sizeof(readers[0]) };

static const size_t PROBE_BYTES = 64 << 10;

const struct reader *reader_probe(const char *at, size_t len)
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
	return best;
}

int reader_import(const char *path, struct sink *sink, uint32_t *ret_source, struct err *err)
{
	OWN(input_closep) struct input *input = NULL;
	const struct reader *reader;
	const char *at;
	int64_t len;
	int ret = input_open(path, &input, err);

	if (ret < 0)
		return ret;
	len = input_fill(input, PROBE_BYTES, &at, err);
	if (len < 0)
		return (int)len;
	if (!len && input_truncated(input))
		return err_set(err, ERR_FORMAT,
			       "%s: is cut off or damaged before anything of it could be unpacked",
			       input_name(input));
	if (!len)
		return err_set(err, ERR_FORMAT, "%s: is empty", input_name(input));
	reader = reader_probe(at, (size_t)len < PROBE_BYTES ? (size_t)len : PROBE_BYTES);
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
