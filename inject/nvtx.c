/*
 * nvtx.c - ranges and marks that the host's NVTX calls make. All [hot].
 *
 * Handles that we give out are text ids: of a registered string its text, of a
 * domain its name. Depth is kept per thread only for the return value of push
 * and pop, which NVTX defines as the level.
 */
#include "inject/nvtx.h"

#include <string.h>
#include <wchar.h>

#include "inject/inject.h"

enum { WIDE_MAX = 512 };

/* In the id of a started range: it is one that recording is limited to. */
#define LIMIT ((uint64_t)1 << 63)

static __thread int depth __attribute__((tls_model("initial-exec")));
/* Pushed ranges of this thread in one that recording is limited to, itself included, the
 * domain of it, and the process that it was pushed in: a forked child starts anew. */
static __thread uint32_t limit_depth __attribute__((tls_model("initial-exec")));
static __thread uint32_t limit_domain __attribute__((tls_model("initial-exec")));
static __thread uint32_t limit_pid __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t range_ids;

/* Wide text as UTF-8, cut to what fits. */
static uint32_t wide_text(struct segment *segment, const wchar_t *wide)
{
	char utf8[WIDE_MAX];
	size_t len = 0;

	for (; *wide && len + 4 < sizeof(utf8); wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c < 0x80) {
			utf8[len++] = (char)c;
		} else if (c < 0x800) {
			utf8[len++] = (char)(0xc0 | c >> 6);
			utf8[len++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			utf8[len++] = (char)(0xe0 | c >> 12);
			utf8[len++] = (char)(0x80 | (c >> 6 & 0x3f));
			utf8[len++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x110000) {
			utf8[len++] = (char)(0xf0 | c >> 18);
			utf8[len++] = (char)(0x80 | (c >> 12 & 0x3f));
			utf8[len++] = (char)(0x80 | (c >> 6 & 0x3f));
			utf8[len++] = (char)(0x80 | (c & 0x3f));
		}
	}
	return text_intern(segment, utf8, len);
}

static uint32_t text_z(struct segment *segment, const char *text)
{
	return text ? text_intern(segment, text, strnlen(text, TEXT_MAX - 1)) : 0;
}

static size_t number_len(const char *at, size_t len)
{
	size_t digits = 0;

	while (digits < len && at[digits] >= '0' && at[digits] <= '9')
		digits++;
	return digits;
}

/* One that is cut off is one, too. */
static size_t list_len(const char *at, size_t len)
{
	size_t open = 0;

	if (!len || at[0] != '[')
		return 0;
	for (size_t i = 0; i < len; i++) {
		open += at[i] == '[';
		open -= at[i] == ']';
		if (!open)
			return i + 1;
	}
	return len;
}

/* The length of ", seq = 12" and the like at `at`; 0: it is none. */
static size_t added_len(const char *at, size_t len)
{
	static const struct {
		char word[20];
		bool is_list;
	} added[] = { { ", seq = ", false },
		      { ", op_id = ", false },
		      { ", sizes = ", true },
		      { ", input_op_ids = ", true } };

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		size_t word = strlen(added[i].word), value;

		if (len < word || memcmp(at, added[i].word, word) != 0)
			continue;
		value = (added[i].is_list ? list_len : number_len)(at + word, len - word);
		return value ? word + value : 0;
	}
	return 0;
}

/* Of "aten::mul, seq = 0, op_id = 7" the first 9: PyTorch gives each call a name of its
 * own, and as many texts would fill the segment. Text behind what it adds is the name's. */
static size_t operator_len(const char *text, size_t len)
{
	size_t cut = len;

	for (size_t at = 0; at < len;) {
		size_t added = text[at] == ',' ? added_len(text + at, len - at) : 0;

		if (!added)
			cut = len;
		else if (cut == len)
			cut = at;
		at += added ? added : 1;
	}
	return cut ? cut : len;
}

static uint32_t char_text(struct segment *segment, const char *text, enum slot_kind kind)
{
	size_t len = text ? strnlen(text, TEXT_MAX - 1) : 0;

	if (kind == SLOT_PUSH && inject_state->trace >> TRACE_TORCH_OPS & 1)
		len = operator_len(text, len);
	return text ? text_intern(segment, text, len) : 0;
}

