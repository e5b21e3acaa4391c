#include "serve/black_box.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/note.h"
#include "store/flight.h"

static const int64_t AFTERMATH_NS = 30 * 1000000000LL;

struct black_box {
	struct black_box_opts opts;
	struct flight *flight;
	struct watch *watch;
	char *path; /* of the record that is open to further strikes; NULL: none */
	char why[256];
	int64_t again_ns; /* when it is saved once more; 0: was */
};

struct black_box *black_box_new(const struct black_box_opts *opts)
{
	struct black_box *box = mem_zero(sizeof(*box));

	box->opts = *opts;
	box->flight = flight_new(&(struct flight_opts){ .interval_ns = opts->interval_ns });
	box->watch = watch_new();
	return box;
}

void black_box_free(struct black_box *box)
{
	if (!box)
		return;
	flight_free(box->flight);
	watch_free(box->watch);
	free(box->path);
	free(box);
}

static void tell(const struct black_box *box, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void tell(const struct black_box *box, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	box->opts.tell(box->opts.arg, line);
}

bool black_box_see(struct black_box *box, const struct snapshot *snapshot, struct trigger *ret)
{
	flight_add(box->flight, snapshot);
	return watch_see(box->watch, snapshot, ret);
}

static enum mark_kind mark_of(enum trigger_kind kind)
{
	switch (kind) {
	case TRIGGER_XID:
		return MARK_XID;
	case TRIGGER_OOM:
		return MARK_OOM;
	case TRIGGER_THERMAL:
	case TRIGGER_CLOCK:
		return MARK_THROTTLE;
	default:
		return MARK_TEXT;
	}
}

static void save(struct black_box *box)
{
	struct err err = { 0 };

	if (flight_save(box->flight, box->path, box->why, &err) < 0)
		tell(box, "flight record not saved: %s", err.line);
}

static void strike(struct black_box *box, const struct trigger *trigger, int64_t monotonic_ns)
{
	if (box->path) {
		tell(box, "%s: %s; belongs to the flight record %s", trigger_what(trigger->kind),
		     trigger->text, box->path);
		return;
	}
	box->path = mem_text(
		recorder_path(box->opts.recorder, trigger->utc_ns, trigger_word(trigger->kind)));
	(void)snprintf(box->why, sizeof(box->why), NOTE_BECAUSE, trigger_what(trigger->kind),
		       trigger->text);
	tell(box, "%s; a flight record is saved to %s", box->why, box->path);
	box->again_ns = monotonic_ns + AFTERMATH_NS;
	save(box);
}

void black_box_strike(struct black_box *box, const struct trigger *trigger, int64_t monotonic_ns)
{
	flight_line(box->flight, trigger->utc_ns, mark_of(trigger->kind), trigger->pci_bus,
		    trigger->text, "");
	strike(box, trigger, monotonic_ns);
}

static bool strikes(enum fault_kind kind, enum trigger_kind *ret)
{
	switch (kind) {
	case FAULT_XID:
	case FAULT_SXID:
		*ret = TRIGGER_XID;
		return true;
	case FAULT_OFF_BUS:
		*ret = TRIGGER_LOST;
		return true;
	case FAULT_OOM:
		*ret = TRIGGER_OOM;
		return true;
	default:
		return false;
	}
}

void black_box_fault(struct black_box *box, const struct fault *fault, int64_t monotonic_ns)
{
	struct trigger trigger = { .utc_ns = fault->time_ns };
	struct buf title = { 0 }, detail = { 0 };

	if (fault->kind == FAULT_IDENTITY || fault->kind == FAULT_DRIVER)
		return;
	fault_title(fault, &title);
	fault_detail(fault, &detail);
	flight_line(box->flight, fault->time_ns, fault_mark_kind(fault->kind), fault->pci, title.at,
		    detail.at);
	(void)snprintf(trigger.pci_bus, sizeof(trigger.pci_bus), "%.19s", fault->pci);
	(void)snprintf(trigger.text, sizeof(trigger.text), "%s%s%s%s%.150s", title.at,
		       *fault->pci ? ", " : "", fault->pci, *fault->text ? ": " : "", fault->text);
	if (strikes(fault->kind, &trigger.kind))
		strike(box, &trigger, monotonic_ns);
	buf_done(&title);
	buf_done(&detail);
}

static void describe(void *arg, struct session *session)
{
	struct black_box *box = arg;

	(void)names_put(box->opts.names, session, 0);
}

/* The next piece of a save. */
static void step(struct black_box *box)
{
	struct err err = { 0 };
	int ret = flight_save_step(box->flight, describe, box, &err);

	if (ret < 0)
		tell(box, "flight record not saved: %s", err.line);
	/* What followed is in it too: the next strike begins another. */
	if (ret <= 0 && !box->again_ns) {
		free(box->path);
		box->path = NULL;
	}
}

bool black_box_work(struct black_box *box, int64_t monotonic_ns)
{
	if (flight_saving(box->flight)) {
		step(box);
	} else if (box->path && monotonic_ns >= box->again_ns) {
		box->again_ns = 0;
		save(box);
		if (!flight_saving(box->flight)) {
			free(box->path);
			box->path = NULL;
		}
	}
	return flight_saving(box->flight);
}

int64_t black_box_due(const struct black_box *box)
{
	if (flight_saving(box->flight))
		return 0;
	return box->path ? box->again_ns : INT64_MAX;
}

void black_box_end(struct black_box *box)
{
	while (flight_saving(box->flight))
		step(box);
	if (!box->path || !box->again_ns)
		return;
	box->again_ns = 0;
	save(box);
	while (flight_saving(box->flight))
		step(box);
}
