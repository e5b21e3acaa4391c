#include "collect/stack_look.h"

void stack_look_begin(struct stack_look *look, int64_t seen_ns)
{
	buf_clear(&look->leaf);
	buf_clear(&look->chain);
	buf_text(&look->chain, "stack=");
	look->seen_ns = seen_ns;
}

int stack_look_put(struct stack_look *look, int64_t until_ns, struct err *err)
{
	struct session *session = look->sink->session;
	struct range range = { .kind = look->kind,
			       .lane = look->lane,
			       .start_ns = look->seen_ns,
			       .end_ns = until_ns };

	if (!look->leaf.len)
		return 0;
	range.name = session_string(session, look->leaf.at, look->leaf.len);
	range.detail = session_detail(session, look->chain.at, look->chain.len);
	buf_clear(&look->leaf);
	return sink_range(look->sink, &range, err);
}

void stack_look_done(struct stack_look *look)
{
	buf_done(&look->leaf);
	buf_done(&look->chain);
}
