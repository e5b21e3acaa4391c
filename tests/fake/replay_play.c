/*
 * replay_play.c - plays what a log says that CUPTI did of itself: see replay_cupti.h.
 *
 * One actor for each thread of the log, the caller of puppet_play for the one that began.
 * They take turns: the next event is played by whose it is, when its time has come.
 */
#include "fake/replay_cupti.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fake/puppet_cupti.h"

enum { ACTORS = 256 };

struct actor {
	uint32_t was, is; /* its number in the log, and now; 0: has not begun */
	pthread_t thread;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t turn;
	size_t next, count; /* events */
	struct actor actors[ACTORS];
	size_t actor_count;
	bool begun;
	size_t refused; /* records */
} stage = { .lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER };

static struct actor *actor_of(uint32_t tid)
{
	for (size_t i = 0; i < stage.actor_count; i++)
		if (stage.actors[i].was == tid)
			return &stage.actors[i];
	return NULL;
}

static void add_actor(uint32_t tid, uint32_t line)
{
	if (!tid || actor_of(tid))
		return;
	if (stage.actor_count == ACTORS)
		log_stop(line, "more than %d threads", ACTORS);
	stage.actors[stage.actor_count++].was = tid;
}

/* Where records have times. */
static const struct {
	uint32_t kind;
	size_t at;
} TIMES[] = {
	{ CUPTI_KIND_CONCURRENT_KERNEL, offsetof(struct cupti_kernel, start) },
	{ CUPTI_KIND_CONCURRENT_KERNEL, offsetof(struct cupti_kernel, end) },
	{ CUPTI_KIND_CONCURRENT_KERNEL, offsetof(struct cupti_kernel, completed) },
	{ CUPTI_KIND_CONCURRENT_KERNEL, offsetof(struct cupti_kernel, queued) },
	{ CUPTI_KIND_CONCURRENT_KERNEL, offsetof(struct cupti_kernel, submitted) },
	{ CUPTI_KIND_KERNEL, offsetof(struct cupti_kernel, start) },
	{ CUPTI_KIND_KERNEL, offsetof(struct cupti_kernel, end) },
	{ CUPTI_KIND_KERNEL, offsetof(struct cupti_kernel, completed) },
	{ CUPTI_KIND_KERNEL, offsetof(struct cupti_kernel, queued) },
	{ CUPTI_KIND_KERNEL, offsetof(struct cupti_kernel, submitted) },
	{ CUPTI_KIND_RUNTIME, offsetof(struct cupti_api, start) },
	{ CUPTI_KIND_RUNTIME, offsetof(struct cupti_api, end) },
	{ CUPTI_KIND_DRIVER, offsetof(struct cupti_api, start) },
	{ CUPTI_KIND_DRIVER, offsetof(struct cupti_api, end) },
	{ CUPTI_KIND_MEMCPY, offsetof(struct cupti_memcpy, start) },
	{ CUPTI_KIND_MEMCPY, offsetof(struct cupti_memcpy, end) },
	{ CUPTI_KIND_MEMCPY2, offsetof(struct cupti_memcpy_peer, start) },
	{ CUPTI_KIND_MEMCPY2, offsetof(struct cupti_memcpy_peer, end) },
	{ CUPTI_KIND_MEMSET, offsetof(struct cupti_memset, start) },
	{ CUPTI_KIND_MEMSET, offsetof(struct cupti_memset, end) },
	{ CUPTI_KIND_OVERHEAD, offsetof(struct cupti_overhead, start) },
	{ CUPTI_KIND_OVERHEAD, offsetof(struct cupti_overhead, end) },
	{ CUPTI_KIND_GRAPH_TRACE, offsetof(struct cupti_graph, start) },
	{ CUPTI_KIND_GRAPH_TRACE, offsetof(struct cupti_graph, end) },
	{ CUPTI_KIND_UNIFIED_MEMORY, offsetof(struct cupti_unified, start) },
	{ CUPTI_KIND_UNIFIED_MEMORY, offsetof(struct cupti_unified, end) },
	{ CUPTI_KIND_JIT, offsetof(struct cupti_jit, start) },
	{ CUPTI_KIND_JIT, offsetof(struct cupti_jit, end) },
	{ CUPTI_KIND_MEMORY2, offsetof(struct cupti_memory, time) },
	{ CUPTI_KIND_MEMORY_POOL, offsetof(struct cupti_pool, time) },
};

