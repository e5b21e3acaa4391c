/* The foundation: texts, numbers, tables, intervals, input, JSON. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/interval.h"
#include "base/io.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

Test(err, a_hostile_name_cannot_break_the_line)
{
	struct err err = { 0 };

	cr_assert_eq(err_set(&err, ERR_FORMAT, "%s: bad", "a\nb\033[31m"), ERR_FORMAT);
	cr_assert_str_eq(err.line, "a?b?[31m: bad");
	cr_assert_eq(err_context(&err, "cannot import"), ERR_FORMAT);
	cr_assert_str_eq(err.line, "cannot import: a?b?[31m: bad");
}

Test(str, numbers_are_whole_texts)
{
	int64_t value = 7;
	uint64_t hex = 0;
	double real = 0;

	cr_assert(str_to_i64(STR("-9223372036854775808"), &value) && value == INT64_MIN);
	cr_assert(str_to_i64(STR("9223372036854775807"), &value) && value == INT64_MAX);
	cr_assert_not(str_to_i64(STR("9223372036854775808"), &value));
	cr_assert_not(str_to_i64(STR("12 W"), &value));
	cr_assert_not(str_to_i64(STR(""), &value));
	cr_assert(str_to_hex(STR("0x00000000000000ff"), &hex) && hex == 255);
	cr_assert(str_to_f64(STR("411.90"), &real) && real == 411.90);
	cr_assert_not(str_to_f64(STR("inf"), &real));
	cr_assert_not(str_to_f64(STR("nan"), &real));
	cr_assert_not(str_to_f64(STR("0x10"), &real));
	cr_assert_not(str_to_f64(STR("1e999"), &real));
}

Test(str, fixed_point_is_exact_where_a_double_is_not)
{
	int64_t ns = 0;

	cr_assert(str_to_fixed(STR("5151136285287.258"), 3, &ns) && ns == 5151136285287258);
	cr_assert(str_to_fixed(STR("-0.0005"), 3, &ns) && ns == -1);
	cr_assert(str_to_fixed(STR("7"), 3, &ns) && ns == 7000);
	cr_assert(str_to_fixed(STR("1.2344999"), 3, &ns) && ns == 1234);
	cr_assert_not(str_to_fixed(STR("9223372036854775.808"), 3, &ns));
	cr_assert_not(str_to_fixed(STR("1e3"), 3, &ns));
	cr_assert_not(str_to_fixed(STR("."), 3, &ns));
}

Test(intern, every_text_keeps_its_id_while_the_table_grows)
{
	OWN(intern_freep) struct intern *intern = intern_new();
	char text[32];

	for (uint32_t i = 1; i < 20000; i++) {
		int len = snprintf(text, sizeof(text), "kernel_%u", i);

		cr_assert_eq(intern_add(intern, text, (size_t)len), i);
	}
	for (uint32_t i = 1; i < 20000; i += 997) {
		(void)snprintf(text, sizeof(text), "kernel_%u", i);
		cr_assert_eq(intern_text(intern, text), i);
		cr_assert_str_eq(intern_get(intern, i, NULL), text);
	}
	cr_assert_eq(intern_add(intern, "a\0b", 3), 20000);
	cr_assert_neq(intern_add(intern, "a\0c", 3), 20000);
	cr_assert_str_eq(intern_get(intern, 4000000, NULL), "");
}

Test(map, agrees_with_a_plain_array)
{
	static uint64_t reference[4096];
	struct map map = { 0 };

	srand(7);
	for (int i = 0; i < 100000; i++) {
		uint64_t key = (uint64_t)(rand() % 4096);

		reference[key] = (uint64_t)i + 1;
		map_put(&map, key * 0x10001, (uint64_t)i + 1);
	}
	for (uint64_t key = 0; key < 4096; key++) {
		uint64_t *found = map_find(&map, key * 0x10001);

		cr_assert_eq(found ? *found : 0, reference[key]);
	}
	map_done(&map);
}

/* Ticks of a small world, counted one by one. */
static void paint(char *world, const struct interval *at, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (int64_t t = at[i].start; t < at[i].end; t++)
			world[t] = 1;
	}
}

Test(interval, a_union_agrees_with_counting)
{
	srand(3);
	for (int round = 0; round < 500; round++) {
		struct interval set[20];
		char painted[128] = { 0 };
		int64_t length = 0;
		size_t count;

		for (int i = 0; i < 20; i++) {
			set[i].start = rand() % 100;
			set[i].end = set[i].start + rand() % 12 - 2;
		}
		paint(painted, set, 20);
		count = interval_union(set, 20);
		for (int t = 0; t < 128; t++)
			length += painted[t];
		cr_assert_eq(interval_length(set, count), length);
		for (size_t i = 1; i < count; i++)
			cr_assert_lt(set[i - 1].end, set[i].start);
	}
}

