#include "store/chunk.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/mem.h"

enum transform {
	TRANSFORM_OFFSET = 0, /* value - base; base is the least */
	TRANSFORM_DELTA = 1,  /* zigzag of value - predecessor; base is the first */
	TRANSFORM_XOR = 2,    /* value ^ predecessor; base is the first */
	TRANSFORM_BYTES = 3,  /* one plane of any length; base is that length */
};

/* Faster levels cost a tenth of the size, slower ones gain 2 %: measured on
 * torch traces with ./bench store. */
static const int ZSTD_LEVEL = 1;
static const size_t BYTES_MAX = 64u << 20;
static const uint32_t STORED = 0x80000000u; /* in a plane's size: not compressed */

enum { PLANES_MOST = 8 };

struct chunk_codec {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
	uint64_t *words;
	uint8_t *planes; /* PLANES_MOST of CHUNK_ROWS_MAX; packing uses the first */
	struct buf packed;
};

struct column {
	enum transform transform;
	unsigned int width;
	int64_t base;
	const uint8_t *sizes; /* `width` little-endian uint32, then the planes */
	const uint8_t *planes;
};

struct chunk_codec *chunk_codec_new(void)
{
	struct chunk_codec *codec = mem_zero(sizeof(*codec));

	codec->pack = ZSTD_createCCtx();
	codec->unpack = ZSTD_createDCtx();
	codec->words = mem_alloc(CHUNK_ROWS_MAX * sizeof(*codec->words));
	codec->planes = mem_alloc((size_t)PLANES_MOST * CHUNK_ROWS_MAX);
	return codec;
}

void chunk_codec_free(struct chunk_codec *codec)
{
	if (!codec)
		return;
	(void)ZSTD_freeCCtx(codec->pack);
	(void)ZSTD_freeDCtx(codec->unpack);
	free(codec->words);
	free(codec->planes);
	buf_done(&codec->packed);
	free(codec);
}

static uint64_t zigzag(uint64_t difference)
{
	return (difference << 1) ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t word)
{
	return (word >> 1) ^ (0 - (word & 1));
}

static void put_u32(struct buf *out, uint32_t value)
{
	uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
			     (uint8_t)(value >> 24) };

	buf_add(out, bytes, 4);
}

static uint32_t get_u32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static unsigned int bits(uint64_t word)
{
	return word ? 64 - (unsigned int)__builtin_clzll(word) : 0;
}

/* Of a long column every so many values are looked at to choose. */
static const size_t CHOOSE_FROM = 4096, CHOOSE_STEP = 8;

/* Bits that the values take as offsets from the least and as differences. */
static enum transform choose(const int64_t *values, size_t count, int64_t *ret_least)
{
	size_t step = count > CHOOSE_FROM ? CHOOSE_STEP : 1;
	int64_t least = values[0];
	uint64_t offset_bits = 0;
	uint64_t delta_bits = 0;

	for (size_t i = 1; i < count; i++)
		least = values[i] < least ? values[i] : least;
	for (size_t i = 1; i < count; i += step) {
		offset_bits += bits((uint64_t)values[i] - (uint64_t)least);
		delta_bits += bits(zigzag((uint64_t)values[i] - (uint64_t)values[i - 1]));
	}
	*ret_least = least;
	return delta_bits < offset_bits ? TRANSFORM_DELTA : TRANSFORM_OFFSET;
}

/* codec->words from the values; the width in bytes that they need. */
static unsigned int transform(struct chunk_codec *codec, const int64_t *values, size_t count,
			      enum transform how, int64_t base)
{
	const uint64_t *from = (const uint64_t *)values;
	uint64_t *words = codec->words;
	uint64_t all = 0;

	words[0] = how == TRANSFORM_OFFSET ? from[0] - (uint64_t)base : 0;
	if (how == TRANSFORM_OFFSET) {
		for (size_t i = 1; i < count; i++)
			words[i] = from[i] - (uint64_t)base;
	} else if (how == TRANSFORM_DELTA) {
		for (size_t i = 1; i < count; i++)
			words[i] = zigzag(from[i] - from[i - 1]);
	} else {
		for (size_t i = 1; i < count; i++)
			words[i] = from[i] ^ from[i - 1];
	}
	for (size_t i = 0; i < count; i++)
		all |= words[i];
	return (bits(all) + 7) / 8;
}

