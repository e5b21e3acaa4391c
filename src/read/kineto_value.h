/*
 * kineto_value.h - one value of an event into its field: what the general and
 * the learned way of kineto_event.c share. For that file only.
 */
#pragma once

#include "read/json_scan.h"
#include "read/kineto_event.h"

/* Behind a number; NULL if it reaches to `end`. */
static inline const char *number_end(const char *at, const char *end)
{
	while (at < end && scan_in_number(*at))
		at++;
	return at < end ? at : NULL;
}

/*
 * Decimal digits, at most `digits` (3 or 0) behind the point, as an integer
 * times 10^digits. The common form is done here; NULL: not that form, take the
 * slow way. Needs 32 readable bytes.
 */
static inline const char *fixed_fast(const char *at, int digits, int64_t *ret)
{
	uint64_t value = 0;
	unsigned int count = scan_8_digits(at, &value);

	at += count;
	if (count == 8) {
		count = scan_8_digits(at, &value);
		at += count;
		if (count == 8)
			return NULL;
	} else if (!count) {
		return NULL;
	}
	if (!digits) {
		*ret = (int64_t)value;
		return scan_in_number(*at) ? NULL : at;
	}
	if (*at == '.') {
		count = scan_8_digits(at + 1, &value);
		if (count != 3)
			return NULL;
		at += 4;
	} else {
		value *= 1000;
	}
	*ret = (int64_t)value;
	return scan_in_number(*at) ? NULL : at;
}

static inline const char *take_fixed(struct kineto_event *event, const struct kineto_key *key,
				     const char *at, const char *end)
{
	int digits = key->type == KINETO_NS ? 3 : 0;
	const char *behind = NULL;

	if (digits && end - at >= 40)
		behind = fixed_fast(at, 3, &event->num[key->field]);
	if (!behind) {
		behind = number_end(at, end);
		if (!behind)
			return NULL;
		if (!scan_to_fixed((struct str){ at, (size_t)(behind - at) }, digits,
				   &event->num[key->field])) {
			event->malformed = true;
			return behind;
		}
	}
	event->have |= 1u << key->field;
	return behind;
}

static inline void add_rest(struct kineto_event *event, const struct kineto_key *key,
			    struct str value, bool is_string, bool escaped)
{
	struct kineto_rest *rest;

	if (event->rest_count == KINETO_REST_MAX) {
		event->malformed = true;
		return;
	}
	rest = &event->rest[event->rest_count++];
	rest->key = key;
	rest->value = value;
	rest->is_string = is_string;
	rest->escaped = escaped;
}

static inline void take_name(struct kineto_event *event, struct str value, bool escaped)
{
	event->name = value;
	event->name_escaped = escaped;
	event->name_asked = intern_ask(event->strings, value.at, value.len);
}

/* Rare forms, out of line. */
void kineto_take_text(struct kineto_event *event, const struct kineto_key *key, struct str value,
		      bool escaped);
void kineto_take_dims(struct kineto_event *event, const struct kineto_key *key, struct str value);
void kineto_take_word(struct kineto_event *event, const struct kineto_key *key, struct str value);

static inline const char *take_string(struct kineto_event *event, const struct kineto_key *key,
				      const char *at, const char *end, bool loose)
{
	bool escaped;
	const char *close = loose ? scan_string_loose(at + 1, end, true, &escaped)
				  : scan_string(at + 1, end, &escaped);
	struct str value;

	if (!close)
		return NULL;
	value = (struct str){ at + 1, (size_t)(close - at - 1) };
	if (key->type == KINETO_NAME) {
		take_name(event, value, escaped);
	} else if (key->type == KINETO_REST) {
		add_rest(event, key, value, true, escaped);
	} else {
		kineto_take_text(event, key, value, escaped);
	}
	return close + 1;
}

static inline const char *take_number(struct kineto_event *event, const struct kineto_key *key,
				      const char *at, const char *end)
{
	const char *behind = NULL;
	int64_t whole;

	if (key->type == KINETO_NS)
		return take_fixed(event, key, at, end);
	if (key->type != KINETO_REST && end - at >= 40)
		behind = fixed_fast(at, 0, &whole);
	if (behind && key->type == KINETO_INT) {
		event->num[key->field] = whole;
		event->have |= 1u << key->field;
		return behind;
	}
	if (behind && key->type == KINETO_ID) {
		event->id[key->field] = (struct kineto_id){ .known = true, .number = whole };
		return behind;
	}
	if (key->type == KINETO_INT)
		return take_fixed(event, key, at, end);
	if (!behind)
		behind = number_end(at, end);
	if (!behind || key->type == KINETO_DROP || key->type == KINETO_IGNORE)
		return behind;
	if (key->type == KINETO_REST)
		add_rest(event, key, (struct str){ at, (size_t)(behind - at) }, false, false);
	else
		kineto_take_text(event, key, (struct str){ at, (size_t)(behind - at) }, false);
	return behind;
}

/* The value at `at` into the event. NULL: it reaches to `end` (or, with
 * *ret_bad, there is none). */
static inline const char *take_value(struct kineto_event *event, const struct kineto_key *key,
				     const char *at, const char *end, bool loose, bool *ret_bad)
{
	const char *behind;
	char first;

	if (at >= end)
		return NULL;
	first = *at;
	if (first == '"')
		return take_string(event, key, at, end, loose);
	if ((first >= '0' && first <= '9') || (first == '-' && end - at > 1 && at[1] != 'I'))
		return take_number(event, key, at, end);
	if (first == '[' || first == '{') {
		behind = loose ? scan_nested_loose(at, end) : scan_nested(at, end);
		if (!behind)
			return NULL;
		if (key->type == KINETO_DIMS)
			kineto_take_dims(event, key, (struct str){ at, (size_t)(behind - at) });
		else
			add_rest(event, key, (struct str){ at, (size_t)(behind - at) }, false,
				 false);
		return behind;
	}
	behind = scan_value(at, end, ret_bad);
	if (behind)
		kineto_take_word(event, key, (struct str){ at, (size_t)(behind - at) });
	return behind;
}
