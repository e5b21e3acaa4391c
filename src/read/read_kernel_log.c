/*
 * Kernel logs: dmesg, journalctl, kern.log, records of /dev/kmsg. A mark for
 * each fault; of all other lines only their number and their times are kept.
 *
 * Time. A file is a clock of its own: its zero is its first stamp. Stamps with
 * a zone place it in UTC; seconds since boot and local times do not.
 */
#include <inttypes.h>
#include <string.h>

#include "know/fault_line.h"
#include "know/kernel_line.h"
#include "model/fault.h"
#include "model/note.h"
#include "read/lines.h"
#include "read/reader.h"

static const int64_t NS_PER_DAY = INT64_C(86400000000000);
/* Lines of several CPUs change places by less. */
static const int64_t REBOOT_NS = 10000000000;
/* Lines that a probe looks at, and the longest that can be one of the kernel. */
enum { PROBE_LINES = 400, KERNEL_LINE_MAX = 16 << 10 };

struct log {
	struct sink *sink;
	struct session *session;
	uint32_t source;
	struct fault_parser parser;
	struct buf memory;
	enum stamp_kind clock; /* of the first stamp; others don't count */
	int64_t zero_ns, last_ns, resolution_ns;
	int64_t year_ns; /* of stamps without a year: full years since the first */
	int64_t last_raw_ns;
	bool has_sequence;
	uint64_t sequence;
	int64_t lines, framed, faults, broken, unstamped, other_clock;
	int64_t stepped_back, reboots, suppressed, lost_records;
};

/* Time of the line on the file's clock. False: the line has none. */
static bool time_of(struct log *log, const struct kernel_line *line)
{
	int64_t ns = line->stamp_ns;

	if (line->stamp == STAMP_NONE)
		return false;
	if (log->clock == STAMP_NONE) {
		log->clock = line->stamp;
		log->zero_ns = log->last_raw_ns = ns;
		log->resolution_ns = line->resolution_ns;
	}
	if (line->stamp != log->clock) {
		log->other_clock++;
		return false;
	}
	/* December, then January. */
	if (line->stamp == STAMP_YEARLESS && ns < log->last_raw_ns - 180 * NS_PER_DAY &&
	    log->year_ns < 100 * 366 * NS_PER_DAY)
		log->year_ns += 366 * NS_PER_DAY;
	/* Seconds since boot begin again: how long the machine was off is not
	 * told, so the new run follows the old one at once. */
	if (line->stamp == STAMP_BOOT && ns < log->last_raw_ns - REBOOT_NS) {
		log->zero_ns = ns - log->last_ns;
		log->reboots++;
	}
	log->last_raw_ns = ns;
	ns = ns - log->zero_ns + log->year_ns;
	log->stepped_back += ns < log->last_ns;
	log->last_ns = ns;
	if (line->resolution_ns > log->resolution_ns)
		log->resolution_ns = line->resolution_ns;
	return true;
}

/* "nv_printf: 12 callbacks suppressed", "Suppressed 12 messages from ...". */
static int64_t suppressed_in(struct str message)
{
	const char *end = str_find(message, " callbacks suppressed"), *at;
	uint64_t count;

	if (!end || end == message.at)
		return 0;
	for (at = end; at > message.at && at[-1] != ' '; at--)
		;
	return str_to_u64((struct str){ at, (size_t)(end - at) }, &count) && count < INT32_MAX
		       ? (int64_t)count
		       : 0;
}

static void count_line(struct log *log, const struct kernel_line *line)
{
	log->lines++;
	log->framed += line->framed && (line->kernel || line->foreign);
	log->suppressed += suppressed_in(line->message);
	if (!line->has_sequence)
		return;
	if (log->has_sequence && line->sequence > log->sequence + 1 &&
	    line->sequence - log->sequence < INT32_MAX)
		log->lost_records += (int64_t)(line->sequence - log->sequence - 1);
	log->has_sequence = true;
	log->sequence = line->sequence;
}

static int put(struct log *log, struct fault *fault, const struct kernel_line *line, bool has_time,
	       int64_t number, struct err *err)
{
	fault->has_time = has_time;
	fault->time_ns = log->last_ns;
	fault->line = number;
	fault->have |= FAULT_HAS(FAULT_LINE);
	if (line && line->has_day) {
		fault->day_s = line->day_s;
		fault->have |= FAULT_HAS(FAULT_DAY_S);
	}
	if (fault->kind != FAULT_IDENTITY && fault->kind != FAULT_DRIVER) {
		log->faults++;
		log->unstamped += !has_time;
	}
	return fault_push(log->sink, log->source, fault, err);
}

