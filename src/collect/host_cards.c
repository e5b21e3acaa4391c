/*
 * Cards as the PCI bus and the driver's /proc list them, without asking the
 * driver: a card that the driver lost, or never had, shows here.
 */
#include <string.h>

#include "base/str.h"
#include "collect/host_part.h"

static struct host_card *card_at(struct host *host, const char *bus)
{
	struct host_card *card;

	for (size_t i = 0; i < host->cards.count; i++) {
		if (!strcasecmp(host->cards.at[i].bus, bus))
			return &host->cards.at[i];
	}
	card = VEC_ADD(&host->cards);
	card->bus = bus;
	card->minor = -1;
	return card;
}

static int lanes_of(const char *text)
{
	int64_t value;

	/* 63 and 255 is what the kernel writes when the link does not answer. */
	return text && str_to_i64(str_of(text), &value) && value > 0 && value <= 32 ? (int)value
										    : 0;
}

static void read_pci(const struct tree *tree, struct host *host, const char *bus)
{
	const char *vendor = tree_line(tree, "/sys/bus/pci/devices/%s/vendor", bus);
	const char *class = tree_line(tree, "/sys/bus/pci/devices/%s/class", bus);
	const char *driver;
	struct host_card *card;

	/* 0x0300 is VGA, 0x0302 a 3D controller. */
	if (!vendor || !class || strcmp(vendor, "0x10de") != 0 || strncmp(class, "0x03", 4) != 0)
		return;
	card = card_at(host, bus);
	driver = tree_link(tree, "/sys/bus/pci/devices/%s/driver", bus);
	if (driver && strrchr(driver, '/'))
		card->driver = strrchr(driver, '/') + 1;
	card->runtime_state = tree_line(tree, "/sys/bus/pci/devices/%s/power/runtime_status", bus);
	card->link_lanes =
		lanes_of(tree_line(tree, "/sys/bus/pci/devices/%s/current_link_width", bus));
	card->link_max_lanes =
		lanes_of(tree_line(tree, "/sys/bus/pci/devices/%s/max_link_width", bus));
}

static void read_proc(const struct tree *tree, struct host *host, const char *bus)
{
	const char *text = tree_text(tree, "/proc/driver/nvidia/gpus/%s/information", bus);
	const char *minor = tree_value(tree, text, "Device Minor");
	struct host_card *card = card_at(host, bus);
	int64_t number;

	card->model = tree_value(tree, text, "Model");
	card->uuid = tree_value(tree, text, "GPU UUID");
	if (minor && str_to_i64(str_of(minor), &number) && number >= 0 && number < 4096)
		card->minor = (int)number;
}

void host_read_cards(const struct host_look *look, struct host *host)
{
	size_t count;
	const char *const *names = tree_names(&look->tree, "/sys/bus/pci/devices", &count);

	for (size_t i = 0; i < count; i++)
		read_pci(&look->tree, host, names[i]);
	names = tree_names(&look->tree, "/proc/driver/nvidia/gpus", &count);
	for (size_t i = 0; i < count; i++)
		read_proc(&look->tree, host, names[i]);
}
