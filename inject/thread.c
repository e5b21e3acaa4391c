/*
 * thread.c - our one thread: flushes now and then, so that a target that is
 * killed loses about a second, drains PC samples, and does what sonde asks.
 */
#include "inject/inject.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* A busy program's buffers come by themselves: a flush then only holds it up. */
enum { TICK_MS = 50, FLUSH_TICKS = 20, BUSY_FLUSH_TICKS = 100 };

static void nap(long ms)
{
	struct timespec span = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&span, NULL);
}

/* [thread] */
static void tick(struct inject *inject, struct segment *segment, bool flush)
{
	uint32_t wanted = atomic_exchange(&segment->wanted, 0);

	if (wanted & WANT_STOP)
		activity_disable(inject);
	if (wanted & WANT_START)
		activity_enable(inject);
	if (wanted & (WANT_FLUSH | WANT_STOP)) {
		pc_drain(inject);
		(void)inject->cupti.cuptiActivityFlushAll(1);
	} else if (atomic_load(&inject->active) && flush) {
		pc_drain(inject);
		(void)inject->cupti.cuptiActivityFlushAll(0);
	}
}

static void *run(void *user)
{
	struct inject *inject = user;
	unsigned int ticks = 0, flushed = 0;
	uint64_t asked = 0;

	for (;;) {
		struct segment *segment = atomic_load(&inject->segment);

		nap(TICK_MS);
		if (!segment || atomic_load(&inject->leaving))
			return NULL;
		ticks++;
		if (atomic_load(&segment->counts.buffers_asked) != asked &&
		    ticks - flushed < BUSY_FLUSH_TICKS && ticks % FLUSH_TICKS == 0) {
			asked = atomic_load(&segment->counts.buffers_asked);
			continue;
		}
		atomic_store(&inject->in_thread, true);
		if (!atomic_load(&inject->leaving))
			tick(inject, segment, ticks % FLUSH_TICKS == 0);
		if (ticks % FLUSH_TICKS == 0)
			flushed = ticks;
		atomic_store(&inject->in_thread, false);
	}
}

/* [setup] */
void thread_start(struct inject *inject)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attr, run, inject) == 0)
		(void)pthread_setname_np(thread, "sonde");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

/* [final] Bounded: a thread that hangs in CUPTI must not hang the exit. */
void thread_keep_out(struct inject *inject)
{
	atomic_store(&inject->leaving, true);
	for (int i = 0; i < 300 && atomic_load(&inject->in_thread); i++)
		nap(1);
}