static void put_head(struct buf *out, const char *name, enum transform how, unsigned int width,
		     int64_t base)
{
	buf_char(out, (char)strlen(name));
	buf_text(out, name);
	buf_char(out, (char)how);
	buf_char(out, (char)width);
	put_u32(out, (uint32_t)(uint64_t)base);
	put_u32(out, (uint32_t)((uint64_t)base >> 32));
}

/* Below this, starting the compressor costs more than it gains. */
static const size_t PACKED_LEAST = 24;

/* One plane to codec->packed; its size with the STORED bit. */
static uint32_t pack_plane(struct chunk_codec *codec, const uint8_t *plane, size_t count)
{
	size_t room = ZSTD_compressBound(count);
	uint8_t *to;
	size_t size;

	if (count < PACKED_LEAST) {
		buf_add(&codec->packed, plane, count);
		return (uint32_t)count | STORED;
	}
	to = buf_room(&codec->packed, room);
	size = ZSTD_compressCCtx(codec->pack, to, room, plane, count, ZSTD_LEVEL);
	codec->packed.len -= room;
	if (ZSTD_isError(size) || size >= count) {
		buf_add(&codec->packed, plane, count);
		return (uint32_t)count | STORED;
	}
	codec->packed.len += size;
	return (uint32_t)size;
}

void chunk_put(struct chunk_codec *codec, struct buf *out, const char *name, const int64_t *values,
	       size_t count, bool is_double)
{
	enum transform how = TRANSFORM_XOR;
	int64_t base = count ? values[0] : 0;
	uint64_t any = 0;
	unsigned int width;

	for (size_t i = 0; i < count; i++)
		any |= (uint64_t)values[i];
	if (!any)
		return;
	if (!is_double) {
		int64_t least;

		how = choose(values, count, &least);
		base = how == TRANSFORM_OFFSET ? least : base;
	}
	width = transform(codec, values, count, how, base);
	put_head(out, name, how, width, base);
	buf_clear(&codec->packed);
	for (unsigned int p = 0; p < width; p++) {
		for (size_t i = 0; i < count; i++)
			codec->planes[i] = (uint8_t)(codec->words[i] >> (8 * p));
		put_u32(out, pack_plane(codec, codec->planes, count));
	}
	buf_add(out, codec->packed.at, codec->packed.len);
}

void chunk_put_bytes(struct chunk_codec *codec, struct buf *out, const char *name, const void *at,
		     size_t len)
{
	if (!len)
		return;
	put_head(out, name, TRANSFORM_BYTES, 1, (int64_t)len);
	buf_clear(&codec->packed);
	put_u32(out, pack_plane(codec, at, len));
	buf_add(out, codec->packed.at, codec->packed.len);
}

/* The column at *at; *at moves behind it. False: the chunk is damaged. */
static bool parse_column(const uint8_t **at, const uint8_t *end, struct str *ret_name,
			 struct column *ret)
{
	const uint8_t *p = *at;
	size_t name_len = *p++;
	size_t planes = 0;

	if ((size_t)(end - p) < name_len + 10)
		return false;
	*ret_name = (struct str){ (const char *)p, name_len };
	p += name_len;
	ret->transform = (enum transform)p[0];
	ret->width = p[1];
	ret->base = (int64_t)(get_u32(p + 2) | (uint64_t)get_u32(p + 6) << 32);
	p += 10;
	if (ret->width > PLANES_MOST || p[-10] > TRANSFORM_BYTES ||
	    (size_t)(end - p) < ret->width * 4u)
		return false;
	ret->sizes = p;
	p += ret->width * 4u;
	ret->planes = p;
	for (unsigned int i = 0; i < ret->width; i++)
		planes += get_u32(ret->sizes + 4 * i) & ~STORED;
	if (planes > (size_t)(end - p))
		return false;
	*at = p + planes;
	return true;
}

