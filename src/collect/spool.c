#include "collect/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/spool_process.h"
#include "model/note.h"

static const uint64_t MEMORY = 64 << 20;
static const uint64_t BUFFER_BYTES = 512 << 10;
/* Of the memory, what is the library's own state, its thread's stack, and to spare. */
static const uint64_t OWN_BYTES = 1 << 20;

/* Of 20 ms, at the end, for processes that go on. */
enum { LAST_TICKS = 15 };

struct spool {
	int fd;
	char path[64];
	struct spool_head *head;
	struct segment layout; /* of every segment but its index */
	struct spooled *live[SEGMENT_COUNT_MAX];
	struct complaints complaints;
	struct symbols *symbols;    /* ranks of a job have the same libraries */
	struct spool_status status; /* of processes that are gone */
	uint32_t ask;
	uint64_t begun; /* processes */
	bool calibrates;
	struct open_gate window; /* from the first start to the last stop */
	struct spooled_range range;
};

static uint64_t pages(uint64_t bytes)
{
	return (bytes + SEGMENT_PAGE - 1) & ~(uint64_t)(SEGMENT_PAGE - 1);
}

/* Half of the memory is for buffers, a quarter for the ring, an eighth for texts. All
 * records of the fastest launches were kept with 32 MiB of buffers (doc/measured.md). The
 * rest is lent when no buffer is free, and what comes in it is thrown away. */
static void plan(struct segment *layout, const struct spool_opts *opts)
{
	uint64_t memory = opts && opts->memory ? opts->memory : MEMORY;
	uint64_t slots = 1, bytes = BUFFER_BYTES;

	while (slots * 2 * sizeof(struct segment_slot) <= memory / 4)
		slots *= 2;
	if (bytes < memory / 2 / SEGMENT_BUFFERS_MAX)
		bytes = memory / 2 / SEGMENT_BUFFERS_MAX;
	layout->magic = SEGMENT_MAGIC;
	layout->version = SEGMENT_VERSION;
	layout->head_bytes = (uint32_t)pages(sizeof(*layout));
	layout->texts_at = layout->head_bytes;
	layout->texts_bytes = pages(memory / 8);
	layout->ring_at = layout->texts_at + layout->texts_bytes;
	layout->ring_slots = slots;
	layout->buffers_at = layout->ring_at + slots * sizeof(struct segment_slot);
	layout->buffer_bytes = pages(opts && opts->buffer_bytes ? opts->buffer_bytes : bytes);
	layout->buffer_count = opts && opts->buffers
				       ? opts->buffers
				       : (uint32_t)(memory / 2 / layout->buffer_bytes);
	if (layout->buffer_count > SEGMENT_BUFFERS_MAX)
		layout->buffer_count = SEGMENT_BUFFERS_MAX;
	layout->bytes = layout->buffers_at + layout->buffer_count * layout->buffer_bytes;
	if (layout->bytes + OWN_BYTES < memory)
		layout->overflow_bytes = memory - layout->bytes - OWN_BYTES;
	atomic_store(&layout->texts_used, 8);
}

static off_t offset_of(const struct spool *spool, uint32_t index)
{
	return (off_t)(SPOOL_HEAD + index * spool->layout.bytes);
}

/* Zeroes the segment and writes its head: free to be claimed. The head goes
 * through the file: nothing of it is mapped yet. */
static int prepare(struct spool *spool, uint32_t index)
{
	struct segment *head = &spool->layout;
	off_t at = offset_of(spool, index);

	if (fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
		      (off_t)spool->layout.bytes) < 0)
		return -1;
	head->index = index;
	/* The tables behind the fields are zero already. */
	return pwrite(spool->fd, head, offsetof(struct segment, buffers), at) ==
			       (ssize_t)offsetof(struct segment, buffers)
		       ? 0
		       : -1;
}

