/*
 * Traces from public repositories, where this machine has them, against values
 * that were computed elsewhere (integers of ns). Skipped without the folder.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>

#include "base/interval.h"
#include "base/io.h"
#include "read/json_scan.h"
#include "read/reader.h"
#include "sink_record.h"

static const char FOLDER[] = SOURCE_DIR "/../shared/public";
static const char FOLDER_OF_WORKTREE[] = SOURCE_DIR "/../../shared/public";

/* The value of `key` in an object; empty if absent. */
static struct str get(struct str object, const char *key)
{
	const char *at = object.at;
	const char *end = object.at + object.len;
	bool flag;

	for (at = object.len ? at + 1 : end; at < end;) {
		const char *close;
		struct str name;

		while (at < end && *at != '"')
			at++;
		if (at == end)
			break;
		close = scan_string(at + 1, end, &flag);
		name = (struct str){ at + 1, (size_t)(close - at - 1) };
		at = close + 1;
		while (*at == ':' || *at == ' ')
			at++;
		close = scan_value(at, end, &flag);
		if (!close)
			break;
		if (str_is(name, key))
			return (struct str){ at, (size_t)(close - at) };
		at = close;
	}
	return (struct str){ NULL, 0 };
}

static int64_t number(struct str object, const char *key)
{
	int64_t value = -1;

	(void)str_to_i64(get(object, key), &value);
	return value;
}

static char *read_text(const char *path, size_t *ret_len)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);

	cr_assert_not_null(file, "%s", path);
	*ret_len = fread(text, 1, (1 << 20) - 1, file);
	(void)fclose(file);
	return text;
}

static int64_t device_of(const struct record *record, const struct op *op)
{
	const struct session *session = record->sink.session;
	const struct lane *lane = &session->lanes.at[op->lane];

	return lane->device == SESSION_NONE ? -1 : session->devices.at[lane->device].ordinal;
}

static int64_t union_ns(const struct record *record, int64_t device, bool only_kernels)
{
	VEC(struct interval) set = { 0 };
	int64_t length;

	for (size_t i = 0; i < record->ops.count; i++) {
		const struct op *op = &record->ops.at[i];

		if (device_of(record, op) == device && (op->kind == OP_KERNEL || !only_kernels))
			*VEC_ADD(&set) = (struct interval){ op->start_ns, op->end_ns };
	}
	length = interval_length(set.at, interval_union(set.at, set.count));
	VEC_DONE(&set);
	return length;
}

static void check_devices(const struct record *record, struct str by_device, bool only_kernels,
			  const char *file)
{
	for (int64_t device = 0; device < 64; device++) {
		char key[24];
		int64_t wanted;

		(void)snprintf(key, sizeof(key), "%d", (int)device);
		wanted = number(by_device, key);
		cr_expect_eq(union_ns(record, device, only_kernels), wanted < 0 ? 0 : wanted,
			     "%s: device %d: %lld ns instead of %lld", file, (int)device,
			     (long long)union_ns(record, device, only_kernels), (long long)wanted);
	}
}

#define EXPECT(what, found, wanted)                                                             \
	cr_expect_eq((int64_t)(found), (int64_t)(wanted), "%s: %s: %lld instead of %lld", file, \
		     what, (long long)(found), (long long)(wanted))

static void check_ops(const struct record *record, struct str expected, const char *file)
{
	static const char *const kinds[] = { "?", "HtoD", "DtoH", "DtoD", "HtoH", "PtoP" };
	struct str kernels = get(expected, "kernels");
	struct str copies = get(expected, "memcpy");
	int64_t count[5] = { 0 };
	int64_t sum = 0, bytes = 0, first = INT64_MAX, last = INT64_MIN;
	int64_t copy_count[6] = { 0 }, copy_ns[6] = { 0 }, copy_bytes[6] = { 0 };

	for (size_t i = 0; i < record->ops.count; i++) {
		const struct op *op = &record->ops.at[i];
		int64_t duration = op->end_ns - op->start_ns;

		count[op->kind]++;
		if (op->kind == OP_OTHER)
			continue;
		first = op->start_ns < first ? op->start_ns : first;
		last = op->end_ns > last ? op->end_ns : last;
		if (op->kind == OP_KERNEL)
			sum += duration;
		if (op->kind != OP_MEMCPY)
			continue;
		bytes += op->bytes;
		copy_count[op->copy]++;
		copy_ns[op->copy] += duration;
		copy_bytes[op->copy] += op->bytes;
	}
	EXPECT("kernels", count[OP_KERNEL], number(kernels, "count"));
	EXPECT("kernel ns", sum, number(kernels, "total_ns"));
	EXPECT("copies", count[OP_MEMCPY], number(copies, "count"));
	EXPECT("bytes", bytes, number(copies, "bytes"));
	EXPECT("sets", count[OP_MEMSET], number(get(expected, "memset"), "count"));
	for (int i = 1; i < 6; i++) {
		int64_t wanted = number(get(copies, "count_by_kind"), kinds[i]);

		EXPECT(kinds[i], copy_count[i], wanted < 0 ? 0 : wanted);
		if (wanted < 0)
			continue;
		EXPECT("ns of copies", copy_ns[i],
		       number(get(copies, "total_ns_by_kind"), kinds[i]));
		EXPECT("bytes of copies", copy_bytes[i],
		       number(get(copies, "bytes_by_kind"), kinds[i]));
	}
	check_devices(record, get(kernels, "union_busy_ns_by_device"), true, file);
	if (!get(expected, "gpu").len)
		return;
	EXPECT("span", last - first, number(get(expected, "gpu"), "span_ns"));
	check_devices(record, get(get(expected, "gpu"), "busy_ns_by_device"), false, file);
}