static uint32_t message_of(struct segment *segment, const struct nvtx_event *event,
			   enum slot_kind kind)
{
	if (!event || event->size < sizeof(*event))
		return 0;
	if (event->message_type == MESSAGE_CHAR)
		return char_text(segment, event->message.ascii, kind);
	if (event->message_type == MESSAGE_REGISTERED)
		return (uint32_t)(uintptr_t)event->message.other;
	if (event->message_type == MESSAGE_WCHAR && event->message.other)
		return wide_text(segment, event->message.other);
	return 0;
}

static void put(struct segment *segment, enum slot_kind kind, uint32_t message, uint32_t domain,
		const struct nvtx_event *event, uint64_t value)
{
	static const struct nvtx_event none = { 0 };
	struct segment_slot *slot = slot_take(segment);

	if (!slot)
		return;
	if (!event || event->size < sizeof(*event))
		event = &none;
	slot->a = message;
	slot->b = domain;
	slot->x[0] = event->category;
	slot->x[1] = (uint32_t)event->payload_type;
	slot->x[2] = (uint32_t)event->payload.u64;
	slot->x[3] = (uint32_t)(event->payload.u64 >> 32);
	slot->value = value;
	slot_commit(slot, kind);
}

/* Is that text `name`? Ids of registered strings and domains come from the host. */
static bool text_is_called(const struct segment *segment, uint32_t id, const char *name)
{
	const struct segment_text *text;

	if (!id || id >= segment->texts_bytes - sizeof(*text))
		return false;
	text = (const void *)((const char *)segment + segment->texts_at + id);
	return strncmp(text->at, name, segment->texts_bytes - sizeof(*text) - id) == 0;
}

/* Is it a range that recording is limited to? */
static bool is_limit(const struct segment *segment, uint32_t message, uint32_t domain)
{
	const struct inject *inject = inject_state;

	if (!text_is_called(segment, message, inject->range))
		return false;
	if (!inject->has_range_domain)
		return true;
	return domain ? text_is_called(segment, domain, inject->range_domain)
		      : !inject->range_domain[0];
}

/* Recording goes on as long as one of these ranges is open. Of two threads at an edge the
 * last one looks at what the other made of it. */
static void limit_edge(bool begins)
{
	enum { TURNS = 8 };
	_Atomic uint32_t *open = &inject_state->ranges_open;
	uint32_t before = atomic_load(open);
	bool inside;

	do {
		if (!begins && !before) /* ended twice */
			return;
	} while (!atomic_compare_exchange_weak(open, &before, begins ? before + 1 : before - 1));
	if (before != !begins)
		return;
	for (int i = 0; i < TURNS; i++) {
		inside = atomic_load(open) > 0;
		activity_range(inject_state, inside);
		if ((atomic_load(open) > 0) == inside)
			return;
	}
}

/* The same for a push or a pop: this thread's ranges inside of such a range are counted,
 * of its domain, as levels are each domain's own. */
static void limit_level(const struct segment *segment, enum slot_kind kind, uint32_t message,
			uint32_t domain)
{
	if (limit_pid != inject_state->pid) {
		limit_pid = inject_state->pid;
		limit_depth = 0;
	}
	if (limit_depth && domain != limit_domain)
		return;
	if (kind == SLOT_POP && limit_depth && !--limit_depth)
		limit_edge(false);
	if (kind == SLOT_PUSH && (limit_depth || is_limit(segment, message, domain)) &&
	    !limit_depth++) {
		limit_domain = domain;
		limit_edge(true);
	}
}

/* The id of a range that starts: `value`, or with LIMIT where it is one that recording is
 * limited to, which its end has to know. */
static uint64_t event_put(enum slot_kind kind, const void *domain_handle,
			  const struct nvtx_event *event, const char *plain, uint64_t value)
{
	HOOK;
	uint32_t domain = (uint32_t)(uintptr_t)domain_handle, message;
	bool limited;

	if (!hook.segment)
		return value;
	limited = inject_state->range[0];
	message = plain ? char_text(hook.segment, plain, kind)
			: message_of(hook.segment, event, kind);
	if (kind == SLOT_START && limited && is_limit(hook.segment, message, domain))
		value |= LIMIT;
	if (inject_state->trace >> TRACE_NVTX & 1)
		put(hook.segment, kind, message, domain, event, value);
	if (limited && (kind == SLOT_START || kind == SLOT_END) && value & LIMIT)
		limit_edge(kind == SLOT_START);
	if (limited && (kind == SLOT_PUSH || kind == SLOT_POP))
		limit_level(hook.segment, kind, message, domain);
	return value;
}

