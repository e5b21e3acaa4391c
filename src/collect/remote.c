#include "collect/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

/* /proc/PID/pagemap: a word a page, its highest bit for one that is there. */
#define PAGE_PRESENT (UINT64_C(1) << 63)

struct remote {
	pid_t pid;
	int pages;
	uint64_t page_bytes;
};

int remote_open(const char *root, int64_t pid, struct remote **ret_remote, struct err *err)
{
	OWN(remote_closep) struct remote *remote = mem_zero(sizeof(*remote));
	struct buf path = { 0 };

	buf_printf(&path, "%s/proc/%lld/pagemap", root, (long long)pid);
	remote->pid = (pid_t)pid;
	remote->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	remote->pages = open(path.at, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	buf_done(&path);
	if (remote->pages < 0)
		return err_set(err,
			       errno == ENOENT || errno == ESRCH ? ERR_MISSING : ERR_UNSUPPORTED,
			       "/proc/%lld/pagemap: %s", (long long)pid, strerror(errno));
	*ret_remote = STEAL(remote);
	return 0;
}

void remote_close(struct remote *remote)
{
	if (!remote)
		return;
	if (remote->pages >= 0)
		(void)close(remote->pages);
	free(remote);
}

/* With the pages before and behind it 64 KiB are 17 pages of 4 KiB. */
static bool is_present(const struct remote *remote, uint64_t address, size_t bytes)
{
	uint64_t word[REMOTE_BYTES_MAX / 4096 + 2];
	uint64_t first = address / remote->page_bytes;
	size_t count = (size_t)((address + bytes - 1) / remote->page_bytes - first) + 1;

	if (pread(remote->pages, word, count * sizeof(*word), (off_t)(first * sizeof(*word))) !=
	    (ssize_t)(count * sizeof(*word)))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!(word[i] & PAGE_PRESENT))
			return false;
	}
	return true;
}

bool remote_fetch(struct remote *remote, uint64_t address, void *to, size_t bytes)
{
	struct iovec here = { .iov_base = to, .iov_len = bytes };
	struct iovec there = { .iov_base = (void *)(uintptr_t)address, .iov_len = bytes };

	return process_vm_readv(remote->pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool remote_read(struct remote *remote, uint64_t address, void *to, size_t bytes)
{
	if (bytes && bytes <= REMOTE_BYTES_MAX && address <= INT64_MAX - bytes &&
	    is_present(remote, address, bytes))
		return remote_fetch(remote, address, to, bytes);
	errno = EFAULT;
	return false;
}