static int take_line(struct log *log, struct str text, int64_t number, struct err *err)
{
	struct kernel_line line;
	struct fault fault;
	bool has_time;

	/* Further fields of a /dev/kmsg record. */
	if (log->has_sequence && text.len && *text.at == ' ')
		return 0;
	if (!str_trim(text).len)
		return 0;
	kernel_line_parse(text, &log->memory, &line);
	count_line(log, &line);
	has_time = time_of(log, &line);
	if (line.message.len > KERNEL_LINE_MAX)
		line.message.len = KERNEL_LINE_MAX;
	switch (fault_line_parse(&log->parser, line.message, &fault)) {
	case FAULT_LINE_FAULT:
		return put(log, &fault, &line, has_time, number, err);
	case FAULT_LINE_BROKEN:
		log->broken++;
		return 0;
	default:
		return 0;
	}
}

static void note_clock(struct log *log)
{
	static const char *const what[] = {
		[STAMP_NONE] = NOTE_NO_STAMPS,
		[STAMP_BOOT] = NOTE_SINCE_BOOT,
		[STAMP_LOCAL] = NOTE_LOCAL_TIME,
		[STAMP_YEARLESS] = NOTE_YEARLESS,
	};
	struct source *source = &log->session->sources.at[log->source];

	if (log->clock == STAMP_UTC) {
		source->has_utc = true;
		source->utc_offset_ns = log->zero_ns;
		/* Lines are stamped when they are printed or received: no better
		 * than what is written, and no better than a millisecond. */
		source->mapping_error_ns =
			log->resolution_ns > 1000000 ? log->resolution_ns : 1000000;
		return;
	}
	session_note(log->session, log->source, NOTE_LOG_CLOCK, what[log->clock]);
}

static void note_loss(struct log *log)
{
	if (log->unstamped && log->clock != STAMP_NONE)
		session_note(log->session, log->source, NOTE_LOG_UNSTAMPED, log->unstamped);
	if (log->stepped_back)
		session_note(log->session, log->source, NOTE_LOG_BACK, log->stepped_back);
	if (log->reboots)
		session_note(log->session, log->source, NOTE_LOG_STARTS, log->reboots);
	if (log->suppressed)
		session_note(log->session, log->source, NOTE_LOG_KEPT_BACK, log->suppressed);
	if (log->lost_records)
		session_note(log->session, log->source, NOTE_LOG_OVERWRITTEN, log->lost_records);
	session_loss(log->session, log->source, LOSS_dropped, log->lost_records);
	session_loss(log->session, log->source, LOSS_malformed, log->broken);
}

static int finish(struct log *log, struct input *input, struct err *err)
{
	if (input_truncated(input))
		log->session->sources.at[log->source].truncated = true;
	session_loss(log->session, log->source, LOSS_seen, log->lines);
	if (!log->framed && !log->faults && !log->broken)
		return err_set(err, ERR_FORMAT, "%s: holds no line of a kernel log",
			       input_name(input));
	note_clock(log);
	note_loss(log);
	return 0;
}

static int kernel_log_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct log log = { .sink = sink, .session = sink->session, .source = source };
	struct lines lines = { .input = input };
	struct fault last;
	struct str text;
	int got;

	sink->session->sources.at[source].accelerator =
		intern_text(sink->session->strings, "NVIDIA");
	while ((got = lines_next(&lines, &text, err)) > 0) {
		got = take_line(&log, text, lines.number, err);
		if (got < 0)
			break;
	}
	if (got >= 0 && fault_line_end(&log.parser, &last) == FAULT_LINE_FAULT)
		got = put(&log, &last, NULL, false, lines.number, err);
	if (got >= 0)
		got = finish(&log, input, err);
	lines_done(&lines);
	buf_done(&log.memory);
	return got < 0 ? got : 0;
}

/* Sure: a line of the driver. Fairly: lines that only the kernel writes. */
static int kernel_log_probe(const char *at, size_t len)
{
	struct buf decoded = { 0 }, memory = { 0 };
	struct str text = lines_probe_text(at, len, &decoded);
	struct fault_parser parser = { 0 };
	int lines = 0, kernel = 0, faults = 0;

	while (text.at && text.len && lines < PROBE_LINES) {
		struct str line = str_cut(&text, '\n');
		struct kernel_line parsed;
		struct fault fault;

		if (!str_trim(line).len || line.len > KERNEL_LINE_MAX)
			continue;
		lines++;
		kernel_line_parse(line, &memory, &parsed);
		kernel += parsed.kernel;
		faults += fault_line_parse(&parser, parsed.message, &fault) != FAULT_LINE_NONE;
	}
	buf_done(&decoded);
	buf_done(&memory);
	if (faults)
		return 85;
	if (kernel * 2 > lines)
		return 60;
	return kernel ? 30 : 0;
}

const struct reader reader_kernel_log = {
	.name = "kernel_log",
	.title = "kernel log (dmesg, journalctl, kern.log)",
	.probe = kernel_log_probe,
	.read = kernel_log_read,
};
