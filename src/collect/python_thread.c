#include "collect/python_thread.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

struct python_thread {
	struct python *python;
	struct sink *sink;
	int64_t tid;
	uint32_t lane;
	int64_t seen_ns;
	struct buf leaf, chain; /* of the last look; no leaf: nothing seen */
};

struct python_thread *python_thread_new(struct python *python, int64_t tid, uint32_t lane,
					struct sink *sink)
{
	struct python_thread *thread = mem_zero(sizeof(*thread));

	thread->python = python;
	thread->tid = tid;
	thread->lane = lane;
	thread->sink = sink;
	return thread;
}

void python_thread_free(struct python_thread *thread)
{
	if (!thread)
		return;
	buf_done(&thread->leaf);
	buf_done(&thread->chain);
	free(thread);
}

int python_thread_finish(struct python_thread *thread, int64_t now_ns, struct err *err)
{
	struct session *session = thread->sink->session;
	struct range range = { .kind = RANGE_PYTHON_STACK,
			       .lane = thread->lane,
			       .start_ns = thread->seen_ns,
			       .end_ns = now_ns };

	if (!thread->leaf.len)
		return 0;
	range.name = session_string(session, thread->leaf.at, thread->leaf.len);
	range.detail = session_detail(session, thread->chain.at, thread->chain.len);
	buf_clear(&thread->leaf);
	return sink_range(thread->sink, &range, err);
}

int python_thread_look(struct python_thread *thread, int64_t now_ns, struct err *err)
{
	if (python_thread_finish(thread, now_ns, err) < 0)
		return err->code;
	buf_clear(&thread->chain);
	buf_text(&thread->chain, "stack=");
	python_look(thread->python, thread->tid, now_ns, &thread->leaf, &thread->chain);
	thread->seen_ns = now_ns;
	return 0;
}
