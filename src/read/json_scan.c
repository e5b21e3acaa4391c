#include "read/json_scan.h"

#include <math.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

/* Bit i of each mask says that byte i of a block is such a character. */
struct block {
	uint64_t quote, backslash, open, close;
};

#ifdef __SSE2__
static uint64_t mask_of(const __m128i text[4], char c)
{
	const __m128i wanted = _mm_set1_epi8(c);
	uint64_t mask = 0;

	for (int i = 0; i < 4; i++) {
		int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(text[i], wanted));

		mask |= (uint64_t)(unsigned int)bits << (16 * i);
	}
	return mask;
}

static struct block load_block(const char *at)
{
	/* '[' and '{' differ in one bit, and so do ']' and '}'. */
	const __m128i fold = _mm_set1_epi8(0x20);
	__m128i text[4];
	struct block block;

	for (int i = 0; i < 4; i++)
		text[i] = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
	block.quote = mask_of(text, '"');
	block.backslash = mask_of(text, '\\');
	for (int i = 0; i < 4; i++)
		text[i] = _mm_or_si128(text[i], fold);
	block.open = mask_of(text, '{');
	block.close = mask_of(text, '}');
	return block;
}
#endif

/* For each bit the parity of the bits up to and with it: between quotes. */
static inline uint64_t parity(uint64_t bits)
{
	for (int shift = 1; shift < 64; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

/* On the way through an array or object. */
struct nest {
	const char *at;
	uint64_t depth;
	uint64_t quoted; /* all ones inside a string */
};

#ifdef __SSE2__
/* Whole blocks without escapes; NULL: the end is not in them. */
static const char *nest_blocks(struct nest *nest, const char *end)
{
	for (; end - nest->at >= 64; nest->at += 64) {
		struct block block = load_block(nest->at);
		uint64_t inside = parity(block.quote) ^ nest->quoted;
		uint64_t brackets = (block.open | block.close) & ~inside;

		if (block.backslash)
			return NULL;
		for (; brackets; brackets &= brackets - 1) {
			uint64_t bit = brackets & -brackets;

			nest->depth += block.open & bit ? 1 : -(uint64_t)1;
			if (!nest->depth)
				return nest->at + __builtin_ctzll(bit) + 1;
		}
		nest->quoted = (uint64_t)((int64_t)inside >> 63);
	}
	return NULL;
}

/* The same where the processor compares 64 bytes at once and counts bits. */
__attribute__((target("avx512bw,popcnt,bmi,pclmul"))) static const char *nest_blocks_wide(
	struct nest *nest, const char *end)
{
	const __m512i fold = _mm512_set1_epi8(0x20);

	for (; end - nest->at >= 64; nest->at += 64) {
		__m512i text = _mm512_loadu_si512(nest->at);
		__m512i folded = _mm512_or_si512(text, fold);
		uint64_t quote = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('"'));
		__m128i bits = _mm_set_epi64x(0, (int64_t)quote);
		uint64_t inside, open, close;

		if (_mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('\\')))
			return NULL;
		bits = _mm_clmulepi64_si128(bits, _mm_set1_epi8(-1), 0);
		inside = (uint64_t)_mm_cvtsi128_si64(bits) ^ nest->quoted;
		open = _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8('{')) & ~inside;
		close = _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8('}')) & ~inside;
		nest->depth += (uint64_t)__builtin_popcountll(open);
		for (; close; close &= close - 1) {
			uint64_t behind = open & -(close & -close);

			/* Depth behind this bracket, of the opened ones those before it. */
			nest->depth--;
			if (nest->depth == (uint64_t)__builtin_popcountll(behind))
				return nest->at + __builtin_ctzll(close) + 1;
		}
		nest->quoted = (uint64_t)((int64_t)inside >> 63);
	}
	return NULL;
}

static bool has_wide(void)
{
	return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("pclmul");
}
#else
static const char *nest_blocks(struct nest *nest, const char *end)
{
	(void)nest;
	(void)end;
	return NULL;
}

#define nest_blocks_wide nest_blocks

static bool has_wide(void)
{
	return false;
}
#endif

static const char *nested(const char *start, const char *end, bool wide)
{
	struct nest nest = { .at = start };

	while (nest.at < end) {
		const char *found = wide ? nest_blocks_wide(&nest, end) : nest_blocks(&nest, end);
		const char *at = nest.at;

		if (found)
			return found;
		/* A block's worth one by one: escapes, or the end is near. */
		for (const char *stop = end - at > 64 ? at + 64 : end; at < stop; at++) {
			if (*at == '\\' && nest.quoted) {
				if (end - at < 2)
					return NULL;
				at++;
			} else if (*at == '"') {
				nest.quoted = ~nest.quoted;
			} else if (!nest.quoted && (*at == '[' || *at == '{')) {
				nest.depth++;
			} else if (!nest.quoted && (*at == ']' || *at == '}') && !--nest.depth) {
				return at + 1;
			}
		}
		nest.at = at;
	}
	return NULL;
}

const char *scan_nested(const char *at, const char *end)
{
	return nested(at, end, has_wide());
}

const char *scan_nested_narrow(const char *at, const char *end)
{
	return nested(at, end, false);
}

/* `at` is behind a quote: could a string end here? *ret_short: can't tell yet. */
static bool may_end(const char *at, const char *end, bool in_object, bool *ret_short)
{
	at = scan_space(at, end);
	*ret_short = at == end;
	if (at == end)
		return false;
	if (*at == '}' || (*at == ']' && !in_object))
		return true;
	if (*at != ',')
		return false;
	if (!in_object)
		return true;
	/* In an object a key follows: a string and a colon. */
	at = scan_space(at + 1, end);
	if (at < end && *at != '"')
		return false;
	for (at++; at < end && *at != '"' && *at != '\\' && *at != '\n';)
		at++;
	at = at < end && *at == '"' ? scan_space(at + 1, end) : at;
	*ret_short = at >= end;
	return at < end && *at == ':';
}

