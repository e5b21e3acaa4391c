/*
 * osrt_calls.h - the calls of the system that libsonde-osrt.so stands in front of.
 *
 * X(type, symbol, name, parameters, arguments, early): the symbol that programs
 * call, the name that the profile shows, and what is done instead while the real
 * function is looked up, or where this libc has none.
 *
 * Read by tools/check-exports, which holds the exports to it.
 */
#pragma once

#define OSRT_CALLS(X)                                                                              \
	X(ssize_t, read, "read", (int fd, void *at, size_t bytes), (fd, at, bytes),                \
	  syscall(SYS_read, fd, at, bytes))                                                        \
	X(ssize_t, __read_chk, "read", (int fd, void *at, size_t bytes, size_t room),              \
	  (fd, at, bytes, room), missing())                                                        \
	X(ssize_t, pread, "pread", (int fd, void *at, size_t bytes, off_t from),                   \
	  (fd, at, bytes, from), syscall(SYS_pread64, fd, at, bytes, from))                        \
	X(ssize_t, pread64, "pread", (int fd, void *at, size_t bytes, off_t from),                 \
	  (fd, at, bytes, from), syscall(SYS_pread64, fd, at, bytes, from))                        \
	X(ssize_t, __pread_chk, "pread",                                                           \
	  (int fd, void *at, size_t bytes, off_t from, size_t room), (fd, at, bytes, from, room),  \
	  missing())                                                                               \
	X(ssize_t, __pread64_chk, "pread",                                                         \
	  (int fd, void *at, size_t bytes, off_t from, size_t room), (fd, at, bytes, from, room),  \
	  missing())                                                                               \
	X(ssize_t, readv, "readv", (int fd, const struct iovec *at, int count), (fd, at, count),   \
	  syscall(SYS_readv, fd, at, count))                                                       \
	X(ssize_t, write, "write", (int fd, const void *at, size_t bytes), (fd, at, bytes),        \
	  syscall(SYS_write, fd, at, bytes))                                                       \
	X(ssize_t, pwrite, "pwrite", (int fd, const void *at, size_t bytes, off_t to),             \
	  (fd, at, bytes, to), syscall(SYS_pwrite64, fd, at, bytes, to))                           \
	X(ssize_t, pwrite64, "pwrite", (int fd, const void *at, size_t bytes, off_t to),           \
	  (fd, at, bytes, to), syscall(SYS_pwrite64, fd, at, bytes, to))                           \
	X(ssize_t, writev, "writev", (int fd, const struct iovec *at, int count), (fd, at, count), \
	  syscall(SYS_writev, fd, at, count))                                                      \
	X(int, __open_2, "open", (const char *path, int flags), (path, flags),                     \
	  (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0))                                      \
	X(int, __open64_2, "open", (const char *path, int flags), (path, flags),                   \
	  (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0))                                      \
	X(int, __openat_2, "openat", (int at, const char *path, int flags), (at, path, flags),     \
	  (int)syscall(SYS_openat, at, path, flags, 0))                                            \
	X(int, __openat64_2, "openat", (int at, const char *path, int flags), (at, path, flags),   \
	  (int)syscall(SYS_openat, at, path, flags, 0))                                            \
	X(int, fsync, "fsync", (int fd), (fd), (int)syscall(SYS_fsync, fd))                        \
	X(int, fdatasync, "fdatasync", (int fd), (fd), (int)syscall(SYS_fdatasync, fd))            \
	X(int, poll, "poll", (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms),        \
	  missing())                                                                               \
	X(int, __poll_chk, "poll", (struct pollfd * fds, nfds_t count, int ms, size_t room),       \
	  (fds, count, ms, room), missing())                                                       \
	X(int, ppoll, "ppoll",                                                                     \
	  (struct pollfd * fds, nfds_t count, const struct timespec *span, const sigset_t *mask),  \
	  (fds, count, span, mask), missing())                                                     \
	X(int, __ppoll_chk, "ppoll",                                                               \
	  (struct pollfd * fds, nfds_t count, const struct timespec *span, const sigset_t *mask,   \
	   size_t room),                                                                           \
	  (fds, count, span, mask, room), missing())                                               \
	X(int, select, "select",                                                                   \
	  (int count, fd_set *in, fd_set *out, fd_set *bad, struct timeval *span),                 \
	  (count, in, out, bad, span), missing())                                                  \
	X(int, pselect, "pselect",                                                                 \
	  (int count, fd_set *in, fd_set *out, fd_set *bad, const struct timespec *span,           \
	   const sigset_t *mask),                                                                  \
	  (count, in, out, bad, span, mask), missing())                                            \
	X(int, epoll_wait, "epoll_wait", (int fd, struct epoll_event *events, int count, int ms),  \
	  (fd, events, count, ms), missing())                                                      \
	X(int, epoll_pwait, "epoll_pwait",                                                         \
	  (int fd, struct epoll_event *events, int count, int ms, const sigset_t *mask),           \
	  (fd, events, count, ms, mask), missing())                                                \
	X(int, connect, "connect", (int fd, const struct sockaddr *to, socklen_t bytes),           \
	  (fd, to, bytes), (int)syscall(SYS_connect, fd, to, bytes))                               \
	X(int, accept, "accept", (int fd, struct sockaddr *from, socklen_t *bytes),                \
	  (fd, from, bytes), missing())                                                            \
	X(int, accept4, "accept4", (int fd, struct sockaddr *from, socklen_t *bytes, int flags),   \
	  (fd, from, bytes, flags), missing())                                                     \
	X(ssize_t, recv, "recv", (int fd, void *at, size_t bytes, int flags),                      \
	  (fd, at, bytes, flags), missing())                                                       \
	X(ssize_t, __recv_chk, "recv", (int fd, void *at, size_t bytes, size_t room, int flags),   \
	  (fd, at, bytes, room, flags), missing())                                                 \
	X(ssize_t, recvfrom, "recvfrom",                                                           \
	  (int fd, void *at, size_t bytes, int flags, struct sockaddr *from, socklen_t *len),      \
	  (fd, at, bytes, flags, from, len), missing())                                            \
	X(ssize_t, recvmsg, "recvmsg", (int fd, struct msghdr *message, int flags),                \
	  (fd, message, flags), missing())                                                         \
	X(ssize_t, send, "send", (int fd, const void *at, size_t bytes, int flags),                \
	  (fd, at, bytes, flags), missing())                                                       \
	X(ssize_t, sendto, "sendto",                                                               \
	  (int fd, const void *at, size_t bytes, int flags, const struct sockaddr *to,             \
	   socklen_t len),                                                                         \
	  (fd, at, bytes, flags, to, len), missing())                                              \
	X(ssize_t, sendmsg, "sendmsg", (int fd, const struct msghdr *message, int flags),          \
	  (fd, message, flags), missing())                                                         \
	X(void *, mmap, "mmap",                                                                    \
	  (void *at, size_t bytes, int protection, int flags, int fd, off_t from),                 \
	  (at, bytes, protection, flags, fd, from),                                                \
	  (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, from))                       \
	X(void *, mmap64, "mmap",                                                                  \
	  (void *at, size_t bytes, int protection, int flags, int fd, off_t from),                 \
	  (at, bytes, protection, flags, fd, from),                                                \
	  (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, from))                       \
	X(int, munmap, "munmap", (void *at, size_t bytes), (at, bytes),                            \
	  (int)syscall(SYS_munmap, at, bytes))                                                     \
	X(unsigned int, sleep, "sleep", (unsigned int seconds), (seconds),                         \
	  ((void)missing(), seconds))                                                              \
	X(int, usleep, "usleep", (useconds_t us), (us), missing())                                 \
	X(int, nanosleep, "nanosleep", (const struct timespec *span, struct timespec *left),       \
	  (span, left), (int)syscall(SYS_nanosleep, span, left))                                   \
	X(int, clock_nanosleep, "clock_nanosleep",                                                 \
	  (clockid_t clock, int flags, const struct timespec *span, struct timespec *left),        \
	  (clock, flags, span, left), ENOSYS)                                                      \
	X(int, sched_yield, "sched_yield", (void), (), (int)syscall(SYS_sched_yield))              \
	X(pid_t, wait, "wait", (int *status), (status), missing())                                 \
	X(pid_t, waitpid, "waitpid", (pid_t pid, int *status, int options),                        \
	  (pid, status, options), missing())                                                       \
	X(pid_t, wait4, "wait4", (pid_t pid, int *status, int options, struct rusage *usage),      \
	  (pid, status, options, usage), missing())                                                \
	X(int, waitid, "waitid", (idtype_t type, id_t id, siginfo_t * info, int options),          \
	  (type, id, info, options), missing())                                                    \
	X(int, sem_wait, "sem_wait", (sem_t * sem), (sem), missing())                              \
	X(int, sem_timedwait, "sem_timedwait", (sem_t * sem, const struct timespec *until),        \
	  (sem, until), missing())                                                                 \
	X(int, sem_clockwait, "sem_clockwait",                                                     \
	  (sem_t * sem, clockid_t clock, const struct timespec *until), (sem, clock, until),       \
	  missing())                                                                               \
	X(int, pthread_cond_wait, "pthread_cond_wait",                                             \
	  (pthread_cond_t * condition, pthread_mutex_t * mutex), (condition, mutex), ENOSYS)       \
	X(int, pthread_cond_timedwait, "pthread_cond_timedwait",                                   \
	  (pthread_cond_t * condition, pthread_mutex_t * mutex, const struct timespec *until),     \
	  (condition, mutex, until), ENOSYS)                                                       \
	X(int, pthread_cond_clockwait, "pthread_cond_clockwait",                                   \
	  (pthread_cond_t * condition, pthread_mutex_t * mutex, clockid_t clock,                   \
	   const struct timespec *until),                                                          \
	  (condition, mutex, clock, until), ENOSYS)                                                \
	X(int, pthread_join, "pthread_join", (pthread_t thread, void **ret_value),                 \
	  (thread, ret_value), ENOSYS)

/* The same, with a wrapper of their own: X(type, symbol, name, parameters). */
#define OSRT_OTHERS(X)                                                         \
	X(int, open, "open", (const char *path, int flags, ...))               \
	X(int, open64, "open", (const char *path, int flags, ...))             \
	X(int, openat, "openat", (int at, const char *path, int flags, ...))   \
	X(int, openat64, "openat", (int at, const char *path, int flags, ...)) \
	X(int, ioctl, "ioctl", (int fd, unsigned long request, ...))           \
	X(int, pthread_mutex_lock, "pthread_mutex_lock", (pthread_mutex_t * mutex))
