#include "collect/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"

/* libstdc++'s, the same that binutils and gdb show: see ARCHITECTURE.md. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *ret_status);

/* Larger tables are not read, nor more of them kept: a name is not worth that. The
 * largest libraries of PyTorch and CUDA export some 200,000 functions. */
static const uint64_t TABLE_MAX = 16 << 20; /* 700,000 symbols, 0.2 s to sort at worst */
static const uint64_t NAMES_MAX = 64 << 20;
static const uint64_t KEPT_MAX = 256 << 20;
enum { SECTIONS_MAX = 65536, SEGMENTS_MAX = 1024, MODULES_MAX = 1024 };
/* A table read in time is followed by this many times what that took of rest. */
static const int64_t REST = 20;
/* Functions written in assembly can have no size: they are short. */
static const uint64_t ASSEMBLY_BYTES = 4096;

/* What of a file changes when another takes its place. All-zero: it can't be seen. */
struct file_mark {
	dev_t device;
	ino_t inode;
	off_t bytes;
	struct timespec changed;
};

struct module {
	char *path;
	int type;             /* STT_FUNC, or STT_OBJECT: these in its place */
	uint64_t base;        /* address of the first loaded byte, as the file counts */
	Elf64_Sym *functions; /* by address */
	size_t count;
	char *names;
	uint64_t names_bytes;
	struct file_mark mark;
};

struct symbols {
	VEC(struct module) modules;
	uint64_t kept_bytes;
	int64_t due_ns;
};

struct symbols *symbols_new(void)
{
	return mem_zero(sizeof(struct symbols));
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->modules.count; i++) {
		free(symbols->modules.at[i].path);
		free(symbols->modules.at[i].functions);
		free(symbols->modules.at[i].names);
	}
	VEC_DONE(&symbols->modules);
	free(symbols);
}

