#include "read/json_scan.h"
#include "read/kineto.h"

/*
 * What stands beside the events: {"schemaVersion": 1, "deviceProperties": [...],
 * ..., "traceEvents": [...], "traceName": "..."}; keys come in any order, also
 * behind the events (pytorch/kineto, libkineto/src/output_json.cpp).
 */

/* The next value of an array or member of an object, whose inside *left is;
 * with `key` NULL it is an array. False at the end or at nonsense. */
static bool next(struct str *left, struct str *key, struct str *ret_value)
{
	const char *at = left->at;
	const char *end = left->at + left->len;
	const char *close;
	bool flag;

	while (at < end && (*at == ',' || *at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	if (key) {
		if (at == end || *at != '"')
			return false;
		close = scan_string(at + 1, end, &flag);
		if (!close)
			return false;
		*key = (struct str){ at + 1, (size_t)(close - at - 1) };
		at = scan_space(close + 1, end);
		if (at == end || *at != ':')
			return false;
		at = scan_space(at + 1, end);
	}
	/* The bracket that closes the whole stands at end[0] and stops numbers. */
	close = at < end ? scan_value(at, end + 1, &flag) : NULL;
	if (!close || close > end)
		return false;
	*ret_value = (struct str){ at, (size_t)(close - at) };
	left->at = close;
	left->len = (size_t)(end - close);
	return true;
}

static struct str inside(struct str value)
{
	return (struct str){ value.at + 1, value.len - 2 };
}

static bool is(struct str value, char open)
{
	return value.len >= 2 && value.at[0] == open;
}

/* A value as text: strings without quotes and escapes. In k->text. */
static struct str text_of(struct kineto *k, struct str value)
{
	buf_clear(&k->text);
	if (is(value, '"'))
		scan_unescape(inside(value), &k->text);
	else
		buf_add(&k->text, value.at, value.len);
	return (struct str){ k->text.at ? k->text.at : "", k->text.len };
}

static void env(struct kineto *k, uint32_t device, struct str key, struct str value)
{
	session_env(k->session, k->source, device, key, text_of(k, value));
}

static void device_field(struct kineto *k, struct str key, struct str value, struct device *facts,
			 int64_t *warp)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
		{ "id", offsetof(struct device, ordinal) },
		{ "totalGlobalMem", offsetof(struct device, memory_bytes) },
		{ "computeMajor", offsetof(struct device, cc_major) },
		{ "computeMinor", offsetof(struct device, cc_minor) },
		{ "numSms", offsetof(struct device, sm_count) },
		{ "maxThreadsPerMultiprocessor", offsetof(struct device, threads_per_sm) },
		{ "regsPerMultiprocessor", offsetof(struct device, regs_per_sm) },
		{ "sharedMemPerMultiprocessor", offsetof(struct device, shared_per_sm) },
	};
	struct str text;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (str_is(key, fields[i].key))
			(void)scan_to_fixed(value, 0,
					    (int64_t *)(void *)((char *)facts + fields[i].offset));
	}
	if (str_is(key, "warpSize"))
		(void)scan_to_fixed(value, 0, warp);
	if (!str_is(key, "name"))
		return;
	text = text_of(k, value);
	facts->name = session_string(k->session, text.at, text.len);
	if (str_find(text, "NVIDIA") || str_find(text, "Tesla") || str_find(text, "GeForce") ||
	    str_find(text, "Quadro"))
		facts->maker = intern_text(k->session->strings, "NVIDIA");
	else if (str_find(text, "AMD") || str_find(text, "Instinct") || str_find(text, "Radeon"))
		facts->maker = intern_text(k->session->strings, "AMD");
}

static void device(struct kineto *k, struct str value)
{
	struct device facts = { .scope = DEVICE_OF_SOURCE, .source = k->source, .ordinal = -1 };
	struct str left = inside(value);
	struct str key, field;
	int64_t warp = 0;
	uint32_t id;

	while (next(&left, &key, &field))
		device_field(k, key, field, &facts, &warp);
	if (facts.ordinal < 0)
		return;
	if (warp > 0 && facts.threads_per_sm > 0)
		facts.warps_per_sm = facts.threads_per_sm / warp;
	id = session_device(k->session, &facts);
	if (facts.maker)
		k->maker = facts.maker;
	left = inside(value);
	while (next(&left, &key, &field))
		env(k, id, key, field);
}

static void members(struct kineto *k, struct str prefix, struct str value)
{
	struct str left = inside(value);
	struct str key, field;

	while (next(&left, &key, &field)) {
		struct source *source = &k->session->sources.at[k->source];
		struct buf path = { 0 };

		buf_add(&path, prefix.at, prefix.len);
		buf_text(&path, " / ");
		buf_add(&path, key.at, key.len);
		env(k, SESSION_NONE, (struct str){ path.at, path.len }, field);
		buf_done(&path);
		if (!str_is(prefix, "distributedInfo"))
			continue;
		if (str_is(key, "rank"))
			(void)scan_to_fixed(field, 0, &source->rank);
		else if (str_is(key, "world_size"))
			(void)scan_to_fixed(field, 0, &source->world_size);
	}
}

/* Kineto's own log. One line of it counts what fell outside the window. */
static void notes(struct kineto *k, struct str what, struct str value)
{
	struct str left = inside(value);
	struct str line;

	while (next(&left, NULL, &line)) {
		struct str text = text_of(k, line);
		const char *count = str_find(text, "Out-of-range = ");
		int64_t number;

		session_note(k->session, k->source, "%.*s: %.*s", (int)what.len, what.at,
			     (int)text.len, text.at);
		if (!count)
			continue;
		count += strlen("Out-of-range = ");
		text = (struct str){ count, text.len - (size_t)(count - text.at) };
		if (str_to_i64(str_cut(&text, ','), &number) && number > 0)
			k->loss[LOSS_outside_window] += number;
	}
}

void kineto_meta(struct kineto *k, struct str key, struct str value)
{
	struct source *source = &k->session->sources.at[k->source];
	struct str left = inside(value);
	struct str element;
	int64_t number;

	if (str_is(key, "baseTimeNanoseconds") && scan_to_fixed(value, 0, &number)) {
		source->has_utc = k->has_base = true;
		source->utc_offset_ns = number;
	}
	if (str_is(key, "with_stack") && scan_to_fixed(text_of(k, value), 0, &number))
		source->with_stack |= number != 0;
	k->schema |= str_is(key, "schemaVersion");
	if (str_starts(key, "cuda_"))
		kineto_maker(k, "NVIDIA");
	else if (str_starts(key, "hip_") || str_starts(key, "rocm"))
		kineto_maker(k, "AMD");
	if (str_is(key, "deviceProperties") && is(value, '[')) {
		while (next(&left, NULL, &element)) {
			if (is(element, '{'))
				device(k, element);
		}
	} else if (is(value, '{')) {
		members(k, key, value);
	} else if (is(value, '[') &&
		   (str_is(key, "INFO") || str_is(key, "WARNING") || str_is(key, "ERROR"))) {
		notes(k, key, value);
	} else {
		env(k, SESSION_NONE, key, value);
	}
}
