#include "cmd/run_maps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "collect/perf_request.h"
#include "collect/python.h"
#include "model/note.h"

#define SUPPORT "PYTHONPERFSUPPORT"

struct run_maps {
	struct perf_request *request;
};

int run_maps_open(struct run_maps **ret_maps, struct err *err)
{
	const char *before = getenv(SUPPORT);
	struct perf_request *request;
	int64_t wanted;

	*ret_maps = NULL;
	/* As CPython reads it: any number but 0. */
	if (before && str_to_i64(str_trim(str_of(before)), &wanted) && wanted)
		return 0;
	if (perf_request_open("", &request, err) < 0)
		return err_context(err, "--perf-map");
	*ret_maps = mem_zero(sizeof(**ret_maps));
	(*ret_maps)->request = request;
	return 0;
}

size_t run_maps_environment(const struct run_maps *maps, struct buf *ret_env)
{
	buf_text(&ret_env[0], SUPPORT "=1");
	buf_text(&ret_env[1], perf_request_mark(maps->request));
	return 2;
}

/* Which Python is too old to write a map. False: none. */
static bool tell_old(const struct threads *threads, struct session *session)
{
	static const uint32_t WRITES = 0x030c0000;
	char number[16];
	int64_t first_pid = 0, pid;
	uint32_t first = 0, version;
	int more = -1;

	for (size_t i = 0; threads_python(threads, i, &pid, &version); i++) {
		if (!version || version >= WRITES)
			continue;
		if (!first) {
			first = version;
			first_pid = pid;
		}
		more++;
	}
	if (!first)
		return false;
	(void)snprintf(number, sizeof(number), "%u.%u", first >> 24 & 255, first >> 16 & 255);
	session_note(session, SESSION_NONE, NOTE_MAPS_OLD,
		     first == PYTHON_OLD ? NOTE_MAPS_OLDER : number, (long long)first_pid,
		     more ? NOTE_AND_OTHERS : "");
	return true;
}

static void tell(const struct perf_request_counts *counts, const struct threads *threads,
		 struct session *session)
{
	if (!tell_old(threads, session) && !counts->seen)
		session_note(session, SESSION_NONE, NOTE_MAPS_NONE);
	if (counts->unsure || counts->overrun)
		session_note(session, SESSION_NONE, NOTE_MAPS_STAYED, (long long)counts->unsure,
			     counts->overrun ? NOTE_OR_MORE : "");
}

void run_maps_close(struct run_maps *maps, const struct threads *threads, struct session *session)
{
	struct perf_request_counts counts;

	if (!maps)
		return;
	counts = perf_request_close(maps->request);
	if (session)
		tell(&counts, threads, session);
	free(maps);
}
