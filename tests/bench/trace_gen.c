/*
 * trace_gen - a Kineto trace of any size, made from a real one.
 *
 *	trace_gen [--launches] [--totals FILE] TEMPLATE.json BYTES > trace.json
 *
 * Repeats the template's events until BYTES are written (or, with a trailing
 * "k", that many kernels) and varies what real traces vary: start and duration
 * of device work and API calls, gaps between repetitions, kernel and operator
 * names, grids through the names, operator arguments, correlations and ids.
 * --launches keeps only kernels, their launch calls and the arrows between.
 *
 * The totals are what a profile of the trace must hold (bench/verify.c counts
 * the same things on the other side): nothing is a benchmark that lost events.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "bench/totals.h"

enum patch_kind { PATCH_TS, PATCH_DUR, PATCH_ID, PATCH_NAME, PATCH_MARKER };

struct patch {
	enum patch_kind kind;
	uint32_t at;  /* in the event's text, where the old value begins */
	uint32_t len; /* of the old value */
	int64_t value;
};

struct event {
	const char *text;
	size_t len;
	char ph;
	bool kernel;
	bool shrinks; /* may start a little later and end a little earlier */
	bool varies;  /* its name gets a suffix */
	bool correlates;
	bool skip_name; /* the model takes the name apart or drops it */
	int64_t start_ns, dur_ns;
	struct patch patch[8];
	int patches;
};

