/* other_tool.c - another tool's injection library. */
#include <unistd.h>

int InitializeInjection(void);

int InitializeInjection(void)
{
	(void)!write(STDOUT_FILENO, "the other tool is here\n", 23);
	return 1;
}
