#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "serve/http.h"
#include "serve/http_request.h"

/*
 * Client and server share a thread: http_poll serves while it waits for the
 * client's own socket. WAIT_MS only bounds a test that fails.
 */
enum { WAIT_MS = 20000, BIG = 1 << 20 };

static void say_hello(void *arg, const struct http_request *request, struct http_reply *reply)
{
	(void)arg;
	(void)request;
	buf_text(&reply->body, "hello\n");
}

static void say_much(void *arg, const struct http_request *request, struct http_reply *reply)
{
	char *at = buf_room(&reply->body, BIG);

	(void)arg;
	(void)request;
	memset(at, 'x', BIG);
}

static const struct http_route routes[] = { { "/hello", say_hello }, { "/much", say_much }, { 0 } };

static struct http *open_with(struct http_limits limits)
{
	static const char *const names[] = { "gpu-7.example", NULL };
	struct http_opts opts = {
		.listen = "0", .routes = routes, .names = names, .limits = limits
	};
	struct http *http = NULL;
	struct err err = { 0 };

	cr_assert_eq(http_open(&opts, &http, &err), 0, "%s", err.line);
	return http;
}

static int connect_to(const struct http *http)
{
	const char *address = http_address(http);
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint64_t port;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(str_to_u64(str_of(strrchr(address, ':') + 1), &port));
	at.sin_port = htons((uint16_t)port);
	cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0, "%s", strerror(errno));
	return fd;
}

static void send_text(int fd, const char *text)
{
	size_t len = strlen(text);

	cr_assert_eq(send(fd, text, len, MSG_NOSIGNAL), (ssize_t)len, "%s", strerror(errno));
}

static bool wait_for(struct http *http, int fd, short events)
{
	struct pollfd pollfd = { .fd = fd, .events = events };

	return http_poll(http, &pollfd, 1, WAIT_MS) == 1;
}

/* What the server sends until it closes. "reset" if it ends so. */
static char *read_all(struct http *http, int fd)
{
	struct buf got = { 0 };

	while (wait_for(http, fd, POLLIN)) {
		char part[4096];
		ssize_t n = recv(fd, part, sizeof(part), MSG_DONTWAIT);

		if (n == 0)
			break;
		if (n < 0)
			buf_text(&got, "reset");
		if (n < 0)
			break;
		buf_add(&got, part, (size_t)n);
	}
	buf_text(&got, "");
	close(fd);
	return got.at;
}

/* What it sends until `end` has come. */
static void read_until(struct http *http, int fd, const char *end)
{
	struct buf got = { 0 };

	while (!got.len || !strstr(got.at, end)) {
		char part[4096];
		ssize_t n;

		cr_assert(wait_for(http, fd, POLLIN));
		n = recv(fd, part, sizeof(part), MSG_DONTWAIT);
		cr_assert_gt(n, 0, "closed before %s", end);
		buf_add(&got, part, (size_t)n);
		buf_text(&got, "");
	}
	buf_done(&got);
}

static char *ask(struct http *http, const char *text)
{
	int fd = connect_to(http);

	send_text(fd, text);
	return read_all(http, fd);
}

static void expect(struct http *http, const char *text, const char *start, const char *part)
{
	char *got = ask(http, text);

	cr_expect(!strncmp(got, start, strlen(start)), "to %.60s came %s", text, got);
	cr_expect(!part || strstr(got, part), "to %.60s came %s", text, got);
	free(got);
}

Test(http, get_is_answered_and_the_connection_closed_when_asked_so)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });

	expect(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	       "HTTP/1.1 200 OK\r\n", "\r\nContent-Length: 6\r\n");
	expect(http, "GET /hello?x=1 HTTP/1.0\n\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nhello\n");
	cr_expect_eq(http_stats(http).answered, 2);
}

