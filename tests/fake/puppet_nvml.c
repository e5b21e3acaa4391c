/*
 * A puppet of NVIDIA's management library: says what a script tells it
 * (puppet.h). Devices are small numbers in disguise: 0x1000 + place.
 */
#include "fake/puppet.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	OK = 0,
	INVALID = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	TOO_SMALL = 7,
	LOST = 15,
	TIMED_OUT = 10,
	FIRST_DEVICE = 0x1000
};

const char *const puppet_names[SPEC_COUNT] = {
#define X(name, spec) #name,
	NVML_SPECS(X)
#undef X
};

const char *const puppet_specs[SPEC_COUNT] = {
#define X(name, spec) spec,
	NVML_SPECS(X)
#undef X
};

static uint64_t utc_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Device of a call's first argument; -1 the library; -2 no such device. */
static int device_of(struct puppet *puppet, const char *spec, const uintptr_t *args)
{
	uintptr_t place = args[0] - FIRST_DEVICE;

	if (spec[0] != 'd')
		return -1;
	return place < (uintptr_t)puppet->device_count ? (int)place : -2;
}

/* Does the script let this call fail, hang, wait? Status, or -1: it goes on. */
static int trouble(struct puppet *puppet, int device, enum spec_call call)
{
	const char *name = puppet_names[call];
	struct puppet_line *lost = device >= 0 ? puppet_find(puppet, device, "lost", NULL) : NULL;
	struct puppet_line *line;
	double value;

	for (int of = device; of >= -1; of = of == -1 ? -2 : -1) {
		if (puppet_find(puppet, of, "hang", name))
			for (;;)
				(void)pause();
		if (puppet_find(puppet, of, "crash", name))
			abort();
		line = puppet_find(puppet, of, "slow", name);
		if (line && puppet_value(puppet, line, 1, &value))
			(void)usleep((useconds_t)(value * 1000));
		line = puppet_find(puppet, of, name, NULL);
		if (line && line->text[0] == '!')
			return (int)strtol(line->text + 1, NULL, 10);
	}
	if (lost)
		return puppet_value(puppet, lost, 0, &value) ? (int)value : LOST;
	return -1;
}

static int put_text(struct puppet *puppet, int device, const char *word, char *at, size_t size)
{
	struct puppet_line *line = puppet_find(puppet, device, word, NULL);

	if (!line)
		return NOT_SUPPORTED;
	if (strlen(line->text) >= size)
		return TOO_SMALL;
	memcpy(at, line->text, strlen(line->text) + 1);
	return OK;
}

/* Plain functions: values of the line in order into what comes out. */
static int put_values(struct puppet *puppet, int device, enum spec_call call, uintptr_t *args)
{
	char word[96];
	struct puppet_line *line;
	const char *spec = puppet_specs[call];
	size_t used = 0;
	int arg = 0, n = 0;

	used = (size_t)snprintf(word, sizeof(word), "%s", puppet_names[call]);
	for (const char *at = *spec ? spec : NULL; at; at = spec_next(at), arg++)
		if (*at == 'u')
			used += (size_t)snprintf(word + used, sizeof(word) - used, ".%u",
						 (unsigned)args[arg]);
	line = puppet_find(puppet, device, word, NULL);
	if (!line)
		return NOT_SUPPORTED;
	if (line->text[0] == '!')
		return (int)strtol(line->text + 1, NULL, 10);
	arg = 0;
	for (const char *at = spec; at; at = spec_next(at), arg++) {
		char *out = (char *)args[arg];

		if (*at != '>' && *at != '=')
			continue;
		for (const char *field = at + 1; *field && *field != ' '; field++) {
			double value = 0;
			uint64_t wide;
			uint32_t narrow;
			bool skip = *field == 'v' || *field == '_';

			/* A sensor number goes in; the value is what comes last. */
			if (call == SPEC_nvmlDeviceGetTemperatureV && field == at + 2)
				skip = true;
			if (!skip)
				(void)puppet_value(puppet, line, n++, &value);
			wide = (uint64_t)value;
			narrow = (uint32_t)(int64_t)value;
			if (!skip)
				memcpy(out, *field == 'q' ? (void *)&wide : (void *)&narrow,
				       *field == 'q' ? 8 : 4);
			out += *field == 'q' ? 8 : 4;
		}
	}
	line->calls++;
	return OK;
}

