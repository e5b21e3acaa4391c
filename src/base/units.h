/*
 * units.h - numbers as people read them.
 *
 * Three significant digits with the unit that fits: "812 ns", "16.4 us",
 * "2.30 s", "4.00 KiB", "12.3 GB/s". Each writes into the caller's array and
 * returns it, so calls nest in a printf.
 */
#pragma once

#include <stdint.h>

struct unit_text {
	char at[32];
};

const char *units_ns(struct unit_text *text, int64_t ns);
/* Binary units: B, KiB, MiB, GiB, TiB. */
const char *units_bytes(struct unit_text *text, int64_t bytes);
/* Bytes a nanosecond are GB/s; decimal units as data sheets use them. */
const char *units_rate(struct unit_text *text, double bytes_per_s);
/* "93 %", "4.2 %", "0.31 %", "< 0.01 %" from a share in 0..1. */
const char *units_share(struct unit_text *text, double share);
/* "1,234,567". */
const char *units_count(struct unit_text *text, int64_t count);
