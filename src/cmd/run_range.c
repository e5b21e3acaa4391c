#include "cmd/run_range.h"

#include <string.h>

#include "base/str.h"
#include "wire/segment.h"

/* The last @ that no backslash stands in front of; NULL: there is none. */
static const char *separator(const char *at)
{
	const char *found = NULL;

	for (; *at; at++) {
		if (*at == '\\' && at[1])
			at++;
		else if (*at == '@')
			found = at;
	}
	return found;
}

/* "=" and the text without the backslashes of \@ and \\. */
static int word(const char *what, struct str text, struct buf *out, struct err *err)
{
	size_t from;

	buf_char(out, '=');
	from = out->len;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] == '\\' && i + 1 < text.len && strchr("@\\", text.at[i + 1]))
			i++;
		buf_char(out, text.at[i]);
	}
	if (out->len - from < SEGMENT_RANGE_MAX)
		return 0;
	return err_set(err, ERR_USAGE, "--capture-range: a %s has at most %d bytes, not %zu", what,
		       SEGMENT_RANGE_MAX - 1, out->len - from);
}

static int nvtx_words(const char *range, struct buf *out, struct err *err)
{
	const char *at = separator(range);
	struct str name = { range, at ? (size_t)(at - range) : strlen(range) };

	if (strchr(range, ',')) /* it would be the end of the word */
		return err_set(err, ERR_USAGE, "--capture-range: '%s' has a comma", range);
	if (!name.len)
		return err_set(err, ERR_USAGE, "--capture-range: 'nvtx:%s' names no range", range);
	buf_text(out, ",range-nvtx");
	if (word("range's name", name, out, err) < 0)
		return err->code;
	if (!at || !strcmp(at + 1, "*"))
		return 0;
	buf_text(out, ",range-domain");
	return word("domain's name", str_of(at + 1), out, err);
}

int run_range_words(const char *range, struct buf *out, struct err *err)
{
	if (!range)
		return 0;
	buf_text(out, ",paused");
	if (!strncmp(range, "nvtx:", 5))
		return nvtx_words(range + 5, out, err);
	if (strcmp(range, "cudaProfilerApi") != 0)
		return err_set(err, ERR_USAGE,
			       "--capture-range: '%s' is neither cudaProfilerApi nor nvtx:NAME",
			       range);
	buf_text(out, ",range-profiler");
	return 0;
}
