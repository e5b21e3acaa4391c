/*
 * A recorder between libsonde-inject.so and the CUPTI of a program:
 *
 *	sonde run -- env LD_PRELOAD=.../librecord-cupti.so RECORD_CUPTI=LOG PROGRAM...
 *
 * The log is as cupti_log.h has it, of RECORD_CUPTI_KIB (4096) at most; a second process that
 * uses CUPTI writes LOG.PID. It is a mapped file: a program that is killed leaves what
 * it had, and one that closes descriptors that it does not know loses none.
 *
 * libsonde-inject.so finds CUPTI's functions by dlsym, so this has a dlsym of its own, which
 * gives it wrappers and is the real one to everybody else. An audit library would do as
 * well, but its frames are in a link namespace of their own, where a call stack that is taken in a
 * callback would end.
 *
 * The lock is never held while CUPTI or libsonde-inject.so is called.
 */
#include "fake/cupti_log.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "dlsym below is written for x86-64"
#endif

void *record_pick(void *handle, const char *name, void *caller)
	__attribute__((visibility("hidden")));
extern void *record_real_dlsym __attribute__((visibility("hidden")));

/* The caller matters to the real one (RTLD_NEXT): it is gone to, not called. */
__asm__(".text\n.globl dlsym\n.type dlsym,@function\n"
	"dlsym:\n"
	"	pushq %rdi\n	pushq %rsi\n	subq $8,%rsp\n"
	"	movq 24(%rsp),%rdx\n"
	"	call record_pick\n"
	"	addq $8,%rsp\n	popq %rsi\n	popq %rdi\n"
	"	testq %rax,%rax\n	je 1f\n	ret\n"
	"1:	jmp *record_real_dlsym(%rip)\n"
	".size dlsym,.-dlsym\n");

void *record_real_dlsym;

static const struct {
	const char *name, *spec;
} calls[] = {
#define X(name, spec) { #name, spec },
	CUPTI_LOG_SPECS(X)
#undef X
};

static cupti_any_fn *real[CALL_COUNT];
static uint32_t (*next_record)(uint8_t *buffer, size_t valid, void **record);
static cupti_callback_fn *their_callback;
static cupti_buffer_asked *their_asked;
static cupti_buffer_done *their_done;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *log_at; /* NULL: not open, or closed */
static size_t used, room, group;
static bool tried, full;
static uint64_t left_out;
static pid_t owner;
static int64_t start_ns;
static char log_path[512];
static uint32_t strides[CUPTI_LOG_KINDS];

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
	va_list args;
	int n;

	if (used >= room)
		return;
	va_start(args, fmt);
	n = vsnprintf(log_at + used, room - used, fmt, args);
	va_end(args);
	used += n > 0 ? (size_t)n : 0; /* beyond `room`: did not fit */
}

static void put_hex(const uint8_t *at, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";

	while (bytes && !at[bytes - 1])
		bytes--;
	if (used + 2 * bytes + 1 >= room) {
		used = room;
		return;
	}
	for (size_t i = 0; i < bytes; i++) {
		log_at[used++] = digits[at[i] >> 4];
		log_at[used++] = digits[at[i] & 15];
	}
}

/* CUPTI's pointers are believed; those of the program's parameters are not. */
static void put_text(const char *text)
{
	size_t len = text ? strnlen(text, CUPTI_LOG_NAME_BYTES - 1) : 0;

	put(" \"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		put(c <= ' ' || c == '"' || c == '%' || c >= 127 ? "%%%02x" : "%c", c);
	}
	put("\"");
}

