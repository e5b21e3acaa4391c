#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/symbols.h"
#include "temp_folder.h"

int a_function_that_is_found(int x);

__attribute__((noinline)) int a_function_that_is_found(int x)
{
	return x * 3 + 1;
}

static uint64_t offset_of(void *address)
{
	Dl_info info;

	cr_assert(dladdr(address, &info));
	return (uint64_t)((char *)address - (char *)info.dli_fbase);
}

Test(symbols, a_function_is_found_by_any_address_in_it)
{
	OWN(symbols_freep) struct symbols *symbols = symbols_new();
	uint64_t offset = offset_of((void *)(uintptr_t)a_function_that_is_found);

	cr_assert_str_eq(symbols_find(symbols, "/proc/self/exe", offset),
			 "a_function_that_is_found");
	cr_assert_str_eq(symbols_find(symbols, "/proc/self/exe", offset + 1),
			 "a_function_that_is_found");
	cr_assert_null(symbols_find(symbols, "/proc/self/exe", 0));
	cr_assert_null(symbols_find(symbols, "/proc/self/exe", UINT64_MAX));
}

Test(symbols, a_library_without_its_table_is_looked_up_in_the_dynamic_one)
{
	OWN(symbols_freep) struct symbols *symbols = symbols_new();
	Dl_info info;
	void *address = dlsym(RTLD_DEFAULT, "qsort");

	cr_assert(address && dladdr(address, &info));
	cr_assert_not_null(symbols_find(symbols, info.dli_fname, offset_of(address)));
}

Test(symbols, a_file_that_is_no_library_has_no_names)
{
	OWN(symbols_freep) struct symbols *symbols = symbols_new();

	cr_assert_null(symbols_find(symbols, "/etc/passwd", 100));
	cr_assert_null(symbols_find(symbols, "/no/such/file", 100));
	cr_assert_null(symbols_find(symbols, "/dev/zero", 100));
}

static void copy_into(int file, const char *from)
{
	int other = open(from, O_RDONLY);
	char part[65536];
	ssize_t len;

	cr_assert_eq(lseek(file, 0, SEEK_SET), 0);
	cr_assert_eq(ftruncate(file, 0), 0);
	while ((len = read(other, part, sizeof(part))) > 0)
		cr_assert_eq(write(file, part, (size_t)len), len);
	close(other);
}

/* A program that is built anew between two of its runs. */
Test(symbols, a_file_that_another_took_the_place_of_is_read_again)
{
	OWN(symbols_freep) struct symbols *symbols = symbols_new();
	uint64_t offset = offset_of((void *)(uintptr_t)a_function_that_is_found);
	char path[] = "/tmp/symbols-XXXXXX";
	int file = mkstemp(path);

	cr_assert(file >= 0);
	copy_into(file, "/proc/self/exe");
	cr_assert_str_eq(symbols_find(symbols, path, offset), "a_function_that_is_found");
	copy_into(file, "/etc/passwd");
	cr_assert_null(symbols_find(symbols, path, offset));
	copy_into(file, "/proc/self/exe");
	cr_assert_str_eq(symbols_find(symbols, path, offset), "a_function_that_is_found");
	/* What was read of one that is gone holds. */
	unlink(path);
	cr_assert_str_eq(symbols_find(symbols, path, offset), "a_function_that_is_found");
	close(file);
}

/* Opened for reading and closed it would end its writer. */
Test(symbols, a_fifo_is_not_opened)
{
	OWN(symbols_freep) struct symbols *symbols = symbols_new();
	struct temp_folder folder;
	char path[128];
	int file;

	temp_make(&folder, "/tmp");
	(void)snprintf(path, sizeof(path), "%s/pipe", folder.path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	file = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	cr_assert(file >= 0 && inotify_add_watch(file, path, IN_OPEN) >= 0);
	cr_assert_null(symbols_find(symbols, path, 100));
	cr_assert_eq(read(file, path, sizeof(path)), -1, "it was opened");
	(void)close(file);
	temp_remove(&folder);
}

/* Every way to cut a real one short, and every byte of its head turned. */
Test(symbols, a_damaged_file_is_survived)
{
	char path[] = "/tmp/symbols-XXXXXX";
	int file = mkstemp(path), self = open("/proc/self/exe", O_RDONLY);
	char *bytes = malloc(1 << 16);
	ssize_t len = read(self, bytes, 1 << 16);

	cr_assert(file >= 0 && len > 64);
	for (int i = 0; i < 64 + 64; i++) {
		OWN(symbols_freep) struct symbols *symbols = symbols_new();

		cr_assert_eq(ftruncate(file, 0), 0);
		if (i < 64)
			bytes[i] = (char)~bytes[i];
		cr_assert_eq(pwrite(file, bytes, (size_t)(i < 64 ? len : len * (i - 64) / 64), 0),
			     i < 64 ? len : len * (i - 64) / 64);
		(void)symbols_find(symbols, path, 0x1000);
		if (i < 64)
			bytes[i] = (char)~bytes[i];
	}
	free(bytes);
	close(self);
	close(file);
	unlink(path);
}

static void put_at(int file, const void *from, size_t len, uint64_t at)
{
	cr_assert_eq(pwrite(file, from, len, (off_t)at), (ssize_t)len);
}

/* A full table of `bytes` says "full", the dynamic one "exported", both of address 4096. */
static const char *found_beside(uint64_t bytes)
{
	enum { NAMES = 1024, EXPORTED = 2048, FULL = 4096 };
	static const char names[16] = "\0full\0exported";
	static char found[16];
	OWN(symbols_freep) struct symbols *symbols = symbols_new();
	char path[] = "/tmp/symbols-XXXXXX";
	int file = mkstemp(path);
	Elf64_Ehdr head = { .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 4,
			    .e_shoff = sizeof(head) };
	Elf64_Shdr sections[4] = {
		[1] = { .sh_type = SHT_SYMTAB, .sh_offset = FULL, .sh_size = bytes, .sh_link = 3 },
		[2] = { .sh_type = SHT_DYNSYM, .sh_offset = EXPORTED, .sh_link = 3 },
		[3] = { .sh_offset = NAMES, .sh_size = 16 },
	};
	Elf64_Sym symbol = { .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_value = 4096,
			     .st_size = 64 };
	const char *name;

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	sections[2].sh_size = sizeof(symbol);
	put_at(file, &head, sizeof(head), 0);
	put_at(file, sections, sizeof(sections), sizeof(head));
	put_at(file, names, sizeof(names), NAMES);
	symbol.st_name = 1;
	put_at(file, &symbol, sizeof(symbol), FULL);
	symbol.st_name = 6;
	put_at(file, &symbol, sizeof(symbol), EXPORTED);
	cr_assert_eq(ftruncate(file, (off_t)(FULL + bytes)), 0);
	name = symbols_find(symbols, path, 4100);
	(void)snprintf(found, sizeof(found), "%s", name ? name : "");
	close(file);
	unlink(path);
	return found;
}

Test(symbols, a_table_that_takes_long_is_left_for_the_dynamic_one)
{
	cr_assert_str_eq(found_beside(24), "full");
	cr_assert_str_eq(found_beside(16 << 20), "full");
	cr_assert_str_eq(found_beside((16 << 20) + 24), "exported");
}
