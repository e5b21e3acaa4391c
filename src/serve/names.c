#include "serve/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

static const int64_t FORGET_NS = 900 * 1000000000LL;
enum { NAMES_MAX = 2048 };

struct name {
	int64_t pid;
	int64_t seen_ns; /* monotonic, last */
	struct proc *proc;
};

struct names {
	struct procs *procs;
	VEC(struct name) known;
	struct map by_pid; /* to index */
	int64_t round_ns;  /* of the snapshot before */
	int64_t next_forget_ns;
};

struct names *names_new(const char *root)
{
	struct names *names = mem_zero(sizeof(*names));

	(void)procs_open(root ? root : "", &names->procs, NULL);
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->known.count; i++)
		free(names->known.at[i].proc);
	VEC_DONE(&names->known);
	map_done(&names->by_pid);
	procs_close(names->procs);
	free(names);
}

static void forget(struct names *names, int64_t now_ns)
{
	size_t kept = 0;

	if (now_ns < names->next_forget_ns)
		return;
	names->next_forget_ns = now_ns + FORGET_NS / 4;
	map_done(&names->by_pid);
	for (size_t i = 0; i < names->known.count; i++) {
		if (now_ns - names->known.at[i].seen_ns > FORGET_NS) {
			free(names->known.at[i].proc);
			continue;
		}
		names->known.at[kept] = names->known.at[i];
		map_put(&names->by_pid, (uint64_t)names->known.at[kept].pid, kept);
		kept++;
	}
	names->known.count = kept;
}

static struct name *find(const struct names *names, int64_t pid)
{
	const uint64_t *index = map_find(&names->by_pid, (uint64_t)pid);

	return index ? &names->known.at[*index] : NULL;
}

static void learn(struct names *names, int64_t pid, int64_t now_ns)
{
	struct name *name = find(names, pid);
	/* A PID that was away may be another process now. */
	bool same = name && name->seen_ns >= names->round_ns;

	if (!name && names->known.count < NAMES_MAX) {
		map_put(&names->by_pid, (uint64_t)pid, names->known.count);
		name = VEC_ADD(&names->known);
		name->pid = pid;
	}
	if (!name)
		return;
	name->seen_ns = now_ns;
	if (same)
		return;
	if (!name->proc)
		name->proc = mem_zero(sizeof(*name->proc));
	if (procs_read(names->procs, pid, name->proc) != PROC_OK) {
		free(name->proc);
		name->proc = NULL;
	}
}

void names_see(struct names *names, const struct snapshot *snapshot)
{
	if (!names->procs || !snapshot->processes.count)
		return;
	forget(names, snapshot->monotonic_ns);
	for (size_t i = 0; i < snapshot->processes.count; i++)
		learn(names, snapshot->processes.at[i].pid, snapshot->monotonic_ns);
	names->round_ns = snapshot->monotonic_ns;
}

const struct proc *names_find(const struct names *names, int64_t pid)
{
	const struct name *name = find(names, pid);

	return name ? name->proc : NULL;
}

size_t names_put(const struct names *names, struct session *session, size_t from)
{
	for (size_t i = from; i < session->processes.count; i++) {
		struct process *row = &session->processes.at[i];
		const struct proc *proc = names_find(names, row->pid);

		if (!proc)
			continue;
		if (!row->name)
			row->name = session_string(session, proc->comm, strlen(proc->comm));
		if (!row->command)
			row->command =
				session_string(session, proc->command, strlen(proc->command));
	}
	return session->processes.count;
}
