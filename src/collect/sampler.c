#include "collect/sampler.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/note.h"

/* Bits that are no hindrance: an idle card, and clocks somebody asked for. */
static const uint64_t HARMLESS_REASONS = 0x1 | 0x2;
enum { ORIGINS_AFTER = 2 }; /* rounds: in the first some wait for a second reading */

struct seen {
	char uuid[96], pci_bus[20];
	uint32_t device, lane;
	uint32_t rounds;
	bool has_reasons;
	uint64_t reasons;
	enum board_state state;
};

struct sampler {
	struct sink *sink;
	uint32_t source;
	bool has_generation;
	uint32_t generation;
	char driver[32];
	char silence[sizeof(((struct err *)0)->line)]; /* why the last round had no values; "" */
	VEC(struct seen) seen;
};

struct sampler *sampler_new(struct sink *sink, int64_t interval_ns)
{
	struct sampler *sampler = mem_zero(sizeof(*sampler));
	struct source *source;

	sampler->sink = sink;
	sampler->source = session_source(sink->session, "nvml", "");
	source = &sink->session->sources.at[sampler->source];
	source->has_utc = true;
	source->utc_offset_ns = 0;
	source->mapping_error_ns = 0;
	source->interval_ns = interval_ns;
	source->accelerator = intern_text(sink->session->strings, "NVIDIA");
	return sampler;
}

void sampler_free(struct sampler *sampler)
{
	if (!sampler)
		return;
	VEC_DONE(&sampler->seen);
	free(sampler);
}

uint32_t sampler_source(const struct sampler *sampler)
{
	return sampler->source;
}

/* Without the function, which not everybody writes. */
static bool same_bus(const char *a, const char *b)
{
	size_t len = strcspn(a, ".");

	return len && len == strcspn(b, ".") && !strncasecmp(a, b, len);
}

uint32_t sampler_lane(const struct sampler *sampler, const char *pci_bus)
{
	for (size_t i = 0; i < sampler->seen.count; i++)
		if (same_bus(sampler->seen.at[i].pci_bus, pci_bus))
			return sampler->seen.at[i].lane;
	return SESSION_NONE;
}

static uint32_t add_device(struct sampler *sampler, const struct board *board)
{
	struct intern *strings = sampler->sink->session->strings;
	struct device facts = {
		.scope = DEVICE_OF_SMI,
		.source = sampler->source,
		.ordinal = board->parent < 0 ? (int64_t)board->index : -1,
		.uuid = intern_text(strings, board->uuid),
		.name = intern_text(strings, board->name),
		.maker = intern_text(strings, "NVIDIA"),
		.cc_major = board->cc_major,
		.cc_minor = board->cc_minor,
	};
	double bytes;

	/* An instance shares its card's address and is not the card. */
	if (board->parent < 0)
		facts.pci_bus = intern_text(strings, board->pci_bus);
	if (sample_get(&board->sample, METRIC_mem_total_bytes, &bytes))
		facts.memory_bytes = (int64_t)bytes;
	return session_device(sampler->sink->session, &facts);
}

static struct seen *see(struct sampler *sampler, const struct board *board)
{
	struct seen *seen;
	struct lane lane = {
		.kind = LANE_BOARD,
		.source = sampler->source,
		.process = SESSION_NONE,
		.context = -1,
		.stream = -1,
		.tid = -1,
	};

	for (size_t i = 0; i < sampler->seen.count; i++)
		if (!strcmp(sampler->seen.at[i].uuid, board->uuid))
			return &sampler->seen.at[i];
	lane.device = add_device(sampler, board);
	seen = VEC_ADD(&sampler->seen);
	memcpy(seen->uuid, board->uuid, sizeof(seen->uuid));
	if (board->parent < 0)
		memcpy(seen->pci_bus, board->pci_bus, sizeof(seen->pci_bus));
	seen->device = lane.device;
	seen->lane = session_lane(sampler->sink->session, &lane);
	return seen;
}

