/*
 * Does the driver answer, and are its parts of one version and within reach?
 */
#include <errno.h>
#include <string.h>

#include "rules/check_part.h"

/* NVML's numbers, nvml.h nvmlReturn_t. */
enum {
	NVML_NO_PERMISSION = 4,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_GPU_LOST = 15,
	NVML_OPERATING_SYSTEM = 17,
	NVML_VERSION_MISMATCH = 18,
	NVML_NO_GPU = 28,
};

static bool in_container(enum place place)
{
	return place & (PLACE_DOCKER | PLACE_PODMAN | PLACE_POD | PLACE_CONTAINER);
}

/* A card is on the bus but another driver has it, or none. */
static void no_driver(const struct scene *scene, struct diagnosis *diagnosis, enum place place)
{
	const struct host *host = scene->host;

	if (in_container(place)) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("No card and no driver was given to this container."));
		mend(diagnosis, CURE_GIVE_GPU, place);
	} else if (place == PLACE_WSL) {
		diagnose(diagnosis, CHECK_NO, "%s", _("Windows gives this WSL no NVIDIA driver."));
		mend(diagnosis, CURE_GIVE_GPU, place);
	} else if (!host->cards.count) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("No NVIDIA driver is loaded, and no NVIDIA card is on the PCI bus."));
		if (place == PLACE_SLURM)
			mend(diagnosis, CURE_GIVE_GPU, place);
	} else {
		const char *driver = host->cards.at[0].driver;

		diagnose(diagnosis, CHECK_NO,
			 _("NVIDIA's driver is not loaded; the card %s belongs to %s."),
			 host->cards.at[0].bus, driver ? driver : _("no driver"));
		mend(diagnosis, CURE_LOAD, place);
	}
}

static void no_library(const struct scene *scene, struct diagnosis *diagnosis, enum place place)
{
	if (!scene->host->driver) {
		no_driver(scene, diagnosis, place);
		return;
	}
	diagnose(diagnosis, CHECK_NO, "%s",
		 _("The driver is loaded but its library libnvidia-ml.so.1 is not here."));
	mend(diagnosis, CURE_UTILITY, place);
}

static void by_status(const struct scene *scene, struct diagnosis *diagnosis, enum place place)
{
	const struct host_device *control = host_device_find(scene->host, "nvidiactl");

	switch (scene->nvml_status) {
	case NVML_DRIVER_NOT_LOADED:
		no_driver(scene, diagnosis, place);
		return;
	case NVML_LIBRARY_NOT_FOUND:
		no_library(scene, diagnosis, place);
		return;
	case NVML_VERSION_MISMATCH:
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("The driver's library is of another version than the loaded kernel "
			   "module: it was updated and not reloaded."));
		mend(diagnosis, CURE_RELOAD, place);
		return;
	case NVML_GPU_LOST:
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("A card fell off the bus; the kernel's log has an Xid."));
		return;
	case NVML_NO_GPU:
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("The driver is loaded but shows this process no card."));
		mend(diagnosis, CURE_GIVE_GPU, place);
		return;
	default:
		break;
	}
	if (scene->nvml_status == NVML_OPERATING_SYSTEM ||
	    (control && control->tried && control->error == EPERM)) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("The container's device rule for the card is gone, most often since a "
			   "systemctl daemon-reload on the host."));
		mend(diagnosis, CURE_DEVICE_RULE, place);
	} else if (scene->nvml_status == NVML_NO_PERMISSION ||
		   (control && control->tried && control->error == EACCES)) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("This user may not open the card's device nodes."));
		mend(diagnosis, CURE_DEVICE_RIGHT, place);
	} else if (!scene->host->driver && !scene->nvml_status) {
		no_driver(scene, diagnosis, place);
	} else {
		diagnose(diagnosis, CHECK_NO, _("The driver's library failed: %s."),
			 scene->nvml_error ? scene->nvml_error : _("no reason given"));
	}
}

