/*
 * host_cupti.c - a program that uses CUPTI itself, linked to it: it counts its
 * own kernels, and must count the same with sonde.
 *
 *	host_cupti subscribe|register|late
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"
#include "wire/cupti_abi.h"

enum { BYTES = 1 << 16 };

extern uint32_t cuptiSubscribe(void **ret_subscriber,
			       void (*callback)(void *, uint32_t, uint32_t, const void *),
			       void *user);
extern uint32_t cuptiActivityRegisterCallbacks(void (*asked)(uint8_t **, size_t *, size_t *),
					       void (*done)(void *, uint32_t, uint8_t *, size_t,
							    size_t));
extern uint32_t cuptiActivityEnable(uint32_t kind);
extern uint32_t cuptiActivityFlushAll(uint32_t flag);
extern uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);

static unsigned int kernels, others;

static void asked(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	*ret_buffer = aligned_alloc(8, BYTES);
	*ret_bytes = BYTES;
	*ret_records = 0;
}

static void done(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	void *record = NULL;

	(void)context;
	(void)stream;
	(void)bytes;
	while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
		if (*(uint32_t *)record == CUPTI_KIND_CONCURRENT_KERNEL)
			kernels++;
		else
			others++;
	}
	free(buffer); /* aborts if it is not ours */
}

static void callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)data;
}

static int launch(unsigned int count)
{
	int bad = 0;

	for (unsigned int i = 0; i < count; i++)
		bad += cuLaunchKernel("_Z5scalePffi", 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != 0;
	return bad;
}

int main(int argc, char **argv)
{
	void *context, *subscriber;
	uint32_t result = 0;

	if (argc != 2 || cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || launch(120))
		return 1;
	if (strcmp(argv[1], "register") != 0)
		result = cuptiSubscribe(&subscriber, callback, NULL);
	if (!result)
		result = cuptiActivityRegisterCallbacks(asked, done);
	if (!result)
		result = cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL);
	if (launch(80))
		return 1;
	(void)usleep(20000);
	(void)cuptiActivityFlushAll(1);
	printf("CUPTI says %u, my kernels: %u, others: %u\n", result, kernels, others);
	return 0;
}