struct generator {
	VEC(struct event) events;
	struct totals totals;
	struct buf out;
	uint64_t written;
	int64_t first_ns, last_ns;
	int64_t max_id;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* What follows "key" in the event, up to ',', '}' or a line end. */
static bool find_value(const struct event *event, const char *key, struct str *ret)
{
	const char *at = memmem(event->text, event->len, key, strlen(key));
	const char *end = event->text + event->len;

	if (!at)
		return false;
	at += strlen(key);
	ret->at = at;
	while (at < end && *at != ',' && *at != '}' && *at != '\n')
		at++;
	ret->len = (size_t)(at - ret->at);
	return true;
}

static void add_patch(struct event *event, enum patch_kind kind, struct str old, int64_t value)
{
	struct patch *patch = &event->patch[event->patches++];

	patch->kind = kind;
	patch->at = (uint32_t)(old.at - event->text);
	patch->len = (uint32_t)old.len;
	patch->value = value;
}

static void add_number(struct generator *gen, struct event *event, enum patch_kind kind,
		       const char *key)
{
	struct str old;
	int64_t value;

	if (!find_value(event, key, &old))
		return;
	if (!str_to_fixed(old, kind == PATCH_ID ? 0 : 3, &value))
		return;
	if (kind == PATCH_TS)
		event->start_ns = value;
	else if (kind == PATCH_DUR)
		event->dur_ns = value;
	else if (value > gen->max_id)
		gen->max_id = value;
	add_patch(event, kind, old, value);
}

static bool has(const struct event *event, const char *text)
{
	return memmem(event->text, event->len, text, strlen(text));
}

static int by_place(const void *a, const void *b)
{
	const struct patch *x = a;
	const struct patch *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static void describe(struct generator *gen, struct event *event)
{
	struct str old;

	(void)find_value(event, "\"ph\": \"", &old);
	event->ph = old.at[0];
	event->kernel = has(event, "\"cat\": \"kernel\"");
	event->shrinks =
		event->kernel || has(event, "\"cat\": \"gpu_mem") || has(event, "\"cat\": \"cuda_");
	event->varies = event->kernel || has(event, "\"cat\": \"cpu_op\"") ||
			has(event, "\"cat\": \"python_function\"");
	event->correlates = event->ph == 'X' && has(event, "\"correlation\": ");
	add_number(gen, event, PATCH_TS, "\"ts\": ");
	add_number(gen, event, PATCH_DUR, "\"dur\": ");
	add_number(gen, event, PATCH_ID, "\"correlation\": ");
	add_number(gen, event, PATCH_ID, "\"External id\": ");
	if (event->ph == 's' || event->ph == 'f')
		add_number(gen, event, PATCH_ID, "\"id\": ");
	if (event->ph == 'X') {
		const char *name = memmem(event->text, event->len, "\"name\": \"", 9);

		old.at = name + 9;
		old.len = (size_t)((const char *)memchr(old.at, '"', 8192) - old.at);
		add_patch(event, PATCH_NAME, old, 0);
		name = memmem(event->text, event->len, "\"Concrete Inputs\": [\"", 21);
		if (name)
			add_patch(event, PATCH_MARKER, (struct str){ name + 21, 0 }, 0);
	}
	qsort(event->patch, (size_t)event->patches, sizeof(event->patch[0]), by_place);
	if (event->start_ns && (!gen->first_ns || event->start_ns < gen->first_ns))
		gen->first_ns = event->start_ns;
	if (event->start_ns + event->dur_ns > gen->last_ns)
		gen->last_ns = event->start_ns + event->dur_ns;
}

static void flush(struct generator *gen)
{
	if (fwrite(gen->out.at, 1, gen->out.len, stdout) != gen->out.len)
		exit(1);
	gen->written += gen->out.len;
	buf_clear(&gen->out);
}

static void add_fixed(struct buf *out, int64_t thousandths)
{
	buf_printf(out, "%" PRId64 ".%03d", thousandths / 1000, (int)(thousandths % 1000));
}

/* The repetition's values for one event. */
struct variation {
	int64_t shift_ns; /* of the whole repetition */
	int64_t late_ns;  /* of this event; an arrow behind it shares it */
	int64_t dur_ns;
	int64_t id_shift;
	uint64_t random;
};

static void count_event(struct generator *gen, const struct event *event,
			const struct variation *var, struct str name)
{
	struct totals *totals = &gen->totals;

	totals->objects++;
	if (event->ph == 's' || event->ph == 'f')
		totals->arrows++;
	else if (event->ph == 'i')
		totals->instants++;
	if (event->ph != 'X')
		return;
	totals->intervals++;
	totals->start_sum += (uint64_t)(event->start_ns + var->shift_ns + var->late_ns);
	totals->duration_sum += (uint64_t)var->dur_ns;
	totals->name_sum += totals_hash(name.at, name.len);
	if (event->kernel) {
		totals->kernels++;
		totals->kernel_ns += (uint64_t)var->dur_ns;
	}
	for (int i = 0; event->correlates && i < event->patches; i++) {
		const struct patch *patch = &event->patch[i];

		if (patch->kind == PATCH_ID && event->text[patch->at - 4] == 'n')
			totals->correlation_sum += (uint64_t)(patch->value + var->id_shift);
	}
}

static void put_event(struct generator *gen, const struct event *event, const struct variation *var)
{
	struct buf *out = &gen->out;
	struct str name = { 0 };
	size_t name_at = 0;
	uint32_t at = 0;

	for (int i = 0; i < event->patches; i++) {
		const struct patch *patch = &event->patch[i];

		buf_add(out, event->text + at, patch->at - at);
		at = patch->at + patch->len;
		if (patch->kind == PATCH_TS) {
			add_fixed(out, event->start_ns + var->shift_ns + var->late_ns);
		} else if (patch->kind == PATCH_DUR) {
			add_fixed(out, var->dur_ns);
		} else if (patch->kind == PATCH_ID) {
			buf_printf(out, "%" PRId64,
				   patch->value ? patch->value + var->id_shift : 0);
		} else if (patch->kind == PATCH_NAME) {
			name_at = out->len;
			buf_add(out, event->text + patch->at, patch->len);
			if (event->varies && var->random % 4 == 0)
				buf_printf(out, "_%u", (unsigned int)(var->random >> 8 & 0xff));
			name.len = out->len - name_at;
		} else {
			uint32_t marker = (uint32_t)(var->random >> 20);

			buf_printf(out, "#%08x", marker);
			gen->totals.marker_sum += marker;
		}
	}
	buf_add(out, event->text + at, event->len - at);
	name.at = out->at + name_at;
	count_event(gen, event, var, name);
	buf_text(out, ",\n  ");
	if (out->len > 1 << 20)
		flush(gen);
}

static void repeat(struct generator *gen, uint64_t round)
{
	struct variation var = { 0 };
	int64_t arrow_start = 0;
	int64_t arrow_late = 0;

	var.shift_ns = (int64_t)round * (gen->last_ns - gen->first_ns + 1000000) +
		       (int64_t)(mix(round) % 900000);
	var.id_shift = (int64_t)round * (gen->max_id + 1);
	for (size_t i = 0; i < gen->events.count; i++) {
		const struct event *event = &gen->events.at[i];

		var.random = mix(round * 0x9e3779b97f4a7c15u + i);
		var.late_ns = 0;
		var.dur_ns = event->dur_ns;
		if (event->shrinks && event->ph == 'X') {
			int64_t slack = event->dur_ns / 8 + 1;

			var.late_ns = (int64_t)(var.random % (uint64_t)slack);
			var.dur_ns -= var.late_ns + (int64_t)(var.random / 7 % (uint64_t)slack);
			if (var.dur_ns < 0)
				var.dur_ns = 0;
			arrow_start = event->start_ns;
			arrow_late = var.late_ns;
		} else if (event->ph != 'X' && event->start_ns == arrow_start) {
			var.late_ns = arrow_late;
		}
		put_event(gen, event, &var);
	}
}

/* Cut the array into its objects; text before and after it is returned. */
static void load(struct generator *gen, const char *text, size_t len, bool launches,
		 struct str *ret_head, struct str *ret_tail)
{
	const char *array = memmem(text, len, "\"traceEvents\": [", 16);
	const char *at = array + 16;
	const char *start = NULL;
	int depth = 0;
	bool quoted = false;

	*ret_head = (struct str){ text, (size_t)(at - text) };
	for (; depth || *at != ']'; at++) {
		struct event event = { 0 };

		if (*at == '"' && at[-1] != '\\')
			quoted = !quoted;
		if (quoted)
			continue;
		if (*at == '{' && !depth++)
			start = at;
		if (*at != '}' || --depth)
			continue;
		event.text = start;
		event.len = (size_t)(at + 1 - start);
		describe(gen, &event);
		if (launches && !event.kernel && !has(&event, "cudaLaunchKernel") &&
		    !has(&event, "\"ac2g\""))
			continue;
		if (event.ph != 'M')
			*VEC_ADD(&gen->events) = event;
	}
	*ret_tail = (struct str){ at, len - (size_t)(at - text) };
}

static char *read_all(const char *path, size_t *ret_len)
{
	FILE *file = fopen(path, "rb");
	struct buf buf = { 0 };
	size_t got;

	if (!file) {
		perror(path);
		exit(1);
	}
	do {
		got = fread(buf_room(&buf, 1 << 20), 1, 1 << 20, file);
		buf.len -= (1 << 20) - got;
	} while (got);
	(void)fclose(file);
	buf_char(&buf, 0);
	*ret_len = buf.len - 1;
	return buf.at;
}

int main(int argc, char **argv)
{
	static struct generator gen;
	const char *totals = NULL;
	bool launches = false;
	struct str head, tail, amount;
	bool by_kernels;
	uint64_t target;
	char *text;
	size_t len;
	int arg = 1;

	for (; arg < argc && argv[arg][0] == '-'; arg++) {
		if (!strcmp(argv[arg], "--launches"))
			launches = true;
		else if (!strcmp(argv[arg], "--totals") && arg + 1 < argc)
			totals = argv[++arg];
	}
	if (argc - arg != 2) {
		(void)fprintf(stderr, "usage: trace_gen [--launches] [--totals FILE] TEMPLATE "
				      "BYTES|KERNELSk\n");
		return 2;
	}
	text = read_all(argv[arg], &len);
	amount = str_of(argv[arg + 1]);
	by_kernels = str_ends(amount, "k");
	amount.len -= by_kernels;
	if (!str_to_u64(amount, &target))
		return 2;
	load(&gen, text, len, launches, &head, &tail);
	buf_add(&gen.out, head.at, head.len);
	for (uint64_t round = 0;
	     by_kernels ? gen.totals.kernels < target : gen.written + gen.out.len < target; round++)
		repeat(&gen, round);
	gen.out.len -= 4; /* the last comma */
	buf_add(&gen.out, tail.at, tail.len);
	flush(&gen);
	return totals ? totals_write(&gen.totals, totals) : 0;
}
