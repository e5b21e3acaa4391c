/* spool_text.c - names and lanes of a profiled process. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "collect/spool_process.h"

/* Of a process: call stacks that were named anew, as a function in them had no name yet. */
enum { SITES_ASKED_MAX = 1000 };

static const struct segment_text *text_at(const struct spooled *p, uint64_t text)
{
	const struct segment *layout = p->layout;
	const struct segment_text *at;

	if (!text || text % 4 || text + sizeof(*at) > layout->texts_bytes)
		return NULL;
	at = (const void *)((const char *)p->segment + layout->texts_at + text);
	return at;
}

uint32_t spooled_text(struct spooled *p, uint32_t text)
{
	uint64_t *known = map_find(&p->texts, text);
	const struct segment_text *at;
	uint32_t string;
	size_t len;

	if (known)
		return (uint32_t)*known;
	at = text_at(p, text);
	if (!at)
		return 0;
	len = atomic_load_explicit(&at->len, memory_order_acquire);
	if (!len || len >= TEXT_MAX || text + sizeof(*at) + len > p->layout->texts_bytes)
		return 0;
	string = session_string(p->sink->session, at->at, len);
	map_put(&p->texts, text, string);
	return string;
}

/* "void f<3>(float*)": as Kineto and ncu write kernels. */
static uint32_t demangled(struct session *session, uint32_t mangled)
{
	const char *text = session_text(session, mangled);
	char *plain = symbols_plain(text);
	uint32_t string;

	string = plain ? session_string(session, plain, strlen(plain)) : mangled;
	free(plain);
	return string;
}

uint32_t spooled_kernel_name(struct spooled *p, uint64_t text)
{
	uint64_t *known;
	uint32_t raw;

	if (text > UINT32_MAX)
		return 0;
	if (p->last_name.text == text && text)
		return p->last_name.string;
	known = map_find(&p->kernels, text);
	if (known) {
		p->last_name.text = (uint32_t)text;
		p->last_name.string = (uint32_t)*known;
		return p->last_name.string;
	}
	raw = spooled_text(p, (uint32_t)text);
	if (!raw)
		return 0;
	map_put(&p->kernels, text, demangled(p->sink->session, raw));
	return spooled_kernel_name(p, text);
}

/* In a buffer that CUPTI still held when the process died names are pointers.
 * The process may have met them before, or we have read them in time. */
uint32_t spooled_pointer_name(struct spooled *p, uint64_t pointer)
{
	uint32_t at = segment_name_at(pointer);
	const uint64_t *held;

	for (uint32_t i = 0; i < NAME_PROBES; i++) {
		const struct segment_name *entry = &p->segment->names[(at + i) % SEGMENT_NAMES];

		if (atomic_load(&entry->pointer) == pointer)
			return spooled_kernel_name(p, atomic_load(&entry->text));
	}
	held = map_find(&p->held, pointer);
	return held ? (uint32_t)*held : 0;
}

uint32_t spooled_plain_name(struct spooled *p, const char *text, size_t len)
{
	struct session *session = p->sink->session;

	return len ? demangled(session, session_string(session, text, len)) : 0;
}

uint32_t spooled_detail(struct spooled *p, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (len >= (int)sizeof(text))
		len = (int)sizeof(text) - 1;
	return session_detail(p->sink->session, text, (size_t)len);
}

static uint32_t lane_of(struct spooled *p, uint64_t hash, const struct lane *facts)
{
	uint64_t *known = map_find(&p->lanes, hash);
	uint32_t lane;

	if (known)
		return (uint32_t)*known;
	lane = session_lane(p->sink->session, facts);
	map_put(&p->lanes, hash, lane);
	return lane;
}

uint32_t spooled_stream(struct spooled *p, uint32_t device, uint32_t context, uint32_t stream)
{
	uint32_t what[4] = { 1, device, context, stream };
	uint64_t hash = hash_bytes(what, sizeof(what), 0);
	struct lane lane = { .kind = LANE_STREAM, .source = p->source, .tid = -1 };
	struct device facts = { .scope = DEVICE_OF_SOURCE, .source = p->source, .ordinal = device };
	uint64_t *known = map_find(&p->lanes, hash);
	uint64_t *row = map_find(&p->rows, device);

	if (known)
		return (uint32_t)*known;
	lane.device = row ? (uint32_t)*row : session_device(p->sink->session, &facts);
	lane.process = p->process;
	lane.context = context;
	lane.stream = stream;
	return lane_of(p, hash, &lane);
}

uint32_t spooled_thread(struct spooled *p, uint32_t thread)
{
	uint32_t what[2] = { 2, thread };
	struct lane lane = { .kind = LANE_THREAD,
			     .source = p->source,
			     .device = SESSION_NONE,
			     .process = p->process,
			     .context = -1,
			     .stream = -1,
			     .tid = thread };

	return lane_of(p, hash_bytes(what, sizeof(what), 0), &lane);
}

uint32_t spooled_other(struct spooled *p, const char *name)
{
	struct lane lane = { .kind = LANE_OTHER,
			     .source = p->source,
			     .device = SESSION_NONE,
			     .process = p->process,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };

	lane.name = session_string(p->sink->session, name, strlen(name));
	return lane_of(p, hash_bytes(name, strlen(name), 3), &lane);
}

