/*
 * exporter.h - /metrics for Prometheus, from inside a loop that takes snapshots.
 *
 *	exporter_open(&opts, &exporter, err);
 *	while (running) {
 *		exporter_poll(exporter, fds, count, ms_to_next_round);
 *		... a new snapshot: exporter_renew(exporter);
 *	}
 *
 * Beside /metrics there are / (a short text) and /-/healthy, and nothing else.
 * A text is made when somebody asks, and kept until exporter_renew or for a second
 * at most: however often clients ask, the cost is bounded.
 *
 * Not thread safe. What http.h says of SIGPIPE and forks holds here.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/own.h"
#include "present/prometheus.h"

struct exporter;

struct exporter_opts {
	const char *listen; /* the forms are in http.h */
	/* Further host names that requests may be for, "a,b"; NULL none. Addresses,
	 * localhost and this machine's own name always may. */
	const char *names;
	bool dcgm_names; /* prometheus.h */
	bool processes;
	/* Fill *ret, all-zero so far, with what is known now. It must hold until the
	 * next call of exporter_poll or exporter_renew. The HTTP numbers and the host
	 * name are filled in here. */
	void (*current)(void *arg, struct prometheus_input *ret);
	void *arg;
};

/* Fails as http_open does. Strings of `opts` need not outlive the call. */
int exporter_open(const struct exporter_opts *opts, struct exporter **ret, struct err *err);
void exporter_close(struct exporter *exporter);
DEFINE_OWNED(exporter, exporter_close);

/* poll(2) that serves meanwhile: http_poll in http.h. */
int exporter_poll(struct exporter *exporter, struct pollfd *fds, size_t count, int timeout_ms);

/* What `current` would say has changed. */
void exporter_renew(struct exporter *exporter);

/* "127.0.0.1:9877". */
const char *exporter_address(const struct exporter *exporter);