static const struct board *lost_board(const struct scene *scene)
{
	for (size_t i = 0; i < scene->cards->boards.count; i++) {
		if (scene->cards->boards.at[i].state == BOARD_LOST)
			return &scene->cards->boards.at[i];
	}
	return NULL;
}

void check_nvml(const struct scene *scene, struct diagnosis *diagnosis)
{
	enum place place = place_of(scene->host);
	size_t count = scene_card_count(scene);
	const struct board *lost;

	diagnosis->costs = _("power, clocks, why they are low, temperature, memory, who uses what");
	if (scene->nvml_hung) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("The driver does not answer in time; a call hangs in the kernel. Look "
			   "for Xid 119 or 120 in the kernel's log."));
		return;
	}
	if (!scene->cards) {
		by_status(scene, diagnosis, place);
		return;
	}
	if (!count) {
		diagnose(diagnosis, CHECK_NO, "%s", _("The driver runs but has no card."));
		mend(diagnosis, CURE_GIVE_GPU, place);
		return;
	}
	lost = lost_board(scene);
	if (lost)
		diagnose(diagnosis, CHECK_LIMITED, _("GPU %u is lost (NVML %d)."), lost->index,
			 lost->status);
	else if (*scene->cards->wrapper)
		diagnose(diagnosis, CHECK_LIMITED,
			 _("%s answers in the driver's place: memory is the share's, the rest "
			   "passes through."),
			 scene->cards->wrapper);
	else if (scene->host->jetson)
		diagnose(diagnosis, CHECK_LIMITED,
			 _("%s: the library answers little on Jetson; tegrastats has the rest."),
			 scene->host->jetson);
	else if (scene->host->wsl)
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("WSL: memory of a process and some counters are not answered."));
	else
		diagnose(diagnosis, CHECK_OK,
			 ngettext("%zu card, driver %s.", "%zu cards, driver %s.", count), count,
			 scene->cards->driver);
}

/* NVML puts CUDA's major version in front of the driver's: "13.580.159.04". */
static const char *without_cuda(const char *version)
{
	size_t digits = strspn(version, "0123456789");

	return digits && digits < 3 && version[digits] == '.' ? version + digits + 1 : version;
}

/* Kernel module, library file and the library's own word. */
void check_driver(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;
	const char *library = host->libnvidia_ml.version;
	const char *module = host->driver;
	enum place place = place_of(host);

	if (scene->cards && *scene->cards->nvml)
		library = without_cuda(scene->cards->nvml);
	if (!module && scene->cards && *scene->cards->driver)
		module = scene->cards->driver;
	if (!module) {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("No driver is loaded."));
		return;
	}
	if (scene->nvml_status == NVML_VERSION_MISMATCH ||
	    (library && version_compare(module, library) != 0)) {
		diagnose(diagnosis, CHECK_NO,
			 _("Kernel module %s, library %s: NVML does not start like that."), module,
			 library ? library : _("of another version"));
		mend(diagnosis, CURE_RELOAD, place);
		return;
	}
	if (host->libcuda.version && version_compare(module, host->libcuda.version) != 0) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("Kernel module %s, libcuda %s (%s): that works only as a compat package "
			   "on a data-centre card."),
			 module, host->libcuda.version, host->libcuda.path);
		return;
	}
	if (!library) {
		diagnose(diagnosis, CHECK_UNKNOWN,
			 _("Kernel module %s; no library to compare it with."), module);
		return;
	}
	diagnose(diagnosis, CHECK_OK, _("Kernel module and library are both %s%s."), module,
		 host->driver_open == TRUTH_YES ? _(" (open kernel module)") : "");
}

static bool wants_nothing(const char *visible)
{
	return visible && (!*visible || !strcmp(visible, "void") || !strcmp(visible, "none"));
}