static struct nvtx_event wide_event(const wchar_t *message)
{
	return (struct nvtx_event){ .size = sizeof(struct nvtx_event),
				    .message_type = MESSAGE_WCHAR,
				    .message.other = message };
}

static void MarkEx(const struct nvtx_event *event)
{
	(void)event_put(SLOT_MARK, NULL, event, NULL, 0);
}

static void MarkA(const char *message)
{
	(void)event_put(SLOT_MARK, NULL, NULL, message, 0);
}

static void MarkW(const wchar_t *message)
{
	struct nvtx_event event = wide_event(message);

	MarkEx(&event);
}

static uint64_t next_range(void)
{
	return atomic_fetch_add_explicit(&range_ids, 1, memory_order_relaxed) + 1;
}

static uint64_t RangeStartEx(const struct nvtx_event *event)
{
	return event_put(SLOT_START, NULL, event, NULL, next_range());
}

static uint64_t RangeStartA(const char *message)
{
	return event_put(SLOT_START, NULL, NULL, message, next_range());
}

static uint64_t RangeStartW(const wchar_t *message)
{
	struct nvtx_event event = wide_event(message);

	return RangeStartEx(&event);
}

static void RangeEnd(uint64_t id)
{
	(void)event_put(SLOT_END, NULL, NULL, NULL, id);
}

static int RangePushEx(const struct nvtx_event *event)
{
	(void)event_put(SLOT_PUSH, NULL, event, NULL, 0);
	return depth++;
}

static int RangePushA(const char *message)
{
	(void)event_put(SLOT_PUSH, NULL, NULL, message, 0);
	return depth++;
}

static int RangePushW(const wchar_t *message)
{
	struct nvtx_event event = wide_event(message);

	return RangePushEx(&event);
}

static int RangePop(void)
{
	(void)event_put(SLOT_POP, NULL, NULL, NULL, 0);
	return depth > 0 ? --depth : -2; /* NVTX_NO_PUSH_POP_TRACKING */
}

/* A name of either kind; the other is NULL. */
static void name_put(enum slot_kind kind, const char *name, const wchar_t *wide, uint64_t of)
{
	HOOK;

	if (hook.segment && (name || wide))
		put(hook.segment, kind,
		    wide ? wide_text(hook.segment, wide) : text_z(hook.segment, name), 0, NULL, of);
}

static uint64_t category_of(const void *domain, uint32_t category)
{
	return (uint64_t)(uint32_t)(uintptr_t)domain << 32 | category;
}

static void NameCategoryA(uint32_t category, const char *name)
{
	name_put(SLOT_CATEGORY, name, NULL, category);
}

static void NameCategoryW(uint32_t category, const wchar_t *name)
{
	name_put(SLOT_CATEGORY, NULL, name, category);
}

static void NameOsThreadA(uint32_t thread, const char *name)
{
	name_put(SLOT_THREAD, name, NULL, thread);
}

static void NameOsThreadW(uint32_t thread, const wchar_t *name)
{
	name_put(SLOT_THREAD, NULL, name, thread);
}

static void DomainMarkEx(const void *domain, const struct nvtx_event *event)
{
	(void)event_put(SLOT_MARK, domain, event, NULL, 0);
}

static uint64_t DomainRangeStartEx(const void *domain, const struct nvtx_event *event)
{
	return event_put(SLOT_START, domain, event, NULL, next_range());
}

static void DomainRangeEnd(const void *domain, uint64_t id)
{
	(void)event_put(SLOT_END, domain, NULL, NULL, id);
}

static int DomainRangePushEx(const void *domain, const struct nvtx_event *event)
{
	(void)event_put(SLOT_PUSH, domain, event, NULL, 0);
	return depth++;
}

static int DomainRangePop(const void *domain)
{
	(void)event_put(SLOT_POP, domain, NULL, NULL, 0);
	return depth > 0 ? --depth : -2;
}

static void DomainNameCategoryA(const void *domain, uint32_t category, const char *name)
{
	name_put(SLOT_CATEGORY, name, NULL, category_of(domain, category));
}

