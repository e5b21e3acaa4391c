#include "cmd/directory.h"

#include <sys/stat.h>

#include "base/own.h"
#include "base/str.h"
#include "model/note.h"
#include "store/join.h"
#include "store/recorder.h"
#include "store/store.h"

bool directory_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int directory_span(const char *text, int64_t *ret_ns, struct err *err)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	struct str number = str_of(text);
	double value;

	for (size_t i = 0; number.len && i < sizeof(units) / sizeof(*units); i++) {
		if (number.at[number.len - 1] != units[i].unit)
			continue;
		number.len--;
		if (!str_to_f64(number, &value) || !(value > 0) || value * units[i].seconds > 9e9)
			break;
		*ret_ns = (int64_t)(value * units[i].seconds * 1e9);
		return 0;
	}
	return err_set(err, ERR_USAGE, "--last: '%s' is no time such as 90m, 24h or 7d", text);
}

/* The end of the newest recording that can be read; 0: there is none. */
static int64_t end_of(const struct recorder_files *files)
{
	for (size_t i = files->at.count; i--;) {
		OWN(store_closep) struct store *store = NULL;
		int64_t last_ns = 0;

		if (!files->at.at[i].in_series ||
		    store_open(files->at.at[i].path, &store, NULL) < 0)
			continue;
		for (size_t k = 0; k < store_session(store)->sources.count; k++) {
			const struct source *source = &store_session(store)->sources.at[k];

			if (source->last_ns > last_ns)
				last_ns = source->last_ns;
		}
		if (last_ns)
			return last_ns;
	}
	return 0;
}

/* Where the last `last_ns` begin; 0: all. */
static int64_t start_of(const struct recorder_files *files, int64_t last_ns)
{
	int64_t from_ns;

	if (!last_ns || __builtin_sub_overflow(end_of(files), last_ns, &from_ns))
		return INT64_MIN;
	return from_ns;
}

/* How many were joined. */
static int join_files(const struct recorder_files *files, int64_t from_ns, struct store *output,
		      struct err *err)
{
	OWN(join_freep) struct join *join = join_new(store_sink(output), from_ns);
	struct session *session = store_session(output);
	int count = 0, flights = 0;

	for (size_t i = 0; i < files->at.count; i++) {
		const struct recorder_file *file = &files->at.at[i];
		OWN(store_closep) struct store *store = NULL;
		struct err own = { 0 };

		flights += !file->in_series;
		if (!file->in_series)
			continue;
		if (store_open(file->path, &store, &own) < 0) {
			if (session->sources.count)
				session_note(session, 0, NOTE_LEFT_OUT, own.line);
			continue;
		}
		if (join_add(join, store, err) < 0)
			return err->code;
		if (store_was_cut(store) && !file->is_part && session->sources.count)
			session_note(session, 0, NOTE_CUT_OFF, file->path);
		count++;
	}
	if (flights && session->sources.count)
		session_note(session, 0, NOTE_FLIGHTS, flights);
	return count;
}

int directory_join(const char *dir, int64_t last_ns, const char *output, struct err *err)
{
	OWN(store_closep) struct store *store = NULL;
	struct recorder_files files = { 0 };
	int ret = recorder_list(dir, NULL, &files, err);

	if (ret >= 0)
		ret = store_create(output, &store, err);
	if (ret >= 0)
		ret = join_files(&files, start_of(&files, last_ns), store, err);
	recorder_files_done(&files);
	if (ret > 0 && !store_session(store)->sources.count)
		ret = 0;
	if (ret == 0)
		ret = err_set(err, ERR_MISSING, "%s: holds no recordings of sonde monitor", dir);
	if (ret > 0)
		ret = store_finish(store, err);
	if (ret < 0)
		store_discard(STEAL(store));
	return ret < 0 ? ret : 0;
}
