#include "collect/perf_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* Since Linux 4.17; headers may be older. */
#ifndef PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
#define PERF_RECORD_MISC_SWITCH_OUT_PREEMPT (1 << 14)
#endif

/* A switch is 16 bytes: 64 KiB hold 2,000 times on and off a core, between two
 * readings 20 ms apart. What unprivileged users may lock is less on some machines
 * (perf_event_mlock_kb): then the smaller one is tried. */
static const size_t RING_BYTES[] = { 65536, 16384 };
/* Our largest record, a sample, has 8 + 8 + 8 * (1 + frames and markers) bytes. */
enum { RECORD_MAX = 1024 };

struct perf_ring {
	int file;
	struct perf_event_mmap_page *page;
	const char *data;
	size_t bytes;
	size_t mapped; /* 0: somebody else's memory */
};

/* Of the file's first line; "?" if it can't be read. */
static void line_of(const char *path, char *text, size_t room)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = file < 0 ? -1 : read(file, text, room - 1);

	if (file >= 0)
		(void)close(file);
	text[len > 0 ? len : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (!*text)
		memcpy(text, "?", 2);
}

static int refused(int code, struct err *err)
{
	char paranoid[16];

	if (code == ESRCH)
		return err_set(err, ERR_MISSING, "the thread is gone");
	line_of("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	return err_set(err, ERR_UNSUPPORTED, "perf_event_open: %s (perf_event_paranoid is %s)",
		       strerror(code), paranoid);
}

static int map_ring(struct perf_ring *ring, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof(RING_BYTES) / sizeof(RING_BYTES[0]); i++) {
		size_t bytes = RING_BYTES[i] > page ? RING_BYTES[i] : page;
		void *at =
			mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->file, 0);

		if (at == MAP_FAILED)
			continue;
		ring->page = at;
		ring->data = (const char *)at + page;
		ring->bytes = bytes;
		ring->mapped = page + bytes;
		return 0;
	}
	return err_set(err, ERR_UNSUPPORTED, "memory for perf events: %s", strerror(errno));
}

int perf_ring_open(int64_t tid, const struct perf_opts *opts, struct perf_ring **ret_ring,
		   struct err *err)
{
	OWN(perf_ring_closep) struct perf_ring *ring = mem_zero(sizeof(*ring));
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.context_switch = opts->switches,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	if (opts->samples_hz) {
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = 1000000000 / (uint64_t)opts->samples_hz;
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		/* With markers, and the leaf twice on some kernels. */
		attr.sample_max_stack = PERF_FRAMES_MAX;
	}
	/* Samples while in the kernel show which function called; not everybody may. */
	for (int user_only = 0; user_only < 2; user_only++) {
		attr.exclude_kernel = (unsigned int)user_only & 1;
		ring->file = (int)syscall(SYS_perf_event_open, &attr, (pid_t)tid, -1, -1,
					  PERF_FLAG_FD_CLOEXEC);
		if (ring->file >= 0 || (errno != EACCES && errno != EPERM))
			break;
	}
	if (ring->file < 0)
		return refused(errno, err);
	if (map_ring(ring, err) < 0)
		return err->code;
	*ret_ring = STEAL(ring);
	return 0;
}

struct perf_ring *perf_ring_over(void *page, void *data, size_t bytes)
{
	struct perf_ring *ring = mem_zero(sizeof(*ring));

	ring->file = -1;
	ring->page = page;
	ring->data = data;
	ring->bytes = bytes;
	return ring;
}

void perf_ring_close(struct perf_ring *ring)
{
	if (!ring)
		return;
	if (ring->mapped)
		(void)munmap(ring->page, ring->mapped);
	if (ring->file >= 0)
		(void)close(ring->file);
	free(ring);
}

bool perf_ring_ended(const struct perf_ring *ring)
{
	struct pollfd look = { .fd = ring->file, .events = POLLIN };

	return ring->file >= 0 && poll(&look, 1, 0) > 0 && (look.revents & POLLHUP);
}

/* `bytes` of the ring from `at` on: it goes round. */
static void copy_out(const struct perf_ring *ring, uint64_t at, void *to, size_t bytes)
{
	size_t from = at & (ring->bytes - 1);
	size_t first = ring->bytes - from < bytes ? ring->bytes - from : bytes;

	memcpy(to, ring->data + from, first);
	memcpy((char *)to + first, ring->data, bytes - first);
}

/* Time, count, addresses. Among these stand markers of what follows. */
static bool sample(const uint64_t *words, size_t count, struct perf_record *ret_record)
{
	if (count < 2)
		return false;
	ret_record->kind = PERF_SAMPLED;
	ret_record->time_ns = (int64_t)words[0];
	for (size_t i = 0; i < words[1] && i + 2 < count; i++) {
		uint64_t address = words[i + 2];

		if (address < PERF_CONTEXT_MAX && ret_record->frames < PERF_FRAMES_MAX)
			ret_record->frame[ret_record->frames++] = address;
	}
	return true;
}

/* False: nothing for us. */
static bool decode(const struct perf_event_header *head, const uint64_t *words,
		   struct perf_record *ret_record)
{
	size_t count = (head->size - sizeof(*head)) / sizeof(*words);

	*ret_record = (struct perf_record){ 0 };
	switch (head->type) {
	case PERF_RECORD_SAMPLE:
		return sample(words, count, ret_record);
	case PERF_RECORD_SWITCH:
		if (!count)
			return false;
		ret_record->time_ns = (int64_t)words[0];
		ret_record->kind = !(head->misc & PERF_RECORD_MISC_SWITCH_OUT) ? PERF_ON_CORE
				   : head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
					   ? PERF_PREEMPTED
					   : PERF_OFF_CORE;
		return true;
	case PERF_RECORD_LOST: /* id, lost */
		if (count < 2)
			return false;
		ret_record->kind = PERF_LOST;
		ret_record->lost = words[1];
		return true;
	default:
		return false;
	}
}

bool perf_ring_next(struct perf_ring *ring, struct perf_record *ret_record)
{
	uint64_t tail = ring->page->data_tail;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	bool found = false;

	while (!found && head - tail >= sizeof(struct perf_event_header)) {
		uint64_t words[RECORD_MAX / sizeof(uint64_t)];
		struct perf_event_header start;

		copy_out(ring, tail, &start, sizeof(start));
		if (start.size < sizeof(start) || start.size > head - tail) {
			tail = head; /* can't be: nothing behind it makes sense */
			break;
		}
		if (start.size <= RECORD_MAX) {
			copy_out(ring, tail + sizeof(start), words, start.size - sizeof(start));
			found = decode(&start, words, ret_record);
		}
		tail += start.size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	return found;
}