Test(http, head_gets_the_length_but_no_body)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });
	char *got = ask(http, "HEAD /hello HTTP/1.0\r\n\r\n");

	cr_expect(strstr(got, "\r\nContent-Length: 6\r\n"), "%s", got);
	cr_expect(!strstr(got, "hello"), "%s", got);
	free(got);
}

Test(http, what_is_no_plain_request_is_refused)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });
	struct buf huge = { 0 };

	expect(http, "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
	       "HTTP/1.1 405 ", "\r\nAllow: GET, HEAD\r\n");
	expect(http, "DELETE /hello HTTP/1.0\r\n\r\n", "HTTP/1.1 405 ", NULL);
	expect(http, "GET /nothing HTTP/1.0\r\n\r\n", "HTTP/1.1 404 ", NULL);
	expect(http, "GET /../etc/passwd HTTP/1.0\r\n\r\n", "HTTP/1.1 404 ", NULL);
	expect(http, "hello\r\n\r\n", "HTTP/1.1 400 ", NULL);
	expect(http, "\x16\x03\x01\r\n\r\n", "HTTP/1.1 400 ", NULL);
	expect(http, "GET /hello HTTP/2.0\r\n\r\n", "HTTP/1.1 505 ", NULL);
	expect(http, "GET /hello HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", NULL);
	for (int i = 0; i < 2000; i++)
		buf_printf(&huge, "%s%d: x\r\n", i ? "A" : "GET /hello HTTP/1.1\r\nA", i);
	expect(http, huge.at, "HTTP/1.1 431 ", NULL);
	buf_clear(&huge);
	buf_text(&huge, "GET /");
	memset(buf_room(&huge, 9000), 'a', 9000);
	buf_text(&huge, " HTTP/1.0\r\n\r\n");
	expect(http, huge.at, "HTTP/1.1 414 ", NULL);
	buf_done(&huge);
	cr_expect_eq(http_stats(http).answered, 0);
	cr_expect_eq(http_stats(http).refused, 10);
}

Test(http, another_name_is_refused_as_a_rebound_one_would_be)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });

	expect(http, "GET /hello HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n",
	       "HTTP/1.1 421 ", NULL);
	expect(http, "GET /hello HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", "HTTP/1.1 421 ",
	       NULL);
	expect(http, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", "HTTP/1.1 421 ",
	       NULL);
	expect(http, "GET http://localhost/hello HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	       "HTTP/1.1 400 ", NULL);
	expect(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
	       "HTTP/1.1 400 ", NULL);
	expect(http, "GET /hello HTTP/1.1\r\nHost: GPU-7.example\r\nConnection: close\r\n\r\n",
	       "HTTP/1.1 200 ", NULL);
	expect(http, "GET /hello HTTP/1.1\r\nHost: [::1]:9\r\nConnection: close\r\n\r\n",
	       "HTTP/1.1 200 ", NULL);
}

Test(http, one_connection_serves_many_requests_also_when_sent_at_once)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });
	int fd = connect_to(http);
	char *got;
	int answers = 0;

	send_text(fd, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
	read_until(http, fd, "hello\n");
	for (int i = 0; i < 20; i++)
		send_text(fd, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
	send_text(fd, "GET /hello HTTP/1.0\r\n\r\n");
	got = read_all(http, fd);
	for (const char *at = got; (at = strstr(at, "\r\n\r\nhello\n")); at++)
		answers++;
	cr_expect_eq(answers, 21);
	free(got);
}

Test(http, a_client_that_has_closed_its_side_still_gets_the_answer)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });
	int fd = connect_to(http);
	char *got;

	send_text(fd, "GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n");
	shutdown(fd, SHUT_WR);
	got = read_all(http, fd);
	cr_expect_gt(strlen(got), BIG);
	free(got);

	fd = connect_to(http);
	send_text(fd, "GET /mu");
	shutdown(fd, SHUT_WR);
	got = read_all(http, fd);
	cr_expect_str_eq(got, "");
	free(got);
	cr_expect_eq(http_stats(http).open, 0);
}

