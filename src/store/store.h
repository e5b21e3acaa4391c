/*
 * store.h - the profile file.
 *
 * One SQLite file (application_id "SOND"): the session's small tables in the
 * clear, events in chunks of up to 65,536 of one lane and kind, columns
 * encoded and compressed one by one (doc/formats/profile.md). Nobody outside
 * store/ sees a statement. A query names kinds, lanes, columns and a time
 * window and gets chunks, decoded columns only; a whole file is never loaded.
 *
 * Writing: a store is a sink. Events collect in memory, chunks are written
 * when full, when memory is short, and with the first event after a second;
 * each write is a transaction with the session rows it refers to. The file is written in WAL
 * mode as PATH.part (0600, O_NOFOLLOW, on the disk of PATH), and store_finish makes it a single
 * file and renames it to PATH: until then an old PATH stays. A writer that
 * dies leaves PATH.part (and -wal) behind, which store_open_read opens and
 * marks as cut. Two writers of one path: the second gets ERR_BUSY.
 *
 * Reading: hostile input. Read-only, immutable where the medium is, defensive,
 * no trusted schema, every size checked before it is used, a checksum on each
 * chunk. A chunk that does not check out is counted in store_damage and
 * skipped. ERR_FORMAT: no profile; ERR_UNSUPPORTED: a newer major version.
 *
 * Not thread safe: one store, one thread. A large import has one more, which
 * packs chunks and is gone with store_finish, store_close or store_discard.
 */
#pragma once

#include "base/err.h"
#include "base/own.h"
#include "model/sink.h"

struct store;

int store_create(const char *path, struct store **ret_store, struct err *err);

/*
 * The same for a recording that goes on for hours with little memory: samples
 * are rounded to 1/64 of their unit, chunks are small, and each store_flush
 * writes just what is new. The caller flushes; durably means that what was
 * written outlives the machine's power, not only this process.
 */
int store_create_recording(const char *path, struct store **ret_store, struct err *err);
int store_flush_durably(struct store *store, struct err *err);
/* What a killed writer left as PATH.part becomes PATH, still marked as cut: 1;
 * 0: there was none, or nothing in it. ERR_BUSY: it is being written;
 * ERR_FORMAT: it can't be read, and stays. An old PATH is replaced. */
int store_recover(const char *path, struct err *err);
/* Is PATH a finished recording as store_create_recording begins them? */
bool store_is_recording(const char *path);

/* For reading, also while it is written; PATH.part where PATH is not there yet.
 * ERR_MISSING: neither is there; ERR_FORMAT: no profile, or nothing in it can be
 * read; ERR_UNSUPPORTED: of a newer version. */
int store_open(const char *path, struct store **ret_store, struct err *err);

/* Release; NULL is a no-op. A written store that was not finished stays as
 * PATH.part. */
void store_close(struct store *store);
/* The same, and a written store that was not finished leaves no file behind. */
void store_discard(struct store *store);
DEFINE_OWNED(store, store_close);

/* The session: of a created store empty and to be filled, of an opened one as
 * read. Borrowed until store_close. */
struct session *store_session(struct store *store);

/* Where to push events of a created store. Borrowed until store_close. */
struct sink *store_sink(struct store *store);

/* Write all that is in memory. */
int store_flush(struct store *store, struct err *err);
/* Flush, settle, make it one file, move it to its place. Then only
 * store_close may follow. */
int store_finish(struct store *store, struct err *err);

/* An opened store: the recording was cut off. */
bool store_was_cut(const struct store *store);
/* An opened store: chunks that did not check out so far. */
int64_t store_damage(const struct store *store);
const char *store_path(const struct store *store);

