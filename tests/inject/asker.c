/* asker.c - a library of the program's, loaded by whatever path. */
#include <stdint.h>

int ask_for_memory(int (*obtain)(uint64_t *ret_address), uint64_t *ret_address);

int ask_for_memory(int (*obtain)(uint64_t *ret_address), uint64_t *ret_address)
{
	int result = obtain(ret_address);

	__asm__ volatile("" ::: "memory"); /* not by a jump */
	return result;
}
