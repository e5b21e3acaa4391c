#include <criterion/criterion.h>

#include "fake/nvml_layout.h"

Test(nvml_abi, layouts_are_those_of_the_header)
{
	/* The compiler has checked them. */
	if (!HAVE_NVML)
		cr_skip_test("no nvml.h of CUDA 12.9 or later here");
}
