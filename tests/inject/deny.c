/*
 * deny CALL... -- PROGRAM ARGUMENTS...: runs the program with these system calls
 * refused (EACCES), as a container's seccomp profile does.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int deny(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		long number = !strcmp(argv[i], "perf_event_open")    ? SYS_perf_event_open
			      : !strcmp(argv[i], "process_vm_readv") ? SYS_process_vm_readv
								     : -1;

		if (number < 0 || deny(number))
			return 77;
	}
	if (i + 1 >= argc)
		return 2;
	(void)execvp(argv[i + 1], argv + i + 1);
	return 127;
}