static int find_column(struct str chunk, const char *name, struct column *ret)
{
	const uint8_t *at = (const uint8_t *)chunk.at;
	const uint8_t *end = at + chunk.len;
	struct str found;

	while (at < end) {
		if (!parse_column(&at, end, &found, ret))
			return -1;
		if (str_is(found, name))
			return 1;
	}
	return 0;
}

/* The next plane, which must be `count` bytes; NULL: damaged. */
static const uint8_t *next_plane(struct chunk_codec *codec, const uint8_t **at, uint32_t size,
				 size_t count, uint8_t *room)
{
	const uint8_t *plane = *at;

	*at += size & ~STORED;
	if (size & STORED)
		return (size & ~STORED) == count ? plane : NULL;
	if (ZSTD_decompressDCtx(codec->unpack, room, count, plane, size) != count)
		return NULL;
	return room;
}

/* Words of `width` bytes from their planes. Inlined for each width: then the loop over
 * the planes is none. */
static inline __attribute__((always_inline)) void join_width(const uint8_t *const *planes,
							     unsigned int width, size_t first,
							     size_t count, uint64_t *words)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word = planes[0][first + i];

		for (unsigned int p = 1; p < width; p++)
			word |= (uint64_t)planes[p][first + i] << (8 * p);
		words[i] = word;
	}
}

static void join_planes(const uint8_t *const *planes, unsigned int width, size_t first,
			size_t count, uint64_t *words)
{
	switch (width) {
#define X(w)                                                \
	case w:                                             \
		join_width(planes, w, first, count, words); \
		break;
		X(1)
		X(2)
		X(3)
		X(4)
		X(5)
		X(6)
		X(7)
		X(8)
#undef X
	default:
		memset(words, 0, count * sizeof(*words));
		break;
	}
}

/* Undo the transform; returns the last value. */
static uint64_t untransform(uint64_t *words, size_t count, enum transform how, uint64_t last)
{
	if (how == TRANSFORM_OFFSET) {
		for (size_t i = 0; i < count; i++)
			words[i] += last;
		return last;
	}
	for (size_t i = 0; i < count; i++) {
		last = how == TRANSFORM_DELTA ? last + unzigzag(words[i]) : last ^ words[i];
		words[i] = last;
	}
	return last;
}

/* So many values are taken at a time as stay in the first cache. */
static const size_t BLOCK_VALUES = 1024;

int chunk_get(struct chunk_codec *codec, struct str chunk, const char *name, size_t count,
	      int64_t *values)
{
	struct column column;
	int ret = find_column(chunk, name, &column);
	const uint8_t *at, *planes[PLANES_MOST];
	uint64_t last;

	if (ret <= 0)
		memset(values, 0, count * sizeof(*values));
	if (ret <= 0)
		return ret;
	if (column.transform == TRANSFORM_BYTES || count > CHUNK_ROWS_MAX)
		return -1;
	at = column.planes;
	for (unsigned int p = 0; p < column.width; p++) {
		planes[p] = next_plane(codec, &at, get_u32(column.sizes + 4 * p), count,
				       codec->planes + (size_t)p * CHUNK_ROWS_MAX);
		if (!planes[p])
			return -1;
	}
	last = (uint64_t)column.base;
	for (size_t i = 0; i < count; i += BLOCK_VALUES) {
		size_t some = count - i < BLOCK_VALUES ? count - i : BLOCK_VALUES;
		uint64_t *words = (uint64_t *)values + i;

		join_planes(planes, column.width, i, some, words);
		last = untransform(words, some, column.transform, last);
	}
	return 1;
}

int chunk_get_bytes(struct chunk_codec *codec, struct str chunk, const char *name, struct buf *out)
{
	struct column column;
	int ret = find_column(chunk, name, &column);
	const uint8_t *plane;
	uint8_t *room;

	if (ret <= 0)
		return ret;
	if (column.transform != TRANSFORM_BYTES || column.width != 1 || column.base < 0 ||
	    (uint64_t)column.base > BYTES_MAX)
		return -1;
	room = mem_array((size_t)column.base, 1, BYTES_MAX);
	if (!room)
		return -1;
	plane = next_plane(codec, &column.planes, get_u32(column.sizes), (size_t)column.base, room);
	if (plane)
		buf_add(out, plane, (size_t)column.base);
	free(room);
	return plane ? 1 : -1;
}
