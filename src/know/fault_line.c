#include "know/fault_line.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* So many lines on, what began is not what this line ends. The driver's
 * message boxes have four to six lines, with other lines between. */
enum { LINES_APART = 12 };

static void skip(struct str *text, size_t len)
{
	text->at += len;
	text->len -= len;
}

static bool take(struct str *text, const char *prefix)
{
	if (!str_starts(*text, prefix))
		return false;
	skip(text, strlen(prefix));
	return true;
}

static struct str behind(struct str text, const char *needle)
{
	const char *found = str_find(text, needle);

	if (!found)
		return (struct str){ 0 };
	skip(&text, (size_t)(found - text.at) + strlen(needle));
	return text;
}

static void put(char *to, size_t size, struct str text)
{
	size_t len = text.len < size ? text.len : size - 1;

	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f ? ' ' : text.at[i];
	to[len] = 0;
}

#define PUT(field, text) put(field, sizeof(field), text)

static bool take_number(struct str *text, int64_t *ret)
{
	size_t len = 0;

	while (len < text->len && isdigit((unsigned char)text->at[len]))
		len++;
	if (!len || !str_to_i64((struct str){ text->at, len }, ret))
		return false;
	skip(text, len);
	return true;
}

static bool take_hex(struct str *text, size_t least, size_t most, uint64_t *ret)
{
	size_t len = 0;

	while (len < text->len && len < most && isxdigit((unsigned char)text->at[len]))
		len++;
	if (len < least || !str_to_hex((struct str){ text->at, len }, ret))
		return false;
	skip(text, len);
	return true;
}

