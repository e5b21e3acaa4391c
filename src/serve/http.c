#include "serve/http.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "serve/http_address.h"

/*
 * A connection ("peer") is always in one state, and each state has a deadline
 * of its own that starts when the state is entered; nothing the client does
 * moves it.
 *
 *	WAIT ──first byte──> READ ──whole head──> WRITE ──all written──> WAIT
 *	                      │ bad head            │        (keep-alive)
 *	                      └────> error ────────>└──> LINGER ──EOF──> gone
 *
 * LINGER: we said that no more comes, and throw away what the client still
 * sends. To close at once with its bytes unread would make the kernel send a
 * reset, which can overtake the answer.
 *
 * Peers stand in a list in the order in which they entered their state, so that
 * the one to evict is the first of its kind.
 */
enum peer_state { PEER_WAIT, PEER_READ, PEER_WRITE, PEER_LINGER };

struct peer {
	struct http *http;
	struct peer *prev, *next;
	struct bufferevent *bev;
	struct event *deadline;
	enum peer_state state;
	size_t queued_bytes; /* of the answer, until it is written */
	bool keep_alive;
	bool half_closed; /* the client sends no more */
};

enum { POLL_MAX = 16, LISTEN_AGAIN_MS = 1000 };

struct poll_slot {
	struct http *http;
	struct pollfd *pollfd;
	struct event *event;
};

struct http {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *listen_again;
	struct event *timeout;
	struct http_name name;
	const struct http_route *routes;
	void *arg;
	const char *const *names;
	struct http_limits limits;
	struct http_stats stats;
	struct peer *first, *last;
	size_t queued_bytes;
	/* Of the http_poll in progress. */
	struct poll_slot slots[POLL_MAX];
	int ready;
	bool timed_out;
};

static struct timeval from_ms(int ms)
{
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

static void list_remove(struct peer *peer)
{
	struct http *http = peer->http;

	*(peer->prev ? &peer->prev->next : &http->first) = peer->next;
	*(peer->next ? &peer->next->prev : &http->last) = peer->prev;
	peer->prev = peer->next = NULL;
}

static void list_append(struct peer *peer)
{
	struct http *http = peer->http;

	peer->prev = http->last;
	*(http->last ? &http->last->next : &http->first) = peer;
	http->last = peer;
}

static void set_queued(struct peer *peer, size_t bytes)
{
	peer->http->queued_bytes += bytes - peer->queued_bytes;
	peer->queued_bytes = bytes;
}

static void peer_close(struct peer *peer)
{
	set_queued(peer, 0);
	list_remove(peer);
	peer->http->stats.open--;
	event_free(peer->deadline);
	bufferevent_free(peer->bev);
	free(peer);
}

static void enter(struct peer *peer, enum peer_state state)
{
	const struct http_limits *limits = &peer->http->limits;
	const int ms[] = {
		[PEER_WAIT] = limits->wait_ms,
		[PEER_READ] = limits->read_ms,
		[PEER_WRITE] = limits->write_ms,
		[PEER_LINGER] = limits->linger_ms,
	};
	struct timeval after = from_ms(ms[state]);

	peer->state = state;
	list_remove(peer);
	list_append(peer);
	if (event_add(peer->deadline, &after))
		assert(!"event_add");
}

/* Make room: whoever has done nothing for longest, idle ones first, those that
 * read an answer last. `keep` stays. */
static void evict(struct http *http, const struct peer *keep, bool writers_only)
{
	static const enum peer_state order[] = { PEER_LINGER, PEER_WAIT, PEER_READ, PEER_WRITE };

	for (size_t i = writers_only ? 3 : 0; i < sizeof(order) / sizeof(order[0]); i++) {
		for (struct peer *peer = http->first; peer; peer = peer->next) {
			if (peer->state != order[i] || peer == keep)
				continue;
			http->stats.evicted++;
			peer_close(peer);
			return;
		}
	}
}

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 414, "URI Too Long" },
		{ 421, "Misdirected Request" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].status == status)
			return reasons[i].text;
	}
	return "Unknown";
}

static void send_reply(struct peer *peer, const struct http_reply *reply, bool head)
{
	struct evbuffer *out = bufferevent_get_output(peer->bev);
	int status = reply->status ? reply->status : 200;

	(void)evbuffer_add_printf(
		out,
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s%s\r\n",
		status, reason(status), reply->type ? reply->type : "text/plain; charset=utf-8",
		reply->body.len, status == 405 ? "Allow: GET, HEAD\r\n" : "",
		peer->keep_alive ? "" : "Connection: close\r\n");
	if (!head)
		(void)evbuffer_add(out, reply->body.at, reply->body.len);
	set_queued(peer, evbuffer_get_length(out));
	(void)bufferevent_disable(peer->bev, EV_READ);
	enter(peer, PEER_WRITE);
	while (peer->http->queued_bytes > peer->http->limits.queued_bytes &&
	       peer->http->queued_bytes > peer->queued_bytes)
		evict(peer->http, peer, true);
}