/* A time that is not known stays so. */
static void move_time(uint8_t *record, size_t at)
{
	const struct cupti_log *log = log_now();
	int64_t by_ns = log->monotonic ? replay.base_ns - log->start_ns
				       : replay.base_real_ns - log->start_real_ns;
	uint64_t time_ns;

	memcpy(&time_ns, record + at, sizeof(time_ns));
	if (time_ns)
		time_ns += (uint64_t)(by_ns - log->subscribed_ns);
	memcpy(record + at, &time_ns, sizeof(time_ns));
}

static void move_thread(uint8_t *record)
{
	struct cupti_api api;
	const struct actor *actor;

	memcpy(&api, record, sizeof(api));
	actor = actor_of(api.thread);
	api.process = (uint32_t)getpid();
	if (actor)
		api.thread = actor->is;
	memcpy(record, &api, sizeof(api));
}

/* Whose the cost is: CUPTI's kinds of objects that are a process or a thread of it. */
static void move_owner(uint8_t *record)
{
	enum { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };
	struct cupti_overhead overhead;
	const struct actor *actor;

	memcpy(&overhead, record, sizeof(overhead));
	if (overhead.object_kind != OBJECT_PROCESS && overhead.object_kind != OBJECT_THREAD)
		return;
	actor = actor_of(overhead.object[1]);
	overhead.object[0] = (uint32_t)getpid();
	if (actor)
		overhead.object[1] = actor->is;
	memcpy(record, &overhead, sizeof(overhead));
}

static bool is_call(const struct log_record *record)
{
	return (record->kind == CUPTI_KIND_RUNTIME || record->kind == CUPTI_KIND_DRIVER) &&
	       record->bytes >= sizeof(struct cupti_api);
}

/* A record of the log's into the present. */
static void move(uint8_t *record, const struct log_record *from)
{
	uint64_t name = (uint64_t)(uintptr_t)from->name;
	size_t at = cupti_log_name_at(from->kind);

	for (size_t i = 0; i < sizeof(TIMES) / sizeof(TIMES[0]); i++)
		if (TIMES[i].kind == from->kind && TIMES[i].at + sizeof(uint64_t) <= from->bytes)
			move_time(record, TIMES[i].at);
	if (is_call(from))
		move_thread(record);
	if (from->kind == CUPTI_KIND_OVERHEAD && from->bytes >= sizeof(struct cupti_overhead))
		move_owner(record);
	if (at && at + sizeof(name) <= from->bytes)
		memcpy(record + at, &name, sizeof(name));
}

/* Threads that appear in records alone were there, too. */
static void gather(void)
{
	struct cupti_log *log = log_now();

	add_actor(log->tid, 0);
	for (size_t i = 0; i < log->event_count; i++) {
		const struct log_event *event = &log->events[i];

		add_actor(event->tid, event->line);
		for (size_t k = 0;
		     event->kind == 'd' && k < event->count && event->first + k < log->record_count;
		     k++) {
			const struct log_record *record = &log->records[event->first + k];
			struct cupti_api api;

			if (!is_call(record))
				continue;
			memcpy(&api, log->bytes + record->at, sizeof(api));
			add_actor(api.thread, event->line);
		}
	}
}

/* Does the call give something out by a pointer? Of others the parameter itself is what counts,
 * though it may have pointed to something. */
