/* host_windows.c - does what it is told, byte by byte, so that a check can lay work in and
 * out of the windows of a recording. */
#include "inject/host.h"

#include <unistd.h>

#include "fake/puppet_cuda.h"

/* 10 kernels, each in a range, and a mark, all by the phase's name. */
static void phase(char letter)
{
	static char names[26][8];
	char *name = names[letter - 'A'];

	name[0] = letter;
	for (int i = 0; i < 10; i++) {
		range_push(name);
		(void)cuLaunchKernel(name, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
		range_pop();
	}
	mark(name);
	(void)cuCtxSynchronize();
}

/* A capital: a phase; s, e: cudaProfilerStart and -Stop. A range "outer" begins and ends: o, c
 * pushed; a, b started; f, g another, ended by another thread; w, v started with wide text;
 * in a domain of a library, by a registered string: i, j started, p, q pushed. Each is
 * answered when it is done. */
int host_windows(void)
{
	char byte;

	gpu_begin();
	say("+");
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		if (byte >= 'A' && byte <= 'Z')
			phase(byte);
		else if (byte == 's')
			(void)cuProfilerStart();
		else if (byte == 'e')
			(void)cuProfilerStop();
		else
			outer_edge(byte);
		say("%c", byte);
	}
	return 0;
}