static void send_error(struct peer *peer, int status, const char *text, bool head)
{
	struct http_reply reply = { .status = status };

	buf_printf(&reply.body, "%s\n", text ? text : reason(status));
	peer->http->stats.refused++;
	send_reply(peer, &reply, head);
	buf_done(&reply.body);
}

static void answer(struct peer *peer, const struct http_request *request)
{
	struct http *http = peer->http;
	struct http_reply reply = { 0 };

	peer->keep_alive = request->keep_alive;
	if (!http_host_allowed(request->host, http->names)) {
		peer->keep_alive = false;
		send_error(peer, 421, "This server is not known by that name", request->head);
		return;
	}
	for (const struct http_route *route = http->routes; route->path; route++) {
		if (!str_is(request->path, route->path))
			continue;
		route->answer(http->arg, request, &reply);
		http->stats.answered++;
		send_reply(peer, &reply, request->head);
		buf_done(&reply.body);
		return;
	}
	send_error(peer, 404, NULL, request->head);
}

/* Take one request from what has arrived, if it is whole. */
static void serve_input(struct peer *peer)
{
	struct evbuffer *in = bufferevent_get_input(peer->bev);
	size_t len = evbuffer_get_length(in);
	struct http_request request;
	struct str text;
	size_t taken = 0;
	int status;

	if (!len)
		return;
	if (peer->state == PEER_WAIT)
		enter(peer, PEER_READ);
	text = (struct str){ (const char *)evbuffer_pullup(in, -1), len };
	status = http_request_parse(text, &request, &taken);
	if (status == HTTP_INCOMPLETE)
		return;
	if (status) {
		peer->keep_alive = false;
		send_error(peer, status, NULL, false);
	} else {
		answer(peer, &request);
		(void)evbuffer_drain(in, taken);
	}
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct peer *peer = arg;

	if (peer->state == PEER_LINGER) {
		struct evbuffer *in = bufferevent_get_input(bev);

		(void)evbuffer_drain(in, evbuffer_get_length(in));
	} else if (peer->state != PEER_WRITE) {
		serve_input(peer);
	}
}

/* The whole answer is with the kernel. */
static void on_written(struct bufferevent *bev, void *arg)
{
	struct peer *peer = arg;
	struct evbuffer *in = bufferevent_get_input(bev);

	if (peer->state != PEER_WRITE)
		return;
	set_queued(peer, 0);
	if (peer->keep_alive) {
		enter(peer, PEER_WAIT);
		serve_input(peer); /* the client may have sent its next request already */
		if (peer->state == PEER_WRITE)
			return;
		if (peer->half_closed)
			peer_close(peer);
		else
			(void)bufferevent_enable(bev, EV_READ);
		return;
	}
	if (peer->half_closed) {
		peer_close(peer);
		return;
	}
	(void)evbuffer_drain(in, evbuffer_get_length(in));
	(void)shutdown(bufferevent_getfd(bev), SHUT_WR);
	enter(peer, PEER_LINGER);
	(void)bufferevent_enable(bev, EV_READ);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct peer *peer = arg;

	(void)bev;
	/* A client may close its side and still read our answer. */
	if ((what & BEV_EVENT_EOF) && !(what & BEV_EVENT_ERROR) && peer->state == PEER_WRITE)
		peer->half_closed = true;
	else
		peer_close(peer);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct peer *peer = arg;

	(void)fd;
	(void)what;
	if (peer->state != PEER_LINGER)
		peer->http->stats.expired++;
	peer_close(peer);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int size, void *arg)
{
	struct http *http = arg;
	struct peer *peer = mem_zero(sizeof(*peer));

	(void)listener;
	(void)address;
	(void)size;
	http->stats.accepted++;
	if (http->stats.open == http->limits.connections)
		evict(http, NULL, false);
	peer->http = http;
	peer->bev = bufferevent_socket_new(http->base, fd, BEV_OPT_CLOSE_ON_FREE);
	peer->deadline = evtimer_new(http->base, on_deadline, peer);
	assert(peer->bev && peer->deadline); /* no memory: as mem_zero would have it */
	list_append(peer);
	http->stats.open++;
	bufferevent_setcb(peer->bev, on_read, on_written, on_event, peer);
	/* No more is taken in than one head may have. */
	bufferevent_setwatermark(peer->bev, EV_READ, 0, HTTP_HEAD_MAX);
	enter(peer, PEER_WAIT);
	(void)bufferevent_enable(peer->bev, EV_READ | EV_WRITE);
}

static void on_listen_again(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;

	(void)fd;
	(void)what;
	(void)evconnlistener_enable(http->listener);
}

