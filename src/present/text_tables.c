#include "present/text.h"

#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "model/event.h"

static bool more(const struct page *page, size_t row, size_t count)
{
	return row < count && row < (size_t)page->top;
}

static void print_titled(struct page *page, const char *title, struct table *table)
{
	if (!table->cells.count)
		return;
	page_heading(page, title, NULL);
	table_print(page, table, 2);
}

static const struct column OP_COLUMNS[] = {
	{ N_("operator"), false, true, 0 },  { N_("calls"), true, false, 0 },
	{ N_("GPU total"), true, false, 0 }, { N_("GPU self"), true, false, 1 },
	{ N_("host self"), true, false, 0 }, { N_("host total"), true, false, 2 },
};

static void print_ops(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = OP_COLUMNS, .column_count = 6 };

	for (size_t i = 0; more(page, i, facts->ops.count); i++) {
		const struct op_fact *op = &facts->ops.at[i];

		table_cell(&table, text_string(page, facts, op->name));
		table_cell(&table, cell_count(page, op->count));
		table_cell(&table, cell_ns(page, op->gpu_total_ns));
		table_cell(&table, cell_ns(page, op->gpu_self_ns));
		table_cell(&table, cell_ns(page, op->cpu_self_ns));
		table_cell(&table, cell_ns(page, op->cpu_total_ns));
	}
	print_titled(page, _("Framework operators"), &table);
}

static const char *copy_label(int kind)
{
	switch (kind) {
	case COPY_HTOD:
		return _("host to device");
	case COPY_DTOH:
		return _("device to host");
	case COPY_DTOD:
		return _("within the device");
	case COPY_HTOH:
		return _("host to host");
	case COPY_PTOP:
		return _("device to device");
	default:
		return _("unknown ends");
	}
}

static const struct column COPY_COLUMNS[] = {
	{ N_("copies"), false, true, 0 }, { N_("host memory"), false, false, 0 },
	{ N_("on"), false, false, 1 },    { N_("count"), true, false, 0 },
	{ N_("bytes"), true, false, 0 },  { N_("time"), true, false, 0 },
	{ N_("rate"), true, false, 2 },   { N_("of link"), true, false, 3 },
	{ N_("tiny"), true, false, 4 },
};

static const char *host_memory(const struct copy_fact *copy)
{
	if (copy->managed)
		return _("managed");
	return copy->pageable < 0 ? NULL : copy->pageable ? _("pageable") : _("pinned");
}

static void print_copies(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = COPY_COLUMNS, .column_count = 9 };
	size_t devices = 0;

	for (size_t i = 0; i < facts->devices.count; i++)
		devices += facts->devices.at[i].has_timeline;
	for (size_t i = 0; more(page, i, facts->copies.count); i++) {
		const struct copy_fact *copy = &facts->copies.at[i];
		struct unit_text rate;

		table_cell(&table, copy_label(copy->kind));
		table_cell(&table, host_memory(copy));
		table_cell(&table, devices > 1 && copy->device != SESSION_NONE
					   ? text_device_short(page, facts, copy->device)
					   : NULL);
		table_cell(&table, cell_count(page, copy->count));
		table_cell(&table, cell_bytes(page, (double)copy->bytes));
		table_cell(&table, cell_ns(page, copy->sum_ns));
		table_cell(&table,
			   isfinite(copy->gbps)
				   ? page_printf(page, "%s", units_rate(&rate, copy->gbps * 1e9))
				   : NULL);
		table_cell(&table, isfinite(copy->gbps) && copy->link_peak_gbps > 0
					   ? cell_share(page, copy->gbps / copy->link_peak_gbps)
					   : NULL);
		table_cell(&table,
			   copy->tiny_count > 0 ? cell_count(page, copy->tiny_count) : NULL);
	}
	print_titled(page, _("Copies"), &table);
}

static const struct column PAGE_FAULT_COLUMNS[] = {
	{ N_("unified memory"), false, true, 0 }, { N_("on"), false, false, 1 },
	{ N_("times"), true, false, 0 },          { N_("faults"), true, false, 0 },
	{ N_("time"), true, false, 0 },
};

