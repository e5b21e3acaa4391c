#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

uint64_t hash_seed(void)
{
	static uint64_t seed;

	if (!seed) {
		struct timespec now = { 0 };

		if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
			(void)clock_gettime(CLOCK_MONOTONIC, &now);
			seed = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u;
		}
		seed |= 1;
	}
	return seed;
}