struct field {
	uint32_t id, scope;
	int64_t time_us, latency_us;
	uint32_t type;
	int32_t status;
	union {
		uint64_t u64;
		double f64;
	} value;
};

static int put_fields(struct puppet *puppet, int device, uint32_t count, struct field *fields)
{
	for (uint32_t i = 0; i < count; i++) {
		char id[16];
		struct puppet_line *line;
		double value = 0;

		(void)snprintf(id, sizeof(id), "%u", fields[i].id);
		line = puppet_find(puppet, device, "field", id);
		puppet_tally(fields[i].id);
		fields[i].time_us = (int64_t)utc_us();
		/* PCIe bytes have 32 bits, as they have on an H200. */
		fields[i].type = fields[i].id == 197 || fields[i].id == 198 ? 1 : 3;
		fields[i].value.u64 = 0;
		fields[i].status = NOT_SUPPORTED;
		if (!line)
			continue;
		if (strchr(line->text, '!')) {
			fields[i].status = (int)strtol(strchr(line->text, '!') + 1, NULL, 10);
			continue;
		}
		(void)puppet_value(puppet, line, 1, &value);
		line->calls++;
		fields[i].status = OK;
		fields[i].value.u64 = (uint64_t)value;
		if (fields[i].type == 1)
			fields[i].value.u64 &= UINT32_MAX;
	}
	return OK;
}

struct point {
	uint64_t time_us, value;
};

static int put_ring(struct puppet *puppet, int device, uint32_t type, uint64_t seen_us,
		    uint32_t *type_out, uint32_t *count, struct point *points)
{
	enum { RING_MOST = 120 };
	char first[16];
	struct puppet_line *line;
	double ms = 0, value = 0;
	uint64_t now_us = utc_us(), step_us, from_us;
	uint32_t n = 0;

	(void)snprintf(first, sizeof(first), "%u", type);
	line = puppet_find(puppet, device, "ring", first);
	if (!line || !puppet_value(puppet, line, 1, &ms) || !puppet_value(puppet, line, 2, &value))
		return NOT_SUPPORTED;
	*type_out = 1;
	step_us = (uint64_t)(ms * 1000);
	now_us -= now_us % step_us;
	from_us = now_us - RING_MOST * step_us;
	if (from_us < seen_us)
		from_us = seen_us - seen_us % step_us;
	for (uint64_t at = from_us + step_us; at <= now_us && n < *count; at += step_us)
		points[n++] = (struct point){ at, (uint64_t)value };
	*count = n;
	return n ? OK : NOT_FOUND;
}

/* Process rows of one kind ('C', 'G', 'M'), of `stride` bytes. */
static int put_processes(struct puppet *puppet, int device, char kind, size_t stride,
			 uint32_t *count, char *rows)
{
	struct puppet_line *set = puppet_find(puppet, -1, "stride", NULL);
	uint32_t room = *count, n = 0;
	double value;

	if (puppet_find(puppet, device, "process", NULL) == NULL &&
	    puppet_find(puppet, device, "processes", NULL) == NULL)
		return NOT_SUPPORTED;
	if (stride == 24 && set && puppet_value(puppet, set, 0, &value))
		stride = (size_t)value;
	for (int i = 0; i < puppet->line_count; i++) {
		const struct puppet_line *line = &puppet->lines[i];
		char row[32], kinds[8];
		uint32_t pid;
		uint64_t bytes;
		const struct puppet_device *of;

		if (strcmp(line->word, "process") || line->device < 0 ||
		    (line->device != device && puppet->devices[line->device].parent != device) ||
		    sscanf(line->text, "%u %7s %lu", &pid, kinds, &bytes) != 3 ||
		    !strchr(kinds, kind))
			continue;
		if (n++ >= room)
			continue;
		of = &puppet->devices[line->device];
		memset(row, 0, sizeof(row));
		memcpy(row, &pid, 4);
		memcpy(row + 8, &bytes, 8);
		memcpy(row + 16, &of->gpu_instance, 4);
		memcpy(row + 20, &of->compute_instance, 4);
		memcpy(rows + (n - 1) * stride, row, stride);
	}
	*count = n;
	return n > room ? TOO_SMALL : OK;
}