static void print_page_faults(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = PAGE_FAULT_COLUMNS, .column_count = 5 };

	for (size_t i = 0; more(page, i, facts->page_faults.count); i++) {
		const struct page_fault_fact *fault = &facts->page_faults.at[i];

		table_cell(&table, text_string(page, facts, fault->name));
		table_cell(&table, fault->device != SESSION_NONE
					   ? text_device_short(page, facts, fault->device)
					   : NULL);
		table_cell(&table, cell_count(page, fault->count));
		table_cell(&table, cell_count(page, fault->faults));
		table_cell(&table, fault->union_ns ? cell_ns(page, fault->union_ns) : NULL);
	}
	print_titled(page, _("Unified memory"), &table);
}

static const struct column STREAM_WAIT_COLUMNS[] = {
	{ N_("stream"), true, false, 0 },   { N_("waits for"), true, false, 0 },
	{ N_("times"), true, false, 0 },    { N_("held up"), true, false, 0 },
	{ N_("in all"), true, false, 0 },   { N_("longest"), true, false, 0 },
	{ N_("then for"), false, true, 0 },
};

static void print_stream_waits(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = STREAM_WAIT_COLUMNS, .column_count = 7 };

	for (size_t i = 0; more(page, i, facts->stream_waits.count); i++) {
		const struct stream_wait_fact *wait = &facts->stream_waits.at[i];
		bool held = wait->held_count > 0;

		table_cell(&table, page_printf(page, "%lld", (long long)wait->stream));
		table_cell(&table, page_printf(page, "%lld", (long long)wait->on_stream));
		table_cell(&table, cell_count(page, wait->count));
		table_cell(&table, cell_count(page, wait->held_count));
		table_cell(&table, held ? cell_ns(page, wait->held_ns) : NULL);
		table_cell(&table, held ? cell_ns(page, wait->longest_ns) : NULL);
		table_cell(&table, held ? text_string(page, facts, wait->longest_name) : NULL);
	}
	print_titled(page, _("Streams that wait for streams"), &table);
}

static const struct column CALL_COLUMNS[] = {
	{ N_("CUDA call"), false, true, 0 },          { N_("calls"), true, false, 0 },
	{ N_("host time"), true, false, 0 },          { N_("longest"), true, false, 1 },
	{ N_("waits for the GPU"), false, false, 2 },
};

/* What making a context took is no time of what the call was called for. */
static void print_contexts(struct page *page, const struct facts *facts)
{
	struct unit_text ns;

	for (size_t i = 0; more(page, i, facts->calls.count); i++) {
		const struct call_fact *call = &facts->calls.at[i];

		if (call->context_ns > 0)
			page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
				  page_printf(
					  page,
					  _("%s of %s went into calls that made a context first."),
					  units_ns(&ns, call->context_ns),
					  text_string(page, facts, call->name)));
	}
}

static void print_calls(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = CALL_COLUMNS, .column_count = 5 };

	for (size_t i = 0; more(page, i, facts->calls.count); i++) {
		const struct call_fact *call = &facts->calls.at[i];

		table_cell(&table, text_string(page, facts, call->name));
		table_cell(&table, cell_count(page, call->count));
		table_cell(&table, cell_ns(page, call->sum_ns));
		table_cell(&table, cell_ns(page, call->max_ns));
		table_cell(&table, call->synchronising ? _("yes") : NULL);
	}
	print_titled(page, _("Calls into the driver"), &table);
	print_contexts(page, facts);
}

static const char *phase_title(enum phase phase)
{
	static const char *const title[] = {
		[PHASE_FORWARD] = N_("forward"),     [PHASE_BACKWARD] = N_("backward"),
		[PHASE_OPTIMIZER] = N_("optimizer"), [PHASE_LOADER] = N_("data loader"),
		[PHASE_READBACK] = N_("read-back"),  [PHASE_OTHER] = N_("other"),
	};

	return _(title[phase]);
}

static const struct column PHASE_COLUMNS[] = {
	{ N_("phase"), false, false, 0 },    { N_("times"), true, false, 0 },
	{ N_("host time"), true, false, 0 }, { N_("GPU time"), true, false, 0 },
	{ N_("GPU idle"), true, false, 0 },  { N_("longest in it"), false, true, 0 },
};

