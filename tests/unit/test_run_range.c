#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cmd/run_range.h"

static struct err err;

static void words(const char *range, const char *wanted)
{
	struct buf out = { 0 };

	cr_assert_eq(run_range_words(range, &out, &err), 0, "%s", err.line);
	cr_assert_str_eq(out.at ? out.at : "", wanted);
	buf_done(&out);
}

static void refused(const char *range, const char *line)
{
	struct buf out = { 0 };

	cr_assert_eq(run_range_words(range, &out, &err), ERR_USAGE, "%s", range);
	cr_assert_str_eq(err.line, line);
	buf_done(&out);
}

Test(run_range, without_one_all_is_recorded)
{
	words(NULL, "");
}

Test(run_range, a_range_may_name_its_domain)
{
	words("cudaProfilerApi", ",paused,range-profiler");
	words("nvtx:step", ",paused,range-nvtx=step");
	words("nvtx:step@*", ",paused,range-nvtx=step");
	words("nvtx:step@NVTX", ",paused,range-nvtx=step,range-domain=NVTX");
	words("nvtx:step@", ",paused,range-nvtx=step,range-domain=");
	words("nvtx:step 1: load@my library", ",paused,range-nvtx=step 1: load,"
					      "range-domain=my library");
}

Test(run_range, a_backslash_makes_the_at_sign_a_part_of_the_name)
{
	words("nvtx:me\\@home", ",paused,range-nvtx=me@home");
	words("nvtx:me\\@home@a\\@b", ",paused,range-nvtx=me@home,range-domain=a@b");
	words("nvtx:me@home@lib", ",paused,range-nvtx=me@home,range-domain=lib");
	words("nvtx:a\\\\@lib", ",paused,range-nvtx=a\\,range-domain=lib");
	words("nvtx:a\\b\\", ",paused,range-nvtx=a\\b\\");
	words("nvtx:step@\\*", ",paused,range-nvtx=step,range-domain=\\*");
}

Test(run_range, what_names_no_range_is_refused)
{
	refused("step", "--capture-range: 'step' is neither cudaProfilerApi nor nvtx:NAME");
	refused("nvtx", "--capture-range: 'nvtx' is neither cudaProfilerApi nor nvtx:NAME");
	refused("nvtx:", "--capture-range: 'nvtx:' names no range");
	refused("nvtx:@lib", "--capture-range: 'nvtx:@lib' names no range");
	refused("nvtx:a,b", "--capture-range: 'a,b' has a comma");
}

/* The program's side would leave it out, and then nothing would ever be recorded. */
Test(run_range, names_that_are_too_long_are_refused)
{
	char range[200], wanted[200];

	snprintf(range, sizeof(range), "nvtx:%0127d", 1);
	snprintf(wanted, sizeof(wanted), ",paused,range-nvtx=%0127d", 1);
	words(range, wanted);
	snprintf(range, sizeof(range), "nvtx:%0128d", 1);
	refused(range, "--capture-range: a range's name has at most 127 bytes, not 128");
	snprintf(range, sizeof(range), "nvtx:a@%0130d", 1);
	refused(range, "--capture-range: a domain's name has at most 127 bytes, not 130");
}
