/*
 * osrt.c - libsonde-osrt.so: calls of the system that take long, as the host's
 * threads make them. LD_PRELOADed only where asked for.
 *
 * Each wrapper calls the real function with what it was given and hands back
 * what it got: errno, signals, EINTR and cancellation are the real function's
 * own. Nothing of ours is held during the call - no lock, no thread-local mark -
 * so that a thread may be cancelled in it, or leave it by longjmp; the record is
 * made after it returned. Calls that never return are not recorded.
 *
 * Off in forked children (the state is wiped) and in children of vfork, which
 * have our memory: their pid tells.
 */
#include "inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/osrt_calls.h"

#define EXPORT __attribute__((visibility("default")))

enum { NVIDIA_MAJOR = 195, MAJORS_MAX = 8 };

enum os_call {
#define X(type, symbol, name, parameters, ...) OS_##symbol,
	OSRT_CALLS(X) OSRT_OTHERS(X)
#undef X
		OS_COUNT
};

/* What stands behind us. Set once, all with the same values whoever sets them. */
static struct {
#define X(type, symbol, name, parameters, ...) type(*symbol) parameters;
	OSRT_CALLS(X) OSRT_OTHERS(X)
#undef X
} real;
static _Atomic bool found;
static __thread uint8_t finding __attribute__((tls_model("initial-exec")));

struct osrt {
	struct inject inject;
	uint32_t names[OS_COUNT];        /* texts */
	unsigned int majors[MAJORS_MAX]; /* of the driver's devices: their ioctls say nothing */
};

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

/* Condition variables changed with 2.3.2: without the version we could get the
 * old ones, which take other objects. */
static void *next(const char *symbol)
{
	void *at = strncmp(symbol, "pthread_cond_", 13) ? NULL
							: dlvsym(RTLD_NEXT, symbol, "GLIBC_2.3.2");

	return at ? at : dlsym(RTLD_NEXT, symbol);
}

/* [setup] False: we are inside of it already (dlsym may allocate, and the host's
 * allocator may call us). */
static bool find(void)
{
	int saved_errno = errno;

	if (finding)
		return false;
	finding = 1;
#define X(type, symbol, name, parameters, ...) *(void **)(void *)&real.symbol = next(#symbol);
	OSRT_CALLS(X)
	OSRT_OTHERS(X)
#undef X
	atomic_store_explicit(&found, true, memory_order_release);
	finding = 0;
	errno = saved_errno;
	return true;
}

static inline bool is_found(void)
{
	return atomic_load_explicit(&found, memory_order_acquire) || find();
}

/* [hot] When a call begins; 0: not to be recorded. */
static inline uint64_t begin(void)
{
	struct inject *inject = inject_state;
	struct segment *segment;

	segment = inject ? atomic_load_explicit(&inject->segment, memory_order_acquire) : NULL;
	if (!segment || atomic_load_explicit(&segment->paused, memory_order_relaxed) ||
	    atomic_load_explicit(&segment->closed, memory_order_relaxed))
		return 0;
	return inject_now();
}

/* [hot] */
static void record(enum os_call call, uint64_t start, uint64_t now)
{
	HOOK;
	struct segment_slot *slot;

	if (!hook.segment || (uint32_t)syscall(SYS_getpid) != inject_state->pid)
		return;
	slot = slot_take(hook.segment);
	if (!slot)
		return;
	slot->time_ns = now;
	slot->value = start;
	slot->a = ((struct osrt *)(void *)inject_state)->names[call];
	slot_commit(slot, SLOT_OS);
}

/* [hot] */
static inline void end(enum os_call call, uint64_t start)
{
	uint64_t now;

	/* A child that was forked in the meantime has no state. */
	if (!start || !inject_state)
		return;
	now = inject_now();
	if (now - start >= inject_state->os_threshold_ns)
		record(call, start, now);
}