#define SET(fault, id, field, value) \
	((fault)->field = (value), (fault)->have |= FAULT_HAS(FAULT_##id))

/* "PCI:0000:9b:00", "0000:9b:00.0", "00000000:9B:00.0" at the front of *text
 * becomes "0000:9b:00.0" and is taken off. */
static bool fault_pci_take(struct str *text, char ret_pci[24])
{
	uint64_t domain, bus, device, function = 0;
	struct str rest = *text;

	(void)take(&rest, "PCI:");
	if (!take_hex(&rest, 4, 8, &domain) || !take(&rest, ":") || !take_hex(&rest, 2, 2, &bus) ||
	    !take(&rest, ":") || !take_hex(&rest, 2, 2, &device))
		return false;
	if (rest.len > 1 && *rest.at == '.' && isdigit((unsigned char)rest.at[1])) {
		function = (uint64_t)(rest.at[1] - '0');
		skip(&rest, 2);
	}
	{
		struct buf pci = { 0 };

		buf_printf(&pci, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIu64, domain, bus,
			   device, function);
		put(ret_pci, 24, (struct str){ pci.at, pci.len });
		buf_done(&pci);
	}
	*text = rest;
	return true;
}

/* "pid=12, name=train, ", "pid='<unknown>', name=<unknown>, ". */
static void take_process(struct str *text, struct fault *fault)
{
	struct str rest = *text, word;
	int64_t pid;

	if (!take(&rest, "pid="))
		return;
	word = str_trim(str_cut(&rest, ','));
	if (str_to_i64(word, &pid) && pid >= 0)
		SET(fault, PID, pid, pid);
	*text = rest.at ? str_trim(rest) : (struct str){ "", 0 };
	rest = *text;
	if (!take(&rest, "name="))
		return;
	word = str_trim(str_cut(&rest, ','));
	if (!str_is(word, "<unknown>") && !str_is(word, "'<unknown>'"))
		PUT(fault->process, word);
	*text = rest.at ? str_trim(rest) : (struct str){ "", 0 };
}

/* "(PCI:0000:9b:00 GPU-I:05 GPU-CI:00): 94, ", or without brackets or "PCI:". */
static bool take_place(struct str *text, struct fault *fault)
{
	struct str rest = *text;
	bool bracket = take(&rest, "(");
	int64_t number;

	if (!fault_pci_take(&rest, fault->pci))
		return false;
	rest = str_trim(rest);
	if (take(&rest, "GPU-I:") && take_number(&rest, &number))
		SET(fault, GPU_INSTANCE, gpu_instance, number);
	rest = str_trim(rest);
	if (take(&rest, "GPU-CI:") && take_number(&rest, &number))
		SET(fault, COMPUTE_INSTANCE, compute_instance, number);
	if ((bracket && !take(&rest, ")")) || !take(&rest, ":"))
		return false;
	rest = str_trim(rest);
	if (!take_number(&rest, &number) || number > INT32_MAX)
		return false;
	SET(fault, NUMBER, number, number);
	(void)take(&rest, ",");
	*text = str_trim(rest);
	return true;
}

static enum fault_line xid(struct str text, struct fault *fault)
{
	struct str previous;
	int64_t number;

	fault->kind = FAULT_XID;
	if (!take_place(&text, fault))
		return FAULT_LINE_BROKEN;
	take_process(&text, fault);
	PUT(fault->text, text);
	previous = behind(text, "caused by previous Xid ");
	if (previous.at && take_number(&previous, &number))
		SET(fault, PREVIOUS, previous, number);
	fault_decode(fault);
	return FAULT_LINE_FAULT;
}

static enum fault_line sxid(struct str text, struct str before, struct fault *fault)
{
	struct str rest = behind(before, "nvidia-nvswitch");
	int64_t number;

	fault->kind = FAULT_SXID;
	if (!take_place(&text, fault))
		return FAULT_LINE_BROKEN;
	if (rest.at && take_number(&rest, &number))
		SET(fault, SWITCH, switch_index, number);
	if (str_starts(text, "Fatal") || str_starts(text, "Non-fatal"))
		SET(fault, FATAL, fatal, *text.at == 'F');
	rest = behind(text, "Link ");
	if (rest.at && take_number(&rest, &number))
		SET(fault, LINK, link, number);
	SET(fault, FIRST, first, str_find(text, "(First)") != NULL);
	PUT(fault->text, text);
	return FAULT_LINE_FAULT;
}

/* "GPU at PCI:0000:9b:00: GPU-<uuid>" and the "GPU Board Serial Number" that
 * may follow it. */
static enum fault_line identity(struct fault_parser *parser, struct str text, struct fault *fault)
{
	struct str at = text;

	fault->kind = FAULT_IDENTITY;
	if (take(&at, "GPU Board Serial Number:") && *parser->identity_pci) {
		PUT(fault->serial, str_trim(at));
		memcpy(fault->pci, parser->identity_pci, sizeof(fault->pci));
		return FAULT_LINE_FAULT;
	}
	if (!take(&text, "GPU at ") || !fault_pci_take(&text, fault->pci))
		return FAULT_LINE_NONE;
	(void)take(&text, ":");
	text = str_trim(text);
	if (!str_starts(text, "GPU-"))
		return FAULT_LINE_NONE;
	PUT(fault->uuid, str_cut(&text, ' '));
	memcpy(parser->identity_pci, fault->pci, sizeof(parser->identity_pci));
	return FAULT_LINE_FAULT;
}

/*
 * Without a number, in the driver's two ways:
 *	GPU 0000:9b:00.0: GPU has fallen off the bus.
 *	The NVIDIA GPU 0000:18:00.0 / (PCI ID: ...) / fallen off the bus and is not
 *	responding to commands.
 */
static enum fault_line off_bus(struct fault_parser *parser, struct str text, struct fault *fault)
{
	struct str rest = text;

	if (take(&rest, "The NVIDIA GPU ") && fault_pci_take(&rest, parser->lost_pci)) {
		parser->lost_lines = LINES_APART;
		if (!str_find(rest, "fallen off the bus"))
			return FAULT_LINE_PART;
	}
	if (!str_find(text, "fallen off the bus"))
		return FAULT_LINE_NONE;
	fault->kind = FAULT_OFF_BUS;
	PUT(fault->text, text);
	rest = behind(text, "GPU ");
	(void)take(&rest, "at ");
	if ((!rest.at || !fault_pci_take(&rest, fault->pci)) && parser->lost_lines > 0)
		memcpy(fault->pci, parser->lost_pci, sizeof(fault->pci));
	parser->lost_lines = 0;
	return FAULT_LINE_FAULT;
}

static enum fault_line init_failed(struct str text, struct fault *fault)
{
	struct str rest = behind(text, "GPU ");

	if (!str_find(text, "RmInitAdapter failed"))
		return FAULT_LINE_NONE;
	fault->kind = FAULT_INIT;
	if (rest.at)
		(void)fault_pci_take(&rest, fault->pci);
	PUT(fault->text, text);
	return FAULT_LINE_FAULT;
}

static enum fault_line rate_limit(struct str text, struct fault *fault)
{
	struct str rest = behind(text, "for GPU at ");
	int64_t every;

	if (!str_starts(text, "Rate limiting "))
		return FAULT_LINE_NONE;
	fault->kind = FAULT_RATE_LIMIT;
	if (rest.at)
		(void)fault_pci_take(&rest, fault->pci);
	rest = behind(text, "printing 1 of every ");
	if (rest.at && take_number(&rest, &every))
		SET(fault, EVERY, every, every);
	PUT(fault->text, text);
	return FAULT_LINE_FAULT;
}

static enum fault_line driver(struct str text, struct fault *fault)
{
	struct str rest = behind(text, "Kernel Module");

	if (!str_starts(text, "loading NVIDIA") || !rest.at)
		return FAULT_LINE_NONE;
	/* "Kernel Module for x86_64  595.45.04  ..." of the open modules. */
	rest = str_trim(rest);
	if (take(&rest, "for ")) {
		(void)str_cut(&rest, ' ');
		rest = rest.at ? str_trim(rest) : (struct str){ "", 0 };
	}
	fault->kind = FAULT_DRIVER;
	PUT(fault->module, str_cut(&rest, ' '));
	return *fault->module ? FAULT_LINE_FAULT : FAULT_LINE_NONE;
}

static bool version_in(struct str text, char *to, size_t size)
{
	size_t len = 0;

	text = str_trim(text);
	while (len < text.len && (isdigit((unsigned char)text.at[len]) || text.at[len] == '.'))
		len++;
	while (len && text.at[len - 1] == '.')
		len--;
	put(to, size, (struct str){ text.at, len });
	return len > 0;
}

static bool ends_mismatch(struct fault_parser *parser, struct fault *ret_fault)
{
	*ret_fault = parser->mismatch;
	parser->mismatch = (struct fault){ 0 };
	return ret_fault->kind != FAULT_NONE;
}

/*
 * API mismatch: the client has the version 535.129.03, but
 * this kernel module has the version 535.104.05.  Please
 * make sure that this kernel module and all NVIDIA driver ...
 * Newer drivers break the lines elsewhere and name "the client 'x' (pid 1)".
 */
static enum fault_line mismatch(struct fault_parser *parser, struct str text, struct fault *fault)
{
	struct fault *open = &parser->mismatch;
	struct str rest, whole;
	struct buf joined = { 0 };
	int64_t pid;

	if (str_starts(text, "API mismatch")) {
		*open = (struct fault){ .kind = FAULT_MISMATCH };
		parser->mismatch_lines = LINES_APART;
	} else if (open->kind == FAULT_NONE || parser->mismatch_lines <= 0) {
		return FAULT_LINE_NONE;
	}
	buf_printf(&joined, "%s%s%.*s", open->text, *open->text ? " " : "", (int)text.len, text.at);
	whole = (struct str){ joined.at, joined.len };
	PUT(open->text, whole);
	rest = behind(whole, "(pid ");
	if (rest.at && take_number(&rest, &pid))
		SET(open, PID, pid, pid);
	rest = behind(whole, "the client '");
	if (rest.at)
		PUT(open->process, str_cut(&rest, '\''));
	rest = behind(whole, "has the version ");
	if (rest.at)
		(void)version_in(rest, open->client, sizeof(open->client));
	rest = behind(whole, "kernel module has");
	rest = rest.at ? behind(rest, "the version ") : rest;
	if (rest.at && version_in(rest, open->module, sizeof(open->module)) &&
	    ends_mismatch(parser, fault)) {
		buf_done(&joined);
		return FAULT_LINE_FAULT;
	}
	buf_done(&joined);
	return FAULT_LINE_PART;
}

static enum fault_line nvrm(struct fault_parser *parser, struct str text, struct fault *fault)
{
	enum fault_line got;

	if (str_starts(text, "Xid")) {
		skip(&text, 3);
		return xid(str_trim(text), fault);
	}
	if ((got = off_bus(parser, text, fault)) != FAULT_LINE_NONE ||
	    (got = identity(parser, text, fault)) != FAULT_LINE_NONE ||
	    (got = init_failed(text, fault)) != FAULT_LINE_NONE ||
	    (got = rate_limit(text, fault)) != FAULT_LINE_NONE ||
	    (got = driver(text, fault)) != FAULT_LINE_NONE)
		return got;
	*fault = (struct fault){ 0 };
	return mismatch(parser, text, fault);
}

/* "Out of memory: Killed process 12 (python) total-vm:1kB, anon-rss:2kB, ...",
 * and "Memory cgroup out of memory: ..." for the limit of a container. */
static enum fault_line oom(struct fault_parser *parser, struct str text, struct fault *fault)
{
	struct str rest = behind(text, "task_memcg=");
	const char *close;
	int64_t number;

	if (str_starts(text, "oom-kill:") && rest.at) {
		PUT(parser->cgroup, str_cut(&rest, ','));
		parser->cgroup_lines = LINES_APART;
		return FAULT_LINE_PART;
	}
	rest = behind(text, "Killed process ");
	if (!rest.at || !take_number(&rest, &number))
		return FAULT_LINE_NONE;
	fault->kind = FAULT_OOM;
	SET(fault, PID, pid, number);
	/* The name may hold brackets of its own, and has 15 bytes at most. */
	if (take(&rest, " (") && (close = memrchr(rest.at, ')', rest.len < 16 ? rest.len : 16)))
		PUT(fault->process, ((struct str){ rest.at, (size_t)(close - rest.at) }));
	rest = behind(text, "anon-rss:");
	if (rest.at && take_number(&rest, &number))
		SET(fault, MEMORY_KB, memory_kb, number);
	SET(fault, IN_CGROUP, in_cgroup, str_starts(text, "Memory cgroup"));
	if (parser->cgroup_lines > 0)
		memcpy(fault->cgroup, parser->cgroup, sizeof(fault->cgroup));
	parser->cgroup_lines = 0;
	PUT(fault->text, text);
	return FAULT_LINE_FAULT;
}

static void count_down(struct fault_parser *parser)
{
	parser->lost_lines -= parser->lost_lines > 0;
	parser->mismatch_lines -= parser->mismatch_lines > 0;
	parser->cgroup_lines -= parser->cgroup_lines > 0;
}

enum fault_line fault_line_parse(struct fault_parser *parser, struct str message,
				 struct fault *ret_fault)
{
	struct str text = behind(message, "NVRM: ");
	const char *found;

	*ret_fault = (struct fault){ 0 };
	count_down(parser);
	if (!message.len)
		return FAULT_LINE_NONE;
	if (text.at)
		return nvrm(parser, str_trim(text), ret_fault);
	if (str_ends(message, "NVRM: Xid") || str_is(message, "NVRM:"))
		return str_is(message, "NVRM:") ? FAULT_LINE_NONE : FAULT_LINE_BROKEN;
	if ((found = str_find(message, "SXid")) && str_find(message, "nvswitch")) {
		text = (struct str){ found + 4, (size_t)(message.at + message.len - found - 4) };
		return sxid(str_trim(text),
			    (struct str){ message.at, (size_t)(found - message.at) }, ret_fault);
	}
	return oom(parser, message, ret_fault);
}

enum fault_line fault_line_end(struct fault_parser *parser, struct fault *ret_fault)
{
	return ends_mismatch(parser, ret_fault) ? FAULT_LINE_FAULT : FAULT_LINE_NONE;
}
