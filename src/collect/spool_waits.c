/*
 * spool_waits.c - calls that wait for the device and do not return, and those that failed.
 *
 * Who is in such a call says so in the segment (struct segment_wait): what is still there
 * when the process is gone, or is let go, never returned. It becomes a call that lasts up
 * to the end of the recording, and a mark.
 *
 * The program's side gives streams by handle. Which number a handle has is known from the
 * stream's making and from waits that returned.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "collect/spool_process.h"
#include "model/note.h"

/* From then on somebody may want to know what the thread is at. */
static const int64_t LONG_NS = 100000000;
/* From then on it may never return; shorter ones are no finding (rules/rule_open_wait.c). */
static const int64_t HELD_NS = 700000000;
/* Of handles and contexts: streams beyond are told without their number. */
enum { HANDLES_MAX = 1 << 16 };

static uint64_t key_of(uint32_t context, uint64_t handle)
{
	uint64_t what[2] = { context, handle };

	return hash_bytes(what, sizeof(what), 0);
}

void spooled_know_stream(struct spooled *p, uint32_t context, uint64_t handle, uint32_t stream)
{
	uint64_t key = key_of(context, handle);

	if (handle && (p->streams.count < HANDLES_MAX || map_find(&p->streams, key)))
		map_put(&p->streams, key, stream);
}

uint32_t spooled_stream_number(const struct spooled *p, uint32_t context, uint64_t handle)
{
	const uint64_t *stream = map_find(&p->streams, key_of(context, handle));

	return handle && stream ? (uint32_t)*stream : UINT32_MAX;
}

/* A wait as the segment has it, copied whole. */
static bool read_wait(const struct segment_wait *at, int64_t now_ns, struct open_wait *ret)
{
	uint64_t since_ns = atomic_load_explicit(&at->since_ns, memory_order_acquire);

	*ret = (struct open_wait){ .thread = atomic_load(&at->thread),
				   .kind = at->kind,
				   .since_ns = (int64_t)since_ns,
				   .handle = at->handle,
				   .context = at->context,
				   .correlation = at->correlation,
				   .domain = at->domain,
				   .cbid = at->cbid };
	atomic_thread_fence(memory_order_acquire);
	return since_ns && since_ns <= (uint64_t)now_ns && ret->thread &&
	       ret->thread <= INT32_MAX && ret->kind < SYNC_KINDS &&
	       atomic_load(&at->since_ns) == since_ns;
}

/* A thread that was cancelled in the midst of a call is in it no more. Only of a process that
 * goes on: one that ends loses its threads before it is gone. Where it counts its threads
 * otherwise than we do, nobody can tell. */
