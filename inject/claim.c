/*
 * claim.c - [setup] how a library of ours begins: options, state, a segment.
 *
 * libsonde-inject.so and libsonde-osrt.so fill the same segment of a process:
 * the second finds the one that the first claimed, by pid and by a mark of the
 * process image, which exec changes and fork does not.
 */
#include "inject/inject.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* By its file sonde tells a library of another build before it is loaded anywhere. */
static const struct segment_mark mark
	__attribute__((used)) = { SEGMENT_MARK_WORD, SEGMENT_VERSION };

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

/* [setup] Fields 1 and 22 of /proc/self/stat: the pid where /proc was mounted, which
 * in a PID namespace is another than getpid's, and when the process began. */
static uint64_t start_ticks(uint32_t *ret_pid)
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
	*ret_pid = (uint32_t)digits(line, NULL);
	at = strrchr(line, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? digits(at + 1, NULL) : 0;
}

/* Calls of the system that take less are not recorded unless they are asked for. */
enum { OS_THRESHOLD_NS = 1000 };

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

	inject->os_threshold_ns = OS_THRESHOLD_NS;
	while (at && *at) {
		size_t len = strcspn(at, ",");

		for (size_t i = 0; i < TRACE_COUNT; i++) {
			if (strlen(words[i]) == len && !memcmp(words[i], at, len))
				inject->trace |= (uint64_t)1 << i;
		}
		if (!strncmp(at, "range-nvtx=", 11) && len - 11 < sizeof(inject->range))
			memcpy(inject->range, at + 11, len - 11);
		if (!strncmp(at, "range-domain=", 13) && len - 13 < sizeof(inject->range_domain)) {
			memcpy(inject->range_domain, at + 13, len - 13);
			inject->has_range_domain = true;
		}
		if (!strncmp(at, "pc-period=", 10))
			inject->pc_period = (uint32_t)digits(at + 10, NULL);
		if (!strncmp(at, "pc-memory=", 10))
			inject->pc_hardware_bytes = digits(at + 10, NULL);
		if (!strncmp(at, "osrt-threshold=", 15))
			inject->os_threshold_ns = digits(at + 15, NULL);
		at += len + (at[len] == ',');
	}
}

/* The kernel gives each image 16 random bytes. They are also the seed of the
 * stack protector: what is told of them must not give them away. */
static uint64_t image_mark(void)
{
	const void *at = (const void *)(uintptr_t)getauxval(AT_RANDOM); /* NOLINT */
	uint64_t seed[2] = { 0 };

	if (at)
		memcpy(seed, at, sizeof(seed));
	seed[0] = (seed[0] ^ seed[1] >> 29) * 0x9e3779b97f4a7c15ull;
	return (seed[0] ^ seed[0] >> 32) * 0xbf58476d1ce4e5b9ull | 1;
}

static struct segment *map_segment(int file, const struct spool_head *head, uint32_t index)
{
	struct segment *segment =
		mmap(NULL, head->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		     (off_t)(SPOOL_HEAD + index * head->segment_bytes));

	if (segment == MAP_FAILED)
		return NULL;
	if (segment->magic == SEGMENT_MAGIC)
		return segment;
	munmap(segment, head->segment_bytes);
	return NULL;
}

static bool is_ours(const struct segment *segment, uint32_t pid, uint64_t image)
{
	return atomic_load(&segment->state) == SEGMENT_CLAIMED && segment->pid == pid &&
	       segment->image == image;
}

static uint32_t count_of(const struct spool_head *head)
{
	return head->count < SEGMENT_COUNT_MAX ? head->count : SEGMENT_COUNT_MAX;
}

/* The segment that another library of ours claimed for this process. */
static struct segment *shared(int file, struct spool_head *head, uint32_t outer_pid, uint32_t pid,
			      uint64_t image)
{
	for (uint32_t index = 0; index < count_of(head); index++) {
		struct segment *segment;

		if (atomic_load(&head->owner[index]) != outer_pid)
			continue;
		segment = map_segment(file, head, index);
		if (segment && is_ours(segment, pid, image))
			return segment;
		if (segment)
			munmap(segment, head->segment_bytes);
	}
	return NULL;
}

/* A shell script is many processes: they leave half of the segments to those
 * that use the GPU. */
static struct segment *first_free(int file, struct spool_head *head, uint32_t outer_pid,
				  enum segment_user user)
{
	uint32_t count = count_of(head);
	uint32_t from = user == SEGMENT_USER_HOST ? count / 2 : 0;

	for (uint32_t index = from; index < count; index++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&head->owner[index], &none, outer_pid))
			return map_segment(file, head, index);
	}
	atomic_fetch_add(user == SEGMENT_USER_HOST ? &head->unserved_host : &head->unserved, 1);
	return NULL;
}

static void fill_head(struct segment *segment, const struct spool_head *head,
		      const struct inject *inject, uint64_t image, uint64_t ticks)
{
	int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

	segment->pid = inject->pid;
	segment->image = image;
	segment->start_ticks = ticks;
	segment->world_rank = number_from("RANK");
	segment->world_size = number_from("WORLD_SIZE");
	if (inject->trace >> TRACE_PAUSED & 1)
		atomic_store(&segment->paused, 1);
	atomic_store(&segment->closed, atomic_load(&head->closed));
	if (file >= 0) {
		ssize_t len = read(file, segment->command, sizeof(segment->command) - 1);

		if (len > 0 && segment->command[len - 1] == '\n')
			segment->command[len - 1] = 0;
		close(file);
	}
	atomic_store(&segment->state, SEGMENT_CLAIMED);
}

static struct segment *claim(int file, const struct inject *inject, enum segment_user user)
{
	struct spool_head *head =
		mmap(NULL, SPOOL_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	uint64_t image = image_mark(), ticks;
	uint32_t outer_pid = inject->pid;
	struct segment *segment = NULL;

	if (head == MAP_FAILED)
		return NULL;
	ticks = start_ticks(&outer_pid);
	if (head->magic == SPOOL_MAGIC && head->version != SEGMENT_VERSION)
		atomic_store(&head->stranger, SEGMENT_VERSION);
	if (head->magic == SPOOL_MAGIC && head->version == SEGMENT_VERSION) {
		segment = shared(file, head, outer_pid, inject->pid, image);
		if (!segment) {
			segment = first_free(file, head, outer_pid, user);
			if (segment)
				fill_head(segment, head, inject, image, ticks);
		}
		if (segment)
			atomic_fetch_or(&segment->users, user);
	}
	munmap(head, SPOOL_HEAD);
	return segment;
}

struct inject *inject_new(size_t bytes, enum segment_user user, struct segment **ret_segment)
{
	const char *path = secure_getenv(SEGMENT_ENV);
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct inject *inject;

	*ret_segment = NULL;
	if (file < 0)
		return NULL;
	bytes = (bytes + SEGMENT_PAGE - 1) & ~(size_t)(SEGMENT_PAGE - 1);
	inject = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (inject == MAP_FAILED || madvise(inject, bytes, MADV_WIPEONFORK) < 0) {
		close(file);
		return NULL;
	}
	inject->pid = (uint32_t)getpid();
	read_options(inject);
	*ret_segment = claim(file, inject, user);
	close(file);
	return inject;
}
