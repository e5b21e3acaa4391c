/* A test whose every assertion holds, and that leaks: it has to fail. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(leak, fails)
{
	void *volatile lost = malloc(64);

	cr_assert_not_null(lost);
	lost = NULL;
}
