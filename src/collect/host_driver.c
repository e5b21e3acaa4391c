/*
 * The driver as files show it: module version, parameters, libraries, nodes.
 */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "collect/host_part.h"

/* Places of driver libraries: distributions, containers, WSL. */
static const char *const DRIVER_FOLDERS[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/lib/x86_64-linux-gnu/nvidia/current",
	"/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/run/opengl-driver/lib",
	"/usr/lib/aarch64-linux-gnu/nvidia",
	"/usr/lib/aarch64-linux-gnu/tegra",
};

/* The first word of `text` that looks like a driver's version: "580.159.04". */
static const char *first_version(const struct tree *tree, const char *text)
{
	struct str rest = text ? str_of(text) : (struct str){ 0 };

	while (rest.at) {
		struct str word = str_trim(str_cut(&rest, ' '));
		size_t digits = 0;

		while (digits < word.len && isdigit((unsigned char)word.at[digits]))
			digits++;
		if (digits >= 3 && digits + 1 < word.len && word.at[digits] == '.')
			return arena_text(tree->arena, word.at, word.len);
	}
	return NULL;
}

/* "libcuda.so.580.159.04" -> "580.159.04"; a soname's "libcuda.so.1" has none. */
static const char *version_of_name(const char *name)
{
	const char *at = name ? strstr(name, ".so.") : NULL;

	return at && strchr(at + 4, '.') ? at + 4 : NULL;
}

/* The soname is a link to the real name, which ends in the version. */
static struct host_library find_library(const struct tree *tree, const char *folder,
					const char *soname)
{
	const char *target;

	if (!tree_has(tree, "%s/%s", folder, soname))
		return (struct host_library){ 0 };
	target = tree_link(tree, "%s/%s", folder, soname);
	return (struct host_library){ arena_printf(tree->arena, "%s/%s", folder, soname),
				      version_of_name(target) };
}

static struct host_library find_driver_library(const struct tree *tree, const char *soname)
{
	const char *list = tree_variable(tree, "LD_LIBRARY_PATH");
	struct str rest = list ? str_of(list) : (struct str){ 0 };
	struct host_library found = { 0 };

	while (!found.path && rest.at) {
		struct str folder = str_cut(&rest, ':');

		if (folder.len && folder.len < 4096)
			found = find_library(tree, arena_text(tree->arena, folder.at, folder.len),
					     soname);
	}
	for (size_t i = 0; !found.path && i < sizeof(DRIVER_FOLDERS) / sizeof(*DRIVER_FOLDERS); i++)
		found = find_library(tree, DRIVER_FOLDERS[i], soname);
	return found;
}

static void add_device(const struct host_look *look, struct host *host, const char *name, bool open)
{
	struct host_device *device = VEC_ADD(&host->devices);

	device->name = name;
	device->present = tree_has(&look->tree, "/dev/%s", name);
	device->tried = device->present && open;
	if (device->tried)
		device->error = host_try(look, tree_path(&look->tree, "/dev/%s", name), O_RDWR);
}

/* Opening /dev/nvidiaN makes the driver start the card. nvidiactl and uvm tell
 * of the container's device rules without that. */
static void find_devices(const struct host_look *look, struct host *host)
{
	size_t count;
	const char *const *names = tree_names(&look->tree, "/dev", &count);

	add_device(look, host, "nvidiactl", true);
	add_device(look, host, "nvidia-uvm", true);
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(names[i], "nvidia", 6) && isdigit((unsigned char)names[i][6]))
			add_device(look, host, names[i], false);
	}
	if (tree_has(&look->tree, "/dev/dxg"))
		add_device(look, host, "dxg", true);
}

void host_read_driver(const struct host_look *look, struct host *host)
{
	const struct tree *tree = &look->tree;
	const char *version = tree_line(tree, "/proc/driver/nvidia/version");
	const char *params = tree_text(tree, "/proc/driver/nvidia/params");
	const char *admin = tree_value(tree, params, "RmProfilingAdminOnly");

	host->driver = first_version(tree, version);
	if (!host->driver)
		host->driver = tree_line(tree, "/sys/module/nvidia/version");
	if (version)
		host->driver_open = strstr(version, "Open Kernel Module") ? TRUTH_YES : TRUTH_NO;
	if (admin)
		host->counters_admin = !strcmp(admin, "0") ? TRUTH_NO : TRUTH_YES;
	host->libnvidia_ml = find_driver_library(tree, "libnvidia-ml.so.1");
	host->libcuda = find_driver_library(tree, "libcuda.so.1");
	find_devices(look, host);
}