Test(http, a_client_that_drips_is_cut_off_although_it_never_pauses)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ .read_ms = 300 });
	int fd = connect_to(http);
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	/* It ends because each byte does not start the time anew. */
	while (!http_poll(http, &pollfd, 1, 10))
		(void)send(fd, "G", 1, MSG_NOSIGNAL);
	cr_expect_eq(http_stats(http).expired, 1);
	close(fd);
}

Test(http, clients_that_say_nothing_or_read_nothing_are_cut_off)
{
	OWN(http_closep)
	struct http *http = open_with((struct http_limits){ .wait_ms = 50, .write_ms = 50 });
	int silent = connect_to(http);
	int deaf = connect_to(http);
	int small = 4096;

	cr_assert_eq(setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	for (int i = 0; i < 20; i++)
		send_text(deaf, "GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n");
	while (http_stats(http).expired < 2)
		cr_assert_eq(http_poll(http, NULL, 0, 20), 0);
	cr_expect_eq(http_stats(http).open, 0);
	close(silent);
	close(deaf);
}

Test(http, idle_connections_lock_nobody_out)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ .connections = 4 });
	int idle[12];

	for (size_t i = 0; i < 12; i++)
		idle[i] = connect_to(http);
	expect(http, "GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ", "hello");
	cr_expect_leq(http_stats(http).open, 4);
	cr_expect_eq(http_stats(http).evicted, 9);
	for (size_t i = 0; i < 12; i++)
		close(idle[i]);
}

Test(http, answers_that_nobody_reads_are_bounded)
{
	OWN(http_closep)
	struct http *http = open_with((struct http_limits){ .queued_bytes = 2 * BIG });
	int deaf[20];

	for (size_t i = 0; i < 20; i++) {
		deaf[i] = connect_to(http);
		for (int j = 0; j < 20; j++)
			send_text(deaf[i], "GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n");
	}
	expect(http, "GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ", "hello");
	while (!http_stats(http).evicted)
		cr_assert_eq(http_poll(http, NULL, 0, 20), 0);
	for (size_t i = 0; i < 20; i++)
		close(deaf[i]);
}

Test(http, a_taken_port_is_one_line)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });
	struct http_opts opts = { .listen = http_address(http), .routes = routes };
	struct http *second = NULL;
	struct err err = { 0 };
	struct buf wanted = { 0 };

	buf_printf(&wanted, "%s: another program listens there", http_address(http));
	cr_expect_eq(http_open(&opts, &second, &err), ERR_BUSY);
	cr_expect_str_eq(err.line, wanted.at);
	buf_done(&wanted);
}

Test(http, loopback_unless_an_address_is_given)
{
	static const struct {
		const char *listen, *start;
	} good[] = { { "0", "127.0.0.1:" },
		     { ":0", "127.0.0.1:" },
		     { "localhost:0", "127.0.0.1:" },
		     { "0.0.0.0:0", "0.0.0.0:" },
		     { "127.0.0.2:0", "127.0.0.2:" } };
	static const char *const bad[] = { "",      "x",    "70000",   "gpu:1",   "::1:80",
					   "[::1",  "[]:1", "1.2.3:1", "-1",      "127.0.0.1",
					   "[::1]", ":",    " 80",     "[::1]x:1" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		OWN(http_closep) struct http *http = NULL;
		struct http_opts opts = { .listen = good[i].listen, .routes = routes };
		struct err err = { 0 };

		cr_assert_eq(http_open(&opts, &http, &err), 0, "%s", err.line);
		cr_expect(!strncmp(http_address(http), good[i].start, strlen(good[i].start)), "%s",
			  http_address(http));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		OWN(http_closep) struct http *http = NULL;
		struct http_opts opts = { .listen = bad[i], .routes = routes };
		struct err err = { 0 };

		cr_expect_eq(http_open(&opts, &http, &err), ERR_USAGE, "%s", bad[i]);
	}
}

