#include <criterion/criterion.h>

#include "collect/probe.h"
#include "collect/probe_cupti.h"
#include "layout.h"

#if __has_include(<cupti_pmsampling.h>)
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

/* The size that CUPTI expects ends with the last field that it knows. */
_Static_assert(sizeof(struct cupti_plain) == CUpti_Profiler_Initialize_Params_STRUCT_SIZE, "");
_Static_assert(sizeof(struct cupti_context) == CUpti_PCSamplingEnableParamsSize, "");
_Static_assert(sizeof(struct cupti_context) == CUpti_PCSamplingDisableParamsSize, "");
_Static_assert(sizeof(struct cupti_chip) == CUpti_Device_GetChipName_Params_STRUCT_SIZE, "");
_Static_assert(sizeof(struct cupti_availability) ==
		       CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE,
	       "");
_Static_assert(sizeof(struct cupti_pm_enable) == CUpti_PmSampling_Enable_Params_STRUCT_SIZE, "");
_Static_assert(sizeof(struct cupti_pm_object) == CUpti_PmSampling_Disable_Params_STRUCT_SIZE, "");

SAME_FIELD(struct cupti_context, context, CUpti_PCSamplingEnableParams, ctx);
SAME_FIELD(struct cupti_chip, device, CUpti_Device_GetChipName_Params, deviceIndex);
SAME_FIELD(struct cupti_chip, name, CUpti_Device_GetChipName_Params, pChipName);
SAME_FIELD(struct cupti_availability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
SAME_FIELD(struct cupti_availability, image_size, CUpti_Profiler_GetCounterAvailability_Params,
	   counterAvailabilityImageSize);
SAME_FIELD(struct cupti_availability, image, CUpti_Profiler_GetCounterAvailability_Params,
	   pCounterAvailabilityImage);
SAME_FIELD(struct cupti_pm_enable, device, CUpti_PmSampling_Enable_Params, deviceIndex);
SAME_FIELD(struct cupti_pm_enable, object, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
SAME_FIELD(struct cupti_pm_object, object, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
_Static_assert(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == 10, "probe.c");

Test(probe, numbers_have_the_names_that_cupti_gives_them)
{
	cr_assert_str_eq(probe_cupti_result(CUPTI_ERROR_HARDWARE_BUSY), "HARDWARE_BUSY");
	cr_assert_str_eq(probe_cupti_result(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES),
			 "INSUFFICIENT_PRIVILEGES");
	cr_assert_str_eq(probe_cupti_result(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED),
			 "MIG_DEVICE_NOT_SUPPORTED");
	cr_assert_str_eq(probe_cupti_result(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
			 "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES");
}
#endif

Test(probe, without_cuda_it_says_what_is_missing)
{
	struct probe probe;
	struct err err = { 0 };

	/* Where there is a driver, the library that is no CUPTI is missing. */
	cr_assert_eq(probe_run("/no/such/libcupti.so", 20000, &probe, &err), 0, "%s", err.line);
	cr_assert_neq(probe.missing[0], 0);
	cr_assert_eq(probe.counters, PROBE_NOT_TRIED);
}