/* X(kind): one chunk kind each; op and call kinds have chunks of their own. */
#define STORE_KIND_LIST(X) \
	X(kernel)          \
	X(memcpy)          \
	X(memset)          \
	X(graph)           \
	X(device_other)    \
	X(runtime)         \
	X(driver)          \
	X(op)              \
	X(python)          \
	X(overhead)        \
	X(sync)            \
	X(os)              \
	X(call_other)      \
	X(range)           \
	X(state)           \
	X(state_exact)     \
	X(cpu_stack)       \
	X(python_stack)    \
	X(page_fault)      \
	X(link)            \
	X(alloc)           \
	X(sample)          \
	X(stall)           \
	X(counter)         \
	X(mark)

enum store_kind {
#define X(kind) STORE_##kind,
	STORE_KIND_LIST(X)
#undef X
		STORE_KIND_COUNT
};
#define STORE_BIT(kind) (1u << (kind))

/* X(column). Integers but for value (double). start is the only time of
 * instants; duration is end - start and may be negative in hostile files. */
#define STORE_COLUMN_LIST(X) \
	X(start)             \
	X(duration)          \
	X(name)              \
	X(key)               \
	X(correlation)       \
	X(external)          \
	X(graph_node)        \
	X(bytes)             \
	X(copy)              \
	X(host_memory)       \
	X(queued)            \
	X(detail)            \
	X(flow)              \
	X(sequence)          \
	X(parent)            \
	X(subkind)           \
	X(id)                \
	X(is_end)            \
	X(address)           \
	X(allocated)         \
	X(reserved)          \
	X(device)            \
	X(function)          \
	X(pc_offset)         \
	X(reason)            \
	X(samples)           \
	X(launch)            \
	X(unit)              \
	X(text)              \
	X(value)             \
	X(faults)            \
	X(cubin)

enum store_column {
#define X(column) COL_##column,
	STORE_COLUMN_LIST(X)
#undef X
		STORE_COLUMN_COUNT
};
#define COL_BIT(column) ((uint64_t)1 << (column))

struct store_query {
	uint32_t kinds;   /* STORE_BIT(...) of those wanted */
	uint64_t columns; /* COL_BIT(...) of those wanted */
	bool one_lane;
	uint32_t lane; /* with one_lane */
	bool one_window;
	int64_t from_ns, to_ns; /* source time; chunks that touch [from, to) come whole */
	bool keys_only;         /* kernels by key: without COL_name */
};

/* One decoded chunk, of a lane and a source that there are; borrowed until the next store_next or
 * store_query_close. Rows are in order of start. A column that was not asked for, or that this kind
 * does not have, is NULL. subkind is the range, link or mark kind. */
struct store_batch {
	enum store_kind kind;
	uint32_t lane;
	size_t count;
	const int64_t *col[STORE_COLUMN_COUNT];
	const double *value;          /* of counters */
	const struct sample *samples; /* of STORE_sample, all columns of it */
};

struct store_cursor;

/* Chunks come in order of lane, kind, first start. */
int store_query_open(struct store *store, const struct store_query *query,
		     struct store_cursor **ret_cursor, struct err *err);
/* 1: a batch; 0: the end; negative: ERR_IO. */
int store_next(struct store_cursor *cursor, struct store_batch *ret_batch, struct err *err);
void store_query_close(struct store_cursor *cursor);
DEFINE_OWNED(store_cursor, store_query_close);

/* Events of a kind in the file, from the chunk headers: no decoding. */
int64_t store_count(struct store *store, enum store_kind kind);

/*
 * SQL over a profile: each kind is a table (kernel, memcpy, runtime, op, ...)
 * with resolved names beside ids; the session's tables are as they are in the
 * file, with ids into `string`. Opens read-only
 * by its own connection, also while another process writes the file. `row` is
 * called for the header (values == NULL) and each row; a NULL value is SQL
 * NULL; numbers[i]: the value is an integer or a real, not a text that looks
 * like one. A non-zero return of `row` stops. ERR_USAGE: bad SQL; ERR_FORMAT
 * also when all rows were given but damaged chunks were left out.
 */
typedef int store_sql_row(void *arg, int count, const char *const *names, const char *const *values,
			  const bool *numbers);
int store_sql(const char *path, const char *query, store_sql_row *row, void *arg, struct err *err);
