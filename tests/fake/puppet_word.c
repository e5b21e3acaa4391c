/* puppet_word.c - words of PUPPET_CUPTI. */
#include <stdlib.h>
#include <string.h>

#include "fake/puppet_cupti.h"

uint32_t puppet_word(const char *name)
{
	const char *at = getenv("PUPPET_CUPTI");
	size_t len = strlen(name);

	while (at && *at) {
		size_t word = strcspn(at, ",");

		if (word >= len && !memcmp(at, name, len) && (word == len || at[len] == '='))
			return word == len ? 1 : (uint32_t)strtoul(at + len + 1, NULL, 10);
		at += word + (at[word] == ',');
	}
	return 0;
}
