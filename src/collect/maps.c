#include "collect/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

/* A program with PyTorch maps some 4,000 ranges, 500 KiB of text. */
enum { TEXT_BYTES_MAX = 16 << 20, MAPPINGS_MAX = 65536 };

void maps_done(struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		free(maps->at[i].path);
	VEC_DONE(maps);
}

bool maps_same(const struct maps *a, const struct maps *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		const struct mapping *x = &a->at[i], *y = &b->at[i];

		if (x->start != y->start || x->end != y->end || x->base != y->base ||
		    x->is_code != y->is_code || strcmp(x->path, y->path) != 0)
			return false;
	}
	return a->count == b->count;
}

static void read_text(const char *root, int64_t pid, struct buf *out)
{
	struct buf path = { 0 };
	ssize_t len = 1;
	int file;

	buf_printf(&path, "%s/proc/%lld/maps", root, (long long)pid);
	file = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	buf_done(&path);
	while (file >= 0 && len > 0 && out->len < TEXT_BYTES_MAX) {
		char part[16384];

		len = read(file, part, sizeof(part));
		if (len > 0)
			buf_add(out, part, (size_t)len);
	}
	if (file >= 0)
		(void)close(file);
}

/* "7f00-7f10 r-xp 00001000 08:01 123   /lib/x.so" */
struct line {
	uint64_t start, end, offset;
	bool is_code;
	struct str path;
};

static bool parse(struct str text, struct line *ret_line)
{
	struct str range = str_cut(&text, ' '), rights = str_cut(&text, ' ');
	struct str offset = str_cut(&text, ' '), start = str_cut(&range, '-');

	(void)str_cut(&text, ' '); /* device */
	(void)str_cut(&text, ' '); /* inode */
	ret_line->is_code = rights.len > 2 && rights.at[2] == 'x';
	ret_line->path = text.at ? str_trim(text) : (struct str){ "", 0 };
	return range.at && str_to_hex(start, &ret_line->start) &&
	       str_to_hex(range, &ret_line->end) && offset.at &&
	       str_to_hex(offset, &ret_line->offset) && ret_line->start < ret_line->end;
}

/* The parts of one file lie together, the first with its head. */
void maps_load(struct maps *maps, const char *root, int64_t pid)
{
	struct buf text = { 0 };
	struct str rest, path = { "", 0 };
	uint64_t base = 0;

	maps_done(maps);
	read_text(root, pid, &text);
	rest = (struct str){ text.at, text.len };
	while (rest.at && rest.len && maps->count < MAPPINGS_MAX) {
		struct line line;
		struct mapping *mapping;

		if (!parse(str_cut(&rest, '\n'), &line))
			continue;
		if (!str_same(line.path, path) || !line.offset) {
			path = line.path;
			base = line.start - line.offset;
		}
		mapping = VEC_ADD(maps);
		mapping->start = line.start;
		mapping->end = line.end;
		mapping->base = base;
		mapping->is_code = line.is_code;
		mapping->path = mem_alloc(path.len + 1);
		if (path.len)
			memcpy(mapping->path, path.at, path.len);
		mapping->path[path.len] = 0;
	}
	buf_done(&text);
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps->at[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < maps->at[low - 1].end ? &maps->at[low - 1] : NULL;
}

bool maps_is_made(const struct mapping *mapping)
{
	static const char *const starts[] = { "[",         "//anon",         "/memfd:",
					      "/dev/zero", "/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		if (str_starts(str_of(mapping->path), starts[i]))
			return true;
	}
	return !mapping->path[0];
}

/* "mnt:[4026531841]"; false: it can't be told. */
static bool namespace_of(const char *root, const char *process, char *ret_name, size_t size)
{
	struct buf path = { 0 };
	ssize_t len;

	buf_printf(&path, "%s/proc/%s/ns/mnt", root, process);
	len = readlink(path.at, ret_name, size - 1);
	buf_done(&path);
	ret_name[len > 0 ? len : 0] = 0;
	return len > 0;
}

void maps_files_load(struct maps_files *files, const char *root, int64_t pid)
{
	char number[32], its[64], ours[64];

	(void)snprintf(number, sizeof(number), "%lld", (long long)pid);
	buf_clear(&files->path);
	if (namespace_of(root, number, its, sizeof(its)) &&
	    namespace_of(root, "self", ours, sizeof(ours)) && strcmp(its, ours) != 0)
		buf_printf(&files->path, "%s/proc/%s/root", root, number);
	files->prefix = files->path.len;
}

void maps_files_done(struct maps_files *files)
{
	buf_done(&files->path);
	files->prefix = 0;
}

const char *maps_file(struct maps_files *files, struct str path)
{
	if (!path.len || path.at[0] != '/' || str_starts(path, "/proc/") ||
	    (str_starts(path, "/dev/") && !str_starts(path, "/dev/shm/")))
		return NULL;
	files->path.len = files->prefix;
	buf_add(&files->path, path.at, path.len);
	buf_add(&files->path, "", 1);
	return files->path.at;
}
