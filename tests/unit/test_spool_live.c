/*
 * Spools that are too small for what a program does, filled by the injection
 * library itself (tests/inject/host.c, on puppets): what is lost is counted.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/spool.h"
#include "sink_record.h"
#include "wire/segment.h"

static struct err err;

struct world {
	struct spool *spool;
	struct record *record;
	struct spool_status status;
};

static struct world world_open(struct spool_opts opts)
{
	struct world world = { .record = record_new() };

	/* One of another build would fill nothing. */
	cr_assert_eq(spool_check_library(INJECT_LIBRARY, &err), 0, "%s", err.line);
	cr_assert_eq(spool_open(&opts, &world.spool, &err), 0, "%s", err.line);
	return world;
}

static void world_close(struct world *world)
{
	spool_close(world->spool);
	record_free(world->record);
}

/* Its standard input is the pipe `input`, if that is not negative. */
static pid_t start(struct world *world, const char *scenario, int input)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	(void)setenv("LD_LIBRARY_PATH", HOST_DIR, 1);
	(void)setenv("CUDA_INJECTION64_PATH", INJECT_LIBRARY, 1);
	(void)setenv("NVTX_INJECTION64_PATH", INJECT_LIBRARY, 1);
	(void)setenv("SONDE_SPOOL", spool_path(world->spool), 1);
	(void)setenv("SONDE_TRACE", "cuda,nvtx", 1);
	/* What finds no room is counted whatever it is: only what the program did is wanted. */
	(void)setenv("PUPPET_CUPTI", "no-overhead", 1);
	if (input >= 0)
		(void)dup2(input, STDIN_FILENO);
	(void)!freopen("/dev/null", "w", stdout);
	execl(HOST_DIR "/host", "host", scenario, NULL);
	_exit(127);
}

static void end(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* All of the scenario happens before the first take. */
static void fill(struct world *world, const char *scenario)
{
	end(start(world, scenario, -1));
	cr_assert_geq(spool_finish(world->spool, &world->record->sink, &err), 0);
	spool_status(world->spool, &world->status);
	cr_assert_eq(world->status.processes, 1);
}

Test(spool_live, kernels_that_found_no_buffer_are_counted)
{
	struct world world = world_open(
		(struct spool_opts){ .segments = 1, .buffers = 2, .buffer_bytes = 4096 });

	fill(&world, "many");
	cr_assert_gt(world.status.kernels, 0);
	cr_assert_lt(world.status.kernels, 20000);
	/* A launch is a kernel and a call; and a module was loaded. */
	cr_assert_eq(world.status.kernels + world.status.calls + world.status.dropped, 40001,
		     "%ld kernels, %ld calls, %ld dropped", (long)world.status.kernels,
		     (long)world.status.calls, (long)world.status.dropped);
	world_close(&world);
}

/* Of the program's own; the driver's modules are marks, too. */
static size_t own_marks(const struct world *world, size_t *ret_named)
{
	const struct record *record = world->record;
	size_t count = 0;

	*ret_named = 0;
	for (size_t i = 0; i < record->marks.count; i++) {
		if (record->marks.at[i].kind != MARK_TEXT)
			continue;
		count++;
		*ret_named +=
			session_text(record->sink.session, record->marks.at[i].name)[0] != '(';
	}
	return count;
}

Test(spool_live, marks_that_found_no_slot_are_counted)
{
	struct world world = world_open((struct spool_opts){ .segments = 1 });
	int64_t marks;
	size_t named;

	fill(&world, "marks");
	marks = (int64_t)own_marks(&world, &named);
	cr_assert_gt(marks, 200000);
	cr_assert_lt(marks, 300000);
	cr_assert_eq(marks + world.status.dropped, 300000);
	world_close(&world);
}

Test(spool_live, marks_whose_text_found_no_room_are_there_without_it)
{
	struct world world = world_open((struct spool_opts){ .segments = 1 });
	size_t texts;

	fill(&world, "long_texts");
	cr_assert_eq(own_marks(&world, &texts), 3000);
	cr_assert_gt(texts, 2000);
	cr_assert_lt(texts, 3000);
	world_close(&world);
}

/* Of all that a process can be made to map. */
static uint64_t most_of(uint64_t memory)
{
	struct world world = world_open((struct spool_opts){ .segments = 1, .memory = memory });
	int file = open(spool_path(world.spool), O_RDONLY | O_CLOEXEC);
	struct segment head = { 0 };

	cr_assert_eq(pread(file, &head, offsetof(struct segment, buffers), SPOOL_HEAD),
		     (ssize_t)offsetof(struct segment, buffers));
	close(file);
	world_close(&world);
	cr_assert_geq(head.overflow_bytes, UINT64_C(256) << 10, "some threads find no buffer");
	return head.bytes + head.overflow_bytes;
}

Test(spool_live, a_process_maps_no_more_than_was_allowed)
{
	static const uint64_t MIB = 1 << 20;

	cr_assert_lt(most_of(0), 64 * MIB);
	cr_assert_gt(most_of(0), 60 * MIB);
	for (uint64_t memory = SPOOL_MEMORY_LEAST; memory <= SPOOL_MEMORY_MOST; memory *= 2)
		cr_assert_lt(most_of(memory), memory);
	cr_assert_lt(most_of(100 * MIB + 1), 100 * MIB + 1);
}

Test(spool_live, with_little_memory_marks_are_lost_and_counted)
{
	struct world world =
		world_open((struct spool_opts){ .segments = 1, .memory = SPOOL_MEMORY_LEAST });
	int64_t marks;
	size_t named;

	fill(&world, "marks");
	marks = (int64_t)own_marks(&world, &named);
	cr_assert_gt(marks, 50000);
	cr_assert_lt(marks, 70000);
	cr_assert_eq(marks + world.status.dropped, 300000);
	world_close(&world);
}

Test(spool_live, processes_that_found_no_segment_run_on_and_are_counted)
{
	struct world world = world_open((struct spool_opts){ .segments = 2 });
	struct timespec tick = { 0, 5000000 };
	pid_t pids[5];
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < 5; i++)
		pids[i] = start(&world, "wait", ends[0]);
	do { /* until each has claimed a segment or found none */
		(void)nanosleep(&tick, NULL);
		cr_assert_geq(spool_take(world.spool, &world.record->sink, &err), 0);
		spool_status(world.spool, &world.status);
		cr_assert_eq(world.status.stranger, 0, "%s", spool_complaint(world.spool, 0));
	} while (world.status.processes + world.status.unserved < 5);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 5; i++)
		end(pids[i]);
	cr_assert_geq(spool_finish(world.spool, &world.record->sink, &err), 0);
	spool_status(world.spool, &world.status);
	cr_assert_eq(world.status.unserved, 3);
	cr_assert_eq(world.status.processes, 2);
	cr_assert_eq(world.status.kernels, 20);
	cr_assert_eq(world.status.dropped, 0);
	world_close(&world);
}

