/*
 * Which cards and MIG instances there are, and what does not change by itself.
 *
 * Asking the library for a card's handle wakes a card that sleeps and keeps it
 * awake. So the kernel is asked first: if one sleeps, the awake ones are asked
 * for by bus address, and of those asleep only what /proc says is told.
 */
#include "collect/card.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "collect/collector.h"

enum { CARDS_MAX = 256, INSTANCES_MAX = 64 };
static const int64_t RARE_EVERY_NS = INT64_C(600) * 1000000000;

static bool read_line(const char *path, char *at, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(at, (int)size, file);

	if (file)
		(void)fclose(file);
	if (ok)
		at[strcspn(at, "\n")] = 0;
	return ok;
}

static bool pci_line(const struct cards *cards, const char *bus, const char *name, char *at,
		     size_t size)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/%s", cards->root, bus, name);
	return read_line(path, at, size);
}

/* NVIDIA's (vendor 10de) display controllers (class 03). */
static bool is_gpu(const struct cards *cards, const char *bus)
{
	char vendor[32], class[32];

	return pci_line(cards, bus, "vendor", vendor, sizeof(vendor)) &&
	       pci_line(cards, bus, "class", class, sizeof(class)) &&
	       !strncmp(vendor, "0x10de", 6) && !strncmp(class, "0x03", 4);
}

static bool is_asleep(const struct cards *cards, const char *bus)
{
	char status[32];

	return pci_line(cards, bus, "power/runtime_status", status, sizeof(status)) &&
	       !strcmp(status, "suspended");
}

struct buses {
	char at[CARDS_MAX][20];
	uint32_t count;
	bool some_sleep;
};

