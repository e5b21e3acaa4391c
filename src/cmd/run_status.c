#include "cmd/run_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/i18n.h"
#include "base/units.h"

static const int64_t REDRAW_NS = 500000000;

void run_status_start(struct run_status *status, bool wanted)
{
	const char *term = getenv("TERM");

	status->on = wanted && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
	status->in_title = isatty(STDOUT_FILENO);
	status->start_ns = status->shown_ns = clock_steady_ns();
}

/* The file as it grows has another name, and a log beside it. */
static int64_t size_of(const char *path)
{
	static const char *const suffixes[] = { ".part", ".part-wal" };
	int64_t bytes = 0;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		struct buf name = { 0 };
		struct stat is;

		buf_printf(&name, "%s%s", path, suffixes[i]);
		if (stat(name.at, &is) == 0)
			bytes += is.st_size;
		buf_done(&name);
	}
	return bytes;
}

void run_status_tick(struct run_status *status, const struct spool *spool, const char *path)
{
	int64_t now, ns;
	struct spool_status counts;
	struct unit_text time, kernels, rate, calls, lost, size;
	struct buf line = { 0 };

	if (!status->on)
		return;
	now = clock_steady_ns();
	ns = now - status->shown_ns;
	if (ns < REDRAW_NS)
		return;
	spool_status(spool, &counts);
	buf_printf(&line, _("sonde: %s, %s kernels (%s/s), %s calls, %s lost, %s"),
		   units_ns(&time, now - status->start_ns), units_count(&kernels, counts.kernels),
		   units_count(&rate, (int64_t)((double)(counts.kernels - status->shown_kernels) *
						1e9 / (double)ns)),
		   units_count(&calls, counts.calls), units_count(&lost, counts.dropped),
		   units_bytes(&size, size_of(path)));
	/* In the line the cursor goes back: what the program writes begins in front. */
	(void)fprintf(stderr, status->in_title ? "\033]2;%s\007" : "\r\033[K%s\r", line.at);
	status->shown_ns = now;
	status->shown_kernels = counts.kernels;
	status->drawn = true;
	buf_done(&line);
}

void run_status_stop(struct run_status *status)
{
	if (status->drawn)
		(void)fputs(status->in_title ? "\033]2;\007" : "\r\033[K", stderr);
	status->drawn = false;
}
