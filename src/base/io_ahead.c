#include "base/io_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/io_decode.h"
#include "base/mem.h"
#include "base/thread.h"

/*
 * Blocks `head` to `tail` (both only grow; a block's place is its number modulo
 * BLOCKS) are filled. The lock guards `head`, `tail`, `ended` and `stop`; a
 * block itself belongs to the thread until `tail` passes it and to the reader
 * until `head` does, so bytes are copied outside the lock.
 *
 * 16 MiB, as the reader does not read evenly: writing chunks of a profile takes
 * as long as inflating some MiB.
 */
enum { BLOCKS = 64, BLOCK_BYTES = 256 << 10 };

struct block {
	size_t len;
	char bytes[BLOCK_BYTES];
};

struct ahead {
	struct decoder *decoder;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t head, tail;
	bool ended;     /* `tail` is the last one; `err` says why if it was an error */
	bool stop;      /* the reader wants no more */
	int wake_fd;    /* readable: leave a read that waits */
	size_t read_at; /* in block `head`; the reader's alone */
	struct err err;
	struct block *blocks;
};

/* False: the reader wants no more. */
static bool wait_room(struct ahead *ahead)
{
	bool go;

	(void)pthread_mutex_lock(&ahead->lock);
	/* Once full, not for one block at a time: to be woken costs as much as a block. */
	if (ahead->tail - ahead->head == BLOCKS)
		while (!ahead->stop && ahead->tail - ahead->head > BLOCKS / 2)
			(void)pthread_cond_wait(&ahead->changed, &ahead->lock);
	go = !ahead->stop;
	(void)pthread_mutex_unlock(&ahead->lock);
	return go;
}

static void *decode_all(void *arg)
{
	struct ahead *ahead = arg;
	bool ended = false;

	while (!ended && wait_room(ahead)) {
		/* Only this thread moves `tail`: it may look without the lock. */
		struct block *block = &ahead->blocks[ahead->tail % BLOCKS];

		int64_t got = decoder_read(ahead->decoder, block->bytes, BLOCK_BYTES, &ahead->err);

		ended = got < 0 || decoder_ended(ahead->decoder);
		if (!got && !ended)
			continue;
		block->len = got > 0 ? (size_t)got : 0;
		(void)pthread_mutex_lock(&ahead->lock);
		ahead->tail += got > 0;
		ahead->ended = ended;
		(void)pthread_cond_signal(&ahead->changed);
		(void)pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

static void release(struct ahead *ahead)
{
	own_closep(&ahead->wake_fd);
	(void)pthread_cond_destroy(&ahead->changed);
	(void)pthread_mutex_destroy(&ahead->lock);
	free(ahead->blocks);
	free(ahead);
}

struct ahead *ahead_start(struct decoder *decoder)
{
	struct ahead *ahead = mem_zero(sizeof(*ahead));
	pthread_condattr_t steady;

	ahead->decoder = decoder;
	ahead->blocks = mem_alloc(BLOCKS * sizeof(*ahead->blocks));
	(void)pthread_mutex_init(&ahead->lock, NULL);
	(void)pthread_condattr_init(&steady);
	(void)pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&ahead->changed, &steady);
	(void)pthread_condattr_destroy(&steady);
	ahead->wake_fd = eventfd(0, EFD_CLOEXEC);
	decoder_wake_by(decoder, ahead->wake_fd);
	if (ahead->wake_fd < 0 || !thread_start(&ahead->thread, decode_all, ahead)) {
		decoder_wake_by(decoder, -1);
		release(ahead);
		return NULL;
	}
	return ahead;
}

/* The oldest filled block; NULL at the end. */
static struct block *wait_block(struct ahead *ahead)
{
	struct block *block = NULL;

	(void)pthread_mutex_lock(&ahead->lock);
	while (!ahead->ended && ahead->head == ahead->tail)
		(void)pthread_cond_wait(&ahead->changed, &ahead->lock);
	if (ahead->head != ahead->tail)
		block = &ahead->blocks[ahead->head % BLOCKS];
	(void)pthread_mutex_unlock(&ahead->lock);
	return block;
}

bool ahead_ready(struct ahead *ahead, int64_t timeout_ns)
{
	int64_t until_ns = timeout_ns < 0 ? INT64_MAX : clock_steady_ns() + timeout_ns;
	struct timespec until = { (time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000) };
	bool ready, late = false;

	(void)pthread_mutex_lock(&ahead->lock);
	while (!(ready = ahead->ended || ahead->head != ahead->tail) && !late)
		late = pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until) == ETIMEDOUT;
	(void)pthread_mutex_unlock(&ahead->lock);
	return ready;
}

static void give_back(struct ahead *ahead)
{
	ahead->read_at = 0;
	(void)pthread_mutex_lock(&ahead->lock);
	ahead->head++;
	if (ahead->tail - ahead->head == BLOCKS / 2)
		(void)pthread_cond_signal(&ahead->changed);
	(void)pthread_mutex_unlock(&ahead->lock);
}

int64_t ahead_read(struct ahead *ahead, char *to, size_t room, struct err *err)
{
	struct block *block = wait_block(ahead);
	size_t len;

	if (!block) {
		if (ahead->err.code && err)
			*err = ahead->err;
		return ahead->err.code;
	}
	len = block->len - ahead->read_at;
	len = len < room ? len : room;
	memcpy(to, block->bytes + ahead->read_at, len);
	ahead->read_at += len;
	if (ahead->read_at == block->len)
		give_back(ahead);
	return (int64_t)len;
}

void ahead_stop(struct ahead *ahead)
{
	if (!ahead)
		return;
	(void)pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	(void)pthread_cond_signal(&ahead->changed);
	(void)pthread_mutex_unlock(&ahead->lock);
	(void)eventfd_write(ahead->wake_fd, 1);
	(void)pthread_join(ahead->thread, NULL);
	decoder_wake_by(ahead->decoder, -1);
	release(ahead);
}
