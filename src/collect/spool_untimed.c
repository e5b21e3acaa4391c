/*
 * spool_untimed.c - device work that CUPTI has a record of, and no times: it had not ended when
 * the record was asked for, or its context failed.
 *
 * It is no operation, as it would count for no time in everything that counts. But its name
 * is what somebody wants to know whose program hangs or failed: each becomes a mark, which
 * says by its correlation which call launched it. A context that fails takes the times of all
 * that was not handed over, which can be the launches of a second: the last are
 * kept, and all are counted.
 */
#include "collect/spool_process.h"

enum { UNTIMED_MAX = 16384 };

/* CUPTI's reference: a start and an end of 0 could not be collected. */
bool spooled_is_untimed(uint64_t start, uint64_t end)
{
	return !end && start < INT64_MAX;
}

void spooled_untimed(struct spooled *p, const struct op *op, uint64_t start)
{
	struct op kept = *op;

	kept.start_ns = start ? spooled_time(p, start) : EVENT_UNKNOWN;
	if (p->untimed.count < UNTIMED_MAX)
		*VEC_ADD(&p->untimed) = kept;
	else
		p->untimed.at[p->untimed_next++ % UNTIMED_MAX] = kept;
	session_loss(p->sink->session, p->source, LOSS_untimed, 1);
}

static const char *word_of(enum op_kind kind)
{
	switch (kind) {
	case OP_KERNEL:
		return "kernel";
	case OP_MEMCPY:
		return "memcpy";
	case OP_MEMSET:
		return "memset";
	default:
		return "graph";
	}
}

static int put(struct spooled *p, const struct op *op)
{
	const struct session *session = p->sink->session;
	struct mark mark = { .kind = MARK_UNTIMED, .lane = op->lane, .name = op->name };
	int64_t time_ns = op->start_ns == EVENT_UNKNOWN ? p->latest_ns : op->start_ns;

	mark.time_ns = time_ns < p->window->to_ns ? time_ns : p->window->to_ns;
	if (op->kind == OP_KERNEL && op->key < session->keys.count) {
		const struct kernel_key *key = &session->keys.at[op->key];

		mark.detail = spooled_detail(
			p, "op=kernel;correlation=%llu;grid=%d,%d,%d;block=%d,%d,%d",
			(unsigned long long)op->correlation, key->grid[0], key->grid[1],
			key->grid[2], key->block[0], key->block[1], key->block[2]);
	} else {
		mark.detail = spooled_detail(p, "op=%s;correlation=%llu", word_of(op->kind),
					     (unsigned long long)op->correlation);
	}
	return sink_mark(p->sink, &mark, p->err);
}

int spooled_untimed_marks(struct spooled *p)
{
	int ret = 0;

	for (size_t i = 0; i < p->untimed.count && ret >= 0; i++)
		ret = put(p, &p->untimed.at[(p->untimed_next + i) % p->untimed.count]);
	p->untimed.count = 0;
	return ret;
}
