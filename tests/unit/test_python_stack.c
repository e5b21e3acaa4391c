/* Stacks out of the memory of an invented Python process, and out of rubbish. */
#include <criterion/criterion.h>

#include "python_image.h"

static struct image image;

static struct python_stack *stack_new(uint32_t version, struct python_layout *ret_layout)
{
	struct python_memory memory = { .read = image_read, .from = &image };
	unsigned char none[PYTHON_RUNTIME_BYTES] = { 0 };

	cr_assert(python_layout(version, none, ret_layout));
	memset(&image, 0, sizeof(image));
	image_make(&image, ret_layout);
	return python_stack_new(ret_layout, &IMAGE_PLACES, &memory);
}

static const char *look(struct python_stack *stack, int64_t tid, struct buf *chain)
{
	uint64_t thread = python_stack_thread(stack, tid);
	static struct buf leaf;

	buf_clear(&leaf);
	buf_clear(chain);
	buf_text(&leaf, "");
	buf_text(chain, "");
	if (thread)
		cr_assert(python_stack_look(stack, thread, tid, &leaf, chain));
	return leaf.at;
}

static void expect_stack(uint32_t version)
{
	struct python_layout layout;
	struct python_stack *stack = stack_new(version, &layout);
	struct buf chain = { 0 };

	cr_assert_str_eq(look(stack, 42, &chain), "collate data.py:41");
	cr_assert_str_eq(chain.at, "collate data.py:41 < main train.py:3");
	cr_assert_str_eq(look(stack, 41, &chain), "");
	cr_assert_eq(python_stack_thread(stack, 43), 0);
	/* Another code object where the known one was. */
	image_code(&image, &layout, 0, "fetch", "other.py", 40);
	image_frame(&image, &layout, 0, 0, -2, false);
	cr_assert_str_eq(look(stack, 42, &chain), "collate data.py:40", "same addresses, not seen");
	image_point(&image, AT_CODES + layout.file, AT_TEXTS + 0x400);
	cr_assert_str_eq(look(stack, 42, &chain), "fetch train.py:40");
	/* An object of another type is no code. */
	image_put(&image, AT_CODES + layout.type, 0x200101);
	cr_assert_str_eq(look(stack, 42, &chain), "");
	buf_done(&chain);
	python_stack_free(stack);
}

Test(python_stack, of_3_11)
{
	expect_stack(0x030b02f0);
}

Test(python_stack, of_3_12)
{
	expect_stack(0x030c01f0);
}

Test(python_stack, a_thread_that_became_another_is_asked_anew)
{
	struct python_layout layout;
	struct python_stack *stack = stack_new(0x030c01f0, &layout);
	struct buf leaf = { 0 }, chain = { 0 };
	uint64_t thread = python_stack_thread(stack, 42);

	image_put(&image, AT_THREAD + layout.native_id, 44);
	cr_assert_not(python_stack_look(stack, thread, 42, &leaf, &chain));
	cr_assert_eq(leaf.len, 0);
	python_stack_free(stack);
}

Test(python_stack, names_are_utf_8_without_controls)
{
	static const uint16_t wide[] = { 0x8bad, 0x7ec3, '\n', 0xd800, 'a', ';' };
	struct python_layout layout;
	struct python_stack *stack = stack_new(0x030b02f0, &layout);
	struct buf chain = { 0 };

	image_put(&image, AT_TEXTS + 0x200 + layout.text_length, 6);
	image.at[AT_TEXTS + 0x200 + layout.text_state] = 2 << 2 | 1 << 5;
	memcpy(image.at + AT_TEXTS + 0x200 + layout.text_compact, wide, sizeof(wide));
	cr_assert_str_eq(look(stack, 42, &chain), "训练??a? data.py:41");
	buf_done(&chain);
	python_stack_free(stack);
}