struct use {
	uint64_t time_us;
	uint32_t pid, values[6];
};

/* Use of the processes that have some, and rows said outright. */
static uint32_t find_uses(struct puppet *puppet, int device, struct use *uses, uint32_t room)
{
	uint64_t now_us = utc_us();
	uint32_t n = 0;

	for (int i = 0; i < puppet->line_count; i++) {
		const struct puppet_line *line = &puppet->lines[i];
		struct use use = { .time_us = now_us };
		uint32_t *v = use.values;
		int64_t age_ms = 0;

		if (line->device != device)
			continue;
		if (!strcmp(line->word, "process") && sscanf(line->text, "%u %*s %*u %u %u %u %u",
							     &use.pid, v, v + 1, v + 2, v + 3) < 2)
			continue;
		else if (!strcmp(line->word, "use") &&
			 sscanf(line->text, "%u %ld %u %u", &use.pid, &age_ms, v, v + 1) < 4)
			continue;
		else if (strcmp(line->word, "process") && strcmp(line->word, "use"))
			continue;
		use.time_us -= (uint64_t)(age_ms * 1000);
		if (n < room)
			uses[n] = use;
		n++;
	}
	return n;
}

enum { USES = 2048 };

static int put_uses(struct puppet *puppet, int device, char *request)
{
	static struct use uses[USES];
	uint32_t room, n;
	char *rows;

	memcpy(&room, request + 4, 4);
	memcpy(&rows, request + 16, sizeof(rows));
	n = find_uses(puppet, device, uses, USES);
	memcpy(request + 4, &n, 4);
	if (n > room)
		return TOO_SMALL;
	for (uint32_t i = 0; i < n; i++)
		memcpy(rows + (size_t)i * 40, &uses[i], 36);
	return n ? OK : NOT_FOUND;
}

static int put_uses_old(struct puppet *puppet, int device, char *rows, uint32_t *count)
{
	static struct use uses[USES];
	uint32_t room = *count;

	*count = find_uses(puppet, device, uses, USES);
	if (*count > room)
		return TOO_SMALL;
	for (uint32_t i = 0; i < *count; i++) {
		char *row = rows + (size_t)i * 32;

		memset(row, 0, 32);
		memcpy(row, &uses[i].pid, 4);
		memcpy(row + 8, &uses[i].time_us, 8);
		memcpy(row + 16, uses[i].values, 16);
	}
	return *count ? OK : NOT_FOUND;
}

struct gpm_sample {
	int device;
	int64_t time_ns;
};

static int gpm_sample(struct puppet *puppet, int device, uint32_t instance,
		      struct gpm_sample *sample)
{
	/* A MIG sample is asked of the card with the number of the instance. */
	for (int i = 0; i < puppet->device_count && instance != UINT32_MAX; i++)
		if (puppet->devices[i].parent == device &&
		    puppet->devices[i].gpu_instance == instance) {
			device = i;
			break;
		}
	if (!puppet_find(puppet, device, "gpm", NULL))
		return NOT_SUPPORTED;
	sample->device = device;
	sample->time_ns = puppet_clock_ns();
	return OK;
}