static bool read_at(int file, void *to, uint64_t bytes, uint64_t at)
{
	return at <= INT64_MAX && pread(file, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static int by_address(const void *a, const void *b)
{
	const Elf64_Sym *x = a, *y = b;

	return x->st_value < y->st_value ? -1 : x->st_value > y->st_value;
}

/* Functions of one table; false: there is nothing to use. */
static bool load_table(int file, const Elf64_Shdr *table, const Elf64_Shdr *names,
		       struct module *module)
{
	size_t kept = 0;

	if (table->sh_size > TABLE_MAX || names->sh_size > NAMES_MAX || !names->sh_size ||
	    table->sh_size < sizeof(Elf64_Sym))
		return false;
	module->count = table->sh_size / sizeof(Elf64_Sym);
	module->functions = mem_array(module->count, sizeof(Elf64_Sym), TABLE_MAX);
	module->names = mem_array(1, names->sh_size, NAMES_MAX);
	module->names_bytes = names->sh_size;
	if (!module->functions || !module->names ||
	    !read_at(file, module->functions, module->count * sizeof(Elf64_Sym),
		     table->sh_offset) ||
	    !read_at(file, module->names, names->sh_size, names->sh_offset))
		return false;
	module->names[names->sh_size - 1] = 0;
	for (size_t i = 0; i < module->count; i++) {
		const Elf64_Sym *symbol = &module->functions[i];

		if (ELF64_ST_TYPE(symbol->st_info) == module->type && symbol->st_value &&
		    symbol->st_name < module->names_bytes)
			module->functions[kept++] = *symbol;
	}
	module->count = kept;
	module->functions = mem_resize(module->functions, kept * sizeof(Elf64_Sym));
	if (module->type == STT_FUNC)
		qsort(module->functions, kept, sizeof(Elf64_Sym), by_address);
	return kept > 0;
}

static void load_base(int file, const Elf64_Ehdr *head, struct module *module)
{
	Elf64_Phdr segment;
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < head->e_phnum && i < SEGMENTS_MAX; i++) {
		if (read_at(file, &segment, sizeof(segment),
			    head->e_phoff + (uint64_t)i * sizeof(segment)) &&
		    segment.p_type == PT_LOAD && segment.p_vaddr < least)
			least = segment.p_vaddr;
	}
	module->base = least == UINT64_MAX ? 0 : least & ~(uint64_t)4095;
}

static void drop_table(struct module *module)
{
	free(module->functions);
	free(module->names);
	module->functions = NULL;
	module->names = NULL;
	module->count = 0;
	module->names_bytes = 0;
}

static void load(int file, struct module *module)
{
	Elf64_Ehdr head;
	Elf64_Shdr *sections;

	if (!read_at(file, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    head.e_shentsize != sizeof(Elf64_Shdr) || !head.e_shnum)
		return;
	load_base(file, &head, module);
	sections = mem_array(head.e_shnum, sizeof(*sections), SECTIONS_MAX * sizeof(*sections));
	if (!sections || !read_at(file, sections, head.e_shnum * sizeof(*sections), head.e_shoff)) {
		free(sections);
		return;
	}
	/* Variables are asked for as others would: what is not exported is not found. */
	for (int wanted = module->type == STT_OBJECT; wanted < 2; wanted++) {
		uint32_t type = wanted ? SHT_DYNSYM : SHT_SYMTAB;

		for (size_t i = 0; i < head.e_shnum; i++) {
			if (sections[i].sh_type != type || sections[i].sh_link >= head.e_shnum)
				continue;
			if (load_table(file, &sections[i], &sections[sections[i].sh_link],
				       module)) {
				free(sections);
				return;
			}
			drop_table(module);
		}
	}
	free(sections);
}

static struct file_mark mark_of(const char *path)
{
	struct stat is;

	if (stat(path, &is) < 0)
		return (struct file_mark){ 0 };
	return (struct file_mark){ is.st_dev, is.st_ino, is.st_size, is.st_mtim };
}

static bool is_same_file(const struct file_mark *a, const struct file_mark *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void load_path(struct module *module, const char *path)
{
	struct stat st;
	int file;

	/* To open a FIFO or a device is felt by others. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file < 0)
		return;
	load(file, module);
	close(file);
}

static struct module *module_find(struct symbols *symbols, const char *path)
{
	for (size_t i = 0; i < symbols->modules.count; i++) {
		if (!strcmp(symbols->modules.at[i].path, path))
			return &symbols->modules.at[i];
	}
	return NULL;
}

static void fill(struct symbols *symbols, struct module *module)
{
	if (symbols->kept_bytes < KEPT_MAX)
		load_path(module, module->path);
	symbols->kept_bytes += module->count * sizeof(Elf64_Sym) + module->names_bytes;
}

static void empty(struct symbols *symbols, struct module *module)
{
	symbols->kept_bytes -= module->count * sizeof(Elf64_Sym) + module->names_bytes;
	drop_table(module);
}

/* NULL: there are too many. */
static struct module *module_of(struct symbols *symbols, const char *path)
{
	struct module *module = module_find(symbols, path);
	struct file_mark mark = mark_of(path);

	if (module && (!mark.inode || is_same_file(&mark, &module->mark)))
		return module;
	if (module) {
		empty(symbols, module); /* built anew between two processes */
	} else if (symbols->modules.count >= MODULES_MAX) {
		return NULL;
	} else {
		module = VEC_ADD(&symbols->modules);
		module->path = mem_text(path);
		module->type = STT_FUNC;
	}
	module->mark = mark;
	fill(symbols, module);
	return module;
}

bool symbols_ready(struct symbols *symbols, const char *path, int64_t now_ns)
{
	int64_t began_ns = clock_steady_ns();

	if (module_find(symbols, path) || symbols->modules.count >= MODULES_MAX)
		return true;
	if (now_ns < symbols->due_ns)
		return false;
	(void)module_of(symbols, path);
	symbols->due_ns = now_ns + (clock_steady_ns() - began_ns) * REST;
	return true;
}

const char *symbols_find(struct symbols *symbols, const char *path, uint64_t offset)
{
	struct module *module = module_of(symbols, path);
	uint64_t address = module ? module->base + offset : 0;
	size_t low = 0, high = module ? module->count : 0;
	const Elf64_Sym *found;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (module->functions[middle].st_value <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	found = &module->functions[low - 1];
	if (address - found->st_value >= (found->st_size ? found->st_size : ASSEMBLY_BYTES))
		return NULL;
	return module->names + found->st_name;
}

size_t symbols_objects(const char *path, const char *const *names, size_t count,
		       uint64_t *ret_offset)
{
	struct module module = { .type = STT_OBJECT };
	size_t found = 0;

	memset(ret_offset, 0, count * sizeof(*ret_offset));
	load_path(&module, path);
	for (size_t i = 0; i < module.count; i++) {
		const char *name = module.names + module.functions[i].st_name;

		for (size_t k = 0; k < count; k++) {
			if (ret_offset[k] || strcmp(name, names[k]) != 0)
				continue;
			ret_offset[k] = module.functions[i].st_value - module.base;
			found++;
		}
	}
	free(module.functions);
	free(module.names);
	return found;
}

bool symbols_says(const char *name)
{
	return strncmp(name, "libcudart_static_", 17) != 0;
}

char *symbols_plain(const char *name)
{
	int status = 0;

	return name[0] == '_' && name[1] == 'Z' ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
}
