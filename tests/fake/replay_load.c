/* replay_load.c - reads a log of CUPTI's: see cupti_log.h. The whole of it is looked at
 * before anything is played. */
#include "fake/replay_cupti.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name, *spec;
} specs[] = {
#define X(name, spec) { #name, spec },
	CUPTI_LOG_SPECS(X)
#undef X
};

enum { LOG_BYTES = 256 << 20 };

static struct cupti_log loaded;

/* Where in the file we are. */
struct scan {
	const char *at, *end; /* of the line */
	uint32_t line;
};

void log_stop(uint32_t line, const char *fmt, ...)
{
	const char *path = getenv("PUPPET_LOG");
	char text[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (line)
		fprintf(stderr, "puppet: %s:%u: %s\n", path ? path : "PUPPET_LOG", line, text);
	else
		fprintf(stderr, "puppet: %s: %s\n", path ? path : "PUPPET_LOG", text);
	_exit(1);
}

/* With the word that it is about. */
static void __attribute__((noreturn))
refuse(const struct scan *in, const char *what, const char *at)
{
	char word[24];
	size_t n = 0;

	for (; at < in->end && *at != ' ' && n + 1 < sizeof(word); at++)
		word[n++] = *at > ' ' && *at < 127 ? *at : '?';
	word[n] = 0;
	log_stop(in->line, "%s: %s", what, word);
}

uint64_t log_key(enum cupti_call call, const uint64_t *in, size_t count)
{
	uint64_t key = 0xcbf29ce484222325ull ^ (uint64_t)call;

	for (size_t i = 0; i < count; i++)
		key = (key ^ in[i] ^ key >> 29) * 0x9e3779b97f4a7c15ull;
	return key;
}

const char *log_text(const char *text, size_t len)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char **texts;
	static size_t count, room;
	const char *found = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = count; i-- > 0 && !found;)
		if (!strncmp(texts[i], text, len) && !texts[i][len])
			found = texts[i];
	if (!found) {
		if (count == room) {
			room = room ? 2 * room : 64;
			texts = realloc(texts, room * sizeof(*texts));
		}
		found = texts[count++] = strndup(text, len);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Room for one more of `bytes`, zeroed. */
static void *grown(void *at, size_t count, size_t bytes)
{
	if (count & (count - 1))
		return at;
	at = realloc(at, (count ? 2 * count : 1) * bytes);
	if (!at)
		log_stop(0, "too large");
	memset((char *)at + count * bytes, 0, (count ? count : 1) * bytes);
	return at;
}

/* The next word is there. */
static bool more(struct scan *in)
{
	while (in->at < in->end && *in->at == ' ')
		in->at++;
	return in->at < in->end;
}

static uint64_t number(struct scan *in, unsigned int base, uint64_t most)
{
	uint64_t value = 0;
	const char *begun;

	if (!more(in))
		log_stop(in->line, "a number is missing");
	for (begun = in->at; in->at < in->end && !strchr(" :", *in->at); in->at++) {
		char c = *in->at;
		unsigned int digit = c >= '0' && c <= '9'   ? (unsigned int)(c - '0')
				     : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
							    : 16;

		if (digit >= base || value > (most - digit) / base)
			refuse(in, "no such number", begun);
		value = value * base + digit;
	}
	if (in->at == begun)
		refuse(in, "no number", begun);
	return value;
}

static uint64_t decimal(struct scan *in, uint64_t most)
{
	return number(in, 10, most);
}

static uint64_t hex(struct scan *in)
{
	return number(in, 16, UINT64_MAX);
}

static uint32_t hex32(struct scan *in)
{
	return (uint32_t)number(in, 16, UINT32_MAX);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *text(struct scan *in)
{
	char room[CUPTI_LOG_NAME_BYTES];
	size_t len = 0;

	if (!more(in) || *in->at != '"')
		log_stop(in->line, "a text is missing");
	for (in->at++; in->at < in->end && *in->at != '"'; in->at++) {
		if (len + 1 == sizeof(room))
			log_stop(in->line, "a text is too long");
		if (*in->at == '%' && in->end - in->at > 2 && hex_digit(in->at[1]) >= 0 &&
		    hex_digit(in->at[2]) >= 0) {
			room[len++] = (char)(hex_digit(in->at[1]) * 16 + hex_digit(in->at[2]));
			in->at += 2;
		} else {
			room[len++] = *in->at;
		}
	}
	if (in->at == in->end)
		log_stop(in->line, "a text has no end");
	in->at++;
	room[len] = 0;
	return log_text(room, strlen(room));
}

static void expect(struct scan *in, char c)
{
	if (!more(in) || *in->at != c)
		log_stop(in->line, "'%c' is missing", c);
	in->at++;
}

static enum cupti_call call_named(struct scan *in)
{
	const char *begun;

	(void)more(in);
	begun = in->at;
	while (in->at < in->end && *in->at != ' ')
		in->at++;
	for (size_t i = 0; i < CALL_COUNT; i++)
		if (strlen(specs[i].name) == (size_t)(in->at - begun) &&
		    !memcmp(specs[i].name, begun, (size_t)(in->at - begun)))
			return (enum cupti_call)i;
	refuse(in, "no such function", begun);
}

static size_t reasons_of(struct scan *in)
{
	size_t count = 0;

	for (; more(in); count++) {
		(void)hex32(in);
		(void)text(in);
	}
	if (count > CUPTI_LOG_REASONS)
		log_stop(in->line, "too many reasons");
	return count;
}

static void read_answer(struct cupti_log *log, struct scan *in, struct log_call *call)
{
	const char *spec = specs[call->call].spec;

	expect(in, '>');
	if (strchr(spec, 'T')) {
		call->text = text(in);
	} else if (*spec == 'N') {
		call->text = in->at;
		call->out = reasons_of(in);
	} else {
		call->out = hex(in);
	}
	if (*spec == 'n' && call->out > CUPTI_LOG_REASONS)
		log_stop(in->line, "too many reasons");
	if (*spec != 'D')
		return;
	call->total[0] = call->out;
	for (size_t i = 1; i < 6; i++)
		call->total[i] = hex(in);
	if (call->total[2] > CUPTI_LOG_PCS)
		log_stop(in->line, "too many PCs");
	call->first_pc = log->pc_count;
	call->pc_count = call->total[2];
}

static void read_call(struct cupti_log *log, struct scan *in, int64_t time_ns)
{
	uint64_t numbers[CUPTI_LOG_ARGS];
	struct log_call *call;
	size_t count = 0;

	log->calls = grown(log->calls, log->call_count, sizeof(*call));
	call = &log->calls[log->call_count++];
	call->line = in->line;
	(void)decimal(in, INT64_MAX);
	call->call = call_named(in);
	call->result = (uint32_t)decimal(in, UINT32_MAX);
	for (const char *at = specs[call->call].spec; *at; at++)
		if (strchr("uypvknNDC", *at))
			numbers[count++] = hex(in);
	call->in = count ? numbers[0] : 0;
	call->key = log_key(call->call, numbers, count);
	if (!call->result && strpbrk(specs[call->call].spec, "UZTnNDC"))
		read_answer(log, in, call);
	if (call->call == CALL_cuptiSubscribe && !log->subscribed_ns)
		log->subscribed_ns = time_ns;
	if (call->call == CALL_cuptiActivityRegisterTimestampCallback && !call->result)
		log->monotonic = true;
}

static void read_pc(struct cupti_log *log, struct scan *in)
{
	struct log_call *call = log->call_count ? &log->calls[log->call_count - 1] : NULL;
	struct log_pc *pc;

	if (!call || call->call != CALL_cuptiPCSamplingGetData ||
	    log->pc_count >= call->first_pc + call->pc_count)
		log_stop(in->line, "a PC that belongs to nothing");
	log->pcs = grown(log->pcs, log->pc_count, sizeof(*pc));
	pc = &log->pcs[log->pc_count++];
	pc->offset = hex(in);
	pc->crc = hex(in);
	pc->function = text(in);
	pc->first = log->stall_count;
	for (; more(in); pc->count++) {
		struct cupti_pc_stall *stall;

		if (pc->count == CUPTI_LOG_REASONS)
			log_stop(in->line, "too many reasons");
		log->stalls = grown(log->stalls, log->stall_count, sizeof(*stall));
		stall = &log->stalls[log->stall_count++];
		stall->reason = hex32(in);
		expect(in, ':');
		stall->samples = hex32(in);
	}
}

static uintptr_t word(struct scan *in)
{
	if (more(in) && *in->at == '-') {
		in->at++;
		return 0;
	}
	return hex(in);
}

static void read_callback(struct scan *in, struct log_event *event)
{
	event->domain = (uint32_t)decimal(in, 2);
	event->cbid = (uint32_t)decimal(in, CALLS_MAX - 1);
	event->call.site = (uint32_t)decimal(in, 1);
	event->call.correlation = hex32(in);
	event->context = hex(in);
	event->call.context_id = hex32(in);
	event->call.result = (void *)(uintptr_t)hex32(in);
	for (size_t i = 0; i < 2; i++) {
		event->words[i] = word(in);
		expect(in, ':');
		event->pointed[i] = word(in);
	}
	event->call.symbol = text(in);
}

static void read_resource(struct scan *in, struct log_event *event)
{
	event->domain = CUPTI_DOMAIN_RESOURCE;
	event->cbid = (uint32_t)decimal(in, CALLS_MAX - 1);
	event->context = hex(in);
	event->stream = hex(in);
	if (!more(in))
		return;
	event->module.id = hex32(in);
	event->module.bytes = hex(in);
}

static void read_done(struct cupti_log *log, struct scan *in, struct log_event *event)
{
	size_t i = log->event_count - 1;

	event->valid = decimal(in, CUPTI_LOG_BUFFER_BYTES);
	event->count = decimal(in, CUPTI_LOG_BUFFER_BYTES / 8);
	event->first = log->record_count;
	while (i-- > 0)
		if (log->events[i].kind == 'a' && log->events[i].buffer == event->buffer)
			break;
	if (i == SIZE_MAX || log->events[i].asked)
		log_stop(in->line, "a buffer that nobody gave");
	if (event->valid > event->bytes)
		log_stop(in->line, "more than the buffer holds");
	log->events[i].asked = 1;
	event->asked = i;
}

static void read_event(struct cupti_log *log, struct scan *in, char kind, int64_t time_ns,
		       uint32_t tid)
{
	struct log_event *event;

	log->events = grown(log->events, log->event_count, sizeof(*event));
	event = &log->events[log->event_count++];
	event->kind = kind;
	event->line = in->line;
	event->time_ns = time_ns;
	event->tid = tid;
	if (kind == 'b')
		read_callback(in, event);
	else if (kind == 'm')
		read_resource(in, event);
	if (kind != 'a' && kind != 'd')
		return;
	event->buffer = hex(in);
	event->bytes = decimal(in, CUPTI_LOG_BUFFER_BYTES);
	if (kind == 'd')
		read_done(log, in, event);
}

static void read_record(struct cupti_log *log, struct scan *in)
{
	struct log_event *event = log->event_count ? &log->events[log->event_count - 1] : NULL;
	uint8_t bytes[CUPTI_LOG_RECORD_BYTES] = { 0 };
	struct log_record *record;
	size_t n = 0;

	if (!event || event->kind != 'd' || log->record_count >= event->first + event->count)
		log_stop(in->line, "a record that belongs to nothing");
	for (more(in); in->at < in->end && *in->at != ' '; in->at += 2, n++) {
		int high = hex_digit(in->at[0]);
		int low = in->end - in->at > 1 ? hex_digit(in->at[1]) : -1;

		if (high < 0 || low < 0 || n == sizeof(bytes))
			refuse(in, "no record", in->at);
		bytes[n] = (uint8_t)(high * 16 + low);
	}
	log->records = grown(log->records, log->record_count, sizeof(*record));
	record = &log->records[log->record_count++];
	memcpy(&record->kind, bytes, sizeof(record->kind));
	record->bytes = record->kind < CUPTI_LOG_KINDS ? log->strides[record->kind] : 0;
	if (record->bytes < n || record->bytes < 8)
		log_stop(in->line, "a record of kind %u, of %u bytes", record->kind, record->bytes);
	record->at = log->byte_count;
	for (size_t i = 0; i < record->bytes; i++) {
		log->bytes = grown(log->bytes, log->byte_count, 1);
		log->bytes[log->byte_count++] = bytes[i];
	}
	record->name = more(in) ? text(in) : NULL;
	log->kernels +=
		record->kind == CUPTI_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_KIND_KERNEL;
}

static void read_stride(struct cupti_log *log, struct scan *in)
{
	uint32_t kind = (uint32_t)decimal(in, CUPTI_LOG_KINDS - 1);
	uint32_t bytes = (uint32_t)decimal(in, CUPTI_LOG_RECORD_BYTES);

	if (bytes < 8)
		log_stop(in->line, "records of %u bytes", bytes);
	log->strides[kind] = bytes;
}

static void read_line(struct cupti_log *log, struct scan *in)
{
	char kind = *in->at++;

	if (in->at < in->end && *in->at != ' ')
		kind = 0;
	if (kind == 's') {
		read_stride(log, in);
	} else if (kind == 'r') {
		read_record(log, in);
	} else if (kind == 'p') {
		read_pc(log, in);
	} else if (kind && strchr("cbmad", kind)) {
		int64_t time_ns = (int64_t)decimal(in, INT64_MAX / 2);
		uint32_t tid = (uint32_t)decimal(in, INT32_MAX);

		if (kind == 'c')
			read_call(log, in, time_ns);
		else
			read_event(log, in, kind, time_ns, tid);
	} else {
		log_stop(in->line, "no line of such a log");
	}
	if (more(in))
		refuse(in, "too much", in->at);
}

static bool begins(const struct scan *in, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(in->end - in->at) >= len && !memcmp(in->at, word, len);
}

/* Lines with a word in front; true: it was the last. */
static bool read_lines(struct cupti_log *log, const char *at, const char *end)
{
	struct scan in = { .line = 1 };
	bool ended = false;

	for (; at < end; at = in.end + 1, in.line++) {
		in.at = at;
		in.end = memchr(at, '\n', (size_t)(end - at));
		if (!in.end)
			return false; /* cut off within it */
		if (in.line == 1 && !begins(&in, "sonde-cupti-log 1"))
			log_stop(1, "no log of CUPTI's, or of another version");
		if (in.line == 1 || in.at == in.end || *in.at == '#' || begins(&in, "trace ") ||
		    begins(&in, "full"))
			continue;
		ended = begins(&in, "end ");
		if (ended)
			continue;
		if (begins(&in, "start ")) {
			in.at += 6;
			log->start_ns = (int64_t)decimal(&in, INT64_MAX / 2);
			log->start_real_ns = (int64_t)decimal(&in, INT64_MAX / 2);
			log->pid = (uint32_t)decimal(&in, INT32_MAX);
			log->tid = (uint32_t)decimal(&in, INT32_MAX);
			continue;
		}
		read_line(log, &in);
	}
	if (!log->tid)
		log_stop(0, "it does not say when it starts");
	return ended;
}

static void load(void)
{
	const char *path = getenv("PUPPET_LOG"), *at = NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat stat;
	size_t bytes = 0;

	if (fd < 0 || fstat(fd, &stat) < 0)
		log_stop(0, "is not there");
	if (stat.st_size > LOG_BYTES)
		log_stop(0, "is too large");
	if (stat.st_size > 0)
		at = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!at || at == MAP_FAILED)
		log_stop(0, "is empty");
	(void)close(fd);
	for (bytes = (size_t)stat.st_size; bytes && !at[bytes - 1]; bytes--)
		; /* of one whose program was killed */
	if (!read_lines(&loaded, at, at + bytes))
		fprintf(stderr, "puppet: %s: cut off\n", path);
}

struct cupti_log *log_now(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, load);
	return &loaded;
}
