#include "read/kineto_event.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "read/json_scan.h"
#include "read/kineto_value.h"

/*
 * The tree of layouts. A node is a place behind a value (node 0: in front of
 * the event); its edges are the gaps seen there, most recent first. An edge
 * with a key leads to a value of it; one without is the rest of the event and
 * carries "ph" and "cat", whose values are part of the gaps.
 */
struct edge {
	const char *gap;
	uint32_t len;
	uint32_t next;  /* edge at the same node; 0: none */
	uint32_t first; /* edge of the node behind */
	const struct kineto_key *key;
	char ph;
	enum kineto_cat cat;
	struct str cat_text;
};

/* Hostile files can make every event different: stop learning here. */
enum { EDGES_MAX = 4096, SIBLINGS_MAX = 24, GAP_MAX = 512, TRAIL_MAX = 96, KEYS_MAX = 4096 };

/* A value on the way through an event, to be learned. */
struct step {
	const char *gap;
	const char *value;
	const struct kineto_key *key;
};

struct kineto_parser {
	bool learn;
	struct arena arena;
	struct map keys; /* hash of level and text to struct kineto_key */
	uint64_t seed;
	struct kineto_key spare[KINETO_REST_MAX]; /* for keys beyond KEYS_MAX */
	size_t spare_count;
	VEC(struct edge) edges; /* [0] stands for "none" and holds the root */
	struct step trail[TRAIL_MAX];
	size_t trail_count;
	bool learnable;
};

const struct kineto_rest *kineto_rest_find(const struct kineto_event *event, const char *key)
{
	for (size_t i = 0; i < event->rest_count; i++) {
		if (str_is(event->rest[i].key->text, key))
			return &event->rest[i];
	}
	return NULL;
}

static const struct {
	const char *text;
	enum kineto_cat cat;
} cats[] = {
#define X(id, text) { text, KINETO_CAT_##id },
	KINETO_CAT_LIST(X)
#undef X
};

static enum kineto_cat cat_find(struct str text)
{
	for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
		if (str_is(text, cats[i].text))
			return cats[i].cat;
	}
	return KINETO_CAT_OTHER;
}

static void kineto_take_id(struct kineto_event *event, const struct kineto_key *key,
			   struct str value)
{
	struct kineto_id *id = &event->id[key->field];
	uint64_t hex;

	id->known = true;
	id->text.at = NULL;
	if (scan_to_fixed(value, 0, &id->number))
		return;
	if (value.len > 2 && value.at[0] == '0' && value.at[1] == 'x' && str_to_hex(value, &hex))
		id->number = (int64_t)hex;
	else
		id->text = value;
}

/* A string, or a number in a form or place that is not the usual one. */
void kineto_take_text(struct kineto_event *event, const struct kineto_key *key, struct str value,
		      bool escaped)
{
	switch (key->type) {
	case KINETO_PH:
		event->ph = value.len ? value.at[0] : 0;
		break;
	case KINETO_CAT:
		event->cat = cat_find(value);
		event->cat_text = value;
		break;
	case KINETO_NAME:
		take_name(event, value, escaped);
		break;
	case KINETO_ID:
		kineto_take_id(event, key, value);
		break;
	case KINETO_NS:
	case KINETO_INT:
		/* Some writers quote numbers; "inf" and the like stay as text. */
		if (scan_to_fixed(value, key->type == KINETO_NS ? 3 : 0, &event->num[key->field]))
			event->have |= 1u << key->field;
		else if (key->type == KINETO_NS)
			event->malformed = true;
		else
			add_rest(event, key, value, true, escaped);
		break;
	case KINETO_IGNORE:
		break;
	default:
		add_rest(event, key, value, true, escaped);
	}
}

void kineto_take_dims(struct kineto_event *event, const struct kineto_key *key, struct str value)
{
	struct str inner = { value.at + 1, value.len - 2 };
	int32_t *dims = event->dims[key->field];

	for (int i = 0; i < 3; i++) {
		int64_t number = 1;

		if (inner.at && inner.len &&
		    (!scan_to_fixed(str_trim(str_cut(&inner, ',')), 0, &number) || number < 0 ||
		     number > INT32_MAX)) {
			add_rest(event, key, value, false, false);
			return;
		}
		dims[i] = (int32_t)number;
	}
	event->have_dims |= 1u << key->field;
}

/* true, false, null, NaN, Infinity. */
void kineto_take_word(struct kineto_event *event, const struct kineto_key *key, struct str value)
{
	if (str_is(value, "null") || key->type == KINETO_IGNORE)
		return;
	if (key->type == KINETO_REST || key->type == KINETO_DROP || key->type == KINETO_ARGS)
		add_rest(event, key, value, false, false);
	else
		kineto_take_text(event, key, value, false);
}

static uint64_t key_hash(const struct kineto_parser *parser, struct str text, bool in_args)
{
	return hash_bytes(text.at, text.len, parser->seed + in_args);
}

static void key_add(struct kineto_parser *parser, const char *text, bool in_args,
		    enum kineto_type type, uint32_t field)
{
	struct kineto_key *key = arena_alloc(&parser->arena, sizeof(*key));