int spool_open(const struct spool_opts *opts, struct spool **ret_spool, struct err *err)
{
	OWN(spool_closep) struct spool *spool = mem_zero(sizeof(*spool));
	uint32_t count = opts && opts->segments ? opts->segments : 64;

	if (count > SEGMENT_COUNT_MAX)
		count = SEGMENT_COUNT_MAX;
	plan(&spool->layout, opts);
	spool->calibrates = opts && opts->calibrates;
	spool->range.wanted = opts ? opts->range : NULL;
	spool->range.named = opts && opts->named;
	spool->window = (struct open_gate){ opts && opts->waits ? INT64_MAX : 0, INT64_MAX, false };
	spool->symbols = symbols_new();
	spool->fd = memfd_create("sonde-spool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (spool->fd < 0 ||
	    ftruncate(spool->fd, (off_t)(SPOOL_HEAD + count * spool->layout.bytes)) < 0 ||
	    fcntl(spool->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return err_errno(err, "shared memory for the recording");
	spool->head = mmap(NULL, SPOOL_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, spool->fd, 0);
	if (spool->head == MAP_FAILED) {
		spool->head = NULL;
		return err_errno(err, "shared memory for the recording");
	}
	for (uint32_t i = 0; i < count; i++) {
		if (prepare(spool, i) < 0)
			return err_errno(err, "shared memory for the recording");
	}
	spool->head->version = SEGMENT_VERSION;
	spool->head->count = count;
	spool->head->segment_bytes = spool->layout.bytes;
	atomic_store(&spool->head->closed, opts && opts->waits ? CLOSED_NOW : CLOSED_NOT);
	spool->head->magic = SPOOL_MAGIC;
	snprintf(spool->path, sizeof(spool->path), "/proc/%ld/fd/%d", (long)getpid(), spool->fd);
	*ret_spool = STEAL(spool);
	return 0;
}

static void process_free(struct spool *spool, struct spooled *p)
{
	if (!p)
		return;
	munmap(p->segment, spool->layout.bytes);
	map_done(&p->texts);
	map_done(&p->kernels);
	map_done(&p->lanes);
	map_done(&p->apis);
	map_done(&p->categories);
	map_done(&p->reasons);
	map_done(&p->sites);
	map_done(&p->asked);
	maps_files_done(&p->files);
	perf_map_file_free(p->made);
	map_done(&p->ranges);
	map_done(&p->devices);
	map_done(&p->streams);
	map_done(&p->rows);
	map_done(&p->handles);
	for (size_t i = 0; i < p->grids.count; i++)
		VEC_DONE(&p->grids.at[i].runs);
	VEC_DONE(&p->grids);
	VEC_DONE(&p->objects);
	VEC_DONE(&p->untimed);
	map_done(&p->held);
	VEC_DONE(&p->gates);
	VEC_DONE(&p->early_waits);
	VEC_DONE(&p->pushed);
	VEC_DONE(&p->started);
	free(p);
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	for (uint32_t i = 0; i < SEGMENT_COUNT_MAX; i++)
		process_free(spool, spool->live[i]);
	if (spool->head)
		munmap(spool->head, SPOOL_HEAD);
	if (spool->fd >= 0)
		close(spool->fd);
	VEC_DONE(&spool->complaints.lines);
	spooled_range_done(&spool->range);
	symbols_free(spool->symbols);
	free(spool);
}

const char *spool_path(const struct spool *spool)
{
	return spool->path;
}

static void ask_process(struct spooled *p, uint32_t ask)
{
	if (ask & WANT_START) /* one that was not taken yet is over */
		atomic_fetch_and(&p->segment->wanted, ~(uint32_t)(WANT_STOP | WANT_QUIET));
	if (ask & WANT_STOP)
		atomic_store(&p->segment->closed, ask & WANT_QUIET ? CLOSED_MOMENT : CLOSED_NOW);
	else if (ask & WANT_START)
		atomic_store(&p->segment->closed, CLOSED_NOT);
	atomic_fetch_or(&p->segment->wanted, ask);
}

/* The file of the program that the process is now. */
static bool program_of(const struct spooled *p, struct stat *ret)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/exe", p->outer_pid);
	return stat(path, ret) >= 0;
}

/* Each name stays in the profile, and some programs tell their progress so: behind so many
 * only the last one counts. */
enum { RENAMES_MAX = 32 };

static void name_process(const struct spooled *p, struct session *session)
{
	char text[sizeof(p->name) + 32];

	snprintf(text, sizeof(text), "%s (pid %u)", p->name, p->pid);
	session->processes.at[p->process].name = intern_text(session->strings, p->name);
	session->sources.at[p->source].file = intern_text(session->strings, text);
}

/* A new source for a process that claimed segment `index`. */
static void begin(struct spool *spool, uint32_t index, struct sink *sink)
{
	struct session *session = sink->session;
	struct spooled *p = mem_zero(sizeof(*p));
	struct source *source;
	struct stat program;
	uint32_t closed;

	p->segment = mmap(NULL, spool->layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spool->fd,
			  offset_of(spool, index));
	if (p->segment == MAP_FAILED) {
		free(p);
		return;
	}
	p->layout = &spool->layout;
	p->symbols = spool->symbols;
	p->pid = p->segment->pid;
	p->number = ++spool->begun;
	p->outer_pid = atomic_load(&spool->head->owner[index]);
	maps_files_load(&p->files, "", p->outer_pid);
	p->made = perf_map_file_new("", p->outer_pid);
	snprintf(p->name, sizeof(p->name), "%.*s", (int)sizeof(p->name) - 1, p->segment->command);
	if (program_of(p, &program)) {
		p->device = program.st_dev;
		p->inode = program.st_ino;
	}
	p->source = session_source(session, "cuda", "");
	p->process = session_process(session, p->source, p->pid);
	session->processes.at[p->process].start_ticks = p->segment->start_ticks;
	name_process(p, session);
	source = &session->sources.at[p->source];
	source->has_utc = true;
	source->utc_offset_ns = clock_ns(CLOCK_REALTIME) - clock_steady_ns();
	source->mapping_error_ns = 1000;
	source->accelerator = intern_text(session->strings, "NVIDIA");
	if (p->segment->world_rank != UINT32_MAX) {
		source->rank = p->segment->world_rank;
		source->world_size =
			p->segment->world_size == UINT32_MAX ? -1 : (int64_t)p->segment->world_size;
	}
	p->window = &spool->window;
	p->range = &spool->range;
	/* What was asked for since it claimed. */
	closed = atomic_load(&spool->head->closed);
	if (atomic_load(&p->segment->closed) != closed)
		ask_process(p, closed ? WANT_STOP : WANT_START);
	spool->live[index] = p;
}

/* Finished buffers, oldest first; `last`: also those that CUPTI still held. */
static int take_buffers(struct spooled *p, bool last)
{
	const struct segment *layout = p->layout;

	for (;;) {
		uint32_t oldest = UINT32_MAX;
		uint64_t least = UINT64_MAX, valid;
		struct segment_buffer *buffer;
		uint8_t *bytes;
		bool unfinished;
		int ret;

		for (uint32_t i = 0; i < layout->buffer_count; i++) {
			uint32_t state = atomic_load_explicit(&p->segment->buffers[i].state,
							      memory_order_acquire);
			uint64_t order = atomic_load(&p->segment->buffers[i].order);

			if ((state == BUFFER_READY || (last && state == BUFFER_FILLING)) &&
			    order < least) {
				oldest = i;
				least = order;
			}
		}
		if (oldest == UINT32_MAX)
			return 0;
		buffer = &p->segment->buffers[oldest];
		bytes = (uint8_t *)p->segment + layout->buffers_at + oldest * layout->buffer_bytes;
		unfinished = atomic_load(&buffer->state) == BUFFER_FILLING;
		valid = unfinished ? layout->buffer_bytes : atomic_load(&buffer->valid);
		if (valid > layout->buffer_bytes)
			valid = layout->buffer_bytes;
		ret = spooled_records(p, bytes, valid, unfinished);
		memset(bytes, 0, valid);
		atomic_store_explicit(&buffer->state, BUFFER_FREE, memory_order_release);
		if (ret < 0)
			return ret;
	}
}

/* Loss that the process counted, as far as it was not told yet. */
static void look_at_loss(struct spooled *p)
{
	struct segment_counts *counts = &p->segment->counts;
	uint64_t dropped = atomic_load(&counts->records_dropped) +
			   atomic_load(&counts->slots_dropped) + atomic_load(&counts->slots_nested);

	if (dropped > p->told_dropped && dropped < INT64_MAX)
		session_loss(p->sink->session, p->source, LOSS_dropped,
			     (int64_t)(dropped - p->told_dropped));
	p->told_dropped = dropped;
}

static int take_process(struct spool *spool, struct spooled *p, struct sink *sink, bool last,
			struct err *err)
{
	int ret;

	p->sink = sink;
	p->err = err;
	spooled_look_at_reason(&spool->complaints, p);
	spooled_look_at_lacks(&spool->complaints, p);
	ret = spooled_slots(p, false); /* names first; what waits for a device, after it */
	if (ret >= 0)
		ret = take_buffers(p, last);
	if (ret >= 0)
		ret = spooled_slots(p, last);
	if (!last)
		spooled_watch_waits(p);
	look_at_loss(p);
	return ret;
}

static void add_status(struct spool_status *status, const struct spooled *p)
{
	if (atomic_load(&p->segment->users) & SEGMENT_USER_INJECT)
		status->processes++;
	status->kernels += p->kernels_seen;
	status->copies += p->copies_seen;
	status->calls += p->calls_seen;
	status->ranges += p->ranges_seen;
	status->samples += p->samples_seen;
	status->dropped += (int64_t)p->told_dropped + p->unnamed_slots + p->malformed;
}

static void sum_up(struct spool *spool, const struct sink *sink, struct spooled *p)
{
	if (p->renamed >= RENAMES_MAX)
		name_process(p, sink->session);
	spooled_describe(p);
	spooled_range_sum(p);
	spooled_sum_up(&spool->complaints, p);
	if (spool->calibrates && p->kernels_seen)
		spooled_sum_up_quiet(&spool->complaints, p);
	add_status(&spool->status, p);
}

static int end_process(struct spool *spool, uint32_t index, struct sink *sink, struct err *err)
{
	struct spooled *p = spool->live[index];
	int ret = take_process(spool, p, sink, true, err);

	if (ret >= 0)
		ret = spooled_unended(p, false);
	if (atomic_load(&p->segment->state) == SEGMENT_CLAIMED &&
	    atomic_load(&p->segment->users) & SEGMENT_USER_INJECT)
		session_note(sink->session, p->source, NOTE_KILLED, p->pid);
	sum_up(spool, sink, p);
	process_free(spool, p);
	spool->live[index] = NULL;
	if (prepare(spool, index) == 0)
		atomic_store(&spool->head->owner[index], 0);
	return ret;
}

static uint64_t number_at(const char *at)
{
	struct str text = { at, strspn(at, "0123456789") };
	uint64_t number;

	return str_to_u64(text, &number) ? number : 0;
}

/* What /proc/PID/stat says: "12 (name (of) it) S ...". Field 22 tells a new process with
 * an old pid. *ret_name: as it calls itself now; "": not there. */
static bool is_alive(const struct spooled *p, char ret_name[NAME_BYTES])
{
	char path[32], line[1024];
	const char *at, *name;
	FILE *file;
	bool same = false;

	ret_name[0] = 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", p->outer_pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(line, sizeof(line), file) && (at = strrchr(line, ')'))) {
		bool zombie = at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X');

		name = strchr(line, '(');
		if (name && name < at)
			snprintf(ret_name, NAME_BYTES, "%.*s", (int)(at - name - 1), name + 1);
		for (int field = 2; at && field < 22; field++)
			at = strchr(at + 1, ' ');
		/* 0: the process had no /proc to look at. */
		same = !zombie && at &&
		       (!p->segment->start_ticks || number_at(at + 1) == p->segment->start_ticks);
	}
	(void)fclose(file);
	return same;
}

