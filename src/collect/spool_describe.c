/* spool_describe.c - what a process said of itself, as rows of the environment. */
#include "collect/spool_process.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"

/* Time in callbacks of CUPTI, in threads of the program. */
static void describe_callbacks(const struct spooled *p)
{
	const struct segment_counts *counts = &p->segment->counts;
	uint64_t callbacks = atomic_load(&counts->callbacks);
	struct buf text = { 0 };

	if (!callbacks)
		return;
	buf_printf(&text, "callbacks=%" PRIu64 ";ns=%" PRIu64, callbacks,
		   atomic_load(&counts->callback_ns));
	session_env(p->sink->session, p->source, SESSION_NONE, STR("callback_cost"),
		    (struct str){ text.at, text.len });
	buf_done(&text);
}

/* "13.0.1 /usr/lib/libcupti.so.13". Before 13 its versions counted on their own. */
static void describe_cupti(const struct spooled *p)
{
	uint32_t version = p->segment->cupti_version;
	char path[sizeof(p->segment->cupti_path)];
	struct buf text = { 0 };

	memcpy(path, p->segment->cupti_path, sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	if (!version)
		return;
	if (version >= 10000)
		buf_printf(&text, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
	else
		buf_printf(&text, "API %u", version);
	if (*path)
		buf_printf(&text, " %s", path);
	session_env(p->sink->session, p->source, SESSION_NONE, STR("cupti"),
		    (struct str){ text.at, text.len });
	buf_done(&text);
}

void spooled_describe(const struct spooled *p)
{
	describe_callbacks(p);
	describe_cupti(p);
}
