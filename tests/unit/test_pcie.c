#include <criterion/criterion.h>
#include <math.h>

#include "know/pcie.h"

Test(pcie, a_lane_carries_what_is_published_of_it)
{
	/* GB/s of x16, one way. */
	static const double sixteen[] = { 4.0, 8.0, 15.754, 31.508, 63.015, 121.0, 242.0 };

	for (size_t i = 0; i < sizeof(sixteen) / sizeof(*sixteen); i++)
		cr_assert_float_eq(pcie_lane_bytes_s((double)(i + 1)) * 16 / 1e9, sixteen[i], 1e-3);
}

Test(pcie, other_generations_are_not_guessed)
{
	static const double unknown[] = { -1, 0, 0.5, 8, 1e300, NAN, INFINITY };

	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		cr_assert(isnan(pcie_lane_bytes_s(unknown[i])), "%g", unknown[i]);
}
