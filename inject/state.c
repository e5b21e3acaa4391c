/*
 * state.c - set-up, the entry points, and what "off" means.
 *
 * InitializeInjection is called by the driver inside cuInit,
 * InitializeInjectionNvtx2 by the first NVTX call; whichever comes first
 * claims a segment. Both always report success. InitializeInjectionNvtxExtension is
 * called by the first call with a payload, after InitializeInjectionNvtx2.
 */
#include "inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "inject/nvtx.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);
EXPORT int InitializeInjectionNvtx2(nvtx_get_table *get_table);
EXPORT int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension);

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;

void inject_lacks(struct inject *inject, enum segment_lack lack, uint32_t detail)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (!segment || atomic_load(&segment->lacks) >> lack & 1)
		return;
	atomic_store(&segment->lack_detail[lack], detail);
	atomic_fetch_or(&segment->lacks, UINT32_C(1) << lack);
}

/* NVTX goes on. */
void inject_off(struct inject *inject, enum segment_reason reason, uint32_t detail)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (segment && !atomic_load(&segment->reason)) {
		atomic_store(&segment->reason_detail, detail);
		atomic_store(&segment->reason, reason);
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

/* [setup] Claims a segment the first time; true if we have one. */
static bool set_up(void)
{
	struct segment *segment;
	struct inject *inject;

	/* pid is 0 in a forked child of a process that was set up: begin anew. */
	if (inject_state && inject_state->pid == (uint32_t)getpid())
		return atomic_load(&inject_state->segment);
	inject = inject_new(sizeof(*inject), SEGMENT_USER_INJECT, &segment);
	if (!inject)
		return false;
	inject_state = inject;
	if (!segment)
		return false;
	(void)pthread_atfork(cut_off_child, NULL, cut_off_child);
	atomic_store(&inject->segment, segment);
	activity_begin(inject);
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
		pc_end(inject);
		thread_flush(inject);
	}
	atomic_store(&segment->state, SEGMENT_ENDED);
}

/* [setup] A child that was forked while another thread was in here finds the lock
 * taken for ever: then it does without us. */
static bool set_up_alone(void)
{
	struct timespec ms = { 0, 1000000 };

	int saved_errno = errno;

	for (int i = 0; i < 2000; i++) {
		if (pthread_mutex_trylock(&setup_lock) == 0)
			return true;
		(void)nanosleep(&ms, NULL);
	}
	errno = saved_errno;
	return false;
}

/* [setup] */
static bool stands_back(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (!other_tool_here(segment->other_tool, sizeof(segment->other_tool)))
		return false;
	inject_off(inject, SEGMENT_REASON_OTHER_TOOL, 0);
	return true;
}

/* [setup] By the driver, in cuInit. */
int InitializeInjection(void)
{
	int saved_errno = errno;

	if (!set_up_alone())
		return 1;
	if (set_up() && !inject_state->cupti.cuptiGetVersion && !stands_back(inject_state) &&
	    cupti_open(inject_state) && activity_start(inject_state) == 0) {
		yield_watch(inject_state);
		thread_start(inject_state);
		(void)atexit(at_exit);
	}
	(void)dlerror(); /* what we looked for in vain is no error of the program's */
	pthread_mutex_unlock(&setup_lock);
	errno = saved_errno;
	return 1;
}

/* [setup] Are calls of NVTX taken? */
static bool takes_nvtx(void)
{
	return set_up() && (inject_state->trace >> TRACE_NVTX & 1 || inject_state->range[0]);
}

/* [setup] By the first NVTX call of each library that has NVTX in it. */
int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
	int saved_errno = errno;

	if (!set_up_alone())
		return 1;
	if (takes_nvtx())
		nvtx_attach(get_table);
	pthread_mutex_unlock(&setup_lock);
	errno = saved_errno;
	return 1;
}

/* [setup] By the first call of an extension in each library that has NVTX in it. 0: its
 * calls do nothing. */
int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension)
{
	int saved_errno = errno, known = 0;

	if (!set_up_alone())
		return 0;
	if (takes_nvtx())
		known = nvtx_attach_extension(extension);
	pthread_mutex_unlock(&setup_lock);
	errno = saved_errno;
	return known;
}