static void print_phases(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = PHASE_COLUMNS, .column_count = 6 };
	bool readbacks = false;

	/* That all is of no phase tells nothing. */
	if (facts->phases.count == 1 && facts->phases.at[0].phase == PHASE_OTHER)
		return;
	for (size_t i = 0; i < facts->phases.count; i++) {
		const struct phase_fact *phase = &facts->phases.at[i];
		bool other = phase->phase == PHASE_OTHER;

		readbacks |= phase->phase == PHASE_READBACK;
		table_cell(&table, phase_title(phase->phase));
		table_cell(&table, other ? NULL : cell_count(page, phase->count));
		table_cell(&table, cell_ns(page, phase->wall_ns));
		table_cell(&table, cell_ns(page, phase->gpu_ns));
		table_cell(&table, cell_ns(page, phase->idle_ns));
		table_cell(&table, phase->name ? text_string(page, facts, phase->name) : NULL);
	}
	print_titled(page, _("Phases"), &table);
	if (readbacks)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  _("Read-backs are in the other phases, too: by what they do, not by "
			    "when."));
}

static void print_outliers(struct page *page, const struct step_facts *steps)
{
	size_t told = 0;

	for (size_t i = 0; i < steps->step.count && told < (size_t)page->top; i++) {
		const struct step *step = &steps->step.at[i];
		struct buf text = { 0 };
		struct unit_text ns;

		if (!step->outlier)
			continue;
		told++;
		buf_printf(&text, _("number %d took %s"), (int)i,
			   units_ns(&ns, step->end_ns - step->start_ns));
		if (step->setup)
			buf_printf(&text, " %s", _("(in the set-up)"));
		for (size_t j = 0; j < step->differs.count; j++)
			buf_printf(&text, "%s%s", j ? "; " : ": ", step->differs.at[j]);
		page_wrap(page, INK_DIM, page->utf8 ? "  \xc2\xb7 " : "  - ", 4, INK_PLAIN,
			  text.at);
		buf_done(&text);
	}
}

static void print_steps(struct page *page, const struct facts *facts,
			const struct step_facts *steps, const char *title)
{
	const char *name =
		steps->name ? text_string(page, facts, steps->name) : _("the same launches");
	struct unit_text p50, p95, p99;

	if (!steps->source || !steps->step.count)
		return;
	if (steps->name)
		name = page_printf(page, "%.*s", step_name_bytes(name), name);
	page_heading(page, title, _(steps->source));
	page_wrap(page, INK_PLAIN, "", 2, INK_PLAIN,
		  page_printf(page, _("%d x %s: median %s, 95 %% under %s, 99 %% under %s"),
			      (int)steps->step.count, name, units_ns(&p50, steps->p50_ns),
			      units_ns(&p95, steps->p95_ns), units_ns(&p99, steps->p99_ns)));
	print_outliers(page, steps);
}

static const struct column MEMORY_COLUMNS[] = {
	{ N_("memory of"), false, true, 0 },     { N_("peak"), true, false, 0 },
	{ N_("live at end"), true, false, 0 },   { N_("reserved peak"), true, false, 1 },
	{ N_("allocations"), true, false, 2 },   { N_("frees"), true, false, 3 },
	{ N_("growth a step"), true, false, 1 }, { N_("streams at end"), true, false, 2 },
	{ N_("events at end"), true, false, 4 }, { N_("graphs at end"), true, false, 4 },
};

static void live_cell(struct page *page, struct table *table, const struct object_fact *object)
{
	table_cell(table, object->live == FACT_UNKNOWN ? NULL : cell_count(page, object->live));
}

static const struct column SITE_COLUMNS[] = {
	{ N_("memory of"), false, false, 2 },  { N_("bytes"), true, false, 0 },
	{ N_("blocks"), true, false, 1 },      { N_("growth a step"), true, false, 1 },
	{ N_("obtained in"), false, true, 0 },
};

/* Where what is held at the end was asked for; what nobody knows says nothing. */
static void print_sites(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = SITE_COLUMNS, .column_count = 5 };

	for (size_t i = 0; i < facts->memory.count; i++) {
		const struct memory_fact *memory = &facts->memory.at[i];

		for (size_t k = 0; more(page, k, memory->sites.count); k++) {
			const struct site_fact *site = &memory->sites.at[k];

			if (!site->site)
				continue;
			table_cell(&table,
				   memory->device == SESSION_NONE
					   ? _("the host, pinned")
					   : text_device_short(page, facts, memory->device));
			table_cell(&table, cell_bytes(page, (double)site->bytes));
			table_cell(&table, cell_count(page, site->count));
			table_cell(&table, cell_bytes(page, site->growth_bytes_per_step));
			table_cell(&table, text_string(page, facts, site->site));
		}
	}
	print_titled(page, _("Held at the end"), &table);
}

