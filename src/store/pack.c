#include "store/pack.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

struct packer {
	size_t rows_max;
	struct chunk_codec *codec;
	int64_t *column;
	uint32_t *order; /* and as much again to sort with */
	struct buf details;
	uint32_t *numbers; /* by place in the job's texts: in the chunk's dictionary */
	size_t numbers_room;
};

struct packer *packer_new(size_t rows_max)
{
	struct packer *packer = mem_zero(sizeof(*packer));

	packer->rows_max = rows_max;
	packer->codec = chunk_codec_new();
	packer->column = mem_alloc(rows_max * sizeof(*packer->column));
	packer->order = mem_alloc(2 * rows_max * sizeof(*packer->order));
	return packer;
}

void packer_free(struct packer *packer)
{
	if (!packer)
		return;
	chunk_codec_free(packer->codec);
	free(packer->column);
	free(packer->order);
	free(packer->numbers);
	buf_done(&packer->details);
	free(packer);
}

void pack_job_done(struct pack_job *job)
{
	free(job->text_of);
	VEC_DONE(&job->texts);
	buf_done(&job->blob);
}

/* packer->order: rows by start, stable. True if they lie in order already. */
static bool sort_rows(struct packer *packer, const struct pack_job *job, size_t width)
{
	const int64_t *rows = job->rows;
	uint32_t *order = packer->order;
	uint32_t *to = order + packer->rows_max;
	bool sorted = true;

	for (size_t i = 1; sorted && i < job->count; i++)
		sorted = rows[(i - 1) * width] <= rows[i * width];
	if (sorted || !layout_of(job->kind)->sorted)
		return true;
	for (uint32_t i = 0; i < job->count; i++)
		order[i] = i;
	/* Bottom-up merge sort: the rows are mostly runs in order. */
	for (size_t run = 1; run < job->count; run *= 2) {
		uint32_t *swap;

		for (size_t at = 0; at < job->count; at += 2 * run) {
			size_t mid = at + run < job->count ? at + run : job->count;
			size_t end = mid + run < job->count ? mid + run : job->count;
			size_t a = at, b = mid;

			for (size_t out = at; out < end; out++) {
				bool left = a < mid && (b >= end || rows[order[a] * width] <=
									    rows[order[b] * width]);

				to[out] = left ? order[a++] : order[b++];
			}
		}
		swap = order;
		order = to;
		to = swap;
	}
	if (order != packer->order)
		memcpy(packer->order, order, job->count * sizeof(*order));
	return false;
}

/* The column of details: numbers into the chunk's own dictionary, whose texts
 * go to packer->details, each with a NUL behind it. 0 stays "none". */
static void number_details(struct packer *packer, const struct pack_job *job, bool in_order)
{
	uint32_t next = 1;

	if (job->texts.count > packer->numbers_room) {
		packer->numbers_room = job->texts.count * 2;
		packer->numbers = mem_resize(packer->numbers, packer->numbers_room * 4);
	}
	if (job->texts.count)
		memset(packer->numbers, 0, job->texts.count * 4);
	for (size_t i = 0; i < job->count; i++) {
		uint32_t place =
			job->texts.count ? job->text_of[in_order ? i : packer->order[i]] : 0;

		packer->column[i] = 0;
		if (!place)
			continue;
		if (!packer->numbers[place - 1]) {
			struct str text = job->texts.at[place - 1];

			packer->numbers[place - 1] = next++;
			/* NUL ends a text in the dictionary. */
			buf_add(&packer->details, text.at, strnlen(text.at, text.len));
			buf_char(&packer->details, 0);
		}
		packer->column[i] = packer->numbers[place - 1];
	}
}

static void see_times(struct pack_job *job, size_t width)
{
	bool sorted = layout_of(job->kind)->sorted;
	int duration = layout_find(job->kind, COL_duration);
	struct chunk_head *head = &job->head;

	head->first_ns = INT64_MAX;
	head->last_ns = INT64_MIN;
	for (size_t i = 0; i < job->count; i++) {
		const int64_t *row = job->rows + i * width;
		int64_t start = sorted ? row[0] : 0;
		int64_t end = start;

		if (duration >= 0 && __builtin_add_overflow(start, row[duration], &end))
			end = start;
		head->first_ns = start < head->first_ns ? start : head->first_ns;
		head->last_ns = end > head->last_ns ? end : head->last_ns;
		head->last_ns = start > head->last_ns ? start : head->last_ns;
	}
}

void pack(struct packer *packer, struct pack_job *job)
{
	const struct layout *layout = layout_of(job->kind);
	size_t width = (size_t)layout->count;
	bool in_order = sort_rows(packer, job, width);
	int detail = layout_find(job->kind, COL_detail);

	job->head = (struct chunk_head){ .rowid = job->id,
					 .kind = job->kind,
					 .lane = job->lane,
					 .count = (uint32_t)job->count };
	see_times(job, width);
	buf_clear(&job->blob);
	buf_clear(&packer->details);
	for (int c = 0; c < layout->count; c++) {
		const int64_t *from = job->rows + c;

		if (c == detail)
			number_details(packer, job, in_order);
		else if (in_order)
			for (size_t i = 0; i < job->count; i++)
				packer->column[i] = from[i * width];
		else
			for (size_t i = 0; i < job->count; i++)
				packer->column[i] = from[packer->order[i] * width];
		chunk_put(packer->codec, &job->blob, layout_column_name(job->kind, c),
			  packer->column, job->count, layout_is_double(job->kind, c));
	}
	chunk_put_bytes(packer->codec, &job->blob, "details", packer->details.at,
			packer->details.len);
	job->head.bytes = (int64_t)job->blob.len;
	job->head.checksum = (uint32_t)crc32(0, (const Bytef *)job->blob.at, (uInt)job->blob.len);
}