/* With the lock. The file is as long as it may become: its end is cut off at exit. */
static void open_log(int64_t now_ns)
{
	const char *path = getenv("RECORD_CUPTI"), *kib = getenv("RECORD_CUPTI_KIB");
	const char *trace = getenv("SONDE_TRACE");
	int fd;

	tried = true;
	owner = getpid();
	start_ns = now_ns;
	room = (kib ? strtoul(kib, NULL, 10) : 4096) << 10;
	(void)snprintf(log_path, sizeof(log_path), "%s", path ? path : "cupti.log");
	fd = open(log_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		(void)snprintf(log_path, sizeof(log_path), "%.480s.%d", path ? path : "cupti.log",
			       owner);
		fd = open(log_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return;
	if (ftruncate(fd, (off_t)room) == 0)
		log_at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (log_at == MAP_FAILED)
		log_at = NULL;
	if (!log_at)
		return;
	room -= room > 64 ? 64 : room; /* for the last lines */
	put("sonde-cupti-log 1\nstart %ld %ld %d %d\ntrace", start_ns, clock_ns(CLOCK_REALTIME),
	    owner, (int)gettid());
	put_text(trace ? trace : "");
	put("\n");
}

/* Lines that belong together are written whole or not at all. */
static bool begin(char kind, int64_t ns)
{
	/* In a forked child the lock may be taken for ever. */
	if (__atomic_load_n(&owner, __ATOMIC_RELAXED) && owner != getpid())
		return false;
	pthread_mutex_lock(&lock);
	if (!tried)
		open_log(ns);
	group = used;
	left_out += full;
	if (!log_at || full) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	put("%c %ld %d", kind, ns > start_ns ? ns - start_ns : 0, (int)gettid());
	return true;
}

static void end(void)
{
	put("\n");
	if (used >= room) {
		full = true;
		left_out++;
		memset(log_at + group, 0, room - group);
		used = group + 5;
		memcpy(log_at + group, "full\n", 5);
	}
	pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void close_log(void)
{
	pthread_mutex_lock(&lock);
	if (log_at && owner == getpid()) {
		used += (size_t)snprintf(log_at + used, 32, "end %lu\n", left_out);
		log_at = NULL; /* nobody writes any more */
		(void)!truncate(log_path, (off_t)used);
	}
	pthread_mutex_unlock(&lock);
}

static void put_in(const char *spec, const uintptr_t *args)
{
	const struct cupti_pc_params *pc = (const void *)args[0];
	const struct cupti_crc_params *crc = (const void *)args[0];

	for (int i = 0; spec[i]; i++) {
		if (spec[i] == 'u')
			put(" %x", (uint32_t)args[i]);
		else if (spec[i] == 'y')
			put(" %x", (uint8_t)args[i]);
		else if (spec[i] == 'p')
			put(" %lx", args[i]);
		else if (spec[i] == 'v')
			put(" %x", *(const uint8_t *)args[i]);
		else if (strchr("knND", spec[i]))
			put(" %lx", (uintptr_t)pc->context);
		else if (spec[i] == 'C')
			put(" %lx", crc->cubin_bytes);
	}
}

static void put_samples(const struct cupti_pc_data *data)
{
	size_t count = data->count < data->room ? data->count : data->room;

	put(" > %lx %lx %lx %lx %lx %x", data->total, data->dropped, count, data->remaining,
	    data->other_kernels, data->hardware_full);
	for (size_t i = 0; i < count; i++) {
		const struct cupti_pc *at = &data->at[i];

		put("\np %lx %lx", at->offset, at->cubin_crc);
		put_text(at->function);
		for (size_t k = 0; k < at->stall_count && k < CUPTI_LOG_REASONS; k++)
			put(" %x:%x", at->stalls[k].reason, at->stalls[k].samples);
	}
}

static void put_out(const char *spec, const uintptr_t *args)
{
	const struct cupti_pc_params *pc = (const void *)args[0];

	for (int i = 0; spec[i]; i++) {
		const void *out = (const void *)args[i];

		if (spec[i] == 'U')
			put(" > %x", *(const uint32_t *)out);
		else if (spec[i] == 'Z')
			put(" > %lx", *(const size_t *)out);
		else if (spec[i] == 'C')
			put(" > %lx", ((const struct cupti_crc_params *)out)->crc);
		else if (spec[i] == 'n')
			put(" > %lx", *pc->u.counts);
		else if (spec[i] == 'D')
			put_samples(pc->u.data);
		if (spec[i] == 'T') {
			put(" >");
			put_text(*(const char *const *)out);
		}
		for (uint64_t k = 0; spec[i] == 'N' && k < pc->u.count; k++) {
			put("%s %x", k ? "" : " >", pc->v.indices[k]);
			put_text(pc->names[k]);
		}
	}
}

/* Where process_vm_readv is filtered. */
static bool peek_file(uintptr_t at, void *ret, size_t bytes)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	bool got = fd >= 0 && pread(fd, ret, bytes, (off_t)at) == (ssize_t)bytes;

	if (fd >= 0)
		(void)close(fd);
	return got;
}

/* Of the program's memory, if there is some at that place. */
static bool peek(uintptr_t at, void *ret, size_t bytes)
{
	struct iovec here = { ret, bytes }, there = { (void *)at, bytes };
	ssize_t got = at ? process_vm_readv(getpid(), &here, 1, &there, 1, 0) : 0;

	return got == (ssize_t)bytes || (got < 0 && errno != EFAULT && peek_file(at, ret, bytes));
}

static void put_parameter(const void *params, size_t i)
{
	uintptr_t word, pointed;

	if (!peek((uintptr_t)params + i * sizeof(word), &word, sizeof(word)) || !params)
		put(" -:-");
	else if (!peek(word, &pointed, sizeof(pointed)))
		put(" %lx:-", word);
	else
		put(" %lx:%lx", word, pointed);
}

static void put_call(uint32_t domain, uint32_t cbid, const struct cupti_callback *call)
{
	char symbol[256] = "";
	uint32_t result = 0;

	if (call->site == CUPTI_SITE_EXIT)
		(void)peek((uintptr_t)call->result, &result, sizeof(result));
	/* Not that of others: they leave what was there. */
	for (size_t i = 0; call->symbol && i + 1 < sizeof(symbol); i++)
		if (!peek((uintptr_t)call->symbol + i, &symbol[i], 1) || !symbol[i])
			break;
	symbol[sizeof(symbol) - 1] = 0;
	put(" %u %u %u %x %lx %x %x", domain, cbid, call->site, call->correlation,
	    (uintptr_t)call->context, call->context_id, result);
	put_parameter(call->params, 0);
	put_parameter(call->params, 1);
	put_text(symbol);
}

static void put_resource(uint32_t cbid, const struct cupti_resource *resource)
{
	const struct cupti_module *module = resource->descriptor;

	put(" %u %lx %lx", cbid, (uintptr_t)resource->context, (uintptr_t)resource->stream);
	if ((cbid == CUPTI_MODULE_LOADED || cbid == CUPTI_MODULE_UNLOAD) && module)
		put(" %x %lx", module->id, module->bytes);
}

static void on_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
	bool resource = domain == CUPTI_DOMAIN_RESOURCE;
	int saved_errno = errno;

	if (data && begin(resource ? 'm' : 'b', clock_ns(CLOCK_MONOTONIC))) {
		if (resource)
			put_resource(cbid, data);
		else
			put_call(domain, cbid, data);
		end();
	}
	errno = saved_errno;
	their_callback(user, domain, cbid, data);
}

static void on_asked(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	their_asked(ret_buffer, ret_bytes, ret_records);
	if (begin('a', now)) {
		put(" %lx %lu", (uintptr_t)*ret_buffer, *ret_bytes);
		end();
	}
}

/* Length of the record; 0: there is none. CUPTI is asked once for each kind, without
 * the lock. */
static size_t stride(uint8_t *buffer, size_t valid, size_t at, bool *ret_new)
{
	void *record = buffer + at;
	uint32_t kind;
	size_t bytes;

	memcpy(&kind, buffer + at, sizeof(kind));
	if (kind >= CUPTI_LOG_KINDS)
		return 0;
	bytes = __atomic_load_n(&strides[kind], __ATOMIC_RELAXED);
	if (bytes)
		return at + bytes <= valid ? bytes : 0;
	if (next_record(buffer, valid, &record) == 0 && (uint8_t *)record > buffer + at)
		bytes = (size_t)((uint8_t *)record - (buffer + at));
	else
		bytes = valid - at;
	if (bytes > CUPTI_LOG_RECORD_BYTES)
		return 0;
	__atomic_store_n(&strides[kind], bytes, __ATOMIC_RELAXED);
	*ret_new = true;
	return bytes;
}

/* Who a card is is nobody's business: its UUID is made one of another's. */
static void put_record(const uint8_t *record, size_t bytes)
{
	uint8_t device[CUPTI_LOG_RECORD_BYTES];
	uint32_t kind;
	uint64_t name;
	size_t at;

	memcpy(&kind, record, sizeof(kind));
	if (kind == CUPTI_KIND_DEVICE && bytes >= sizeof(struct cupti_device)) {
		memcpy(device, record, bytes);
		memset(device + offsetof(struct cupti_device, uuid), 0x11,
		       sizeof(((struct cupti_device *)0)->uuid));
		device[offsetof(struct cupti_device, uuid)] =
			(uint8_t)record[offsetof(struct cupti_device, id)];
		record = device;
	}
	put("\nr ");
	put_hex(record, bytes);
	at = cupti_log_name_at(kind);
	if (!at || at + sizeof(name) > bytes)
		return;
	memcpy(&name, record + at, sizeof(name));
	if (name)
		put_text((const char *)(uintptr_t)name);
}

static void on_done(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool told[CUPTI_LOG_KINDS] = { 0 };
	size_t count = 0, step;

	for (size_t at = 0; buffer && at + 8 <= valid; at += step, count++) {
		bool is_new = false;

		step = stride(buffer, valid, at, &is_new);
		if (!step)
			break;
		told[buffer[at] % CUPTI_LOG_KINDS] |= is_new;
	}
	if (begin('d', now)) {
		put(" %lx %lu %lu %lu", (uintptr_t)buffer, bytes, valid, count);
		for (size_t at = 0, i = 0; i < count; i++, at += step) {
			bool is_new;

			step = stride(buffer, valid, at, &is_new);
			if (told[buffer[at] % CUPTI_LOG_KINDS])
				put("\ns %u %lu", buffer[at], step);
			told[buffer[at] % CUPTI_LOG_KINDS] = false;
			put_record(buffer + at, step);
		}
		end();
	}
	their_done(context, stream, buffer, bytes, valid);
}

/* Whoever else subscribes, through libsonde-inject.so's step back, is not recorded. */
static void substitute(enum cupti_call call, uintptr_t *args)
{
	if (call == CALL_cuptiSubscribe && !their_callback) {
		their_callback = (cupti_callback_fn *)args[1];
		args[1] = (uintptr_t)on_callback;
	} else if (call == CALL_cuptiActivityRegisterCallbacks && !their_asked) {
		their_asked = (cupti_buffer_asked *)args[0];
		their_done = (cupti_buffer_done *)args[1];
		args[0] = (uintptr_t)on_asked;
		args[1] = (uintptr_t)on_done;
	}
}

static uint32_t called(enum cupti_call call, uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s)
{
	uintptr_t args[CUPTI_LOG_ARGS] = { p, q, r, s };
	int64_t begun, now;
	uint32_t result;

	substitute(call, args);
	begun = clock_ns(CLOCK_MONOTONIC);
	result = real[call](args[0], args[1], args[2], args[3]);
	now = clock_ns(CLOCK_MONOTONIC);
	if (begin('c', now)) {
		put(" %ld %s %u", now - begun, calls[call].name, result);
		put_in(calls[call].spec, args);
		if (!result)
			put_out(calls[call].spec, args);
		end();
	}
	return result;
}

#define X(name, spec)                                                                 \
	static uint32_t on_##name(uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s) \
	{                                                                             \
		return called(CALL_##name, p, q, r, s);                               \
	}
CUPTI_LOG_SPECS(X)
#undef X

static cupti_any_fn *const wrappers[] = {
#define X(name, spec) on_##name,
	CUPTI_LOG_SPECS(X)
#undef X
};

/* What dlsym gives; NULL: what it always gave. */
void *record_pick(void *handle, const char *name, void *caller)
{
	Dl_info info;
	void *found;

	if (!record_real_dlsym)
		record_real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (strncmp(name, "cupti", 5) || !dladdr(caller, &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, "libsonde-inject"))
		return NULL;
	found = ((void *(*)(void *, const char *))record_real_dlsym)(handle, name);
	if (!strcmp(name, "cuptiActivityGetNextRecord"))
		*(void **)(void *)&next_record = found;
	for (size_t i = 0; found && i < CALL_COUNT; i++) {
		if (strcmp(name, calls[i].name))
			continue;
		*(void **)(void *)&real[i] = found;
		return (void *)(uintptr_t)wrappers[i];
	}
	return found;
}
