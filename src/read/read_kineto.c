/*
 * PyTorch's profiler (Kineto), and what else writes Chrome traces: an object
 * with an array of events among other keys, or that array alone. Described in
 * doc/formats/kineto.md. This file walks the outer levels on a moving window
 * of the file, and finds its way back after damage.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "model/note.h"
#include "read/json_scan.h"
#include "read/kineto.h"

/* Parsed at a time: what stays in the processor's cache. From SUSPECT on, an event
 * is one that does not end if another begins in it. The most that one event or
 * value may take. */
static const size_t WINDOW = 256 << 10;
static const size_t SUSPECT = 1 << 20;
static const size_t VALUE_MAX = 32 << 20;

struct walk {
	struct kineto *k;
	const char *start, *at, *end;
	bool eof;
	bool any_array; /* events were announced */
	bool cut;       /* the file ended too early */
	int failed;     /* what the sink returned */
};

/* More bytes behind `end`. 1: there are some; 0: the file is at its end. */
static int more(struct walk *walk)
{
	size_t left = (size_t)(walk->end - walk->at);
	size_t want = left + left / 2 > WINDOW ? left * 2 : WINDOW;
	int64_t got;

	if (walk->eof)
		return 0;
	if (walk->at > walk->start)
		input_skip(walk->k->input, (size_t)(walk->at - walk->start));
	/* A large event that comes slowly would be looked at again and again. */
	got = left < WINDOW
		      ? input_fill_some(walk->k->input, left, want, &walk->start, walk->k->err)
		      : input_fill(walk->k->input, want, &walk->start, walk->k->err);
	if (got < 0)
		return (int)got;
	walk->at = walk->start;
	walk->end = walk->start + got;
	walk->eof = (size_t)got <= left;
	return !walk->eof;
}

/* The next byte that is neither blank nor comma; 0 at the end of the file. */
static int peek(struct walk *walk, char *ret)
{
	int ret_more;

	for (;;) {
		while (walk->at < walk->end &&
		       (*walk->at == ',' || *walk->at == ' ' || *walk->at == '\n' ||
			*walk->at == '\r' || *walk->at == '\t'))
			walk->at++;
		if (walk->at < walk->end) {
			*ret = *walk->at;
			return 1;
		}
		ret_more = more(walk);
		if (ret_more <= 0)
			return ret_more;
	}
}

/* Where the array of events seems to end; NULL. */
static const char *find_close(const char *start, const char *end)
{
	const char *found = NULL;

	for (const char *at = start; (at = memchr(at, ']', (size_t)(end - at))); at++) {
		const char *before = at - 1;
		const char *behind = scan_space(at + 1, end);

		while (before > start && (*before == ' ' || *before == '\n'))
			before--;
		if (before >= start && *before == '}' &&
		    (behind == end || *behind == '}' || *behind == ','))
			found = at;
	}
	return found;
}

/* Past a record that can't be read, to the next event or the array's end. */
static int resync(struct walk *walk)
{
	struct kineto *k = walk->k;
	int64_t lost = 0;

	k->loss[LOSS_seen]++;
	k->loss[LOSS_malformed]++;
	k->loss[LOSS_dropped]++;
	for (;;) {
		const char *next = kineto_find_event(walk->at, walk->end);
		const char *close = NULL;
		int ret;

		/* An event that starts where we stand was tried already. */
		if (!next && walk->eof)
			close = find_close(walk->at, walk->end);
		if (next || close) {
			walk->at = next ? next : close;
			return 1;
		}
		if (!walk->eof) {
			/* Keep what may be the beginning of the next. */
			const char *keep = walk->end - walk->at > 256 ? walk->end - 256 : walk->at;

			lost += keep - walk->at;
			walk->at = keep;
		}
		ret = more(walk);
		if (ret < 0)
			return ret;
		if (!ret && !find_close(walk->at, walk->end)) {
			k->loss[LOSS_truncated_bytes] += lost + (walk->end - walk->at);
			walk->at = walk->end;
			walk->cut = true;
			return 0;
		}
	}
}

/* An event that the window does not hold to its end. 1: go on; 0: the file
 * ends. */
static int read_short(struct walk *walk)
{
	size_t left = (size_t)(walk->end - walk->at);
	int ret;

	/* Events are small: if another one begins in here, this one is broken. */
	if (left >= SUSPECT && kineto_find_event(walk->at + 1, walk->end)) {
		walk->at++;
		return resync(walk);
	}
	if (left >= VALUE_MAX) {
		walk->at++;
		return resync(walk);
	}
	ret = more(walk);
	if (ret)
		return ret;
	if (kineto_find_event(walk->at + 1, walk->end) || find_close(walk->at, walk->end)) {
		walk->at++;
		return resync(walk);
	}
	walk->k->loss[LOSS_truncated_bytes] += walk->end - walk->at;
	walk->at = walk->end;
	walk->cut = true;
	return 0;
}

