/*
 * state.c - set-up, the entry points, and what "off" means.
 *
 * InitializeInjection is called by the driver inside cuInit,
 * InitializeInjectionNvtx2 by the first NVTX call; whichever comes first
 * claims a segment. Both always report success.
 */
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/nvtx.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);
EXPORT int InitializeInjectionNvtx2(nvtx_get_table *get_table);

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;

void inject_reason(struct inject *inject, enum segment_reason reason, uint32_t detail)
{
	struct segment *segment = atomic_load(&inject->segment);

	uint32_t before;

	if (!segment)
		return;
	/* The first reason stays, but what only took the samples away gives way. */
	before = atomic_load(&segment->reason);
	if (before && before != SEGMENT_REASON_NO_PC_SAMPLING && before != SEGMENT_REASON_PC_MEMORY)
		return;
	atomic_store(&segment->reason_detail, detail);
	atomic_store(&segment->reason, reason);
}

/* Kinds are off; NVTX goes on. */
void inject_off(struct inject *inject, enum segment_reason reason, uint32_t detail)
{
	inject_reason(inject, reason, detail);
	atomic_store(&inject->active, false);
}

/* [setup] The digits at `at`; *ret_end behind them. 0 if there are none. */
static uint64_t digits(const char *at, const char **ret_end)
{
	uint64_t number = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	if (ret_end)
		*ret_end = at;
	return number;
}