/* Servers and their workers call themselves what they are once they run. What exec brings
 * is another program, and its name is not that of what was recorded. */
static void take_name(struct spooled *p, const char *name, struct session *session)
{
	struct stat program;

	if (!*name || !strcmp(name, p->name) || !p->inode || !program_of(p, &program) ||
	    program.st_dev != p->device || program.st_ino != p->inode)
		return;
	snprintf(p->name, sizeof(p->name), "%s", name);
	if (p->renamed < RENAMES_MAX) {
		p->renamed++;
		name_process(p, session);
	}
}

/* By exec: the process goes on as another program, with a segment of its own. */
static bool is_replaced(const struct spool *spool, const struct spooled *p)
{
	for (uint32_t i = 0; i < SEGMENT_COUNT_MAX; i++) {
		const struct spooled *other = spool->live[i];

		if (other && other != p && other->pid == p->pid && other->number > p->number &&
		    other->segment->start_ticks == p->segment->start_ticks)
			return true;
	}
	return false;
}

int spool_take(struct spool *spool, struct sink *sink, struct err *err)
{
	for (uint32_t i = 0; i < spool->head->count && i < SEGMENT_COUNT_MAX; i++) {
		struct spooled *p = spool->live[i];
		char name[NAME_BYTES];
		bool over;
		int ret;

		if (!p) {
			struct segment *head;
			uint32_t state;

			if (!atomic_load(&spool->head->owner[i]))
				continue;
			head = mmap(NULL, SEGMENT_PAGE, PROT_READ, MAP_SHARED, spool->fd,
				    offset_of(spool, i));
			if (head == MAP_FAILED)
				continue;
			state = atomic_load(&head->state);
			munmap(head, SEGMENT_PAGE);
			if (state == SEGMENT_FREE)
				continue; /* not set up yet */
			begin(spool, i, sink);
			p = spool->live[i];
			if (!p)
				continue;
		}
		p->calibrates = spool->calibrates;
		if (spool->ask && (!(spool->ask & WANT_QUIET) || spooled_is_settled(p)))
			ask_process(p, spool->ask);
		/* Before the take: nothing comes after it. */
		over = !is_alive(p, name) || is_replaced(spool, p);
		if (!over)
			take_name(p, name, sink->session);
		ret = over ? end_process(spool, i, sink, err)
			   : take_process(spool, p, sink, false, err);
		if (ret < 0)
			return ret;
	}
	spool->ask = 0;
	spooled_look_at_stranger(&spool->complaints, sink->session,
				 atomic_load(&spool->head->stranger));
	return 0;
}

