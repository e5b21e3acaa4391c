/*
 * host_part.h - the parts of host_read, one file each. Private to collect/.
 */
#pragma once

#include "collect/host.h"
#include "collect/tree.h"

struct host_look {
	struct tree tree;
	const struct host_opts *opts;
	bool here; /* the root is this machine's own */
};

/* Opens a path of the tree: errno, or 0. */
int host_try(const struct host_look *look, const char *path, int flags);

/* Are we in the machine's first namespace of this kind, "pid" or "user"? */
enum truth host_first_namespace(const struct tree *tree, const char *kind);

void host_read_place(const struct host_look *look, struct host *host);
void host_read_rights(const struct host_look *look, struct host *host);
void host_read_driver(const struct host_look *look, struct host *host);
void host_read_cards(const struct host_look *look, struct host *host);
void host_read_sharing(const struct host_look *look, struct host *host);
void host_read_processes(const struct host_look *look, struct host *host);
void host_read_software(const struct host_look *look, struct host *host);
void host_read_python(const struct host_look *look, struct host *host);