static bool is_gone(const struct spooled *p, uint32_t thread)
{
	char path[64];

	if (p->pid != p->outer_pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", p->pid, thread);
	return access(path, F_OK) < 0;
}

void spooled_watch_waits(struct spooled *p)
{
	int64_t now_ns = clock_steady_ns();

	for (uint32_t i = 0; i < SEGMENT_WAITS; i++) {
		const struct segment_wait *at = &p->segment->waits[i];
		struct open_wait wait;

		if (!atomic_load_explicit(&at->since_ns, memory_order_relaxed) ||
		    !read_wait(at, now_ns, &wait) || now_ns - wait.since_ns < LONG_NS ||
		    !spooled_is_open(p, wait.since_ns))
			continue;
		(void)spooled_thread(p, wait.thread); /* collect/threads.h looks at it */
		/* Once for each: what it waits for was launched before. */
		if (now_ns - wait.since_ns >= HELD_NS && wait.since_ns > p->held_ns) {
			p->held_ns = now_ns;
			spooled_look_at_held(p);
		}
	}
}

/* "call=cudaStreamSynchronize;waited_ns=5;context=3;stream=13;device=0;...": what is not
 * known is left out. */
static int put_mark(struct spooled *p, enum mark_kind kind, int64_t time_ns,
		    const struct open_wait *wait, int64_t waited_ns, const char *how)
{
	const struct session *session = p->sink->session;
	uint32_t stream = spooled_stream_number(p, wait->context, wait->handle);
	const uint64_t *device = map_find(&p->devices, wait->context);
	char more[128] = "";
	size_t len = 0;
	struct mark mark = { .kind = kind, .time_ns = time_ns };

	if (stream != UINT32_MAX)
		len += (size_t)snprintf(more, sizeof(more), ";stream=%u", stream);
	else if (wait->handle && wait->handle <= HANDLE_THREAD)
		len += (size_t)snprintf(more, sizeof(more), ";stream=default");
	if (device)
		len += (size_t)snprintf(more + len, sizeof(more) - len, ";device=%u",
					(uint32_t)*device);
	(void)snprintf(more + len, sizeof(more) - len, "%s", how);
	mark.lane = spooled_thread(p, wait->thread);
	mark.name =
		intern_text(p->sink->session->strings,
			    kind == MARK_WAIT_OPEN ? "wait that did not return" : "wait failed");
	mark.detail =
		spooled_detail(p, "call=%s;waited_ns=%lld;context=%u;correlation=%u%s",
			       session_text(session, spooled_api(p, wait->domain, wait->cbid)),
			       (long long)waited_ns, wait->context, wait->correlation, more);
	return sink_mark(p->sink, &mark, p->err);
}

int spooled_failed_wait(struct spooled *p, const struct segment_slot *slot)
{
	struct open_wait wait = { .thread = slot->thread,
				  .kind = slot->a,
				  .since_ns = (int64_t)slot->value,
				  .context = slot->x[0],
				  .correlation = slot->b,
				  .domain = slot->x[6],
				  .cbid = slot->x[7] };
	char result[32];

	memcpy(&wait.handle, &slot->x[3], sizeof(wait.handle));
	(void)snprintf(result, sizeof(result), ";result=%u", slot->x[5]);
	return put_mark(p, MARK_WAIT_FAILED, (int64_t)slot->time_ns, &wait,
			(int64_t)slot->time_ns - wait.since_ns, result);
}

/* The call itself, which CUPTI tells of when it returns: it lasts as long as anything was
 * recorded. */
static int put_call(struct spooled *p, const struct open_wait *wait, int64_t end_ns)
{
	struct call call = { .kind = wait->domain == CUPTI_DOMAIN_DRIVER ? CALL_DRIVER
									 : CALL_RUNTIME,
			     .correlation = wait->correlation,
			     .start_ns = wait->since_ns,
			     .end_ns = end_ns < p->window->to_ns ? end_ns : p->window->to_ns };

	if (call.end_ns < call.start_ns)
		call.end_ns = call.start_ns;
	call.lane = spooled_thread(p, wait->thread);
	call.name = spooled_api(p, wait->domain, wait->cbid);
	call.detail = spooled_detail(p, "did_not_return=1");
	return sink_call(p->sink, &call, p->err);
}

/* Did CUPTI hand over what was launched before the call began? It keeps a record until what it
 * is of has ended, and what lies behind that, unless it is told not to. */
static const char *handover(const struct spooled *p, const struct open_wait *wait, bool lives)
{
	if (atomic_load(&p->segment->flushed_ns) >= (uint64_t)wait->since_ns)
		return ";handover=all";
	return lives ? ";handover=held" : ";handover=lost";
}

static int open_waits(struct spooled *p, int64_t end_ns, bool lives)
{
	uint64_t dropped = atomic_load(&p->segment->counts.waits_dropped);
	int ret = 0;

	for (uint32_t i = 0; i < SEGMENT_WAITS && ret >= 0; i++) {
		struct open_wait wait;

		if (!read_wait(&p->segment->waits[i], end_ns, &wait) ||
		    !spooled_is_open(p, wait.since_ns) || wait.since_ns < p->window->from_ns ||
		    wait.since_ns >= p->window->to_ns || (lives && is_gone(p, wait.thread)))
			continue;
		ret = put_call(p, &wait, end_ns);
		if (ret >= 0)
			ret = put_mark(p, MARK_WAIT_OPEN, wait.since_ns, &wait,
				       end_ns - wait.since_ns, handover(p, &wait, lives));
	}
	if (dropped)
		session_note(p->sink->session, p->source, NOTE_WAITS_LOST, p->pid,
			     (unsigned long long)dropped);
	return ret;
}

int spooled_unended(struct spooled *p, bool lives)
{
	int ret = spooled_untimed_marks(p);

	if (ret >= 0)
		ret = open_waits(p, clock_steady_ns(), lives);
	return ret < 0 ? ret : spooled_close_ranges(p, clock_steady_ns());
}
