/*
 * The cards themselves: what they offer, who shares them, what ails them.
 */
#include <string.h>

#include "rules/check_part.h"

enum { CC_HOPPER = 90 };

/* Field 145's rule of DCGM: this many uncorrectable remaps mean a new card. */
static const double REMAPS_MOST = 512;

void check_gpm(const struct scene *scene, struct diagnosis *diagnosis)
{
	size_t with = 0, cards = scene_card_count(scene);
	int cc = scene_lowest_cc(scene);

	diagnosis->costs = _("how much of the card a busy card uses; utilisation alone says only "
			     "that some kernel ran");
	if (!scene_has_gpu(scene, diagnosis))
		return;
	for (size_t i = 0; i < scene->cards->boards.count; i++)
		with += scene->cards->boards.at[i].parent < 0 && scene->cards->boards.at[i].gpm;
	if (with == cards && !scene_is_vgpu_guest(scene)) {
		diagnose(diagnosis, CHECK_OK, "%s",
			 scene_has_mig(scene)
				 ? _("GPM, per MIG instance.")
				 : _("GPM: SM, occupancy, tensor and memory activity."));
	} else if (scene_is_vgpu_guest(scene)) {
		diagnose(diagnosis, with ? CHECK_LIMITED : CHECK_NO, "%s",
			 _("A vGPU: only where it is backed by a whole MIG instance."));
	} else if (with) {
		diagnose(diagnosis, CHECK_LIMITED, _("On %zu of %zu cards."), with, cards);
	} else if (cc && cc < CC_HOPPER) {
		diagnose(diagnosis, CHECK_NO,
			 _("GPM is on Hopper (9.0) and later; this card is %d.%d. PM sampling can "
			   "tell the same where counters are allowed."),
			 cc / 10, cc % 10);
	} else {
		diagnose(diagnosis, CHECK_NO, "%s", _("The driver offers no GPM for this card."));
	}
}

static bool under_mps(const struct scene *scene)
{
	if (scene->host->mps_pipe || host_process_find(scene->host, ROLE_MPS_SERVER))
		return true;
	for (size_t i = 0; scene->cards && i < scene->cards->processes.count; i++) {
		if (scene->cards->processes.at[i].kinds & PROCESS_MPS)
			return true;
	}
	return false;
}

static void hami_sharing(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host_hami *hami = &scene->host->hami;

	diagnose(diagnosis, CHECK_LIMITED,
		 _("A HAMi share (memory %s, cores %s %%). Memory is the share's, answered by "
		   "%s; power, clocks and use are the whole card's."),
		 !hami->memory_limit || !strcmp(hami->memory_limit, "0") ? _("unlimited")
									 : hami->memory_limit,
		 hami->core_limit ? hami->core_limit : "100",
		 hami->library ? hami->library : "libvgpu.so");
}

void check_sharing(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;
	size_t instances = 0;

	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++)
		instances += scene->cards->boards.at[i].parent >= 0;
	if (host->hami.present)
		hami_sharing(scene, diagnosis);
	else if (scene_is_vgpu_guest(scene))
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("A vGPU: the card's power, clocks and use are those of all guests; PCIe "
			   "rates are not answered. Ask the host for them."));
	else if (instances)
		diagnose(
			diagnosis, CHECK_LIMITED,
			ngettext("MIG: %zu instance. Utilisation of the card is not answered; GPM "
				 "is, per instance.",
				 "MIG: %zu instances. Utilisation of the card is not answered; GPM "
				 "is, per instance.",
				 instances),
			instances);
	else if (scene_has_mig(scene))
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("MIG is on, and no instance is visible here."));
	else if (under_mps(scene))
		diagnose(diagnosis, CHECK_LIMITED,
			 _("MPS (%s): one server owns the context, so the driver sees one process; "
			   "who did what, only the clients know."),
			 host->mps_pipe ? host->mps_pipe : "nvidia-cuda-mps-server");
	else if (host->visible_devices && strstr(host->visible_devices, "::"))
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("Time slicing: use and power are the sum of all pods on the card."));
	else if (!scene_card_count(scene))
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("No card to look at."));
	else if (host->pod || host->runtime != RUNTIME_NONE)
		diagnose(diagnosis, CHECK_OK, "%s",
			 _("No sign of it. The values of a card are the whole card's, whoever else "
			   "is on it."));
	else
		diagnose(diagnosis, CHECK_OK, "%s", _("No MIG, MPS, vGPU or HAMi."));
}

/* Without the driver the kernel tells; not the load, so the width alone. */
static void link_of_kernel(const struct scene *scene, struct diagnosis *diagnosis)
{
	bool known = false;

	for (size_t i = 0; i < scene->host->cards.count; i++) {
		const struct host_card *card = &scene->host->cards.at[i];

		if (!card->link_lanes || !card->link_max_lanes)
			continue;
		known = true;
		if (card->link_lanes < card->link_max_lanes) {
			diagnose(diagnosis, CHECK_LIMITED,
				 _("Card %s has %d of %d lanes. Seat it anew; look at riser, slot "
				   "and BIOS."),
				 card->bus, card->link_lanes, card->link_max_lanes);
			return;
		}
	}
	if (known)
		diagnose(diagnosis, CHECK_OK, "%s", _("Full width, as the kernel tells."));
	else
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("The driver does not say."));
}

