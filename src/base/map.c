#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

static const size_t FIRST_SLOTS = 64;

static size_t seek(const struct map *map, uint64_t key)
{
	size_t i = hash_u64(key, hash_seed()) & map->mask;

	while (map->used[i] && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return i;
}

static void resize(struct map *map, size_t slots)
{
	struct map old = *map;

	map->slots = mem_alloc(slots * sizeof(*map->slots));
	map->used = mem_zero(slots);
	map->mask = slots - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++) {
		size_t to;

		if (!old.used[i])
			continue;
		to = seek(map, old.slots[i].key);
		map->used[to] = 1;
		map->slots[to] = old.slots[i];
	}
	free(old.slots);
	free(old.used);
}

void map_put(struct map *map, uint64_t key, uint64_t value)
{
	size_t i;

	if (!map->slots)
		resize(map, FIRST_SLOTS);
	else if (map->count * 2 > map->mask)
		resize(map, (map->mask + 1) * 2);
	i = seek(map, key);
	if (!map->used[i]) {
		map->used[i] = 1;
		map->slots[i].key = key;
		map->count++;
	}
	map->slots[i].value = value;
}

uint64_t *map_find(const struct map *map, uint64_t key)
{
	size_t i;

	if (!map->slots)
		return NULL;
	i = seek(map, key);
	return map->used[i] ? &map->slots[i].value : NULL;
}

void map_done(struct map *map)
{
	free(map->slots);
	free(map->used);
	memset(map, 0, sizeof(*map));
}
