/*
 * http_request.h - the head of one HTTP/1.x request.
 *
 * Pure text in, fields out; the server in http.c does the rest. It is strict
 * where leniency has been a hole: a body, a second Host, a folded header or a
 * control character is refused, because nobody who wants metrics sends one.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum {
	HTTP_HEAD_MAX = 8192,   /* request line and headers; then 431 */
	HTTP_TARGET_MAX = 2048, /* the request's target; then 414 */
};

/* Texts point into what was parsed. */
struct http_request {
	bool head;       /* HEAD: the same answer without its body */
	bool keep_alive; /* the client would ask again on this connection */
	struct str path; /* "/metrics", undecoded */
	struct str query;
	struct str host; /* without port; at == NULL: none sent (HTTP/1.0) */
	struct str accept;
};

enum { HTTP_INCOMPLETE = -1 };

/* Parse the head at the start of `text`. 0: complete, *ret is filled and
 * *ret_len says how much of `text` it was. HTTP_INCOMPLETE: no blank line yet.
 * Else the status to answer with, after which the connection is of no use. */
int http_request_parse(struct str text, struct http_request *ret, size_t *ret_len);

/* May a request for `host` be answered? Addresses and "localhost" may. Any
 * other name must be one of `names` (NULL-terminated, may be NULL): a page
 * anywhere can point a name of its own at 127.0.0.1 and read the answer. */
bool http_host_allowed(struct str host, const char *const *names);

/* How much the client wants media type `type` ("text/plain"): 0..1000, the
 * best q of the ranges in `accept` that name it; -1 if none does. Only exact
 * names count. With `version`, a range that names another version does not. */
int http_accepts(struct str accept, const char *type, const char *version);