/* Something among the events that is none: null, a number, a nested array. */
static int read_stray(struct walk *walk)
{
	bool bad;
	const char *behind = scan_value(walk->at, walk->end, &bad);

	if (!behind && !bad)
		return read_short(walk);
	if (!behind) {
		walk->at++;
		return resync(walk);
	}
	walk->k->loss[LOSS_seen]++;
	walk->k->loss[LOSS_dropped]++;
	walk->at = behind;
	return 1;
}

static int read_event(struct walk *walk)
{
	struct kineto *k = walk->k;
	const char *next;

	switch (kineto_parse(k->parser, walk->at, walk->end, &k->event, &next)) {
	case KINETO_PARSED:
		walk->at = next;
		walk->failed = kineto_event_take(k, &k->event);
		return walk->failed < 0 ? walk->failed : 1;
	case KINETO_SHORT:
		return read_short(walk);
	default:
		walk->at++;
		return resync(walk);
	}
}

/* Events up to the end of the array. 0: the file ended first. */
static int read_events(struct walk *walk)
{
	char c;
	int ret;

	walk->any_array = true;
	walk->at++;
	for (;;) {
		ret = peek(walk, &c);
		if (ret <= 0) {
			walk->cut = true;
			return ret;
		}
		if (c == ']') {
			walk->at++;
			return 1;
		}
		ret = c == '{' ? read_event(walk) : read_stray(walk);
		if (ret <= 0)
			return ret;
	}
}

/* A value that does not fit in memory: past it, saying so. */
static int skip_value(struct walk *walk, struct str key)
{
	struct scan_skip skip = { 0 };
	int ret;

	session_note(walk->k->session, walk->k->source, NOTE_TOO_LARGE,
		     (int)(key.len < 64 ? key.len : 64), key.at);
	for (;;) {
		walk->at += scan_skip_more(&skip, walk->at, (size_t)(walk->end - walk->at));
		if (skip.done)
			return 1;
		ret = more(walk);
		if (ret <= 0)
			return ret;
	}
}

/* `"key": value` that begins at walk->at. */
static int read_member(struct walk *walk)
{
	for (;;) {
		const char *at = walk->at + 1;
		const char *close;
		struct str key;
		bool flag;
		int ret;

		close = scan_string(at, walk->end, &flag);
		key = (struct str){ at, close ? (size_t)(close - at) : 0 };
		at = close ? scan_space(close + 1, walk->end) : walk->end;
		if (at < walk->end && *at != ':')
			return -1;
		at = at < walk->end ? scan_space(at + 1, walk->end) : at;
		if (at < walk->end && *at == '[' && str_is(key, "traceEvents")) {
			walk->at = at;
			return read_events(walk);
		}
		close = at < walk->end ? scan_value(at, walk->end, &flag) : NULL;
		if (close) {
			kineto_meta(walk->k, key, (struct str){ at, (size_t)(close - at) });
			walk->at = close;
			return 1;
		}
		if (at < walk->end && flag)
			return -1;
		if ((size_t)(walk->end - walk->at) >= VALUE_MAX) {
			walk->at = at;
			return skip_value(walk, key);
		}
		ret = more(walk);
		if (ret < 0)
			return (int)walk->k->err->code;
		if (!ret) {
			walk->k->loss[LOSS_truncated_bytes] += walk->end - walk->at;
			walk->at = walk->end;
			walk->cut = true;
			return 0;
		}
	}
}

/* After nonsense between the keys: the events may still be readable. */
static int find_events(struct walk *walk)
{
	static const char wanted[] = "\"traceEvents\"";
	const char *found = NULL;

	/* Not the one we may stand on: it led here. */
	if (walk->at < walk->end)
		found = memmem(walk->at + 1, (size_t)(walk->end - walk->at - 1), wanted,
			       sizeof(wanted) - 1);
	walk->k->loss[LOSS_malformed]++;
	if (!found || walk->any_array) {
		walk->k->loss[LOSS_truncated_bytes] += walk->end - walk->at;
		walk->cut = true;
		return 0;
	}
	walk->at = found;
	return 1;
}

static int read_object(struct walk *walk)
{
	char c;
	int ret;

	walk->at++;
	for (;;) {
		ret = peek(walk, &c);
		if (ret <= 0) {
			walk->cut = true;
			return ret;
		}
		if (c == '}')
			return 1;
		ret = c == '"' ? read_member(walk) : -1;
		if (ret < 0 && (walk->failed < 0 || ret == (int)walk->k->err->code))
			return ret;
		if (ret < 0)
			ret = find_events(walk);
		if (ret == 0)
			return 0;
	}
}

