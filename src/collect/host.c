#include "collect/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "collect/host_part.h"

const char *runtime_name(enum runtime runtime)
{
	static const char *const names[] = {
#define X(word, name) name,
		RUNTIME_LIST(X)
#undef X
	};

	return names[runtime];
}

const char *role_name(enum host_role role)
{
	static const char *const names[] = {
#define X(word, name) name,
		ROLE_LIST(X)
#undef X
	};

	return names[role];
}

int host_try(const struct host_look *look, const char *path, int flags)
{
	int fd;

	if (look->opts->try_open)
		return look->opts->try_open(path, flags);
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

struct host *host_read(const struct host_opts *opts)
{
	struct host *host = mem_zero(sizeof(*host));
	struct host_look look = { .opts = opts };

	look.tree.root = opts->root && strcmp(opts->root, "/") != 0 ? opts->root : "";
	look.tree.variables = opts->variables ? opts->variables : environ;
	look.tree.arena = &host->arena;
	look.here = !*look.tree.root;
	host_read_place(&look, host);
	host_read_rights(&look, host);
	host_read_driver(&look, host);
	host_read_cards(&look, host);
	host_read_sharing(&look, host);
	host_read_processes(&look, host);
	host_read_python(&look, host);
	host_read_software(&look, host);
	return host;
}

void host_free(struct host *host)
{
	if (!host)
		return;
	VEC_DONE(&host->devices);
	VEC_DONE(&host->cards);
	VEC_DONE(&host->processes);
	VEC_DONE(&host->toolkits);
	VEC_DONE(&host->cuptis);
	VEC_DONE(&host->python.folders);
	arena_done(&host->arena);
	free(host);
}

const struct host_device *host_device_find(const struct host *host, const char *name)
{
	for (size_t i = 0; i < host->devices.count; i++) {
		if (!strcmp(host->devices.at[i].name, name))
			return &host->devices.at[i];
	}
	return NULL;
}

const struct host_process *host_process_find(const struct host *host, enum host_role role)
{
	for (size_t i = 0; i < host->processes.count; i++) {
		if (host->processes.at[i].role == role)
			return &host->processes.at[i];
	}
	return NULL;
}

enum truth host_has_cap(const struct host *host, int bit)
{
	if (host->rights.caps_known != TRUTH_YES)
		return TRUTH_UNKNOWN;
	if (!(host->rights.caps_effective >> bit & 1))
		return TRUTH_NO;
	/* The kernel asks for the capability in the first user namespace; one
	 * held in another counts for that one only. user_namespaces(7). */
	return host->rights.first_user_namespace == TRUTH_NO ? TRUTH_NO : TRUTH_YES;
}

int version_compare(const char *a, const char *b)
{
	while (*a && *b) {
		int64_t left = 0, right = 0;

		for (; isdigit((unsigned char)*a); a++)
			left = left < INT32_MAX ? left * 10 + (*a - '0') : left;
		for (; isdigit((unsigned char)*b); b++)
			right = right < INT32_MAX ? right * 10 + (*b - '0') : right;
		if (left != right)
			return left < right ? -1 : 1;
		if (*a != '.' || *b != '.')
			break;
		a++;
		b++;
	}
	return 0;
}