uint32_t spooled_api(struct spooled *p, uint32_t domain, uint32_t cbid)
{
	uint64_t *name = map_find(&p->apis, (uint64_t)domain << 32 | cbid);
	char text[32];
	int len;

	if (name)
		return (uint32_t)*name;
	len = snprintf(text, sizeof(text), "%s call %u",
		       domain == CUPTI_DOMAIN_DRIVER ? "driver" : "runtime", cbid);
	return session_string(p->sink->session, text, (size_t)len);
}

uint32_t spooled_memory(struct spooled *p, int64_t device, uint32_t context)
{
	uint32_t what[3] = { 3, (uint32_t)device, context };
	struct device facts = { .scope = DEVICE_OF_SOURCE, .source = p->source, .ordinal = device };
	struct lane lane = { .kind = LANE_OTHER,
			     .source = p->source,
			     .process = p->process,
			     .device = SESSION_NONE,
			     .context = context ? (int64_t)context : -1,
			     .stream = -1,
			     .tid = -1,
			     .name = intern_text(p->sink->session->strings, "memory") };
	uint64_t hash = hash_bytes(what, sizeof(what), 0);
	uint64_t *known = map_find(&p->lanes, hash);
	uint64_t *row = map_find(&p->rows, (uint64_t)device);

	if (known)
		return (uint32_t)*known;
	if (device >= 0)
		lane.device = row ? (uint32_t)*row : session_device(p->sink->session, &facts);
	return lane_of(p, hash, &lane);
}

static struct str base_of(struct str path)
{
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;

	return slash ? (struct str){ slash + 1, (size_t)(path.at + path.len - slash - 1) } : path;
}

/* "path TAB hex offset"; a path may have a TAB, too. */
static bool frame_parse(struct str frame, struct str *ret_path, uint64_t *ret_offset)
{
	const char *tab = frame.len ? memrchr(frame.at, '\t', frame.len) : NULL;
	size_t len = tab ? (size_t)(tab - frame.at) : 0;

	*ret_path = (struct str){ frame.at, len };
	return tab && str_to_hex((struct str){ tab + 1, frame.len - len - 1 }, ret_offset);
}

/* A call stack as it is written. */
struct site {
	struct buf text;
	struct str path; /* of the outermost file */
	bool gap;        /* callers were left out here */
	bool unnamed;    /* a function that the process made, and has said nothing of */
};

/* In no file: what the process says of it, if anything. */
static void made_add(struct spooled *p, uint64_t address, struct site *site)
{
	bool is_python;
	const char *name;

	if (!address) {
		site->gap = true;
		return;
	}
	name = perf_map_file_find(p->made, address, clock_steady_ns(), &is_python);
	if (name)
		buf_printf(&site->text, "%s%s%s", site->text.len ? " < " : "",
			   site->gap ? "... < " : "", name);
	site->unnamed |= !name;
	site->gap = false;
}

/* One frame as "function". */
static void frame_add(struct spooled *p, struct str frame, struct site *site)
{
	struct buf *out = &site->text;
	const char *name = NULL, *file;
	struct str path, base;
	char *plain = NULL;
	uint64_t offset;

	if (!frame_parse(frame, &path, &offset))
		return;
	if (!path.len) {
		made_add(p, offset, site);
		return;
	}
	site->path = path;
	file = maps_file(&p->files, path);
	if (file)
		name = symbols_find(p->symbols, file, offset);
	base = base_of(path);
	if (name && !symbols_says(name))
		return;
	if (name)
		plain = symbols_plain(name);
	if (out->len)
		buf_text(out, " < ");
	if (plain || name)
		buf_text(out, plain ? plain : name);
	else
		buf_printf(out, "%.*s+0x%llx", (int)base.len, base.at, (unsigned long long)offset);
	free(plain);
}

/* Below main() the C library's start says nothing. */
static bool is_main(const struct buf *out)
{
	return (out->len == 4 || (out->len > 4 && out->at[out->len - 5] == ' ')) &&
	       !memcmp(out->at + out->len - 4, "main", 4);
}

uint32_t spooled_site(struct spooled *p, uint32_t text)
{
	uint64_t *known = map_find(&p->sites, text);
	uint32_t raw, string = 0;
	struct site site = { 0 };
	struct str rest;

	if (!text)
		return 0;
	if (known)
		return (uint32_t)*known;
	raw = spooled_text(p, text);
	rest = str_of(raw ? session_text(p->sink->session, raw) : "");
	while (rest.at && rest.len && !(site.text.len && is_main(&site.text)))
		frame_add(p, str_cut(&rest, '\n'), &site);
	if (site.text.len) {
		struct str base = base_of(site.path);

		if (site.path.at)
			buf_printf(&site.text, " (%.*s)", (int)base.len, base.at);
		string = session_string(p->sink->session, site.text.at, site.text.len);
	}
	buf_done(&site.text);
	/* The map may be read further the next time. */
	if (!site.unnamed || p->sites_asked++ >= SITES_ASKED_MAX)
		map_put(&p->sites, text, string);
	return string;
}
