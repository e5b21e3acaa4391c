/*
 * CUDA on the disk: toolkits, and each libcupti a target could get.
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "collect/host_part.h"

static void add_toolkit(const struct tree *tree, struct host *host, const char *name)
{
	struct host_toolkit *toolkit;
	const char *path = arena_printf(tree->arena, "/usr/local/%s", name);

	if (!tree_has(tree, "%s/bin", path) && !tree_has(tree, "%s/lib64", path) &&
	    !tree_has(tree, "%s/lib", path))
		return;
	toolkit = VEC_ADD(&host->toolkits);
	toolkit->path = path;
	toolkit->version = name + 5;
	toolkit->nvcc = tree_has(tree, "%s/bin/nvcc", path);
}

/* /usr/local/cuda-13.0. /usr/local/cuda is a link to one of them, or the
 * folder of a single toolkit with a version.json. */
static void find_toolkits(const struct tree *tree, struct host *host)
{
	size_t count;
	const char *const *names = tree_names(tree, "/usr/local", &count);

	for (size_t i = 0; i < count; i++) {
		if (!strncmp(names[i], "cuda-", 5) && isdigit((unsigned char)names[i][5]))
			add_toolkit(tree, host, names[i]);
	}
}

/* "libcupti.so.12" -> 12; its target's name may tell the version. */
static void add_cupti(const struct tree *tree, struct host *host, const char *folder,
		      const char *origin)
{
	static const char *const sonames[] = { "libcupti.so.13", "libcupti.so.12" };

	for (size_t i = 0; i < sizeof(sonames) / sizeof(*sonames); i++) {
		const char *target, *dot;
		struct host_cupti *cupti;

		if (!tree_has(tree, "%s/%s", folder, sonames[i]))
			continue;
		cupti = VEC_ADD(&host->cuptis);
		cupti->path = arena_printf(tree->arena, "%s/%s", folder, sonames[i]);
		cupti->major = i ? 12 : 13;
		cupti->origin = origin;
		target = tree_link(tree, "%s", cupti->path);
		dot = target ? strstr(target, ".so.") : NULL;
		if (dot && strchr(dot + 4, '.'))
			cupti->version = dot + 4;
		if (tree_has(tree, "%s/libnvperf_host.so", folder))
			host->libnvperf = TRUTH_YES;
	}
}

/* Folders in a list such as LD_LIBRARY_PATH. */
static void find_in_path(const struct tree *tree, struct host *host, const char *variable)
{
	const char *list = tree_variable(tree, variable);
	struct str rest = list ? str_of(list) : (struct str){ 0 };

	while (rest.at) {
		struct str folder = str_cut(&rest, ':');

		if (folder.len && folder.len < 4096)
			add_cupti(tree, host, arena_text(tree->arena, folder.at, folder.len),
				  variable);
	}
}

static void find_cuptis(const struct tree *tree, struct host *host)
{
	static const char *const folders[] = { "extras/CUPTI/lib64", "lib64",
					       "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
					       "lib" };

	find_in_path(tree, host, "LD_LIBRARY_PATH");
	/* The newest toolkit first: names are sorted. */
	for (size_t t = host->toolkits.count; t-- > 0;) {
		size_t before = host->cuptis.count;

		for (size_t i = 0;
		     before == host->cuptis.count && i < sizeof(folders) / sizeof(*folders); i++)
			add_cupti(tree, host,
				  arena_printf(tree->arena, "%s/%s", host->toolkits.at[t].path,
					       folders[i]),
				  "toolkit");
	}
	for (size_t i = 0; i < host->python.folders.count; i++) {
		const char *folder = host->python.folders.at[i];

		add_cupti(tree, host, arena_printf(tree->arena, "%s/cu13/lib", folder),
			  "python package");
		add_cupti(tree, host, arena_printf(tree->arena, "%s/cuda_cupti/lib", folder),
			  "python package");
	}
	add_cupti(tree, host, "/usr/lib/x86_64-linux-gnu", "system");
	add_cupti(tree, host, "/usr/lib64", "system");
}

/* musl has neither our osrt library's symbols nor a CUDA driver. */
static enum truth find_glibc(const struct tree *tree)
{
	static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2",
					       "/lib/ld-linux-aarch64.so.1",
					       "/lib/x86_64-linux-gnu/libc.so.6",
					       "/lib64/libc.so.6" };

	for (size_t i = 0; i < sizeof(loaders) / sizeof(*loaders); i++) {
		if (tree_has(tree, "%s", loaders[i]))
			return TRUTH_YES;
	}
	return tree_has(tree, "/lib/ld-musl-x86_64.so.1") ||
			       tree_has(tree, "/lib/ld-musl-aarch64.so.1")
		       ? TRUTH_NO
		       : TRUTH_UNKNOWN;
}

void host_read_software(const struct host_look *look, struct host *host)
{
	find_toolkits(&look->tree, host);
	find_cuptis(&look->tree, host);
	if (host->cuptis.count && host->libnvperf == TRUTH_UNKNOWN)
		host->libnvperf = TRUTH_NO;
	host->glibc = find_glibc(&look->tree);
}
