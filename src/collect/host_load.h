/*
 * host_load.h - CPU and memory of the machine as a whole.
 *
 * From /proc/stat, /proc/meminfo and /proc/loadavg below a root directory. In
 * a container these speak of the host, not of the container's limits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct host_load {
	bool has_cpu, has_memory, has_load;
	int64_t cpus;        /* on line */
	int64_t cpu_busy_ns; /* of all CPUs since boot: not idle and not waiting for a disk */
	int64_t cpu_total_ns;
	int64_t mem_total_bytes, mem_available_bytes;
	double load_1m;
};

/* What can't be read stays without its has_ flag. `root` is "" for this machine. */
void host_load_read(const char *root, struct host_load *ret);

/* Share 0..1 of CPU time that was busy between two readings; false if either
 * lacks it or no time passed. */
bool host_load_busy(const struct host_load *before, const struct host_load *after, double *ret);
