#include "present/top.h"

#include <stdlib.h>
#include <string.h>

#include "base/i18n.h"
#include "base/str.h"

/* Without work for so long, held memory is worth telling: longer than a data
 * loader's pause between epochs of a small job, shorter than the 14 s that the
 * driver's ring of utilisation reaches back (H200, R580). */
static const int64_t IDLE_HOLDER_NS = 10000000000;

/* Below this a text is no beginning of a UUID but a slip. */
enum { UUID_BEGINNING = 4 };

bool top_is_idle_holder(const struct roster_row *row)
{
	return row->idle_ns >= IDLE_HOLDER_NS;
}

/* Bits: nvml.h, nvmlClocksEventReason*. 0x8 is the umbrella of the hardware's
 * two reasons: told only if neither is. */
const char *top_clock_reason(uint64_t mask, size_t number)
{
	static const struct {
		uint64_t bit;
		const char *name;
	} reasons[] = {
		{ 0x4, N_("power limit") },           { 0x40, N_("temperature (hardware)") },
		{ 0x20, N_("temperature (driver)") }, { 0x80, N_("power brake from outside") },
		{ 0x8, N_("hardware slowdown") },     { 0x10, N_("sync boost") },
		{ 0x2, N_("clocks set by hand") },    { 0x100, N_("display clock") },
	};

	if (mask & 0xc0)
		mask &= ~(uint64_t)0x8;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		if (mask & reasons[i].bit && !number--)
			return reasons[i].name;
	}
	return NULL;
}

bool top_bound(const struct board *board, double *ret_pct)
{
	double power_w, limit_w, util_pct, mem_pct = 0, bound = 0;

	if (board_get(board, METRIC_sm_active_pct, NULL, NULL) ||
	    !board_get(board, METRIC_util_pct, &util_pct, NULL))
		return false;
	if (util_pct > 0) {
		if (!board_get(board, METRIC_power_w, &power_w, NULL) ||
		    !board_get(board, METRIC_power_limit_w, &limit_w, NULL) || limit_w <= 0)
			return false;
		(void)board_get(board, METRIC_mem_util_pct, &mem_pct, NULL);
		bound = 100 * power_w / limit_w;
		bound = mem_pct > bound ? mem_pct : bound;
	}
	*ret_pct = bound < util_pct ? bound : util_pct;
	return true;
}

/* Is `text` one of those in `list`, with ',' between? `same` compares. */
static bool any_of(const char *list, bool (*same)(struct str word, const void *of), const void *of)
{
	struct str rest = str_of(list);

	while (rest.at) {
		if (same(str_trim(str_cut(&rest, ',')), of))
			return true;
	}
	return false;
}

static bool same_board(struct str word, const void *of)
{
	const struct board *board = of;
	struct str uuid = str_of(board->uuid), bus = str_of(board->pci_bus);
	int64_t number;

	if (str_to_i64(word, &number))
		return board->parent < 0 && number == board->index;
	if (word.len >= UUID_BEGINNING && word.len <= uuid.len &&
	    !strncasecmp(word.at, uuid.at, word.len))
		return true;
	/* nvidia-smi writes 00000000:83:00.0, the kernel 0000:83:00.0 */
	if (word.len == 16 && str_starts(word, "0000"))
		word = (struct str){ word.at + 4, word.len - 4 };
	return word.len && word.len == bus.len && !strncasecmp(word.at, bus.at, word.len);
}

static bool same_pid(struct str word, const void *of)
{
	int64_t number;

	return str_to_i64(word, &number) && number == *(const int64_t *)of;
}

static bool bad_number(struct str word, const void *of)
{
	int64_t number;

	(void)of;
	return !str_to_i64(word, &number) || number <= 0;
}

static bool no_name(struct str word, const void *of)
{
	(void)of;
	return !word.len;
}

int top_filter_check(const struct top_filter *filter, struct err *err)
{
	if (filter->gpu && any_of(filter->gpu, no_name, NULL))
		return err_set(err, ERR_USAGE,
			       "--gpu: '%s' is no list of numbers, UUIDs or bus addresses",
			       filter->gpu);
	if (filter->pid && any_of(filter->pid, bad_number, NULL))
		return err_set(err, ERR_USAGE, "--pid: '%s' is no list of process numbers",
			       filter->pid);
	if (filter->user && !*filter->user)
		return err_set(err, ERR_USAGE, "--user: no name");
	return 0;
}

