/*
 * watch.h - a page drawn again and again: in place on a terminal, one after
 * the other into a pipe.
 *
 * On a terminal it takes the alternate screen, reads keys without echo, and
 * follows its size; signals come as events, so that the terminal is put back
 * before the program ends or stops. Into a pipe it only waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"

struct watch;

enum watch_event {
	WATCH_TIME, /* the time asked for has come */
	WATCH_KEY,
	WATCH_RESIZE, /* also after a stop: draw again */
	WATCH_END,    /* a signal to end, or the terminal went away */
};

/* `in_place`: standard output is a terminal and is to be used as one. */
int watch_open(bool in_place, struct watch **ret_watch, struct err *err);
/* Puts the terminal back. */
void watch_close(struct watch *watch);
DEFINE_OWNED(watch, watch_close);

/* Wait until CLOCK_MONOTONIC `until_ns`, or for the first event before. */
enum watch_event watch_wait(struct watch *watch, int64_t until_ns, char *ret_key);

/* Show `page` and empty it. On a terminal only the lines that fit. ERR_IO. */
int watch_draw(struct watch *watch, struct buf *page, struct err *err);
