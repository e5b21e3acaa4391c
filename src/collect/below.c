/*
 * below.c - names of descendants, one process a look.
 *
 * The last pid that was given out says whether there can be anything new. A process
 * that is new is looked at in every second look until its name has settled: between
 * fork and exec it is called as its parent. Where nothing is new a look is rare: some
 * call themselves what they are once they have loaded what they need.
 */
#include "collect/below.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "collect/proc.h"
#include "wire/other_tools.h"

enum {
	PROCESSES_MAX = 256,
	YOUNG_LOOKS = 5,
	CALM_LOOKS = 25, /* and two for each process */
	CALM_REST = 50,  /* then one of so many */
	NAME_BYTES = 16, /* of the kernel's, with its 0 */
	COMMAND_BYTES = 512,
	CHILDREN_BYTES = 4096,
	ENVIRONMENT_BYTES = 1 << 18,
};

struct below_process {
	pid_t pid;
	unsigned int looks;
	bool is_without; /* the variable */
	uint64_t start_ticks;
	int64_t first_ns, last_ns; /* when it was seen */
	char name[NAME_BYTES];
	char *command; /* OWN; with blanks between its words */
};

struct below {
	const char *tool, *variable;
	int proc; /* directory */
	int load; /* loadavg: its last word is the last pid */
	int64_t last_pid;
	size_t calm; /* looks since it changed */
	size_t turn, next, rest;
	bool found;
	uint32_t source; /* of rows that are told; SESSION_NONE until there are */
	VEC(struct below_process) processes, ended;
};

static void add(struct below *below, pid_t pid)
{
	for (size_t i = 0; i < below->processes.count; i++) {
		if (below->processes.at[i].pid == pid)
			return;
	}
	if (below->processes.count < PROCESSES_MAX)
		*VEC_ADD(&below->processes) =
			(struct below_process){ .pid = pid, .first_ns = clock_steady_ns() };
}

struct below *below_new(const char *root, pid_t pid, const char *tool, const char *variable)
{
	struct below *below = mem_zero(sizeof(*below));
	char path[PATH_MAX];

	below->tool = tool;
	below->variable = variable;
	below->load = -1;
	below->source = SESSION_NONE;
	snprintf(path, sizeof(path), "%s/proc", root);
	below->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (below->proc >= 0)
		below->load = openat(below->proc, "loadavg", O_RDONLY | O_CLOEXEC);
	add(below, pid);
	return below;
}

void below_free(struct below *below)
{
	if (!below)
		return;
	own_closep(&below->load);
	own_closep(&below->proc);
	for (size_t i = 0; i < below->processes.count; i++)
		free(below->processes.at[i].command);
	for (size_t i = 0; i < below->ended.count; i++)
		free(below->ended.at[i].command);
	VEC_DONE(&below->processes);
	VEC_DONE(&below->ended);
	free(below);
}

bool below_found(const struct below *below)
{
	return below && below->found;
}