static int gpm_metrics(struct puppet *puppet, char *request)
{
	struct gpm_sample *before, *after;
	uint32_t count;

	memcpy(&count, request + 4, 4);
	memcpy(&before, request + 8, sizeof(before));
	memcpy(&after, request + 16, sizeof(after));
	if (after->time_ns - before->time_ns < 100000000)
		return INVALID;
	for (uint32_t i = 0; i < count; i++) {
		char *at = request + 24 + (size_t)i * 40;
		char first[16];
		uint32_t id;
		int32_t status = NOT_SUPPORTED;
		struct puppet_line *line;
		double value = 0;

		memcpy(&id, at, 4);
		puppet_tally(PUPPET_FIELDS + id);
		(void)snprintf(first, sizeof(first), "%u", id);
		line = puppet_find(puppet, after->device, "gpm", first);
		if (line && puppet_value(puppet, line, 1, &value))
			status = OK;
		memcpy(at + 4, &status, 4);
		memcpy(at + 8, &value, 8);
	}
	return OK;
}

static int put_handle(struct puppet *puppet, int parent, uint32_t index, uintptr_t *out)
{
	for (int i = 0; i < puppet->device_count; i++)
		if (puppet->devices[i].parent == parent && puppet->devices[i].index == index) {
			struct puppet_line *lost = puppet_find(puppet, i, "nohandle", NULL);

			if (lost)
				return LOST;
			*out = FIRST_DEVICE + (uintptr_t)i;
			return OK;
		}
	return parent < 0 ? INVALID : NOT_FOUND;
}

static int handle_by_text(struct puppet *puppet, const char *word, const char *text, uintptr_t *out)
{
	for (int i = 0; i < puppet->device_count; i++) {
		struct puppet_line *line = puppet_find(puppet, i, word, NULL);

		if (line && !strcmp(line->text, text)) {
			*out = FIRST_DEVICE + (uintptr_t)i;
			return OK;
		}
	}
	return NOT_FOUND;
}