static bool makes(const struct log_event *event)
{
	static const char *const words[] = { "Create", "Clone", "EndCapture", "Instantiate",
					     "OpenEventHandle" };
	const struct cupti_log *log = log_now();
	uint64_t in[] = { event->domain, event->cbid };
	uint64_t key = log_key(CALL_cuptiGetCallbackName, in, 2);
	const char *name = NULL;

	for (size_t i = 0; i < log->call_count && !name; i++)
		if (log->calls[i].key == key && log->calls[i].call == CALL_cuptiGetCallbackName)
			name = log->calls[i].text;
	for (size_t i = 0; name && i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static void play_callback(struct log_event *event)
{
	uintptr_t parameters[2];
	uint32_t result = (uint32_t)(uintptr_t)event->call.result;
	struct cupti_callback call = event->call;
	struct cupti_resource resource = { (void *)event->context, (void *)event->stream,
					   &event->module };
	const void *data = &resource;

	if (!replay.callback ||
	    !(replay.watched[event->domain][event->cbid / 64] >> event->cbid % 64 & 1))
		return;
	if (event->kind == 'b') {
		for (size_t i = 0; i < 2; i++)
			parameters[i] = event->words[i] && makes(event)
						? (uintptr_t)&event->pointed[i]
						: event->words[i];
		call.params = parameters;
		call.result = &result;
		call.context = (void *)event->context;
		data = &call;
	}
	replay.callback(replay.user, event->domain, event->cbid, data);
}

static void ask(struct log_event *event)
{
	size_t records = 0;

	if (replay.asked)
		replay.asked(&event->lent, &event->lent_bytes, &records);
}

/* Which of the buffers that come back with records this is, from 1 on. */
static uint32_t place_of(const struct log_event *event)
{
	struct cupti_log *log = log_now();
	uint32_t place = 0;

	for (const struct log_event *at = log->events; at <= event; at++)
		place += at->kind == 'd' && at->count;
	return place;
}

/* Whose records come back with `event`. */
static const struct log_event *contents_of(const struct log_event *event)
{
	struct cupti_log *log = log_now();
	uint32_t swap = puppet_word("swap-buffers"), place = place_of(event);
	uint32_t wanted = place == swap ? swap + 1 : swap;

	if (!swap || !event->count || (place != swap && place != swap + 1))
		return event;
	for (size_t i = 0; i < log->event_count; i++)
		if (log->events[i].kind == 'd' && log->events[i].count &&
		    place_of(&log->events[i]) == wanted)
			return &log->events[i];
	return event;
}

static void give_back(struct log_event *lent, size_t valid)
{
	if (lent->lent)
		replay.done(NULL, 0, lent->lent, lent->lent_bytes, valid);
	lent->lent = NULL;
	lent->lent_bytes = 0;
}

/* Its place in what it is filled with, and how much of that is used. */
static bool fill(const struct log_event *lent, size_t used, const struct log_record *from)
{
	uint8_t record[CUPTI_LOG_RECORD_BYTES];

	if (!lent->lent || lent->lent_bytes - used < from->bytes)
		return false;
	memcpy(record, log_now()->bytes + from->at, from->bytes);
	move(record, from);
	memcpy(lent->lent + used, record, from->bytes);
	return true;
}

/* When the last of its times was, in the log's. */
static int64_t ended_ns(const struct log_record *record)
{
	const struct cupti_log *log = log_now();
	int64_t start_ns = log->monotonic ? log->start_ns : log->start_real_ns, ended = 0, time_ns;

	for (size_t i = 0; i < sizeof(TIMES) / sizeof(TIMES[0]); i++) {
		if (TIMES[i].kind != record->kind || TIMES[i].at + sizeof(time_ns) > record->bytes)
			continue;
		memcpy(&time_ns, log->bytes + record->at + TIMES[i].at, sizeof(time_ns));
		if (time_ns - start_ns > ended)
			ended = time_ns - start_ns;
	}
	return ended;
}

/* What CUPTI had written by then into buffers that it still has, as far as nothing is missing. */
static void __attribute__((noreturn)) die(const struct log_event *event)
{
	struct cupti_log *log = log_now();

	for (const struct log_event *at = log->events; at < log->events + log->event_count; at++) {
		const struct log_event *lent = &log->events[at->asked];
		size_t used = 0;

		for (size_t i = 0;
		     at->kind == 'd' && i < at->count && at->first + i < log->record_count; i++) {
			const struct log_record *from = &log->records[at->first + i];

			if (ended_ns(from) > event->time_ns || !fill(lent, used, from))
				break;
			used += from->bytes;
		}
	}
	(void)kill(getpid(), SIGKILL);
	for (;;)
		(void)pause();
}

/* What does not fit, as the log's was larger, comes in another. */
static void play_done(struct log_event *event)
{
	struct cupti_log *log = log_now();
	struct log_event *lent = &log->events[event->asked];
	const struct log_event *contents = contents_of(event);
	size_t used = 0, count = contents->count;

	if (event->count && place_of(event) == puppet_word("short-buffer"))
		count /= 2;
	if (!replay.done || (event->count && place_of(event) == puppet_word("drop-buffer")))
		return;
	for (size_t i = 0; i < count && contents->first + i < log->record_count; i++) {
		const struct log_record *from = &log->records[contents->first + i];

		if (lent->lent_bytes - used < from->bytes) {
			give_back(lent, used);
			ask(lent);
			used = 0;
		}
		if (fill(lent, used, from))
			used += from->bytes;
		else
			stage.refused++;
	}
	if (!event->count || place_of(event) != puppet_word("keep-buffer"))
		give_back(lent, used);
}

static void wait_until(int64_t time_ns)
{
	int64_t at = replay.base_ns + time_ns - log_now()->subscribed_ns;
	struct timespec until = { at / 1000000000, at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void play(struct log_event *event)
{
	wait_until(event->time_ns);
	atomic_store(&replay.line, event->line);
	replay_line = event->line;
	if (event - log_now()->events + 1 == puppet_word("kill"))
		die(event);
	if (event->kind == 'a')
		ask(event);
	else if (event->kind == 'd')
		play_done(event);
	else
		play_callback(event);
	replay_line = 0;
}

/* Until there is nothing left for anybody. */
static void *act(void *user)
{
	struct cupti_log *log = log_now();
	struct actor *me = user;

	pthread_mutex_lock(&stage.lock);
	me->is = (uint32_t)gettid();
	pthread_cond_broadcast(&stage.turn);
	while (!stage.begun)
		pthread_cond_wait(&stage.turn, &stage.lock);
	while (stage.next < stage.count) {
		struct log_event *event = &log->events[stage.next];

		if (event->tid != me->was) {
			pthread_cond_wait(&stage.turn, &stage.lock);
			continue;
		}
		pthread_mutex_unlock(&stage.lock);
		play(event);
		pthread_mutex_lock(&stage.lock);
		stage.next++;
		pthread_cond_broadcast(&stage.turn);
	}
	pthread_mutex_unlock(&stage.lock);
	return NULL;
}

/* Each has its number before anything is played. */
static void cast_actors(void)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	pthread_mutex_lock(&stage.lock);
	for (size_t i = 1; i < stage.actor_count; i++) {
		if (pthread_create(&stage.actors[i].thread, &attr, act, &stage.actors[i]))
			log_stop(0, "no thread can be made");
		while (!stage.actors[i].is)
			pthread_cond_wait(&stage.turn, &stage.lock);
	}
	pthread_mutex_unlock(&stage.lock);
	pthread_attr_destroy(&attr);
}

size_t puppet_play(void)
{
	struct cupti_log *log = log_now();
	uint32_t until = puppet_word("until");

	if (!replay.callback && !replay.asked)
		return log->kernels; /* nobody listens */
	gather();
	stage.count = until && until < log->event_count ? until : log->event_count;
	stage.actors[0].is = (uint32_t)gettid();
	cast_actors();
	pthread_mutex_lock(&stage.lock);
	stage.begun = true;
	pthread_cond_broadcast(&stage.turn);
	pthread_mutex_unlock(&stage.lock);
	(void)act(&stage.actors[0]);
	for (size_t i = 1; i < stage.actor_count; i++)
		(void)pthread_join(stage.actors[i].thread, NULL);
	if (stage.refused)
		fprintf(stderr, "puppet: %zu records found no buffer\n", stage.refused);
	return log->kernels;
}
