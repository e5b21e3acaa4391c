#include "serve/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address_size(const union address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

/* Cut "host" and "port" apart; a host may stand in brackets, or be missing. */
static bool split(struct str text, struct str *ret_host, struct str *ret_port)
{
	const char *colon = memrchr(text.at, ':', text.len);

	*ret_host = (struct str){ 0 };
	*ret_port = text;
	if (!colon)
		return true;
	*ret_host = (struct str){ text.at, (size_t)(colon - text.at) };
	*ret_port = (struct str){ colon + 1, text.len - ret_host->len - 1 };
	if (ret_host->len && ret_host->at[0] == '[') {
		if (ret_host->at[ret_host->len - 1] != ']')
			return false;
		ret_host->at++;
		ret_host->len -= 2;
		return ret_host->len > 0;
	}
	/* "::1" without brackets: is the end a port or a part of the address? */
	return !memchr(ret_host->at, ':', ret_host->len);
}

static bool parse(const char *listen, union address *ret)
{
	struct str host, port;
	char text[INET6_ADDRSTRLEN] = "127.0.0.1";
	uint64_t number;

	if (!split(str_of(listen), &host, &port) || !str_to_u64(port, &number) || number > 65535)
		return false;
	if (host.len && !str_is(host, "localhost")) {
		if (host.len >= sizeof(text))
			return false;
		memcpy(text, host.at, host.len);
		text[host.len] = '\0';
	}
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)number);
		return true;
	}
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons((uint16_t)number);
		return true;
	}
	return false;
}

static int bind_failed(const char *listen, struct err *err)
{
	switch (errno) {
	case EADDRINUSE:
		return err_set(err, ERR_BUSY, "%s: another program listens there", listen);
	case EADDRNOTAVAIL:
		return err_set(err, ERR_IO, "%s: not an address of this machine", listen);
	case EACCES:
		return err_set(err, ERR_IO, "%s: ports below 1024 need root", listen);
	default:
		return err_errno(err, "%s", listen);
	}
}

int http_listen(const char *listen_at, int *ret_fd, struct err *err)
{
	union address address = { 0 };
	OWN(own_closep) int fd = -1;
	int on = 1;

	if (!parse(listen_at, &address))
		return err_set(err, ERR_USAGE,
			       "%s: not a port, or an address and a port "
			       "(9877, 0.0.0.0:9877, [::1]:9877)",
			       listen_at);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, "%s", listen_at);
	/* So that a restart need not wait for the last connections to age. Linux
	 * lets no two listeners share a port by this. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return err_errno(err, "%s", listen_at);
	if (bind(fd, &address.any, address_size(&address)) || listen(fd, SOMAXCONN))
		return bind_failed(listen_at, err);
	*ret_fd = own_fd_steal(&fd);
	return 0;
}

void http_socket_name(int fd, struct http_name *ret)
{
	union address address = { 0 };
	socklen_t size = sizeof(address);
	char text[INET6_ADDRSTRLEN] = "?";

	if (getsockname(fd, &address.any, &size))
		memset(&address, 0, sizeof(address));
	if (address.any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text));
		(void)snprintf(ret->at, sizeof(ret->at), "[%s]:%d", text,
			       ntohs(address.v6.sin6_port));
	} else {
		(void)inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text));
		(void)snprintf(ret->at, sizeof(ret->at), "%s:%d", text, ntohs(address.v4.sin_port));
	}
}
