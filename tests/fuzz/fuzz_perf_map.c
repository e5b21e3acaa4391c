/*
 * Any bytes as a perf map, in portions: the first byte says how large. What is found must lie
 * where an entry said, by the latest of them, and be fit to be shown.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "collect/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct perf_map *map, uint64_t address)
{
	bool is_python;
	const char *name = perf_map_find(map, address, &is_python);
	struct str rest = name ? str_of(name) : (struct str){ 0 };

	if (name && !rest.len)
		abort();
	while (rest.len) {
		size_t bytes = str_character(rest);

		if (!bytes || (unsigned char)*rest.at < ' ' || *rest.at == 127 || *rest.at == ';')
			abort();
		rest.at += bytes;
		rest.len -= bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map *map = perf_map_new();
	struct perf_map_counts counts;
	size_t portion = size ? (size_t)data[0] * 16 + 1 : 1, lines = 0;

	for (size_t at = 1; at < size; at += portion) {
		perf_map_feed(map, (const char *)data + at,
			      portion < size - at ? portion : size - at);
		for (size_t i = at; i < size && i < at + 32; i++)
			check(map, (uint64_t)data[i] << (data[i] % 56));
	}
	for (uint64_t address = 0; address < 4096; address += 16)
		check(map, address);
	check(map, UINT64_MAX);
	for (size_t i = 1; i < size; i++)
		lines += data[i] == '\n';
	counts = perf_map_counts(map);
	if (counts.entries < 0 || (size_t)counts.entries > lines ||
	    counts.pieces > 2 * (size_t)counts.entries)
		abort();
	perf_map_free(map);
	return 0;
}
