/*
 * host.h - what the host programs of tests/inject share.
 *
 * A scenario is a function and a word in HOST_LIST. It prints the same with and
 * without sonde. "launches N" tells the check how many kernels the profile must
 * hold or count as lost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): host_NAME() */
#define HOST_LIST(X)      \
	X(slow_one)       \
	X(one)            \
	X(work)           \
	X(waits)          \
	X(hang)           \
	X(fault)          \
	X(events)         \
	X(threads)        \
	X(contexts)       \
	X(forked)         \
	X(fork_exec)      \
	X(cloned)         \
	X(vforked)        \
	X(background)     \
	X(quick_exit)     \
	X(aborted)        \
	X(killed)         \
	X(crashed)        \
	X(forever)        \
	X(slow)           \
	X(descriptors)    \
	X(closed_first)   \
	X(rooted)         \
	X(rooted_first)   \
	X(homeless)       \
	X(small_stacks)   \
	X(storm)          \
	X(exit_threads)   \
	X(secure)         \
	X(errno_kept)     \
	X(many)           \
	X(marks)          \
	X(long_texts)     \
	X(wait)           \
	X(windows)        \
	X(nvtx)           \
	X(nvtx_ops)       \
	X(nvtx_forked)    \
	X(profiler)       \
	X(memory)         \
	X(where)          \
	X(coroutine)      \
	X(made)           \
	X(leaks)          \
	X(graphs)         \
	X(reset)          \
	X(storm_launches) \
	X(devices)        \
	X(many_contexts)  \
	X(exec_self)      \
	X(steady)         \
	X(steady_range)   \
	X(by_dlsym)       \
	X(torch)          \
	X(replay)

#define X(name) int host_##name(void);
HOST_LIST(X)
#undef X

/* A context, a module, a kernel. Exits with 9 where the driver says no. */
void gpu_begin(void);
/* True: launched. */
bool gpu_launch(void);
/* Launches and says so. */
void gpu_launches(unsigned int count);
/* Prints the line at once: the program may be about to die. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void nap_ms(unsigned int ms);

/* NVTX, of the real headers where they are installed: host_nvtx.c. */
void range_push(const char *name);
void range_pop(void);
void mark(const char *name);
/* A range "outer" begins or ends, as one of the bytes of host_windows.c says. */
void outer_edge(char byte);

/* How this program was called, for exec. */
extern char *host_self;
