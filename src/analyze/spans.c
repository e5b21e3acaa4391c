#include "analyze/spans.h"

#include "analyze/array.h"
#include "base/mem.h"

/* Events that come somewhat before the first of their block fit, too. */
static const int64_t BACK_NS = 1 << 30;
static const int64_t NO_BASE = INT64_MIN;

void spans_room(struct spans *spans, size_t used, size_t room)
{
	size_t blocks = (used >> SPAN_BLOCK_BITS) + (used > 0),
	       more = (room >> SPAN_BLOCK_BITS) + 1;

	spans->from =
		array_resize(spans->from, used * sizeof(*spans->from), room * sizeof(*spans->from));
	spans->ns = array_resize(spans->ns, used * sizeof(*spans->ns), room * sizeof(*spans->ns));
	spans->base = mem_resize(spans->base, more * sizeof(*spans->base));
	for (size_t i = blocks; i < more; i++)
		spans->base[i] = NO_BASE;
}

void spans_done(struct spans *spans)
{
	free(spans->from);
	free(spans->ns);
	free(spans->base);
	VEC_DONE(&spans->far);
	memset(spans, 0, sizeof(*spans));
}

static uint32_t far(struct spans *spans, int64_t value)
{
	uint32_t number = (uint32_t)spans->far.count;

	/* A billion of them don't fit into memory; nothing is read out of place. */
	if (number >= UINT32_MAX - SPAN_FAR)
		return SPAN_FAR - 1;
	*VEC_ADD(&spans->far) = value;
	return SPAN_FAR + number;
}

static int64_t base_of(struct spans *spans, size_t i, int64_t start)
{
	int64_t *base = &spans->base[i >> SPAN_BLOCK_BITS];

	if (*base == NO_BASE)
		*base = start - BACK_NS;
	return *base;
}

void spans_put(struct spans *spans, size_t i, int64_t start, int64_t ns)
{
	uint64_t from = (uint64_t)start - (uint64_t)base_of(spans, i, start);

	spans->from[i] = from < SPAN_FAR ? (uint32_t)from : far(spans, start);
	spans->ns[i] = ns < SPAN_FAR ? (uint32_t)ns : far(spans, ns);
}

void spans_put_many(struct spans *spans, size_t i, const int64_t *start, int64_t shift,
		    const int64_t *ns, size_t count)
{
	const size_t block = (size_t)1 << SPAN_BLOCK_BITS;

	while (count) {
		size_t some = block - i % block < count ? block - i % block : count;
		int64_t base = base_of(spans, i, *start + shift) - shift;

		for (size_t k = 0; k < some; k++) {
			uint64_t from = (uint64_t)start[k] - (uint64_t)base;

			spans->from[i + k] = (uint32_t)from;
			spans->ns[i + k] = (uint32_t)ns[k];
			if (from >= SPAN_FAR || ns[k] >= SPAN_FAR)
				spans_put(spans, i + k, start[k] + shift, ns[k]);
		}
		i += some;
		start += some;
		ns += some;
		count -= some;
	}
}
