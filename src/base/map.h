/*
 * map.h - 64-bit keys to 64-bit values.
 *
 * All-zero is an empty map. The last put of a key wins. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	uint64_t value;
};

struct map {
	struct map_slot *slots;
	uint8_t *used;
	size_t mask; /* slots - 1; 0 with no slots */
	size_t count;
};

void map_put(struct map *map, uint64_t key, uint64_t value);

/* A pointer to the value, good until the next map_put; NULL if absent. */
uint64_t *map_find(const struct map *map, uint64_t key);

void map_done(struct map *map);