static int read_file(struct walk *walk)
{
	static const char bom[] = "\xef\xbb\xbf";
	int ret = more(walk);
	char c;

	if (ret > 0 && walk->end - walk->at > 3 && !memcmp(walk->at, bom, 3))
		walk->at += 3;
	ret = ret > 0 ? peek(walk, &c) : ret;
	if (ret < 0)
		return ret;
	if (ret > 0 && c == '{')
		ret = read_object(walk);
	else if (ret > 0 && c == '[')
		ret = read_events(walk);
	else
		return err_set(walk->k->err, ERR_FORMAT, "%s: no JSON", input_name(walk->k->input));
	if (ret < 0)
		return ret;
	ret = kineto_flush(walk->k);
	if (ret < 0)
		return ret;
	if (!walk->any_array || (walk->k->loss[LOSS_seen] == walk->k->loss[LOSS_dropped] &&
				 (walk->cut || walk->k->loss[LOSS_dropped])))
		return err_set(
			walk->k->err, ERR_FORMAT, "%s: at byte %lld: no trace event so far",
			input_name(walk->k->input),
			(long long)(input_offset(walk->k->input) + (walk->at - walk->start)));
	return 0;
}

/* What only the whole file tells. */
static void conclude(struct kineto *k, bool cut)
{
	/* 2001 to 2116: absolute times, as Kineto wrote them before 2024. */
	static const int64_t ABSOLUTE_FROM = 978307200000000000;
	static const int64_t ABSOLUTE_TO = 4607452800000000000;
	struct source *source = &k->session->sources.at[k->source];

	kineto_name_all(k);
	source->truncated = cut || input_truncated(k->input);
	source->no_device_activity = !k->any_device && !source->truncated;
	source->accelerator = k->maker;
	if (!k->has_base && k->min_ns > ABSOLUTE_FROM && k->min_ns < ABSOLUTE_TO)
		source->has_utc = true;
	/* Kineto sets times before its base to 0, so a stack of them there is
	 * not when things happened (pytorch/kineto#109). */
	if (k->has_base && k->at_zero > 1)
		k->loss[LOSS_clamped] = k->at_zero;
	for (int i = 0; i < LOSS_COUNT; i++)
		session_loss(k->session, k->source, (enum loss)i, k->loss[i]);
	if (!k->any_device && k->maker)
		session_note(k->session, k->source, NOTE_NO_CUDA,
			     session_text(k->session, k->maker));
}

static void done(struct kineto *k)
{
	for (size_t i = 0; i < k->tracks.count; i++)
		VEC_DONE(&k->tracks.at[i].open);
	VEC_DONE(&k->tracks);
	VEC_DONE(&k->pids);
	map_done(&k->track_index);
	map_done(&k->pid_index);
	buf_done(&k->text);
	buf_done(&k->detail);
	kineto_parser_free(k->parser);
	free(k);
}

int kineto_read(struct input *input, struct sink *sink, uint32_t source, bool learn,
		struct err *err)
{
	struct err own = { 0 };
	struct kineto *k = mem_zero(sizeof(*k));
	struct walk walk = { .k = k };
	int ret;

	k->input = input;
	k->sink = sink;
	k->session = sink->session;
	k->source = source;
	k->err = err ? err : &own;
	k->err->code = ERR_NONE;
	k->parser = kineto_parser_new(learn);
	k->seed = hash_seed();
	k->event.strings = k->session->strings;
	k->min_ns = INT64_MAX;
	ret = read_file(&walk);
	conclude(k, walk.cut);
	done(k);
	return ret < 0 ? ret : 0;
}

static int kineto_read_learning(struct input *input, struct sink *sink, uint32_t source,
				struct err *err)
{
	return kineto_read(input, sink, source, true, err);
}

static int kineto_probe(const char *at, size_t len)
{
	struct str text = { at, len };

	if (len > 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		text = (struct str){ at + 3, len - 3 };
	text = str_trim(text);
	if (!text.len)
		return 0;
	if (text.at[0] == '[')
		return str_find(text, "\"ph\"") ? 80 : 0;
	if (text.at[0] != '{')
		return 0;
	if (str_find(text, "\"traceEvents\""))
		return 95;
	if (str_find(text, "\"deviceProperties\"") || str_find(text, "\"distributedInfo\""))
		return 90;
	return str_find(text, "\"displayTimeUnit\"") || str_find(text, "\"schemaVersion\"") ? 50
											    : 0;
}

const struct reader reader_kineto = {
	.name = "kineto",
	.title = "PyTorch profiler (Kineto) or Chrome trace, JSON",
	.probe = kineto_probe,
	.read = kineto_read_learning,
};
