/*
 * thread.c - our one thread: flushes now and then, so that a target that is
 * killed loses about a second, drains PC samples, and does what sonde asks.
 */
#include "inject/inject.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A busy program's buffers come by themselves: a flush then only holds it up. */
enum { TICK_MS = 50, FLUSH_TICKS = 20, BUSY_FLUSH_TICKS = 100, LAST_TICKS = 100 };
/* How long the thread may be in CUPTI when others want it out of there. */
enum { OUT_MS = 300, LAST_FLUSH_MS = 3000 };

static struct timespec span_of(long ms)
{
	return (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
}

static void nap(long ms)
{
	struct timespec span = span_of(ms);

	(void)nanosleep(&span, NULL);
}

/* [thread] Until somebody calls wake, at most `ms`. */
static void wait_woken(struct inject *inject, long ms)
{
	struct timespec span = span_of(ms);

	(void)syscall(SYS_futex, &inject->wake, FUTEX_WAIT_PRIVATE, atomic_load(&inject->wake),
		      &span, NULL, 0);
}

static void wake(struct inject *inject)
{
	atomic_fetch_add(&inject->wake, 1);
	(void)syscall(SYS_futex, &inject->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* [thread] */
static void tick(struct inject *inject, struct segment *segment, bool flush)
{
	uint32_t wanted = atomic_exchange(&segment->wanted, 0);

	if (wanted & WANT_STOP)
		activity_follow(inject);
	if (wanted & WANT_QUIET && !inject->quiet) {
		calls_switch(inject, false);
		inject->quiet = true;
	}
	if (wanted & WANT_START) {
		if (inject->quiet)
			calls_switch(inject, true);
		inject->quiet = false;
		activity_follow(inject);
	}
	pc_follow(inject);
	if (wanted & WANT_QUIET)
		return; /* what is in buffers can wait: a flush is not quiet */
	if (wanted & (WANT_FLUSH | WANT_STOP)) {
		pc_drain(inject);
		activity_flush(inject);
	} else if (atomic_load(&inject->active) && flush) {
		(void)inject->cupti.cuptiActivityFlushAll(0);
	}
}

/* [thread] */
static void last_flush(struct inject *inject)
{
	for (int i = 0; i < LAST_TICKS && !atomic_load(&inject->may_flush); i++)
		wait_woken(inject, TICK_MS);
	if (atomic_load(&inject->may_flush))
		activity_flush(inject);
	atomic_store(&inject->flushed, true);
}

static void *run(void *user)
{
	struct inject *inject = user;
	unsigned int ticks = 0, flushed = 0;
	uint64_t asked = 0;

	for (;;) {
		struct segment *segment = atomic_load(&inject->segment);

		wait_woken(inject, TICK_MS);
		if (atomic_load(&inject->leaving) == LEAVING_EXIT)
			last_flush(inject);
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
	inject->has_thread = pthread_create(&thread, &attr, run, inject) == 0;
	if (inject->has_thread)
		(void)pthread_setname_np(thread, "sonde");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

/* Bounded: a thread that hangs in CUPTI must not hang its host. */
bool thread_keep_out(struct inject *inject, enum leaving why)
{
	uint32_t staying = STAYING;

	(void)atomic_compare_exchange_strong(&inject->leaving, &staying, why);
	wake(inject);
	for (int i = 0; i < OUT_MS && atomic_load(&inject->in_thread); i++)
		nap(1);
	return !atomic_load(&inject->in_thread);
}

void thread_flush(struct inject *inject)
{
	if (!inject->has_thread) {
		activity_flush(inject);
		return;
	}
	atomic_store(&inject->may_flush, true);
	wake(inject);
	for (int i = 0; i < LAST_FLUSH_MS && !atomic_load(&inject->flushed); i++)
		nap(1);
}
