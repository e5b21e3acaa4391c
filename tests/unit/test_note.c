/*
 * test_note.c - the sentences that a recording says of itself, found again in its text.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"
#include "model/note.h"

static const char *const formats[] = {
#define X(id, text) NOTE_##id,
	NOTE_LIST(X)
#undef X
};

/* As it stands in a profile. */
static void fill_in(const char *format, const char *word, struct buf *out)
{
	while (*format) {
		size_t literal = strcspn(format, "%"), place;

		buf_add(out, format, literal);
		format += literal;
		if (!*format)
			break;
		switch (note_conversion(&format, &place)) {
		case 's':
			buf_text(out, word);
			break;
		case 'f':
			buf_text(out, "1.5");
			break;
		default:
			buf_text(out, "-7");
		}
	}
}

static void expect_found(const char *format, const char *word)
{
	struct buf text = { 0 };
	struct note_found found;

	fill_in(format, word, &text);
	cr_assert(note_find(str_of(text.at), &found), "%s", text.at);
	cr_assert_str_eq(found.format, format, "%s", text.at);
	buf_done(&text);
}

Test(note, each_is_found_in_its_own_text)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		cr_assert_null(strstr(formats[i], "%%"), "%s", formats[i]);
		expect_found(formats[i], "word");
		expect_found(formats[i], "two (words)");
	}
}

Test(note, words_are_what_stood_for_the_conversions)
{
	struct note_found found;

	cr_assert(note_find(STR("no PC sampling (CUPTI 10, no permission): no stall reasons"),
			    &found));
	cr_assert_str_eq(found.format, NOTE_NO_PC_SAMPLING);
	cr_assert_eq(found.count, 2);
	cr_assert(str_is(found.words[0], "10"));
	cr_assert(str_is(found.words[1], NOTE_NO_PERMISSION));
	cr_assert(note_find(STR("no PC sampling (CUPTI 10): no stall reasons"), &found));
	cr_assert_eq(found.words[1].len, 0);
}

Test(note, what_nobody_of_us_said_is_none)
{
	static const char *const others[] = { "",
					      "word",
					      "process x: still runs",
					      "process 5: ",
					      "CUPTI failed (13): GPU activity is not recorded!",
					      "5 x",
					      "kernel log" };
	struct note_found found;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_assert(!note_find(str_of(others[i]), &found) ||
				  !strcmp(found.format, NOTE_PROCESS) ||
				  !strcmp(found.format, NOTE_BECAUSE),
			  "%s: %s", others[i], found.format);
}

Test(note, a_conversion_says_which_word_it_takes)
{
	const char *format = "%2$.1f rest";
	size_t place;

	cr_assert_eq(note_conversion(&format, &place), 'f');
	cr_assert_eq(place, 2);
	cr_assert_str_eq(format, " rest");
	format = "%";
	cr_assert_eq(note_conversion(&format, &place), 0);
	cr_assert_str_eq(format, "");
	format = "%99999999999999999999$s";
	cr_assert_eq(note_conversion(&format, &place), 's');
	cr_assert_gt(place, (size_t)NOTE_WORDS_MAX);
}
