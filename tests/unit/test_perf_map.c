/* Perf maps: their lines, and the files of invented processes. */
#include <fcntl.h>

#include "base/buf.h"
#include "collect/perf_map.h"
#include "collect/perf_map_file.h"

#include "proc_tree.h"

static const int64_t SECOND = 1000000000;

static const char *find(struct perf_map *map, uint64_t address)
{
	bool is_python;

	return perf_map_find(map, address, &is_python);
}

static void feed(struct perf_map *map, const char *text)
{
	perf_map_feed(map, text, strlen(text));
}

Test(perf_map, an_entry_names_its_addresses_and_no_others)
{
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();

	feed(map, "1000 20 one\n1040 10 LazyCompile:*two /srv/app.js:3:1\n");
	cr_assert_null(find(map, 0xfff));
	cr_assert_str_eq(find(map, 0x1000), "one");
	cr_assert_str_eq(find(map, 0x101f), "one");
	cr_assert_null(find(map, 0x1020));
	cr_assert_str_eq(find(map, 0x104f), "LazyCompile:*two /srv/app.js:3:1");
	cr_assert_null(find(map, 0x1050));
	cr_assert_null(find(map, UINT64_MAX));
}

Test(perf_map, functions_of_python_are_named_as_python_h_names_them)
{
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();
	bool is_python;

	feed(map, "10 b py::make.<locals>.collate:/home/me/data.py\n"
		  "20 b py::_find_and_load:<frozen importlib._bootstrap>\n"
		  "30 b py::broken\n40 b python\n");
	cr_assert_str_eq(perf_map_find(map, 0x10, &is_python), "collate data.py");
	cr_assert(is_python);
	cr_assert_str_eq(find(map, 0x20), "_find_and_load <frozen importlib._bootstrap>");
	cr_assert_str_eq(perf_map_find(map, 0x30, &is_python), "py::broken");
	cr_assert_not(is_python);
	cr_assert_str_eq(find(map, 0x40), "python");
}

Test(perf_map, lines_that_are_no_entries_are_counted_and_skipped)
{
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();
	struct perf_map_counts counts;

	feed(map, "\n10 zz size\n10 0 empty\n10 10\n10 10 \n-1 10 sign\nffffffffffffffff 2 wraps\n"
		  "11111111111111111 1 wide\n20 8 a;b\x01\xff"
		  "c\r\n");
	counts = perf_map_counts(map);
	cr_assert_eq(counts.malformed, 8);
	cr_assert_eq(counts.entries, 1);
	cr_assert_str_eq(find(map, 0x20), "a?b??c");
}

Test(perf_map, a_line_without_end_takes_no_memory_and_spoils_no_other)
{
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();
	static char block[65536];
	struct perf_map_counts counts;

	memset(block, 'a', sizeof(block));
	feed(map, "10 10 before\n20 10 ");
	for (int i = 0; i < 100; i++)
		perf_map_feed(map, block, sizeof(block));
	feed(map, "\n30 10 after\n");
	counts = perf_map_counts(map);
	cr_assert_eq(counts.malformed, 1);
	cr_assert_eq(counts.entries, 2);
	cr_assert_null(find(map, 0x20));
	cr_assert_str_eq(find(map, 0x30), "after");
}

Test(perf_map, a_line_may_come_in_pieces_and_counts_once_it_ends)
{
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();

	feed(map, "10 1");
	feed(map, "0 na");
	cr_assert_null(find(map, 0x10));
	feed(map, "me");
	cr_assert_null(find(map, 0x10));
	feed(map, "\n");
	cr_assert_str_eq(find(map, 0x1f), "name");
}

/* Against a plain array, whatever the order and the portions. */
Test(perf_map, the_latest_entry_of_an_address_is_right)
{
	enum { SPACE = 256, ROUNDS = 300 };
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();
	int truth[SPACE] = { 0 };
	uint64_t random = 88172645463325252u;

	for (int round = 1; round <= ROUNDS; round++) {
		char line[64];
		uint64_t start, size;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		start = random % (SPACE - 32);
		size = 1 + random / 1024 % 31;
		(void)snprintf(line, sizeof(line), "%llx %llx n%d\n", (unsigned long long)start,
			       (unsigned long long)size, round);
		feed(map, line);
		for (uint64_t i = start; i < start + size; i++)
			truth[i] = round;
		if (random / 65536 % 3)
			continue;
		for (uint64_t i = 0; i < SPACE; i++) {
			const char *name = find(map, i);

			(void)snprintf(line, sizeof(line), "n%d", truth[i]);
			cr_assert_eq(name != NULL, truth[i] != 0);
			cr_assert(!name || !strcmp(name, line), "%s is %s at %llu", name, line,
				  (unsigned long long)i);
		}
	}
}

Test(perf_map, a_million_entries_is_where_it_ends)
{
	OWN(perf_map_freep) struct perf_map *map = perf_map_new();
	struct perf_map_counts counts;

	for (int i = 0; i < (1 << 20) + 5; i++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "%x 10 f%d\n", 32 * i, i % 1000);
		feed(map, line);
	}
	counts = perf_map_counts(map);
	cr_assert_eq(counts.entries, 1 << 20);
	cr_assert_eq(counts.left_out, 5);
	cr_assert_str_eq(find(map, 32 * 1001), "f1");
}

