#include "know/fault_catalogue.h"

#include <inttypes.h>
#include <string.h>

#include "base/i18n.h"
#include "know/know.h"

const char *fault_weight_name(enum fault_weight weight)
{
	static const char *const name[] = {
#define X(id, text) [FAULT_WEIGHT_##id] = text,
		FAULT_WEIGHT_LIST(X)
#undef X
	};

	return name[weight];
}

/* NVML's nvmlDeviceGpuRecoveryAction_t, the same numbers as in the line. */
enum { RECOVER_NONE, RECOVER_RESET, RECOVER_REBOOT, RECOVER_DRAIN_P2P, RECOVER_DRAIN_RESET };

const char *fault_recovery_text(int64_t action)
{
	switch (action) {
	case RECOVER_NONE:
		return N_("nothing to do");
	case RECOVER_RESET:
		return N_("reset the GPU: stop what uses it, then nvidia-smi --gpu-reset -i N");
	case RECOVER_REBOOT:
		return N_("reboot the machine");
	case RECOVER_DRAIN_P2P:
		return N_("let the jobs end that use peer-to-peer traffic of this GPU, then reset "
			  "it");
	case RECOVER_DRAIN_RESET:
		return N_("let the running jobs end, start no new ones, then reset the GPU");
	default:
		return N_("do what the name of the action says");
	}
}

static const struct {
	enum fault_kind kind;
	enum fault_weight weight;
	const char *meaning, *causes, *action;
} PLAIN[] = {
	{ FAULT_OFF_BUS, FAULT_WEIGHT_FATAL,
	  N_("The host can no longer reach the GPU over PCIe; told without an Xid number"),
	  N_("power loss, overheating, PCIe link down, seating, riser or cable, board fault"),
	  N_("As Xid 79: drain the node, power cycle it (cold), check PCIe errors (AER), power "
	     "supply, seating and the BMC's log; if it comes back, replace the board") },
	{ FAULT_INIT, FAULT_WEIGHT_FATAL, N_("The driver could not start the GPU"),
	  N_("firmware, power, PCIe or board; after Xid 79 its consequence"),
	  N_("Look at the lines before it; reset the GPU, then a cold boot; if it comes back, "
	     "service") },
	{ FAULT_MISMATCH, FAULT_WEIGHT_ERROR,
	  N_("The user library is of another version than the loaded kernel module: the driver was "
	     "updated and not reloaded, or a container brings its own library"),
	  N_("unattended upgrade; libraries of a container image in front of the host's"),
	  N_("Reboot, or stop all users of the GPU and reload the modules; hold the packages; in a "
	     "container remove the image's own libcuda and libnvidia-ml") },
	{ FAULT_OOM, FAULT_WEIGHT_ERROR,
	  N_("The kernel killed a process because host memory ran out"),
	  N_("data loader workers, pinned memory, page cache of a container counted against its "
	     "limit, a leak"),
	  N_("Fewer or smaller data loader workers, less pinned memory, a higher memory limit of "
	     "the container; this is host memory, not the GPU's") },
	{ FAULT_RATE_LIMIT, FAULT_WEIGHT_INFO,
	  N_("The driver prints only some of its messages from here on"), "",
	  N_("Counts of this GPU's faults after it are lower bounds") },
};

static enum fault_weight weight_of(const char *word)
{
	for (int weight = 0; weight <= FAULT_WEIGHT_FATAL; weight++) {
		if (!strcmp(word, fault_weight_name((enum fault_weight)weight)))
			return (enum fault_weight)weight;
	}
	return FAULT_WEIGHT_WARN;
}

static bool entry_of(const char *kind, int64_t number, struct know_entry *ret_entry)
{
	struct buf name = { 0 };
	bool found;

	buf_printf(&name, "%" PRId64, number);
	found = know_get(kind, name.at, ret_entry);
	buf_done(&name);
	return found;
}

static bool is_link(const struct fault *fault)
{
	return fault->kind == FAULT_XID && fault->number >= 144 && fault->number <= 150;
}

/* The line knows better than the number. */
static enum fault_weight weight_in_line(const struct fault *fault, enum fault_weight weight)
{
	if (is_link(fault) && fault_has(fault, FAULT_FATAL))
		return fault->fatal ? FAULT_WEIGHT_FATAL : FAULT_WEIGHT_WARN;
	if (fault->kind == FAULT_XID && fault->number == 154 && fault_has(fault, FAULT_ACTION_TO))
		return fault->action_to == RECOVER_NONE        ? FAULT_WEIGHT_INFO
		       : fault->action_to == RECOVER_DRAIN_P2P ? FAULT_WEIGHT_ERROR
							       : FAULT_WEIGHT_FATAL;
	return weight;
}