Test(http, poll_reports_what_the_caller_waits_for)
{
	OWN(http_closep) struct http *http = open_with((struct http_limits){ 0 });
	int pipes[2];
	struct pollfd fds[2] = { { .fd = -1, .events = POLLIN } };

	cr_assert_eq(pipe(pipes), 0);
	fds[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	cr_expect_eq(http_poll(http, fds, 2, 0), 0);
	cr_expect_eq(fds[1].revents, 0);
	cr_assert_eq(write(pipes[1], "x", 1), 1);
	cr_expect_eq(http_poll(http, fds, 2, -1), 1);
	cr_expect_eq(fds[0].revents, 0);
	cr_expect_eq(fds[1].revents, POLLIN);
	cr_expect_eq(http_poll(http, fds, 2, WAIT_MS), 1, "level, not edge");
	close(pipes[1]);
	close(pipes[0]);
}

Test(http_accept, the_best_range_of_the_right_version_counts)
{
	const char *prometheus = "application/openmetrics-text;version=1.0.0,"
				 "application/openmetrics-text; version=0.0.1;q=0.75,"
				 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
	const char *om = "application/openmetrics-text";

	cr_expect_eq(http_accepts(str_of(prometheus), om, "1.0.0"), 1000);
	cr_expect_eq(http_accepts(str_of(prometheus), om, "0.0.1"), 750);
	cr_expect_eq(http_accepts(str_of(prometheus), "text/plain", "0.0.4"), 500);
	cr_expect_eq(http_accepts(str_of("*/*"), om, "1.0.0"), -1);
	cr_expect_eq(http_accepts((struct str){ 0 }, om, "1.0.0"), -1);
	cr_expect_eq(http_accepts(str_of("Application/OpenMetrics-Text ; Q=.2"), om, "1.0.0"), 200);
	cr_expect_eq(http_accepts(str_of("application/openmetrics-text;q=7"), om, "1.0.0"), 0);
}

Test(http_request, a_head_is_taken_whole_at_each_cut)
{
	const char *text = "GET /metrics?x HTTP/1.1\r\nHost: a:1\r\nAccept: b\r\n\r\n";
	struct http_request request;
	size_t len = 0;

	for (size_t cut = 0; cut < strlen(text); cut++)
		cr_expect_eq(http_request_parse((struct str){ text, cut }, &request, &len),
			     HTTP_INCOMPLETE);
	cr_assert_eq(http_request_parse(str_of(text), &request, &len), 0);
	cr_expect_eq(len, strlen(text));
	cr_expect(str_is(request.path, "/metrics") && str_is(request.query, "x"));
	cr_expect(str_is(request.host, "a") && str_is(request.accept, "b"));
	cr_expect(request.keep_alive && !request.head);
}

Test(http_request, leniency_that_has_been_a_hole_is_refused)
{
	static const char *const bad[] = {
		"GET  / HTTP/1.0\r\n\r\n",
		"G<T / HTTP/1.0\r\n\r\n",
		"GET /\x01 HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.0\r\nA : b\r\n\r\n",
		"GET / HTTP/1.0\r\nA: b\r\n c\r\n\r\n",
		"GET / HTTP/1.0\r\nA\r\n\r\n",
		"GET / HTTP/1.0\r\nA: \x02\r\n\r\n",
		"GET / HTTP/1.0\r\nA: b\rc\r\n\r\n",
		"GET / HTTP/1.0\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: [::1\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a:b\r\n\r\n",
		"GET / HTTP/1.0\r\nHost:\r\n\r\n",
		"\r\nGET / HTTP/1.0\r\n\r\n",
	};
	struct http_request request;
	size_t len;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(http_request_parse(str_of(bad[i]), &request, &len), 400, "%s", bad[i]);
}
