/*
 * writer.h - the state of a profile that is being written. Internal to store/.
 *
 * store_write.c collects events and writes chunks, pack.c packs them,
 * store_file.c makes, locks, finishes and gives up the file.
 */
#pragma once

#include "store/pack_ahead.h"

/* Small tails that stand before they are made one (recordings). */
enum { SMALL_TAILS = 16 };

struct rows {
	uint32_t lane;
	enum store_kind kind;
	int64_t *at;
	size_t count, room;
	int64_t tail; /* rowid of the tail chunk in the file; 0: none */
	bool dirty;   /* has rows that the tails have not */
	bool full;    /* the last chunk was a full one */
	/* of a recording: rows that are in the file, and chunks of the last of them */
	size_t written;
	int64_t small[SMALL_TAILS];
	int small_count;
};

struct writer {
	struct sink sink;
	struct store *store;
	int fd; /* of PATH.part, holds the lock */
	char *part;
	VEC(struct rows) rows;
	VEC(uint32_t) by_lane; /* lane * STORE_KIND_COUNT + kind -> index + 1 */
	size_t bytes;          /* in all buffers */
	struct saved saved;
	sqlite3_stmt *insert, *remove;
	bool recording;
	size_t rows_max, budget_bytes; /* of a chunk, of all buffers */
	int64_t next_rowid;
	int64_t next_tail_ns;
	uint32_t events_to_clock;
	bool in_transaction;
	bool unsaved; /* events came since the tails were written */
	bool finished;
	struct packer *packer;
	struct pack_job job; /* the packer's; its rows are somebody else's */
	struct pack_ahead *ahead;
	bool ahead_tried;
	/* by id in session->details: the place in the job's texts */
	uint32_t *places;
	size_t place_room;
};

extern const struct sink_ops writer_ops;
/* Full chunks of all that is in memory, which then can go. */
int writer_write_all(struct writer *writer, struct err *err);
/* The same as tails, committed; sets when the next are due. */
int writer_write_tails(struct writer *writer, struct err *err);
int writer_commit(struct writer *writer, struct err *err);
/* How many events until the first look at the clock, and when tails are due. */
void writer_start(struct writer *writer);