/* A card, or a MIG instance by its own name or with its card. */
static bool board_wanted(const struct top_view *view, const struct top_filter *filter, uint32_t i)
{
	const struct board *board = &view->snapshot->boards.at[i];

	if (!filter->gpu || any_of(filter->gpu, same_board, board))
		return true;
	return board->parent >= 0 &&
	       any_of(filter->gpu, same_board, &view->snapshot->boards.at[board->parent]);
}

/* The first word of the list that names no card. */
static int check_gpus(const struct top_view *view, const char *list, struct err *err)
{
	struct str rest = str_of(list);

	while (rest.at) {
		struct str word = str_trim(str_cut(&rest, ','));
		bool found = false;

		for (size_t i = 0; !found && i < view->snapshot->boards.count; i++)
			found = same_board(word, &view->snapshot->boards.at[i]);
		if (!found)
			return err_set(err, ERR_MISSING, "--gpu: no GPU '%.*s' here", (int)word.len,
				       word.at);
	}
	return 0;
}

static bool row_wanted(const struct top_filter *filter, const struct roster_row *row)
{
	int64_t uid;

	if (filter->pid && !any_of(filter->pid, same_pid, &row->proc.pid))
		return false;
	if (!filter->user || (row->proc.state == PROC_OK && !strcmp(filter->user, row->proc.user)))
		return true;
	return str_to_i64(str_of(filter->user), &uid) && uid == row->proc.uid &&
	       row->proc.state == PROC_OK;
}

enum key { KEY_CARD, KEY_MEM, KEY_SM, KEY_PID, KEY_USER };

struct order {
	const struct top_view *view;
	enum key key;
};

static double use_of(const struct top_view *view, const struct roster_row *row, enum metric metric)
{
	double value;

	return sample_get(&view->snapshot->processes.at[row->place].sample, metric, &value) ? value
											    : -1;
}

static int sign(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare(const void *a, const void *b, void *of)
{
	const struct order *order = of;
	const struct roster_row *left = &order->view->rows[*(const uint32_t *)a];
	const struct roster_row *right = &order->view->rows[*(const uint32_t *)b];
	int by_memory = sign(use_of(order->view, right, METRIC_proc_mem_used_bytes),
			     use_of(order->view, left, METRIC_proc_mem_used_bytes));
	int first = 0;

	if (order->key == KEY_CARD)
		first = sign(left->board, right->board);
	else if (order->key == KEY_SM)
		first = sign(use_of(order->view, right, METRIC_proc_sm_pct),
			     use_of(order->view, left, METRIC_proc_sm_pct));
	else if (order->key == KEY_PID)
		first = sign((double)left->proc.pid, (double)right->proc.pid);
	else if (order->key == KEY_USER)
		first = strcmp(left->proc.user, right->proc.user);
	if (!first)
		first = by_memory;
	if (!first)
		first = sign((double)left->proc.pid, (double)right->proc.pid);
	return first ? first : sign(left->board, right->board);
}

static enum key key_of(const char *sort)
{
	static const char *const names[] = {
		[KEY_MEM] = "mem", [KEY_SM] = "sm", [KEY_PID] = "pid", [KEY_USER] = "user"
	};

	for (enum key key = KEY_MEM; sort && key <= KEY_USER; key++) {
		if (!strcmp(sort, names[key]))
			return key;
	}
	return KEY_CARD;
}

int top_select(struct top_view *view, const struct top_filter *filter, struct err *err)
{
	struct order order = { .view = view, .key = key_of(filter->sort) };

	view->boards.count = 0;
	view->shown.count = 0;
	if (filter->gpu && check_gpus(view, filter->gpu, err) < 0)
		return err->code;
	for (uint32_t i = 0; i < view->snapshot->boards.count; i++) {
		if (board_wanted(view, filter, i))
			*VEC_ADD(&view->boards) = i;
	}
	for (uint32_t i = 0; i < view->row_count; i++) {
		if (row_wanted(filter, &view->rows[i]) &&
		    board_wanted(view, filter, view->rows[i].board))
			*VEC_ADD(&view->shown) = i;
	}
	if (view->shown.count)
		qsort_r(view->shown.at, view->shown.count, sizeof(*view->shown.at), compare,
			&order);
	return 0;
}

void top_view_done(struct top_view *view)
{
	VEC_DONE(&view->boards);
	VEC_DONE(&view->shown);
}
