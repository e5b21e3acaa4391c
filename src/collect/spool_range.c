/*
 * spool_range.c - the range that recording is limited to: where it never came, the profile is
 * empty, and why is told once for all processes, with the names that came instead.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "collect/spool_process.h"
#include "model/note.h"

/* So many names are shown, each so long; beyond the others they are not even counted. */
enum { NAMES_SHOWN = 4, NAME_SHOWN = 32, NAMES_COUNTED = 1 << 16 };

static bool is_part(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* As --capture-range takes it. */
static void show(struct buf *out, const char *name)
{
	size_t len = strlen(name), shown = len < NAME_SHOWN ? len : NAME_SHOWN;

	while (shown < len && shown && is_part(name[shown]))
		shown--;
	for (size_t i = 0; i < shown; i++) {
		if (name[i] == '@' || name[i] == '\\')
			buf_char(out, '\\');
		buf_char(out, name[i]);
	}
	if (shown < len)
		buf_text(out, "...");
}

void spooled_range_saw(struct spooled *p, const struct segment_slot *slot)
{
	const struct session *session = p->sink->session;
	struct spooled_range *range = p->range;
	uint32_t what[2];
	uint64_t key;

	if (!range->wanted || !slot->a || range->seen.count >= NAMES_COUNTED)
		return;
	what[0] = spooled_text(p, slot->a);
	what[1] = slot->b ? spooled_text(p, slot->b) : 0;
	key = hash_bytes(what, sizeof(what), 0);
	if (!what[0] || map_find(&range->seen, key))
		return;
	map_put(&range->seen, key, 1);
	if (range->seen.count > NAMES_SHOWN)
		return;
	if (range->names.len)
		buf_text(&range->names, ", ");
	show(&range->names, session_text(session, what[0]));
	if (what[1]) {
		buf_char(&range->names, '@');
		show(&range->names, session_text(session, what[1]));
	}
}

void spooled_range_sum(const struct spooled *p)
{
	struct spooled_range *range = p->range;
	bool is_nvtx = range->wanted && !strncmp(range->wanted, "nvtx:", 5);

	range->begun += atomic_load(&p->segment->ranges_begun);
	range->opened |= p->gates.count > 0;
	/* Where CUPTI is off nobody sees cudaProfilerStart. */
	if (atomic_load(&p->segment->users) & SEGMENT_USER_INJECT &&
	    (is_nvtx || atomic_load(&p->segment->reason) == SEGMENT_REASON_NONE))
		range->looked = true;
}

static void tell_of_names(const struct spooled_range *range, struct complaint *complaint)
{
	const char *name = range->wanted + strlen("nvtx:");
	size_t count = range->seen.count;

	if (!range->named)
		snprintf(complaint->line, sizeof(complaint->line), NOTE_RANGE_UNKNOWN, name);
	else if (!count)
		snprintf(complaint->line, sizeof(complaint->line), NOTE_RANGE_NONE, name);
	else if (count > NAMES_SHOWN)
		snprintf(complaint->line, sizeof(complaint->line), NOTE_RANGE_MORE, name, count,
			 range->names.at);
	else
		snprintf(complaint->line, sizeof(complaint->line), NOTE_RANGE_OTHERS, name,
			 range->names.at);
}

void spooled_range_tell(struct spooled_range *range, struct complaints *told,
			struct session *session)
{
	struct complaint complaint = { 0 };

	if (!range->wanted || !range->looked || range->opened)
		return;
	if (range->begun)
		snprintf(complaint.line, sizeof(complaint.line), NOTE_RANGE_OUTSIDE);
	else if (!strncmp(range->wanted, "nvtx:", 5))
		tell_of_names(range, &complaint);
	else
		snprintf(complaint.line, sizeof(complaint.line), NOTE_NO_PROFILER);
	*VEC_ADD(&told->lines) = complaint;
	session_note(session, SESSION_NONE, "%s", complaint.line);
}

void spooled_range_done(struct spooled_range *range)
{
	map_done(&range->seen);
	buf_done(&range->names);
}
