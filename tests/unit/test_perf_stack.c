/* Names of addresses in a process whose map an invented /proc shows. */
#include "collect/perf_stack.h"

#include <sys/mman.h>

#include "base/str.h"

#include "proc_tree.h"

static const int64_t MS = 1000000;
static const uint64_t EARLY = 0x555500000100, LATE = 0x7f0000000100, NOWHERE = 0x1234567;

struct rig {
	struct proc_tree tree;
	struct symbols *symbols;
	struct perf_stack *stack;
	struct buf leaf, chain;
};

static void put_maps(struct rig *rig, const char *more)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "555500000000-555500100000 r-xp 00000000 08:01 1   %s/bin/early\n%s%s%s",
		       rig->tree.root,
		       more ? "7f0000000000-7f0000100000 r-xp 00000000 08:01 2   " : "",
		       more ? rig->tree.root : "", more ? more : "");
	tree_file(&rig->tree, "proc/77/maps", text);
}

static void start(struct rig *rig)
{
	tree_make(&rig->tree);
	put_maps(rig, NULL);
	rig->symbols = symbols_new();
	rig->stack = perf_stack_new(rig->tree.root, 77, rig->symbols);
}

static void end(struct rig *rig)
{
	perf_stack_free(rig->stack);
	symbols_free(rig->symbols);
	buf_done(&rig->leaf);
	buf_done(&rig->chain);
	tree_remove(&rig->tree);
}

static const char *chain(struct rig *rig, uint64_t innermost, uint64_t caller, int64_t now_ns)
{
	uint64_t frames[2] = { innermost, caller };

	buf_clear(&rig->leaf);
	buf_clear(&rig->chain);
	buf_text(&rig->chain, "");
	perf_stack_name(rig->stack, frames, caller ? 2 : 1, now_ns, &rig->leaf, &rig->chain);
	return rig->chain.at;
}

Test(perf_stack, rubbish_callers_do_not_delay_the_naming_of_new_code)
{
	struct rig rig = { 0 };
	int64_t now = 0;

	start(&rig);
	for (; now < 33000 * MS; now += 10 * MS)
		cr_assert_str_eq(chain(&rig, EARLY, NOWHERE, now), "early");
	put_maps(&rig, "/lib/late.so");
	/* The second: the first may fall into the rest after a reading. */
	now += 1000 * MS;
	cr_assert_str_eq(chain(&rig, LATE, 0, now), "late.so");
	end(&rig);
}

Test(perf_stack, a_caller_in_new_code_is_named_too)
{
	struct rig rig = { 0 };

	start(&rig);
	cr_assert_str_eq(chain(&rig, EARLY, 0, 1), "early");
	put_maps(&rig, "/lib/late.so");
	cr_assert_str_eq(chain(&rig, EARLY, LATE, 60000 * MS), "early < late.so");
	end(&rig);
}

/* The inside of a library that has no names is one; a function that calls itself is not. */
Test(perf_stack, frames_of_a_file_without_names_are_one)
{
	uint64_t frames[4] = { LATE, LATE + 64, LATE + 128, EARLY };
	struct rig rig = { 0 };

	start(&rig);
	put_maps(&rig, "/lib/late.so");
	perf_stack_name(rig.stack, frames, 4, 60000 * MS, &rig.leaf, &rig.chain);
	cr_assert_str_eq(rig.chain.at, "late.so < early");
	cr_assert_str_eq(rig.leaf.at, "late.so");
	end(&rig);
}

Test(perf_stack, what_lies_elsewhere_now_is_named_anew)
{
	struct rig rig = { 0 };

	start(&rig);
	put_maps(&rig, "/lib/one.so");
	cr_assert_str_eq(chain(&rig, LATE, 0, 1), "one.so");
	put_maps(&rig, "/lib/two.so");
	cr_assert_str_eq(chain(&rig, NOWHERE, 0, 60000 * MS), "");
	cr_assert_str_eq(chain(&rig, LATE, 0, 120000 * MS), "two.so");
	end(&rig);
}

