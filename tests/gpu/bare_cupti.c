/*
 * The yardstick of run_cost.sh: a CUPTI consumer that asks for kernel records
 * (BARE=kernel) or kernel and runtime records (BARE=api) and drops them.
 * Loaded by CUDA_INJECTION64_PATH.
 */
#include <cupti.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20 };

static void asked(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = aligned_alloc(8, BYTES);
	*size = BYTES;
	*records = 0;
}

static void done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context;
	(void)stream;
	(void)size;
	(void)valid;
	free(buffer);
}

static void at_exit(void)
{
	cuptiActivityFlushAll(1);
}

int InitializeInjection(void);

int InitializeInjection(void)
{
	const char *what = getenv("BARE");

	cuptiActivityRegisterCallbacks(asked, done);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	if (what && !strcmp(what, "api"))
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
	atexit(at_exit);
	return 1;
}
