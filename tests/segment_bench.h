/*
 * segment_bench.h - a process's side of the spool, played by a test: it claims a
 * segment and writes there what libsonde-inject.so would.
 *
 * The process is one that has ended already, so that the first spool_take reads
 * it whole, unless bench_live says otherwise.
 */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/spool.h"
#include "sink_record.h"
#include "wire/cupti_abi.h"
#include "wire/segment.h"

struct bench {
	struct spool *spool;
	struct record *record;
	struct spool_head *head;
	struct segment *segment;
	uint64_t bytes;
	uint32_t pid;
};

static inline uint32_t bench_dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
	return (uint32_t)pid;
}

static inline bool bench_open(struct bench *bench, const struct spool_opts *opts)
{
	struct err err = { 0 };
	int fd;

	if (spool_open(opts, &bench->spool, &err) < 0)
		return false;
	bench->record = record_new();
	fd = open(spool_path(bench->spool), O_RDWR | O_CLOEXEC);
	bench->head = mmap(NULL, SPOOL_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bench->bytes = bench->head->segment_bytes;
	bench->segment =
		mmap(NULL, bench->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SPOOL_HEAD);
	close(fd);
	if (!bench->pid)
		bench->pid = bench_dead_pid();
	return bench->segment != MAP_FAILED && bench->segment->magic == SEGMENT_MAGIC;
}

static inline void bench_claim(struct bench *bench)
{
	bench->segment->pid = bench->pid;
	bench->segment->world_rank = UINT32_MAX;
	bench->segment->world_size = UINT32_MAX;
	bench->segment->clock = SEGMENT_CLOCK_MONOTONIC;
	memcpy(bench->segment->command, "target", 7);
	atomic_store(&bench->head->owner[0], bench->pid);
	atomic_store(&bench->segment->state, SEGMENT_CLAIMED);
}

static inline void bench_close(struct bench *bench)
{
	munmap(bench->segment, bench->bytes);
	munmap(bench->head, SPOOL_HEAD);
	spool_close(bench->spool);
	record_free(bench->record);
}

static inline uint32_t bench_text(struct bench *bench, const char *at)
{
	struct segment *segment = bench->segment;
	uint32_t len = (uint32_t)strlen(at);
	uint32_t id = (uint32_t)atomic_fetch_add(&segment->texts_used, (len + 5 + 3) & ~3u);
	struct segment_text *text = (void *)((char *)segment + segment->texts_at + id);

	memcpy(text->at, at, len);
	atomic_store(&text->len, len);
	return id;
}

/* The next slot of the ring: `slot` with its kind. */
static inline void bench_slot(struct bench *bench, enum slot_kind kind, struct segment_slot slot)
{
	uint64_t at = atomic_fetch_add(&bench->segment->ring_head, 1);
	struct segment_slot *to =
		&segment_ring(bench->segment)[at & (bench->segment->ring_slots - 1)];

	memcpy(to, &slot, sizeof(slot));
	atomic_store(&to->kind, kind);
}

/* A record of `bytes` behind what is in buffer `index`. */
static inline void bench_record(struct bench *bench, uint32_t index, const void *record,
				size_t used, uint32_t bytes)
{
	struct segment_buffer *buffer = &bench->segment->buffers[index];
	uint64_t at = atomic_load(&buffer->valid);
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	atomic_store(&bench->segment->record_bytes[kind & ~CUPTI_KIND_OPEN], bytes);
	memcpy(segment_buffer(bench->segment, index) + at, record, used < bytes ? used : bytes);
	atomic_store(&buffer->valid, at + bytes);
	atomic_store(&buffer->state, BUFFER_READY);
}
