#include "cmd/run_maps.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "collect/perf_request.h"

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

void run_maps_close(struct run_maps *maps, struct session *session)
{
	struct perf_request_counts counts;

	if (!maps)
		return;
	counts = perf_request_close(maps->request);
	if (session && !counts.seen)
		session_note(session, SESSION_NONE,
			     "--perf-map: no process wrote a perf map: none was Python 3.12 or "
			     "later that heeds its environment");
	if (session && counts.overrun)
		session_note(session, SESSION_NONE,
			     "--perf-map: more perf maps came at once than could be followed: some "
			     "may have stayed in /tmp");
	free(maps);
}
