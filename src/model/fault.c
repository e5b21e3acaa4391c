#include "model/fault.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/i18n.h"

/* NVML queues events and the log is read in steps, so one fault comes at two
 * times; two faults of one number on one card rarely come so close. */
const int64_t FAULT_SAME_NS = 3000000000;

const char *fault_kind_name(enum fault_kind kind)
{
	static const char *const name[FAULT_KIND_COUNT] = {
		[FAULT_NONE] = "",
#define X(id, text) [FAULT_##id] = text,
		FAULT_KIND_LIST(X)
#undef X
	};

	return kind < FAULT_KIND_COUNT ? name[kind] : "";
}

void fault_title(const struct fault *fault, struct buf *out)
{
	switch (fault->kind) {
	case FAULT_XID:
		buf_printf(out, "Xid %" PRId64, fault->number);
		return;
	case FAULT_SXID:
		buf_printf(out, "SXid %" PRId64, fault->number);
		return;
	case FAULT_OFF_BUS:
		buf_text(out, N_("GPU off the bus"));
		return;
	case FAULT_INIT:
		buf_text(out, N_("GPU did not start"));
		return;
	case FAULT_MISMATCH:
		buf_text(out, N_("driver mismatch"));
		return;
	case FAULT_OOM:
		buf_text(out, N_("out of host memory"));
		return;
	case FAULT_RATE_LIMIT:
		buf_text(out, N_("rate limit"));
		return;
	default:
		buf_text(out, fault_kind_name(fault->kind));
	}
}

enum mark_kind fault_mark_kind(enum fault_kind kind)
{
	if (kind == FAULT_XID || kind == FAULT_SXID)
		return MARK_XID;
	return kind == FAULT_OOM ? MARK_OOM : MARK_FAULT;
}

/* X(key, field): texts, in which a ';' would end the value. */
#define TEXT_LIST(X)               \
	X("pci", pci)              \
	X("uuid", uuid)            \
	X("name", process)         \
	X("event", event)          \
	X("before", action_before) \
	X("client", client)        \
	X("module", module)        \
	X("serial", serial)        \
	X("cgroup", cgroup)

static const struct {
	const char *key;
	size_t offset;
} NUMBERS[FAULT_NUMBER_COUNT] = {
#define X(id, name, field) { name, offsetof(struct fault, field) },
	FAULT_NUMBER_LIST(X)
#undef X
};

static const struct {
	const char *key;
	size_t offset, size;
} TEXTS[] = {
#define X(key, field) { key, offsetof(struct fault, field), sizeof(((struct fault *)0)->field) },
	TEXT_LIST(X)
#undef X
};

enum { TEXT_COUNT = sizeof(TEXTS) / sizeof(*TEXTS) };

static int64_t number_at(const struct fault *fault, size_t i)
{
	int64_t value;

	memcpy(&value, (const char *)fault + NUMBERS[i].offset, sizeof(value));
	return value;
}

void fault_detail(const struct fault *fault, struct buf *out)
{
	buf_printf(out, "fault=%s", fault_kind_name(fault->kind));
	if (fault->origin == FAULT_FROM_NVML)
		buf_text(out, ";origin=nvml");
	if (!fault->has_time)
		buf_text(out, ";time=none");
	for (size_t i = 0; i < FAULT_NUMBER_COUNT; i++) {
		if (fault_has(fault, (enum fault_number)i))
			buf_printf(out, ";%s=%" PRId64, NUMBERS[i].key, number_at(fault, i));
	}
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		const char *text = (const char *)fault + TEXTS[i].offset;

		if (!*text)
			continue;
		buf_printf(out, ";%s=", TEXTS[i].key);
		for (; *text; text++)
			buf_char(out, *text == ';' ? ',' : *text);
	}
	for (uint32_t i = 0; i < fault->word_count && i < FAULT_WORDS; i++)
		buf_printf(out, "%s0x%08" PRIx32, i ? " " : ";words=", fault->words[i]);
	if (*fault->text)
		buf_printf(out, ";text=%s", fault->text);
}

static void words_from(struct str text, struct fault *fault)
{
	while (text.at && text.len && fault->word_count < FAULT_WORDS) {
		uint64_t word;

		if (!str_to_hex(str_cut(&text, ' '), &word) || word > UINT32_MAX)
			return;
		fault->words[fault->word_count++] = (uint32_t)word;
	}
}

static enum fault_kind kind_of(struct str name)
{
	for (int kind = FAULT_NONE + 1; kind < FAULT_KIND_COUNT; kind++) {
		if (str_is(name, fault_kind_name((enum fault_kind)kind)))
			return (enum fault_kind)kind;
	}
	return FAULT_NONE;
}

static void pair(struct str key, struct str value, struct fault *fault)
{
	int64_t number;

	if (str_is(key, "fault"))
		fault->kind = kind_of(value);
	else if (str_is(key, "origin"))
		fault->origin = str_is(value, "nvml") ? FAULT_FROM_NVML : FAULT_FROM_LOG;
	else if (str_is(key, "time"))
		fault->has_time = false;
	else if (str_is(key, "words"))
		words_from(value, fault);
	for (size_t i = 0; i < FAULT_NUMBER_COUNT; i++) {
		if (str_is(key, NUMBERS[i].key) && str_to_i64(value, &number)) {
			memcpy((char *)fault + NUMBERS[i].offset, &number, sizeof(number));
			fault->have |= FAULT_HAS(i);
		}
	}
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		if (str_is(key, TEXTS[i].key))
			str_copy(value, (char *)fault + TEXTS[i].offset, TEXTS[i].size);
	}
}

bool fault_from_detail(struct str detail, struct fault *ret_fault)
{
	*ret_fault = (struct fault){ .has_time = true };
	while (detail.at && detail.len) {
		struct str value, key;

		if (str_starts(detail, "text=")) {
			str_copy((struct str){ detail.at + 5, detail.len - 5 }, ret_fault->text,
				 sizeof(ret_fault->text));
			break;
		}
		value = str_cut(&detail, ';');
		key = str_cut(&value, '=');
		if (value.at)
			pair(key, value, ret_fault);
	}
	return ret_fault->kind != FAULT_NONE;
}

bool fault_known(struct fault_memory *memory, const struct fault *fault)
{
	struct fault_memory_row *row;

	for (size_t i = 0; i < FAULT_MEMORY; i++) {
		int64_t apart;

		row = &memory->at[i];
		if (row->kind != fault->kind || row->number != fault->number ||
		    row->origins >> fault->origin & 1 || strcmp(row->pci, fault->pci) != 0)
			continue;
		if (__builtin_sub_overflow(row->time_ns, fault->time_ns, &apart) ||
		    apart > FAULT_SAME_NS + row->early_ns ||
		    apart < -FAULT_SAME_NS - fault->early_ns)
			continue;
		/* One fault of the other source stands for one of ours. */
		row->origins |= 1u << fault->origin;
		return true;
	}
	row = &memory->at[memory->next++ % FAULT_MEMORY];
	*row = (struct fault_memory_row){ .kind = fault->kind,
					  .number = fault->number,
					  .time_ns = fault->time_ns,
					  .early_ns = fault->early_ns,
					  .origins = 1u << fault->origin };
	memcpy(row->pci, fault->pci, sizeof(row->pci));
	return false;
}