/* As a sonde of another build would make it; the place of the version is every build's. */
static void make_it_of_another_build(const struct world *world)
{
	uint32_t version = SEGMENT_VERSION + 1;
	int file = open(spool_path(world->spool), O_RDWR | O_CLOEXEC);

	cr_assert_eq(pwrite(file, &version, sizeof(version), 8), (ssize_t)sizeof(version));
	close(file);
}

Test(spool_live, a_library_of_another_build_records_nothing_and_says_so)
{
	struct world world = world_open((struct spool_opts){ .segments = 2 });
	char line[256];

	make_it_of_another_build(&world);
	end(start(&world, "one", -1));
	end(start(&world, "nvtx", -1));
	cr_assert_geq(spool_finish(world.spool, &world.record->sink, &err), 0);
	spool_status(world.spool, &world.status);
	cr_assert_eq(world.status.processes, 0);
	cr_assert_eq(world.status.stranger, SEGMENT_VERSION);
	snprintf(line, sizeof(line),
		 "the library in a process is of another build of sonde (version %d, not %d): "
		 "nothing of it is recorded",
		 SEGMENT_VERSION, SEGMENT_VERSION);
	cr_assert_str_eq(spool_complaint(world.spool, 0), line);
	cr_assert_null(spool_complaint(world.spool, 1));
	world_close(&world);
}

/* A copy of the library with its mark changed. */
static void marked(const char *path, const char *word, uint32_t version)
{
	OWN(own_fclosep) FILE *in = fopen(INJECT_LIBRARY, "re"), *out = fopen(path, "we");
	static char bytes[16 << 20];
	size_t len;
	char *at;

	cr_assert_not_null(in);
	cr_assert_not_null(out);
	len = fread(bytes, 1, sizeof(bytes), in);
	at = memmem(bytes, len, SEGMENT_MARK_WORD, sizeof(SEGMENT_MARK_WORD));
	cr_assert_not_null(at);
	memcpy(at, word, strlen(word));
	memcpy(at + offsetof(struct segment_mark, version), &version, sizeof(version));
	cr_assert_eq(fwrite(bytes, 1, len, out), len);
}

Test(spool_live, a_library_of_another_build_is_known_by_its_file)
{
	char path[] = "/tmp/sonde-test-XXXXXX", line[512];
	int file = mkstemp(path);

	cr_assert_geq(file, 0);
	close(file);
	marked(path, SEGMENT_MARK_WORD, 3);
	cr_assert_eq(spool_check_library(path, &err), ERR_UNSUPPORTED);
	snprintf(line, sizeof(line),
		 "%s is of another build of sonde: it writes recordings of version 3, this sonde "
		 "reads version %d",
		 path, SEGMENT_VERSION);
	cr_assert_str_eq(err.line, line);
	marked(path, "sonde segment mask:", SEGMENT_VERSION);
	cr_assert_eq(spool_check_library(path, &err), ERR_UNSUPPORTED);
	snprintf(line, sizeof(line), "%s is no library of sonde's, or one of an older build", path);
	cr_assert_str_eq(err.line, line);
	marked(path, SEGMENT_MARK_WORD, SEGMENT_VERSION);
	cr_assert_eq(spool_check_library(path, &err), 0);
	unlink(path);
	cr_assert_eq(spool_check_library(path, &err), ERR_MISSING);
	cr_assert_eq(spool_check_library("/tmp", &err), ERR_UNSUPPORTED);
}
