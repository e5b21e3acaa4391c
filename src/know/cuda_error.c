/*
 * cuda_error.c - source of names and numbers: CUDA Runtime API reference, "Data types used
 * by CUDA Runtime", cudaError. Of the errors that a call gets because of work before it, all;
 * of others, those that calls which wait return.
 */
#include "know/cuda_error.h"

#include <stddef.h>

#include "base/i18n.h"

static const struct cuda_error ERRORS[] = {
	{ 1, "cudaErrorInvalidValue", N_("a parameter of the call is out of range"), false },
	{ 2, "cudaErrorMemoryAllocation", N_("there was not enough memory"), false },
	{ 4, "cudaErrorCudartUnloading", N_("the driver is shutting down"), false },
	{ 46, "cudaErrorDevicesUnavailable", N_("the device is busy or in exclusive use"), false },
	{ 201, "cudaErrorDeviceUninitialized", N_("there is no valid context"), false },
	{ 214, "cudaErrorECCUncorrectable", N_("an uncorrectable memory error of the board"),
	  true },
	{ 220, "cudaErrorNvlinkUncorrectable", N_("an uncorrectable error of NVLink"), true },
	{ 226, "cudaErrorContained", N_("an error of the board or of NVLink ended the work"),
	  true },
	{ 400, "cudaErrorInvalidResourceHandle",
	  N_("the stream or event is not one, or of another context"), false },
	{ 700, "cudaErrorIllegalAddress",
	  N_("a kernel read or wrote an address that is not its own"), true },
	{ 702, "cudaErrorLaunchTimeout",
	  N_("a kernel ran longer than the display's watchdog allows"), true },
	{ 709, "cudaErrorContextIsDestroyed", N_("the context was destroyed"), false },
	{ 710, "cudaErrorAssert", N_("an assert in a kernel failed"), true },
	{ 714, "cudaErrorHardwareStackError", N_("a kernel's call stack is corrupt or too small"),
	  true },
	{ 715, "cudaErrorIllegalInstruction", N_("a kernel met an illegal instruction"), true },
	{ 716, "cudaErrorMisalignedAddress", N_("a kernel used an address that is not aligned"),
	  true },
	{ 717, "cudaErrorInvalidAddressSpace",
	  N_("a kernel used an address of the wrong memory space"), true },
	{ 718, "cudaErrorInvalidPc", N_("a kernel jumped to where no code is"), true },
	{ 719, "cudaErrorLaunchFailure", N_("a kernel ended with an error of its own"), true },
	{ 900, "cudaErrorStreamCaptureUnsupported",
	  N_("the call is not allowed while a stream is captured"), false },
	{ 906, "cudaErrorStreamCaptureImplicit",
	  N_("the call is not allowed while a stream is captured"), false },
	{ 999, "cudaErrorUnknown", N_("an error of the driver that has no name"), true },
};

const struct cuda_error *cuda_error_find(int64_t number)
{
	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++) {
		if (ERRORS[i].number == number)
			return &ERRORS[i];
	}
	return NULL;
}
