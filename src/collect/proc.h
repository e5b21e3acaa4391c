/*
 * proc.h - who a PID is: user, command, container, pod, batch job, cost so far.
 *
 * Hides /proc, the shapes of cgroup paths, passwd and the names of container
 * logs. Everything is read below a root directory, so that tests can invent
 * one. What a process says about itself (its name, its command line, its
 * environment) is hostile: texts come out as UTF-8 without control characters,
 * cut to the size of their field, and no file is opened through a symlink that
 * a process could have made.
 *
 * A PID can be reused between two reads: a struct proc is of one process, told
 * by its start time, or it is PROC_GONE.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

enum proc_state {
	PROC_OK,
	PROC_GONE,    /* ended; or hidden from this user (hidepid) */
	PROC_FOREIGN, /* this shell has a PID namespace of its own and nothing shows that
		       * its /proc/PID is the process that the driver means */
};

/* What a cgroup path tells; "" where it does not. */
struct proc_group {
	char container_id[72];
	char runtime[16]; /* "containerd", "docker", "crio", "podman"; "" unknown */
	char pod_uid[40];
	char slurm_job[24];
};

struct proc {
	int64_t pid;
	enum proc_state state;
	/* The rest holds for PROC_OK only. */
	char run_state;       /* R, S, D, Z, ... as in /proc/PID/stat */
	int64_t parent;       /* its PID */
	int64_t start_ticks;  /* since boot; with the pid, the identity */
	int64_t start_utc_ns; /* 0: unknown */
	int64_t cpu_ns;       /* user and system time so far */
	int64_t rss_bytes;
	int64_t uid;       /* effective; -1 unknown */
	char user[64];     /* the number where there is no name; "" unknown */
	char comm[64];     /* the kernel's name of the process, 15 bytes */
	char command[512]; /* arguments with blanks between; "" of kernel threads, zombies */
	struct proc_group group;
	/* From the name of the container's log on this node; "" unknown. */
	char pod[256], namespace[72], container[256];
};

struct procs;

/* `root` is "" for this machine. Fails if it has no /proc. */
int procs_open(const char *root, struct procs **ret_procs, struct err *err);
void procs_close(struct procs *procs);
DEFINE_OWNED(procs, procs_close);

/* Is this a PID namespace below the host's? */
bool procs_nested(const struct procs *procs);

/* Fill all of *ret. */
enum proc_state procs_read(struct procs *procs, int64_t pid, struct proc *ret);

/* Processes of this /proc that have an NVIDIA device open, ascending: who could
 * be behind memory that the driver shows without a process. At most `room`;
 * returns the count. Only those that this user may look into. */
size_t procs_with_gpu_open(struct procs *procs, int64_t *ret_pids, size_t room);

/* Field `number` (from 3, as in proc(5)) of what follows the name and a blank in
 * /proc/PID/stat; 0: it is not there. */
int64_t proc_stat_field(struct str rest, int number);

/* The text of a /proc/PID/cgroup, v1 or v2. Lines that tell nothing are
 * skipped; of nested containers the innermost counts. */
void proc_group_parse(struct str text, struct proc_group *ret);

/* "POD_NAMESPACE_CONTAINER-ID.log", a name in /var/log/containers. False if it
 * has another shape. Results are borrowed from `name`. */
bool proc_log_name(struct str name, struct str *ret_pod, struct str *ret_namespace,
		   struct str *ret_container, struct str *ret_id);

/* Copy what fits of `text`: control characters and what is no UTF-8 become '?',
 * a character is never cut in two. */
void proc_text(char *to, size_t room, struct str text);
