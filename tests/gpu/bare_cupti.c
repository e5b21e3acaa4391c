/*
 * The yardstick of run_cost.sh: a CUPTI consumer that asks for records and drops them.
 * Loaded by CUDA_INJECTION64_PATH. Of kernels, and of what the words in BARE say:
 *
 *   api        all calls of the runtime    launch           its launches alone
 *   memory     allocations                 sync             synchronisations and events
 *   callback   one call of the runtime, which the program hardly makes, calls back
 *   driver_callback                        one of the driver
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

static void called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)data;
}

static void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	CUpti_SubscriberHandle subscriber;

	cuptiSubscribe(&subscriber, called, NULL);
	cuptiEnableCallback(1, subscriber, domain, cbid);
}

static void enable(const char *word)
{
	if (!strcmp(word, "api"))
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
	if (!strcmp(word, "launch"))
		cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1);
	if (!strcmp(word, "memory"))
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2);
	if (!strcmp(word, "sync")) {
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
	}
	if (!strcmp(word, "callback"))
		call_back(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
	if (!strcmp(word, "driver_callback"))
		call_back(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventCreate);
}

int InitializeInjection(void);

int InitializeInjection(void)
{
	const char *what = getenv("BARE");
	char *words = what ? strdup(what) : NULL;

	cuptiActivityRegisterCallbacks(asked, done);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	for (char *word = words ? strtok(words, ",") : NULL; word; word = strtok(NULL, ","))
		enable(word);
	free(words);
	atexit(at_exit);
	return 1;
}
