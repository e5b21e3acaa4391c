/*
 * compat.h - which driver, CUDA, PyTorch and card go together.
 *
 * From data/cuda_compat.csv and data/pytorch_compat.csv. What the tables don't
 * have is unknown, not false. Read only and thread safe.
 */
#pragma once

#include <stdbool.h>

struct compat_toolkit {
	const char *name;   /* "12.8 GA" */
	char driver[24];    /* the one it came with: its PTX needs it. "" unknown */
	int sm_min, sm_max; /* compute capability times ten; 0 unknown */
};

/* The first release of a CUDA version such as "12.8". */
bool compat_toolkit(const char *version, struct compat_toolkit *ret_toolkit);

/* The oldest Linux driver that runs programs of this major version of CUDA:
 * "525.60.13"; "" unknown. */
void compat_floor(int major, char ret_driver[24]);

enum compat { COMPAT_UNKNOWN, COMPAT_YES, COMPAT_NO };

/* Has the wheel of `torch` ("2.9.0+cu128") for `cuda` ("12.8") code for a card
 * of this compute capability? For x86-64. */
enum compat compat_torch(const char *torch, const char *cuda, int cc_major, int cc_minor);