static int compare_bus(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Bus addresses of the cards, in order; the order that NVML counts in. */
static void find_buses(const struct cards *cards, struct buses *buses)
{
	char path[512];
	DIR *dir;
	struct dirent *entry;

	buses->count = 0;
	buses->some_sleep = false;
	(void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", cards->root);
	dir = opendir(path);
	if (!dir)
		return;
	while (buses->count < CARDS_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(buses->at[0]) ||
		    !is_gpu(cards, entry->d_name))
			continue;
		memcpy(buses->at[buses->count++], entry->d_name, strlen(entry->d_name) + 1);
		buses->some_sleep |= is_asleep(cards, entry->d_name);
	}
	(void)closedir(dir);
	qsort(buses->at, buses->count, sizeof(buses->at[0]), compare_bus);
}

static void clear_facts(struct board *board)
{
	*board = (struct board){ 0 };
	board->parent = board->gpu_instance = board->compute_instance = -1;
	board->mig_mode = board->persistence = board->compute_mode = -1;
	board->virtualization = board->ecc_mode = board->recovery_action = -1;
}

static void text(char *at, size_t size)
{
	at[size - 1] = 0;
	for (; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = '?';
}

/* Names and address. A card that fails here is lost; its status. */
static int read_identity(struct cards *cards, struct card *card)
{
	struct nvml *nvml = &cards->nvml;
	struct board *board = &card->facts;
	struct nvml_pci pci = { 0 };
	int major = 0, minor = 0;
	int status = NVML(nvml, nvmlDeviceGetUUID, card->device, board->uuid, sizeof(board->uuid));

	text(board->uuid, sizeof(board->uuid));
	if (NVML(nvml, nvmlDeviceGetName, card->device, board->name, sizeof(board->name)))
		board->name[0] = 0;
	text(board->name, sizeof(board->name));
	if (!NVML(nvml, nvmlDeviceGetCudaComputeCapability, card->device, &major, &minor)) {
		board->cc_major = major;
		board->cc_minor = minor;
	}
	if (!NVML(nvml, nvmlDeviceGetPciInfo_v3, card->device, &pci))
		(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "%04x:%02x:%02x.0",
			       pci.domain & 0xffffff, pci.bus & 0xff, pci.device & 0xff);
	return status;
}

static void mode(struct cards *cards, struct card *card, enum nvml_call call, enum nvml_shape shape,
		 int32_t *ret_mode)
{
	struct nvml_u32 what = { call, shape, 0 };
	uint32_t value = 0;

	*ret_mode = nvml_u32(&cards->nvml, &what, card->device, &value) || value > INT32_MAX
			    ? -1
			    : (int32_t)value;
}

/* Highest clocks, thresholds and the like: milliseconds to ask. */
static void read_rare(struct cards *cards, struct card *card)
{
	struct nvml_gpm_support gpm = { .version = 1 };
	struct board *board = &card->facts;

	if (!cards->all && card->rare_ns && cards->now_ns - card->rare_ns < RARE_EVERY_NS)
		return;
	card->rare_ns = cards->now_ns;
	memset(card->unanswered, 0, sizeof(card->unanswered));
	mode(cards, card, NVML_CALL_nvmlDeviceGetVirtualizationMode, NVML_PLAIN,
	     &board->virtualization);
	mode(cards, card, NVML_CALL_nvmlDeviceGetEccMode, NVML_WITH_SECOND, &board->ecc_mode);
	board->gpm =
		!NVML(&cards->nvml, nvmlGpmQueryDeviceSupport, card->device, &gpm) && gpm.supported;
	card->board = card->facts;
	card_ask_values(cards, card, CARD_RARE);
	card->facts = card->board;
}

/* Modes and limits, which somebody may change from outside. */
static void read_facts(struct cards *cards, struct card *card)
{
	struct board *board = &card->facts;
	int32_t mig = board->mig_mode;

	card->health_ns = 0;
	if (card->owner) {
		board->gpm = board->compute_instance <= 0;
		return;
	}
	mode(cards, card, NVML_CALL_nvmlDeviceGetMigMode, NVML_WITH_SECOND, &board->mig_mode);
	mode(cards, card, NVML_CALL_nvmlDeviceGetPersistenceMode, NVML_PLAIN, &board->persistence);
	mode(cards, card, NVML_CALL_nvmlDeviceGetComputeMode, NVML_PLAIN, &board->compute_mode);
	if (mig != board->mig_mode)
		card->rare_ns = 0; /* MIG changes what is answered */
	read_rare(cards, card);
	if (card->facts.state != BOARD_OK)
		return;
	card->board = card->facts;
	card_ask_values(cards, card, COLLECT_FRESH);
	card->facts = card->board;
}

/* The card of the last look with this handle, or a new one. */
static struct card *keep(struct cards *cards, struct card *old, size_t old_count,
			 struct nvml_device *device, struct nvml_device *owner)
{
	struct card *card = VEC_ADD(&cards->at);

	for (size_t i = 0; device && i < old_count; i++) {
		if (old[i].device != device || old[i].owner != owner)
			continue;
		*card = old[i];
		old[i] = (struct card){ 0 }; /* its GPM samples have moved */
		card->facts.state = BOARD_OK;
		card->facts.status = 0;
		return card;
	}
	clear_facts(&card->facts);
	card->device = device;
	card->owner = owner;
	return card;
}

static void find_instances(struct cards *cards, uint32_t place, struct card *old, size_t old_count)
{
	struct nvml *nvml = &cards->nvml;
	struct nvml_device *owner = cards->at.at[place].device, *device;
	uint32_t most = 0, gi, ci;

	if (NVML(nvml, nvmlDeviceGetMaxMigDeviceCount, owner, &most))
		return;
	for (uint32_t i = 0; i < most && i < INSTANCES_MAX; i++) {
		struct card *card;
		const char *profile;

		device = NULL;
		if (NVML(nvml, nvmlDeviceGetMigDeviceHandleByIndex, owner, i, &device) || !device)
			continue;
		card = keep(cards, old, old_count, device, owner);
		(void)read_identity(cards, card);
		card->facts.index = i;
		card->facts.parent = (int32_t)place;
		gi = ci = UINT32_MAX;
		(void)NVML(nvml, nvmlDeviceGetGpuInstanceId, device, &gi);
		(void)NVML(nvml, nvmlDeviceGetComputeInstanceId, device, &ci);
		card->facts.gpu_instance = (int32_t)gi;
		card->facts.compute_instance = (int32_t)ci;
		memcpy(card->facts.pci_bus, cards->at.at[place].facts.pci_bus,
		       sizeof(card->facts.pci_bus));
		profile = strstr(card->facts.name, "MIG ");
		if (profile)
			(void)snprintf(card->facts.mig_profile, sizeof(card->facts.mig_profile),
				       "%.31s", profile + 4);
		read_facts(cards, card);
	}
}

/* `bus` NULL: by index alone. */
static void add_card(struct cards *cards, uint32_t index, const char *bus, struct card *old,
		     size_t old_count)
{
	struct nvml_device *device = NULL;
	bool asleep = bus && !cards->wake && is_asleep(cards, bus);
	int status = NVML_OK;
	uint32_t place = (uint32_t)cards->at.count;
	struct card *card;

	if (!asleep && bus)
		status = NVML(&cards->nvml, nvmlDeviceGetHandleByPciBusId_v2, bus, &device);
	else if (!asleep)
		status = NVML(&cards->nvml, nvmlDeviceGetHandleByIndex_v2, index, &device);
	if (bus && status == NVML_NOT_FOUND)
		return; /* another driver has it */
	card = keep(cards, old, old_count, status ? NULL : device, NULL);
	card->facts.index = index;
	if (bus)
		memcpy(card->facts.pci_bus, bus, strlen(bus) + 1);
	if (asleep) {
		card->facts.state = BOARD_ASLEEP;
		card_read_proc(cards, &card->facts);
		return;
	}
	if (!status && !card->facts.uuid[0])
		status = read_identity(cards, card);
	if (status == NVML_NOT_SUPPORTED)
		status = NVML_OK;
	if (status) {
		card->facts.state = BOARD_LOST;
		card->facts.status = status;
		card->device = NULL;
		return;
	}
	read_facts(cards, card);
	if (card->facts.mig_mode > 0)
		find_instances(cards, place, old, old_count);
}

static void free_samples(struct cards *cards, struct card *card)
{
	for (int i = 0; i < 2; i++)
		if (card->gpm[i])
			(void)NVML(&cards->nvml, nvmlGpmSampleFree, card->gpm[i]);
}

int card_find(struct cards *cards, bool all)
{
	OWN(own_freep) struct buses *buses = mem_alloc(sizeof(*buses));
	struct card *old = cards->at.at;
	size_t old_count = cards->at.count;
	uint32_t count = 0;
	int status = NVML(&cards->nvml, nvmlDeviceGetCount_v2, &count);

	cards->all = all;

	if (status)
		return status;
	memset(&cards->at, 0, sizeof(cards->at));
	find_buses(cards, buses);
	if (buses->some_sleep && !cards->wake && cards->nvml.nvmlDeviceGetHandleByPciBusId_v2)
		for (uint32_t i = 0; i < buses->count; i++)
			add_card(cards, i, buses->at[i], old, old_count);
	else
		for (uint32_t i = 0; i < count && i < CARDS_MAX; i++)
			add_card(cards, i, NULL, old, old_count);
	for (size_t i = 0; i < old_count; i++)
		free_samples(cards, &old[i]);
	free(old);
	card_name_lost(cards);
	cards->found_ns = cards->now_ns;
	return 0;
}

void cards_done(struct cards *cards)
{
	for (size_t i = 0; i < cards->at.count; i++)
		free_samples(cards, &cards->at.at[i]);
	VEC_DONE(&cards->at);
	free(cards->gpm);
	free(cards->list);
	if (cards->events)
		(void)NVML(&cards->nvml, nvmlEventSetFree, cards->events);
	nvml_close(&cards->nvml);
	*cards = (struct cards){ 0 };
}

void card_begin(struct card *card)
{
	card->board = card->facts;
	card->pcie_joined.have = false;
	card->pcie_again = false;
	card->thermal_grew = false;
	card->struck = false;
}
