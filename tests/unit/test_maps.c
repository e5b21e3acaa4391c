/* Files of a process by names of its own. */
#include "collect/maps.h"

#include "proc_tree.h"

static struct proc_tree tree;

static void make(void)
{
	tree_make(&tree);
	tree_link(&tree, "proc/self/ns/mnt", "mnt:[1]");
	tree_link(&tree, "proc/77/ns/mnt", "mnt:[1]");
}

static void end(void)
{
	tree_remove(&tree);
}

TestSuite(maps, .init = make, .fini = end);

/* `path` of process 77 without the invented root, NULL as it is. */
static const char *file(const char *path)
{
	static char kept[512];
	struct maps_files files = { 0 };
	const char *found;

	maps_files_load(&files, tree.root, 77);
	(void)maps_file(&files, str_of("/another/before/it"));
	found = maps_file(&files, str_of(path));
	if (found)
		(void)snprintf(kept, sizeof(kept), "%s",
			       found + (strstr(found, tree.root) == found ? strlen(tree.root) : 0));
	maps_files_done(&files);
	return found ? kept : NULL;
}

Test(maps, files_are_ours_where_the_process_sees_what_we_see)
{
	cr_assert_str_eq(file("/lib/x.so"), "/lib/x.so");
	tree_link(&tree, "proc/77/ns/mnt", "mnt:[2]");
	cr_assert_str_eq(file("/lib/x.so"), "/proc/77/root/lib/x.so");
	tree_link(&tree, "proc/77/ns/mnt", "mnt:[1]");
	cr_assert_str_eq(file("/lib/x.so"), "/lib/x.so");
}

/* A process that ended, or another user's. */
Test(maps, files_are_taken_for_ours_where_it_can_not_be_told)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/proc/77/ns/mnt", tree.root);
	cr_assert_eq(unlink(path), 0);
	cr_assert_str_eq(file("/lib/x.so"), "/lib/x.so");
}

Test(maps, what_is_another_file_to_us_is_none)
{
	static const char *const none[] = { "",
					    "x.so",
					    "./x.so",
					    "[vdso]",
					    "/proc/self/fd/5",
					    "/proc/77/root/x.so",
					    "/dev/fd/5",
					    "/dev/nvidia0",
					    "/dev/zero" };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_assert_null(file(none[i]), "%s", none[i]);
	cr_assert_str_eq(file("/dev/shm/x.so"), "/dev/shm/x.so");
	cr_assert_str_eq(file("/process/x.so"), "/process/x.so");
}