/* Up to size - 1 bytes; their number, or -1: it is gone, or not ours to read. */
static ssize_t read_file(const struct below *below, pid_t pid, const char *name, char *ret,
			 size_t size)
{
	char path[64];
	ssize_t len = 0, got = 1;
	int fd;

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	fd = openat(below->proc, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	while (got > 0 && (size_t)len + 1 < size) {
		got = read(fd, ret + len, size - 1 - (size_t)len);
		len = got < 0 ? -1 : len + got;
	}
	close(fd);
	ret[len > 0 ? len : 0] = 0;
	return len;
}

static bool has_news(struct below *below)
{
	char text[128];
	ssize_t len = below->load < 0 ? -1 : pread(below->load, text, sizeof(text), 0);
	struct str words = { text, len > 0 ? (size_t)len : 0 };
	int64_t pid = -1;

	words = str_trim(words);
	while (words.len && !str_to_i64(words, &pid))
		(void)str_cut(&words, ' ');
	below->calm = pid < 0 || pid != below->last_pid ? 0 : below->calm + 1;
	below->last_pid = pid;
	return below->calm <= CALM_LOOKS + 2 * below->processes.count;
}

/* An environment that is empty is not there yet: exec gives the name first. */
static void look_for_variable(struct below *below, struct below_process *process)
{
	char *text = mem_zero(ENVIRONMENT_BYTES);
	ssize_t len = read_file(below, process->pid, "environ", text, ENVIRONMENT_BYTES);
	size_t name = strlen(below->variable);

	for (char *at = text; len > 0 && at < text + len && !below->found; at += strlen(at) + 1)
		below->found = !strncmp(at, below->variable, name) && at[name] == '=';
	process->is_without = len != 0 && !below->found;
	free(text);
}

static void look_for_children(struct below *below, pid_t pid)
{
	char name[64], text[CHILDREN_BYTES];
	struct str rest;
	int64_t child;

	snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	if (read_file(below, pid, name, text, sizeof(text)) <= 0)
		return;
	rest = str_of(text);
	while (rest.len) {
		if (str_to_i64(str_cut(&rest, ' '), &child) && child > 0 && child <= INT_MAX)
			add(below, (pid_t)child);
	}
}

static size_t choose(struct below *below)
{
	size_t count = below->processes.count;

	if (below->turn++ % 2) {
		for (size_t i = count; i-- > 0;) {
			if (below->processes.at[i].looks < YOUNG_LOOKS)
				return i;
		}
	}
	below->next = below->next + 1 < count ? below->next + 1 : 0;
	return below->next;
}

/* It took another name: its command line may be another, too. */
static void take_name(const struct below *below, struct below_process *process, const char *name)
{
	char text[COMMAND_BYTES];
	const char *rest;
	ssize_t len;

	if (process->command && !strcmp(process->name, name)) /* some call themselves "" */
		return;
	snprintf(process->name, sizeof(process->name), "%s", name);
	len = read_file(below, process->pid, "cmdline", text, sizeof(text));
	for (ssize_t i = 0; i + 1 < len; i++)
		text[i] = text[i] ? text[i] : ' ';
	free(process->command);
	process->command = mem_text(len > 0 ? text : "");
	if (process->start_ticks || read_file(below, process->pid, "stat", text, sizeof(text)) <= 0)
		return;
	rest = strrchr(text, ')');
	if (rest && rest[1] == ' ')
		process->start_ticks = (uint64_t)proc_stat_field(str_of(rest + 2), 22);
}

static void end(struct below *below, struct below_process *process)
{
	if (process->looks >= YOUNG_LOOKS && below->ended.count < PROCESSES_MAX)
		*VEC_ADD(&below->ended) = *process;
	else
		free(process->command);
	*process = below->processes.at[--below->processes.count];
}

void below_look(struct below *below)
{
	struct below_process *process;
	char name[32];
	ssize_t len;

	if (!below || !below->processes.count)
		return;
	if (!has_news(below) && ++below->rest % CALM_REST)
		return;
	process = &below->processes.at[choose(below)];
	len = read_file(below, process->pid, "comm", name, sizeof(name));
	if (len <= 0) {
		end(below, process);
		return;
	}
	process->looks += process->looks < YOUNG_LOOKS;
	process->last_ns = clock_steady_ns();
	name[strcspn(name, "\n")] = 0;
	name[NAME_BYTES - 1] = 0;
	take_name(below, process, name);
	if (!below->found && !process->is_without && other_tool_is(below->tool, name))
		look_for_variable(below, process);
	look_for_children(below, process->pid);
}

/* "python: pt_data_worker": the program that was started, unless it is called so. */
static uint32_t full_name(struct session *session, const struct below_process *process)
{
	struct str rest = str_of(process->command), first = str_cut(&rest, ' ');
	char name[NAME_BYTES], program[64], text[sizeof(name) + sizeof(program) + 2];
	const char *slash = memrchr(first.at, '/', first.len);

	if (slash)
		first = (struct str){ slash + 1, (size_t)(first.at + first.len - slash - 1) };
	proc_text(name, sizeof(name), str_of(process->name));
	proc_text(program, sizeof(program), first);
	if (!*program || !strncmp(program, name, NAME_BYTES - 1))
		return intern_text(session->strings, name);
	snprintf(text, sizeof(text), "%s: %s", program, name);
	return intern_text(session->strings, text);
}

/* Its row in the session, of whatever source; NULL: it has none. */
static struct process *row_of(const struct session *session, const struct below_process *process)
{
	for (size_t i = 0; i < session->processes.count; i++) {
		struct process *row = &session->processes.at[i];

		if (row->pid == process->pid && row->start_ticks == process->start_ticks)
			return row;
	}
	return NULL;
}

static struct process *row_for(struct below *below, struct session *session,
			       const struct below_process *process)
{
	struct process *row = row_of(session, process);
	struct source *source;
	uint32_t added;

	if (row)
		return row->source == below->source ? row : NULL;
	if (below->source == SESSION_NONE) {
		below->source = session_source(session, READER_PROC, "other processes");
		source = &session->sources.at[below->source];
		source->has_utc = true;
		source->utc_offset_ns = clock_ns(CLOCK_REALTIME) - clock_steady_ns();
		source->mapping_error_ns = 1000;
	}
	added = session_process(session, below->source, process->pid); /* which may move rows */
	row = &session->processes.at[added];
	row->start_ticks = process->start_ticks;
	return row;
}

static void tell(struct below *below, struct session *session, const struct below_process *process,
		 int64_t least_ns)
{
	char command[COMMAND_BYTES];
	struct process *row;

	if (process->looks < YOUNG_LOOKS || process->last_ns - process->first_ns < least_ns)
		return;
	row = row_for(below, session, process);
	if (!row)
		return;
	proc_text(command, sizeof(command), str_of(process->command));
	row->name = full_name(session, process);
	row->command = intern_text(session->strings, command);
}

void below_tell(struct below *below, struct session *session, int64_t least_ns)
{
	for (size_t i = 0; below && i < below->ended.count; i++)
		tell(below, session, &below->ended.at[i], least_ns);
	for (size_t i = 0; below && i < below->processes.count; i++)
		tell(below, session, &below->processes.at[i], least_ns);
}