static int push_mark(struct sampler *sampler, enum mark_kind kind, uint32_t lane, int64_t time_ns,
		     const char *name, const char *detail, struct err *err)
{
	struct session *session = sampler->sink->session;
	struct mark mark = {
		.kind = kind,
		.lane = lane,
		.time_ns = time_ns,
		.name = intern_text(session->strings, name),
		.detail = *detail ? session_detail(session, detail, strlen(detail)) : 0,
	};

	return sink_mark(sampler->sink, &mark, err);
}

static int push_reasons(struct sampler *sampler, struct seen *seen, const struct board *board,
			int64_t time_ns, struct err *err)
{
	uint64_t before = seen->reasons, now;
	bool first = !seen->has_reasons;
	char detail[64];
	double value;

	if (!sample_get(&board->sample, METRIC_clock_reasons, &value))
		return 0;
	now = (uint64_t)value & ~HARMLESS_REASONS;
	seen->has_reasons = true;
	seen->reasons = now;
	if (now == before || (first && !now))
		return 0;
	(void)snprintf(detail, sizeof(detail), "before=0x%llx;after=0x%llx",
		       (unsigned long long)before, (unsigned long long)now);
	return push_mark(sampler, MARK_THROTTLE, seen->lane, time_ns, "clock event reasons", detail,
			 err);
}

static int push_state(struct sampler *sampler, struct seen *seen, const struct board *board,
		      int64_t time_ns, struct err *err)
{
	static const char *const words[] = {
		[BOARD_OK] = "the card answers again",
		[BOARD_ASLEEP] = "the card sleeps",
		[BOARD_LOST] = "the card is lost",
		[BOARD_GONE] = "the card is no longer listed",
	};
	char detail[32] = "";

	if (seen->state == board->state)
		return 0;
	seen->state = board->state;
	if (board->status)
		(void)snprintf(detail, sizeof(detail), "status=%d", board->status);
	return push_mark(sampler, MARK_TEXT, seen->lane, time_ns, words[board->state], detail, err);
}

/* An Xid is a fault, and whoever hears of those from more than one source pushes
 * it; what else the driver tells is a mark. */
static int push_event(struct sampler *sampler, const struct snapshot *snapshot,
		      const struct board_event *event, struct err *err)
{
	if (event->type == EVENT_XID || event->board >= snapshot->boards.count)
		return 0;
	return push_mark(sampler, MARK_TEXT, see(sampler, &snapshot->boards.at[event->board])->lane,
			 snapshot->utc_ns, board_event_words(event->type), "", err);
}

/* Why metrics are absent or come from elsewhere, once for a board. */
static void put_origins(struct sampler *sampler, struct seen *seen, const struct board *board)
{
	static const enum origin told[] = { ORIGIN_WRAPPER, ORIGIN_NOT_SUPPORTED,
					    ORIGIN_NO_FUNCTION, ORIGIN_NO_PERMISSION,
					    ORIGIN_DEPRECATED };
	struct buf list = { 0 };
	char key[64];

	if (++seen->rounds != ORIGINS_AFTER)
		return;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		buf_clear(&list);
		for (int m = 0; m < METRIC_COUNT; m++)
			if (board->origin[m] == told[i])
				buf_printf(&list, "%s%s", list.len ? ", " : "",
					   metric_name((enum metric)m));
		(void)snprintf(key, sizeof(key), "origin / %s", origin_name(told[i]));
		if (list.len)
			session_env(sampler->sink->session, sampler->source, seen->device,
				    str_of(key), (struct str){ list.at, list.len });
	}
	buf_done(&list);
}

static int push_board(struct sampler *sampler, const struct snapshot *snapshot,
		      const struct board *board, struct err *err)
{
	struct seen *seen = see(sampler, board);
	struct sample sample = board->sample;
	double mhz;
	int ret = push_state(sampler, seen, board, snapshot->utc_ns, err);

	if (ret < 0 || board->state == BOARD_GONE)
		return ret;
	ret = push_reasons(sampler, seen, board, snapshot->utc_ns, err);
	if (ret < 0)
		return ret;
	if (board->state == BOARD_OK)
		put_origins(sampler, seen, board);
	if (!sample.have[0] && !sample.have[1])
		return 0;
	/* Asked with health, that is seldom: beside the SM clock of each round, which
	 * runs with it, one old value would pass for the whole recording. */
	if (sample_get(&sample, METRIC_sm_mhz, &mhz))
		sample.have[METRIC_graphics_mhz / 64] &= ~((uint64_t)1 << METRIC_graphics_mhz % 64);
	sample.lane = seen->lane;
	sample.time_ns = snapshot->utc_ns;
	return sink_sample(sampler->sink, &sample, err);
}