/* Out of descriptors, most likely: the socket stays readable, so that to go on
 * at once would be a busy loop. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct http *http = arg;
	struct timeval after = from_ms(LISTEN_AGAIN_MS);

	evict(http, NULL, false);
	(void)evconnlistener_disable(listener);
	(void)event_add(http->listen_again, &after);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;

	(void)fd;
	(void)what;
	http->timed_out = true;
}

static void set_limits(struct http_limits *limits)
{
	static const struct http_limits usual = {
		.connections = 128,
		.queued_bytes = (size_t)4 << 20,
		.wait_ms = 75000,
		.read_ms = 10000,
		.write_ms = 30000,
		.linger_ms = 1000,
	};

	limits->connections = limits->connections ? limits->connections : usual.connections;
	limits->queued_bytes = limits->queued_bytes ? limits->queued_bytes : usual.queued_bytes;
	limits->wait_ms = limits->wait_ms ? limits->wait_ms : usual.wait_ms;
	limits->read_ms = limits->read_ms ? limits->read_ms : usual.read_ms;
	limits->write_ms = limits->write_ms ? limits->write_ms : usual.write_ms;
	limits->linger_ms = limits->linger_ms ? limits->linger_ms : usual.linger_ms;
}

int http_open(const struct http_opts *opts, struct http **ret, struct err *err)
{
	OWN(http_closep) struct http *http = mem_zero(sizeof(*http));
	OWN(own_closep) int fd = -1;
	int status = http_listen(opts->listen, &fd, err);

	if (status < 0)
		return status;
	http_socket_name(fd, &http->name);
	http->routes = opts->routes;
	http->arg = opts->arg;
	http->names = opts->names;
	http->limits = opts->limits;
	set_limits(&http->limits);
	http->base = event_base_new();
	if (!http->base)
		return err_set(err, ERR_IO, "%s: no event loop to be had", opts->listen);
	http->listen_again = evtimer_new(http->base, on_listen_again, http);
	http->timeout = evtimer_new(http->base, on_timeout, http);
	http->listener = evconnlistener_new(http->base, on_accept, http,
					    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!http->listen_again || !http->timeout || !http->listener)
		return err_set(err, ERR_IO, "%s: no event loop to be had", opts->listen);
	fd = -1;
	evconnlistener_set_error_cb(http->listener, on_accept_error);
	/* A client that goes away while it is answered must not end the program. */
	(void)signal(SIGPIPE, SIG_IGN);
	*ret = STEAL(http);
	return 0;
}

static void on_slot(evutil_socket_t fd, short what, void *arg)
{
	struct poll_slot *slot = arg;

	(void)fd;
	if (!slot->pollfd->revents)
		slot->http->ready++;
	if (what & EV_READ)
		slot->pollfd->revents |= POLLIN;
	if (what & EV_WRITE)
		slot->pollfd->revents |= POLLOUT;
}

static int watch(struct http *http, struct poll_slot *slot, struct pollfd *pollfd)
{
	short what = 0;

	*slot = (struct poll_slot){ .http = http, .pollfd = pollfd };
	pollfd->revents = 0;
	if (pollfd->fd < 0)
		return 0;
	if (pollfd->events & POLLIN)
		what |= EV_READ;
	if (pollfd->events & POLLOUT)
		what |= EV_WRITE;
	slot->event = event_new(http->base, pollfd->fd, what, on_slot, slot);
	assert(slot->event);
	return event_add(slot->event, NULL);
}

int http_poll(struct http *http, struct pollfd *fds, size_t count, int timeout_ms)
{
	struct timeval after = from_ms(timeout_ms < 0 ? 0 : timeout_ms);
	int status = 0;

	assert(count <= POLL_MAX);
	http->ready = 0;
	http->timed_out = false;
	if (timeout_ms >= 0)
		(void)event_add(http->timeout, &after);
	for (size_t i = 0; i < count; i++)
		status |= watch(http, &http->slots[i], &fds[i]);
	while (!status && !http->ready && !http->timed_out)
		status = event_base_loop(http->base, EVLOOP_ONCE) < 0;
	for (size_t i = 0; i < count; i++) {
		if (http->slots[i].event)
			event_free(http->slots[i].event);
		http->slots[i].event = NULL;
	}
	(void)event_del(http->timeout);
	if (status) {
		errno = errno ? errno : EIO;
		return -1;
	}
	return http->ready;
}

const char *http_address(const struct http *http)
{
	return http->name.at;
}

struct http_stats http_stats(const struct http *http)
{
	return http->stats;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	while (http->first)
		peer_close(http->first);
	if (http->listener)
		evconnlistener_free(http->listener);
	if (http->listen_again)
		event_free(http->listen_again);
	if (http->timeout)
		event_free(http->timeout);
	if (http->base)
		event_base_free(http->base);
	free(http);
}
