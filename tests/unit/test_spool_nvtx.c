/* What NVTX ranges and marks say beside their text: categories by name, payloads. */
#include <string.h>

#include "spool_bench.h"

TestSuite(spool_nvtx, .init = open_bench, .fini = close_bench);

static const char *of_range(size_t i)
{
	return text(bench.record->ranges.at[i].detail);
}

Test(spool_nvtx, categories_have_the_names_that_their_domain_gave)
{
	uint32_t domain = TEXT("library");

	SLOT(SLOT_PUSH, .thread = 1, .time_ns = 1, .a = TEXT("a"), .x = { 7 });
	SLOT(SLOT_PUSH, .thread = 1, .time_ns = 2, .a = TEXT("b"), .b = domain, .x = { 7 });
	SLOT(SLOT_CATEGORY, .time_ns = 3, .value = 7, .a = TEXT("load; all"));
	SLOT(SLOT_CATEGORY, .time_ns = 3, .value = (uint64_t)domain << 32 | 9, .a = TEXT("other"));
	SLOT(SLOT_POP, .thread = 1, .time_ns = 4);
	SLOT(SLOT_POP, .thread = 1, .time_ns = 5, .b = domain);
	SLOT(SLOT_START, .time_ns = 6, .value = 1, .a = TEXT("c"), .b = domain, .x = { 9 });
	SLOT(SLOT_CATEGORY, .time_ns = 7, .value = (uint64_t)domain << 32 | 9, .a = TEXT("late"));
	SLOT(SLOT_END, .time_ns = 8, .value = 1, .x = { 7 });
	SLOT(SLOT_PUSH, .thread = 1, .time_ns = 9, .a = TEXT("d"));
	SLOT(SLOT_POP, .thread = 1, .time_ns = 10);
	SLOT(SLOT_MARK, .time_ns = 11, .a = TEXT("e"), .x = { 7 });
	SLOT(SLOT_CATEGORY, .time_ns = 12, .value = 7);
	SLOT(SLOT_MARK, .time_ns = 13, .a = TEXT("f"), .x = { 7 });
	take();
	cr_assert_eq(bench.record->ranges.count, 4);
	cr_assert_str_eq(of_range(0), "category=load; all", "named before it ended");
	cr_assert_str_eq(of_range(1), "category=7", "the name is another domain's");
	cr_assert_str_eq(of_range(2), "category=late");
	cr_assert_eq(bench.record->ranges.at[3].detail, 0);
	cr_assert_str_eq(text(bench.record->marks.at[0].detail), "category=load; all");
	cr_assert_str_eq(text(bench.record->marks.at[1].detail), "category=7",
			 "a name without text");
	cr_assert_eq(loss(LOSS_malformed), 0);
}

Test(spool_nvtx, payloads_are_numbers_of_their_kind)
{
	static const struct {
		uint32_t kind, low, high;
		const char *wanted;
	} payloads[] = {
		{ PAYLOAD_NONE, 5, 5, "" },
		{ PAYLOAD_U64, UINT32_MAX, UINT32_MAX, "payload=18446744073709551615" },
		{ PAYLOAD_I64, UINT32_MAX - 1, UINT32_MAX, "payload=-2" },
		{ PAYLOAD_F64, 0x9999999a, 0x3fb99999, "payload=0.1" },
		{ PAYLOAD_F64, 0, 0x7ff00000, "payload=inf" },
		{ PAYLOAD_U32, UINT32_MAX, 77, "payload=4294967295" },
		{ PAYLOAD_I32, UINT32_MAX - 2, 77, "payload=-3" },
		{ PAYLOAD_F32, 0x3dcccccd, 77, "payload=0.1" },
		{ PAYLOAD_F32, 0x7f800000, 0, "payload=inf" },
		{ PAYLOAD_F32, 0x4b800001, 0, "payload=16777218" },
		{ PAYLOAD_F32 + 1, 5, 5, "" },
		{ UINT32_MAX, 5, 5, "" },
	};
	size_t count = sizeof(payloads) / sizeof(payloads[0]);

	for (size_t i = 0; i < count; i++)
		SLOT(SLOT_MARK, .time_ns = i + 1, .a = TEXT("m"),
		     .x = { 0, payloads[i].kind, payloads[i].low, payloads[i].high });
	SLOT(SLOT_MARK, .time_ns = 99, .a = TEXT("m"), .x = { 4, PAYLOAD_U32, 0 });
	take();
	cr_assert_eq(bench.record->marks.count, count + 1);
	for (size_t i = 0; i < count; i++) {
		uint32_t detail = bench.record->marks.at[i].detail;

		cr_assert_str_eq(detail ? text(detail) : "", payloads[i].wanted, "%zu", i);
	}
	cr_assert_str_eq(text(bench.record->marks.at[count].detail), "payload=0;category=4");
}

Test(spool_nvtx, names_of_categories_without_end_take_no_memory_without_end)
{
	uint32_t name = TEXT("load");

	for (uint64_t i = 1; i <= 100000; i++)
		SLOT(SLOT_CATEGORY, .time_ns = i, .value = i, .a = name);
	SLOT(SLOT_MARK, .time_ns = 200000, .a = TEXT("m"), .x = { 1 });
	SLOT(SLOT_MARK, .time_ns = 200000, .a = TEXT("m"), .x = { 100000 });
	take();
	cr_assert_str_eq(text(bench.record->marks.at[0].detail), "category=load");
	cr_assert_str_eq(text(bench.record->marks.at[1].detail), "category=100000");
}
