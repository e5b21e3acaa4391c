#include "rules/advise.h"

#include <string.h>

#include "base/i18n.h"
#include "base/str.h"

/* What PyTorch and interpreters call their processes; the kernel keeps 15 letters of it. */
static const char *const FRAMEWORK_PROCESSES[] = { "python", "pt_", "ipython", "jupyter", "ray::" };

/* In the names of kernels: PyTorch's and Triton's own, and those of XLA. */
static const char *const FRAMEWORK_KERNELS[] = { "at::native::", "c10::", "triton_", "xla_" };

enum { PROCESS_WORDS = sizeof(FRAMEWORK_PROCESSES) / sizeof(*FRAMEWORK_PROCESSES) };
enum { KERNEL_WORDS = sizeof(FRAMEWORK_KERNELS) / sizeof(*FRAMEWORK_KERNELS) };

static const char *reader_of(const struct session *session, uint32_t source)
{
	return source < session->sources.count
		       ? session_text(session, session->sources.at[source].reader)
		       : "";
}

static bool is_frameworks_process(const char *name)
{
	for (size_t i = 0; i < PROCESS_WORDS; i++)
		if (str_starts(str_of(name), FRAMEWORK_PROCESSES[i]))
			return true;
	return false;
}

/* Some of them may have names of their own, as servers do: then their kernels tell. */
static bool has_frameworks_kernels(const struct session *session)
{
	for (size_t i = 0; i < session->keys.count; i++)
		for (size_t k = 0; k < KERNEL_WORDS; k++)
			if (strstr(session_text(session, session->keys.at[i].name),
				   FRAMEWORK_KERNELS[k]))
				return true;
	return false;
}

enum program program_of(const struct facts *facts)
{
	const struct session *session = facts->session;
	size_t known = 0;

	if (!session || facts->ops.count || has_frameworks_kernels(session))
		return PROGRAM_FRAMEWORK;
	for (size_t i = 0; i < session->processes.count; i++) {
		const struct process *process = &session->processes.at[i];

		if (strcmp(reader_of(session, process->source), READER_CUDA) != 0)
			continue;
		if (is_frameworks_process(session_text(session, process->name)))
			return PROGRAM_FRAMEWORK;
		known += process->name != 0;
	}
	return known ? PROGRAM_NATIVE : PROGRAM_FRAMEWORK;
}

bool recorded_by_run(const struct facts *facts)
{
	if (!facts->session)
		return false;
	for (uint32_t i = 0; i < facts->session->sources.count; i++)
		if (!strcmp(reader_of(facts->session, i), READER_CUDA))
			return true;
	return false;
}

static const char *of_kind(const struct facts *facts, const struct advice *advice)
{
	return program_of(facts) == PROGRAM_NATIVE ? advice->native : advice->framework;
}

void advise(const struct facts *facts, struct finding *finding, const struct advice *list,
	    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (of_kind(facts, &list[i]))
			finding_advice(finding, _(of_kind(facts, &list[i])));
}

void advise_next(const struct facts *facts, struct finding *finding, struct advice next)
{
	if (of_kind(facts, &next))
		finding_next(finding, _(of_kind(facts, &next)));
}

void advise_ranges(const struct facts *facts, struct finding *finding)
{
	advise_next(facts, finding,
		    (struct advice){ N_("mark the host's parts with "
					"torch.profiler.record_function or NVTX ranges and record "
					"again"),
				     N_("mark the host's parts with NVTX ranges (nvtxRangePush, "
					"nvtxRangePop) and record again") });
}
