#include "know/know.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/i18n.h"
#include "base/map.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "base/own.h"
#include "base/str.h"
#include "know/table.h"

/* X(table, kind, title). The first column names an entry. In order of rank
 * among equals. */
#define KNOW_LIST(X)                                                   \
	X(xid, "xid", N_("Xid"))                                       \
	X(sxid, "sxid", N_("SXid (NVSwitch)"))                         \
	X(errors, "error", N_("Error"))                                \
	X(glossary, "concept", N_("Concept"))                          \
	X(metrics, "metric", N_("Metric"))                             \
	X(stalls, "stall", N_("Stall reason"))                         \
	X(misreadings, "misreading", N_("Widely repeated, and wrong")) \
	X(symptoms, "symptom", N_("Symptom"))                          \
	X(cuda_compat, "cuda", N_("CUDA toolkit"))                     \
	X(pytorch_compat, "pytorch", N_("PyTorch release"))

#define X(table, kind, title) extern const struct know_table know_table_##table;
KNOW_LIST(X)
#undef X

static const struct know_kind {
	const char *kind, *title;
	const struct know_table *table;
} KINDS[] = {
#define X(table, kind, title) { kind, title, &know_table_##table },
	KNOW_LIST(X)
#undef X
};

enum { KIND_COUNT = sizeof(KINDS) / sizeof(*KINDS), WORDS_MAX = 64, WORD_BYTES_MAX = 80 };

bool know_at(size_t i, struct know_entry *ret_entry)
{
	for (size_t kind = 0; kind < KIND_COUNT; kind++) {
		const struct know_table *table = KINDS[kind].table;

		if (i < table->row_count) {
			*ret_entry = (struct know_entry){ KINDS[kind].kind, KINDS[kind].title,
							  table->cells[i * table->column_count],
							  table, i };
			return true;
		}
		i -= table->row_count;
	}
	return false;
}

bool know_get(const char *kind, const char *name, struct know_entry *ret_entry)
{
	for (size_t i = 0; know_at(i, ret_entry); i++) {
		if (!strcmp(ret_entry->kind, kind) && !strcmp(ret_entry->name, name))
			return true;
	}
	return false;
}

const char *know_cell(const struct know_entry *entry, const char *column)
{
	const struct know_table *table = entry->table;

	for (size_t c = 0; c < table->column_count; c++) {
		if (!strcmp(table->columns[c], column))
			return table->cells[entry->row * table->column_count + c];
	}
	return "";
}

bool know_field(const struct know_entry *entry, size_t i, const char **ret_column,
		const char **ret_value)
{
	const struct know_table *table = entry->table;

	if (i + 1 >= table->column_count)
		return false;
	*ret_column = table->columns[i + 1]; /* the first is the entry's name */
	*ret_value = table->cells[entry->row * table->column_count + i + 1];
	if (!**ret_value || !strcmp(*ret_value, "-") || !strcmp(*ret_column, "aliases"))
		*ret_value = NULL;
	return true;
}

static void add_hit(struct know_hits *hits, const struct know_entry *entry)
{
	if (hits->count < KNOW_HITS_MAX)
		hits->at[hits->count++] = *entry;
}

/* The entry of `kind` called `name`. */
static void add_named(struct know_hits *hits, const char *kind, const char *name)
{
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++) {
		if ((!kind || !strcmp(entry.kind, kind)) && !strcasecmp(entry.name, name))
			add_hit(hits, &entry);
	}
}

/* The number of a driver's line behind "Xid": "Xid 79", "Xid: 79",
 * "Xid (PCI:0000:01:00): 79, pid=...", "Xid PCI:0000:01:00: 43". */
static bool number_after(const char *at, char ret[WORD_BYTES_MAX])
{
	size_t len;

	at += strspn(at, " :(#=");
	if (!strncasecmp(at, "pci:", 4)) {
		at += 4;
		at += strspn(at, "0123456789abcdefABCDEF:.");
		at += strspn(at, " ):");
	}
	len = strspn(at, "0123456789");
	if (!len || len >= WORD_BYTES_MAX)
		return false;
	memcpy(ret, at, len);
	ret[len] = 0;
	return true;
}

