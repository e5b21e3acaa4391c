#include <criterion/criterion.h>

#include "base/buf.h"
#include "know/know.h"
#include "know/table.h"

static void expect_first(const char *text, const char *kind, const char *name)
{
	struct know_hits hits;
	struct err err = { 0 };

	cr_assert_eq(know_find(text, &hits, &err), 0, "%s: %s", text, err.line);
	cr_assert_str_eq(hits.at[0].kind, kind, "%s: %s %s", text, hits.at[0].kind,
			 hits.at[0].name);
	if (name)
		cr_assert_str_eq(hits.at[0].name, name, "%s: %s", text, hits.at[0].name);
}

Test(know, every_number_of_the_tables_explains_itself)
{
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++) {
		struct buf text = { 0 };

		if (strcmp(entry.kind, "xid") != 0 && strcmp(entry.kind, "sxid") != 0)
			continue;
		buf_printf(&text, "%s %s", entry.kind, entry.name);
		expect_first(text.at, entry.kind, entry.name);
		buf_done(&text);
	}
}

Test(know, every_entry_is_found_by_its_name)
{
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++) {
		struct know_hits hits;
		struct err err = { 0 };
		bool found = false;

		if (strstr("xid sxid cuda pytorch", entry.kind))
			continue;
		cr_assert_eq(know_find(entry.name, &hits, &err), 0, "%s", err.line);
		for (size_t j = 0; j < hits.count; j++)
			found = found || !strcmp(hits.at[j].name, entry.name);
		cr_assert(found, "%s %s", entry.kind, entry.name);
		cr_assert(hits.exact);
	}
}

Test(know, every_misreading_is_found_by_its_words_out_of_place)
{
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++) {
		struct know_hits hits;
		struct err err = { 0 };
		struct buf text = { 0 };
		bool found = false;

		if (strcmp(entry.kind, "misreading") != 0)
			continue;
		buf_printf(&text, "they say: %s!", entry.name);
		cr_assert_eq(know_find(text.at, &hits, &err), 0, "%s", err.line);
		for (size_t j = 0; j < hits.count; j++)
			found = found || !strcmp(hits.at[j].name, entry.name);
		cr_assert(found || hits.exact, "%s", entry.name);
		buf_done(&text);
	}
}

Test(know, pasted_lines_are_understood)
{
	expect_first("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", "xid",
		     "79");
	expect_first("[  12.5] NVRM: Xid PCI:0000:01:00: 43, Ch 00000010", "xid", "43");
	expect_first("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30", "sxid",
		     "20034");
	expect_first("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "
		     "NVIDIA GPU Performance Counters on the target device 0.",
		     "error", "ERR_NVGPUCTRPERM");
	expect_first("RuntimeError: CUDA error: no kernel image is available for execution on the "
		     "device",
		     "error", "no kernel image is available for execution on the device");
	expect_first("CUDA driver version is insufficient for CUDA runtime version", "error", NULL);
	expect_first("Failed to initialize NVML: Driver/library version mismatch", "error",
		     "Failed to initialize NVML: Driver/library version mismatch");
	expect_first("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
		     "error", "CUDA out of memory");
	expect_first("CUDA error: unspecified launch failure", "error",
		     "unspecified launch failure");
	expect_first("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)",
		     "error", "NCCL timeout");
}

Test(know, names_and_aliases_are_exact)
{
	expect_first("warp", "concept", "warp");
	expect_first("CTA", "concept", "block");
	expect_first("long_scoreboard", "stall", "long_scoreboard");
	expect_first("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "stall",
		     "barrier");
	expect_first("Achieved Occupancy", "concept", "occupancy");
	expect_first("sm__throughput.avg.pct_of_peak_sustained_elapsed", "metric", NULL);
}

Test(know, every_entry_names_its_source)
{
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++) {
		const char *column, *value;
		bool sourced = false;

		for (size_t f = 0; know_field(&entry, f, &column, &value); f++)
			sourced = sourced || (!strcmp(column, "source") && value);
		cr_assert(sourced, "%s %s", entry.kind, entry.name);
	}
}

Test(know, what_nobody_knows_is_missing_with_a_near_name)
{
	struct know_hits hits;
	struct err err = { 0 };

	cr_assert_eq(know_find("ocupancy", &hits, &err), ERR_MISSING);
	cr_assert_not_null(strstr(err.line, "'occupancy'"), "%s", err.line);
	cr_assert_eq(know_find("purple elephants dancing tango", &hits, &err), ERR_MISSING);
	cr_assert_eq(know_find("", &hits, &err), ERR_MISSING);
	cr_assert_eq(know_find("\xff\xfe;;--", &hits, &err), ERR_MISSING);
}

Test(know, texts_that_people_paste_are_explained)
{
	static const struct {
		const char *text, *kind, *name;
	} cases[] = {
		{ "Windows has stopped this device because it has reported problems. (Code 43)",
		  "symptom", "Windows code 43" },
		{ "code 43", "symptom", "Windows code 43" },
		{ "[MultiGPU] forcing single GPU mode", "symptom",
		  "ComfyUI: 'forcing single GPU mode'" },
		{ "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime "
		  "version",
		  "error", "CUDA driver version is insufficient for CUDA runtime version" },
		{ "RuntimeError: CUDA error: no kernel image is available for execution on the "
		  "device",
		  "error", "no kernel image is available for execution on the device" },
		{ "Failed to initialize NVML: Driver/library version mismatch", "error",
		  "Failed to initialize NVML: Driver/library version mismatch" },
		{ "Failed to initialize NVML: Unknown Error", "error",
		  "Failed to initialize NVML: Unknown Error" },
		{ "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA "
		  "GPU Performance Counters on the target device 0.",
		  "error", "ERR_NVGPUCTRPERM" },
		{ "Insufficient Permissions", "error", "Insufficient Permissions" },
		{ "CUPTI_ERROR_HARDWARE_BUSY", "error", "CUPTI_ERROR_HARDWARE_BUSY" },
		{ "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "error", "ERR_NVGPUCTRPERM" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_first(cases[i].text, cases[i].kind, cases[i].name);
}
