/*
 * perf_map.c - pieces of memory, in order and apart, each with one name.
 *
 * New entries wait in a list of their own until somebody asks. Then both lists are
 * swept from low addresses to high ones: of those that cover an address a heap has the
 * latest on top. So a map that is read in portions costs n log n for each, whatever the order
 * of its entries.
 */
#include "collect/perf_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "collect/python_name.h"

/* Java's and Julia's largest have some 200,000 entries. */
enum { PIECES_MAX = 1 << 20, NAMES_MAX = 1 << 20, NAMES_BYTES_MAX = 64 << 20 };
/* Of a line with its path; of a name as it is shown. */
enum { LINE_BYTES = 8192, NAME_BYTES = 120 };

struct piece {
	uint64_t start, end;
	uint32_t name;
	uint32_t order; /* later ones are right; 0: settled */
};

struct pieces {
	struct piece *at;
	size_t count, room;
};

struct perf_map {
	struct intern *names;
	struct pieces settled, fresh;
	VEC(bool) is_python; /* by name */
	struct buf line;
	bool too_long; /* up to its end */
	struct perf_map_counts counts;
};

struct perf_map *perf_map_new(void)
{
	struct perf_map *map = mem_zero(sizeof(*map));

	map->names = intern_new();
	return map;
}

void perf_map_free(struct perf_map *map)
{
	if (!map)
		return;
	intern_free(map->names);
	VEC_DONE(&map->settled);
	VEC_DONE(&map->fresh);
	VEC_DONE(&map->is_python);
	buf_done(&map->line);
	free(map);
}

/* Names stand in "a < b < c" and in "key=value;...", in UTF-8. */
static void put_text(struct buf *out, struct str text)
{
	while (text.len && out->len < NAME_BYTES) {
		size_t bytes = str_character(text);
		unsigned char c = (unsigned char)*text.at;

		if (!bytes || c < ' ' || c == 127 || c == ';')
			buf_char(out, '?');
		else
			buf_add(out, text.at, bytes);
		bytes += !bytes;
		text.at += bytes;
		text.len -= bytes;
	}
}

/* "py::QUALNAME:FILE"; a colon is in no name of Python's. */
static bool put_python(struct buf *out, struct str name)
{
	struct str function;

	if (!str_starts(name, "py::"))
		return false;
	name.at += 4;
	name.len -= 4;
	function = str_cut(&name, ':');
	if (!name.at || !name.len || !function.len)
		return false;
	put_text(out, python_name_function(function));
	put_text(out, STR(" "));
	put_text(out, python_name_file(name));
	return true;
}

static uint32_t name_of(struct perf_map *map, struct str name)
{
	struct buf out = { 0 };
	bool is_python = put_python(&out, name);
	uint32_t id;

	if (!is_python)
		put_text(&out, name);
	id = intern_add(map->names, out.at, out.len);
	buf_done(&out);
	while (map->is_python.count <= id)
		(void)VEC_ADD(&map->is_python);
	map->is_python.at[id] = is_python;
	return id;
}

static void take_line(struct perf_map *map, struct str line)
{
	struct str rest = str_trim(line), start, size;
	struct piece piece = { 0 };
	uint64_t bytes;

	start = str_cut(&rest, ' ');
	if (rest.at)
		rest = str_trim(rest);
	size = rest.at ? str_cut(&rest, ' ') : (struct str){ 0 };
	if (rest.at)
		rest = str_trim(rest);
	if (!rest.at || !rest.len || !str_to_hex(start, &piece.start) ||
	    !str_to_hex(size, &bytes) || !bytes || bytes > UINT64_MAX - piece.start) {
		map->counts.malformed++;
		return;
	}
	if (map->settled.count + map->fresh.count >= PIECES_MAX ||
	    intern_count(map->names) >= NAMES_MAX || intern_bytes(map->names) >= NAMES_BYTES_MAX) {
		map->counts.left_out++;
		return;
	}
	piece.end = piece.start + bytes;
	piece.name = name_of(map, rest);
	piece.order = (uint32_t)map->fresh.count + 1;
	*VEC_ADD(&map->fresh) = piece;
	map->counts.entries++;
}

