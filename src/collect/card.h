/*
 * card.h - the cards as the collector's child knows them.
 *
 * Private to collect/. A card is what stays from round to round behind a board:
 * its handle, which questions it does not answer (asked again only when facts
 * are refreshed), the last counter values that rates are made from, its two GPM
 * samples. card_find looks which cards there are; the card_ask_* functions put
 * the values of one group into card->board.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "collect/board.h"
#include "collect/nvml.h"

enum { CARD_RINGS = 3, CARD_COUNTERS = 7, CARD_PCIE = 2 };

/* Beside enum collect_group: facts that hardly ever change. */
enum { CARD_RARE = 1 << 24 };

/* A counter's last value, and when it was read. */
struct card_counter {
	bool have;
	double value;
	int64_t time_ns;
};

enum card_listening { CARD_UNASKED, CARD_LISTENS, CARD_DEAF };

struct card {
	struct nvml_device *device; /* NULL: asleep or lost since we look */
	struct nvml_device *owner;  /* of a MIG instance: the card's */
	struct board board;         /* of this round; begins as `facts` */
	struct board facts;         /* who it is and what does not change by itself */
	uint64_t unanswered[2];     /* questions by number: see card_skip */
	uint8_t why[METRIC_COUNT];  /* origins of their metrics */
	struct card_counter counters[CARD_COUNTERS];
	/* PCIe counters have 32 bits: one reading, and the sum since the first. */
	struct card_pcie {
		bool have, lost; /* lost: the sum, as a wrap may have been missed */
		uint32_t raw;
		int64_t time_ns;
		double total;
		struct card_counter wide; /* drivers whose counters have 64 bits */
		bool has_measured;        /* drivers without counters: bytes a second */
		double measured;
		bool few;          /* it moved by less than CALM_BYTES last time */
		int64_t window_ns; /* of the last window; 0 none */
		bool has_mean;     /* of the time between the last two readings */
		double mean;
	} pcie[CARD_PCIE];
	int64_t pcie_measured_ns; /* 0 never */
	int64_t pcie_row_ns;      /* when last read for a row; 0 never */
	struct card_pcie_joined { /* read in this round with other fields */
		bool have;
		int status;
		struct nvml_field answers[CARD_PCIE];
		int64_t time_ns;
	} pcie_joined;
	bool pcie_again;      /* read once more at the end of the round */
	bool thermal_grew;    /* found in this round, since the one before that looked */
	int64_t health_ns;    /* when last asked; 0 never */
	struct sample health; /* what it said */
	uint8_t health_origin[METRIC_COUNT];
	enum card_listening listening; /* for events */
	bool struck;                   /* by one in this round */
	int64_t rare_ns;
	int64_t ring_read_ns[CARD_RINGS];
	uint64_t ring_seen_us[CARD_RINGS];
	uint64_t use_seen_us;
	bool use_old; /* only the older call for the use of processes answers */
	struct nvml_gpm_sample *gpm[2];
	int64_t gpm_ns[2]; /* 0: not taken */
	int gpm_newest;
	double energy_read_j, energy_j; /* as last read; with what was integrated since */
	int64_t energy_read_ns, power_ns;
	double power_w; /* at power_ns */
	bool energy_known;
};

struct cards {
	struct nvml nvml;
	const char *root; /* "" or a directory in place of "/" */
	bool wake;        /* ask cards that sleep */
	bool all;         /* card_find's */
	int64_t now_ns, utc_ns;
	int64_t waited_ns;        /* in this round, between two readings */
	int64_t found_ns;         /* when card_find last ran; 0 never */
	uint32_t generation;      /* counters that went backwards */
	uint32_t junk_rows;       /* of this round */
	int64_t pcie_measured_ns; /* round in which a card's turn was; 0 never */
	struct nvml_event_set *events;
	bool no_events;
	int64_t events_ns;   /* UTC of the last look; 0 never */
	VEC(struct card) at; /* a card before its MIG instances; same places as the boards */
	struct nvml_gpm_metrics *gpm; /* scratch, made once */
	void *list;                   /* scratch for lists */
	size_t list_bytes;
};

/* Look which cards there are; state of those that stay is kept. `all`: ask also
 * what hardly ever changes. Status of the call that made it impossible. */
int card_find(struct cards *cards, bool all);
void cards_done(struct cards *cards);

/* Clear what the last round said. */
void card_begin(struct card *card);
/* Values of `groups` (enum collect_group). */
void card_ask_values(struct cards *cards, struct card *card, uint32_t groups);
void card_ask_fields(struct cards *cards, struct card *card, uint32_t groups);
/* Of a row: the fields to be asked in one call with others, room for CARD_PCIE; how
 * many. Their answers go to card_pcie_joined, before card_ask_pcie. */
int card_pcie_join(const struct cards *cards, const struct card *card, uint32_t groups,
		   struct nvml_field *ret_fields);
void card_pcie_joined(struct card *card, int status, const struct nvml_field *answers);
/* After card_ask_gpm, which tells how often the PCIe counters wrapped. */
void card_ask_pcie(struct cards *cards, struct card *card, uint32_t groups);
/* Where no counter is asked: the rates of GPM. */
void card_put_pcie(struct card *card);
/* At the end of a round, if card->pcie_again. */
void card_ask_pcie_again(struct cards *cards, struct card *card);
void card_ask_gpm(struct cards *cards, struct card *card, uint32_t groups);
void card_ask_rings(struct cards *cards, uint32_t place, struct snapshot *snapshot);
void card_ask_energy(struct cards *cards, struct card *card, const struct snapshot *snapshot,
		     uint32_t place);
void card_ask_processes(struct cards *cards, uint32_t place, struct snapshot *snapshot);
/* Of all cards: what happened since the last look. First in a round. */
void card_ask_events(struct cards *cards, struct snapshot *snapshot);

/* Name and UUID from /proc, by bus address. */
void card_read_proc(const struct cards *cards, struct board *board);
/* Addresses and names of cards that the library lists and does not know. */
void card_name_lost(struct cards *cards);

/* The answer to a question: a value, or from `status` the reason for none. Also
 * marks the card as lost when the status says so. */
void card_answer(struct cards *cards, struct card *card, enum metric metric, enum nvml_call call,
		 int status, double value);
enum origin card_origin(int status);
/* Never to change by itself: not worth asking again. */
bool card_is_final(int status);
/* Value of a counter: sets `total`, and `rate` (per second) from the last one.
 * Pass METRIC_COUNT for no total or no rate. Seconds of the interval, 0 unknown. */
double card_counter(struct cards *cards, struct card *card, struct card_counter *last,
		    enum metric total, enum metric rate, double value);
