#include "rules/tell_thread.h"

#include <string.h>

#include "base/i18n.h"
#include "base/str.h"
#include "base/units.h"
#include "model/thread_state.h"
#include "rules/tell.h"

/* Of a cause, what a call must cover to speak for it. */
static const int64_t CALL_PARTS = 2;

/* System calls and functions of the C library, by what they wait for. A read that
 * sleeps is of a pipe or socket: of a file it is uninterruptible. */
static const struct {
	const char *name;
	enum thread_wait wait;
} CALLS[] = {
	{ "futex", THREAD_LOCK },
	{ "pthread_", THREAD_LOCK },
	{ "sem_", THREAD_LOCK },
	{ "poll", THREAD_PIPE },
	{ "ppoll", THREAD_PIPE },
	{ "select", THREAD_PIPE },
	{ "pselect", THREAD_PIPE },
	{ "epoll_", THREAD_PIPE },
	{ "read", THREAD_PIPE },
	{ "recv", THREAD_PIPE },
	{ "accept", THREAD_PIPE },
	{ "connect", THREAD_PIPE },
	{ "write", THREAD_PIPE },
	{ "send", THREAD_PIPE },
	{ "pread", THREAD_STORAGE },
	{ "pwrite", THREAD_STORAGE },
	{ "open", THREAD_STORAGE },
	{ "fsync", THREAD_STORAGE },
	{ "fdatasync", THREAD_STORAGE },
	{ "nanosleep", THREAD_SLEEP },
	{ "clock_nanosleep", THREAD_SLEEP },
	{ "usleep", THREAD_SLEEP },
	{ "sleep", THREAD_SLEEP },
	{ "wait", THREAD_CHILD },
};

static enum thread_wait wait_of_call(struct str call)
{
	for (size_t i = 0; i < sizeof(CALLS) / sizeof(*CALLS); i++)
		if (str_starts(call, CALLS[i].name))
			return CALLS[i].wait;
	return THREAD_OTHER;
}

enum thread_wait thread_wait_of(const char *state)
{
	const char *call;

	if (!*state)
		return THREAD_UNKNOWN;
	switch (thread_state_of(state, &call)) {
	case THREAD_STATE_running:
		return THREAD_RUNS;
	case THREAD_STATE_runnable:
		return THREAD_NO_CORE;
	case THREAD_STATE_uninterruptible:
		return THREAD_STORAGE;
	case THREAD_STATE_waiting:
	case THREAD_STATE_stopped:
		return wait_of_call(str_of(call));
	default:
		return wait_of_call(str_of(state));
	}
}

enum thread_wait thread_wait(const struct facts *facts, const struct idle_fact *idle)
{
	const struct during *most = idle->during.count ? &idle->during.at[0] : NULL;
	enum thread_wait wait;

	if (idle->thread_state)
		return thread_wait_of(idle->thread_state);
	if (!most || most->kind != ACTIVITY_CALL || CALL_PARTS * most->ns < idle->ns ||
	    !facts->session)
		return THREAD_UNKNOWN;
	/* CUDA's calls are in the same list, and wait for nothing of this. */
	wait = thread_wait_of(session_text(facts->session, most->name));
	return wait == THREAD_OTHER ? THREAD_UNKNOWN : wait;
}

const char *thread_wait_text(enum thread_wait wait)
{
	static const char *const text[] = {
		[THREAD_UNKNOWN] = "",
		[THREAD_RUNS] = N_("it ran: it did something itself"),
		[THREAD_NO_CORE] = N_("it was ready to run, but no core was free"),
		[THREAD_LOCK] = N_("it waited for another thread or process"),
		[THREAD_PIPE] = N_("it waited for a pipe or socket, as of worker processes"),
		[THREAD_STORAGE] = N_("it waited for storage"),
		[THREAD_SLEEP] = N_("it slept of its own accord"),
		[THREAD_CHILD] = N_("it waited for a process to end"),
		[THREAD_OTHER] = N_("it waited"),
	};

	return *text[wait] ? _(text[wait]) : "";
}

