/* host_replay.c - a program that a log was recorded of: tests/fake/replay_cupti.h. */
#include <dlfcn.h>

#include "fake/puppet_cuda.h"
#include "inject/host.h"

int host_replay(void)
{
	void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
	size_t (*play)(void) = NULL;

	if (cupti)
		*(void **)(void *)&play = dlsym(cupti, "puppet_play");
	if (!play || cuInit(0)) {
		say("no player\n");
		return 9;
	}
	say("launches %zu\n", play());
	return 0;
}