/* An idle link drops its generation by design; width does not. So a narrow link
 * counts always, a slow one only under load. */
static const double LOAD_PCT = 50;

void check_pcie_link(const struct scene *scene, struct diagnosis *diagnosis)
{
	bool known = false;

	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++) {
		const struct board *board = &scene->cards->boards.at[i];
		double gen = 0, gen_max = 0, width = 0, width_max = 0, load = 0;

		if (!board_get(board, METRIC_pcie_width, &width, NULL) ||
		    !board_get(board, METRIC_pcie_width_max, &width_max, NULL) || width <= 0)
			continue;
		known = true;
		(void)board_get(board, METRIC_pcie_gen, &gen, NULL);
		(void)board_get(board, METRIC_pcie_gen_max, &gen_max, NULL);
		(void)board_get(board, METRIC_util_pct, &load, NULL);
		if (width < width_max) {
			diagnose(diagnosis, CHECK_LIMITED,
				 _("GPU %u has %.0f of %.0f lanes: copies get %.0f %% of the rate. "
				   "Seat the card anew; look at riser, slot and BIOS."),
				 board->index, width, width_max, 100 * width / width_max);
			return;
		}
		if (gen > 0 && gen < gen_max && load >= LOAD_PCT) {
			diagnose(diagnosis, CHECK_LIMITED,
				 _("GPU %u runs PCIe generation %.0f of %.0f under load: look at "
				   "riser, slot and BIOS."),
				 board->index, gen, gen_max);
			return;
		}
	}
	if (known)
		diagnose(diagnosis, CHECK_OK, "%s",
			 _("Full width. The generation is judged under load only: an idle link "
			   "slows down by design."));
	else
		link_of_kernel(scene, diagnosis);
}

static const char *recovery_text(int action)
{
	static const char *const texts[] = { NULL, N_("reset the GPU"), N_("restart the node"),
					     N_("drain peer-to-peer traffic"),
					     N_("drain the node, then reset the GPU") };

	return action > 0 && action < (int)(sizeof(texts) / sizeof(*texts)) ? texts[action] : NULL;
}

/* The worst of a card; false if nothing ails it. */
static bool ails(const struct board *board, struct diagnosis *diagnosis, enum place place)
{
	double value = 0;

	if (recovery_text(board->recovery_action)) {
		diagnose(diagnosis, CHECK_NO, _("GPU %u: the driver asks for this: %s."),
			 board->index, _(recovery_text(board->recovery_action)));
		mend(diagnosis, CURE_RESET, place);
		return true;
	}
	if (board_get(board, METRIC_remapped_failed, &value, NULL) && value > 0) {
		diagnose(diagnosis, CHECK_NO,
			 _("GPU %u: a memory row could not be remapped: have the card replaced."),
			 board->index);
		return true;
	}
	if (board_get(board, METRIC_retired_pending, &value, NULL) && value > 0) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("GPU %u: memory pages wait to be retired at the next reset."),
			 board->index);
		mend(diagnosis, CURE_RESET, place);
		return true;
	}
	if (board_get(board, METRIC_remapped_pending, &value, NULL) && value > 0) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("GPU %u: a memory row waits to be remapped at the next reset."),
			 board->index);
		mend(diagnosis, CURE_RESET, place);
		return true;
	}
	if (board_get(board, METRIC_remapped_uncorrected, &value, NULL) && value >= REMAPS_MOST) {
		diagnose(diagnosis, CHECK_NO,
			 _("GPU %u: %.0f rows remapped after uncorrectable errors: have the card "
			   "replaced."),
			 board->index, value);
		return true;
	}
	if (board_get(board, METRIC_ecc_double, &value, NULL) && value > 0) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("GPU %u: %.0f uncorrectable ECC errors since the driver started."),
			 board->index, value);
		mend(diagnosis, CURE_RESET, place);
		return true;
	}
	return false;
}

void check_memory_health(const struct scene *scene, struct diagnosis *diagnosis)
{
	bool ecc = false;

	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++) {
		if (ails(&scene->cards->boards.at[i], diagnosis, place_of(scene->host)))
			return;
		ecc = ecc || board_get(&scene->cards->boards.at[i], METRIC_ecc_double, NULL, NULL);
	}
	if (!scene_card_count(scene))
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("No card to look at."));
	else if (ecc)
		diagnose(diagnosis, CHECK_OK, "%s",
			 _("No uncorrectable ECC errors, no row waits to be remapped."));
	else
		diagnose(diagnosis, CHECK_OK, "%s", _("The card counts no ECC errors."));
}