/* An empty list, or one that begins with a card that can't be: "-1". */
static bool hides_all(const char *visible)
{
	return !*visible || !strncmp(visible, "-1", 2) || !strcmp(visible, "NoDevFiles");
}

/* "nvidia0", not "nvidiactl" */
static bool is_card(const char *name)
{
	return !strncmp(name, "nvidia", 6) && name[6] >= '0' && name[6] <= '9';
}

void check_devices(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;
	const struct host_device *control = host_device_find(host, "nvidiactl");
	const struct host_device *uvm = host_device_find(host, "nvidia-uvm");
	enum place place = place_of(host);
	size_t cards = 0;

	for (size_t i = 0; i < host->devices.count; i++)
		cards += host->devices.at[i].present && is_card(host->devices.at[i].name);
	if (host->wsl || host->jetson) {
		diagnose(diagnosis, CHECK_OK, "%s",
			 host->wsl ? "/dev/dxg" : _("a Jetson has nodes of its own"));
		return;
	}
	if (!control || !control->present) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 wants_nothing(host->visible_devices)
				 ? _("NVIDIA_VISIBLE_DEVICES asks for no card, so none was given.")
				 : _("/dev/nvidiactl is not here."));
		if (in_container(place))
			mend(diagnosis, CURE_GIVE_GPU, place);
		else if (host->cards.count)
			mend(diagnosis, CURE_LOAD, place);
	} else if (control->error == EPERM) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("/dev/nvidiactl: not permitted: the container's device rule is gone."));
		mend(diagnosis, CURE_DEVICE_RULE, place);
	} else if (control->error) {
		diagnose(diagnosis, CHECK_NO, _("/dev/nvidiactl: %s."), strerror(control->error));
		mend(diagnosis, CURE_DEVICE_RIGHT, place);
	} else if (!cards) {
		diagnose(diagnosis, CHECK_NO, "%s",
			 _("There is no /dev/nvidiaN: no card is given."));
		mend(diagnosis, CURE_GIVE_GPU, place);
	} else if (!uvm || !uvm->present || uvm->error) {
		diagnose(diagnosis, CHECK_LIMITED, _("/dev/nvidia-uvm: %s: CUDA does not start."),
			 uvm && uvm->present ? strerror(uvm->error) : _("not here"));
		mend(diagnosis, in_container(place) ? CURE_GIVE_GPU : CURE_LOAD, place);
	} else if (host->cuda_visible_devices && hides_all(host->cuda_visible_devices)) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("CUDA_VISIBLE_DEVICES is '%s': CUDA programs see no card."),
			 host->cuda_visible_devices);
		mend_with(diagnosis, _("show the cards again"), "unset CUDA_VISIBLE_DEVICES");
	} else if (scene->cards && host->cards.count > scene_card_count(scene) &&
		   !in_container(place) && !host->slurm) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("%zu NVIDIA cards on the PCI bus, %zu with the driver: one fell off, or "
			   "belongs to another driver."),
			 host->cards.count, scene_card_count(scene));
	} else {
		diagnose(diagnosis, CHECK_OK,
			 ngettext("%zu card can be opened.", "%zu cards can be opened.", cards),
			 cards);
	}
}

void check_persistence(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host_process *daemon = host_process_find(scene->host, ROLE_PERSISTENCED);
	bool off = false, known = false;

	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++) {
		known = known || scene->cards->boards.at[i].persistence >= 0;
		off = off || scene->cards->boards.at[i].persistence == 0;
	}
	if (daemon || (known && !off)) {
		diagnose(diagnosis, CHECK_OK, "%s",
			 daemon ? _("nvidia-persistenced runs.") : _("Persistence mode is on."));
	} else if (known) {
		diagnose(diagnosis, CHECK_LIMITED, "%s",
			 _("Off: the driver lets go of an unused card, so the first call takes "
			   "seconds and counters start again."));
		mend(diagnosis, CURE_PERSISTENCE, place_of(scene->host));
	} else {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("The driver does not say."));
	}
}
