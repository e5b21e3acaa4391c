#include "collect/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

/* A directory of more names than this is not what we look for. */
enum { NAMES_MAX = 65536, LINK_MAX_BYTES = 4096, READ_BYTES = 4096, LINE_MAX_BYTES = 4096 };

static const char *path_of(const struct tree *tree, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

static const char *path_of(const struct tree *tree, const char *fmt, va_list args)
{
	struct buf path = { 0 };
	const char *kept;

	buf_text(&path, tree->root);
	buf_vprintf(&path, fmt, args);
	kept = arena_text(tree->arena, path.at, path.len);
	buf_done(&path);
	return kept;
}

const char *tree_path(const struct tree *tree, const char *fmt, ...)
{
	const char *path;
	va_list args;

	va_start(args, fmt);
	path = path_of(tree, fmt, args);
	va_end(args);
	return path;
}

/* Never waits: a FIFO or a device in an invented tree is no text. */
static const char *read_text(const struct tree *tree, const char *path, size_t most)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct buf text = { 0 };
	struct stat stat = { 0 };
	const char *kept = NULL;
	char part[READ_BYTES];
	ssize_t got = -1;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode)) {
		while (text.len < most &&
		       ((got = read(fd, part, sizeof(part))) > 0 || (got < 0 && errno == EINTR)))
			buf_add(&text, part, got > 0 ? (size_t)got : 0);
	}
	(void)close(fd);
	for (size_t i = 0; i < text.len; i++) {
		if (!text.at[i])
			text.at[i] = ' ';
	}
	if (got >= 0)
		kept = arena_text(tree->arena, text.at ? text.at : "", text.len);
	buf_done(&text);
	return kept;
}

const char *tree_text(const struct tree *tree, const char *fmt, ...)
{
	const char *path;
	va_list args;

	va_start(args, fmt);
	path = path_of(tree, fmt, args);
	va_end(args);
	return read_text(tree, path, TREE_TEXT_MAX);
}

const char *tree_line(const struct tree *tree, const char *fmt, ...)
{
	const char *path, *text;
	struct str line;
	va_list args;

	va_start(args, fmt);
	path = path_of(tree, fmt, args);
	va_end(args);
	if (!(text = read_text(tree, path, LINE_MAX_BYTES)))
		return NULL;
	line = str_of(text);
	line = str_trim(str_cut(&line, '\n'));
	return arena_text(tree->arena, line.at ? line.at : "", line.len);
}

const char *tree_link(const struct tree *tree, const char *fmt, ...)
{
	char target[LINK_MAX_BYTES];
	const char *path;
	va_list args;
	ssize_t len;

	va_start(args, fmt);
	path = path_of(tree, fmt, args);
	va_end(args);
	len = readlink(path, target, sizeof(target));
	if (len <= 0 || (size_t)len == sizeof(target))
		return NULL;
	return arena_text(tree->arena, target, (size_t)len);
}

bool tree_has(const struct tree *tree, const char *fmt, ...)
{
	struct stat stat;
	const char *path;
	va_list args;

	va_start(args, fmt);
	path = path_of(tree, fmt, args);
	va_end(args);
	return !lstat(path, &stat);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *tree_names(const struct tree *tree, const char *path, size_t *ret_count)
{
	DIR *dir = opendir(tree_path(tree, "%s", path));
	VEC(const char *) names = { 0 };
	const char *const *kept = NULL;
	struct dirent *entry;

	*ret_count = 0;
	if (!dir)
		return NULL;
	while (names.count < NAMES_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			*VEC_ADD(&names) =
				arena_text(tree->arena, entry->d_name, strlen(entry->d_name));
	}
	(void)closedir(dir);
	if (names.count) {
		char *copy = arena_alloc(tree->arena, names.count * sizeof(*names.at));

		qsort(names.at, names.count, sizeof(*names.at), by_name);
		memcpy(copy, names.at, names.count * sizeof(*names.at));
		kept = (const char *const *)(void *)copy;
		*ret_count = names.count;
	}
	VEC_DONE(&names);
	return kept;
}

const char *tree_variable(const struct tree *tree, const char *name)
{
	size_t len = strlen(name);

	for (char *const *at = tree->variables; at && *at; at++) {
		if (!strncmp(*at, name, len) && (*at)[len] == '=')
			return *at + len + 1;
	}
	return NULL;
}

const char *tree_value(const struct tree *tree, const char *text, const char *key)
{
	struct str rest = text ? str_of(text) : (struct str){ 0 };

	while (rest.at) {
		struct str line = str_cut(&rest, '\n');
		struct str left = str_cut(&line, ':');

		if (line.at && str_is(str_trim(left), key)) {
			line = str_trim(line);
			return arena_text(tree->arena, line.at, line.len);
		}
	}
	return NULL;
}