static const struct column LEFT_COLUMNS[] = {
	{ N_("left again and again"), false, true, 0 },
	{ N_("times"), true, false, 0 },
	{ N_("obtained in"), false, true, 0 },
};

/* What each of many steps left behind, and where it was obtained. */
static void print_left(struct page *page, const struct facts *facts)
{
	static const char *const names[HELD_KINDS] = { N_("streams"), N_("CUDA events"),
						       N_("CUDA graphs"), N_("executable graphs") };
	struct table table = { .columns = LEFT_COLUMNS, .column_count = 3 };

	for (size_t i = 0; i < facts->memory.count; i++) {
		const struct memory_fact *memory = &facts->memory.at[i];

		for (size_t k = 0; more(page, k, memory->leaks.count); k++) {
			const struct leak_fact *leak = &memory->leaks.at[k];

			table_cell(&table,
				   page_printf(page, _("blocks of %s"),
					       cell_bytes(page, (double)leak->block_bytes)));
			table_cell(&table, cell_count(page, leak->count));
			table_cell(&table,
				   leak->site ? text_string(page, facts, leak->site) : NULL);
		}
		for (size_t k = 0; k < HELD_KINDS; k++) {
			const struct object_fact *object = &memory->objects[k];

			if (object->live == FACT_UNKNOWN || !object->leaked)
				continue;
			table_cell(&table, _(names[k]));
			table_cell(&table, cell_count(page, object->leaked));
			table_cell(&table, object->site);
		}
	}
	print_titled(page, _("Left behind"), &table);
}

static void print_memory(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = MEMORY_COLUMNS, .column_count = 10 };

	for (size_t i = 0; more(page, i, facts->memory.count); i++) {
		const struct memory_fact *memory = &facts->memory.at[i];

		table_cell(&table, memory->device == SESSION_NONE
					   ? _("the host, pinned")
					   : text_device_short(page, facts, memory->device));
		table_cell(&table, cell_bytes(page, (double)memory->peak_bytes));
		table_cell(&table, cell_bytes(page, (double)memory->live_bytes));
		table_cell(&table, cell_bytes(page, (double)memory->reserved_peak_bytes));
		table_cell(&table, cell_count(page, memory->alloc_count));
		table_cell(&table, cell_count(page, memory->free_count));
		table_cell(&table, cell_bytes(page, memory->growth_bytes_per_step));
		live_cell(page, &table, &memory->objects[HELD_STREAM]);
		live_cell(page, &table, &memory->objects[HELD_EVENT]);
		live_cell(page, &table, &memory->objects[HELD_GRAPH]);
	}
	print_titled(page, _("Memory"), &table);
	print_sites(page, facts);
	print_left(page, facts);
}

static const struct column RANGE_COLUMNS[] = {
	{ N_("range"), false, true, 0 },
	{ N_("times"), true, false, 0 },
	{ N_("host time"), true, false, 0 },
	{ N_("GPU time"), true, false, 0 },
};

static void print_ranges(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = RANGE_COLUMNS, .column_count = 4 };

	for (size_t i = 0; more(page, i, facts->ranges.count); i++) {
		const struct range_fact *range = &facts->ranges.at[i];

		table_cell(&table, text_string(page, facts, range->name));
		table_cell(&table, cell_count(page, range->count));
		table_cell(&table, cell_ns(page, range->sum_ns));
		table_cell(&table, cell_ns(page, range->gpu_ns));
	}
	print_titled(page, _("Named ranges"), &table);
}

void text_tables(struct page *page, const struct facts *facts)
{
	print_ops(page, facts);
	print_copies(page, facts);
	print_page_faults(page, facts);
	print_stream_waits(page, facts);
	print_calls(page, facts);
	print_phases(page, facts);
	print_steps(page, facts, &facts->steps, _("Steps"));
	print_steps(page, facts, &facts->requests, _("Requests"));
	print_memory(page, facts);
	print_ranges(page, facts);
}
