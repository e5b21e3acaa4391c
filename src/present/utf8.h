/*
 * utf8.h - characters of a text and the terminal cells they take.
 *
 * Private to present/.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `at` (NUL terminated), its code in *ret_code; 0 if
 * it is no UTF-8. */
size_t utf8_next(const char *at, uint32_t *ret_code);
/* 0, 1 or 2. */
int utf8_cells(uint32_t code);
