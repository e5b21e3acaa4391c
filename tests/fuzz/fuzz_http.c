/*
 * The head of a request, as any client may send it. What was parsed must lie
 * within the text, and must not depend on what stands behind the head.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct str part, struct str text)
{
	assert(!part.at || (part.at >= text.at && part.at + part.len <= text.at + text.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request request = { 0 }, again = { 0 };
	/* A copy of exact size, so that a sanitizer sees a step beyond it. */
	char *copy = malloc(size ? size : 1);
	struct str text = { copy, size };
	size_t len = 0, len_again = 0;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	if (!http_request_parse(text, &request, &len)) {
		assert(len > 0 && len <= size);
		check_inside(request.path, text);
		check_inside(request.query, text);
		check_inside(request.host, text);
		check_inside(request.accept, text);
		(void)http_host_allowed(request.host, NULL);
		assert(http_accepts(request.accept, "text/plain", "0.0.4") <= 1000);
		assert(!http_request_parse((struct str){ copy, len }, &again, &len_again));
		assert(len_again == len && str_same(request.path, again.path) &&
		       str_same(request.host, again.host));
	}
	free(copy);
	return 0;
}