static bool any_alive(const struct spool *spool)
{
	char name[NAME_BYTES];

	for (uint32_t i = 0; i < SEGMENT_COUNT_MAX; i++) {
		if (spool->live[i] && is_alive(spool->live[i], name))
			return true;
	}
	return false;
}

/* A process that outlives the command still writes: its segment is left to it. */
static int let_go(struct spool *spool, uint32_t index, struct sink *sink, struct err *err)
{
	struct spooled *p = spool->live[index];
	int ret = take_process(spool, p, sink, false, err);

	if (ret >= 0)
		ret = spooled_early_waits(p, true);
	if (ret >= 0)
		ret = spooled_unended(p, true);
	spooled_complain(&spool->complaints, p, NOTE_STILL_RUNS);
	sum_up(spool, sink, p);
	process_free(spool, p);
	spool->live[index] = NULL;
	return ret;
}

int spool_finish(struct spool *spool, struct sink *sink, struct err *err)
{
	struct timespec tick = { 0, 20000000 };
	char name[NAME_BYTES];
	int ret;

	spool_ask_stop(spool);
	ret = spool_take(spool, sink, err);
	/* Time to hand over what it has; or to end. */
	for (int i = 0; i < LAST_TICKS && ret >= 0 && any_alive(spool); i++) {
		(void)nanosleep(&tick, NULL);
		ret = spool_take(spool, sink, err);
	}
	for (uint32_t i = 0; i < SEGMENT_COUNT_MAX && ret >= 0; i++) {
		if (spool->live[i])
			ret = is_alive(spool->live[i], name) ? let_go(spool, i, sink, err)
							     : end_process(spool, i, sink, err);
	}
	spooled_range_tell(&spool->range, &spool->complaints, sink->session);
	return ret;
}