Test(units, three_digits_and_the_unit_that_fits)
{
	struct unit_text text;

	cr_assert_str_eq(units_ns(&text, 812), "812 ns");
	cr_assert_str_eq(units_ns(&text, 16384), "16.4 us");
	cr_assert_str_eq(units_ns(&text, 999600), "1.00 ms");
	cr_assert_str_eq(units_ns(&text, -2300000000), "-2.30 s");
	cr_assert_str_eq(units_bytes(&text, 4096), "4.00 KiB");
	cr_assert_str_eq(units_bytes(&text, 1023), "1023 B");
	cr_assert_str_eq(units_share(&text, 0.93), "93 %");
	cr_assert_str_eq(units_share(&text, 0.00001), "< 0.01 %");
	cr_assert_str_eq(units_count(&text, 1234567), "1,234,567");
	cr_assert_str_eq(units_count(&text, -999), "-999");
}

Test(json, escapes_what_must_not_stand_bare)
{
	struct buf out = { 0 };
	struct json json = { .out = &out, .compact = true };

	json_object(&json, NULL);
	json_str(&json, "a", (struct str){ "\"\\\n\x01\xff\xe6\x97\xb6", 8 });
	json_array(&json, "b");
	json_i64(&json, NULL, INT64_MIN);
	json_f64(&json, NULL, 0.1);
	json_end(&json);
	json_end(&json);
	cr_assert_str_eq(out.at, "{\"a\":\"\\\"\\\\\\n\\u0001\xef\xbf\xbd\xe6\x97\xb6\","
				 "\"b\":[-9223372036854775808,0.1]}");
	buf_done(&out);
}

/* Everything the input gives, asking for `want` bytes at a time. */
static void slurp(struct input *input, size_t want, struct buf *out)
{
	const char *at;
	int64_t len;

	while ((len = input_fill(input, want, &at, NULL)) > 0) {
		size_t take = (size_t)len < want ? (size_t)len : want;

		buf_add(out, at, take);
		input_skip(input, take);
	}
	cr_assert_eq(len, 0);
}

static size_t sample_text(char *at, size_t room)
{
	for (size_t i = 0; i < room; i++)
		at[i] = (char)('a' + (i * i / 7 + i) % 23);
	return room;
}

static size_t gzip_bytes(const char *at, size_t len, char *to, size_t room)
{
	z_stream z = { 0 };

	cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)at;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)to;
	z.avail_out = (uInt)room;
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	return room - z.avail_out;
}

Test(io, gzip_members_and_zstd_give_the_same_bytes_as_plain)
{
	enum { LEN = 300000 };
	static char text[LEN], packed[2 * LEN];
	size_t half, len;

	(void)sample_text(text, LEN);
	half = gzip_bytes(text, LEN / 2, packed, sizeof(packed));
	len = half + gzip_bytes(text + LEN / 2, LEN / 2, packed + half, sizeof(packed) - half);
	for (int kind = 0; kind < 3; kind++) {
		struct buf out = { 0 };
		OWN(input_closep) struct input *input = NULL;

		if (kind == 2)
			len = ZSTD_compress(packed, sizeof(packed), text, LEN, 3);
		input = input_memory("x", kind ? packed : text, kind ? len : LEN);
		slurp(input, kind ? 777 : 100000, &out);
		cr_assert_eq(out.len, LEN);
		cr_assert(!memcmp(out.at, text, LEN));
		cr_assert_not(input_truncated(input));
		cr_assert_eq(input_offset(input), LEN);
		buf_done(&out);
	}
}

Test(io, a_cut_gzip_gives_what_was_before_the_cut_and_says_so)
{
	enum { LEN = 300000 };
	static char text[LEN], packed[2 * LEN];
	struct buf out = { 0 };
	size_t len = gzip_bytes(text, sample_text(text, LEN), packed, sizeof(packed));
	OWN(input_closep) struct input *input = input_memory("x", packed, len * 2 / 3);

	slurp(input, 4096, &out);
	cr_assert_gt(out.len, LEN / 4);
	cr_assert_lt(out.len, LEN);
	cr_assert(!memcmp(out.at, text, out.len));
	cr_assert(input_truncated(input));
	buf_done(&out);
}

Test(io, a_directory_and_a_missing_file_are_named)
{
	OWN(input_closep) struct input *input = NULL;
	struct err err = { 0 };

	cr_assert_eq(input_open("/", &input, &err), ERR_FORMAT);
	cr_assert_str_eq(err.line, "/: is a directory");
	cr_assert_eq(input_open("/no/such/file", &input, &err), ERR_MISSING);
	cr_assert_str_eq(err.line, "/no/such/file: No such file or directory");
}
