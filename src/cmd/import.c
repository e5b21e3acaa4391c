#include "cmd/import.h"

#include <stdio.h>

#include "base/i18n.h"
#include "base/own.h"
#include "base/units.h"
#include "cmd/profile_file.h"
#include "cmd/progress.h"
#include "read/reader.h"
#include "store/store.h"

static void add_source_line(struct buf *out, const struct session *session, uint32_t index)
{
	const struct source *source = &session->sources.at[index];
	const int64_t *loss = session->losses.at[index].count;
	static const struct {
		enum loss loss;
		const char *what;
	} told[] = {
#define X(id, what) { LOSS_##id, N_(what) },
		LOSS_LIST(X)
#undef X
	};
	struct unit_text text;

	buf_printf(out, "%s: %s, %s %s", session_text(session, source->file),
		   session_text(session, source->reader), units_count(&text, loss[LOSS_seen]),
		   _("records"));
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		if (told[i].loss == LOSS_seen || !loss[told[i].loss])
			continue;
		buf_printf(out, "; %s %s", units_count(&text, loss[told[i].loss]), _(told[i].what));
	}
	if (source->truncated)
		buf_printf(out, "; %s", _("the file ends early"));
	if (source->no_device_activity)
		buf_printf(out, "; %s", _("no GPU activity in it"));
	buf_char(out, '\n');
}

struct outcome {
	size_t read, failed;
	struct err first; /* failure */
};

/* One file after the other; returns below 0 only if the profile itself can't
 * be written any more. */
static int read_all(const char *const *files, size_t count, struct store *store,
		    struct buf *summary, struct outcome *outcome, struct err *err)
{
	struct progress progress = { 0 };
	struct sink *sink = progress_sink(&progress, store_sink(store));

	for (size_t i = 0; i < count; i++) {
		struct err own = { 0 };
		uint32_t source = SESSION_NONE;

		progress_start(&progress, files[i]);
		if (reader_import(files[i], sink, &source, &own) >= 0) {
			progress_stop(&progress);
			add_source_line(summary, store_session(store), source);
			outcome->read++;
			continue;
		}
		progress_stop(&progress);
		buf_printf(summary, "%s\n", own.line);
		if (!outcome->failed++)
			outcome->first = own;
		/* Not the file's fault but the disk's? Then the rest fails too. */
		if (own.code == ERR_IO && store_flush(store, err) < 0)
			return err->code;
	}
	return 0;
}

int import_files(const char *const *files, size_t count, const char *output,
		 struct buf *ret_summary, bool *ret_written, struct err *err)
{
	OWN(store_closep) struct store *store = NULL;
	struct outcome outcome = { 0 };

	*ret_written = false;
	if (profile_file_check_output(output, err) < 0 || store_create(output, &store, err) < 0)
		return err->code;
	if (read_all(files, count, store, ret_summary, &outcome, err) < 0 ||
	    (outcome.read && store_finish(store, err) < 0)) {
		/* The files are still there to import again: leave nothing
		 * half done, least of all on a full disk. */
		store_discard(STEAL(store));
		return err->code;
	}
	if (outcome.read)
		*ret_written = true;
	else
		store_discard(STEAL(store));
	if (!outcome.failed)
		return 0;
	*err = outcome.first;
	if (outcome.failed > 1 || outcome.read)
		return err_context(err, "%zu of %zu files could not be read", outcome.failed,
				   count);
	return err->code;
}
