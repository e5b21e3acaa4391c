/*
 * A recorder between a program and NVIDIA's management library: an audit library
 * of the dynamic linker, for programs that link the library as for those that
 * open it.
 *
 *	RECORD_NVML=log LD_AUDIT=.../librecord-nvml.so nvidia-smi dmon -c 3
 *
 * One line for each call, in order:
 *
 *	NAME IN... = STATUS NANOSECONDS OUT...
 *
 * IN and OUT follow the function's spec (nvml_spec.h): dN device N, uX numbers,
 * >HEX and =HEX structures as they lie in memory, "TEXT", cN counts, A rows,
 * F fields, M GPM values. Of functions without a spec the name, status and
 * cost are kept. The log is opened anew for each line: a program may close
 * descriptors that it does not know.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fake/nvml_spec.h"

enum { SLOTS = 512, DEVICES = 256, LINE_BYTES = 65536 };

typedef uintptr_t (*any_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static struct {
	const char *name;
	const char *spec; /* NULL: not known */
	any_fn real;
} slots[SLOTS];
static int slot_count;
static uintptr_t devices[DEVICES];
static int device_count;
static char line[LINE_BYTES];
static size_t used;

static const struct {
	const char *name, *spec;
} specs[] = {
#define X(name, spec) { #name, spec },
	NVML_SPECS(X)
#undef X
};

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line + used, sizeof(line) - used, fmt, args);
	va_end(args);
	if (n > 0)
		used += (size_t)n < sizeof(line) - used ? (size_t)n : sizeof(line) - used - 1;
}

static void put_hex(const void *at, size_t bytes)
{
	const unsigned char *byte = at;

	for (size_t i = 0; i < bytes; i++)
		put("%02x", byte[i]);
}

static void put_text(const char *text)
{
	put("\"");
	for (; *text; text++)
		put(*text <= ' ' || *text == '"' || *text == '%' ? "%%%02x" : "%c",
		    (unsigned char)*text);
	put("\"");
}

static int device_id(uintptr_t device)
{
	for (int i = 0; i < device_count; i++)
		if (devices[i] == device)
			return i;
	if (device_count == DEVICES)
		return DEVICES;
	devices[device_count] = device;
	return device_count++;
}

static uint32_t u32_at(uintptr_t at, size_t offset)
{
	uint32_t value = 0;

	if (at)
		memcpy(&value, (const char *)at + offset, 4);
	return value;
}

static void put_in(const char *spec, const uintptr_t *args)
{
	int arg = 0;

	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++) {
		switch (*at) {
		case 'd':
			put(" d%d", device_id(args[arg]));
			break;
		case 'u':
			put(" u%x", (unsigned)args[arg]);
			break;
		case 'U':
			put(" U%lu", (unsigned long)args[arg]);
			break;
		case 't':
			put(" t");
			put_text((const char *)args[arg]);
			break;
		case 'c':
			put(" c%u", u32_at(args[arg], 0));
			break;
		case 's':
			arg++;
			break;
		default:
			break;
		}
	}
}

/* Place of the argument of kind `kind`; -1. */
static int arg_of(const char *spec, char kind)
{
	int arg = 0;

	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++) {
		if (*at == kind)
			return arg;
		arg += *at == 's';
	}
	return -1;
}

static void put_gpm(uintptr_t request)
{
	uint32_t count = u32_at(request, 4);

	put(" M");
	for (uint32_t i = 0; i < count; i++) {
		double value;

		memcpy(&value, (const char *)request + 24 + (size_t)i * 40 + 8, 8);
		put("%s%u:%u:%.17g", i ? "," : "", u32_at(request, 24 + (size_t)i * 40),
		    u32_at(request, 24 + (size_t)i * 40 + 4), value);
	}
}

static void put_uses(uintptr_t request)
{
	uint32_t count = u32_at(request, 4);
	const void *rows;

	memcpy(&rows, (const char *)request + 16, sizeof(rows));
	put(" P%u:", count);
	if (rows)
		put_hex(rows, (size_t)count * 40);
}

