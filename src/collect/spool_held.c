/*
 * spool_held.c - names of kernels in the buffers that CUPTI holds, read from the program while a
 * call of it waits for long.
 *
 * A record has its kernel's name as a pointer, which the program's side makes a text of when
 * it gets the buffer. The buffer of a kernel that never ends it never gets, and when the
 * program is gone, so is what the pointer points to. The buffer itself lies in the memory that
 * we share, so sonde can read the name in time, and the program does nothing for it.
 */
#include <stdlib.h>
#include <string.h>

#include "collect/remote.h"
#include "collect/spool_process.h"

enum { PAGE = 4096, NAMES_MAX = 65536 };

static void found(struct spooled *p, uint64_t pointer)
{
	if (p->held.count < NAMES_MAX && !map_find(&p->held, pointer) &&
	    !spooled_pointer_name(p, pointer))
		map_put(&p->held, pointer, 0);
}

/* A page at a time: behind the text there may be nothing. */
static uint32_t name_at(struct spooled *p, struct remote *remote, uint64_t pointer)
{
	char text[TEXT_MAX];
	size_t len = 0;

	while (len < sizeof(text)) {
		size_t bytes = PAGE - (pointer + len) % PAGE;
		const char *end;

		if (bytes > sizeof(text) - len)
			bytes = sizeof(text) - len;
		if (!remote_read(remote, pointer + len, text + len, bytes))
			return 0;
		end = memchr(text + len, 0, bytes);
		if (end)
			return spooled_plain_name(p, text, (size_t)(end - text));
		len += bytes;
	}
	return 0;
}

void spooled_look_at_held(struct spooled *p)
{
	const struct segment *layout = p->layout;
	OWN(remote_closep) struct remote *remote = NULL;
	struct err ignored = { 0 };

	for (uint32_t i = 0; i < layout->buffer_count; i++) {
		if (atomic_load_explicit(&p->segment->buffers[i].state, memory_order_acquire) ==
		    BUFFER_FILLING)
			spooled_kernel_pointers(p,
						(const uint8_t *)p->segment + layout->buffers_at +
							i * layout->buffer_bytes,
						layout->buffer_bytes, found);
	}
	for (size_t i = 0; p->held.count && i <= p->held.mask; i++) {
		struct map_slot *slot = &p->held.slots[i];

		if (!p->held.used[i] || slot->value)
			continue;
		if (!remote && remote_open("", p->outer_pid, &remote, &ignored) < 0)
			return;
		slot->value = name_at(p, remote, slot->key);
	}
}
