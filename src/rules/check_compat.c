/*
 * Do driver, CUDA, PyTorch and card go together? By the tables of know/.
 */
#include <string.h>

#include "base/str.h"
#include "know/compat.h"
#include "rules/check_part.h"

static int major_of(const char *version)
{
	struct str rest = str_of(version), first = str_cut(&rest, '.');
	int64_t major;

	return str_to_i64(first, &major) && major < 1000 ? (int)major : 0;
}

/* PyTorch brings its own CUDA; the driver and the card must do. */
static bool torch_fails(const struct scene *scene, const char *driver, struct diagnosis *diagnosis)
{
	const struct host_python *python = &scene->host->python;
	char floor[24];
	int cc = scene_lowest_cc(scene);

	if (!python->torch)
		return false;
	if (!python->torch_cuda) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("torch %s is built without CUDA: it runs on the CPU."), python->torch);
		mend_with(diagnosis, _("a build with CUDA"),
			  "pip install torch --index-url https://download.pytorch.org/whl/cu126");
		return true;
	}
	compat_floor(major_of(python->torch_cuda), floor);
	if (*floor && version_compare(driver, floor) < 0) {
		diagnose(diagnosis, CHECK_NO,
			 _("torch %s (CUDA %s) needs driver %s or later, here is %s."),
			 python->torch, python->torch_cuda, floor, driver);
		mend(diagnosis, CURE_NEW_DRIVER, place_of(scene->host));
		return true;
	}
	if (cc && compat_torch(python->torch, python->torch_cuda, cc / 10, cc % 10) == COMPAT_NO) {
		diagnose(
			diagnosis, CHECK_NO,
			_("torch %s (CUDA %s) has no code for a card of compute capability %d.%d."),
			python->torch, python->torch_cuda, cc / 10, cc % 10);
		mend_with(diagnosis,
			  cc >= 100 ? _("a build for CUDA 12.8 or later")
				    : _("a build for CUDA 12.6, the last with code for old cards"),
			  cc >= 100 ? "pip install torch --index-url "
				      "https://download.pytorch.org/whl/cu128"
				    : "pip install torch --index-url "
				      "https://download.pytorch.org/whl/cu126");
		return true;
	}
	return false;
}

/* What nvcc of this toolkit makes. */
static bool toolkit_fails(const struct scene *scene, const struct host_toolkit *toolkit,
			  const char *driver, struct diagnosis *diagnosis)
{
	struct compat_toolkit known;
	int cc = scene_lowest_cc(scene);
	char floor[24];

	compat_floor(major_of(toolkit->version), floor);
	if (*floor && version_compare(driver, floor) < 0) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("Programs of %s need driver %s or later, here is %s."), toolkit->path,
			 floor, driver);
		mend(diagnosis, CURE_NEW_DRIVER, place_of(scene->host));
		return true;
	}
	if (!compat_toolkit(toolkit->version, &known))
		return false;
	if (cc && ((known.sm_min && cc < known.sm_min) || (known.sm_max && cc > known.sm_max))) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("%s makes code for compute capability %d.%d to %d.%d, the card has "
			   "%d.%d."),
			 toolkit->path, known.sm_min / 10, known.sm_min % 10, known.sm_max / 10,
			 known.sm_max % 10, cc / 10, cc % 10);
		return true;
	}
	if (*known.driver && version_compare(driver, known.driver) < 0) {
		diagnose(diagnosis, CHECK_LIMITED,
			 _("Machine code of %s runs, its PTX does not: that needs driver %s, here "
			   "is %s."),
			 toolkit->path, known.driver, driver);
		return true;
	}
	return false;
}

void check_compatibility(const struct scene *scene, struct diagnosis *diagnosis)
{
	const struct host *host = scene->host;
	const char *driver = scene_driver(scene);
	const struct host_toolkit *newest = NULL;

	if (!driver) {
		diagnose(diagnosis, CHECK_UNKNOWN, "%s", _("No driver to compare with."));
		return;
	}
	if (torch_fails(scene, driver, diagnosis))
		return;
	for (size_t i = 0; i < host->toolkits.count; i++) {
		const struct host_toolkit *toolkit = &host->toolkits.at[i];

		if (!newest || version_compare(toolkit->version, newest->version) > 0)
			newest = toolkit;
	}
	if (newest && newest->nvcc && toolkit_fails(scene, newest, driver, diagnosis))
		return;
	diagnose(diagnosis, CHECK_OK, _("Driver %s (CUDA %s), toolkit %s, torch %s."), driver,
		 scene->cards && *scene->cards->cuda ? scene->cards->cuda : "?",
		 newest ? newest->version : _("none"),
		 host->python.torch ? host->python.torch : _("none"));
}
