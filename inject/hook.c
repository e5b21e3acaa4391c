/*
 * hook.c - what every [hot] function begins with: are we on, which thread is
 * this, what time is it. It imports no lock and no allocation, as the other hot
 * files (tools/check-exports).
 */
#include "inject/inject.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct inject *inject_state;

/* One byte and two words a thread: the space for initial-exec is shared by all
 * libraries of a process. */
static __thread uint8_t inside __attribute__((tls_model("initial-exec")));
static __thread uint32_t thread_id __attribute__((tls_model("initial-exec")));
static __thread uint32_t thread_of __attribute__((tls_model("initial-exec")));

/* [hot] */
struct hook hook_enter(void)
{
	struct hook hook = { .saved_errno = errno };
	struct inject *inject = inject_state;

	if (!inject)
		return hook;
	hook.segment = atomic_load_explicit(&inject->segment, memory_order_acquire);
	if (hook.segment && inside) {
		atomic_fetch_add_explicit(&hook.segment->counts.slots_nested, 1,
					  memory_order_relaxed);
		hook.segment = NULL;
		hook.nested = true;
	} else if (hook.segment) {
		inside = 1;
	}
	return hook;
}

/* [hot] */
void hook_leave(struct hook *hook)
{
	if (hook->segment)
		inside = 0;
	errno = hook->saved_errno;
}

/* [hot] */
uint64_t inject_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* [hot] A forked child keeps its parent's thread-local values: the pid tells. */
uint32_t inject_thread(void)
{
	if (thread_of != inject_state->pid || !thread_id) {
		thread_id = (uint32_t)syscall(SYS_gettid);
		thread_of = inject_state->pid;
	}
	return thread_id;
}
