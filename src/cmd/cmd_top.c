#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/i18n.h"
#include "base/own.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/terminal.h"
#include "cmd/watch.h"
#include "collect/collector.h"
#include "present/top.h"

/* Between the two rounds of one picture: GPM wants 100 ms. */
static const int64_t FIRST_LOOK_NS = 150000000;
static const double WATCH_S = 1, WATCH_LEAST_S = 0.1, WATCH_MOST_S = 86400;

enum { GROUPS = COLLECT_ALL & ~(COLLECT_ENERGY | COLLECT_PIPES) };

struct top_args {
	const char *watch;
	bool json;
	const char *sort;
	const char *gpu;
	const char *user;
	const char *pid;
	bool wake;
	const char *lang;
	const char *color;
	const char *nvml;
	const char *root;
	int deadline_ms;
};

static const struct opt top_opts[] = {
	OPT_OPTIONAL(struct top_args, watch, 'w', "watch", "SECONDS",
		     N_("again every second, or as said; q ends it")),
	OPT_FLAG(struct top_args, json, 'j', "json",
		 N_("for programs: schema sonde.top/1; with --watch a line each")),
	OPT_STRING(struct top_args, sort, 0, "sort", "mem|sm|pid|user",
		   N_("order of the processes; else by card, then memory")),
	OPT_STRING(struct top_args, gpu, 'g', "gpu", "LIST",
		   N_("only these cards: numbers, UUIDs or bus addresses")),
	OPT_STRING(struct top_args, user, 'u', "user", "USER", N_("only processes of this user")),
	OPT_STRING(struct top_args, pid, 'p', "pid", "LIST", N_("only these processes")),
	OPT_FLAG(struct top_args, wake, 0, "wake", N_("ask cards that sleep, too")),
	OPT_STRING(struct top_args, lang, 'l', "lang", "en|zh", N_("language of the text")),
	OPT_STRING(struct top_args, color, 0, "color", "auto|always|never",
		   N_("auto: on a terminal, unless NO_COLOR is set")),
	OPT_STRING(struct top_args, nvml, 0, "nvml", "FILE", NULL),
	OPT_STRING(struct top_args, root, 0, "root", "FOLDER", NULL),
	OPT_INT(struct top_args, deadline_ms, 0, "deadline-ms", "N", NULL),
	OPT_END,
};

/* All that lives from round to round. */
struct top {
	const struct top_args *args;
	const char *root;
	struct top_filter filter;
	struct collector *collector;
	struct procs *procs;
	struct roster *roster;
	struct snapshot snapshot;
	struct top_view view;
	struct err trouble; /* of the last round; code 0: none */
};

static int top_open(struct top *top, struct err *err)
{
	struct collector_opts opts = { .library = top->args->nvml,
				       .root = top->args->root,
				       .groups = GROUPS,
				       .deadline_ns = (int64_t)top->args->deadline_ms * 1000000,
				       .wake = top->args->wake };

	top->root = top->args->root ? top->args->root : "";
	top->filter = (struct top_filter){ .gpu = top->args->gpu,
					   .user = top->args->user,
					   .pid = top->args->pid,
					   .sort = top->args->sort };
	if (top_filter_check(&top->filter, err) < 0)
		return err->code;
	if (collector_open(&opts, &top->collector, err) < 0)
		return err->code;
	/* Without /proc there are still cards to show. */
	(void)procs_open(top->root, &top->procs, NULL);
	top->roster = roster_new(top->procs);
	top->view.nested = top->procs && procs_nested(top->procs);
	return 0;
}

static void top_done(struct top *top)
{
	collector_close(top->collector);
	roster_free(top->roster);
	procs_close(top->procs);
	snapshot_done(&top->snapshot);
	top_view_done(&top->view);
}

/* One round to the driver. After a failure the picture before stands. */
static int look(struct top *top, struct err *err)
{
	struct top_view *view = &top->view;
	int64_t before_ns = top->snapshot.monotonic_ns;
	struct host_load host;

	if (collector_take(top->collector, &top->snapshot, err) < 0)
		return cmd_ask_doctor(err);
	if (!top->snapshot.boards.count) {
		(void)err_set(err, ERR_MISSING, "the driver (%s) lists no GPU",
			      *top->snapshot.driver ? top->snapshot.driver : "?");
		return cmd_ask_doctor(err);
	}
	view->snapshot = &top->snapshot;
	view->round_ns = before_ns ? top->snapshot.monotonic_ns - before_ns : 0;
	view->rows = roster_update(top->roster, &top->snapshot, &view->row_count);
	view->openers = roster_openers(top->roster, &view->opener_count);
	host_load_read(top->root, &host);
	if (!host_load_busy(&view->host, &host, &view->host_busy))
		view->host_busy = NAN;
	view->host = host;
	return top_select(view, &top->filter, err);
}

static void show(const struct top *top, struct buf *out)
{
	struct present_style style = terminal_style(top->args->color);

	if (top->args->json)
		present_top_json(&top->view, top->args->watch != NULL, out);
	else
		present_top(&top->view, &style, out);
}

