#include "cmd/temp.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

struct temp {
	struct buf directory, path;
};

int temp_new(struct temp **ret_temp, struct err *err)
{
	const char *where = getenv("TMPDIR");
	struct temp *temp = mem_zero(sizeof(*temp));

	buf_printf(&temp->directory, "%s/sonde-XXXXXX", where && *where ? where : "/var/tmp");
	if (!mkdtemp(temp->directory.at)) {
		(void)err_errno(err, "%s", temp->directory.at);
		buf_clear(&temp->directory);
		temp_free(temp);
		return err ? err->code : ERR_IO;
	}
	buf_printf(&temp->path, "%s/report.sonde", temp->directory.at);
	*ret_temp = temp;
	return 0;
}

const char *temp_path(const struct temp *temp)
{
	return temp->path.at;
}

/* What a profile can leave beside itself: store/store.h. */
static const char *const endings[] = { "", "-wal", "-shm", ".part", ".part-wal", ".part-shm" };

void temp_free(struct temp *temp)
{
	if (!temp)
		return;
	for (size_t i = 0; temp->path.len && i < sizeof(endings) / sizeof(endings[0]); i++) {
		struct buf path = { 0 };

		buf_printf(&path, "%s%s", temp->path.at, endings[i]);
		(void)unlink(path.at);
		buf_done(&path);
	}
	if (temp->directory.len)
		(void)rmdir(temp->directory.at);
	buf_done(&temp->directory);
	buf_done(&temp->path);
	free(temp);
}
