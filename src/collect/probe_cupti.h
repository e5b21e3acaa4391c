/*
 * probe_cupti.h - the structs of CUPTI that the probe passes, in our words.
 *
 * Private to probe.c and to the test that compares them with NVIDIA's headers.
 * CUPTI looks at the size, which ends with the last field it may use.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cupti_plain { /* cuptiProfilerInitialize */
	size_t size;
	void *priv;
};

struct cupti_context { /* cuptiPCSamplingEnable and -Disable */
	size_t size;
	void *priv;
	void *context;
};

struct cupti_chip { /* cuptiDeviceGetChipName */
	size_t size;
	void *priv;
	size_t device;
	const char *name;
};

struct cupti_availability { /* cuptiProfilerGetCounterAvailability */
	size_t size;
	void *priv;
	void *context;
	size_t image_size;
	uint8_t *image;
};

struct cupti_pm_enable { /* cuptiPmSamplingEnable */
	size_t size;
	void *priv;
	size_t device;
	void *object;
};

struct cupti_pm_object { /* cuptiPmSamplingDisable */
	size_t size;
	void *priv;
	void *object;
};