static int once(struct top *top, struct err *err)
{
	const struct timespec pause = { 0, FIRST_LOOK_NS };
	struct buf out = { 0 };
	int code;

	if (look(top, err) < 0)
		return err->code;
	(void)nanosleep(&pause, NULL);
	if (look(top, err) < 0)
		return err->code;
	show(top, &out);
	code = cmd_print(&out, err);
	buf_done(&out);
	return code;
}

static int interval(const char *text, int64_t *ret_ns, struct err *err)
{
	double seconds = WATCH_S;

	if (*text && (!str_to_f64(str_of(text), &seconds) || seconds < WATCH_LEAST_S ||
		      seconds > WATCH_MOST_S))
		return err_set(err, ERR_USAGE, "--watch: '%s' is not a number from 0.1 to 86400",
			       text);
	*ret_ns = (int64_t)(seconds * 1e9);
	return 0;
}

/* Keys that sort; true if it was one. */
static bool sort_by(struct top *top, char key)
{
	static const struct {
		char key;
		const char *sort;
	} keys[] = {
		{ 'g', NULL }, { 'm', "mem" }, { 's', "sm" }, { 'p', "pid" }, { 'u', "user" }
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (keys[i].key == key) {
			top->filter.sort = keys[i].sort;
			return true;
		}
	}
	return false;
}

/* The next picture, or why there is none. Into a pipe a blank line parts them. */
static void compose(struct top *top, bool in_place, struct buf *out)
{
	const struct err *trouble = &top->trouble;
	struct err ignored = { 0 };

	top->view.trouble = trouble->code ? trouble->line : NULL;
	if (top->args->json && trouble->code) {
		present_top_json_error(trouble->line, out);
	} else if (top->view.snapshot) {
		(void)top_select(&top->view, &top->filter, &ignored);
		show(top, out);
	} else if (trouble->code) {
		buf_printf(out, "%s\n", trouble->line);
	}
	if (!in_place && !top->args->json)
		buf_char(out, '\n');
}

/* Redraw until the next round is due. True: the end was asked for. */
static bool wait_for(struct top *top, struct watch *watch, bool in_place, int64_t due_ns)
{
	struct err err = { 0 };
	struct buf page = { 0 };
	bool end = false;

	for (;;) {
		char key = 0;
		enum watch_event event = watch_wait(watch, due_ns, &key);

		end = event == WATCH_END || (event == WATCH_KEY && (key == 'q' || key == 'Q'));
		if (event == WATCH_TIME || end)
			break;
		if (event == WATCH_KEY && !sort_by(top, key))
			continue;
		compose(top, in_place, &page);
		if (watch_draw(watch, &page, &err) < 0) {
			end = true;
			break;
		}
	}
	buf_done(&page);
	return end;
}

static int watch_rounds(struct top *top, struct err *err)
{
	bool in_place = !top->args->json && isatty(STDOUT_FILENO);
	OWN(watch_closep) struct watch *watch = NULL;
	struct buf page = { 0 };
	int64_t interval_ns = 0, due_ns;
	int code = 0;

	if (interval(top->args->watch, &interval_ns, err) < 0)
		return err->code;
	/* What is wrong before the first picture is told as in one shot. */
	if (look(top, err) < 0)
		return err->code;
	if (watch_open(in_place, &watch, err) < 0)
		return err->code;
	due_ns = clock_steady_ns() + FIRST_LOOK_NS;
	while (code >= 0 && !wait_for(top, watch, in_place, due_ns)) {
		due_ns = clock_steady_ns() + interval_ns;
		top->trouble = (struct err){ 0 };
		(void)look(top, &top->trouble);
		compose(top, in_place, &page);
		code = watch_draw(watch, &page, err);
	}
	buf_done(&page);
	return code;
}

static int top_run(const void *arguments, struct err *err)
{
	struct top top = { .args = arguments, .view = { .host_busy = NAN } };
	int code = terminal_language(top.args->lang, top.args->json, err);

	if (code == 0)
		code = top_open(&top, err);
	if (code == 0)
		code = top.args->watch ? watch_rounds(&top, err) : once(&top, err);
	top_done(&top);
	return code;
}

const struct cmd cmd_top = {
	.name = "top",
	.summary = N_("Say who uses which GPU, how much of it, and what holds it back"),
	.description =
		N_("Two looks at the driver, 150 ms apart, and one picture. Utilisation never\n"
		   "stands alone: it says only that some kernel ran. SM activity stands in front\n"
		   "of it, or, where the card does not tell it, a guess marked as one."),
	.examples = "  sonde top\n"
		    "  sonde top --watch\n"
		    "  sonde top --gpu 0,1 --sort sm --watch 0.5\n"
		    "  sonde top --json | jq '.processes[] | select(.idle_holder)'",
	.opts = top_opts,
	.args_size = sizeof(struct top_args),
	.run = top_run,
};
