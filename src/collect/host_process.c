/*
 * Processes that matter to a profiler, by the name of their program. Only what
 * our PID namespace shows.
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "collect/host_part.h"

/* Programs, without folders. Their kernel names (comm) are cut at 15 letters,
 * so command lines decide where they can be read. */
static const struct {
	const char *program;
	enum host_role role;
} PROGRAMS[] = {
	{ "nv-hostengine", ROLE_DCGM },
	{ "dcgm-exporter", ROLE_DCGM },
	{ "dcgmproftester", ROLE_DCGM },
	{ "ncu", ROLE_NCU },
	{ "nv-nsight-cu-cli", ROLE_NCU },
	{ "ncu-ui", ROLE_NCU },
	{ "nsys", ROLE_NSYS },
	{ "nsys-launcher", ROLE_NSYS },
	{ "nsys-agent", ROLE_NSYS },
	{ "nvidia-cuda-mps-control", ROLE_MPS_CONTROL },
	{ "nvidia-cuda-mps-server", ROLE_MPS_SERVER },
	{ "nvidia-persistenced", ROLE_PERSISTENCED },
	{ "nv-fabricmanager", ROLE_FABRIC },
};

enum { COMM_MAX = 15 };

static const char *program_of(const struct tree *tree, const char *pid)
{
	const char *text = tree_line(tree, "/proc/%s/cmdline", pid);
	struct str words, word;
	const char *name, *slash;

	if (!text || !*text)
		return tree_line(tree, "/proc/%s/comm", pid);
	words = str_of(text);
	word = str_cut(&words, ' ');
	name = arena_text(tree->arena, word.at, word.len);
	slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

static bool is_program(const char *name, const char *program)
{
	return !strcmp(name, program) ||
	       (strlen(name) == COMM_MAX && !strncmp(name, program, COMM_MAX));
}

void host_read_processes(const struct host_look *look, struct host *host)
{
	size_t count;
	const char *const *names = tree_names(&look->tree, "/proc", &count);

	for (size_t i = 0; i < count; i++) {
		const char *program;
		int64_t pid;

		if (!isdigit((unsigned char)names[i][0]) || !str_to_i64(str_of(names[i]), &pid) ||
		    !(program = program_of(&look->tree, names[i])))
			continue;
		for (size_t p = 0; p < sizeof(PROGRAMS) / sizeof(*PROGRAMS); p++) {
			if (is_program(program, PROGRAMS[p].program)) {
				*VEC_ADD(&host->processes) =
					(struct host_process){ PROGRAMS[p].role, pid, program };
				break;
			}
		}
	}
}
