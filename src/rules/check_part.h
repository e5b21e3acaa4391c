/*
 * check_part.h - what checks are written with. Private to rules/.
 */
#pragma once

#include "base/i18n.h"
#include "rules/check.h"

#define X(id, ability, title) \
	void check_##id(const struct scene *scene, struct diagnosis *diagnosis);
CHECK_LIST(X)
#undef X

/* State and reason, the text translated by the caller. */
void diagnose(struct diagnosis *diagnosis, enum check_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* X(word): what can be mended. The lines for each place are in mend.c. */
#define CURE_LIST(X)      \
	X(COUNTERS)       \
	X(COUNTERS_OLD)   \
	X(COUNTERS_USER)  \
	X(USER_NAMESPACE) \
	X(VGPU)           \
	X(KMSG)           \
	X(PERF)           \
	X(PERF_SYSCALL)   \
	X(HOST_PID)       \
	X(GIVE_GPU)       \
	X(UTILITY)        \
	X(DEVICE_RULE)    \
	X(DEVICE_RIGHT)   \
	X(RELOAD)         \
	X(LOAD)           \
	X(PERSISTENCE)    \
	X(CUPTI_12)       \
	X(CUPTI_13)       \
	X(NEW_DRIVER)     \
	X(PAUSE_DCGM)     \
	X(RESET)          \
	X(GLIBC)

enum cure {
#define X(word) CURE_##word,
	CURE_LIST(X)
#undef X
};

/* Add the ways to mend `cure` at `place`; none is known for some pairs. */
void mend(struct diagnosis *diagnosis, enum cure cure, enum place place);
/* One that only the check knows. */
void mend_with(struct diagnosis *diagnosis, const char *what, const char *lines);

/* Cards that can be asked: boards that are no MIG instances. */
size_t scene_card_count(const struct scene *scene);
/* The lowest compute capability times ten (90), 0 unknown. */
int scene_lowest_cc(const struct scene *scene);
bool scene_has_mig(const struct scene *scene);
bool scene_is_vgpu_guest(const struct scene *scene);
/* Is there any sign of a driver and a card? If not, *diagnosis says so. */
bool scene_has_gpu(const struct scene *scene, struct diagnosis *diagnosis);