const char *scan_string_loose(const char *at, const char *end, bool in_object, bool *ret_escaped)
{
	bool too_short;

	*ret_escaped = false;
	for (; at < end; at++) {
		if (*at == '\\') {
			*ret_escaped = true;
			at++;
		} else if (*at == '"') {
			if (may_end(at + 1, end, in_object, &too_short))
				return at;
			if (too_short)
				return NULL;
		}
	}
	return NULL;
}

const char *scan_nested_loose(const char *at, const char *end)
{
	uint64_t depth = 0;
	bool escaped;

	for (; at < end; at++) {
		if (*at == '"') {
			at = scan_string_loose(at + 1, end, false, &escaped);
			if (!at)
				return NULL;
			/* A key of an object ends in front of a colon, where a string
			 * of an array can't: it was taken with its value, harmless as
			 * only brackets count here. */
		} else if (*at == '[' || *at == '{') {
			depth++;
		} else if ((*at == ']' || *at == '}') && !--depth) {
			return at + 1;
		}
	}
	return NULL;
}

const char *scan_value(const char *at, const char *end, bool *ret_bad)
{
	const char *start = at;
	bool escaped;

	*ret_bad = false;
	if (at == end)
		return NULL;
	if (*at == '"') {
		at = scan_string(at + 1, end, &escaped);
		return at ? at + 1 : NULL;
	}
	if (*at == '[' || *at == '{')
		return scan_nested(at, end);
	while (at < end &&
	       (scan_in_number(*at) || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')))
		at++;
	*ret_bad = at == start;
	return at < end && at > start ? at : NULL;
}

bool scan_to_fixed(struct str text, int digits, int64_t *ret)
{
	double value;

	if (str_to_fixed(text, digits, ret))
		return true;
	/* An exponent: such writers went through a double, so can we. */
	if (!str_to_f64(text, &value))
		return false;
	value *= pow(10, digits);
	if (!(value > -9.2e18 && value < 9.2e18))
		return false;
	*ret = (int64_t)llround(value);
	return true;
}

static bool hex4(struct str raw, size_t at, uint32_t *ret)
{
	uint64_t value;

	if (raw.len < at + 4 || raw.at[at + 1] == 'x' || raw.at[at + 1] == 'X' ||
	    !str_to_hex((struct str){ raw.at + at, 4 }, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

static void add_utf8(struct buf *out, uint32_t code)
{
	char text[4];
	size_t len = 0;

	if (code < 0x80) {
		text[len++] = (char)code;
	} else if (code < 0x800) {
		text[len++] = (char)(0xc0 | code >> 6);
		text[len++] = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		text[len++] = (char)(0xe0 | code >> 12);
		text[len++] = (char)(0x80 | (code >> 6 & 0x3f));
		text[len++] = (char)(0x80 | (code & 0x3f));
	} else {
		text[len++] = (char)(0xf0 | code >> 18);
		text[len++] = (char)(0x80 | (code >> 12 & 0x3f));
		text[len++] = (char)(0x80 | (code >> 6 & 0x3f));
		text[len++] = (char)(0x80 | (code & 0x3f));
	}
	buf_add(out, text, len);
}

/* \uXXXX at raw.at[at] == 'u'; how many bytes it takes, 0 if it is none. */
static size_t add_unicode(struct str raw, size_t at, struct buf *out)
{
	uint32_t code, low;

	if (!hex4(raw, at + 1, &code))
		return 0;
	if (code >= 0xd800 && code < 0xdc00 && raw.len > at + 6 && raw.at[at + 5] == '\\' &&
	    raw.at[at + 6] == 'u' && hex4(raw, at + 7, &low) && low >= 0xdc00 && low < 0xe000) {
		add_utf8(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
		return 11;
	}
	add_utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
	return 5;
}

void scan_unescape(struct str raw, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	size_t at = 0;

	while (at < raw.len) {
		const char *slash = memchr(raw.at + at, '\\', raw.len - at);
		size_t plain = slash ? (size_t)(slash - raw.at) - at : raw.len - at;
		const char *known;
		size_t len;

		buf_add(out, raw.at + at, plain);
		at += plain + 1;
		if (!slash)
			return;
		known = at < raw.len && raw.at[at] ? strchr(from, raw.at[at]) : NULL;
		if (known) {
			buf_char(out, to[known - from]);
			at++;
		} else if (at < raw.len && raw.at[at] == 'u' &&
			   (len = add_unicode(raw, at, out)) != 0) {
			at += len;
		} else {
			buf_char(out, '\\');
		}
	}
}

size_t scan_skip_more(struct scan_skip *skip, const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = at[i];

		if (skip->quoted) {
			if (skip->escape)
				skip->escape = false;
			else if (c == '\\')
				skip->escape = true;
			else if (c == '"')
				skip->quoted = false;
			skip->done = !skip->quoted && !skip->depth;
			if (skip->done)
				return i + 1;
			continue;
		}
		if (!skip->depth && skip->begun && (c == ',' || c == ']' || c == '}')) {
			skip->done = true;
			return i;
		}
		skip->begun = true;
		skip->quoted = c == '"';
		if (c == '[' || c == '{') {
			skip->depth++;
		} else if (c == ']' || c == '}') {
			if (skip->depth)
				skip->depth--;
			skip->done = !skip->depth;
			if (skip->done)
				return i + 1;
		}
	}
	return len;
}