Test(python_stack, what_waits_in_the_standard_library_is_named_by_its_caller)
{
	static const char *const paths[] = { "/usr/lib/python3.11/queue.py",
					     "/opt/lib/python3.11/site-packages/q.py" };
	struct python_layout layout;
	struct python_stack *stack = stack_new(0x030b02f0, &layout);
	struct buf chain = { 0 };

	image_code(&image, &layout, 0, "get", paths[0], 40);
	cr_assert_str_eq(look(stack, 42, &chain), "main train.py:3");
	cr_assert_str_eq(chain.at, "get queue.py:41 < main train.py:3");
	image_put(&image, AT_FRAMES + layout.previous, 0);
	cr_assert_str_eq(look(stack, 42, &chain), "get queue.py:41", "nobody called it");
	python_stack_free(stack);
	stack = stack_new(0x030b02f0, &layout);
	image_code(&image, &layout, 0, "get", paths[1], 40);
	cr_assert_str_eq(look(stack, 42, &chain), "get q.py:41");
	buf_done(&chain);
	python_stack_free(stack);
}

Test(python_stack, lists_that_bite_their_tails_end)
{
	struct python_layout layout;
	struct python_stack *stack = stack_new(0x030b02f0, &layout);
	struct buf chain = { 0 };

	image_point(&image, AT_THREAD + layout.next_thread, AT_IDLE_THREAD);
	image_point(&image, AT_INTERPRETER + layout.next_interpreter, AT_INTERPRETER);
	cr_assert_eq(python_stack_thread(stack, 43), 0);
	cr_assert_lt(image.reads, 10000);
	image.reads = 0;
	image_point(&image, AT_FRAMES + 0x200 + layout.previous, AT_FRAMES);
	cr_assert_str_eq(look(stack, 42, &chain), "collate data.py:41");
	cr_assert_lt(chain.len, 12 * 30);
	cr_assert_lt(image.reads, 200);
	buf_done(&chain);
	python_stack_free(stack);
}

/* Whatever a byte becomes: an end, few reads, and text that can be shown. */
Test(python_stack, rubbish_is_harmless)
{
	static const uint32_t versions[] = { 0x030b02f0, 0x030c01f0 };
	uint64_t seed = 7;

	for (int round = 0; round < 3000; round++) {
		struct python_layout layout;
		struct python_stack *stack = stack_new(versions[round % 2], &layout);
		struct buf chain = { 0 };

		for (int i = 0; i < 1 + round % 40; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			image.at[(seed >> 33) % 0x1600] = (unsigned char)(seed >> 20);
		}
		(void)look(stack, 42, &chain);
		for (size_t i = 0; i < chain.len; i++)
			cr_assert((unsigned char)chain.at[i] >= ' ' && chain.at[i] != ';');
		cr_assert_lt(image.reads, 20000);
		buf_done(&chain);
		python_stack_free(stack);
	}
}

/* Whatever the address: the same code object, with the longest table there may be. */
static bool endless_read(void *from, uint64_t address, void *to, size_t bytes)
{
	if (address < IMAGE_BASE || address - IMAGE_BASE < IMAGE_BYTES)
		return image_read(from, address, to, bytes);
	return image_read(from, IMAGE_BASE + AT_CODES, to, bytes < 256 ? bytes : 256);
}

Test(python_stack, what_it_keeps_of_a_process_has_a_limit)
{
	struct python_memory memory = { .read = endless_read, .from = &image };
	struct python_layout layout;
	struct python_stack *stack = stack_new(0x030c01f0, &layout);
	struct buf chain = { 0 };
	size_t most = 0;

	python_stack_free(stack);
	stack = python_stack_new(&layout, &IMAGE_PLACES, &memory);
	image_put(&image, AT_TABLES + layout.bytes_length, 3000);
	for (uint64_t i = 0; i < 8000; i++) {
		image_put(&image, AT_FRAMES + layout.code, IMAGE_BASE + 0x100000 + i * 0x1000);
		image_put(&image, AT_FRAMES + layout.instruction,
			  IMAGE_BASE + 0x100000 + i * 0x1000 + layout.bytecode);
		(void)look(stack, 42, &chain);
		cr_assert(!strncmp(chain.at, "collate data.py", 15), "%s", chain.at);
		most = python_stack_kept(stack) > most ? python_stack_kept(stack) : most;
	}
	cr_assert_gt(most, (size_t)15 << 20);
	cr_assert_leq(most, (size_t)16 << 20);
	buf_done(&chain);
	python_stack_free(stack);
}