static int push_process(struct sampler *sampler, const struct snapshot *snapshot,
			const struct board_process *process, struct err *err)
{
	struct session *session = sampler->sink->session;
	const struct seen *seen = see(sampler, &snapshot->boards.at[process->board]);
	struct sample sample = process->sample;
	struct lane lane = {
		.kind = LANE_PROCESS,
		.source = sampler->source,
		.device = seen->device,
		.context = -1,
		.stream = -1,
		.tid = -1,
	};
	static const char *const types[8] = {
		"", "C", "G", "C+G", "M", "M", "M", "M",
	};
	const char *type = types[process->kinds & 7];

	lane.process = session_process(session, sampler->source, process->pid);
	if (*type)
		session->processes.at[lane.process].type = intern_text(session->strings, type);
	sample.lane = session_lane(session, &lane);
	sample.time_ns = snapshot->utc_ns;
	return sink_sample(sampler->sink, &sample, err);
}

static void put_envs(struct sampler *sampler, const struct snapshot *snapshot)
{
	struct session *session = sampler->sink->session;

	if (!strcmp(sampler->driver, snapshot->driver))
		return;
	memcpy(sampler->driver, snapshot->driver, sizeof(sampler->driver));
	session_env(session, sampler->source, SESSION_NONE, STR("driver"),
		    str_of(snapshot->driver));
	if (snapshot->cuda[0])
		session_env(session, sampler->source, SESSION_NONE, STR("cuda"),
			    str_of(snapshot->cuda));
	if (snapshot->wrapper[0])
		session_env(session, sampler->source, SESSION_NONE, STR("values answered by"),
			    str_of(snapshot->wrapper));
}

/* A mark about the driver, which is on no card. */
static int push_driver(struct sampler *sampler, int64_t time_ns, const char *name, const char *why,
		       struct err *err)
{
	struct lane lane = { .kind = LANE_OTHER,
			     .source = sampler->source,
			     .device = SESSION_NONE,
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };

	return push_mark(sampler, MARK_TEXT, session_lane(sampler->sink->session, &lane), time_ns,
			 name, why, err);
}

int sampler_silence(struct sampler *sampler, int64_t utc_ns, const char *why, struct err *err)
{
	struct session *session = sampler->sink->session;

	session_loss(session, sampler->source, LOSS_dropped, 1);
	if (!strcmp(sampler->silence, why))
		return 0;
	(void)snprintf(sampler->silence, sizeof(sampler->silence), "%s", why);
	session_note(session, sampler->source, NOTE_NO_VALUES, why);
	return push_driver(sampler, utc_ns, "the driver gives no values", why, err);
}

int sampler_push(struct sampler *sampler, const struct snapshot *snapshot, struct err *err)
{
	int ret = 0;

	if (*sampler->silence)
		ret = push_driver(sampler, snapshot->utc_ns, "the driver gives values again", "",
				  err);
	sampler->silence[0] = 0;
	put_envs(sampler, snapshot);
	for (size_t i = 0; ret >= 0 && i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];

		if (sampler->has_generation && sampler->generation != snapshot->generation &&
		    board->parent < 0 && board->state == BOARD_OK)
			ret = push_mark(sampler, MARK_TEXT, see(sampler, board)->lane,
					snapshot->utc_ns, "counters start again", "", err);
		if (ret >= 0)
			ret = push_board(sampler, snapshot, board, err);
	}
	for (size_t i = 0; i < snapshot->processes.count && ret >= 0; i++)
		if (snapshot->processes.at[i].board < snapshot->boards.count)
			ret = push_process(sampler, snapshot, &snapshot->processes.at[i], err);
	for (size_t i = 0; i < snapshot->events.count && ret >= 0; i++)
		ret = push_event(sampler, snapshot, &snapshot->events.at[i], err);
	sampler->has_generation = true;
	sampler->generation = snapshot->generation;
	return ret < 0 ? ret : 0;
}
