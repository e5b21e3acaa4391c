/*
 * http_address.h - the address behind --listen: its text, its socket.
 */
#pragma once

#include "base/err.h"

/* A socket that listens at `listen` (the forms are in http.h). 0, and the
 * caller owns *ret_fd; fails as http_open does. */
int http_listen(const char *listen, int *ret_fd, struct err *err);

/* Room for "[IPv6]:port". */
struct http_name {
	char at[64];
};

/* Where the socket listens, as "127.0.0.1:9877" or "[::1]:9877". */
void http_socket_name(int fd, struct http_name *ret);
