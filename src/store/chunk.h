/*
 * chunk.h - columns of int64 as few bytes.
 *
 * A chunk is a sequence of columns, each on its own: name, transform, width,
 * base, then `width` planes of one byte a row (the lowest byte of every value,
 * then the next ...), each compressed with zstd unless that does not help.
 * Planes put the noise of a time stamp's low byte, which nothing compresses,
 * apart from its high bytes, which are nearly constant; and they decode with
 * plain vector code. A column of zeros takes no space. doc/formats/profile.md.
 * Internal to store/.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

enum { CHUNK_ROWS_MAX = 65536 };

struct chunk_codec;

struct chunk_codec *chunk_codec_new(void);
void chunk_codec_free(struct chunk_codec *codec);
DEFINE_OWNED(chunk_codec, chunk_codec_free);

/* Add a column; nothing if all values are 0. Doubles, given as their bits,
 * are XORed with their predecessor instead of subtracted. */
void chunk_put(struct chunk_codec *codec, struct buf *out, const char *name, const int64_t *values,
	       size_t count, bool is_double);
/* Add a column of plain bytes. */
void chunk_put_bytes(struct chunk_codec *codec, struct buf *out, const char *name, const void *at,
		     size_t len);

/* The column `name` of a chunk of `count` rows into values[count]: 1, 0 if it
 * is not there (then all its values are 0 and values[] is zeroed), or a
 * negative value if the chunk is damaged. */
int chunk_get(struct chunk_codec *codec, struct str chunk, const char *name, size_t count,
	      int64_t *values);
/* Bytes of a column put by chunk_put_bytes, appended to `out`. Same results. */
int chunk_get_bytes(struct chunk_codec *codec, struct str chunk, const char *name, struct buf *out);