static void check_host(const struct record *record, struct str expected, const char *file)
{
	struct str counts = get(expected, "counts");
	int64_t calls[CALL_OTHER + 1] = { 0 };
	int64_t ranges[RANGE_COLLECTIVE + 1] = { 0 };

	for (size_t i = 0; i < record->calls.count; i++)
		calls[record->calls.at[i].kind]++;
	for (size_t i = 0; i < record->ranges.count; i++)
		ranges[record->ranges.at[i].kind]++;
	EXPECT("API calls", calls[CALL_RUNTIME] + calls[CALL_DRIVER],
	       number(get(expected, "runtime"), "count"));
	/* Old traces mark steps as operators. */
	EXPECT("operators and annotations",
	       calls[CALL_OP] + ranges[RANGE_USER] + ranges[RANGE_STEP],
	       number(counts, "cpu_op") + number(counts, "user_annotation"));
	EXPECT("Python functions", calls[CALL_PYTHON], number(counts, "python_function"));
	EXPECT("syncs", calls[CALL_SYNC], number(counts, "cuda_sync"));
	EXPECT("device annotations", ranges[RANGE_DEVICE], number(counts, "gpu_user_annotation"));
}

static void check_source(const struct record *record, struct str expected, const char *file)
{
	const struct session *session = record->sink.session;
	const struct source *source = &session->sources.at[0];
	struct str distributed = get(expected, "distributed");
	struct str left = get(expected, "devices");
	size_t kernels = (size_t)number(get(expected, "kernels"), "count");

	EXPECT("events", session->losses.at[0].count[LOSS_seen], number(expected, "n_events"));
	EXPECT("dropped", session->losses.at[0].count[LOSS_dropped], 0);
	EXPECT("malformed", session->losses.at[0].count[LOSS_malformed], 0);
	EXPECT("truncated", source->truncated, false);
	EXPECT("no GPU", source->no_device_activity, kernels == 0);
	if (distributed.len > 4) {
		EXPECT("rank", source->rank, number(distributed, "rank"));
		EXPECT("ranks", source->world_size, number(distributed, "world_size"));
	}
	if (number(expected, "baseTimeNanoseconds") > 0)
		EXPECT("base", source->utc_offset_ns, number(expected, "baseTimeNanoseconds"));
	EXPECT("clock", source->has_utc,
	       number(expected, "baseTimeNanoseconds") > 0 ||
		       source->first_ns > 1000000000000000000);
	for (size_t i = 0; i < session->devices.count && left.len > 4; i++) {
		const char *name = session_text(session, session->devices.at[i].name);

		if (*name)
			cr_expect_not_null(str_find(left, name), "%s: %s", file, name);
	}
}

static void check_file(const char *folder, const char *file)
{
	OWN(record_freep) struct record *record = record_new();
	OWN(own_freep) char *text = NULL;
	char path[1024];
	struct err err = { 0 };
	struct str expected;
	uint32_t source;

	OWN(input_closep) struct input *input = NULL;

	(void)snprintf(path, sizeof(path), "%s/expected/%s", folder, file);
	text = read_text(path, &expected.len);
	expected.at = text;
	expected = get(expected, "expected");
	(void)snprintf(path, sizeof(path), "%s/kineto/%.*s", folder,
		       (int)(strlen(file) - strlen("kineto__") - strlen(".json")), file + 8);
	cr_assert_eq(input_open(path, &input, &err), 0, "%s", err.line);
	source = session_source(record->sink.session, reader_kineto.name, path);
	cr_assert_eq(reader_kineto.read(input, &record->sink, source, &err), 0, "%s", err.line);
	check_ops(record, expected, file);
	check_host(record, expected, file);
	check_source(record, expected, file);
}

Test(kineto_public, every_file_gives_the_values_computed_elsewhere)
{
	const char *folder = FOLDER;
	char path[1024];
	DIR *dir;
	struct dirent *entry;

	(void)snprintf(path, sizeof(path), "%s/expected", folder);
	dir = opendir(path);
	if (!dir) {
		folder = FOLDER_OF_WORKTREE;
		(void)snprintf(path, sizeof(path), "%s/expected", folder);
		dir = opendir(path);
	}
	if (!dir)
		cr_skip_test("the folder is not here");
	while ((entry = readdir(dir))) {
		if (str_starts(str_of(entry->d_name), "kineto__"))
			check_file(folder, entry->d_name);
	}
	(void)closedir(dir);
}