void spool_ask_stop(struct spool *spool)
{
	spool->ask = (spool->ask & ~(uint32_t)(WANT_START | WANT_QUIET)) | WANT_STOP;
	atomic_store(&spool->head->closed, CLOSED_NOW);
	if (spool->window.to_ns == INT64_MAX)
		spool->window.to_ns = clock_steady_ns();
}

void spool_ask_quiet(struct spool *spool)
{
	/* Not of the head: who begins now is not in between. */
	spool->ask = (spool->ask & ~(uint32_t)WANT_START) | WANT_STOP | WANT_QUIET;
}

void spool_ask_start(struct spool *spool)
{
	spool->ask = (spool->ask & ~(uint32_t)(WANT_STOP | WANT_QUIET)) | WANT_START;
	atomic_store(&spool->head->closed, CLOSED_NOT);
	if (spool->window.from_ns == INT64_MAX)
		spool->window.from_ns = clock_steady_ns();
	spool->window.to_ns = INT64_MAX;
}

void spool_status(const struct spool *spool, struct spool_status *ret_status)
{
	*ret_status = spool->status;
	ret_status->unserved = atomic_load(&spool->head->unserved);
	ret_status->unserved_host = atomic_load(&spool->head->unserved_host);
	ret_status->stranger = atomic_load(&spool->head->stranger);
	for (uint32_t i = 0; i < SEGMENT_COUNT_MAX; i++) {
		if (spool->live[i]) {
			ret_status->live++;
			add_status(ret_status, spool->live[i]);
		}
	}
}

const char *spool_complaint(const struct spool *spool, uint32_t number)
{
	return number < spool->complaints.lines.count ? spool->complaints.lines.at[number].line
						      : NULL;
}