	*key = (struct kineto_key){ str_of(text), type, field, in_args };
	map_put(&parser->keys, key_hash(parser, key->text, in_args), (uintptr_t)key);
}

static const struct kineto_key *key_get(struct kineto_parser *parser, struct str text, bool in_args)
{
	uint64_t hash = key_hash(parser, text, in_args);
	uint64_t *found = map_find(&parser->keys, hash);
	struct kineto_key *key;

	if (found) {
		key = (struct kineto_key *)(uintptr_t)*found;
		if (str_same(key->text, text) && key->in_args == in_args)
			return key;
	}
	if (found || parser->keys.count >= KEYS_MAX || text.len > GAP_MAX) {
		parser->learnable = false;
		key = &parser->spare[parser->spare_count++ % KINETO_REST_MAX];
		*key = (struct kineto_key){ text, KINETO_REST, 0, in_args };
		return key;
	}
	key = arena_alloc(&parser->arena, sizeof(*key));
	*key = (struct kineto_key){
		{ arena_text(&parser->arena, text.at, text.len), text.len }, KINETO_REST, 0, in_args
	};
	map_put(&parser->keys, hash, (uintptr_t)key);
	return key;
}

struct kineto_parser *kineto_parser_new(bool learn)
{
	struct kineto_parser *parser = mem_zero(sizeof(*parser));

	parser->learn = learn;
	parser->seed = hash_seed();
	(void)VEC_ADD(&parser->edges);
#define X(field, type, text) key_add(parser, text, false, KINETO_##type, KINETO_##field);
	KINETO_TOP_LIST(X)
#undef X
#define X(field, type, text) key_add(parser, text, true, KINETO_##type, KINETO_##field);
	KINETO_ARG_LIST(X)
#undef X
	return parser;
}

void kineto_parser_free(struct kineto_parser *parser)
{
	if (!parser)
		return;
	arena_done(&parser->arena);
	map_done(&parser->keys);
	VEC_DONE(&parser->edges);
	free(parser);
}

static void event_clear(struct kineto_event *event)
{
	event->ph = 0;
	event->cat = KINETO_CAT_NONE;
	event->cat_text = (struct str){ NULL, 0 };
	event->name = (struct str){ NULL, 0 };
	event->name_escaped = event->malformed = event->empty = false;
	for (int i = 0; i < KINETO_ID_COUNT; i++)
		event->id[i].known = false;
	event->have = event->have_dims = 0;
	event->rest_count = 0;
}

/* The general way. NULL: the event goes on behind `end`, or *ret_bad. */
static const char *parse_general(struct kineto_parser *parser, struct kineto_event *event,
				 const char *start, const char *end, bool loose, bool *ret_bad)
{
	const char *at = start + 1;
	const char *gap = start;
	bool in_args = false;

	*ret_bad = false;
	event->empty = true;
	for (;;) {
		const struct kineto_key *key;
		const char *close;
		bool escaped;

		while (at < end &&
		       (*at == ',' || *at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
			at++;
		if (at == end)
			return NULL;
		if (*at == '}') {
			at++;
			if (in_args) {
				in_args = false;
				continue;
			}
			break;
		}
		*ret_bad = *at != '"';
		if (*ret_bad)
			return NULL;
		event->empty = false;
		close = scan_string(at + 1, end, &escaped);
		if (!close)
			return NULL;
		key = key_get(parser, (struct str){ at + 1, (size_t)(close - at - 1) }, in_args);
		at = scan_space(close + 1, end);
		if (at == end)
			return NULL;
		*ret_bad = *at != ':';
		if (*ret_bad)
			return NULL;
		at = scan_space(at + 1, end);
		if (at < end && *at == '{' && key->type == KINETO_ARGS) {
			in_args = true;
			at++;
			continue;
		}
		close = take_value(event, key, at, end, loose, ret_bad);
		if (!close)
			return NULL;
		/* Few values, many events: these are part of the gap. */
		if (key->type == KINETO_PH || key->type == KINETO_CAT ||
		    key->type == KINETO_IGNORE) {
			if (*at != '"')
				parser->learnable = false;
		} else {
			/* An "args" that is no object: the same gap leads into
			 * the arguments of other events. */
			if (key->type == KINETO_ARGS)
				parser->learnable = false;
			if (parser->trail_count < TRAIL_MAX)
				parser->trail[parser->trail_count] = (struct step){ gap, at, key };
			parser->trail_count++;
			gap = close;
		}
		at = close;
	}
	if (parser->trail_count < TRAIL_MAX)
		parser->trail[parser->trail_count] = (struct step){ gap, at, NULL };
	parser->trail_count++;
	return at;
}

/* The edge at the node behind edge `from` for this gap and key, made if need
 * be; 0: no room. */
static uint32_t learn_step(struct kineto_parser *parser, uint32_t from, const struct step *step)
{
	size_t len = (size_t)(step->value - step->gap);
	uint32_t siblings = 0;
	struct edge *edge;

	for (uint32_t at = parser->edges.at[from].first; at; at = edge->next) {
		edge = &parser->edges.at[at];
		if (edge->len == len && edge->key == step->key &&
		    !memcmp(edge->gap, step->gap, len))
			return at;
		siblings++;
	}
	if (siblings >= SIBLINGS_MAX || len > GAP_MAX || parser->edges.count >= EDGES_MAX)
		return 0;
	edge = VEC_ADD(&parser->edges);
	/* Padded, so that it can be compared 16 bytes at a time. */
	edge->gap = memcpy(arena_alloc(&parser->arena, len + 16), step->gap, len);
	edge->len = (uint32_t)len;
	edge->key = step->key;
	edge->next = parser->edges.at[from].first;
	parser->edges.at[from].first = (uint32_t)parser->edges.count - 1;
	return (uint32_t)parser->edges.count - 1;
}

static void learn(struct kineto_parser *parser, const struct kineto_event *event)
{
	uint32_t at = 0;
	struct edge *last;

	if (!parser->learn || !parser->learnable || event->empty || parser->trail_count > TRAIL_MAX)
		return;
	for (size_t i = 0; i < parser->trail_count; i++) {
		at = learn_step(parser, at, &parser->trail[i]);
		if (!at)
			return;
	}
	last = &parser->edges.at[at];
	last->ph = event->ph;
	last->cat = event->cat;
	if (!last->cat_text.at && event->cat_text.at)
		last->cat_text = (struct str){ arena_text(&parser->arena, event->cat_text.at,
							  event->cat_text.len),
					       event->cat_text.len };
}

/* `at` has 16 readable bytes more than `len`. */
static inline bool gap_equal(const char *at, const char *gap, uint32_t len)
{
#ifdef __SSE2__
	for (;; at += 16, gap += 16, len -= 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)gap);
		uint32_t differ = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) ^ 0xffffu;

		if (len < 16)
			return !(differ & ((1u << len) - 1));
		if (differ)
			return false;
	}
