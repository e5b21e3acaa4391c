#include "serve/http_request.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum {
	STATUS_BAD = 400,
	STATUS_METHOD = 405,
	STATUS_TARGET = 414,
	STATUS_HEAD = 431,
	STATUS_VERSION = 505,
};

/* An address fits; so does any name that DNS allows. */
enum { HOST_MAX = 255 };

static bool same_word(struct str a, const char *b)
{
	return a.len == strlen(b) && !strncasecmp(a.at, b, a.len);
}

/* Letters of a method or a header's name. */
static bool is_token(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];

		if (c <= ' ' || c >= 127 || strchr("()<>@,;:\\\"/[]?={}", c))
			return false;
	}
	return text.len > 0;
}

/* Where the head ends: behind the first blank line, CR LF or LF alone. 0: nowhere yet. */
static size_t head_length(struct str text)
{
	const char *line = text.at;
	const char *end = text.at + text.len;

	while (line < end) {
		const char *lf = memchr(line, '\n', (size_t)(end - line));

		if (!lf)
			return 0;
		if (lf == line || (lf == line + 1 && *line == '\r'))
			return (size_t)(lf + 1 - text.at);
		line = lf + 1;
	}
	return 0;
}

static struct str take_line(struct str *head)
{
	struct str line = str_cut(head, '\n');

	if (line.len && line.at[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* "HTTP/1.0" or "HTTP/1.1". */
static int parse_version(struct str version, bool *ret_keep_alive)
{
	if (str_is(version, "HTTP/1.1"))
		*ret_keep_alive = true;
	else if (str_is(version, "HTTP/1.0"))
		*ret_keep_alive = false;
	else
		return str_starts(version, "HTTP/") ? STATUS_VERSION : STATUS_BAD;
	return 0;
}

static int parse_target(struct str target, struct http_request *request)
{
	if (target.len > HTTP_TARGET_MAX)
		return STATUS_TARGET;
	/* The form with "http://" in front is for proxies, which this is none. */
	if (!target.len || target.at[0] != '/')
		return STATUS_BAD;
	for (size_t i = 0; i < target.len; i++) {
		unsigned char c = (unsigned char)target.at[i];

		if (c <= ' ' || c >= 127)
			return STATUS_BAD;
	}
	request->path = str_cut(&target, '?');
	request->query = target;
	return 0;
}

static int parse_request_line(struct str line, struct http_request *request)
{
	struct str method = str_cut(&line, ' ');
	struct str target = str_cut(&line, ' ');
	int status;

	if (!is_token(method))
		return STATUS_BAD;
	status = parse_version(line, &request->keep_alive);
	if (status)
		return status;
	/* Other methods are told so whatever their target looks like. */
	request->head = str_is(method, "HEAD");
	if (!request->head && !str_is(method, "GET"))
		return STATUS_METHOD;
	return parse_target(target, request);
}

/* "name:port", "[::1]:port" -> "name", "::1". Empty is no host. */
static int parse_host(struct str value, struct str *ret)
{
	struct str host, port;

	if (value.len && value.at[0] == '[') {
		const char *close = memchr(value.at, ']', value.len);

		if (!close)
			return STATUS_BAD;
		host = (struct str){ value.at + 1, (size_t)(close - value.at) - 1 };
		port = (struct str){ close + 1, (size_t)(value.at + value.len - close) - 1 };
		if (port.len && port.at[0] != ':')
			return STATUS_BAD;
		if (port.len) {
			port.at++;
			port.len--;
		}
	} else {
		port = value;
		host = str_cut(&port, ':');
	}
	for (size_t i = 0; i < port.len; i++) {
		if (port.at[i] < '0' || port.at[i] > '9')
			return STATUS_BAD;
	}
	if (!host.len || host.len > HOST_MAX)
		return STATUS_BAD;
	*ret = host;
	return 0;
}

static void parse_connection(struct str value, bool *keep_alive)
{
	while (value.at) {
		struct str word = str_trim(str_cut(&value, ','));

		if (same_word(word, "close"))
			*keep_alive = false;
		else if (same_word(word, "keep-alive"))
			*keep_alive = true;
	}
}

static int parse_header(struct str line, struct http_request *request)
{
	struct str value = line;
	struct str name = str_cut(&value, ':');

	/* No colon, a folded line (a blank in front), a control character. */
	if (!value.at || !is_token(name))
		return STATUS_BAD;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.at[i];

		if ((c < ' ' && c != '\t') || c == 127)
			return STATUS_BAD;
	}
	value = str_trim(value);
	if (same_word(name, "host"))
		return request->host.at ? STATUS_BAD : parse_host(value, &request->host);
	if (same_word(name, "accept") && !request->accept.at)
		request->accept = value;
	else if (same_word(name, "connection"))
		parse_connection(value, &request->keep_alive);
	else if (same_word(name, "transfer-encoding") ||
		 (same_word(name, "content-length") && !str_is(value, "0")))
		return STATUS_BAD; /* a body, which GET has not */
	return 0;
}

int http_request_parse(struct str text, struct http_request *ret, size_t *ret_len)
{
	struct http_request request = { 0 };
	struct str head = { text.at, text.len < HTTP_HEAD_MAX ? text.len : HTTP_HEAD_MAX };
	struct str line;
	bool asks_host;
	int status;

	head.len = head_length(head);
	if (!head.len) {
		if (text.len < HTTP_HEAD_MAX)
			return HTTP_INCOMPLETE;
		/* One endless line is an endless target. */
		return memchr(text.at, '\n', text.len) ? STATUS_HEAD : STATUS_TARGET;
	}
	*ret_len = head.len;
	line = take_line(&head);
	status = parse_request_line(line, &request);
	asks_host = request.keep_alive; /* HTTP/1.1 must send one */
	while (!status) {
		line = take_line(&head);
		if (!line.len)
			break;
		status = parse_header(line, &request);
	}
	if (!status && asks_host && !request.host.at)
		status = STATUS_BAD;
	if (!status)
		*ret = request;
	return status;
}

static bool is_address(struct str host)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.at, host.len);
	text[host.len] = '\0';
	return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

bool http_host_allowed(struct str host, const char *const *names)
{
	if (!host.at || is_address(host) || same_word(host, "localhost"))
		return true;
	for (; names && *names; names++) {
		if (same_word(host, *names))
			return true;
	}
	return false;
}

/* "0.75" -> 750. */
static int parse_q(struct str text)
{
	int64_t thousandths;

	if (!str_to_fixed(text, 3, &thousandths) || thousandths < 0 || thousandths > 1000)
		return 0;
	return (int)thousandths;
}

/* One range of an Accept header, "type;version=x;q=0.5": its q, or -1 if it is of
 * another type or version. */
static int range_q(struct str range, const char *type, const char *version)
{
	int q = 1000;

	if (!same_word(str_trim(str_cut(&range, ';')), type))
		return -1;
	while (range.at) {
		struct str value = str_cut(&range, ';');
		struct str name = str_trim(str_cut(&value, '='));

		value = str_trim(value);
		if (same_word(name, "q"))
			q = parse_q(value);
		else if (version && same_word(name, "version") && !str_is(value, version))
			return -1;
	}
	return q;
}

int http_accepts(struct str accept, const char *type, const char *version)
{
	int best = -1;

	while (accept.at) {
		int q = range_q(str_cut(&accept, ','), type, version);

		if (q > best)
			best = q;
	}
	return best;
}