#define X(type, symbol, name, parameters, arguments, early)                                   \
	EXPORT type os_##symbol parameters __asm__(#symbol);                                  \
	type os_##symbol parameters                                                           \
	{                                                                                     \
		uint64_t start = begin();                                                     \
		type ret = is_found() && real.symbol ? real.symbol arguments : (type)(early); \
                                                                                              \
		end(OS_##symbol, start);                                                      \
		return ret;                                                                   \
	}
OSRT_CALLS(X)
#undef X

#define X(type, symbol, name, parameters) EXPORT type os_##symbol parameters __asm__(#symbol);
OSRT_OTHERS(X)
#undef X

/* The mode is only read where flags ask for it, and passed on always: an
 * argument that is not there is some value in a register. */
#define MODE                                \
	__extension__({                     \
		va_list more_;              \
		mode_t mode_;               \
		va_start(more_, flags);     \
		mode_ = va_arg(more_, int); \
		va_end(more_);              \
		mode_;                      \
	})

#define OPEN(symbol)                                                                          \
	int os_##symbol(const char *path, int flags, ...)                                     \
	{                                                                                     \
		mode_t mode = (mode_t)MODE;                                                   \
		uint64_t start = begin();                                                     \
		int ret = is_found() ? real.symbol(path, flags, mode)                         \
				     : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); \
                                                                                              \
		end(OS_##symbol, start);                                                      \
		return ret;                                                                   \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(symbol)                                                                  \
	int os_##symbol(int at, const char *path, int flags, ...)                       \
	{                                                                               \
		mode_t mode = (mode_t)MODE;                                             \
		uint64_t start = begin();                                               \
		int ret = is_found() ? real.symbol(at, path, flags, mode)               \
				     : (int)syscall(SYS_openat, at, path, flags, mode); \
                                                                                        \
		end(OS_##symbol, start);                                                \
		return ret;                                                             \
	}
OPENAT(openat)
OPENAT(openat64)

/* The driver's own calls are what CUPTI tells more of. */
static bool is_driver(int fd)
{
	const struct osrt *osrt = (const struct osrt *)(const void *)inject_state;
	int saved_errno = errno;
	struct stat file;
	bool is = false;

	if (!osrt || syscall(SYS_fstat, fd, &file) < 0 || !S_ISCHR(file.st_mode)) {
		errno = saved_errno;
		return false;
	}
	for (size_t i = 0; i < MAJORS_MAX && !is; i++)
		is = osrt->majors[i] && osrt->majors[i] == major(file.st_rdev);
	return is;
}

int os_ioctl(int fd, unsigned long request, ...)
{
	uint64_t start = begin();
	va_list more;
	void *argument;
	int ret;

	va_start(more, request);
	argument = va_arg(more, void *);
	va_end(more);
	ret = is_found() ? real.ioctl(fd, request, argument)
			 : (int)syscall(SYS_ioctl, fd, request, argument);
	if (start && inject_state && inject_now() - start >= inject_state->os_threshold_ns &&
	    !is_driver(fd))
		end(OS_ioctl, start);
	return ret;
}

/* Only one that has to wait is measured. Whatever trylock says but EBUSY, lock
 * would have said. */
int os_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int ret = pthread_mutex_trylock(mutex);
	uint64_t start;

	if (ret != EBUSY)
		return ret;
	start = begin();
	if (is_found()) {
		ret = real.pthread_mutex_lock(mutex);
	} else {
		while ((ret = pthread_mutex_trylock(mutex)) == EBUSY)
			(void)syscall(SYS_sched_yield);
	}
	end(OS_pthread_mutex_lock, start);
	return ret;
}

/* [setup] "195 nvidia-frontend", "511 nvidia-uvm": lines of /proc/devices. */
static void find_majors(struct osrt *osrt)
{
	char text[8192];
	int file = open("/proc/devices", O_RDONLY | O_CLOEXEC);
	ssize_t len = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	size_t count = 0;

	if (file >= 0)
		close(file);
	osrt->majors[count++] = NVIDIA_MAJOR;
	text[len > 0 ? len : 0] = 0;
	for (const char *at = text; *at && count < MAJORS_MAX;) {
		const char *line_end = strchr(at, '\n');
		unsigned int number = 0;

		while (*at == ' ')
			at++;
		for (; *at >= '0' && *at <= '9'; at++)
			number = number * 10 + (unsigned int)(*at - '0');
		if (number && number != NVIDIA_MAJOR && !strncmp(at, " nvidia", 7))
			osrt->majors[count++] = number;
		if (!line_end)
			return;
		at = line_end + 1;
	}
}

__attribute__((constructor)) static void begin_recording(void)
{
	static const char *const names[OS_COUNT] = {
#define X(type, symbol, name, parameters, ...) [OS_##symbol] = name,
		OSRT_CALLS(X) OSRT_OTHERS(X)
#undef X
	};
	int saved_errno = errno;
	const char *options = secure_getenv(SEGMENT_OPTIONS_ENV);
	struct segment *segment = NULL;
	struct osrt *osrt = NULL;

	(void)is_found();
	if (options && strstr(options, "osrt"))
		osrt = (struct osrt *)(void *)inject_new(sizeof(*osrt), SEGMENT_USER_HOST,
							 &segment);
	if (osrt && segment && osrt->inject.trace >> TRACE_OSRT & 1) {
		find_majors(osrt);
		for (size_t i = 0; i < OS_COUNT; i++)
			osrt->names[i] = text_intern(segment, names[i], strlen(names[i]));
		inject_state = &osrt->inject;
		atomic_store(&osrt->inject.segment, segment);
	}
	errno = saved_errno;
}
