#include "base/own.h"

#include <unistd.h>

void own_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}
