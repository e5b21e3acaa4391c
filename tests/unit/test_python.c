/* Where the interpreter is looked for in a process, as an invented /proc shows it. */
#include "collect/python.h"

#include <elf.h>

#include "proc_tree.h"

static struct proc_tree tree;

/* A library that exports _PyRuntime, and nothing else. */
static void put_library(const char *path)
{
	static const char names[] = "\0_PyRuntime";
	struct {
		Elf64_Ehdr head;
		Elf64_Shdr sections[3];
		Elf64_Sym symbols[2];
		char names[sizeof(names)];
	} file = { 0 };

	memcpy(file.head.e_ident, ELFMAG, SELFMAG);
	file.head.e_ident[EI_CLASS] = ELFCLASS64;
	file.head.e_ident[EI_DATA] = ELFDATA2LSB;
	file.head.e_shentsize = sizeof(Elf64_Shdr);
	file.head.e_shnum = 3;
	file.head.e_shoff = (uint64_t)((char *)&file.sections - (char *)&file);
	file.sections[1].sh_type = SHT_DYNSYM;
	file.sections[1].sh_offset = (uint64_t)((char *)&file.symbols - (char *)&file);
	file.sections[1].sh_size = sizeof(file.symbols);
	file.sections[1].sh_link = 2;
	file.sections[2].sh_offset = (uint64_t)((char *)&file.names - (char *)&file);
	file.sections[2].sh_size = sizeof(names);
	file.symbols[1].st_name = 1;
	file.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	file.symbols[1].st_value = 0x4000;
	memcpy(file.names, names, sizeof(names));
	tree_bytes(&tree, path, &file, sizeof(file));
}

static void add_mapping(FILE *maps, int i, const char *path)
{
	(void)fprintf(maps, "%x000000-%x100000 r-xp 00000000 08:01 %d   %s%s\n", 0x7f0000 + i,
		      0x7f0000 + i, 7 + i, tree.root, path);
}

/* What python_open says of process 77, which maps `modules` extension modules below
 * the last library. */
static const char *opened(int modules, const char *program, const char *library)
{
	static struct err err;
	struct python *python = NULL;
	uint32_t version;
	char path[512];
	FILE *maps;

	tree_file(&tree, "proc/77/maps", "");
	(void)snprintf(path, sizeof(path), "%s/proc/77/maps", tree.root);
	maps = fopen(path, "we");
	cr_assert_not_null(maps);
	add_mapping(maps, 0, program);
	for (int i = 0; i < modules; i++) {
		(void)snprintf(path, sizeof(path), "/lib/_m%d.cpython-311-x86_64-linux-gnu.so", i);
		add_mapping(maps, 1 + i, path);
	}
	add_mapping(maps, 1 + modules, library);
	(void)fclose(maps);
	err = (struct err){ 0 };
	cr_assert_lt(python_open(tree.root, 77, &python, &version, &err), 0);
	return err.line;
}

Test(python, is_found_behind_any_number_of_extension_modules)
{
	static const char found[] = "/proc/77/pagemap: No such file or directory";
	static const char library[] = "/lib/libpython3.11.so.1.0";

	tree_make(&tree);
	put_library("lib/libpython3.11.so.1.0");
	put_library("bin/anything");
	cr_assert_str_eq(opened(0, "/bin/python3", library), found);
	cr_assert_str_eq(opened(40, "/bin/python3", library), found);
	cr_assert_str_eq(opened(400, "/bin/serve", library), found);
	cr_assert_str_eq(opened(40, "/bin/anything", "/lib/libc.so.6"), found);
	cr_assert_str_eq(opened(40, "/bin/serve", "/lib/libc.so.6"), "no Python in process 77");
	tree_remove(&tree);
}

/* What lies under the same name here is another. */
Test(python, of_a_container_is_searched_in_its_own_files)
{
	char inside[256];

	tree_make(&tree);
	put_library("bin/here");
	(void)snprintf(inside, sizeof(inside), "proc/77/root%s/bin/there", tree.root);
	put_library(inside);
	tree_link(&tree, "proc/self/ns/mnt", "mnt:[4026531841]");
	tree_link(&tree, "proc/77/ns/mnt", "mnt:[4026531841]");
	cr_assert_str_eq(opened(0, "/bin/there", "/lib/libc.so.6"), "no Python in process 77");
	tree_link(&tree, "proc/77/ns/mnt", "mnt:[4026532222]");
	cr_assert_str_eq(opened(0, "/bin/here", "/lib/libc.so.6"), "no Python in process 77");
	cr_assert_str_eq(opened(0, "/bin/there", "/lib/libc.so.6"),
			 "/proc/77/pagemap: No such file or directory");
	tree_remove(&tree);
}
