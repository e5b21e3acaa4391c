#include "read/smi_log.h"

#include "base/buf.h"
#include "model/note.h"

/* Environment is for settings. A log of a day in which a setting changes with
 * every row keeps this many rows of it and counts the rest. */
static const int64_t ENV_ROWS_MAX = 50000;
static const size_t ENV_VALUE_MAX = 4096;

/* A card has at most seven instances, with ids up to 14. */
enum { PARTS_MAX = 4096, PART_NUMBER_MAX = 64 };

static const int64_t NS_PER_S = 1000000000;
static const int64_t NS_PER_DAY = 86400 * 1000000000LL;

void smi_log_begin(struct smi_log *log, const char *what, struct sink *sink, uint32_t source)
{
	struct source *row = &sink->session->sources.at[source];

	*log = (struct smi_log){
		.sink = sink,
		.session = sink->session,
		.source = source,
		.what = what,
		.step_ns = NS_PER_S,
		.round = -1,
	};
	row->accelerator = intern_text(sink->session->strings, "NVIDIA");
	row->has_utc = false;
}

void smi_log_done(struct smi_log *log)
{
	map_done(&log->seen);
	map_done(&log->env);
	VEC_DONE(&log->known);
	VEC_DONE(&log->absent);
}

static uint32_t string_of(struct smi_log *log, struct str text)
{
	return text.len ? session_string(log->session, text.at, text.len) : 0;
}

/* A name that the table cut short says nothing that could be compared. */
static bool is_whole_name(struct str name)
{
	return name.len && !smi_missing(name) && !str_ends(name, "...");
}

uint32_t smi_log_device(struct smi_log *log, const struct smi_gpu *gpu)
{
	struct device facts = { .scope = DEVICE_OF_SMI,
				.source = log->source,
				.ordinal = gpu->index,
				.memory_bytes = gpu->memory_bytes,
				.cc_major = gpu->cc_major,
				.cc_minor = gpu->cc_minor };
	char bus[32];
	struct smi_known *known;

	if (gpu->uuid.len && !smi_missing(gpu->uuid))
		facts.uuid = string_of(log, gpu->uuid);
	if (gpu->part.len)
		facts.part = string_of(log, gpu->part);
	if (is_whole_name(gpu->name))
		facts.name = string_of(log, gpu->name);
	if (gpu->bus.len && smi_bus(gpu->bus, bus))
		facts.pci_bus = string_of(log, str_of(bus));
	for (size_t i = 0; i < log->known.count; i++) {
		known = &log->known.at[i];
		if (known->index == gpu->index && known->uuid == facts.uuid &&
		    known->bus == facts.pci_bus && known->name == facts.name &&
		    known->part == facts.part)
			return known->device;
	}
	facts.maker = intern_text(log->session->strings, "NVIDIA");
	known = VEC_ADD(&log->known);
	known->index = gpu->index;
	known->uuid = facts.uuid;
	known->bus = facts.pci_bus;
	known->name = facts.name;
	known->part = facts.part;
	known->device = session_device(log->session, &facts);
	return known->device;
}

bool smi_log_part(struct smi_log *log, const struct smi_gpu *gpu, const char *const words[2],
		  const struct str numbers[2], uint32_t *ret_device)
{
	struct smi_gpu part = *gpu;
	struct buf name = { 0 };
	bool valid = log->known.count < PARTS_MAX;

	for (size_t i = 0; i < 2 && valid; i++) {
		int64_t number;

		if (!words[i] || smi_missing(numbers[i]))
			continue;
		valid = str_to_i64(numbers[i], &number) && number >= 0 && number < PART_NUMBER_MAX;
		if (valid)
			buf_printf(&name, "%s%s %d", name.len ? " " : "", words[i], (int)number);
	}
	if (valid && name.len) {
		part.part = (struct str){ name.at, name.len };
		*ret_device = smi_log_device(log, &part);
	} else {
		session_loss(log->session, log->source, LOSS_dropped, 1);
	}
	buf_done(&name);
	return valid && part.part.len;
}

