#include "know/kernel_line.h"

#include <ctype.h>
#include <string.h>

static const int64_t NS_PER_US = 1000;

static void skip(struct str *text, size_t len)
{
	text->at += len;
	text->len -= len;
}

/* A record of /dev/kmsg: "4,1227,437812449932,c;text". The kernel escapes what
 * it does not print as \xHH. Documentation/ABI/testing/dev-kmsg. */
static bool kmsg_record(struct str text, struct buf *memory, struct kernel_line *line)
{
	struct str head = str_cut(&text, ';'), prio, sequence, time;
	uint64_t value, us;

	if (!text.at)
		return false;
	prio = str_cut(&head, ',');
	sequence = str_cut(&head, ',');
	time = str_cut(&head, ',');
	if (!str_to_u64(prio, &value) || !str_to_u64(sequence, &line->sequence) ||
	    !str_to_u64(time, &us) || us > INT64_MAX / 1000)
		return false;
	line->has_sequence = true;
	line->stamp = STAMP_BOOT;
	line->stamp_ns = line->boot_ns = (int64_t)us * NS_PER_US;
	line->has_boot = true;
	line->resolution_ns = NS_PER_US;
	/* The facility is above the three bits of the level; 0 is the kernel. */
	line->foreign = value >> 3 != 0;
	line->kernel = !line->foreign;
	buf_clear(memory);
	for (size_t i = 0; i < text.len; i++) {
		uint64_t byte;

		if (text.at[i] == '\\' && i + 3 < text.len && text.at[i + 1] == 'x' &&
		    str_to_hex((struct str){ text.at + i + 2, 2 }, &byte)) {
			buf_char(memory, (char)byte);
			i += 3;
		} else {
			buf_char(memory, text.at[i]);
		}
	}
	line->message = (struct str){ memory->at ? memory->at : "", memory->len };
	return true;
}

/* "<4>", and "kern  :warn  : " of dmesg --decode. */
static bool take_level(struct str *text, struct kernel_line *line)
{
	struct str rest = *text, facility, level;
	const char *close;

	if (text->len && *text->at == '<' &&
	    (close = memchr(text->at, '>', text->len < 6 ? text->len : 6))) {
		skip(text, (size_t)(close + 1 - text->at));
		line->kernel = true;
		return true;
	}
	facility = str_cut(&rest, ':');
	level = str_cut(&rest, ':');
	if (!rest.at || facility.len < 3 || facility.len > 9 || level.len < 3 || level.len > 7)
		return false;
	facility = str_trim(facility);
	level = str_trim(level);
	for (size_t i = 0; i < facility.len; i++) {
		if (!isalnum((unsigned char)facility.at[i]))
			return false;
	}
	if (!str_is(level, "emerg") && !str_is(level, "alert") && !str_is(level, "crit") &&
	    !str_is(level, "err") && !str_is(level, "warn") && !str_is(level, "notice") &&
	    !str_is(level, "info") && !str_is(level, "debug"))
		return false;
	line->kernel = str_is(facility, "kern");
	line->foreign = !line->kernel;
	str_skip_blanks(&rest);
	*text = rest;
	return true;
}

/* Behind a clock's stamp: "host kernel: ", "host kernel[0]: ", "host app[7]: ",
 * or at once the message. False: another program's line. */
static bool take_sender(struct str *text, struct kernel_line *line)
{
	struct str rest = *text, word;
	const char *tag;
	size_t name;

	for (int i = 0; i < 2; i++) {
		str_skip_blanks(&rest);
		word = rest;
		tag = memchr(word.at, ' ', word.len);
		word.len = tag ? (size_t)(tag - word.at) : word.len;
		if (word.len < 2 || word.at[word.len - 1] != ':') {
			skip(&rest, word.len); /* the host, unless no sender follows */
			continue;
		}
		/* "NVRM:" and the like are the message, not its sender. */
		if (i == 0 && !str_starts(word, "kernel"))
			return true;
		name = word.len - 1;
		for (size_t k = 0; k < name; k++) {
			if (word.at[k] == '[')
				name = k;
		}
		skip(&rest, word.len);
		if (name == 6 && !memcmp(word.at, "kernel", 6)) {
			*text = rest;
			line->kernel = true;
			return true;
		}
		if (str_starts(word, "NVRM:") || str_starts(word, "nvidia-"))
			return true;
		return false;
	}
	return true;
}

static bool bracketed_stamp(struct str *text, struct kernel_line *line)
{
	struct str inner = *text;

	if (!inner.len || *inner.at != '[')
		return false;
	skip(&inner, 1);
	if (!kernel_stamp_take(&inner, line) || !inner.len || *inner.at != ']')
		return false;
	skip(&inner, 1);
	line->kernel = true; /* dmesg -T */
	*text = inner;
	return true;
}

/* What is written as text: level, stamp, sender, seconds since boot. */
static void parse_text(struct str text, struct kernel_line *line)
{
	int64_t resolution_ns;
	bool clock;

	line->framed = take_level(&text, line);
	clock = bracketed_stamp(&text, line);
	if (!clock && kernel_stamp_take(&text, line)) {
		clock = true;
		/* dmesg --time-format iso names no sender. */
		if (!line->framed)
			line->foreign = !take_sender(&text, line);
	}
	str_skip_blanks(&text);
	line->has_boot = kernel_boot_take(&text, &line->boot_ns, &resolution_ns);
	if (line->has_boot && !clock) {
		line->stamp = STAMP_BOOT;
		line->stamp_ns = line->boot_ns;
		line->resolution_ns = resolution_ns;
		/* journalctl -o short-monotonic */
		if (!line->framed)
			line->foreign = !take_sender(&text, line);
	}
	line->kernel = line->kernel || line->has_boot;
	line->framed = line->framed || clock || line->has_boot;
	line->message = str_trim(text);
}

void kernel_line_parse(struct str line, struct buf *memory, struct kernel_line *ret_line)
{
	struct str text = str_trim(line);

	*ret_line = (struct kernel_line){ .framed = true, .message = { "", 0 } };
	if (!text.len)
		return;
	if ((*text.at != '{' || !kernel_json_parse(text, memory, ret_line)) &&
	    (!isdigit((unsigned char)*text.at) || !kmsg_record(text, memory, ret_line))) {
		*ret_line = (struct kernel_line){ 0 };
		parse_text(text, ret_line);
	}
	if (ret_line->foreign)
		ret_line->message.len = 0;
}
