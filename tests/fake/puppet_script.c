#include "fake/puppet.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int64_t puppet_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void stop(const char *path, const char *text, const char *line)
{
	fprintf(stderr, "puppet: %s: %s: %s\n", path, text, line);
	abort();
}

static void add_line(struct puppet *puppet, const char *path, int device, const char *word,
		     const char *text)
{
	struct puppet_line *line = &puppet->lines[puppet->line_count];

	if (puppet->line_count == PUPPET_LINES)
		stop(path, "too many lines", word);
	puppet->line_count++;
	line->device = device;
	(void)snprintf(line->word, sizeof(line->word), "%s", word);
	(void)snprintf(line->text, sizeof(line->text), "%s", text);
}

static int add_device(struct puppet *puppet, const char *path, int parent, uint32_t index)
{
	struct puppet_device *device = &puppet->devices[puppet->device_count];

	if (puppet->device_count == PUPPET_DEVICES)
		stop(path, "too many devices", "");
	*device = (struct puppet_device){ true, parent, index, UINT32_MAX, UINT32_MAX };
	return puppet->device_count++;
}

/* The place of card `index`. */
static int card(const struct puppet *puppet, uint32_t index)
{
	for (int i = 0; i < puppet->device_count; i++)
		if (puppet->devices[i].parent < 0 && puppet->devices[i].index == index)
			return i;
	return -1;
}

static void read_line(struct puppet *puppet, const char *path, const char *word, char *text,
		      int *device, uint32_t *instances)
{
	if (!strcmp(word, "gpu")) {
		*device = add_device(puppet, path, -1, puppet->card_count++);
		*instances = 0;
	} else if (!strcmp(word, "like")) {
		int from = card(puppet, (uint32_t)strtoul(text, NULL, 10));
		int count = puppet->line_count;

		for (int i = 0; i < count; i++)
			if (puppet->lines[i].device == from)
				add_line(puppet, path, *device, puppet->lines[i].word,
					 puppet->lines[i].text);
	} else if (!strcmp(word, "mig")) {
		int owner = card(puppet, puppet->card_count - 1);
		unsigned gi = 0, ci = 0;

		if (sscanf(text, "%u %u", &gi, &ci) != 2)
			stop(path, "mig GI CI", text);
		*device = add_device(puppet, path, owner, (*instances)++);
		puppet->devices[*device].gpu_instance = gi;
		puppet->devices[*device].compute_instance = ci;
	} else if (!strcmp(word, "replay")) {
		const char *slash = strrchr(path, '/');
		int folder = text[0] == '/' || !slash ? 0 : (int)(slash - path) + 1;

		(void)snprintf(puppet->replay, sizeof(puppet->replay), "%.*s%s", folder, path,
			       text);
	} else {
		add_line(puppet, path, *device, word, text);
	}
}

static void read_script(struct puppet *puppet, const char *path)
{
	char line[512], word[64];
	int device = -1, at;
	uint32_t instances = 0;
	FILE *file = fopen(path, "re");

	memset(puppet, 0, sizeof(*puppet));
	puppet->since_ns = puppet_clock_ns();
	if (!file)
		stop(path, "can't be read", "");
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "#\n")] = 0;
		if (sscanf(line, " %63s %n", word, &at) != 1)
			continue;
		for (size_t end = strlen(line); end && line[end - 1] == ' '; end--)
			line[end - 1] = 0;
		read_line(puppet, path, word,
			  strlen(line) > (size_t)at ? line + at : line + strlen(line), &device,
			  &instances);
	}
	(void)fclose(file);
}

struct puppet *puppet_now(void)
{
	static struct puppet puppet;
	static struct stat seen;
	const char *path = getenv("PUPPET_NVML");
	struct stat now;

	if (!path || stat(path, &now))
		stop(path ? path : "PUPPET_NVML", "is not there", "");
	if (now.st_ino != seen.st_ino || now.st_size != seen.st_size ||
	    now.st_mtim.tv_sec != seen.st_mtim.tv_sec ||
	    now.st_mtim.tv_nsec != seen.st_mtim.tv_nsec) {
		read_script(&puppet, path);
		seen = now;
	}
	return &puppet;
}

struct puppet_line *puppet_find(struct puppet *puppet, int device, const char *word,
				const char *first)
{
	size_t len = first ? strlen(first) : 0;

	/* The last word on a thing counts, so that `like` can be put right. */
	for (int i = puppet->line_count - 1; i >= 0; i--) {
		struct puppet_line *line = &puppet->lines[i];

		if (line->device == device && !strcmp(line->word, word) &&
		    (!first || (!strncmp(line->text, first, len) &&
				(line->text[len] == ' ' || !line->text[len]))))
			return line;
	}
	return NULL;
}

/* Between -1 and 1, the same row of them in each run. */
static double unsteady(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(state >> 40) / (1 << 23) - 1;
}

bool puppet_value(struct puppet *puppet, struct puppet_line *line, int n, double *ret_value)
{
	const char *at = line->text;
	char *end;

	for (; n > 0; n--) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		at += strspn(at, " ");
	}
	if (!*at)
		return false;
	if (at[0] == '0' && at[1] == 'x') {
		*ret_value = (double)strtoull(at, &end, 16);
		return true;
	}
	*ret_value = strtod(at, &end);
	if (end == at)
		return false;
	if (end[0] == '~')
		*ret_value += strtod(end + 1, NULL) * unsteady();
	if (end[0] == '+' && end[1] == '+')
		*ret_value += strtod(end + 2, NULL) * (double)line->calls;
	else if (end[0] == '+')
		*ret_value += strtod(end + 1, NULL) *
			      (double)(puppet_clock_ns() - puppet->since_ns) / 1e9;
	return true;
}

void puppet_tally(uint32_t place)
{
	static uint32_t *tally;
	const char *path = getenv("PUPPET_TALLY");
	int fd;

	if (!path || place >= PUPPET_TALLY)
		return;
	if (!tally) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		tally = mmap(NULL, PUPPET_TALLY * sizeof(*tally), PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, 0);
		(void)close(fd);
	}
	if (tally != MAP_FAILED)
		tally[place]++;
}