static void find_numbers(const char *text, struct know_hits *hits)
{
	char number[WORD_BYTES_MAX];
	const char *at;

	for (at = text; (at = strcasestr(at, "xid")); at += 3) {
		bool of_switch = at > text && (at[-1] == 's' || at[-1] == 'S');

		if (number_after(at + 3, number))
			add_named(hits, of_switch ? "sxid" : "xid", number);
	}
	if (!hits->count && *text && text[strspn(text, "0123456789")] == 0) {
		add_named(hits, "xid", text);
		add_named(hits, "sxid", text);
	}
	/* "cuda 12.4", "pytorch 2.10", "torch 2.10" */
	if ((at = strcasestr(text, "cuda ")) && isdigit((unsigned char)at[5]))
		add_named(hits, "cuda", at + 5);
	if ((at = strcasestr(text, "torch ")) && isdigit((unsigned char)at[6]))
		add_named(hits, "pytorch", at + 6);
}

static bool is_word(int c)
{
	return isalnum(c) || c == '_';
}

/* `phrase` in `text`, no letter or digit of a longer word at either end. */
static bool holds_phrase(const char *text, const char *phrase, size_t len)
{
	struct buf copy = { 0 };
	bool found = false;

	buf_add(&copy, phrase, len);
	buf_char(&copy, 0);
	for (const char *at = text; !found && (at = strcasestr(at, copy.at)); at++)
		found = (at == text || !is_word((unsigned char)at[-1]) ||
			 !is_word((unsigned char)*phrase)) &&
			(!is_word((unsigned char)at[len]) ||
			 !is_word((unsigned char)phrase[len - 1]));
	buf_done(&copy);
	return found;
}

/* How well the names of an entry fit: 2 the whole text is one of them, 1 the
 * text holds one that can't be an ordinary word, 0 neither. */
static int names_fit(const struct know_entry *entry, const char *text)
{
	const char *sets[] = { entry->name, know_cell(entry, "aliases") };
	int best = 0;

	for (size_t set = 0; set < 2; set++) {
		struct str rest = str_of(sets[set]);

		while (rest.at && rest.len) {
			struct str name = set ? str_cut(&rest, ';') : rest;

			if (!set)
				rest.len = 0;
			if (!name.len)
				continue;
			if (name.len == strlen(text) && !strncasecmp(name.at, text, name.len))
				return 2;
			/* A pasted line: names of 8 letters and more, with a blank, a
			 * capital or an underscore in them, don't come by chance. */
			if (name.len >= 8 && strlen(text) > name.len &&
			    (memchr(name.at, '_', name.len) || memchr(name.at, ' ', name.len) ||
			     !strcmp(entry->kind, "error")) &&
			    holds_phrase(text, name.at, name.len))
				best = 1;
		}
	}
	return best;
}

static void find_names(const char *text, struct know_hits *hits)
{
	struct know_entry entry;

	/* A whole name counts beside a number in it, a name within a text does not. */
	for (int fit = 2; fit > 0 && (fit == 2 || !hits->count); fit--) {
		for (size_t i = 0; know_at(i, &entry); i++) {
			if (strcmp(entry.kind, "xid") != 0 && strcmp(entry.kind, "sxid") != 0 &&
			    names_fit(&entry, text) == fit)
				add_hit(hits, &entry);
		}
	}
	/* The driver's name of an Xid: "ROBUST_CHANNEL_..." */
	for (size_t i = 0; !hits->count && know_at(i, &entry); i++) {
		if (entry.table->column_count > 2 && !strcmp(entry.table->columns[1], "name") &&
		    !strcasecmp(know_cell(&entry, "name"), text))
			add_hit(hits, &entry);
	}
}

struct words {
	char at[WORDS_MAX][WORD_BYTES_MAX];
	size_t count;
};

/* Lower-case words of three bytes and more, and numbers, each once. A plural
 * loses its s, so that it meets its singular. */
static void add_words(const char *text, struct words *words)
{
	while (*text && words->count < WORDS_MAX) {
		char *word = words->at[words->count];
		size_t len = 0;
		bool again = false;

		while (*text && !is_word((unsigned char)*text))
			text++;
		for (; is_word((unsigned char)*text); text++) {
			if (len + 1 < WORD_BYTES_MAX)
				word[len++] = (char)tolower((unsigned char)*text);
		}
		if (len > 4 && word[len - 1] == 's' && word[len - 2] != 's')
			len--;
		word[len] = 0;
		for (size_t i = 0; i < words->count && !again; i++)
			again = !strcmp(words->at[i], word);
		if (len >= 2 && !again)
			words->count++;
	}
}

/* In how many entries a word occurs: rare words tell more. Words of the query
 * only, so 64 counters at most. */
struct query {
	struct words words;
	double weight[WORDS_MAX];
	double total;
};