/* Year, month and day of a count of days since 1970; see days_from_date. */
static void date_from_days(int64_t days, int64_t ret_date[3])
{
	int64_t era, of_era, year, of_year, month;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	of_era = days - era * 146097;
	year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	of_year = of_era - (365 * year + year / 4 - year / 100);
	month = (5 * of_year + 2) / 153;
	ret_date[2] = of_year - (153 * month + 2) / 5 + 1;
	ret_date[1] = month < 10 ? month + 3 : month - 9;
	ret_date[0] = year + era * 400 + (ret_date[1] <= 2);
}

/* The stamp in words; of a time without a date only the time. */
static void keep_zero(struct smi_log *log)
{
	int64_t ms = log->zero_local_ns % NS_PER_DAY / 1000000;
	int64_t date[3];
	struct buf text = { 0 };

	date_from_days(log->zero_local_ns / NS_PER_DAY, date);
	if (log->zero_local_ns >= NS_PER_DAY)
		buf_printf(&text, "%04lld-%02lld-%02lld ", (long long)date[0], (long long)date[1],
			   (long long)date[2]);
	buf_printf(&text, "%02lld:%02lld:%02lld.%03lld", (long long)(ms / 3600000),
		   (long long)(ms / 60000 % 60), (long long)(ms / 1000 % 60),
		   (long long)(ms % 1000));
	smi_log_env(log, SESSION_NONE, STR("local time of zero"),
		    (struct str){ text.at, text.len });
	buf_done(&text);
}

int64_t smi_log_stamp(struct smi_log *log, int64_t local_ns)
{
	int64_t time_ns;

	if (!log->has_zero) {
		log->has_zero = true;
		log->zero_local_ns = local_ns;
		keep_zero(log);
	}
	if (__builtin_sub_overflow(local_ns, log->zero_local_ns, &time_ns))
		time_ns = 0;
	if (time_ns < log->last_ns)
		log->stepped_back = true;
	log->last_ns = time_ns;
	return time_ns;
}

void smi_log_new_round(struct smi_log *log)
{
	map_done(&log->seen);
	log->round++;
}

void smi_log_turn(struct smi_log *log, uint64_t key)
{
	if (log->round < 0 || map_find(&log->seen, key))
		smi_log_new_round(log);
	map_put(&log->seen, key, 1);
}

int64_t smi_log_round_time(const struct smi_log *log)
{
	int64_t time_ns;

	if (log->round < 0 || __builtin_mul_overflow(log->round, log->step_ns, &time_ns))
		return 0;
	return time_ns;
}

int smi_log_sample(struct smi_log *log, uint32_t device, uint32_t process, int64_t time_ns,
		   struct sample *sample, struct err *err)
{
	struct source *source = &log->session->sources.at[log->source];
	struct lane lane = { .kind = process == SESSION_NONE ? LANE_BOARD : LANE_PROCESS,
			     .source = log->source,
			     .device = device,
			     .process = process,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };

	sample->lane = session_lane(log->session, &lane);
	sample->time_ns = time_ns;
	if (source->first_ns > source->last_ns)
		source->first_ns = source->last_ns = time_ns;
	source->first_ns = time_ns < source->first_ns ? time_ns : source->first_ns;
	source->last_ns = time_ns > source->last_ns ? time_ns : source->last_ns;
	log->samples++;
	return sink_sample(log->sink, sample, err);
}

uint32_t smi_log_process(struct smi_log *log, int64_t pid, struct str type, struct str name)
{
	uint32_t id = session_process(log->session, log->source, pid);
	struct process *process = &log->session->processes.at[id];
	const char *slash;

	if (!smi_missing(type))
		process->type = string_of(log, type);
	if (smi_missing(name))
		return id;
	slash = memrchr(name.at, '/', name.len);
	if (!slash)
		slash = memrchr(name.at, '\\', name.len);
	if (slash && !process->command)
		process->command = string_of(log, name);
	if (slash) {
		name.len -= (size_t)(slash + 1 - name.at);
		name.at = slash + 1;
	}
	if (!process->name && name.len)
		process->name = string_of(log, name);
	return id;
}