/* [setup] Field 22 of /proc/self/stat. */
static uint64_t start_ticks(void)
{
	char line[1024];
	int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t len = file < 0 ? -1 : read(file, line, sizeof(line) - 1);
	char *at;

	if (file >= 0)
		close(file);
	if (len <= 0)
		return 0;
	line[len] = 0;
	at = strrchr(line, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? digits(at + 1, NULL) : 0;
}

static uint32_t number_from(const char *name)
{
	const char *value = secure_getenv(name);
	const char *end;
	uint64_t number;

	if (!value || !*value)
		return UINT32_MAX;
	number = digits(value, &end);
	return *end || number >= UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static void read_options(struct inject *inject)
{
	static const char *const words[] = {
#define X(id, word) word,
		TRACE_LIST(X)
#undef X
	};
	const char *at = secure_getenv(SEGMENT_OPTIONS_ENV);

	while (at && *at) {
		size_t len = strcspn(at, ",");

		for (size_t i = 0; i < TRACE_COUNT; i++) {
			if (strlen(words[i]) == len && !memcmp(words[i], at, len))
				inject->trace |= (uint64_t)1 << i;
		}
		if (!strncmp(at, "range-nvtx=", 11) && len - 11 < sizeof(inject->range))
			memcpy(inject->range, at + 11, len - 11);
		if (!strncmp(at, "pc-period=", 10))
			inject->pc_period = (uint32_t)digits(at + 10, NULL);
		if (!strncmp(at, "pc-scratch=", 11))
			inject->pc_scratch_bytes = digits(at + 11, NULL);
		if (!strncmp(at, "pc-memory=", 10))
			inject->pc_hardware_bytes = digits(at + 10, NULL);
		at += len + (at[len] == ',');
	}
}

/* In a forked child CUDA is dead, but its calls can still be traced into lent
 * buffers: give the child memory of its own in their place. */
static void cut_off_child(void)
{
	struct inject *inject = inject_state;
	static struct segment *mapped;
	static size_t bytes;

	if (atomic_load(&inject->segment)) { /* in the parent, before the fork */
		mapped = atomic_load(&inject->segment);
		bytes = mapped->bytes;
	} else if (mapped) {
		(void)mmap(mapped, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		mapped = NULL;
	}
}

/* [setup] The first free segment of the spool, ours from now on. */
static struct segment *claim(int file, uint32_t pid)
{
	struct spool_head *head =
		mmap(NULL, SPOOL_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	struct segment *segment = MAP_FAILED;

	if (head == MAP_FAILED)
		return NULL;
	if (head->magic == SPOOL_MAGIC && head->version == SEGMENT_VERSION) {
		uint32_t index = 0;

		for (; index < head->count && index < SEGMENT_COUNT_MAX; index++) {
			uint32_t none = 0;

			if (atomic_compare_exchange_strong(&head->owner[index], &none, pid))
				break;
		}
		if (index < head->count && index < SEGMENT_COUNT_MAX)
			segment =
				mmap(NULL, head->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				     file, (off_t)(SPOOL_HEAD + index * head->segment_bytes));
		else
			atomic_fetch_add(&head->unserved, 1);
	}
	munmap(head, SPOOL_HEAD);
	return segment == MAP_FAILED || segment->magic != SEGMENT_MAGIC ? NULL : segment;
}

static void fill_head(struct segment *segment, const struct inject *inject)
{
	int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

	segment->pid = inject->pid;
	segment->start_ticks = start_ticks();
	segment->world_rank = number_from("RANK");
	segment->world_size = number_from("WORLD_SIZE");
	if (file >= 0) {
		ssize_t len = read(file, segment->command, sizeof(segment->command) - 1);

		if (len > 0 && segment->command[len - 1] == '\n')
			segment->command[len - 1] = 0;
		close(file);
	}
	atomic_store(&segment->state, SEGMENT_CLAIMED);
}

/* [setup] Claims a segment the first time; true if we have one. */
static bool set_up(void)
{
	const char *path = secure_getenv(SEGMENT_ENV);
	struct inject *inject;
	struct segment *segment;
	int file;

	/* pid is 0 in a forked child of a process that was set up: begin anew. */
	if (inject_state && inject_state->pid == (uint32_t)getpid())
		return atomic_load(&inject_state->segment);
	file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (file < 0)
		return false;
	inject = mmap(NULL, (sizeof(*inject) + SEGMENT_PAGE - 1) & ~(size_t)(SEGMENT_PAGE - 1),
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (inject == MAP_FAILED || madvise(inject, sizeof(*inject), MADV_WIPEONFORK) < 0) {
		close(file);
		return false;
	}
	inject->pid = (uint32_t)getpid();
	read_options(inject);
	segment = claim(file, inject->pid);
	close(file);
	inject_state = inject;
	if (!segment)
		return false;
	(void)pthread_atfork(cut_off_child, NULL, cut_off_child);
	fill_head(segment, inject);
	atomic_store(&inject->segment, segment);
	return true;
}

/* [final] */
static void at_exit(void)
{
	struct inject *inject = inject_state;
	struct segment *segment = inject ? atomic_load(&inject->segment) : NULL;

	if (!segment || inject->pid != (uint32_t)getpid())
		return;
	/* After a step back CUPTI is the host's; a thread that hangs in it has its lock. */
	if (thread_keep_out(inject, LEAVING_EXIT) &&
	    atomic_load(&inject->leaving) == LEAVING_EXIT && inject->subscriber) {
		pc_drain(inject);
		thread_flush(inject);
	}
	atomic_store(&segment->state, SEGMENT_ENDED);
}

/* [setup] By the driver, in cuInit. */
int InitializeInjection(void)
{
	int saved_errno = errno;

	pthread_mutex_lock(&setup_lock);
	if (set_up() && !inject_state->cupti.cuptiGetVersion && cupti_open(inject_state) &&
	    activity_start(inject_state) == 0) {
		yield_watch(inject_state);
		thread_start(inject_state);
		(void)atexit(at_exit);
	}
	pthread_mutex_unlock(&setup_lock);
	errno = saved_errno;
	return 1;
}

/* [setup] By the first NVTX call of each library that has NVTX in it. */
int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
	int saved_errno = errno;

	pthread_mutex_lock(&setup_lock);
	if (set_up() && inject_state->trace >> TRACE_NVTX & 1)
		nvtx_attach(get_table);
	pthread_mutex_unlock(&setup_lock);
	errno = saved_errno;
	return 1;
}
