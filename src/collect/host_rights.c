/*
 * What the kernel lets us do: capabilities, namespaces, the kernel log, perf.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "collect/host_part.h"

enum { PERF_PARANOID_UNKNOWN = -100 };

static bool number_of(const char *text, int64_t *ret)
{
	return text && str_to_i64(str_trim(str_of(text)), ret);
}

static int small_number(const char *text, int unknown)
{
	int64_t value;

	return number_of(text, &value) && value > -100 && value < 100 ? (int)value : unknown;
}

/* The first namespaces have fixed inode numbers: include/linux/proc_ns.h. */
enum truth host_first_namespace(const struct tree *tree, const char *kind)
{
	const char *link = tree_link(tree, "/proc/self/ns/%s", kind);
	struct str number;

	if (!link)
		return TRUTH_UNKNOWN;
	number = str_of(link);
	(void)str_cut(&number, '[');
	if (!number.at)
		return TRUTH_UNKNOWN;
	if (!strcmp(kind, "pid"))
		return str_is(number, "4026531836]") ? TRUTH_YES : TRUTH_NO;
	return str_is(number, "4026531837]") ? TRUTH_YES : TRUTH_NO; /* user */
}

/* Tried, not concluded: security modules and seccomp have a say too. The
 * cheapest event there is, of ourselves, user space only. */
static int try_perf(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	(void)close((int)fd);
	return 0;
}

static void read_capabilities(const struct tree *tree, struct host_rights *rights)
{
	const char *status = tree_text(tree, "/proc/self/status");
	const char *effective = tree_value(tree, status, "CapEff");
	const char *bounding = tree_value(tree, status, "CapBnd");
	const char *uid = tree_value(tree, status, "Uid");
	const char *quiet = tree_value(tree, status, "NoNewPrivs");
	struct str words = uid ? str_of(uid) : (struct str){ 0 };

	rights->uid = -1;
	if (uid && !str_to_i64(str_cut(&words, '\t'), &rights->uid))
		rights->uid = -1;
	if (effective && bounding && str_to_hex(str_of(effective), &rights->caps_effective) &&
	    str_to_hex(str_of(bounding), &rights->caps_bounding))
		rights->caps_known = TRUTH_YES;
	rights->seccomp = small_number(tree_value(tree, status, "Seccomp"), -1);
	if (quiet)
		rights->no_new_privs = strcmp(quiet, "0") != 0 ? TRUTH_YES : TRUTH_NO;
}

/* Files that carry the kernel's messages where /dev/kmsg is not for us. */
static const char *find_log(const struct host_look *look)
{
	static const char *const files[] = { "/var/log/kern.log", "/var/log/messages",
					     "/var/log/syslog" };
	static const char *const journals[] = { "/var/log/journal", "/run/log/journal" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		const char *path = tree_path(&look->tree, "%s", files[i]);

		if (tree_has(&look->tree, "%s", files[i]) && !host_try(look, path, O_RDONLY))
			return files[i];
	}
	for (size_t i = 0; i < sizeof(journals) / sizeof(*journals); i++) {
		size_t count;
		const char *const *machines = tree_names(&look->tree, journals[i], &count);
		const char *path;

		if (!count)
			continue;
		path = tree_path(&look->tree, "%s/%s/system.journal", journals[i], machines[0]);
		if (!host_try(look, path, O_RDONLY))
			return journals[i];
	}
	return NULL;
}

void host_read_rights(const struct host_look *look, struct host *host)
{
	const struct tree *tree = &look->tree;

	read_capabilities(tree, &host->rights);
	host->rights.first_user_namespace = host_first_namespace(tree, "user");
	host->rights.first_pid_namespace = host_first_namespace(tree, "pid");
	host->dmesg_restrict = small_number(tree_line(tree, "/proc/sys/kernel/dmesg_restrict"), -1);
	host->perf_paranoid = small_number(tree_line(tree, "/proc/sys/kernel/perf_event_paranoid"),
					   PERF_PARANOID_UNKNOWN);
	host->perf_error = look->here ? try_perf() : -1;
	host->kmsg_error = tree_has(tree, "/dev/kmsg")
				   ? host_try(look, tree_path(tree, "/dev/kmsg"), O_RDONLY)
				   : ENOENT;
	host->log_file = find_log(look);
}