#else
	return !memcmp(at, gap, len);
#endif
}

/* The learned way; NULL: not along a known path. */
static const char *parse_learned(struct kineto_parser *parser, struct kineto_event *event,
				 const char *at, const char *end)
{
	struct edge *edges = parser->edges.at;
	uint32_t *head = &edges[0].first;

	for (;;) {
		struct edge *edge = &edges[*head];
		uint32_t *link = head;
		uint32_t found;
		bool bad;

		for (;; link = &edge->next, edge = &edges[*link]) {
			if (!*link)
				return NULL;
			if (end - at >= (ptrdiff_t)edge->len + 16 &&
			    gap_equal(at, edge->gap, edge->len))
				break;
		}
		if (link != head) {
			found = *link;
			*link = edge->next;
			edge->next = *head;
			*head = found;
		}
		at += edge->len;
		if (!edge->key) {
			event->ph = edge->ph;
			event->cat = edge->cat;
			event->cat_text = edge->cat_text;
			return at;
		}
		at = take_value(event, edge->key, at, end, false, &bad);
		if (!at)
			return NULL;
		head = &edge->first;
	}
}

/* Does an event begin with the brace at `at`? Its keys are few. */
static bool is_event(const char *start, const char *at, const char *end)
{
	static const char *const keys[] = { "\"ph\"",  "\"name\"", "\"cat\"", "\"pid\"",
					    "\"tid\"", "\"ts\"",   "\"args\"" };
	const char *before = at - 1;

	while (before > start &&
	       (*before == ' ' || *before == '\n' || *before == '\r' || *before == '\t'))
		before--;
	if (before < start || (*before != ',' && *before != '['))
		return false;
	at = scan_space(at + 1, end);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t len = strlen(keys[i]);

		if ((size_t)(end - at) > len && !memcmp(at, keys[i], len)) {
			at = scan_space(at + len, end);
			return at < end && *at == ':';
		}
	}
	return false;
}

const char *kineto_find_event(const char *start, const char *end)
{
	const char *at = start;

	while ((at = memchr(at, '{', (size_t)(end - at)))) {
		if (is_event(start, at, end))
			return at;
		at++;
	}
	return NULL;
}

enum kineto_parsed kineto_parse(struct kineto_parser *parser, const char *at, const char *end,
				struct kineto_event *event, const char **ret_next)
{
	bool whole = true;
	bool bad;

	if (parser->learn) {
		event_clear(event);
		*ret_next = parse_learned(parser, event, at, end);
		if (*ret_next)
			return KINETO_PARSED;
	}
	for (int loose = 0; loose <= 1; loose++) {
		event_clear(event);
		parser->trail_count = parser->spare_count = 0;
		parser->learnable = !loose;
		/* A string that does not end must not swallow the next event. */
		if (loose) {
			const char *next = kineto_find_event(at + 1, end);

			whole = !next;
			end = next ? next : end;
		}
		*ret_next = parse_general(parser, event, at, end, loose, &bad);
		if (*ret_next) {
			learn(parser, event);
			return KINETO_PARSED;
		}
		if (!bad && whole)
			return KINETO_SHORT;
	}
	return KINETO_BROKEN;
}
