/*
 * python_image.h - the memory of an invented Python process: one interpreter, a thread
 * 41 without Python and a thread 42 that runs collate() under main(), with a frame
 * of C code between them where the version has such.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "collect/python_stack.h"

enum {
	IMAGE_BYTES = 8192,
	IMAGE_BASE = 0x10000,
	AT_RUNTIME = 0,
	AT_INTERPRETER = 0x300,
	AT_IDLE_THREAD = 0x400,
	AT_THREAD = 0x500,
	AT_CFRAME = 0x600,
	AT_FRAMES = 0x700, /* three, 0x100 each */
	AT_CODES = 0xa00,  /* two */
	AT_TEXTS = 0xc00,  /* four */
	AT_TABLES = 0x1400,
};

struct image {
	unsigned char at[IMAGE_BYTES];
	size_t reads;
};

static const struct python_places IMAGE_PLACES = { .runtime = IMAGE_BASE + AT_RUNTIME,
						   .code_type = 0x200100,
						   .text_type = 0x200200,
						   .bytes_type = 0x200300 };

static inline bool image_read(void *from, uint64_t address, void *to, size_t bytes)
{
	struct image *image = from;

	image->reads++;
	if (address < IMAGE_BASE || bytes > IMAGE_BYTES ||
	    address - IMAGE_BASE > IMAGE_BYTES - bytes)
		return false;
	memcpy(to, image->at + (address - IMAGE_BASE), bytes);
	return true;
}

static inline void image_put(struct image *image, uint32_t at, uint64_t value)
{
	memcpy(image->at + at, &value, sizeof(value));
}

static inline void image_point(struct image *image, uint32_t at, uint32_t to)
{
	image_put(image, at, IMAGE_BASE + to);
}

static inline void image_text(struct image *image, const struct python_layout *layout, uint32_t at,
			      const char *text)
{
	image_put(image, at + layout->type, IMAGE_PLACES.text_type);
	image_put(image, at + layout->text_length, strlen(text));
	image->at[at + layout->text_state] = 1 << 2 | 1 << 5 | 1 << 6;
	memcpy(image->at + at + layout->text_ascii, text, strlen(text) + 1);
}

static inline void image_code(struct image *image, const struct python_layout *layout, uint32_t i,
			      const char *function, const char *file, int line)
{
	/* Two instructions of the first line, three of the next, two of five lines up. */
	static const unsigned char table[] = { 0x81, 0x01, 0xda, 0x01, 0x02, 0xe9, 0x0b };
	uint32_t at = AT_CODES + 0x100 * i, texts = AT_TEXTS + 0x400 * i;
	uint32_t lines = AT_TABLES + 0x100 * i;

	image_put(image, at + layout->type, IMAGE_PLACES.code_type);
	image_point(image, at + layout->file, texts);
	image_point(image, at + layout->qualname, texts + 0x200);
	image_point(image, at + layout->lines, lines);
	memcpy(image->at + at + layout->first_line, &line, sizeof(line));
	image_text(image, layout, texts, file);
	image_text(image, layout, texts + 0x200, function);
	image_put(image, lines + layout->type, IMAGE_PLACES.bytes_type);
	image_put(image, lines + layout->bytes_length, sizeof(table));
	memcpy(image->at + lines + layout->bytes_at, table, sizeof(table));
}

static inline void image_frame(struct image *image, const struct python_layout *layout, uint32_t i,
			       uint32_t code, int offset, bool is_last)
{
	uint32_t at = AT_FRAMES + 0x100 * i;

	image_point(image, at + layout->code, AT_CODES + 0x100 * code);
	if (!is_last)
		image_point(image, at + layout->previous, at + 0x100);
	image_point(image, at + layout->instruction,
		    AT_CODES + 0x100 * code + layout->bytecode + (uint32_t)offset);
}

static inline void image_make(struct image *image, const struct python_layout *layout)
{
	uint32_t frame = AT_THREAD + layout->frame;

	image_point(image, AT_RUNTIME + layout->interpreters, AT_INTERPRETER);
	image_point(image, AT_INTERPRETER + layout->threads, AT_IDLE_THREAD);
	image_put(image, AT_IDLE_THREAD + layout->native_id, 41);
	image_point(image, AT_IDLE_THREAD + layout->next_thread, AT_THREAD);
	image_put(image, AT_THREAD + layout->native_id, 42);
	image_point(image, frame, layout->cframe ? AT_CFRAME : AT_FRAMES);
	if (layout->cframe)
		image_point(image, AT_CFRAME + layout->frame_in_cframe, AT_FRAMES);
	image_code(image, layout, 0, "Loader.<locals>.collate", "/usr/lib/data.py", 40);
	image_code(image, layout, 1, "main", "train.py", 7);
	image_frame(image, layout, 0, 0, 4, false);
	image_frame(image, layout, 1, 0, 0, false);
	image->at[AT_FRAMES + 0x100 + layout->owner] = PYTHON_OWNER_C;
	image_frame(image, layout, 2, 1, 10, true);
}
