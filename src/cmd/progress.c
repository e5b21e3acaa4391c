#include "cmd/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

enum { EVENTS_A_LOOK = 16384 };                   /* asking the clock costs more than counting */
static const int64_t REDRAW_NS = 200 * 1000000LL; /* five times a second moves, and can be read */

static void draw(struct progress *progress)
{
	int64_t now = clock_steady_ns();
	struct unit_text text;

	if (now - progress->shown_ns < REDRAW_NS)
		return;
	progress->shown_ns = now;
	progress->drawn = true;
	(void)fprintf(stderr, "\r\033[K%.50s: %s", progress->what,
		      units_count(&text, progress->events));
}

static void count(struct progress *progress)
{
	if (!(++progress->events % EVENTS_A_LOOK))
		draw(progress);
}

#define X(name)                                                                                  \
	static int progress_##name(struct sink *sink, const struct name *event, struct err *err) \
	{                                                                                        \
		struct progress *progress = (struct progress *)sink;                             \
                                                                                                 \
		count(progress);                                                                 \
		return sink_##name(progress->behind, event, err);                                \
	}
SINK_LIST(X)
#undef X

static int progress_pause(struct sink *sink, int64_t *ret_again_ns, struct err *err)
{
	struct progress *progress = (struct progress *)sink;

	draw(progress);
	return sink_pause(progress->behind, ret_again_ns, err);
}

static const struct sink_ops progress_ops = {
#define X(name) .name = progress_##name,
	SINK_LIST(X)
#undef X
		.pause = progress_pause,
};

struct sink *progress_sink(struct progress *progress, struct sink *behind)
{
	if (!isatty(STDERR_FILENO))
		return behind;
	progress->sink.ops = &progress_ops;
	progress->sink.session = behind->session;
	progress->behind = behind;
	return &progress->sink;
}

void progress_start(struct progress *progress, const char *what)
{
	progress->what = what;
	progress->events = 0;
	progress->shown_ns = clock_steady_ns();
}

void progress_stop(struct progress *progress)
{
	if (progress->drawn)
		(void)fputs("\r\033[K", stderr);
	progress->drawn = false;
}
