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

/* Words in the names of a person's ranges. */
static const struct announcement words[] = {
	{ "forward", PHASE_FORWARD },     { "fwd", PHASE_FORWARD },
	{ "backward", PHASE_BACKWARD },   { "bwd", PHASE_BACKWARD },
	{ "optimizer", PHASE_OPTIMIZER }, { "optim", PHASE_OPTIMIZER },
	{ "dataloader", PHASE_LOADER },   { "loader", PHASE_LOADER },
	{ "dataloading", PHASE_LOADER },
};

/* The word that begins at `at`: its length, letters only. */
static size_t word_at(const char *at)
{
	size_t len = 0;

	while (isalpha((unsigned char)at[len]))
		len++;
	return len;
}

static bool same_word(const char *at, size_t len, const char *word)
{
	if (strlen(word) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (tolower((unsigned char)at[i]) != word[i])
			return false;
	return true;
}

static enum phase phase_of_words(const char *name)
{
	while (*name) {
		size_t len = word_at(name);

		for (size_t i = 0; len && i < sizeof(words) / sizeof(*words); i++)
			if (same_word(name, len, words[i].text))
				return words[i].phase;
		name += len ? len : 1;
	}
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
