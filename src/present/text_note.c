#include "base/i18n.h"
#include "model/note.h"
#include "present/text.h"

/* Sentences in sentences: a list of reasons is the longest. */
enum { DEPTH_MAX = 24 };

static void say(struct str text, int depth, struct buf *out)
{
	struct note_found found;
	const char *format;
	size_t place, next = 0;

	if (!text.len || depth == DEPTH_MAX || !note_find(text, &found)) {
		buf_add(out, text.at, text.len);
		return;
	}
	for (format = _(found.format); *format;) {
		size_t literal = strcspn(format, "%");

		buf_add(out, format, literal);
		format += literal;
		if (!*format)
			break;
		(void)note_conversion(&format, &place);
		place = place ? place - 1 : next++;
		if (place < found.count)
			say(found.words[place], depth + 1, out);
	}
}

const char *text_note(struct page *page, const char *note)
{
	struct buf out = { 0 };
	const char *text;

	say(str_of(note), 0, &out);
	text = page_printf(page, "%s", out.at ? out.at : "");
	buf_done(&out);
	return text;
}
