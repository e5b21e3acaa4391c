/*
 * check.h - what this shell can measure, why not, and what mends it.
 *
 * A check is one function and one row of CHECK_LIST; it looks at a scene
 * (collect/host.h, a snapshot of the cards, perhaps a probe) and gives a
 * diagnosis. Abilities are what sonde can do here; conditions are what it
 * found about the machine that changes what numbers mean.
 *
 * To add one: a function in check_*.c, a row, a paragraph in
 * doc/man/sonde-doctor.md, an invented tree that shows each of its states.
 */
#pragma once

#include <stdbool.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/board.h"
#include "collect/host.h"
#include "collect/probe.h"

enum check_state { CHECK_UNKNOWN, CHECK_OK, CHECK_LIMITED, CHECK_NO };

/* "ok", "limited", "no", "unknown" */
const char *check_state_name(enum check_state state);

/* X(id, ability, title) */
#define CHECK_LIST(X)                              \
	X(nvml, true, N_("card values"))           \
	X(processes, true, N_("processes"))        \
	X(gpm, true, N_("SM activity"))            \
	X(tracing, true, N_("activity tracing"))   \
	X(pc_sampling, true, N_("PC sampling"))    \
	X(pm_sampling, true, N_("PM sampling"))    \
	X(counters, true, N_("hardware counters")) \
	X(kernel_log, true, N_("kernel log"))      \
	X(perf, true, N_("perf events"))           \
	X(osrt, true, N_("OS calls"))              \
	X(driver, false, N_("driver and library")) \
	X(devices, false, N_("device nodes"))      \
	X(sharing, false, N_("sharing"))           \
	X(holders, false, N_("counter holders"))   \
	X(persistence, false, N_("persistence"))   \
	X(pcie_link, false, N_("PCIe link"))       \
	X(memory_health, false, N_("card health")) \
	X(compatibility, false, N_("CUDA, driver, torch"))

/* Where the mending line is to be typed. */
enum place {
	PLACE_BARE = 1,
	PLACE_VM = 2,
	PLACE_DOCKER = 4,
	PLACE_PODMAN = 8,
	PLACE_POD = 16,
	PLACE_CONTAINER = 32, /* another kind */
	PLACE_SLURM = 64,
	PLACE_WSL = 128,
};

/* "docker", "kubernetes", ...; and for people. */
const char *place_name(enum place place);
const char *place_title(enum place place);
enum place place_of(const struct host *host);

/* One way to mend it: what, in the user's language, and the exact lines. */
struct mend {
	const char *what;
	const char *lines; /* NULL: nothing to type */
};

struct diagnosis {
	const char *id;
	const char *title; /* marked N_ */
	bool ability;
	enum check_state state;
	const char *why;   /* translated */
	const char *costs; /* translated: conclusions that are lost; NULL */
	VEC(struct mend) mends;
	struct arena *arena; /* of the checkup */
};

/* What the checks look at. */
struct scene {
	const struct host *host;
	const struct snapshot *cards; /* NULL: the driver gave none; then: */
	int nvml_status;              /* NVML's number, 0 unknown */
	bool nvml_hung;
	const char *nvml_error;    /* the collector's line; NULL */
	const struct probe *probe; /* NULL: not asked for */
	const char *probe_error;   /* the probe did not come to its end; NULL */
};

/* As the driver itself says, else as /proc does; NULL: neither. */
static inline const char *scene_driver(const struct scene *scene)
{
	if (scene->cards && *scene->cards->driver)
		return scene->cards->driver;
	return scene->host->driver;
}

struct checkup {
	struct arena arena;
	enum place place;
	VEC(struct diagnosis) at;
	size_t counts[4]; /* of abilities, per enum check_state */
	size_t faults;    /* conditions that are limited or no */
};

void checks_run(const struct scene *scene, struct checkup *ret_checkup);
void checkup_done(struct checkup *checkup);
/* The libcupti that would be loaded here; NULL if none fits the driver. */
const char *check_cupti(const struct scene *scene);
/* Is everything possible and nothing wrong? */
bool checkup_is_fine(const struct checkup *checkup);