/* What lies in no file has the names of the process's perf map. */
Test(perf_stack, code_that_was_made_has_the_names_of_the_perf_map)
{
	struct rig rig = { 0 };
	char text[512];

	start(&rig);
	(void)snprintf(text, sizeof(text),
		       "555500000000-555500100000 r-xp 00000000 08:01 1   %s/bin/early\n"
		       "7f0000000000-7f0000001000 r-xp 00000000 00:00 0\n"
		       "7f0000002000-7f0000003000 rw-p 00000000 00:00 0\n",
		       rig.tree.root);
	tree_file(&rig.tree, "proc/77/maps", text);
	cr_assert_str_eq(chain(&rig, LATE, EARLY, 1), "[code without a file] < early");
	tree_file(&rig.tree, "tmp/perf-77.map",
		  "7f0000000000 180 py::make.<locals>.collate:/home/me/data.py\n"
		  "555500000000 1000 not_of_the_file\n7f0000002000 1000 not_code\n");
	cr_assert_str_eq(chain(&rig, LATE, EARLY, 60000 * MS), "collate data.py < early");
	cr_assert_str_eq(chain(&rig, EARLY, LATE, 60000 * MS), "early < collate data.py");
	cr_assert_str_eq(rig.leaf.at, "early", "a function that Python's called is not Python's");
	cr_assert_str_eq(chain(&rig, LATE + 4096, 0, 60000 * MS), "");
	tree_file(&rig.tree, "tmp/perf-77.map",
		  "7f0000000000 180 py::make.<locals>.collate:/home/me/data.py\n"
		  "555500000000 1000 not_of_the_file\n7f0000002000 1000 not_code\n"
		  "7f0000000100 10 LazyCompile:*collate\n");
	cr_assert_str_eq(chain(&rig, LATE, EARLY, 120000 * MS), "LazyCompile:*collate < early");
	end(&rig);
}

/* As CPython's loop is called: it stands for the function that it runs. */
int _PyEval_EvalFrameDefault(int n);

__attribute__((noinline)) int _PyEval_EvalFrameDefault(int n)
{
	return n + (int)getppid();
}

Test(perf_stack, the_interpreters_loop_stands_for_the_function_that_it_runs)
{
	struct symbols *symbols = symbols_new();
	struct perf_stack *stack = perf_stack_new("", getpid(), symbols);
	char *made = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t frames[] = { (uint64_t)(uintptr_t)&_PyEval_EvalFrameDefault,
			      (uint64_t)(uintptr_t)made + 16,
			      (uint64_t)(uintptr_t)&_PyEval_EvalFrameDefault };
	struct buf leaf = { 0 }, chain = { 0 };
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	(void)unlink(path);
	file = fopen(path, "wxe");
	cr_assert(made != MAP_FAILED && file);
	(void)fprintf(file, "%llx 1000 py::collate:/home/me/data.py\n",
		      (unsigned long long)(uintptr_t)made);
	(void)fclose(file);
	perf_stack_name(stack, frames, 3, 1, &leaf, &chain);
	(void)unlink(path);
	cr_assert_str_eq(leaf.at, "collate data.py");
	cr_assert(str_starts(str_of(chain.at), "_PyEval_EvalFrameDefault < collate data.py < "));
	buf_done(&leaf);
	buf_done(&chain);
	perf_stack_free(stack);
	symbols_free(symbols);
}

int a_function_of_this_test(int n);

__attribute__((noinline)) int a_function_of_this_test(int n)
{
	return n + (int)getpid();
}

/* Tables are read one at a time: until it is its turn a function goes by its file. */
Test(perf_stack, tables_are_read_with_rests_between_them)
{
	struct symbols *symbols = symbols_new();
	struct perf_stack *stack = perf_stack_new("", getpid(), symbols);
	uint64_t here = (uint64_t)(uintptr_t)&a_function_of_this_test;
	struct buf leaf = { 0 }, chain = { 0 };

	cr_assert(symbols_ready(symbols, "/usr/bin/env", 1));
	cr_assert_not(symbols_ready(symbols, "/no/such/file", 1));
	cr_assert(symbols_ready(symbols, "/usr/bin/env", 1), "known");
	perf_stack_name(stack, &here, 1, 1, &leaf, &chain);
	cr_assert_str_eq(leaf.at, "test_perf_stack");
	buf_clear(&leaf);
	perf_stack_name(stack, &here, 1, 3600000 * MS, &leaf, &chain);
	cr_assert_str_eq(leaf.at, "a_function_of_this_test");
	buf_done(&leaf);
	buf_done(&chain);
	perf_stack_free(stack);
	symbols_free(symbols);
}
