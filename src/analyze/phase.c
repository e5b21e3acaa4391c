/*
 * What names announce. Only names that PyTorch, CUDA or HIP give decide
 * something, and ranges that a person named after a phase; never the names of
 * kernels. The list is in doc/analysis.md.
 */
#include "analyze/timeline.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

struct announcement {
	const char *text;
	enum phase phase;
};

/* Prefixes and parts of names that torch.profiler, the data loader, the optimizers
 * and autograd write by themselves. */
static const struct announcement framework_starts[] = {
	{ "enumerate(DataLoader)", PHASE_LOADER },
	{ "enumerate(DataPipe)", PHASE_LOADER },
	{ "torch/utils/data/", PHASE_LOADER },
	{ "Optimizer.", PHASE_OPTIMIZER },
	{ "autograd::engine::evaluate_function", PHASE_BACKWARD },
};

/* Words in the names of a person's ranges: lower case, one blank between. */
static const struct announcement words[] = {
	{ " forward ", PHASE_FORWARD },     { " fwd ", PHASE_FORWARD },
	{ " backward ", PHASE_BACKWARD },   { " bwd ", PHASE_BACKWARD },
	{ " optimizer ", PHASE_OPTIMIZER }, { " optim ", PHASE_OPTIMIZER },
	{ " dataloader ", PHASE_LOADER },   { " loader ", PHASE_LOADER },
	{ " dataloading ", PHASE_LOADER },  { " data loading ", PHASE_LOADER },
	{ " data load ", PHASE_LOADER },    { " load data ", PHASE_LOADER },
	{ " data fetch ", PHASE_LOADER },   { " fetch data ", PHASE_LOADER },
	{ " data loader ", PHASE_LOADER },  { " next batch ", PHASE_LOADER },
};

/* Words of a longer name are not looked at. */
enum { NAME_LIMIT = 128 };

static enum phase phase_of_words(const char *name)
{
	char plain[NAME_LIMIT + 3] = " ";
	size_t len = 1;

	for (; *name && len < NAME_LIMIT; name++) {
		if (isalpha((unsigned char)*name))
			plain[len++] = (char)tolower((unsigned char)*name);
		else if (plain[len - 1] != ' ')
			plain[len++] = ' ';
	}
	if (plain[len - 1] != ' ')
		plain[len] = ' ';
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(plain, words[i].text))
			return words[i].phase;
	return PHASE_OTHER;
}

enum phase phase_of_name(const char *name, bool is_user)
{
	struct str text = str_of(name);

	for (size_t i = 0; i < sizeof(framework_starts) / sizeof(*framework_starts); i++)
		if (str_starts(text, framework_starts[i].text))
			return framework_starts[i].phase;
	return is_user ? phase_of_words(name) : PHASE_OTHER;
}

/* CUDA Runtime API and Driver API references: calls that wait for the device.
 * A plain cudaMemcpy is among them; the Async ones are not (API
 * synchronization behavior), but for pageable memory, which the copy shows. */
static const char *const sync_calls[] = {
	"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
	"cudaThreadSynchronize", "cuCtxSynchronize",      "cuStreamSynchronize",
	"cuEventSynchronize",    "hipDeviceSynchronize",  "hipStreamSynchronize",
	"hipEventSynchronize",
};

static const char *const sync_copies[] = { "cudaMemcpy", "cuMemcpy", "hipMemcpy" };

bool sync_call_name(const char *name)
{
	struct str text = str_of(name);

	/* Suffixes are versions: cudaStreamSynchronize_ptsz, cuCtxSynchronize_v2. */
	for (size_t i = 0; i < sizeof(sync_calls) / sizeof(*sync_calls); i++) {
		size_t len = strlen(sync_calls[i]);

		if (str_starts(text, sync_calls[i]) && (!name[len] || name[len] == '_'))
			return true;
	}
	for (size_t i = 0; i < sizeof(sync_copies) / sizeof(*sync_copies); i++)
		if (str_starts(text, sync_copies[i]))
			return !str_find(text, "Async");
	return false;
}
