/*
 * launch.h - starts the program that is to be profiled, and stays out of its way.
 *
 * The program gets our environment with the injection library added, our
 * standard files, our signal dispositions as we were given them, and a process
 * group of its own: the terminal's SIGINT comes to us first. When it wants to
 * read from the terminal it is given the terminal, and from then on gets the
 * keys' signals itself.
 *
 * One program at a time. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

struct launch;

struct launch_opts {
	const char *const *argv; /* NULL at the end */
	const char *const *env;  /* "NAME=VALUE" to add or replace; NULL at the end */
};

/*
 * ERR_MISSING: no such program; ERR_IO: it can't be started. Statuses as a
 * shell gives them: launch_failed_status.
 */
int launch_start(const struct launch_opts *opts, struct launch **ret_launch, struct err *err);
void launch_free(struct launch *launch);
DEFINE_OWNED(launch, launch_free);
int launch_failed_status(const struct err *err);

pid_t launch_pid(const struct launch *launch);

/* What happened. */
struct launch_news {
	bool ended;
	int status;       /* of the program; 128 + N if signal N killed it */
	int signal;       /* that killed it; 0 */
	bool interrupted; /* SIGINT came to us */
};

/* Wait at most `ms` for news. Signals that came to us are passed on, but the
 * first SIGINT, which the caller is told of. */
void launch_wait(struct launch *launch, int ms, struct launch_news *ret_news);
