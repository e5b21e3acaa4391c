/*
 * Any bytes as the memory of a Python process: the first says which version, the
 * rest is what python_image.h lays out.
 */
#include <stdlib.h>

#include "python_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct buf *text)
{
	for (size_t i = 0; i < text->len; i++) {
		if ((unsigned char)text->at[i] < ' ' || text->at[i] == 127)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t versions[] = { 0x030b02f0, 0x030c01f0, 0x030d00f0 };
	struct image image = { 0 };
	struct python_memory memory = { .read = image_read, .from = &image };
	struct python_layout layout;
	struct python_stack *stack;
	struct buf leaf = { 0 }, chain = { 0 };
	uint64_t thread;

	if (!size)
		return 0;
	memcpy(image.at, data + 1, size - 1 < IMAGE_BYTES ? size - 1 : IMAGE_BYTES);
	if (!python_layout(versions[data[0] % 3], image.at, &layout))
		return 0;
	stack = python_stack_new(&layout, &IMAGE_PLACES, &memory);
	thread = python_stack_thread(stack, 42);
	for (int i = 0; thread && i < 2; i++)
		(void)python_stack_look(stack, thread, 42, &leaf, &chain);
	check(&leaf);
	check(&chain);
	if (image.reads > 20000)
		abort();
	buf_done(&leaf);
	buf_done(&chain);
	python_stack_free(stack);
	return 0;
}
