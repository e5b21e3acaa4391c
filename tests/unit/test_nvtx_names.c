/*
 * test_nvtx_names.c - what NVTX ranges are called in the segment: with torch-ops an
 * operator of PyTorch has one name, however often it is called.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "inject/inject.h"
#include "inject/nvtx.h"

enum { TEXTS_BYTES = 1 << 20, FUNCTIONS = 16 };

static struct inject inject;
static struct segment *segment;
static struct segment_slot slot;
static void *core[FUNCTIONS], **core_at[FUNCTIONS];
static void *core2[FUNCTIONS], **core2_at[FUNCTIONS];

/* The rest of the library. */
struct segment_slot *slot_take(struct segment *of)
{
	(void)of;
	return &slot;
}

void slot_commit(struct segment_slot *of, enum slot_kind kind)
{
	atomic_store(&of->kind, kind);
}

void activity_range(struct inject *of, bool inside)
{
	(void)of;
	(void)inside;
}

static int table(uint32_t module, void ****ret_table, unsigned int *ret_count)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		core_at[i] = &core[i];
		core2_at[i] = &core2[i];
	}
	*ret_table = module == NVTX_MODULE_CORE ? core_at : core2_at;
	*ret_count = FUNCTIONS;
	return 1;
}

static const void *tables(uint32_t id)
{
	static const struct nvtx_callbacks callbacks = { sizeof(callbacks), table };

	return id == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static void begin(void)
{
	segment = calloc(1, sizeof(*segment) + TEXTS_BYTES);
	cr_assert_not_null(segment);
	segment->texts_at = sizeof(*segment);
	segment->texts_bytes = TEXTS_BYTES;
	segment->texts_used = 8; /* 0 is no text */
	inject = (struct inject){ .segment = segment,
				  .trace = UINT64_C(1) << TRACE_NVTX | UINT64_C(1)
									       << TRACE_TORCH_OPS };
	inject_state = &inject;
	nvtx_attach(tables);
}

static void end(void)
{
	free(segment);
}

TestSuite(nvtx_names, .init = begin, .fini = end);

static const char *text_of(uint32_t id)
{
	return id ? (const char *)segment + segment->texts_at + id + sizeof(struct segment_text)
		  : "";
}

static const char *pushed(const char *name)
{
	((int (*)(const char *))core[9])(name);
	cr_assert_eq(slot.kind, SLOT_PUSH);
	return text_of(slot.a);
}

static const char *pushed_ex(const char *name)
{
	struct nvtx_event event = { .size = sizeof(event),
				    .message_type = 1,
				    .message.ascii = name };

	((int (*)(const struct nvtx_event *))core[8])(&event);
	cr_assert_eq(slot.kind, SLOT_PUSH);
	return text_of(slot.a);
}

Test(nvtx_names, of_an_operator_is_what_stands_before_that_which_tells_calls_apart)
{
	static const char *const names[] = {
		"aten::mul, seq = 0",
		"aten::mul, op_id = 9999",
		"aten::mul, seq = 18446744073709551615, op_id = 1",
		"aten::mul, seq = 3, op_id = 4, sizes = [[2, 3], [], [1]]",
		"aten::mul, sizes = []",
		"aten::mul, op_id = 7, input_op_ids = [(5,0), (6,1)]",
		"aten::mul, seq = 0, op_id = 7, sizes = [[8]], input_op_ids = [(5,0)]",
		"aten::mul, sizes = [[8, 8], [8", /* cut off */
		"aten::mul",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cr_assert_str_eq(pushed(names[i]), "aten::mul", "%s", names[i]);
		cr_assert_str_eq(pushed_ex(names[i]), "aten::mul", "%s", names[i]);
	}
}

Test(nvtx_names, with_commas_in_them_stay)
{
	static const char *const names[] = {
		"load, decode, augment",
		"step, seq = last",
		"step, seq = 5 of 7",
		"step, seq = 5, epoch 2",
		"step, seq = ",
		"step, seq",
		"sizes = [1, 2], op_id = x",
		"resize, sizes = 5",
		"resize, sizes = [5]: to 6",
		"resize, sizes = ]",
		", seq = 1", /* and nothing before */
		"step,",
		"",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cr_assert_str_eq(pushed(names[i]), names[i]);
		cr_assert_str_eq(pushed_ex(names[i]), names[i]);
	}
	cr_assert_str_eq(pushed("step, seq = 5 of 7, seq = 8, op_id = 1"), "step, seq = 5 of 7");
}

Test(nvtx_names, of_many_operators_take_the_room_of_one)
{
	char name[64];
	uint64_t used;

	pushed("aten::mul");
	used = segment->texts_used;
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "aten::mul, seq = %d, op_id = %d", i, i + 1);
		pushed(name);
	}
	cr_assert_eq(segment->texts_used, used);
}