static void keep_env(struct smi_log *log, uint32_t device, struct str key, struct str value)
{
	uint64_t id = (uint64_t)device << 32 | session_string(log->session, key.at, key.len);
	uint64_t *last = map_find(&log->env, id);
	uint32_t text;

	if (!value.len)
		value = STR("");
	if (value.len > ENV_VALUE_MAX)
		value.len = ENV_VALUE_MAX;
	if (last && intern_find(log->session->strings, value.at, value.len, &text) && text == *last)
		return;
	if (log->env_kept >= ENV_ROWS_MAX) {
		log->env_lost++;
		return;
	}
	text = session_string(log->session, value.at, value.len);
	map_put(&log->env, id, text);
	log->env_kept++;
	session_env(log->session, log->source, device, key, value);
}

void smi_log_env(struct smi_log *log, uint32_t device, struct str key, struct str value)
{
	static const struct {
		const char *name, *common;
	} machine[] = {
		{ "driver_version", "driver" }, { "Driver Version", "driver" },
		{ "kmd_version", "driver" },    { "KMD Version", "driver" },
		{ "cuda_version", "cuda" },     { "CUDA Version", "cuda" },
		{ "cuda_umd_version", "cuda" }, { "CUDA UMD Version", "cuda" },
	};

	for (size_t i = 0; i < sizeof(machine) / sizeof(*machine); i++) {
		struct str rest = value;

		/* "13.3 [Deprecated; will be removed ...]" is version 13.3. */
		if (str_is(key, machine[i].name) && !smi_missing(value))
			keep_env(log, SESSION_NONE, str_of(machine[i].common),
				 str_trim(str_cut(&rest, '[')));
	}
	keep_env(log, device, key, value);
}

void smi_log_absent(struct smi_log *log, const char *why)
{
	struct smi_absent *absent;

	for (size_t i = 0; i < log->absent.count; i++) {
		if (!strcmp(log->absent.at[i].why, why)) {
			log->absent.at[i].count++;
			return;
		}
	}
	absent = VEC_ADD(&log->absent);
	absent->why = why;
	absent->count = 1;
}

void smi_log_stray(struct smi_log *log, struct str line)
{
	line = str_trim(line);
	if (!log->strays++)
		log->first_stray =
			session_string(log->session, line.at, line.len < 80 ? line.len : 80);
	session_loss(log->session, log->source, LOSS_dropped, 1);
}

void smi_log_truncated(struct smi_log *log, int64_t bytes)
{
	log->session->sources.at[log->source].truncated = true;
	session_loss(log->session, log->source, LOSS_truncated_bytes, bytes);
}

bool smi_log_put(struct smi_log *log, struct smi_values *values, const struct smi_field *field,
		 struct str text, struct str unit)
{
	const char *why;
	enum smi_put put = smi_values_put(values, field, text, unit, &why);

	if (put == SMI_PUT_MISSING)
		smi_log_absent(log, why);
	if (put == SMI_PUT_MALFORMED)
		session_loss(log->session, log->source, LOSS_malformed, 1);
	return put == SMI_PUT_VALUE;
}

static void note_absent(struct smi_log *log)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < log->absent.count; i++) {
		if (i)
			buf_text(&text, ", ");
		buf_printf(&text, NOTE_COUNTED, (long long)log->absent.at[i].count,
			   log->absent.at[i].why);
	}
	if (text.len)
		session_note(log->session, log->source, NOTE_ABSENT, log->what, text.at);
	buf_done(&text);
}

static void set_interval(struct smi_log *log)
{
	struct source *source = &log->session->sources.at[log->source];

	if (log->has_zero) {
		/* first > last: there were rows, but no sample. */
		int64_t span =
			source->first_ns < source->last_ns ? source->last_ns - source->first_ns : 0;

		source->interval_ns = log->round > 0 && span > 0 ? span / log->round : 0;
		session_note(log->session, log->source, NOTE_LOCAL_CLOCK, log->what);
		if (log->stepped_back)
			session_note(log->session, log->source, NOTE_LOCAL_BACK, log->what);
		return;
	}
	if (log->round < 1 && !log->steps)
		return;
	source->interval_ns = log->step_ns;
	source->interval_assumed = true;
	session_note(log->session, log->source, NOTE_ASSUMED_STEP, log->what,
		     (long long)(log->step_ns / NS_PER_S));
}

