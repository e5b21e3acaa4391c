/*
 * yield.c - the host wants CUPTI for itself (torch.profiler, another tool):
 * we step back before its first call, and it works as without us.
 *
 * A process has one CUPTI subscriber (before CUDA 13.3), and its second
 * registration of buffer callbacks would hand our buffers to the host. So the
 * entries of cuptiSubscribe and cuptiActivityRegisterCallbacks in the jump
 * tables of all loaded objects are replaced by ours, which flush, switch all
 * kinds off, unsubscribe, and go on to the real function. Who reaches CUPTI by
 * dlsym alone meets our subscription and is refused by CUPTI, unharmed.
 */
#include "inject/inject.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t yield_subscribe(void **ret_subscriber, cupti_callback_fn *callback, void *user);
static uint32_t yield_register(cupti_buffer_asked *asked, cupti_buffer_done *done);

static void step_back(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (!segment || atomic_load(&inject->leaving))
		return;
	(void)thread_keep_out(inject, LEAVING_YIELDED);
	pc_end(inject);
	activity_off(inject);
	activity_flush(inject);
	(void)inject->cupti.cuptiUnsubscribe(inject->subscriber);
	inject_off(inject, SEGMENT_REASON_YIELDED, 0);
}

static uint32_t yield_subscribe(void **ret_subscriber, cupti_callback_fn *callback, void *user)
{
	if (inject_state && atomic_load(&inject_state->segment))
		step_back(inject_state);
	return inject_state->cupti.cuptiSubscribe(ret_subscriber, callback, user);
}

static uint32_t yield_register(cupti_buffer_asked *asked, cupti_buffer_done *done)
{
	if (inject_state && atomic_load(&inject_state->segment))
		step_back(inject_state);
	return inject_state->cupti.cuptiActivityRegisterCallbacks(asked, done);
}

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * rela[2];
	size_t bytes[2];
};

static struct tables tables_of(const struct dl_phdr_info *info)
{
	struct tables tables = { 0 };

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) * dyn;

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		for (; dyn->d_tag != DT_NULL; dyn++) {
			const void *at = (const void *)dyn->d_un.d_ptr;

			if (dyn->d_tag == DT_SYMTAB)
				tables.symbols = at;
			else if (dyn->d_tag == DT_STRTAB)
				tables.strings = at;
			else if (dyn->d_tag == DT_JMPREL)
				tables.rela[0] = at;
			else if (dyn->d_tag == DT_PLTRELSZ)
				tables.bytes[0] = dyn->d_un.d_val;
			else if (dyn->d_tag == DT_RELA)
				tables.rela[1] = at;
			else if (dyn->d_tag == DT_RELASZ)
				tables.bytes[1] = dyn->d_un.d_val;
		}
	}
	return tables;
}

/* One entry of a jump table, which is read-only in most objects. */
static void replace(void **entry, void *ours)
{
	uintptr_t page = (uintptr_t)entry & ~(uintptr_t)(SEGMENT_PAGE - 1);

	if (*entry == ours)
		return;
	if (mprotect((void *)page, SEGMENT_PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	*entry = ours;
	/* Left writable: whether it was read-only before is not known here. */
}

static int hook_object(struct dl_phdr_info *info, size_t size, void *user)
{
	struct tables tables = tables_of(info);
	const char *name = info->dlpi_name ? info->dlpi_name : "";

	(void)size;
	(void)user;
	if (!tables.symbols || !tables.strings || strstr(name, "libcupti") ||
	    strstr(name, "linux-vdso") || strstr(name, "libsonde-inject"))
		return 0;
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; tables.rela[k] && i < tables.bytes[k] / sizeof(ElfW(Rela));
		     i++) {
			const ElfW(Rela) *rela = &tables.rela[k][i];
			uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
			const char *symbol;
			void **entry = (void **)(info->dlpi_addr + rela->r_offset);

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				continue;
			symbol = tables.strings + tables.symbols[ELF64_R_SYM(rela->r_info)].st_name;
			if (symbol[0] != 'c' || symbol[1] != 'u' || symbol[2] != 'p')
				continue;
			if (!strcmp(symbol, "cuptiSubscribe"))
				replace(entry, (void *)(uintptr_t)yield_subscribe);
			else if (!strcmp(symbol, "cuptiActivityRegisterCallbacks"))
				replace(entry, (void *)(uintptr_t)yield_register);
		}
	}
	return 0;
}

/* [setup] Objects that are loaded later are not seen: see the head comment. */
void yield_watch(struct inject *inject)
{
	(void)inject;
	(void)dl_iterate_phdr(hook_object, NULL);
}
