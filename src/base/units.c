#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The number with three significant digits, then the unit. */
static const char *scaled(struct unit_text *text, double value, const char *unit)
{
	double size = fabs(value);
	int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;

	(void)snprintf(text->at, sizeof(text->at), "%.*f %s", decimals, value, unit);
	return text->at;
}

const char *units_ns(struct unit_text *text, int64_t ns)
{
	double size = fabs((double)ns);

	if (size < 1000) {
		(void)snprintf(text->at, sizeof(text->at), "%d ns", (int)ns);
		return text->at;
	}
	if (size < 999.5e3)
		return scaled(text, (double)ns / 1e3, "us");
	if (size < 999.5e6)
		return scaled(text, (double)ns / 1e6, "ms");
	if (size < 600e9)
		return scaled(text, (double)ns / 1e9, "s");
	if (size < 7200e9)
		return scaled(text, (double)ns / 60e9, "min");
	return scaled(text, (double)ns / 3600e9, "h");
}

const char *units_bytes(struct unit_text *text, int64_t bytes)
{
	static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes / 1024;
	size_t i = 0;

	if (llabs(bytes) < 1024) {
		(void)snprintf(text->at, sizeof(text->at), "%d B", (int)bytes);
		return text->at;
	}
	for (; fabs(value) >= 1023.5 && i < 4; i++)
		value /= 1024;
	return scaled(text, value, unit[i]);
}

const char *units_rate(struct unit_text *text, double bytes_per_s)
{
	static const char *const unit[] = { "B/s", "kB/s", "MB/s", "GB/s", "TB/s" };
	size_t i = 0;

	for (; fabs(bytes_per_s) >= 999.5 && i < 4; i++)
		bytes_per_s /= 1000;
	return scaled(text, bytes_per_s, unit[i]);
}

const char *units_share(struct unit_text *text, double share)
{
	double percent = share * 100;

	if (percent == 0 || percent >= 9.95)
		(void)snprintf(text->at, sizeof(text->at), "%.0f %%", percent);
	else if (percent >= 0.995)
		(void)snprintf(text->at, sizeof(text->at), "%.1f %%", percent);
	else if (percent >= 0.01)
		(void)snprintf(text->at, sizeof(text->at), "%.2f %%", percent);
	else
		(void)snprintf(text->at, sizeof(text->at), "< 0.01 %%");
	return text->at;
}

const char *units_count(struct unit_text *text, int64_t count)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lld", llabs(count));
	size_t at = 0;

	if (count < 0)
		text->at[at++] = '-';
	for (int i = 0; i < len; i++) {
		text->at[at++] = digits[i];
		if ((len - i - 1) % 3 == 0 && i != len - 1)
			text->at[at++] = ',';
	}
	text->at[at] = 0;
	return text->at;
}
