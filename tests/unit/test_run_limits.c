#include <criterion/criterion.h>
#include <stdio.h>

#include "cmd/run_limits.h"

static struct err err;

static void words(struct run_limits limits, const char *wanted)
{
	struct buf out = { 0 };

	cr_assert_eq(run_limits_words(&limits, true, true, &out, &err), 0, "%s", err.line);
	cr_assert_str_eq(out.at ? out.at : "", wanted);
	buf_done(&out);
}

static void refused(struct run_limits limits, bool on, const char *line)
{
	struct buf out = { 0 };
	uint64_t memory;
	int ret = run_limits_words(&limits, on, on, &out, &err);

	if (ret >= 0)
		ret = run_limits_memory(&limits, &memory, &err);
	cr_assert_eq(ret, ERR_USAGE, "%s", line);
	cr_assert_str_eq(err.line, line);
	cr_assert_eq(out.len, 0);
	buf_done(&out);
}

Test(run_limits, none_is_no_word)
{
	words((struct run_limits){ 0 }, "");
}

Test(run_limits, sizes_have_units_of_powers_of_two)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {
		{ "16777216", 16 << 20 }, { "16384K", 16 << 20 }, { "64M", 64 << 20 },
		{ "64MiB", 64 << 20 },    { "64m", 64 << 20 },    { "1G", 1 << 30 },
		{ "1GiB", 1 << 30 },
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct run_limits limits = { .memory = sizes[i].text };
		uint64_t bytes;

		cr_assert_eq(run_limits_memory(&limits, &bytes, &err), 0, "%s", err.line);
		cr_assert_eq(bytes, sizes[i].bytes, "%s", sizes[i].text);
	}
	words((struct run_limits){ .pc_memory = "64M" }, ",pc-memory=67108864");
}

Test(run_limits, numbers_keep_their_bounds)
{
	words((struct run_limits){ .pc_period = "5" }, ",pc-period=5");
	words((struct run_limits){ .pc_period = "31", .osrt_threshold = "20000" },
	      ",pc-period=31,osrt-threshold=20000");
	words((struct run_limits){ .osrt_threshold = "0" }, ",osrt-threshold=0");
	refused((struct run_limits){ .pc_period = "4" }, true,
		"--pc-period: '4' is not a number from 5 to 31");
	refused((struct run_limits){ .pc_period = "32" }, true,
		"--pc-period: '32' is not a number from 5 to 31");
	refused((struct run_limits){ .pc_period = "banana" }, true,
		"--pc-period: 'banana' is not a number from 5 to 31");
	refused((struct run_limits){ .osrt_threshold = "60000000001" }, true,
		"--osrt-threshold: '60000000001' is not a number from 0 to 60000000000");
}

Test(run_limits, what_is_no_size_is_refused)
{
	static const char *const texts[] = { "",
					     "M",
					     "64 M",
					     "64MB",
					     "64X",
					     "-1M",
					     "1.5M",
					     "64Mi",
					     "64Kib",
					     "64MiBs",
					     "99999999999999999999",
					     "18446744073709551615G",
					     "1023K",
					     "65G" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char line[160];

		snprintf(line, sizeof(line),
			 "--pc-memory: '%s' is no size from 1M to 64G, such as 64M or 64MiB",
			 texts[i]);
		refused((struct run_limits){ .pc_memory = texts[i] }, true, line);
	}
	refused((struct run_limits){ .memory = "15M" }, true,
		"--memory: '15M' is no size from 16M to 1G, such as 64M or 64MiB");
}

Test(run_limits, numbers_about_what_is_not_recorded_are_refused)
{
	refused((struct run_limits){ .pc_period = "18" }, false,
		"--pc-period says nothing without --pc-sampling on");
	refused((struct run_limits){ .pc_memory = "64M" }, false,
		"--pc-memory says nothing without --pc-sampling on");
	refused((struct run_limits){ .osrt_threshold = "1000" }, false,
		"--osrt-threshold says nothing without osrt in --trace");
}