static void DomainNameCategoryW(const void *domain, uint32_t category, const wchar_t *name)
{
	name_put(SLOT_CATEGORY, NULL, name, category_of(domain, category));
}

static void *handle_for(const char *text)
{
	HOOK;

	return hook.segment ? (void *)(uintptr_t)text_z(hook.segment, text) : NULL;
}

static void *handle_for_wide(const wchar_t *text)
{
	HOOK;

	return hook.segment && text ? (void *)(uintptr_t)wide_text(hook.segment, text) : NULL;
}

static void *DomainRegisterStringA(const void *domain, const char *text)
{
	(void)domain;
	return handle_for(text);
}

static void *DomainRegisterStringW(const void *domain, const wchar_t *text)
{
	(void)domain;
	return handle_for_wide(text);
}

static void *DomainCreateA(const char *name)
{
	return handle_for(name);
}

static void *DomainCreateW(const wchar_t *name)
{
	return handle_for_wide(name);
}

static void DomainDestroy(const void *domain)
{
	(void)domain;
}

static uint64_t PayloadSchemaRegister(const void *domain, const struct nvtx_schema *schema)
{
	return nvtx_schema_register(domain, schema);
}

static uint64_t PayloadEnumRegister(const void *domain, const struct nvtx_enum *from)
{
	(void)domain;
	return nvtx_enum_register(from);
}

static void MarkPayload(const void *domain, const struct nvtx_payload *at, size_t count)
{
	struct nvtx_message_room room;

	DomainMarkEx(domain, nvtx_message(domain, at, count, &room));
}

static int RangePushPayload(const void *domain, const struct nvtx_payload *at, size_t count)
{
	struct nvtx_message_room room;

	return DomainRangePushEx(domain, nvtx_message(domain, at, count, &room));
}

/* A name that comes with the end is not taken. */
static int RangePopPayload(const void *domain, const struct nvtx_payload *at, size_t count)
{
	(void)at;
	(void)count;
	return DomainRangePop(domain);
}

static uint64_t RangeStartPayload(const void *domain, const struct nvtx_payload *at, size_t count)
{
	struct nvtx_message_room room;

	return DomainRangeStartEx(domain, nvtx_message(domain, at, count, &room));
}

static void RangeEndPayload(const void *domain, uint64_t id, const struct nvtx_payload *at,
			    size_t count)
{
	(void)at;
	(void)count;
	DomainRangeEnd(domain, id);
}

static void attach_module(const struct nvtx_callbacks *callbacks, uint32_t module)
{
	void ***table = NULL;
	unsigned int count = 0;

	if (!callbacks->function_table(module, &table, &count) || !table)
		return;
#define X(index, name)                         \
	if ((index) < count && table[(index)]) \
		*table[(index)] = (void *)(uintptr_t)name;
	if (module == NVTX_MODULE_CORE) {
		NVTX_CORE_LIST(X)
	} else {
		NVTX_CORE2_LIST(X)
	}
#undef X
}

/* [setup] */
void nvtx_attach(nvtx_get_table *get_table)
{
	const struct nvtx_callbacks *callbacks = get_table ? get_table(NVTX_TABLE_CALLBACKS) : NULL;

	if (!callbacks || callbacks->bytes < sizeof(*callbacks))
		return;
	/* Found later, too, when there is no room for new texts. */
	(void)text_z(atomic_load(&inject_state->segment), inject_state->range);
	(void)text_z(atomic_load(&inject_state->segment), inject_state->range_domain);
	attach_module(callbacks, NVTX_MODULE_CORE);
	attach_module(callbacks, NVTX_MODULE_CORE2);
}

/* [setup] */
bool nvtx_attach_extension(const struct nvtx_extension *extension)
{
	const struct nvtx_extension_segment *segment;

	if (!extension || extension->size < sizeof(*extension) ||
	    extension->module != NVTX_MODULE_PAYLOAD || !extension->segment_count ||
	    !extension->segments || !extension->segments->functions)
		return false;
	segment = &extension->segments[0];
#define X(index, name)                \
	if ((index) < segment->count) \
		segment->functions[index] = (intptr_t)name;
	NVTX_PAYLOAD_LIST(X)
#undef X
	return true;
}
