/*
 * Answers from a log that record_nvml.c wrote. The answers to one question
 * (function, device, numbers) come in the order of the log, and the last again
 * and again; each field of a batch counts as a question of its own.
 */
#include "fake/puppet.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWERS = 65536, FIELDS = 512, FIRST_DEVICE = 0x1000, FIELD_BYTES = 40 };

struct answer {
	char *key;  /* "nvmlDeviceGetClockInfo d0 u1" */
	char *rest; /* "STATUS NS OUT..." */
	bool used;
};

static struct answer answers[ANSWERS];
static int answer_count;
static char loaded[512];

/* Numbers that say how far a program is are no part of the question. */
static bool in_key(char kind)
{
	return kind == 'd' || kind == 'u' || kind == 't';
}

static void load(const char *path)
{
	static char line[1 << 17];
	FILE *file = fopen(path, "re");

	if (!file) {
		fprintf(stderr, "puppet: no log %s\n", path);
		abort();
	}
	answer_count = 0;
	(void)snprintf(loaded, sizeof(loaded), "%s", path);
	while (fgets(line, sizeof(line), file) && answer_count < ANSWERS) {
		struct answer *answer = &answers[answer_count];
		char *equals = strstr(line, " = "), *word, *save = NULL;
		char key[512];
		size_t used = 0;

		if (*line == '#' || !equals)
			continue;
		*equals = 0;
		line[strlen(line)] = 0;
		answer->rest = strdup(equals + 3);
		answer->rest[strcspn(answer->rest, "\n")] = 0;
		for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
			if (!used || (in_key(*word) &&
				      !(*word == 'u' && !strncmp(line, "nvmlDeviceGetFieldV", 19))))
				used += (size_t)snprintf(key + used, sizeof(key) - used, "%s%s",
							 used ? " " : "", word);
		answer->key = strdup(key);
		answer->used = false;
		answer_count++;
	}
	(void)fclose(file);
}

static void make_key(enum spec_call call, const char *spec, const uintptr_t *args, char *key,
		     size_t size)
{
	size_t used = (size_t)snprintf(key, size, "%s", puppet_names[call]);
	int arg = 0;

	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++) {
		if (*at == 'd')
			used += (size_t)snprintf(key + used, size - used, " d%d",
						 (int)(args[arg] - FIRST_DEVICE));
		else if (*at == 'u' && call != SPEC_nvmlDeviceGetFieldValues)
			used += (size_t)snprintf(key + used, size - used, " u%x",
						 (unsigned)args[arg]);
		else if (*at == 't')
			used += (size_t)snprintf(key + used, size - used, " t\"%s\"",
						 (const char *)args[arg]);
		else if (*at == 's')
			arg++;
	}
}

static struct answer *next(const char *key)
{
	struct answer *last = NULL;

	for (int i = 0; i < answer_count; i++) {
		if (strcmp(answers[i].key, key))
			continue;
		last = &answers[i];
		if (!last->used)
			break;
	}
	if (last)
		last->used = true;
	return last;
}

/* Hex digits up to a blank, at most `most` bytes; how many. */
static size_t from_hex(const char *hex, void *at, size_t most)
{
	size_t n = 0;
	unsigned byte;

	for (; n < most && sscanf(hex, "%2x", &byte) == 1; n++, hex += 2)
		((unsigned char *)at)[n] = (unsigned char)byte;
	return n;
}

static void from_text(const char *quoted, char *at, size_t size)
{
	size_t n = 0;
	unsigned byte;

	for (quoted++; *quoted && *quoted != '"' && n + 1 < size; quoted++) {
		if (*quoted == '%' && sscanf(quoted + 1, "%2x", &byte) == 1) {
			at[n++] = (char)byte;
			quoted += 2;
		} else {
			at[n++] = *quoted;
		}
	}
	at[n] = 0;
}

/* Cursors of fields: (device, number, scope) to the answer it was last found in. */
static int *field_cursor(int device, uint32_t id, uint32_t scope)
{
	static struct {
		int device;
		uint32_t id, scope;
		int at;
	} cursors[FIELDS];
	static int count;

	for (int i = 0; i < count; i++)
		if (cursors[i].device == device && cursors[i].id == id && cursors[i].scope == scope)
			return &cursors[i].at;
	if (count == FIELDS)
		abort();
	cursors[count].device = device;
	cursors[count].id = id;
	cursors[count].scope = scope;
	cursors[count].at = -1;
	return &cursors[count++].at;
}

static bool field_in(const struct answer *answer, uint32_t id, uint32_t scope, unsigned char *field)
{
	const char *hex = strstr(answer->rest, " F");
	uint32_t found[2];

	for (hex = hex ? hex + 2 : NULL; hex && from_hex(hex, field, FIELD_BYTES) == FIELD_BYTES;
	     hex += 2 * FIELD_BYTES) {
		memcpy(found, field, sizeof(found));
		if (found[0] == id && found[1] == scope)
			return true;
	}
	return false;
}

