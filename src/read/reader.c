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

/* What people have most often and no reader reads: by what it is known, what it is, and what to
 * give instead. Of Nsight Systems' report only the ending of the name is documented. */
static const struct foreign {
	const char *magic, *ending;
	const char *what, *instead;
} foreigners[] = {
	{ "NVR", NULL, "a report of Nsight Compute",
	  "read what \"ncu --import FILE --page raw --csv --print-units base\" prints of it" },
	{ NULL, ".nsys-rep", "a report of Nsight Systems", "it is not read yet" },
	{ NULL, ".qdrep", "a report of Nsight Systems", "it is not read yet" },
	{ "SQLite format 3", NULL, "an SQLite file, but no profile of sonde",
	  "what Nsight Systems exports is not read yet" },
	{ "\x80\x04", NULL, "a pickle of Python", "torch's memory snapshots are not read yet" },
	{ "\x80\x02", NULL, "a pickle of Python", "torch's memory snapshots are not read yet" },
	{ "PK\x03\x04", NULL, "a zip archive", "unpack it first" },
	{ "\xfd"
	  "7zXZ",
	  NULL, "compressed with xz", "unpack it first" },
	{ "BZh", NULL, "compressed with bzip2", "unpack it first" },
	{ "\x1f\x8b", NULL, "compressed twice", "unpack it first" },
};

/* A profile is an SQLite file with our application id ("Database File Format", sqlite.org). */
static bool is_profile(const char *at, size_t len)
{
	enum { APPLICATION_ID_AT = 68 };

	return len >= APPLICATION_ID_AT + 4 && !memcmp(at, "SQLite format 3", 16) &&
	       !memcmp(at + APPLICATION_ID_AT, "SOND", 4);
}

static int unknown(const char *name, const char *at, size_t len, struct err *err)
{
	if (is_profile(at, len))
		return err_set(err, ERR_FORMAT, "%s: is a profile already: 'sonde report %s'", name,
			       name);
	for (size_t i = 0; i < sizeof(foreigners) / sizeof(*foreigners); i++) {
		const struct foreign *foreign = &foreigners[i];
		struct str start = { at, len };

		if (foreign->magic ? str_starts(start, foreign->magic)
				   : str_ends(str_of(name), foreign->ending))
			return err_set(err, ERR_FORMAT, "%s: is %s: %s", name, foreign->what,
				       foreign->instead);
	}
	return err_set(err, ERR_FORMAT,
		       "%s: no reader knows this format; 'sonde help import' lists what is read",
		       name);
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
	if (!reader)
		return unknown(input_name(input), at, (size_t)len, err);
	*ret_source = session_source(sink->session, reader->name, input_name(input));
	return reader->read(input, sink, *ret_source, err);
}