static int put_pci(struct puppet *puppet, int device, char *at)
{
	struct puppet_line *line = puppet_find(puppet, device, "bus", NULL);
	unsigned domain, bus, dev;
	uint32_t ids[5];

	if (!line || sscanf(line->text, "%x:%x:%x", &domain, &bus, &dev) != 3)
		return NOT_SUPPORTED;
	memset(at, 0, 68);
	(void)snprintf(at, 16, "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff, dev & 0xff);
	ids[0] = domain;
	ids[1] = bus;
	ids[2] = dev;
	ids[3] = 0x233510de;
	ids[4] = 0x18bf10de;
	memcpy(at + 16, ids, sizeof(ids));
	(void)snprintf(at + 36, 32, "%08X:%02X:%02X.0", domain, bus & 0xff, dev & 0xff);
	return OK;
}

static uint32_t instances(const struct puppet *puppet, int device)
{
	uint32_t n = 0;

	for (int i = 0; i < puppet->device_count; i++)
		n += puppet->devices[i].parent == device;
	return n;
}

/* Handles, names, instances. -1: not one of these. */
static int play_identity(struct puppet *puppet, int device, enum spec_call call, uintptr_t *args)
{
	switch (call) {
	case SPEC_nvmlInit_v2:
	case SPEC_nvmlInitWithFlags:
	case SPEC_nvmlShutdown:
		return OK;
	case SPEC_nvmlDeviceGetCount_v2:
		*(uint32_t *)args[0] = puppet->card_count;
		return OK;
	case SPEC_nvmlDeviceGetHandleByIndex_v2:
		return put_handle(puppet, -1, (uint32_t)args[0], (uintptr_t *)args[1]);
	case SPEC_nvmlDeviceGetMigDeviceHandleByIndex:
		return put_handle(puppet, device, (uint32_t)args[1], (uintptr_t *)args[2]);
	case SPEC_nvmlDeviceGetHandleByPciBusId_v2:
		return handle_by_text(puppet, "bus", (const char *)args[0], (uintptr_t *)args[1]);
	case SPEC_nvmlDeviceGetHandleByUUID:
		return handle_by_text(puppet, "uuid", (const char *)args[0], (uintptr_t *)args[1]);
	case SPEC_nvmlDeviceGetName:
		return put_text(puppet, device, "name", (char *)args[1], args[2]);
	case SPEC_nvmlDeviceGetUUID:
		return put_text(puppet, device, "uuid", (char *)args[1], args[2]);
	case SPEC_nvmlSystemGetDriverVersion:
	case SPEC_nvmlSystemGetNVMLVersion:
		return put_text(puppet, -1, puppet_names[call], (char *)args[0], args[1]);
	case SPEC_nvmlDeviceGetPciInfo_v3:
		return put_pci(puppet, device, (char *)args[1]);
	case SPEC_nvmlDeviceGetIndex:
		*(uint32_t *)args[1] = puppet->devices[device].index;
		return OK;
	case SPEC_nvmlDeviceGetMaxMigDeviceCount:
		*(uint32_t *)args[1] = instances(puppet, device);
		return OK;
	case SPEC_nvmlDeviceGetGpuInstanceId:
		*(uint32_t *)args[1] = puppet->devices[device].gpu_instance;
		return OK;
	case SPEC_nvmlDeviceGetComputeInstanceId:
		*(uint32_t *)args[1] = puppet->devices[device].compute_instance;
		return OK;
	default:
		return -1;
	}
}

/* Types that somebody registered for; it outlives a change of the script. */
static uint64_t registered[PUPPET_DEVICES];

static int register_events(struct puppet *puppet, int device, uint64_t types)
{
	struct puppet_line *known =
		puppet_find(puppet, device, "nvmlDeviceGetSupportedEventTypes", NULL);
	double supported = 0;

	if (!known || !puppet_value(puppet, known, 0, &supported) || types & ~(uint64_t)supported)
		return NOT_SUPPORTED;
	registered[device] |= types;
	return OK;
}

struct event {
	uintptr_t device;
	uint64_t type, data;
	uint32_t gpu_instance, compute_instance;
};

static int next_event(struct puppet *puppet, struct event *event)
{
	for (int i = 0; i < puppet->line_count; i++) {
		struct puppet_line *line = &puppet->lines[i];
		double value[4] = { 0, 0, UINT32_MAX, UINT32_MAX };

		if (line->device < 0 || line->calls || strcmp(line->word, "event"))
			continue;
		for (int n = 0; n < 4 && puppet_value(puppet, line, n, &value[n]); n++)
			;
		if (!(registered[line->device] & (uint64_t)value[0]))
			continue;
		line->calls++;
		*event = (struct event){ FIRST_DEVICE + (uintptr_t)line->device, (uint64_t)value[0],
					 (uint64_t)value[1], (uint32_t)value[2],
					 (uint32_t)value[3] };
		return OK;
	}
	return TIMED_OUT;
}

/* Events, which have state of their own. -1: not one of these. */
static int play_events(struct puppet *puppet, int device, enum spec_call call, uintptr_t *args)
{
	switch (call) {
	case SPEC_nvmlEventSetCreate:
		*(void **)args[0] = registered;
		return OK;
	case SPEC_nvmlEventSetFree:
		memset(registered, 0, sizeof(registered));
		return OK;
	case SPEC_nvmlDeviceRegisterEvents:
		return register_events(puppet, device, args[1]);
	case SPEC_nvmlEventSetWait_v2:
		return next_event(puppet, (struct event *)args[1]);
	default:
		return -1;
	}
}

/* Lists, fields, rings, GPM. -1: not one of these. */
static int play_lists(struct puppet *puppet, int device, enum spec_call call, uintptr_t *args)
{
	switch (call) {
	case SPEC_nvmlDeviceGetFieldValues:
		return put_fields(puppet, device, (uint32_t)args[1], (struct field *)args[2]);
	case SPEC_nvmlDeviceGetSamples:
		return put_ring(puppet, device, (uint32_t)args[1], args[2], (uint32_t *)args[3],
				(uint32_t *)args[4], (struct point *)args[5]);
	case SPEC_nvmlDeviceGetComputeRunningProcesses_v3:
	case SPEC_nvmlDeviceGetComputeRunningProcesses_v2:
		return put_processes(puppet, device, 'C', 24, (uint32_t *)args[1], (char *)args[2]);
	case SPEC_nvmlDeviceGetComputeRunningProcesses:
		return put_processes(puppet, device, 'C', 16, (uint32_t *)args[1], (char *)args[2]);
	case SPEC_nvmlDeviceGetGraphicsRunningProcesses_v3:
	case SPEC_nvmlDeviceGetGraphicsRunningProcesses_v2:
		return put_processes(puppet, device, 'G', 24, (uint32_t *)args[1], (char *)args[2]);
	case SPEC_nvmlDeviceGetGraphicsRunningProcesses:
		return put_processes(puppet, device, 'G', 16, (uint32_t *)args[1], (char *)args[2]);
	case SPEC_nvmlDeviceGetMPSComputeRunningProcesses_v3:
	case SPEC_nvmlDeviceGetMPSComputeRunningProcesses_v2:
		return put_processes(puppet, device, 'M', 24, (uint32_t *)args[1], (char *)args[2]);
	case SPEC_nvmlDeviceGetMPSComputeRunningProcesses:
		return put_processes(puppet, device, 'M', 16, (uint32_t *)args[1], (char *)args[2]);
	case SPEC_nvmlDeviceGetProcessesUtilizationInfo:
		return put_uses(puppet, device, (char *)args[1]);
	case SPEC_nvmlDeviceGetProcessUtilization:
		return put_uses_old(puppet, device, (char *)args[1], (uint32_t *)args[2]);
	case SPEC_nvmlGpmQueryDeviceSupport:
		((uint32_t *)args[1])[1] = puppet_find(puppet, device, "gpm", NULL) != NULL;
		return OK;
	case SPEC_nvmlGpmSampleAlloc:
		*(void **)args[0] = calloc(1, sizeof(struct gpm_sample));
		return OK;
	case SPEC_nvmlGpmSampleFree:
		free((void *)args[0]);
		return OK;
	case SPEC_nvmlGpmSampleGet:
		return gpm_sample(puppet, device, UINT32_MAX, (struct gpm_sample *)args[1]);
	case SPEC_nvmlGpmMigSampleGet:
		return gpm_sample(puppet, device, (uint32_t)args[1], (struct gpm_sample *)args[2]);
	case SPEC_nvmlGpmMetricsGet:
		return gpm_metrics(puppet, (char *)args[0]);
	default:
		return -1;
	}
}

static int play(enum spec_call call, uintptr_t *args)
{
	struct puppet *puppet = puppet_now();
	const char *spec = puppet_specs[call];
	int device, status;

	if (puppet->replay[0])
		return puppet_replay(puppet->replay, call, spec, args);
	device = device_of(puppet, spec, args);
	if (device == -2)
		return INVALID;
	status = trouble(puppet, device, call);
	if (status < 0)
		status = play_identity(puppet, device, call, args);
	if (status < 0)
		status = play_lists(puppet, device, call, args);
	if (status < 0)
		status = play_events(puppet, device, call, args);
	if (status < 0)
		status = put_values(puppet, device, call, args);
	return status;
}

#define X(name, spec)                                                                           \
	int name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f); \
	int name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)  \
	{                                                                                       \
		uintptr_t args[SPEC_ARGS] = { a, b, c, d, e, f };                               \
                                                                                                \
		return play(SPEC_##name, args);                                                 \
	}
NVML_SPECS(X)
#undef X
