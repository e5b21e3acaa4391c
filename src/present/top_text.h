/*
 * top_text.h - the parts of the picture that top.h promises.
 *
 * Private to present/.
 */
#pragma once

#include "present/page.h"
#include "present/top.h"

/* "0", of a MIG instance "0.1". */
const char *top_label(struct page *page, const struct snapshot *snapshot, uint32_t place);
/* `text` at the right of `width` cells. */
void top_right(struct page *page, enum ink ink, const char *text, int width);
void top_processes(struct page *page, const struct top_view *view);
