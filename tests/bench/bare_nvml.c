/*
 * The yardstick of the monitor on puppets: the least that prints a row of
 * `nvidia-smi dmon -s puc` for each card. No child, no check, nothing kept.
 *
 *	bare_nvml LIBRARY ROUNDS MILLISECONDS
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct library {
	int (*init)(void);
	int (*count)(uint32_t *);
	int (*handle)(uint32_t, void **);
	int (*power)(void *, uint32_t *);
	int (*temperature)(void *, uint32_t, uint32_t *);
	int (*use)(void *, uint32_t *);
	int (*clock)(void *, uint32_t, uint32_t *);
	int (*memory)(void *, uint64_t *);
};

static void find(void *library, const char *name, void *ret_function)
{
	void *function = dlsym(library, name);

	if (!function) {
		(void)fprintf(stderr, "bare_nvml: no %s\n", name);
		exit(3);
	}
	memcpy(ret_function, &function, sizeof(function));
}

static void row(const struct library *nvml, uint32_t place)
{
	uint32_t power = 0, celsius = 0, use[2] = { 0 }, sm = 0, memory = 0;
	uint64_t bytes[3] = { 0 };
	void *card = NULL;

	if (nvml->handle(place, &card))
		return;
	(void)nvml->power(card, &power);
	(void)nvml->temperature(card, 0, &celsius);
	(void)nvml->use(card, use);
	(void)nvml->clock(card, 1, &sm);
	(void)nvml->clock(card, 2, &memory);
	(void)nvml->memory(card, bytes);
	(void)printf("%5u %6u %6u %6u %6u %6u %6u %6llu\n", place, power / 1000, celsius, use[0],
		     use[1], memory, sm, (unsigned long long)(bytes[2] >> 20));
}

int main(int argc, char **argv)
{
	struct library nvml;
	void *library = argc == 4 ? dlopen(argv[1], RTLD_LAZY) : NULL;
	uint32_t cards = 0;
	long rounds, ms;

	if (!library)
		return 2;
	rounds = strtol(argv[2], NULL, 10);
	ms = strtol(argv[3], NULL, 10);
	find(library, "nvmlInit_v2", (void *)&nvml.init);
	find(library, "nvmlDeviceGetCount_v2", (void *)&nvml.count);
	find(library, "nvmlDeviceGetHandleByIndex_v2", (void *)&nvml.handle);
	find(library, "nvmlDeviceGetPowerUsage", (void *)&nvml.power);
	find(library, "nvmlDeviceGetTemperature", (void *)&nvml.temperature);
	find(library, "nvmlDeviceGetUtilizationRates", (void *)&nvml.use);
	find(library, "nvmlDeviceGetClockInfo", (void *)&nvml.clock);
	find(library, "nvmlDeviceGetMemoryInfo", (void *)&nvml.memory);
	(void)nvml.init();
	(void)nvml.count(&cards);
	for (long i = 0; i < rounds; i++) {
		for (uint32_t card = 0; card < cards; card++)
			row(&nvml, card);
		(void)fflush(stdout);
		(void)nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
	}
	return 0;
}
