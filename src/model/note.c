#include "model/note.h"

char note_conversion(const char **format, size_t *ret_place)
{
	const char *at = *format + 1;
	size_t digits = strspn(at, "0123456789");

	*ret_place = 0;
	if (at[digits] == '$') {
		for (size_t i = 0; i < digits && *ret_place < NOTE_WORDS_MAX; i++)
			*ret_place = *ret_place * 10 + (size_t)(at[i] - '0');
		at += digits + 1;
	}
	at += strspn(at, "-+ #0123456789.*hljztq");
	*format = *at ? at + 1 : at;
	return *at;
}

/* How much of `text` can stand for a conversion, with `literal` behind it. */
static bool word(struct str text, char kind, struct str literal, bool is_last, size_t *ret_len)
{
	size_t len = 0;

	if (kind == 's') {
		const char *found;

		if (is_last && text.len < literal.len)
			return false;
		found = is_last       ? text.at + text.len - literal.len
			: literal.len ? memmem(text.at, text.len, literal.at, literal.len)
				      : NULL;
		*ret_len = found ? (size_t)(found - text.at) : 0;
		return found;
	}
	while (len < text.len && ((text.at[len] >= '0' && text.at[len] <= '9') ||
				  text.at[len] == '-' || text.at[len] == '.'))
		len++;
	*ret_len = len;
	return len;
}

static bool eat(struct str *text, struct str literal)
{
	if (text->len < literal.len || memcmp(text->at, literal.at, literal.len) != 0)
		return false;
	text->at += literal.len;
	text->len -= literal.len;
	return true;
}

static bool fits(const char *format, struct str text, struct note_found *found)
{
	struct str literal = { format, strcspn(format, "%") };

	found->format = format;
	found->count = 0;
	if (!eat(&text, literal))
		return false;
	format += literal.len;
	while (*format) {
		size_t place, len;
		char kind = note_conversion(&format, &place);

		literal = (struct str){ format, strcspn(format, "%") };
		format += literal.len;
		if (found->count == NOTE_WORDS_MAX || !word(text, kind, literal, !*format, &len))
			return false;
		found->words[found->count++] = (struct str){ text.at, len };
		text.at += len;
		text.len -= len;
		if (!eat(&text, literal))
			return false;
	}
	return !text.len;
}

bool note_find(struct str text, struct note_found *ret_found)
{
	static const char *const formats[] = {
#define X(id, text) NOTE_##id,
		NOTE_LIST(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		if (fits(formats[i], text, ret_found))
			return true;
	}
	return false;
}
