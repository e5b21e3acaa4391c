/*
 * What the kernel module says of a card that the library won't tell about: one
 * that sleeps, or one that was lost before anybody asked.
 */
#include "collect/card.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { BUSES_MAX = 256, BUS_BYTES = sizeof(((struct board *)0)->pci_bus) };

/* "Model: \t NVIDIA H200" and "GPU UUID: \t GPU-...". */
void card_read_proc(const struct cards *cards, struct board *board)
{
	char path[512], line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/%s/information", cards->root,
		       board->pci_bus);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		struct str rest = str_of(line);
		struct str key = str_trim(str_cut(&rest, ':'));
		struct str value = str_trim(rest);

		if (str_is(key, "Model"))
			(void)snprintf(board->name, sizeof(board->name), "%.*s", (int)value.len,
				       value.at);
		else if (str_is(key, "GPU UUID") && value.len && value.at[value.len - 1] != '?')
			(void)snprintf(board->uuid, sizeof(board->uuid), "%.*s", (int)value.len,
				       value.at);
	}
	(void)fclose(file);
}

static int compare_bus(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool is_taken(const struct cards *cards, const char *bus)
{
	for (size_t i = 0; i < cards->at.count; i++)
		if (!strcmp(cards->at.at[i].facts.pci_bus, bus))
			return true;
	return false;
}

/* Addresses below /proc/driver/nvidia/gpus that are of no card we know, in order. */
static size_t find_free(const struct cards *cards, char (*buses)[BUS_BYTES])
{
	char path[512];
	size_t count = 0;
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus", cards->root);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (count < BUSES_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= BUS_BYTES ||
		    is_taken(cards, entry->d_name))
			continue;
		memcpy(buses[count++], entry->d_name, strlen(entry->d_name) + 1);
	}
	(void)closedir(dir);
	qsort(buses, count, BUS_BYTES, compare_bus);
	return count;
}

/* NVML counts cards by bus address, and so does /proc: as long as as many lack a
 * name as addresses lack a card, there is one way to match them. */
void card_name_lost(struct cards *cards)
{
	OWN(own_freep) void *memory = NULL;
	char(*buses)[BUS_BYTES];
	size_t nameless = 0, next = 0;

	for (size_t i = 0; i < cards->at.count; i++)
		nameless += !cards->at.at[i].owner && !cards->at.at[i].facts.pci_bus[0];
	if (!nameless)
		return;
	memory = mem_alloc((size_t)BUSES_MAX * BUS_BYTES);
	buses = memory;
	if (find_free(cards, buses) != nameless)
		return;
	for (size_t i = 0; i < cards->at.count; i++) {
		struct board *facts = &cards->at.at[i].facts;

		if (cards->at.at[i].owner || facts->pci_bus[0])
			continue;
		memcpy(facts->pci_bus, buses[next++], BUS_BYTES);
		card_read_proc(cards, facts);
	}
}
