/*
 * proc_tree.h - an invented machine: a folder with /proc, /etc and /var/log.
 */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temp_folder.h"

struct proc_tree {
	struct temp_folder folder;
	const char *root; /* the folder's path */
};

static inline void tree_make(struct proc_tree *tree)
{
	temp_make(&tree->folder, "/tmp");
	tree->root = tree->folder.path;
}

static inline void tree_remove(struct proc_tree *tree)
{
	temp_remove(&tree->folder);
}

/* The folders that lead to `path`. */
static inline void tree_folders(struct proc_tree *tree, const char *path, char *ret_full,
				size_t room)
{
	int len = snprintf(ret_full, room, "%s/%s", tree->root, path);

	cr_assert(len > 0 && (size_t)len < room);
	for (char *at = ret_full + strlen(tree->root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		(void)mkdir(ret_full, 0755);
		*at = '/';
	}
}

static inline void tree_bytes(struct proc_tree *tree, const char *path, const void *at, size_t len)
{
	char full[512];
	FILE *file;

	tree_folders(tree, path, full, sizeof(full));
	file = fopen(full, "we");
	cr_assert(file && fwrite(at, 1, len, file) == len, "%s", full);
	(void)fclose(file);
}

static inline void tree_file(struct proc_tree *tree, const char *path, const char *text)
{
	tree_bytes(tree, path, text, strlen(text));
}

static inline void tree_link(struct proc_tree *tree, const char *path, const char *target)
{
	char full[512];

	tree_folders(tree, path, full, sizeof(full));
	(void)unlink(full);
	cr_assert_eq(symlink(target, full), 0, "%s", full);
}

/* A process that has run for `cpu_ticks`, started at `start_ticks`. */
static inline void tree_process(struct proc_tree *tree, int pid, const char *comm, int uid,
				int start_ticks)
{
	char path[64], text[512];

	(void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
	(void)snprintf(text, sizeof(text),
		       "%d (%s) S 1 1 1 0 -1 4194560 10 0 0 0 150 50 0 0 20 0 4 0 %d 99999999 256 "
		       "18446744073709551615 1 1 0\n",
		       pid, comm, start_ticks);
	tree_file(tree, path, text);
	(void)snprintf(path, sizeof(path), "proc/%d/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\tx\nUid:\t0\t%d\t%d\t%d\nGid:\t0\t0\t0\t0\n", uid,
		       uid, uid);
	tree_file(tree, path, text);
}
