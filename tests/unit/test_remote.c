/* Memory of a process - this one - that is there, and that is not. */
#include "collect/remote.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* NULL: a container's seccomp profile may forbid it. */
static struct remote *remote_self(void)
{
	struct remote *remote = NULL;
	struct err err = { 0 };
	char byte = 0, got;

	if (remote_open("", getpid(), &remote, &err) < 0 ||
	    !remote_read(remote, (uint64_t)(uintptr_t)&byte, &got, 1)) {
		remote_close(remote);
		return NULL;
	}
	return remote;
}

Test(remote, only_pages_that_are_there_are_read)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct remote *remote = remote_self();
	uint64_t address = (uint64_t)(uintptr_t)at;
	char got[16] = "";

	if (!remote)
		return;
	cr_assert_neq(at, MAP_FAILED);
	(void)madvise(at, 4 * page, MADV_NOHUGEPAGE);
	memcpy(at + page - 4, "to and fro", 10);
	cr_assert(remote_read(remote, address + page - 4, got, 10), "across two pages");
	cr_assert_str_eq(got, "to and fro");
	cr_assert_not(remote_read(remote, address + 2 * page, got, 1), "never touched");
	cr_assert_eq(errno, EFAULT);
	cr_assert_not(remote_read(remote, address + 2 * page - 4, got, 8), "half of it");
	/* Asking did not bring it. */
	cr_assert_not(remote_read(remote, address + 2 * page, got, 1));
	cr_assert_eq(munmap(at, 4 * page), 0);
	cr_assert_not(remote_read(remote, address, got, 1), "gone");
	remote_close(remote);
}

Test(remote, lengths_and_addresses_have_limits)
{
	static char bytes[REMOTE_BYTES_MAX + 1], got[REMOTE_BYTES_MAX + 1];
	uint64_t address = (uint64_t)(uintptr_t)bytes;
	struct remote *remote = remote_self();

	if (!remote)
		return;
	memset(bytes, 7, sizeof(bytes));
	memset(got, 1, sizeof(got));
	cr_assert(remote_read(remote, address, got, REMOTE_BYTES_MAX));
	cr_assert_eq(got[REMOTE_BYTES_MAX - 1], 7);
	cr_assert_not(remote_read(remote, address, got, REMOTE_BYTES_MAX + 1));
	cr_assert_not(remote_read(remote, address, got, 0));
	cr_assert_not(remote_read(remote, 0, got, 8));
	cr_assert_not(remote_read(remote, UINT64_MAX - 3, got, 8));
	cr_assert_not(remote_read(remote, INT64_MAX - 3, got, 8));
	remote_close(remote);
}

Test(remote, a_process_that_is_gone_is_missing)
{
	struct remote *remote = NULL;
	struct err err = { 0 };

	cr_assert_eq(remote_open("/no/such/root", 1, &remote, &err), ERR_MISSING);
	cr_assert_null(remote);
}
