#include <string.h>

#include "base/i18n.h"
#include "base/units.h"
#include "present/top_text.h"

enum { LABEL = 4, PID = 8, USER_MOST = 12, KIND = 4, MEMORY = 9, SM = 5, IDLE = 8, GAP = 2 };

/* Below this, a pause is no news. */
static const int64_t IDLE_SHOWN_NS = 1000000000;

/* Which columns have something to say, and how wide the users are. */
struct columns {
	int user;
	bool kind, idle;
};

static const struct board_process *seen(const struct top_view *view, const struct roster_row *row)
{
	return &view->snapshot->processes.at[row->place];
}

static struct columns columns_of(const struct top_view *view)
{
	struct columns columns = { .user = present_width(_("user")) };

	for (size_t i = 0; i < view->shown.count; i++) {
		const struct roster_row *row = &view->rows[view->shown.at[i]];
		int width = present_width(row->proc.user);

		columns.user = width > columns.user ? width : columns.user;
		columns.kind = columns.kind || seen(view, row)->kinds & ~(uint32_t)PROCESS_COMPUTE;
		columns.idle = columns.idle || row->idle_ns >= IDLE_SHOWN_NS;
	}
	columns.user = columns.user > USER_MOST ? USER_MOST : columns.user;
	return columns;
}

/* As nvidia-smi writes it: C, G, C+G, M. */
static const char *kind_cell(uint32_t kinds)
{
	if (kinds & PROCESS_MPS)
		return kinds & PROCESS_GRAPHICS ? "M+G" : "M";
	if (kinds & PROCESS_COMPUTE)
		return kinds & PROCESS_GRAPHICS ? "C+G" : "C";
	return kinds & PROCESS_GRAPHICS ? "G" : "-";
}

static const char *sm_cell(struct page *page, const struct top_view *view,
			   const struct roster_row *row)
{
	double pct;

	return sample_get(&seen(view, row)->sample, METRIC_proc_sm_pct, &pct)
		       ? page_printf(page, "%.0f %%", pct)
		       : "-";
}

/* The folder of a program tells little. */
static const char *command_cell(struct page *page, const struct proc *proc)
{
	const char *command = *proc->command ? proc->command : proc->comm;
	size_t first = strcspn(command, " ");

	if (proc->state == PROC_GONE)
		return _("(ended, or hidden from this user)");
	if (proc->state == PROC_FOREIGN)
		return _("(outside this PID namespace)");
	if (*command != '/')
		return command;
	while (first && command[first - 1] != '/')
		first--;
	return page_printf(page, "%s", command + first);
}

/* "pod team-a/train-0 (main), job 17": where the process lives. */
static const char *home_of(struct page *page, const struct proc *proc)
{
	const struct proc_group *group = &proc->group;
	struct buf line = { 0 };
	const char *kept;

	if (*proc->pod)
		buf_printf(&line, _("pod %s/%s, container %s"), proc->namespace, proc->pod,
			   proc->container);
	else if (*group->pod_uid)
		buf_printf(&line, _("pod %s"), group->pod_uid);
	else if (*group->container_id)
		buf_printf(&line, _("%s container %.12s"), *group->runtime ? group->runtime : "",
			   group->container_id);
	if (*group->slurm_job)
		buf_printf(&line, _("%sSlurm job %s"), line.len ? ", " : "", group->slurm_job);
	kept = line.len ? arena_text(&page->arena, line.at, line.len) : NULL;
	buf_done(&line);
	return kept && *kept == ' ' ? kept + 1 : kept;
}

static void print_headings(struct page *page, const struct columns *columns)
{
	top_right(page, INK_DIM, "GPU", LABEL);
	top_right(page, INK_DIM, "PID", GAP + PID);
	page_pad(page, INK_PLAIN, "", GAP);
	page_pad(page, INK_DIM, _("user"), columns->user);
	if (columns->kind)
		top_right(page, INK_DIM, _("kind"), GAP + KIND);
	top_right(page, INK_DIM, _("memory"), GAP + MEMORY);
	top_right(page, INK_DIM, "SM", GAP + SM);
	if (columns->idle)
		top_right(page, INK_DIM, _("idle"), GAP + IDLE);
	page_pad(page, INK_PLAIN, "", GAP);
	page_ink(page, INK_DIM, _("command"));
	page_blank(page);
}

static void print_row(struct page *page, const struct top_view *view, const struct roster_row *row,
		      const struct columns *columns)
{
	const struct proc *proc = &row->proc;
	bool holder = top_is_idle_holder(row);
	int used = LABEL + PID + columns->user + MEMORY + SM + 5 * GAP;
	const char *user = *proc->user ? proc->user : "-", *memory = "-";
	struct unit_text text;
	double bytes;

	if (sample_get(&seen(view, row)->sample, METRIC_proc_mem_used_bytes, &bytes) &&
	    bytes < 9e18)
		memory = units_bytes(&text, (int64_t)bytes);
	top_right(page, INK_PLAIN, top_label(page, view->snapshot, row->board), LABEL);
	top_right(page, INK_PLAIN, page_printf(page, "%lld", (long long)proc->pid), GAP + PID);
	page_pad(page, INK_PLAIN, "", GAP);
	page_pad(page, INK_PLAIN, page_shorten(page, user, columns->user), columns->user);
	if (columns->kind) {
		top_right(page, INK_PLAIN, kind_cell(seen(view, row)->kinds), GAP + KIND);
		used += GAP + KIND;
	}
	top_right(page, holder ? INK_WAIT : INK_PLAIN, memory, GAP + MEMORY);
	top_right(page, INK_PLAIN, sm_cell(page, view, row), GAP + SM);
	if (columns->idle) {
		bool shown = row->idle_ns >= IDLE_SHOWN_NS;

		top_right(page, holder ? INK_WAIT : INK_DIM,
			  shown ? units_ns(&text, row->idle_ns) : "", GAP + IDLE);
		used += GAP + IDLE;
	}
	page_pad(page, INK_PLAIN, "", GAP);
	used = page->columns - used;
	page_ink(page, proc->state == PROC_OK ? INK_PLAIN : INK_DIM,
		 page_shorten(page, command_cell(page, proc), used < 8 ? 8 : used));
	page_blank(page);
}

void top_processes(struct page *page, const struct top_view *view)
{
	struct columns columns = columns_of(view);

	if (!view->shown.count) {
		page_ink(page, INK_DIM,
			 view->row_count ? _("No process fits --user, --pid, --gpu.")
					 : _("The driver lists no process."));
		page_blank(page);
		return;
	}
	print_headings(page, &columns);
	for (size_t i = 0; i < view->shown.count; i++) {
		const struct roster_row *row = &view->rows[view->shown.at[i]];
		const char *home = row->proc.state == PROC_OK ? home_of(page, &row->proc) : NULL;

		print_row(page, view, row, &columns);
		if (home) {
			page_pad(page, INK_PLAIN, "", LABEL + GAP + PID + GAP);
			page_ink(page, INK_DIM,
				 page_shorten(page, home, page->columns - LABEL - PID - 2 * GAP));
			page_blank(page);
		}
	}
}
