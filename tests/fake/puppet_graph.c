/* puppet_graph.c - events and graphs of the driver's puppet: see puppet_cuda.h. */
#include <stdlib.h>
#include <string.h>

#include "fake/puppet_call.h"

enum { NODES_MAX = 64 };

struct node {
	const void *function;
	unsigned int shape[7];
};

struct graph {
	uint32_t id, count;
	struct node nodes[NODES_MAX];
};

static __thread struct graph *capturing;

static struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		abort();
	graph->id = puppet_new_id();
	return graph;
}

bool puppet_captured(const void *function, const unsigned int *shape)
{
	struct node *node;

	if (!capturing)
		return false;
	if (capturing->count == NODES_MAX)
		abort();
	node = &capturing->nodes[capturing->count++];
	node->function = function;
	memcpy(node->shape, shape, sizeof(node->shape));
	return true;
}

enum { EVENT_BYTES = 64 };

/* The one that was destroyed last: the next that is made has its address, as with a driver. */
static void *_Atomic spare;

int cuEventCreate(void **ret_event, unsigned int flags)
{
	const void *params[] = { ret_event, NULL };
	struct puppet_call call = puppet_begin(1, 118, params);

	(void)flags;
	*ret_event = atomic_exchange(&spare, NULL);
	if (*ret_event)
		memset(*ret_event, 0, EVENT_BYTES);
	else
		*ret_event = calloc(1, EVENT_BYTES);
	return puppet_end(&call, *ret_event ? 0 : 2);
}

int cuEventDestroy_v2(void *event)
{
	const void *params[] = { event };
	struct puppet_call call = puppet_begin(1, 325, params);

	free(atomic_exchange(&spare, event));
	return puppet_end(&call, 0);
}

/* What an event's memory holds. */
struct event {
	uint64_t done_ns;
};

int cuEventRecord(void *at, void *stream)
{
	const void *params[] = { at, stream };
	struct puppet_call call = puppet_begin(1, 120, params);
	struct event *event = at;

	event->done_ns = atomic_load(&puppet_stream(stream)->free_ns);
	return puppet_end(&call, 0);
}

int cuStreamWaitEvent(void *stream, void *at, unsigned int flags)
{
	const void *params[] = { stream, at, NULL };
	struct puppet_call call = puppet_begin(1, 295, params);
	struct puppet_stream *waits = puppet_stream(stream);
	const struct event *event = at;
	uint64_t free_ns = atomic_load(&waits->free_ns);

	(void)flags;
	while (free_ns < event->done_ns &&
	       !atomic_compare_exchange_weak(&waits->free_ns, &free_ns, event->done_ns))
		;
	return puppet_end(&call, 0);
}

int cudaEventCreate(void **ret_event)
{
	const void *params[] = { ret_event };
	struct puppet_call call = puppet_begin(2, 133, params);

	return puppet_end(&call, cuEventCreate(ret_event, 0));
}

int cudaEventDestroy(void *event)
{
	const void *params[] = { event };
	struct puppet_call call = puppet_begin(2, 136, params);

	return puppet_end(&call, cuEventDestroy_v2(event));
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	(void)stream;
	if (mode || capturing)
		return PUPPET_INVALID_VALUE;
	capturing = graph_new();
	return 0;
}

int cuStreamEndCapture(void *stream, void **ret_graph)
{
	const void *params[] = { stream, ret_graph };
	struct puppet_call call = puppet_begin(1, 497, params);

	*ret_graph = capturing;
	capturing = NULL;
	return puppet_end(&call, *ret_graph ? 0 : PUPPET_INVALID_VALUE);
}

int cuGraphCreate(void **ret_graph, unsigned int flags)
{
	const void *params[] = { ret_graph, NULL };
	struct puppet_call call = puppet_begin(1, 501, params);

	(void)flags;
	*ret_graph = graph_new();
	return puppet_end(&call, 0);
}

int cuGraphInstantiateWithFlags(void **ret_exec, void *graph, unsigned long long flags)
{
	const void *params[] = { ret_exec, graph, NULL };
	struct puppet_call call = puppet_begin(1, 643, params);
	struct graph *exec = graph_new();
	uint32_t id = exec->id;

	(void)flags;
	*exec = *(struct graph *)graph;
	exec->id = id;
	*ret_exec = exec;
	return puppet_end(&call, 0);
}

int cuGraphLaunch(void *exec, void *stream)
{
	struct puppet_call call = puppet_begin(1, 514, NULL);
	struct puppet_event whole = puppet_event_of(&call, PUPPET_GRAPH);
	struct puppet_stream *on = puppet_stream(stream);
	const struct graph *graph = exec;

	whole.graph = graph->id;
	whole.stream_id = on->id;
	for (uint32_t i = 0; i < graph->count && call.alive; i++) {
		struct puppet_event event = puppet_event_of(&call, PUPPET_KERNEL);

		event.name = graph->nodes[i].function;
		event.graph = graph->id;
		event.node = (uint64_t)graph->id << 32 | (i + 1);
		for (int k = 0; k < 3; k++) {
			event.grid[k] = (int32_t)graph->nodes[i].shape[k];
			event.block[k] = (int32_t)graph->nodes[i].shape[3 + k];
		}
		puppet_run_on(on, &event, PUPPET_KERNEL_NS);
		whole.start = i ? whole.start : event.start;
		whole.end = event.end;
	}
	if (call.alive)
		puppet_tell(&whole);
	return puppet_end(&call, 0);
}

int cuGraphExecDestroy(void *exec)
{
	const void *params[] = { exec };
	struct puppet_call call = puppet_begin(1, 516, params);

	free(exec);
	return puppet_end(&call, 0);
}

int cuGraphDestroy(void *graph)
{
	const void *params[] = { graph };
	struct puppet_call call = puppet_begin(1, 517, params);

	free(graph);
	return puppet_end(&call, 0);
}