static void xid_meaning(const struct fault *fault, struct fault_meaning *ret)
{
	struct know_entry entry;

	ret->weight = FAULT_WEIGHT_WARN;
	ret->meaning = N_("This Xid number is in no catalogue that sonde knows");
	ret->action = N_("Read the text of the line; look for a newer list of Xid numbers; if it "
			 "comes back, collect nvidia-bug-report.sh and ask NVIDIA");
	if (entry_of("xid", fault->number, &entry)) {
		ret->known = true;
		ret->name = know_cell(&entry, "name");
		ret->meaning = know_cell(&entry, "meaning");
		ret->causes = know_cell(&entry, "likely_causes");
		ret->action = know_cell(&entry, "action");
		ret->weight = weight_of(know_cell(&entry, "severity"));
	}
	ret->weight = weight_in_line(fault, ret->weight);
	if (fault->number == 154 && fault_has(fault, FAULT_ACTION_TO))
		ret->action = fault_recovery_text(fault->action_to);
	/* The catalogue tells how to read the line; that is done by now. */
	if (is_link(fault) && fault_has(fault, FAULT_FATAL))
		ret->action =
			fault->fatal
				? N_("Reset the GPU; look at the link, its cable or backplane and "
				     "what is at its other end; the same link again: service")
				: N_("Count it for each link; no action alone; often on one "
				     "link: service");
}

static void sxid_meaning(const struct fault *fault, struct fault_meaning *ret)
{
	struct know_entry entry;
	const char *class = "";

	ret->meaning = N_("This SXid number is in no catalogue that sonde knows");
	ret->action = N_("Look at the Fatal or Non-fatal word in the line");
	if (entry_of("sxid", fault->number, &entry)) {
		ret->known = true;
		ret->name = know_cell(&entry, "name");
		ret->meaning = know_cell(&entry, "unit");
		if (!*ret->meaning)
			ret->meaning = N_("Of this SXid only number and name are public");
		ret->action = know_cell(&entry, "action");
		class = know_cell(&entry, "class");
	}
	if (!strcmp(class, "always fatal") || (fault_has(fault, FAULT_FATAL) && fault->fatal))
		ret->weight = FAULT_WEIGHT_FATAL;
	else if (!strcmp(class, "potentially fatal"))
		ret->weight = FAULT_WEIGHT_ERROR;
	else
		ret->weight = FAULT_WEIGHT_WARN;
}

void fault_meaning_of(const struct fault *fault, struct fault_meaning *ret_meaning)
{
	*ret_meaning =
		(struct fault_meaning){ .name = "", .meaning = "", .causes = "", .action = "" };
	if (fault->kind == FAULT_XID)
		xid_meaning(fault, ret_meaning);
	if (fault->kind == FAULT_SXID)
		sxid_meaning(fault, ret_meaning);
	for (size_t i = 0; i < sizeof(PLAIN) / sizeof(*PLAIN); i++) {
		if (PLAIN[i].kind != fault->kind)
			continue;
		ret_meaning->known = true;
		ret_meaning->weight = PLAIN[i].weight;
		ret_meaning->meaning = PLAIN[i].meaning;
		ret_meaning->causes = PLAIN[i].causes;
		ret_meaning->action = PLAIN[i].action;
	}
}

bool fault_is_aftermath(const struct fault *fault)
{
	return fault->kind == FAULT_RATE_LIMIT ||
	       (fault->kind == FAULT_XID && (fault->number == 45 || fault->number == 154));
}

/* Which Xid is told in the wake of which: the meaning column of data/xid.csv.
 * 0 ends a row; an empty row of causes is any fault but a clean-up. */
static const struct {
	int64_t later;
	int64_t earlier[12];
} WAKE[] = {
	{ 45, { 0 } },
	{ 154, { 0 } },
	/* "the channel of one application was stopped after it faulted" */
	{ 43, { 8, 11, 13, 25, 31, 32, 44, 69, 94 } },
	/* Double bit error: how it was contained, and the repair recorded. */
	{ 171, { 48 } },
	{ 172, { 48 } },
	{ 94, { 48, 171, 172 } },
	{ 95, { 48, 171, 172 } },
	{ 63, { 48, 92, 94, 95, 171 } },
	{ 64, { 48, 92, 94, 95, 171 } },
};

static bool is_lost(const struct fault *fault)
{
	return fault->kind == FAULT_OFF_BUS || (fault->kind == FAULT_XID && fault->number == 79);
}

bool fault_follows(const struct fault *later, const struct fault *earlier)
{
	if (fault_is_aftermath(earlier) || earlier->kind == FAULT_OOM ||
	    earlier->kind == FAULT_MISMATCH)
		return false;
	/* A card that is gone answers nothing any more: all that comes after is
	 * about that. */
	if (is_lost(earlier) &&
	    (later->kind == FAULT_XID || later->kind == FAULT_OFF_BUS || later->kind == FAULT_INIT))
		return later->kind != FAULT_XID || later->number != 79 ||
		       earlier->kind == FAULT_OFF_BUS;
	if (later->kind == FAULT_RATE_LIMIT)
		return true;
	if (later->kind != FAULT_XID || earlier->kind != FAULT_XID)
		return false;
	for (size_t i = 0; i < sizeof(WAKE) / sizeof(*WAKE); i++) {
		if (WAKE[i].later != later->number)
			continue;
		if (!WAKE[i].earlier[0])
			return true;
		for (size_t k = 0; WAKE[i].earlier[k]; k++) {
			if (WAKE[i].earlier[k] == earlier->number)
				return true;
		}
	}
	return false;
}
