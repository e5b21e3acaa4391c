#include "serve/exporter.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "serve/http.h"

enum { HOSTNAME_MAX = 256 };

/* A text is no older than this even if nobody says that something changed: when
 * the driver hangs, it is the time that makes values stale. */
static const int64_t KEPT_NS = 1000000000;

struct exporter {
	struct http *http;
	struct prometheus_opts show;
	void (*current)(void *arg, struct prometheus_input *ret);
	void *arg;
	char hostname[HOSTNAME_MAX];
	struct arena arena;
	VEC(const char *) names;
	/* [1]: OpenMetrics. */
	struct {
		int64_t made_ns; /* 0: not, or not any more */
		struct buf text;
	} kept[2];
};

static void answer_root(void *arg, const struct http_request *request, struct http_reply *reply)
{
	(void)arg;
	(void)request;
	buf_text(&reply->body, "sonde " SONDE_VERSION "\n\n"
			       "/metrics     the GPUs, as Prometheus text or OpenMetrics\n"
			       "/-/healthy   this exporter answers\n");
}

static void answer_healthy(void *arg, const struct http_request *request, struct http_reply *reply)
{
	(void)arg;
	(void)request;
	buf_text(&reply->body, "ok\n");
}

static void renew(struct exporter *exporter, bool openmetrics)
{
	struct prometheus_input input = { 0 };
	struct http_stats stats = http_stats(exporter->http);

	exporter->current(exporter->arg, &input);
	input.hostname = exporter->hostname;
	input.own.answered = stats.answered;
	input.own.refused = stats.refused;
	input.own.connections = stats.accepted;
	input.own.expired = stats.expired;
	input.own.evicted = stats.evicted;
	exporter->show.openmetrics = openmetrics;
	buf_clear(&exporter->kept[openmetrics].text);
	prometheus_write(&input, &exporter->show, &exporter->kept[openmetrics].text);
	exporter->kept[openmetrics].made_ns = clock_steady_ns();
}

static void answer_metrics(void *arg, const struct http_request *request, struct http_reply *reply)
{
	struct exporter *exporter = arg;
	int wants = http_accepts(request->accept, "application/openmetrics-text", "1.0.0");
	bool openmetrics =
		wants > 0 && wants >= http_accepts(request->accept, "text/plain", "0.0.4");

	if (!exporter->kept[openmetrics].made_ns ||
	    clock_steady_ns() - exporter->kept[openmetrics].made_ns >= KEPT_NS)
		renew(exporter, openmetrics);
	reply->type = prometheus_type(openmetrics);
	buf_add(&reply->body, exporter->kept[openmetrics].text.at,
		exporter->kept[openmetrics].text.len);
}

static const struct http_route routes[] = {
	{ "/metrics", answer_metrics },
	{ "/", answer_root },
	{ "/-/healthy", answer_healthy },
	{ 0 },
};

static void take_names(struct exporter *exporter, const char *names)
{
	struct str rest = names ? str_of(names) : (struct str){ 0 };

	if (gethostname(exporter->hostname, sizeof(exporter->hostname) - 1) == 0 &&
	    *exporter->hostname)
		*VEC_ADD(&exporter->names) = exporter->hostname;
	while (rest.at) {
		struct str name = str_trim(str_cut(&rest, ','));

		if (name.len)
			*VEC_ADD(&exporter->names) =
				arena_text(&exporter->arena, name.at, name.len);
	}
	*VEC_ADD(&exporter->names) = NULL;
}

int exporter_open(const struct exporter_opts *opts, struct exporter **ret, struct err *err)
{
	OWN(exporter_closep) struct exporter *exporter = mem_zero(sizeof(*exporter));
	struct http_opts http = { .listen = opts->listen, .routes = routes, .arg = exporter };
	int status;

	exporter->show.dcgm_names = opts->dcgm_names;
	exporter->show.processes = opts->processes;
	exporter->current = opts->current;
	exporter->arg = opts->arg;
	take_names(exporter, opts->names);
	http.names = exporter->names.at;
	status = http_open(&http, &exporter->http, err);
	if (status < 0)
		return status;
	*ret = STEAL(exporter);
	return 0;
}

int exporter_poll(struct exporter *exporter, struct pollfd *fds, size_t count, int timeout_ms)
{
	return http_poll(exporter->http, fds, count, timeout_ms);
}

void exporter_renew(struct exporter *exporter)
{
	exporter->kept[0].made_ns = exporter->kept[1].made_ns = 0;
}

const char *exporter_address(const struct exporter *exporter)
{
	return http_address(exporter->http);
}

void exporter_close(struct exporter *exporter)
{
	if (!exporter)
		return;
	http_close(exporter->http);
	buf_done(&exporter->kept[0].text);
	buf_done(&exporter->kept[1].text);
	VEC_DONE(&exporter->names);
	arena_done(&exporter->arena);
	free(exporter);
}
