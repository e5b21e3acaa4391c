/*
 * http.h - a small HTTP server that runs inside somebody else's loop.
 *
 * It answers GET and HEAD from a table of paths, and nothing else. It hides
 * the event loop (libevent), connections, time-outs and every defence: heads
 * and waiting time are bounded for a request as a whole, not for each read, so
 * that a client which drips one byte a second is cut off all the same; when
 * all connections are taken, the one that has waited longest goes, so that
 * idle ones can't lock anybody out; names that are not ours are refused
 * (DNS rebinding). An answer is made in one go, on the caller's thread.
 *
 * One server, one thread. http_open ignores SIGPIPE for the process. Open it
 * after forking helpers: a child would keep the port.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "serve/http_request.h"

struct http;

/* Filled by a route; all-zero is an empty 200 of text/plain. */
struct http_reply {
	int status;
	const char *type;
	struct buf body; /* the server's afterwards */
};

struct http_route {
	const char *path;
	void (*answer)(void *arg, const struct http_request *request, struct http_reply *reply);
};

/* Of one server; 0 means the default beside it. */
struct http_limits {
	size_t connections;  /* 128 */
	size_t queued_bytes; /* 4 MiB: answers that clients have not read yet */
	int wait_ms;         /* 75,000: for the first byte of a request */
	int read_ms;         /* 10,000: for the rest of its head */
	int write_ms;        /* 30,000: for the client to read the answer */
	int linger_ms;       /* 1,000: for the client to close after us */
};

struct http_opts {
	/* "PORT", ":PORT" or "localhost:PORT": loopback. "ADDRESS:PORT" and
	 * "[ADDRESS]:PORT": that one. Port 0: any free one. */
	const char *listen;
	const char *const *names;        /* further names of ours, NULL-terminated; or NULL */
	const struct http_route *routes; /* ends with path == NULL; outlives the server */
	void *arg;                       /* for the routes */
	struct http_limits limits;
};

/* What happened so far. */
struct http_stats {
	uint64_t accepted; /* connections */
	uint64_t answered; /* requests answered from a route */
	uint64_t refused;  /* requests answered with an error */
	uint64_t expired;  /* connections cut off by a time-out */
	uint64_t evicted;  /* connections that had to make room */
	size_t open;       /* connections now */
};

/* ERR_USAGE: no such form of address. ERR_BUSY: the port is taken. ERR_IO:
 * not our address, no right, ... On success the caller owns *ret. */
int http_open(const struct http_opts *opts, struct http **ret, struct err *err);

/* poll(2), but clients are served meanwhile. Returns what poll would: how many
 * of `fds` have revents set, 0 after `timeout_ms` (-1: never), -1 with errno.
 * A signal does not end it: have signals in a descriptor (signalfd, pipe). At
 * most 16 descriptors, no regular files. */
int http_poll(struct http *http, struct pollfd *fds, size_t count, int timeout_ms);

/* "127.0.0.1:9877": where it listens, with the port really taken. */
const char *http_address(const struct http *http);

struct http_stats http_stats(const struct http *http);

void http_close(struct http *http);
DEFINE_OWNED(http, http_close);
