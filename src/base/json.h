/*
 * json.h - writing JSON.
 *
 *	struct json json = { .out = &buf };
 *	json_object(&json, NULL);
 *	json_i64(&json, "busy_ns", busy_ns);
 *	json_end(&json);
 *
 * `key` is NULL inside arrays and at the top. Commas and indentation are kept
 * here. Texts are escaped; bytes that are no UTF-8 become U+FFFD. A double
 * that is not finite is a bug of the caller (assert): unknown is left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum { JSON_DEPTH_MAX = 32 };

struct json {
	struct buf *out;
	bool compact; /* no line breaks */
	unsigned int depth;
	bool any[JSON_DEPTH_MAX];
	char closer[JSON_DEPTH_MAX];
};

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_end(struct json *json);
void json_i64(struct json *json, const char *key, int64_t value);
void json_f64(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_text(struct json *json, const char *key, const char *value);
void json_str(struct json *json, const char *key, struct str value);
