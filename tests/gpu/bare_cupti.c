/*
 * The yardstick of run_cost.sh: a CUPTI consumer that asks for records and drops them.
 * Loaded by CUDA_INJECTION64_PATH. Of kernels, and of what the words in BARE say:
 *
 *   api        all calls of the runtime    launch           its launches alone
 *   memory     allocations
 *   wait       synchronisations            event            CUDA events
 *   driver     all calls of the driver     driver_launch    its launches alone
 *   launch_ex  cudaLaunchKernelExC alone   copy             copies and sets
 *   callback   one call of the runtime, which the program hardly makes, calls back
 *   driver_callback                        one of the driver
 *
 * Loaded by eager_bare.py, it is switched within one process: bare_switch().
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

static CUpti_SubscriberHandle subscriber;

static void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, int on)
{
	if (on) {
		cuptiSubscribe(&subscriber, called, NULL);
		cuptiEnableCallback(1, subscriber, domain, cbid);
	} else {
		cuptiUnsubscribe(subscriber);
	}
}

static void kind(CUpti_ActivityKind of, int on)
{
	if (on)
		cuptiActivityEnable(of);
	else
		cuptiActivityDisable(of);
}

static void one(const char *word, int on)
{
	if (!strcmp(word, "api"))
		kind(CUPTI_ACTIVITY_KIND_RUNTIME, on);
	if (!strcmp(word, "driver"))
		kind(CUPTI_ACTIVITY_KIND_DRIVER, on);
	if (!strcmp(word, "launch"))
		cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, on);
	if (!strcmp(word, "launch_ex"))
		cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
					      on);
	if (!strcmp(word, "copy")) {
		kind(CUPTI_ACTIVITY_KIND_MEMCPY, on);
		kind(CUPTI_ACTIVITY_KIND_MEMSET, on);
	}
	if (!strcmp(word, "driver_launch"))
		cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, on);
	if (!strcmp(word, "memory"))
		kind(CUPTI_ACTIVITY_KIND_MEMORY2, on);
	if (!strcmp(word, "wait"))
		kind(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, on);
	if (!strcmp(word, "event"))
		kind(CUPTI_ACTIVITY_KIND_CUDA_EVENT, on);
	if (!strcmp(word, "callback"))
		call_back(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
			  on);
	if (!strcmp(word, "driver_callback"))
		call_back(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventCreate, on);
}

void bare_switch(const char *what, int on);

/* Words with commas between them. Off: all records are out of CUPTI first. */
void bare_switch(const char *what, int on)
{
	char *words = what ? strdup(what) : NULL;

	if (on)
		cuptiActivityRegisterCallbacks(asked, done);
	kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, on);
	for (char *word = words ? strtok(words, ",") : NULL; word; word = strtok(NULL, ","))
		one(word, on);
	if (!on)
		at_exit();
	free(words);
}

int InitializeInjection(void);

int InitializeInjection(void)
{
	bare_switch(getenv("BARE"), 1);
	atexit(at_exit);
	return 1;
}
