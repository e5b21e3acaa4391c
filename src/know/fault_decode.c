/*
 * What the text of an Xid says in numbers and names.
 */
#include <ctype.h>
#include <string.h>

#include "know/fault_line.h"

#define SET(fault, id, field, value) \
	((fault)->field = (value), (fault)->have |= FAULT_HAS(FAULT_##id))

static struct str behind(struct str text, const char *needle)
{
	const char *found = str_find(text, needle);

	if (!found)
		return (struct str){ 0 };
	found += strlen(needle);
	return (struct str){ found, (size_t)(text.at + text.len - found) };
}

/* The number that *text begins with, decimal with a sign or 0x. */
static bool number_at(struct str text, int64_t *ret)
{
	size_t len = 0;
	uint64_t hex;

	if (str_starts(text, "0x")) {
		len = 2;
		while (len < text.len &&
		       (isxdigit((unsigned char)text.at[len]) || text.at[len] == '_'))
			len++;
		/* Addresses are written as 0x7f12_34567000. */
		if (len > 2 + 17)
			return false;
		hex = 0;
		for (size_t i = 2; i < len; i++) {
			uint64_t digit;

			if (text.at[i] == '_')
				continue;
			if (!str_to_hex((struct str){ text.at + i, 1 }, &digit))
				return false;
			hex = hex << 4 | digit;
		}
		*ret = (int64_t)hex;
		return len > 2;
	}
	len = text.len && *text.at == '-';
	while (len < text.len && isdigit((unsigned char)text.at[len]))
		len++;
	return str_to_i64((struct str){ text.at, len }, ret);
}

/*
 * "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 ...)": the unit is
 * in bits 20 to 25 of the first word, the second is its status. As decoded by
 * leptonai/gpud, components/accelerator/nvidia/xid/kmsg.go.
 */
static void decode_link(struct fault *fault)
{
	struct str text = str_of(fault->text), rest = text, words = behind(text, "(");
	struct str word = str_cut(&rest, ' ');
	int64_t number;

	str_copy(word, fault->event, sizeof(fault->event));
	if (str_find(text, " Fatal "))
		SET(fault, FATAL, fatal, 1);
	else if (str_find(text, " Nonfatal "))
		SET(fault, FATAL, fatal, 0);
	rest = behind(text, " Link ");
	if (rest.at && number_at(rest, &number))
		SET(fault, LINK, link, number);
	while (words.at && words.len && fault->word_count < FAULT_WORDS) {
		const char *end;

		word = str_cut(&words, ' ');
		end = memchr(word.at, ')', word.len);
		word.len = end ? (size_t)(end - word.at) : word.len;
		if (!str_starts(word, "0x") || !number_at(word, &number) || number < 0 ||
		    number > UINT32_MAX)
			break;
		fault->words[fault->word_count++] = (uint32_t)number;
		if (end)
			break;
	}
	if (fault->word_count > 0)
		SET(fault, UNIT, unit, fault->words[0] >> 20 & 0x3f);
	if (fault->word_count > 1)
		SET(fault, STATUS, status, fault->words[1]);
}

/* "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)" */
static void decode_recovery(struct fault *fault)
{
	struct str text = str_of(fault->text), from = behind(text, "changed from ");
	struct str to = from.at ? behind(from, ") to ") : from, name;
	int64_t number;

	if (!to.at || !number_at(from, &number))
		return;
	SET(fault, ACTION_FROM, action_from, number);
	name = behind(from, "(");
	if (name.at)
		str_copy(str_cut(&name, ')'), fault->action_before, sizeof(fault->action_before));
	if (!number_at(to, &number))
		return;
	SET(fault, ACTION_TO, action_to, number);
	name = behind(to, "(");
	if (name.at)
		str_copy(str_cut(&name, ')'), fault->event, sizeof(fault->event));
}

/* "Graphics SM Warp Exception on (GPC 8, TPC 5, SM 0): Out Of Range Address" */
static void decode_exception(struct fault *fault)
{
	struct str text = str_of(fault->text), at;
	int64_t gpc, tpc, sm;

	at = behind(text, "(GPC ");
	if (!at.at || !number_at(at, &gpc) || !(at = behind(at, "TPC ")).at ||
	    !number_at(at, &tpc) || !(at = behind(at, "SM ")).at || !number_at(at, &sm))
		return;
	SET(fault, GPC, gpc, gpc);
	SET(fault, TPC, tpc, tpc);
	SET(fault, SM, sm, sm);
}

/* "... faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE ACCESS_TYPE_..." */
static void decode_page_fault(struct fault *fault)
{
	struct str text = str_of(fault->text), at = behind(text, "faulted @ ");
	struct str type = behind(text, "Fault is of type ");
	int64_t address;

	if (at.at && number_at(at, &address))
		SET(fault, ADDRESS, address, address);
	if (type.at)
		str_copy(str_cut(&type, ' '), fault->event, sizeof(fault->event));
}

/* Volta and older retire pages, Ampere and newer remap rows. */
static void decode_repair(struct fault *fault)
{
	struct str text = str_of(fault->text), at;
	int64_t address;

	if (str_find(text, "Page Retirement"))
		str_copy(STR("page retirement"), fault->event, sizeof(fault->event));
	else if (str_find(text, "Row Remapper") || str_find(text, "remap"))
		str_copy(STR("row remap"), fault->event, sizeof(fault->event));
	at = behind(text, "(0x");
	if (str_find(text, "page") && at.at) {
		at.at -= 2;
		at.len += 2;
		if (number_at(at, &address))
			SET(fault, ADDRESS, address, address);
	}
}

void fault_decode(struct fault *fault)
{
	if (fault->number >= 144 && fault->number <= 150)
		decode_link(fault);
	else if (fault->number == 154)
		decode_recovery(fault);
	else if (fault->number == 13)
		decode_exception(fault);
	else if (fault->number == 31)
		decode_page_fault(fault);
	else if (fault->number == 63 || fault->number == 64)
		decode_repair(fault);
}