struct rig {
	struct proc_tree tree;
	struct perf_map_file *file;
	int64_t now_ns;
};

static void start(struct rig *rig)
{
	tree_make(&rig->tree);
	tree_process(&rig->tree, 77, "python", (int)geteuid(), 1);
	rig->file = perf_map_file_new(rig->tree.root, 77);
}

static void end(struct rig *rig)
{
	perf_map_file_free(rig->file);
	tree_remove(&rig->tree);
}

/* An hour later, so that no rest is in the way. */
static const char *at(struct rig *rig, uint64_t address)
{
	bool is_python;
	const char *name;

	rig->now_ns += 3600 * SECOND;
	name = perf_map_file_find(rig->file, address, rig->now_ns, &is_python);
	return name ? name : "-";
}

static void path_of(const struct rig *rig, const char *path, char ret[512])
{
	(void)snprintf(ret, 512, "%s/%s", rig->tree.root, path);
}

Test(perf_map, a_file_is_read_on_as_it_grows_and_after_it_has_gone)
{
	struct rig rig = { 0 };
	char path[512];
	int file;

	start(&rig);
	cr_assert_str_eq(at(&rig, 0x10), "-");
	tree_file(&rig.tree, "tmp/perf-77.map", "10 10 one\n20 10 tw");
	cr_assert_str_eq(at(&rig, 0x10), "one");
	cr_assert_str_eq(at(&rig, 0x20), "-");
	path_of(&rig, "tmp/perf-77.map", path);
	file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	cr_assert_eq(write(file, "o\n10 10 again\n", 14), 14);
	cr_assert_str_eq(at(&rig, 0x20), "two");
	cr_assert_str_eq(at(&rig, 0x10), "again");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(write(file, "30 10 three\n", 12), 12);
	cr_assert_str_eq(at(&rig, 0x30), "three");
	(void)close(file);
	end(&rig);
}

Test(perf_map, a_file_that_was_written_anew_is_read_anew)
{
	struct rig rig = { 0 };

	start(&rig);
	tree_file(&rig.tree, "tmp/perf-77.map", "10 10 one\n20 10 two\n");
	cr_assert_str_eq(at(&rig, 0x10), "one");
	tree_file(&rig.tree, "tmp/perf-77.map", "20 10 short\n");
	cr_assert_str_eq(at(&rig, 0x20), "short");
	cr_assert_str_eq(at(&rig, 0x10), "-");
	end(&rig);
}

Test(perf_map, looks_have_rests_between_them)
{
	struct rig rig = { 0 };
	bool is_python;

	start(&rig);
	cr_assert_null(perf_map_file_find(rig.file, 0x10, SECOND, &is_python));
	tree_file(&rig.tree, "tmp/perf-77.map", "10 10 one\n");
	cr_assert_null(perf_map_file_find(rig.file, 0x10, SECOND + 1, &is_python));
	cr_assert_str_eq(perf_map_file_find(rig.file, 0x10, 2 * SECOND, &is_python), "one");
	end(&rig);
}

Test(perf_map, links_folders_and_pipes_are_not_opened)
{
	struct rig rig = { 0 };
	char path[512];

	start(&rig);
	tree_file(&rig.tree, "elsewhere", "10 10 one\n");
	tree_link(&rig.tree, "tmp/perf-77.map", "../elsewhere");
	cr_assert_str_eq(at(&rig, 0x10), "-");
	path_of(&rig, "tmp/perf-77.map", path);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_str_eq(at(&rig, 0x10), "-");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_str_eq(at(&rig, 0x10), "-");
	end(&rig);
}

Test(perf_map, a_file_of_another_user_or_of_an_older_process_is_not_taken)
{
	struct rig rig = { 0 };
	struct timespec old[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };
	char path[512];

	start(&rig);
	tree_file(&rig.tree, "tmp/perf-77.map", "10 10 one\n");
	path_of(&rig, "tmp/perf-77.map", path);
	cr_assert_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	cr_assert_str_eq(at(&rig, 0x10), "-");
	cr_assert_eq(utimensat(AT_FDCWD, path, NULL, 0), 0);
	if (!geteuid()) {
		cr_assert_eq(chown(path, 12345, 12345), 0);
		cr_assert_str_eq(at(&rig, 0x10), "-");
		cr_assert_eq(chown(path, 0, 0), 0);
	}
	cr_assert_str_eq(at(&rig, 0x10), "one");
	end(&rig);
}

Test(perf_map, in_a_container_it_is_the_one_of_its_own_tmp_and_number)
{
	struct rig rig = { 0 };

	start(&rig);
	tree_file(&rig.tree, "proc/77/status", "Name:\tx\nNSpid:\t77\t5\t3\n");
	tree_link(&rig.tree, "proc/77/ns/mnt", "mnt:[2]");
	tree_link(&rig.tree, "proc/self/ns/mnt", "mnt:[1]");
	tree_file(&rig.tree, "tmp/perf-77.map", "10 10 ours\n");
	tree_file(&rig.tree, "tmp/perf-3.map", "10 10 ours\n");
	tree_file(&rig.tree, "proc/77/root/tmp/perf-3.map", "10 10 its\n");
	cr_assert_str_eq(at(&rig, 0x10), "its");
	end(&rig);
}
