/*
 * host.h - what surrounds us: container, rights, driver files, devices,
 * toolkits. Facts only; what they mean is rules/check.h.
 *
 * Read from files below a root directory, and by opening devices; no library
 * of NVIDIA is loaded and nothing waits for the driver, but for opening
 * /dev/nvidiaN. Absent is NULL, TRUTH_UNKNOWN or -1, never 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/vec.h"

enum truth { TRUTH_UNKNOWN, TRUTH_NO, TRUTH_YES };

/* X(word, name): what made the container. */
#define RUNTIME_LIST(X)             \
	X(NONE, "none")             \
	X(DOCKER, "docker")         \
	X(PODMAN, "podman")         \
	X(CONTAINERD, "containerd") \
	X(CRIO, "cri-o")            \
	X(LXC, "lxc")               \
	X(NSPAWN, "systemd-nspawn") \
	X(APPTAINER, "apptainer")   \
	X(ENROOT, "enroot")         \
	X(OTHER, "unknown container")

enum runtime {
#define X(word, name) RUNTIME_##word,
	RUNTIME_LIST(X)
#undef X
};

const char *runtime_name(enum runtime runtime);

/* Linux's numbers, capability.h. */
enum { CAP_BIT_SYS_PTRACE = 19, CAP_BIT_SYS_ADMIN = 21, CAP_BIT_SYSLOG = 34, CAP_BIT_PERFMON = 38 };

struct host_rights {
	int64_t uid; /* -1: unknown */
	enum truth caps_known;
	uint64_t caps_effective, caps_bounding;
	int seccomp; /* 0 off, 1 strict, 2 filter, -1 unknown */
	enum truth no_new_privs;
	/* Only in the first user namespace do capabilities count for the driver. */
	enum truth first_user_namespace;
	enum truth first_pid_namespace; /* else foreign processes are unseen */
};

/* A node of /dev. `error` is open's errno, 0 for success. */
struct host_device {
	const char *name; /* "nvidiactl" */
	bool present;
	bool tried;
	int error;
};

/* One card on the PCI bus, or under /proc/driver/nvidia/gpus. */
struct host_card {
	const char *bus;                /* "0000:83:00.0" */
	const char *driver;             /* "nvidia", "vfio-pci", "nouveau"; NULL: none */
	const char *model, *uuid;       /* of the driver */
	const char *runtime_state;      /* "active", "suspended" */
	int minor;                      /* N of /dev/nvidiaN; -1 */
	int link_lanes, link_max_lanes; /* 0: unknown */
};

/* X(word, name): whom we look for among the processes. */
#define ROLE_LIST(X)                           \
	X(DCGM, "DCGM")                        \
	X(NCU, "Nsight Compute")               \
	X(NSYS, "Nsight Systems")              \
	X(MPS_CONTROL, "MPS control")          \
	X(MPS_SERVER, "MPS server")            \
	X(PERSISTENCED, "nvidia-persistenced") \
	X(FABRIC, "fabric manager")

enum host_role {
#define X(word, name) ROLE_##word,
	ROLE_LIST(X)
#undef X
		ROLE_COUNT
};

const char *role_name(enum host_role role);

struct host_process {
	enum host_role role;
	int64_t pid;
	const char *command; /* its first word, without folders */
};

/* A library as a file: its real name tells the version. */
struct host_library {
	const char *path;
	const char *version; /* "580.159.04"; NULL: the name does not tell */
};

struct host_toolkit {
	const char *path, *version; /* "/usr/local/cuda-13.0", "13.0" */
	bool nvcc;
};

/* A libcupti that could be used, in the order of preference. */
struct host_cupti {
	const char *path;
	const char *version; /* "2025.3.1"; may be NULL */
	int major;           /* CUDA's: 12, 13; 0: unknown */
	const char *origin;  /* "LD_LIBRARY_PATH", "toolkit", "python package" */
};

struct host_python {
	enum truth asked; /* YES: it answered; NO: it failed or was late */
	const char *interpreter, *version;
	const char *torch, *torch_cuda; /* "2.9.0+cu128", "12.8"; NULL: not there */
	VEC(const char *) folders;      /* of packages */
};

struct host_hami {
	bool present;
	const char *library;      /* path of libvgpu.so */
	const char *memory_limit; /* as set, "8g"; "0": none */
	const char *core_limit;   /* % */
};

struct host {
	struct arena arena;
	enum runtime runtime;
	bool pod, slurm, wsl, gvisor;
	const char *slurm_job;
	const char *jetson;  /* its model */
	const char *machine; /* virtual machine: "KVM", "VMware", "unknown hypervisor" */
	const char *kernel;  /* release */
	struct host_rights rights;

	const char *driver;        /* version of the loaded kernel module */
	enum truth driver_open;    /* the open kernel module */
	enum truth counters_admin; /* RmProfilingAdminOnly */
	VEC(struct host_device) devices;
	VEC(struct host_card) cards;
	struct host_library libnvidia_ml, libcuda;

	int dmesg_restrict;         /* -1: unknown */
	int perf_paranoid;          /* -100: unknown, as -1 is a value */
	int perf_error, kmsg_error; /* errno of the attempt, 0 success, -1 not tried */
	const char *log_file;       /* a kernel log as a file, or the journal's folder */

	const char *visible_devices, *driver_capabilities, *cuda_visible_devices;
	struct host_hami hami;
	const char *mps_pipe;
	enum truth glibc;
	enum truth libnvperf; /* the counters' host library beside CUPTI */

	VEC(struct host_process) processes;
	VEC(struct host_toolkit) toolkits;
	VEC(struct host_cupti) cuptis;
	struct host_python python;
};

struct host_opts {
	const char *root;       /* NULL or "/": this machine */
	char *const *variables; /* NULL: environ */
	const char *python;     /* an interpreter; NULL: python3 on this machine, "" none */
	/* Opens a path and returns errno or 0; NULL: open(2). For tests: a file
	 * can't be made that fails with EPERM. */
	int (*try_open)(const char *path, int flags);
};

/* Cannot fail: what can't be read is unknown. */
struct host *host_read(const struct host_opts *opts);
void host_free(struct host *host);
DEFINE_OWNED(host, host_free);

/* The device called `name`; NULL if it was not looked for. */
const struct host_device *host_device_find(const struct host *host, const char *name);
/* The first process of this role; NULL. */
const struct host_process *host_process_find(const struct host *host, enum host_role role);
/* Is a capability in force for the driver and the kernel as a whole? */
enum truth host_has_cap(const struct host *host, int bit);

/* Compare dotted numbers: < 0, 0, > 0; a shorter one is less only if it differs. */
int version_compare(const char *a, const char *b);
