/*
 * A puppet of the hook library that shares a card among containers: stands before
 * dlsym and answers questions about memory itself. LD_PRELOAD it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

int hooked_memory(void *device, uint64_t *memory);

/* version and padding, total, reserved, free, used */
int hooked_memory(void *device, uint64_t *memory)
{
	(void)device;
	memory[1] = 1000;
	memory[2] = 0;
	memory[3] = 900;
	memory[4] = 100;
	return 0;
}

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!strcmp(name, "nvmlDeviceGetMemoryInfo_v2"))
		return (void *)hooked_memory;
	return real(handle, name);
}
