/*
 * Findings from recordings of a real H200 (tests/truth), end to end. What a
 * right diagnosis says is known from how they were made: a training loop with
 * its loader in the main process, four reads of the loss a step and pageable
 * uploads; the same without these; a job on two GPUs with a late rank; and
 * nvidia-smi beside a power wall and two processes on one card.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "read/reader.h"
#include "rules/rule.h"
#include "store/store.h"
#include "temp_folder.h"

struct report {
	struct temp_folder folder;
	char path[96];
	struct store *store;
	struct facts *facts;
	struct findings findings;
};

static void report_files(struct report *report, const char *const *files)
{
	struct err err = { 0 };
	uint32_t source;

	temp_make(&report->folder, "/tmp");
	(void)snprintf(report->path, sizeof(report->path), "%s/a.sonde", report->folder.path);
	cr_assert_eq(store_create(report->path, &report->store, &err), 0, "%s", err.line);
	for (; *files; files++) {
		char path[4096];

		(void)snprintf(path, sizeof(path), "%s/tests/truth/%s", SOURCE_DIR, *files);
		cr_assert_eq(reader_import(path, store_sink(report->store), &source, &err), 0, "%s",
			     err.line);
	}
	cr_assert_eq(store_finish(report->store, &err), 0, "%s", err.line);
	store_close(report->store);
	cr_assert_eq(store_open(report->path, &report->store, &err), 0, "%s", err.line);
	cr_assert_eq(facts_build(report->store, &report->facts, &err), 0, "%s", err.line);
	rules_run(report->facts, &report->findings);
}

static void report_done(struct report *report)
{
	findings_done(&report->findings);
	facts_free(report->facts);
	store_close(report->store);
	temp_remove(&report->folder);
}

#define FILES(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

/* Its place in the telling; -1: not told. */
static int place_of(const struct report *report, const char *id)
{
	for (size_t i = 0; i < report->findings.at.count; i++)
		if (!strcmp(report->findings.at.at[i].rule->id, id))
			return (int)i;
	return -1;
}

static const struct finding *finding_of(const struct report *report, const char *id)
{
	int place = place_of(report, id);

	cr_assert_geq(place, 0, "no finding %s", id);
	return &report->findings.at.at[place];
}

static const char SLOW[] = "kineto/train_slow.json.gz", FAST[] = "kineto/train_fast.json.gz";

Test(recorded, a_slow_loader_is_told_first_then_reads_then_pageable_copies)
{
	struct report report = { 0 };

	report_files(&report, FILES(SLOW));
	cr_assert_eq(place_of(&report, "gpu_starved"), 0);
	cr_assert_not_null(strstr(finding_of(&report, "gpu_starved")->title, "loader"));
	cr_assert_not_null(strstr(finding_of(&report, "gpu_starved")->claim, "stacks"));
	cr_assert_eq(place_of(&report, "sync_readback"), 1);
	cr_assert_eq(place_of(&report, "pageable_copy"), 2);
	report_done(&report);
}

Test(recorded, a_fast_loader_is_not_blamed_for_slow_launches)
{
	struct report report = { 0 };

	report_files(&report, FILES(FAST));
	cr_assert_eq(place_of(&report, "launch_bound"), 0);
	cr_assert_eq(place_of(&report, "gpu_starved"), -1);
	cr_assert_eq(place_of(&report, "sync_readback"), -1);
	cr_assert_eq(place_of(&report, "pageable_copy"), -1);
	for (size_t i = 0; i < report.findings.at.count; i++)
		cr_assert_null(strstr(report.findings.at.at[i].claim, "loader"));
	report_done(&report);
}

Test(recorded, the_range_of_the_gain_holds_what_was_gained)
{
	struct report slow = { 0 }, fast = { 0 };
	const struct finding *finding;
	int64_t gained_ns;

	report_files(&slow, FILES(SLOW));
	report_files(&fast, FILES(FAST));
	gained_ns = slow.facts->devices.at[0].span_ns - fast.facts->devices.at[0].span_ns;
	finding = finding_of(&slow, "gpu_starved");
	cr_assert_leq(finding->impact_low_ns, gained_ns);
	cr_assert_geq(finding->impact_high_ns, gained_ns);
	/* And promises no more than a GPU that is never idle. */
	cr_assert_leq(finding->impact_high_ns, slow.facts->devices.at[0].idle_ns);
	report_done(&slow);
	report_done(&fast);
}

Test(recorded, a_rank_that_waits_is_suspected)
{
	struct report report = { 0 };

	report_files(&report, FILES("kineto/ddp_rank0.json.gz"));
	cr_assert_eq(place_of(&report, "collective_wait"), 0);
	cr_assert_not_null(strstr(report.findings.at.at[0].claim, "Suspicion"));
	report_done(&report);
	memset(&report, 0, sizeof(report));
	report_files(&report, FILES("kineto/ddp_rank1.json.gz"));
	cr_assert_eq(place_of(&report, "collective_wait"), -1);
	cr_assert_eq(place_of(&report, "gpu_starved"), 0);
	report_done(&report);
}

Test(recorded, a_power_wall_is_found_by_dmon_alone_and_its_limit_by_another_file)
{
	struct report report = { 0 };
	const struct finding *finding;

	report_files(&report, FILES("smi/dmon_power_wall.txt"));
	cr_assert_eq(report.findings.at.count, 1);
	finding = finding_of(&report, "power_wall");
	cr_assert_eq(report.facts->session->devices.at[finding->device].ordinal, 0);
	cr_assert_not_null(strstr(finding->claim, "samples 32 to 39"), "%s", finding->claim);
	cr_assert_not_null(strstr(finding->claim, "1 s") ? finding->claim
							 : strstr(finding->claim, "1.00 s"));
	cr_assert_not_null(strstr(finding->claim, "instead of 1980 MHz"), "%s", finding->claim);
	cr_assert_not_null(strstr(finding->claim, "in none of the files"), "%s", finding->claim);
	report_done(&report);
	memset(&report, 0, sizeof(report));
	report_files(&report, FILES("smi/dmon_power_wall.txt", "smi/q-power.txt",
				    "smi/pmon_two_processes.txt"));
	finding = finding_of(&report, "power_wall");
	cr_assert_not_null(strstr(finding->claim, "the limit is 700 W"), "%s", finding->claim);
	finding = finding_of(&report, "shared_card_contention");
	cr_assert_not_null(strstr(finding->claim, "691"));
	cr_assert_not_null(strstr(finding->claim, "693"));
	for (size_t i = 0; i < report.findings.at.count; i++) {
		uint32_t device = report.findings.at.at[i].device;

		cr_assert_eq(report.facts->session->devices.at[device].ordinal, 0,
			     "GPU 1 has no fault");
	}
	report_done(&report);
}