int smi_log_end(struct smi_log *log, struct input *input, struct err *err)
{
	struct session *session = log->session;

	if (input_truncated(input))
		session->sources.at[log->source].truncated = true;
	session_loss(session, log->source, LOSS_seen, log->rows);
	if (!log->rows)
		return err_set(err, ERR_FORMAT, "%s: holds no row of nvidia-smi %s%s%s%s%s",
			       input_name(input), log->what, log->hint ? ": " : "",
			       log->hint ? log->hint : "", log->strays ? "; its first line: " : "",
			       session_text(session, log->first_stray));
	set_interval(log);
	note_absent(log);
	if (log->strays)
		session_note(session, log->source, NOTE_STRAYS, log->what, (long long)log->strays,
			     session_text(session, log->first_stray));
	if (log->env_lost)
		session_note(session, log->source, NOTE_SETTINGS_LOST, log->what,
			     (long long)log->env_lost);
	return 0;
}

/* Days since 1970 of a date of the Gregorian calendar. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
	int64_t era, of_era, of_year;

	year -= month <= 2;
	era = (year >= 0 ? year : year - 399) / 400;
	of_era = year - era * 400;
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool make_date(uint64_t year, uint64_t month, uint64_t day, int64_t *ret_ns)
{
	if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31)
		return false;
	*ret_ns = days_from_date((int64_t)year, (int64_t)month, (int64_t)day) * NS_PER_DAY;
	return true;
}

static bool compact_date(struct str text, int64_t *ret_ns)
{
	uint64_t year, month, day;

	return text.len == 8 && str_to_u64((struct str){ text.at, 4 }, &year) &&
	       str_to_u64((struct str){ text.at + 4, 2 }, &month) &&
	       str_to_u64((struct str){ text.at + 6, 2 }, &day) &&
	       make_date(year, month, day, ret_ns);
}

static bool slash_date(struct str text, char slash, int64_t *ret_ns)
{
	struct str y = str_cut(&text, slash), m = str_cut(&text, slash);
	uint64_t year, month, day;

	return str_to_u64(y, &year) && str_to_u64(m, &month) && str_to_u64(text, &day) &&
	       make_date(year, month, day, ret_ns);
}

bool smi_clock(struct str text, int64_t *ret_ns)
{
	struct str h = str_cut(&text, ':'), m = str_cut(&text, ':');
	uint64_t hour, minute;
	int64_t ns;

	if (!str_to_u64(h, &hour) || !str_to_u64(m, &minute) || !str_to_fixed(text, 9, &ns) ||
	    hour > 23 || minute > 59 || ns < 0 || ns > 60 * NS_PER_S)
		return false;
	*ret_ns = (int64_t)(hour * 3600 + minute * 60) * NS_PER_S + ns;
	return true;
}

/* "Mon Nov 30 03:15:15 2026": the words that are left after the day's name. */
static bool word_date(struct str text, int64_t *ret_ns)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct str word[5];
	uint64_t day, year;
	int64_t of_day;
	size_t month = 0;

	for (size_t i = 0; i < 5; i++) {
		text = str_trim(text);
		word[i] = str_cut(&text, ' ');
	}
	while (month < 12 && !str_same(word[1], (struct str){ months + 3 * month, 3 }))
		month++;
	if (text.len || month == 12 || !str_to_u64(word[2], &day) || !smi_clock(word[3], &of_day) ||
	    !str_to_u64(word[4], &year) || !make_date(year, month + 1, day, ret_ns))
		return false;
	*ret_ns += of_day;
	return true;
}

bool smi_stamp(struct str text, int64_t *ret_local_ns)
{
	struct str date, clock;
	int64_t of_day = 0;

	text = str_trim(text);
	if (word_date(text, ret_local_ns))
		return true;
	clock = text;
	date = str_cut(&clock, ' ');
	clock = str_trim(clock);
	if (!compact_date(date, ret_local_ns) && !slash_date(date, '/', ret_local_ns) &&
	    !slash_date(date, '-', ret_local_ns))
		return false;
	if (clock.len && !smi_clock(clock, &of_day))
		return false;
	*ret_local_ns += of_day;
	return true;
}
