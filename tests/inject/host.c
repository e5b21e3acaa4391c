/* host.c - runs one scenario: host NAME. */
#include "inject/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"

char *host_self;
static void *function;

void say(const char *fmt, ...)
{
	char line[256];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	(void)!write(STDOUT_FILENO, line, (size_t)len);
}

void nap_ms(unsigned int ms)
{
	struct timespec span = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&span, &span) < 0)
		;
}

void gpu_begin(void)
{
	void *context, *module;

	if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, "cubin") ||
	    cuModuleGetFunction(&function, module, "_Z5scalePffi")) {
		say("no driver\n");
		_exit(9);
	}
}

bool gpu_launch(void)
{
	return cuLaunchKernel(function, 4, 2, 1, 128, 1, 1, 16, NULL, NULL, NULL) == 0;
}

void gpu_launches(unsigned int count)
{
	unsigned int good = 0;

	for (unsigned int i = 0; i < count; i++)
		good += gpu_launch();
	say("launches %u\n", good);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} hosts[] = {
#define X(name) { #name, host_##name },
		HOST_LIST(X)
#undef X
	};

	host_self = argv[0];
	for (size_t i = 0; argc == 2 && i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		if (!strcmp(hosts[i].name, argv[1]))
			return hosts[i].run();
	}
	(void)fprintf(stderr, "usage: host NAME\n");
	return 2;
}
