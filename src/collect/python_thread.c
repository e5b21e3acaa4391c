#include "collect/python_thread.h"

#include <stdlib.h>

#include "base/mem.h"
#include "collect/stack_look.h"

struct python_thread {
	struct python *python;
	int64_t tid;
	struct stack_look look;
};

struct python_thread *python_thread_new(struct python *python, int64_t tid, uint32_t lane,
					struct sink *sink)
{
	struct python_thread *thread = mem_zero(sizeof(*thread));

	thread->python = python;
	thread->tid = tid;
	thread->look =
		(struct stack_look){ .sink = sink, .lane = lane, .kind = RANGE_PYTHON_STACK };
	return thread;
}

void python_thread_free(struct python_thread *thread)
{
	if (!thread)
		return;
	stack_look_done(&thread->look);
	free(thread);
}

int python_thread_finish(struct python_thread *thread, int64_t now_ns, struct err *err)
{
	return stack_look_put(&thread->look, now_ns, err);
}

int python_thread_look(struct python_thread *thread, int64_t now_ns, struct err *err)
{
	struct stack_look *look = &thread->look;

	if (stack_look_put(look, now_ns, err) < 0)
		return err->code;
	stack_look_begin(look, now_ns);
	python_look(thread->python, thread->tid, now_ns, &look->leaf, &look->chain);
	return 0;
}
