#include "collect/board.h"

static const struct {
	const char *id;
	const char *word;
	bool has;
} origins[ORIGIN_COUNT] = {
#define X(id, word, has) [ORIGIN_##id] = { #id, word, has },
	ORIGIN_LIST(X)
#undef X
};

const char *origin_word(enum origin origin)
{
	return origins[origin].word;
}

const char *origin_name(enum origin origin)
{
	return origins[origin].id;
}

bool origin_has(enum origin origin)
{
	return origins[origin].has;
}

void snapshot_done(struct snapshot *snapshot)
{
	VEC_DONE(&snapshot->boards);
	VEC_DONE(&snapshot->processes);
	VEC_DONE(&snapshot->points);
	VEC_DONE(&snapshot->costs);
	*snapshot = (struct snapshot){ 0 };
}

bool board_get(const struct board *board, enum metric metric, double *ret_value,
	       enum origin *ret_origin)
{
	double value;
	bool has = sample_get(&board->sample, metric, &value);

	if (has && ret_value)
		*ret_value = value;
	if (ret_origin)
		*ret_origin = (enum origin)board->origin[metric];
	return has;
}
