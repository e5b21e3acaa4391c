/*
 * Who stands between us and the card: HAMi's hooks, MPS, the container
 * toolkit's choice of cards.
 */
#include <string.h>

#include "base/str.h"
#include "collect/host_part.h"

/* The word of `text` in which `needle` stands, up to a blank or a line's end. */
static const char *word_with(const struct tree *tree, const char *text, const char *needle)
{
	const char *at = text ? strstr(text, needle) : NULL;
	const char *start = at, *end = at;

	if (!at)
		return NULL;
	while (start > text && !strchr(" \t\n:", start[-1]))
		start--;
	while (*end && !strchr(" \t\n:", *end))
		end++;
	return arena_text(tree->arena, start, (size_t)(end - start));
}

static void read_hami(const struct tree *tree, struct host_hami *hami)
{
	static const char *const marks[] = { "CUDA_DEVICE_MEMORY_LIMIT_0",
					     "CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT",
					     "CUDA_DEVICE_MEMORY_SHARED_CACHE" };
	const char *off = tree_variable(tree, "CUDA_DISABLE_CONTROL");

	hami->library = word_with(tree, tree_text(tree, "/etc/ld.so.preload"), "libvgpu.so");
	if (!hami->library)
		hami->library = word_with(tree, tree_text(tree, "/proc/self/maps"), "libvgpu.so");
	hami->present = hami->library != NULL;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		hami->present = hami->present || tree_variable(tree, marks[i]);
	/* The marks stay set where the control was switched off for a container. */
	if (!hami->library && off && !strcmp(off, "true"))
		hami->present = false;
	hami->memory_limit = tree_variable(tree, marks[0]);
	if (!hami->memory_limit)
		hami->memory_limit = tree_variable(tree, marks[1]);
	hami->core_limit = tree_variable(tree, "CUDA_DEVICE_SM_LIMIT");
}

void host_read_sharing(const struct host_look *look, struct host *host)
{
	const struct tree *tree = &look->tree;

	read_hami(tree, &host->hami);
	host->visible_devices = tree_variable(tree, "NVIDIA_VISIBLE_DEVICES");
	host->driver_capabilities = tree_variable(tree, "NVIDIA_DRIVER_CAPABILITIES");
	host->cuda_visible_devices = tree_variable(tree, "CUDA_VISIBLE_DEVICES");
	host->mps_pipe = tree_variable(tree, "CUDA_MPS_PIPE_DIRECTORY");
	if (!host->mps_pipe && tree_has(tree, "/tmp/nvidia-mps/control"))
		host->mps_pipe = "/tmp/nvidia-mps";
}