/* "it ran, most of the time in cudaLaunchKernel": what it did is known. */
static const char *running_text(const struct facts *facts, const struct idle_fact *idle,
				struct findings *findings)
{
	const struct during *most = idle->during.count ? &idle->during.at[0] : NULL;

	if (!most || most->kind != ACTIVITY_CALL || CALL_PARTS * most->ns < idle->ns)
		return thread_wait_text(THREAD_RUNS);
	return finding_text(findings, _("it ran, most of the time in %s"),
			    session_text(facts->session, most->name));
}

static const char *state_text(const struct facts *facts, const struct idle_fact *idle,
			      struct findings *findings)
{
	const char *state = idle->thread_state;
	enum thread_wait wait = thread_wait_of(state);
	const char *what =
		wait == THREAD_RUNS ? running_text(facts, idle, findings) : thread_wait_text(wait);
	struct unit_text ns, all;

	if (idle->thread_ns > 0) /* "it waited for storage", "waiting: pread", "1.2 s", "1.4 s" */
		return finding_text(
			findings,
			_(" Its thread meanwhile: %s (%s, %s of %s by context switches)."), what,
			state, units_ns(&ns, idle->thread_state_ns),
			units_ns(&all, idle->thread_ns));
	return finding_text(findings, _(" Its thread meanwhile: %s (%s, in %lld of %lld looks)."),
			    what, state, (long long)idle->thread_state_looks,
			    (long long)idle->thread_looks);
}

/* The name that most processes of which nothing is recorded have, in *ret_count of them. */
static const char *most_met(const struct session *session, size_t *ret_count)
{
	const char *most = "";

	*ret_count = 0;
	for (uint32_t i = 0; i < session->processes.count; i++) {
		size_t count = 0;

		if (!session_process_is_bare(session, i))
			continue;
		for (uint32_t k = i; k < session->processes.count; k++)
			count += session->processes.at[k].name == session->processes.at[i].name &&
				 session_process_is_bare(session, k);
		if (count > *ret_count) {
			*ret_count = count;
			most = session_text(session, session->processes.at[i].name);
		}
	}
	return most;
}

/* Whom it may have waited for: workers come in several, by one name. */
static const char *tell_workers(const struct facts *facts, enum thread_wait wait, const char *text,
				struct findings *findings)
{
	const char *name;
	size_t count;

	if (wait != THREAD_LOCK && wait != THREAD_PIPE && wait != THREAD_CHILD)
		return text;
	name = most_met(facts->session, &count);
	return count > 1 ? finding_text(findings, _("%s Beside it there were %zu x %s."), text,
					count, name)
			 : text;
}

const char *tell_thread(const struct facts *facts, const struct idle_fact *idle,
			struct findings *findings)
{
	const char *text = "";

	if (!facts->session)
		return text;
	if (idle->thread_state)
		text = state_text(facts, idle, findings);
	else if (thread_wait(facts, idle))
		text = finding_text(findings, _(" Its thread meanwhile: %s (in %s)."),
				    thread_wait_text(thread_wait(facts, idle)),
				    session_text(facts->session, idle->during.at[0].name));
	text = tell_workers(facts, thread_wait(facts, idle), text, findings);
	if (idle->python)
		text = finding_text(findings, _("%s Python was in %s in %lld of %lld looks."), text,
				    session_text(facts->session, idle->python),
				    (long long)idle->python_function_looks,
				    (long long)idle->python_looks);
	if (idle->cpu && !idle->cpu_is_python && thread_wait(facts, idle) <= THREAD_RUNS)
		text = finding_text(
			findings, _("%s On a core it was in %s in %lld of %lld samples."), text,
			session_text(facts->session, idle->cpu),
			(long long)idle->cpu_function_samples, (long long)idle->cpu_samples);
	if (idle->board.count) /* "Xid 79 on GPU 0 3 ms into it" */
		text = finding_text(findings, _("%s In the longest gap: %s."), text,
				    idle->board.at[0]);
	return text;
}
