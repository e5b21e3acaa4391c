/* puppet_holes.c - kernels that have not ended, in buffers of activity records. */
#include "fake/puppet_cupti.h"

#include <string.h>

enum { HOLES = 64 };

static struct {
	uint8_t *at;
	struct cupti_kernel record;
} holes[HOLES];
static size_t count;

bool puppet_hole(uint8_t *at, const struct cupti_kernel *record)
{
	struct cupti_kernel there;

	memcpy(&there, at, sizeof(there));
	if (count == HOLES || there.kind != record->kind ||
	    there.correlation != record->correlation)
		return false;
	holes[count].at = at;
	holes[count++].record = *record;
	there.kind |= CUPTI_KIND_OPEN;
	memcpy(at, &there, sizeof(there.kind));
	return true;
}

bool puppet_has_hole(const uint8_t *buffer, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (holes[i].at >= buffer && holes[i].at < buffer + bytes)
			return true;
	}
	return false;
}

void puppet_fill_holes(void)
{
	for (size_t i = 0; i < count; i++)
		memcpy(holes[i].at, &holes[i].record, sizeof(holes[i].record));
	count = 0;
}