static int play_fields(const char *key, int device, uint32_t count, char *fields)
{
	for (uint32_t i = 0; i < count; i++) {
		unsigned char field[FIELD_BYTES];
		uint32_t id[2];
		int32_t status = 3;
		int *cursor, found = -1;

		memcpy(id, fields + (size_t)i * FIELD_BYTES, sizeof(id));
		cursor = field_cursor(device, id[0], id[1]);
		for (int k = 0; k < answer_count; k++) {
			if (strcmp(answers[k].key, key) ||
			    !field_in(&answers[k], id[0], id[1], field))
				continue;
			found = k;
			if (k > *cursor)
				break;
		}
		if (found < 0) {
			memcpy(fields + (size_t)i * FIELD_BYTES + 28, &status, sizeof(status));
			continue;
		}
		*cursor = found;
		(void)field_in(&answers[found], id[0], id[1], field);
		memcpy(fields + (size_t)i * FIELD_BYTES, field, FIELD_BYTES);
	}
	return 0;
}

static void play_gpm(const char *values, char *request)
{
	uint32_t count;

	memcpy(&count, request + 4, 4);
	for (uint32_t i = 0; i < count; i++) {
		char *at = request + 24 + (size_t)i * 40;
		uint32_t id, found;
		int32_t status = 3;
		double value = 0;

		memcpy(&id, at, 4);
		for (const char *v = values; v; v = strchr(v, ',') ? strchr(v, ',') + 1 : NULL)
			if (sscanf(v, "%u:", &found) == 1 && found == id &&
			    sscanf(v, "%u:%d:%lf", &found, &status, &value) == 3)
				break;
		memcpy(at + 4, &status, 4);
		memcpy(at + 8, &value, 8);
	}
}

static int play_uses(const char *text, char *request)
{
	uint32_t count = (uint32_t)strtoul(text, NULL, 10), room;
	const char *hex = strchr(text, ':');
	char *rows;

	memcpy(&room, request + 4, 4);
	memcpy(&rows, request + 16, sizeof(rows));
	memcpy(request + 4, &count, 4);
	if (count > room)
		return 7;
	if (hex)
		(void)from_hex(hex + 1, rows, (size_t)count * 40);
	return 0;
}

/* The words of an answer into the arguments that they are for. */
static int play_out(const char *spec, char *words, uintptr_t *args)
{
	char *word = words;
	uint32_t room = 0, count = 0;
	int arg = 0;

	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++)
		if (*at == 'c') {
			const char *counted = strstr(words, " c");

			room = *(uint32_t *)args[arg];
			count = counted ? (uint32_t)strtoul(counted + 2, NULL, 10) : 0;
			*(uint32_t *)args[arg] = count;
		}
	if (count > room)
		return 7;
	arg = 0;
	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++) {
		void *out = (void *)args[arg];

		if (!strchr(">=sDcAIPM", *at)) {
			if (*at == 'G')
				*(void **)out = malloc(1);
			continue;
		}
		word = strchr(word, ' ');
		if (!word)
			return 999;
		word++;
		if (*at == 'A')
			(void)from_hex(word + 1, out, strtoul(at + 1, NULL, 10) * count);
		else if (*at == '>' || *at == '=')
			(void)from_hex(word + 1, out, spec_bytes(at));
		else if (*at == 'I')
			(void)from_hex(word + 1, out, 68);
		else if (*at == 'D')
			*(uintptr_t *)out = FIRST_DEVICE + strtoul(word + 1, NULL, 10);
		else if (*at == 'M')
			play_gpm(word + 1, out);
		else if (*at == 'P' && play_uses(word + 1, out))
			return 7;
		else if (*at == 's')
			from_text(word, out, args[++arg]);
	}
	return 0;
}

int puppet_replay(const char *path, enum spec_call call, const char *spec, uintptr_t *args)
{
	char key[512];
	struct answer *answer;
	int status;
	char *rest;

	if (strcmp(loaded, path))
		load(path);
	make_key(call, spec, args, key, sizeof(key));
	if (call == SPEC_nvmlDeviceGetFieldValues)
		return play_fields(key, (int)(args[0] - FIRST_DEVICE), (uint32_t)args[1],
				   (char *)args[2]);
	answer = next(key);
	if (!answer)
		return call == SPEC_nvmlShutdown || call == SPEC_nvmlGpmSampleFree ? 0 : 13;
	status = (int)strtol(answer->rest, &rest, 10);
	if (status)
		return status;
	rest += strspn(rest, " ");
	return play_out(spec, rest, args);
}
