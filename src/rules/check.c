#include "rules/check.h"

#include <stdarg.h>

#include "base/buf.h"
#include "rules/check_part.h"

const char *check_state_name(enum check_state state)
{
	static const char *const names[] = { [CHECK_UNKNOWN] = "unknown",
					     [CHECK_OK] = "ok",
					     [CHECK_LIMITED] = "limited",
					     [CHECK_NO] = "no" };

	return names[state];
}

static const struct {
	enum place place;
	const char *name, *title;
} PLACES[] = {
	{ PLACE_BARE, "bare", N_("Bare metal") },
	{ PLACE_VM, "vm", N_("Virtual machine") },
	{ PLACE_DOCKER, "docker", N_("Docker container") },
	{ PLACE_PODMAN, "podman", N_("Podman container") },
	{ PLACE_POD, "kubernetes", N_("Kubernetes pod") },
	{ PLACE_CONTAINER, "container", N_("Container") },
	{ PLACE_SLURM, "slurm", N_("Slurm job") },
	{ PLACE_WSL, "wsl", N_("WSL 2") },
};

const char *place_name(enum place place)
{
	for (size_t i = 0; i < sizeof(PLACES) / sizeof(*PLACES); i++) {
		if (PLACES[i].place == place)
			return PLACES[i].name;
	}
	return "unknown";
}

const char *place_title(enum place place)
{
	for (size_t i = 0; i < sizeof(PLACES) / sizeof(*PLACES); i++) {
		if (PLACES[i].place == place)
			return PLACES[i].title;
	}
	return N_("unknown");
}

/* The innermost first: that is where a line can be typed. */
enum place place_of(const struct host *host)
{
	if (host->pod)
		return PLACE_POD;
	if (host->runtime == RUNTIME_DOCKER || host->runtime == RUNTIME_CONTAINERD)
		return PLACE_DOCKER;
	if (host->runtime == RUNTIME_PODMAN || host->runtime == RUNTIME_CRIO)
		return PLACE_PODMAN;
	if (host->slurm)
		return PLACE_SLURM;
	if (host->runtime != RUNTIME_NONE)
		return PLACE_CONTAINER;
	if (host->wsl)
		return PLACE_WSL;
	return host->machine ? PLACE_VM : PLACE_BARE;
}

void diagnose(struct diagnosis *diagnosis, enum check_state state, const char *fmt, ...)
{
	struct buf text = { 0 };
	va_list args;

	va_start(args, fmt);
	buf_vprintf(&text, fmt, args);
	va_end(args);
	diagnosis->state = state;
	diagnosis->why = arena_text(diagnosis->arena, text.at, text.len);
	buf_done(&text);
}

size_t scene_card_count(const struct scene *scene)
{
	size_t count = 0;

	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++)
		count += scene->cards->boards.at[i].parent < 0;
	return count;
}

int scene_lowest_cc(const struct scene *scene)
{
	int lowest = 0;

	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++) {
		const struct board *board = &scene->cards->boards.at[i];
		int cc = board->cc_major * 10 + board->cc_minor;

		if (board->parent < 0 && cc > 0 && (!lowest || cc < lowest))
			lowest = cc;
	}
	if (!lowest && scene->probe && scene->probe->cc_major > 0)
		lowest = scene->probe->cc_major * 10 + scene->probe->cc_minor;
	return lowest;
}

bool scene_has_mig(const struct scene *scene)
{
	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++) {
		if (scene->cards->boards.at[i].mig_mode == 1 ||
		    scene->cards->boards.at[i].parent >= 0)
			return true;
	}
	return false;
}

bool scene_is_vgpu_guest(const struct scene *scene)
{
	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++) {
		if (scene->cards->boards.at[i].virtualization == 2)
			return true;
	}
	return false;
}

bool scene_has_gpu(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;

	if (scene_card_count(scene))
		return true;
	if (scene->cards) {
		diagnose(diagnosis, CHECK_NO, "%s", _("The driver runs but has no card."));
		return false;
	}
	if (host->driver || host->wsl || host->jetson) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("The driver does not answer: see card values."));
		return false;
	}
	diagnose(diagnosis, CHECK_NO, "%s", _("No NVIDIA driver is loaded here."));
	return false;
}

static const struct {
	const char *id, *title;
	bool ability;
	void (*look)(const struct scene *scene, struct diagnosis *diagnosis);
} CHECKS[] = {
#define X(id, ability, title) { #id, title, ability, check_##id },
	CHECK_LIST(X)
#undef X
};

void checks_run(const struct scene *scene, struct checkup *ret_checkup)
{
	*ret_checkup = (struct checkup){ .place = place_of(scene->host) };
	for (size_t i = 0; i < sizeof(CHECKS) / sizeof(*CHECKS); i++) {
		struct diagnosis *diagnosis = VEC_ADD(&ret_checkup->at);

		diagnosis->id = CHECKS[i].id;
		diagnosis->title = CHECKS[i].title;
		diagnosis->ability = CHECKS[i].ability;
		diagnosis->why = "";
		diagnosis->arena = &ret_checkup->arena;
		CHECKS[i].look(scene, diagnosis);
		if (diagnosis->ability)
			ret_checkup->counts[diagnosis->state]++;
		else
			ret_checkup->faults += diagnosis->state >= CHECK_LIMITED;
	}
}

void checkup_done(struct checkup *checkup)
{
	for (size_t i = 0; i < checkup->at.count; i++)
		VEC_DONE(&checkup->at.at[i].mends);
	VEC_DONE(&checkup->at);
	arena_done(&checkup->arena);
}

bool checkup_is_fine(const struct checkup *checkup)
{
	return !checkup->counts[CHECK_LIMITED] && !checkup->counts[CHECK_NO] &&
	       !checkup->counts[CHECK_UNKNOWN] && !checkup->faults;
}