static void put_out(const char *spec, const uintptr_t *args)
{
	int arg = 0, counted = arg_of(spec, 'c');
	uint32_t count = counted >= 0 ? u32_at(args[counted], 0) : 0;

	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++) {
		const void *out = (const void *)args[arg];

		switch (*at) {
		case '>':
		case '=':
			put(" %c", *at);
			if (out)
				put_hex(out, spec_bytes(at));
			break;
		case 's':
			put(" ");
			put_text(out);
			arg++;
			break;
		case 'D':
			put(" D%d", device_id(*(const uintptr_t *)out));
			break;
		case 'c':
			put(" c%u", count);
			break;
		case 'A':
			put(" A");
			if (out)
				put_hex(out, strtoul(at + 1, NULL, 10) * count);
			break;
		case 'F':
			put(" F");
			put_hex(out, (size_t)args[arg - 1] * 40);
			break;
		case 'I':
			put(" I");
			put_hex(out, 68);
			break;
		case 'P':
			put_uses(args[arg]);
			break;
		case 'M':
			put_gpm(args[arg]);
			break;
		default:
			break;
		}
	}
}

static void write_line(void)
{
	const char *path = getenv("RECORD_NVML");
	int fd = open(path ? path : "nvml.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (write(fd, line, used) != (ssize_t)used)
		(void)0;
	(void)close(fd);
}

static int64_t clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uintptr_t called(int slot, const uintptr_t *a)
{
	const char *spec = slots[slot].spec;
	int64_t start_ns, ns;
	uintptr_t ret;
	char asked[1024];

	used = 0;
	put("%s", slots[slot].name);
	if (spec)
		put_in(spec, a);
	(void)snprintf(asked, sizeof(asked), "%.1000s", line);
	start_ns = clock_ns();
	ret = slots[slot].real(a[0], a[1], a[2], a[3], a[4], a[5]);
	ns = clock_ns() - start_ns;
	/* The function may have called another one of these. */
	used = 0;
	put("%s", asked);
	put(" = %d %ld", spec ? (int)ret : 0, (long)ns);
	/* What did not fit is told by its count. */
	if (spec && (int)ret == 7 && arg_of(spec, 'c') >= 0)
		put(" c%u", u32_at(a[arg_of(spec, 'c')], 0));
	else if (spec && !(int)ret)
		put_out(spec, a);
	put("\n");
	write_line();
	return ret;
}

/* 512 functions, as like as eggs but for their number. */
#define SLOT(a, b, c)                                                                       \
	static uintptr_t slot_##a##b##c(uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s, \
					uintptr_t t, uintptr_t u)                           \
	{                                                                                   \
		return called(0##a##b##c, (const uintptr_t[]){ p, q, r, s, t, u });         \
	}
#define NAME(a, b, c) slot_##a##b##c,
#define EIGHT(X, a, b) \
	X(a, b, 0)     \
	X(a, b, 1)     \
	X(a, b, 2)     \
	X(a, b, 3)     \
	X(a, b, 4)     \
	X(a, b, 5)     \
	X(a, b, 6)     \
	X(a, b, 7)
#define SIXTYFOUR(X, a) \
	EIGHT(X, a, 0)  \
	EIGHT(X, a, 1)  \
	EIGHT(X, a, 2) EIGHT(X, a, 3) EIGHT(X, a, 4) EIGHT(X, a, 5) EIGHT(X, a, 6) EIGHT(X, a, 7)
#define ALL(X)          \
	SIXTYFOUR(X, 0) \
	SIXTYFOUR(X, 1) \
	SIXTYFOUR(X, 2) \
	SIXTYFOUR(X, 3) SIXTYFOUR(X, 4) SIXTYFOUR(X, 5) SIXTYFOUR(X, 6) SIXTYFOUR(X, 7)
ALL(SLOT)
static const any_fn wrappers[SLOTS] = { ALL(NAME) };

unsigned la_version(unsigned version);
unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	(void)lmid;
	*cookie = strstr(map->l_name, "libnvidia-ml.so") != NULL;
	return *cookie ? LA_FLG_BINDTO | LA_FLG_BINDFROM : LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *sym, unsigned ndx, uintptr_t *ref, uintptr_t *def,
		       unsigned *flags, const char *name)
{
	uintptr_t at = sym->st_value;
	int i;

	(void)ndx;
	*flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
	if (!*def || *ref || strncmp(name, "nvml", 4))
		return at;
	for (i = 0; i < slot_count; i++)
		if (!strcmp(slots[i].name, name) && slots[i].real == (any_fn)at)
			return (uintptr_t)wrappers[i];
	if (slot_count == SLOTS)
		return at;
	slots[i].name = strdup(name);
	slots[i].real = (any_fn)at;
	for (size_t k = 0; k < sizeof(specs) / sizeof(specs[0]); k++)
		if (!strcmp(specs[k].name, name))
			slots[i].spec = specs[k].spec;
	slot_count++;
	return (uintptr_t)wrappers[i];
}