Test(nvtx_names, that_are_too_long_are_cut_where_it_is_safe)
{
	char name[TEXT_MAX * 2];

	memset(name, '[', sizeof(name));
	memcpy(name, "aten::cat, sizes = ", 19);
	name[sizeof(name) - 1] = 0;
	cr_assert_str_eq(pushed(name), "aten::cat");
	memset(name + 19, '7', sizeof(name) - 20);
	memcpy(name + 11, "op_id = ", 8);
	cr_assert_str_eq(pushed(name), "aten::cat");
	for (size_t at = 0; at + 9 < sizeof(name); at += 9)
		memcpy(name + at, ", seq = 1", 9);
	cr_assert_eq(strlen(pushed(name)), TEXT_MAX - 1);
}

Test(nvtx_names, are_whole_where_it_was_not_asked_for_and_on_marks)
{
	((void (*)(const char *))core[2])("aten::mul, seq = 0");
	cr_assert_str_eq(text_of(slot.a), "aten::mul, seq = 0");
	inject.trace = UINT64_C(1) << TRACE_NVTX;
	cr_assert_str_eq(pushed("aten::mul, seq = 0"), "aten::mul, seq = 0");
}

typedef void wide_fn(const wchar_t *);

/* All that opens a range has to be heard where all that closes one is. */
Test(nvtx_names, may_be_wide)
{
	static const struct {
		int index;
		enum slot_kind kind;
	} calls[] = { { 3, SLOT_MARK }, { 6, SLOT_START }, { 10, SLOT_PUSH } };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		((wide_fn *)core[calls[i].index])(L"pr\u00e9 \u4e2d");
		cr_assert_eq(slot.kind, calls[i].kind, "%d", calls[i].index);
		cr_assert_str_eq(text_of(slot.a), "pr\u00e9 \u4e2d");
		((wide_fn *)core[calls[i].index])(NULL);
		cr_assert_eq(slot.a, 0);
	}
	((void (*)(uint32_t, const wchar_t *))core[15])(12, L"loader");
	cr_assert_eq(slot.kind, SLOT_THREAD);
	cr_assert_eq(slot.value, 12);
	cr_assert_str_eq(text_of(slot.a), "loader");
}

Test(nvtx_names, of_categories_are_told_with_their_domain)
{
	void *domain = ((void *(*)(const wchar_t *))core2[13])(L"library");
	const void *same = ((void *(*)(const char *))core2[12])("library");

	cr_assert_str_eq(text_of((uint32_t)(uintptr_t)domain), "library");
	cr_assert_eq(domain, same);
	((void (*)(uint32_t, const char *))core[12])(7, "load");
	cr_assert_eq(slot.kind, SLOT_CATEGORY);
	cr_assert_eq(slot.value, 7);
	cr_assert_str_eq(text_of(slot.a), "load");
	((void (*)(const void *, uint32_t, const wchar_t *))core2[9])(domain, UINT32_MAX, L"x");
	cr_assert_eq(slot.value, (uint64_t)(uintptr_t)domain << 32 | UINT32_MAX);
	cr_assert_str_eq(text_of(slot.a), "x");
}

Test(nvtx_names, go_with_payload_and_category_of_the_same_event_alone)
{
	struct nvtx_event event = { .size = sizeof(event),
				    .category = 3,
				    .payload_type = PAYLOAD_I64,
				    .payload.u64 = 0x123456789abcdef0,
				    .message_type = 1,
				    .message.ascii = "a" };

	((int (*)(const struct nvtx_event *))core[8])(&event);
	cr_assert_eq(slot.x[0], 3);
	cr_assert_eq(slot.x[1], PAYLOAD_I64);
	cr_assert_eq(slot.x[2], 0x9abcdef0);
	cr_assert_eq(slot.x[3], 0x12345678);
	pushed("b"); /* the slot was used before */
	cr_assert_eq(slot.x[0] | slot.x[1] | slot.x[2] | slot.x[3], 0);
	event.size = 8; /* the rest of it is not there */
	((int (*)(const struct nvtx_event *))core[8])(&event);
	cr_assert_eq(slot.a | slot.x[0] | slot.x[1], 0);
}