static void entry_words(const struct know_entry *entry, bool names, struct words *words)
{
	const struct know_table *table = entry->table;

	words->count = 0;
	for (size_t c = 0; c < table->column_count; c++) {
		bool naming = !c || !strcmp(table->columns[c], "aliases");

		if (naming == names && strcmp(table->columns[c], "source") != 0)
			add_words(table->cells[entry->row * table->column_count + c], words);
	}
}

static bool has_word(const struct words *words, const char *word)
{
	for (size_t i = 0; i < words->count; i++) {
		if (!strcmp(words->at[i], word))
			return true;
	}
	return false;
}

static void weigh(struct query *query)
{
	double seen[WORDS_MAX] = { 0 }, entries = 0;
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++) {
		struct words names, body;

		entry_words(&entry, true, &names);
		entry_words(&entry, false, &body);
		entries++;
		for (size_t w = 0; w < query->words.count; w++)
			seen[w] += has_word(&names, query->words.at[w]) ||
				   has_word(&body, query->words.at[w]);
	}
	for (size_t w = 0; w < query->words.count; w++) {
		/* A word that no entry has says little against any of them. */
		query->weight[w] = seen[w] > 0 ? log(entries / seen[w]) : 1.0;
		query->total += query->weight[w];
	}
}

/* Share of the query's weight that the entry's words cover, names in full and
 * the rest by half, then of the entry's name that the query covers: of two that
 * cover the query, the one that is about nothing else wins. */
static double score(const struct query *query, const struct know_entry *entry)
{
	struct words names, body;
	double found = 0;
	size_t common = 0;

	entry_words(entry, true, &names);
	entry_words(entry, false, &body);
	for (size_t w = 0; w < query->words.count; w++) {
		if (has_word(&names, query->words.at[w])) {
			found += query->weight[w];
			common++;
		} else if (has_word(&body, query->words.at[w])) {
			found += query->weight[w] / 2;
		}
	}
	if (query->total <= 0)
		return 0;
	return found / query->total +
	       (names.count ? 0.3 * (double)common / (double)names.count : 0);
}

/* Below half of the weight it is another matter. Tried on pasted lines of
 * tests/unit/test_know.c, with made-up sentences as the other side. */
static const double SCORE_ENOUGH = 0.5;

static void find_words(const char *text, struct know_hits *hits)
{
	double scores[KNOW_HITS_MAX] = { 0 };
	struct query query = { 0 };
	struct know_entry entry;

	add_words(text, &query.words);
	weigh(&query);
	for (size_t i = 0; know_at(i, &entry); i++) {
		double s = score(&query, &entry);
		size_t at = hits->count < KNOW_HITS_MAX ? hits->count : KNOW_HITS_MAX - 1;

		if (s < SCORE_ENOUGH || (hits->count == KNOW_HITS_MAX && s <= scores[at]))
			continue;
		for (; at > 0 && scores[at - 1] < s; at--) {
			scores[at] = scores[at - 1];
			hits->at[at] = hits->at[at - 1];
		}
		scores[at] = s;
		hits->at[at] = entry;
		if (hits->count < KNOW_HITS_MAX)
			hits->count++;
	}
	/* What is far behind the best is noise. */
	while (hits->count > 1 && scores[hits->count - 1] < 0.7 * scores[0])
		hits->count--;
}

static int nothing(const char *text, struct err *err)
{
	struct nearest nearest = { .word = text };
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++)
		nearest_try(&nearest, entry.name);
	if (nearest.best)
		return err_set(err, ERR_MISSING, "nothing is known of '%.80s'; did you mean '%s'?",
			       text, nearest.best);
	return err_set(err, ERR_MISSING,
		       "nothing is known of '%.80s'; 'sonde explain --list' lists all", text);
}

int know_find(const char *text, struct know_hits *ret_hits, struct err *err)
{
	struct str trimmed = str_trim(str_of(text));
	struct buf copy = { 0 };
	int status = 0;

	buf_add(&copy, trimmed.at, trimmed.len);
	buf_char(&copy, 0);
	*ret_hits = (struct know_hits){ 0 };
	find_numbers(copy.at, ret_hits);
	find_names(copy.at, ret_hits);
	ret_hits->exact = ret_hits->count > 0;
	if (!ret_hits->count)
		find_words(copy.at, ret_hits);
	if (!ret_hits->count)
		status = nothing(copy.at, err);
	buf_done(&copy);
	return status;
}