void perf_map_feed(struct perf_map *map, const char *at, size_t len)
{
	while (len) {
		const char *end = memchr(at, '\n', len);
		size_t part = end ? (size_t)(end - at) : len;

		if (map->too_long || part > LINE_BYTES - map->line.len) {
			map->counts.malformed += !map->too_long;
			map->too_long = !end;
			buf_clear(&map->line);
		} else if (!end) {
			buf_add(&map->line, at, part);
		} else if (map->line.len) {
			buf_add(&map->line, at, part);
			take_line(map, (struct str){ map->line.at, map->line.len });
			buf_clear(&map->line);
		} else {
			take_line(map, (struct str){ at, part });
		}
		part += end != NULL;
		at += part;
		len -= part;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* The latest is on top. */
struct heap {
	const struct piece **at;
	size_t count;
};

static void heap_push(struct heap *heap, const struct piece *piece)
{
	size_t i = heap->count++;

	for (; i && heap->at[(i - 1) / 2]->order < piece->order; i = (i - 1) / 2)
		heap->at[i] = heap->at[(i - 1) / 2];
	heap->at[i] = piece;
}

static void heap_pop(struct heap *heap)
{
	const struct piece *last = heap->at[--heap->count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count && heap->at[child + 1]->order > heap->at[child]->order)
			child++;
		if (heap->at[child]->order <= last->order)
			break;
		heap->at[i] = heap->at[child];
		i = child;
	}
	heap->at[i] = last;
}

static void put_piece(struct perf_map *map, uint64_t start, uint64_t end, uint32_t name)
{
	struct pieces *out = &map->settled;
	struct piece *before = out->count ? &out->at[out->count - 1] : NULL;

	if (before && before->end == start && before->name == name)
		before->end = end;
	else if (out->count < PIECES_MAX)
		*VEC_ADD(out) = (struct piece){ .start = start, .end = end, .name = name };
	else
		map->counts.left_out++;
}

/* `all` by start, into pieces that are apart. */
static void sweep(struct perf_map *map, const struct pieces *all)
{
	struct heap active = { .at = mem_alloc(all->count * sizeof(*active.at)) };
	uint64_t here = 0;
	size_t next = 0;

	while (next < all->count || active.count) {
		const struct piece *top;
		uint64_t until;

		if (!active.count)
			here = all->at[next].start;
		while (next < all->count && all->at[next].start <= here)
			heap_push(&active, &all->at[next++]);
		while (active.count && active.at[0]->end <= here)
			heap_pop(&active);
		if (!active.count)
			continue;
		top = active.at[0];
		until = top->end;
		if (next < all->count && all->at[next].start < until)
			until = all->at[next].start;
		put_piece(map, here, until, top->name);
		here = until;
	}
	free(active.at);
}

static void settle(struct perf_map *map)
{
	struct pieces all = { 0 };
	size_t old = 0, fresh = 0;

	if (!map->fresh.count)
		return;
	qsort(map->fresh.at, map->fresh.count, sizeof(*map->fresh.at), by_start);
	VEC_ROOM(&all, map->settled.count + map->fresh.count);
	while (old < map->settled.count || fresh < map->fresh.count) {
		bool is_old = fresh == map->fresh.count ||
			      (old < map->settled.count &&
			       map->settled.at[old].start <= map->fresh.at[fresh].start);

		*VEC_ADD(&all) = is_old ? map->settled.at[old++] : map->fresh.at[fresh++];
	}
	map->fresh.count = map->settled.count = 0;
	sweep(map, &all);
	VEC_DONE(&all);
}

const char *perf_map_find(struct perf_map *map, uint64_t address, bool *ret_is_python)
{
	size_t low = 0, high;
	const struct piece *found;

	settle(map);
	for (high = map->settled.count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (map->settled.at[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= map->settled.at[low - 1].end)
		return NULL;
	found = &map->settled.at[low - 1];
	*ret_is_python = map->is_python.at[found->name];
	return intern_get(map->names, found->name, NULL);
}

struct perf_map_counts perf_map_counts(struct perf_map *map)
{
	settle(map);
	map->counts.pieces = map->settled.count;
	return map->counts;
}
