/*
 * spool_nvtx.c - what an NVTX range or mark says beside its text: payload, category.
 *
 * The category is last in a detail, as its name may hold anything.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "collect/spool_process.h"

/* Names of categories, of a process: more stay numbers. */
enum { CATEGORIES_MAX = 1 << 16 };

struct nvtx_says spooled_nvtx_says(const struct segment_slot *slot)
{
	return (struct nvtx_says){ slot->b, slot->x[0], slot->x[1],
				   (uint64_t)slot->x[3] << 32 | slot->x[2] };
}

/* The fewest digits that read back as the same number. */
static void float_add(struct buf *out, float value)
{
	char text[32] = "";

	for (int digits = 6; digits <= 9; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, (double)value);
		if (strtof(text, NULL) == value)
			break;
	}
	buf_text(out, text);
}

static void double_add(struct buf *out, double value)
{
	if (isfinite(value))
		buf_f64(out, value);
	else
		buf_printf(out, "%g", value);
}

/* False: of no kind that is known here. */
static bool payload_add(struct buf *out, const struct nvtx_says *says)
{
	uint32_t low = (uint32_t)says->payload;
	double f64;
	float f32;

	if (says->payload_kind == PAYLOAD_NONE || says->payload_kind > PAYLOAD_F32)
		return false;
	buf_text(out, "payload=");
	switch ((enum payload_kind)says->payload_kind) {
	case PAYLOAD_U64:
		buf_printf(out, "%" PRIu64, says->payload);
		break;
	case PAYLOAD_I64:
		buf_printf(out, "%" PRId64, (int64_t)says->payload);
		break;
	case PAYLOAD_U32:
		buf_printf(out, "%" PRIu32, low);
		break;
	case PAYLOAD_I32:
		buf_printf(out, "%" PRId32, (int32_t)low);
		break;
	case PAYLOAD_F32:
		memcpy(&f32, &low, sizeof(f32));
		float_add(out, f32);
		break;
	default:
		memcpy(&f64, &says->payload, sizeof(f64));
		double_add(out, f64);
	}
	return true;
}

uint32_t spooled_nvtx_detail(struct spooled *p, const struct nvtx_says *says)
{
	struct session *session = p->sink->session;
	struct buf out = { 0 };
	uint64_t *name;
	uint32_t detail = 0;

	if (payload_add(&out, says) && says->category)
		buf_char(&out, ';');
	if (says->category) {
		name = map_find(&p->categories, (uint64_t)says->domain << 32 | says->category);
		if (name && *name)
			buf_printf(&out, "category=%s", session_text(session, (uint32_t)*name));
		else
			buf_printf(&out, "category=%" PRIu32, says->category);
	}
	if (out.len)
		detail = session_detail(session, out.at, out.len);
	buf_done(&out);
	return detail;
}

void spooled_category_slot(struct spooled *p, const struct segment_slot *slot)
{
	if (p->categories.count < CATEGORIES_MAX || map_find(&p->categories, slot->value))
		map_put(&p->categories, slot->value, spooled_text(p, slot->a));
}
