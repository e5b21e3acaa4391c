#include "know/pcie.h"

#include <math.h>
#include <stddef.h>

/* Transfers of a bit a second, and the share that the line code leaves: 8b/10b, from
 * 8 GT/s on 128b/130b, from 64 GT/s on flits of 256 bytes, of which 242 carry packets
 * and their control (PCI Express Base Specification). */
static const struct {
	double transfers_s, left;
} GENERATIONS[] = {
	{ 2.5e9, 8.0 / 10 },   { 5e9, 8.0 / 10 },     { 8e9, 128.0 / 130 },   { 16e9, 128.0 / 130 },
	{ 32e9, 128.0 / 130 }, { 64e9, 242.0 / 256 }, { 128e9, 242.0 / 256 },
};

double pcie_lane_bytes_s(double generation)
{
	size_t known = sizeof(GENERATIONS) / sizeof(*GENERATIONS), i;

	if (!(generation >= 1) || !(generation < (double)(known + 1)))
		return NAN;
	i = (size_t)generation - 1;
	return GENERATIONS[i].transfers_s / 8 * GENERATIONS[i].left;
}
