#include "collect/host_load.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"

enum { FILE_MAX_BYTES = 1 << 20 };

static struct str read_file(const char *root, const char *name, struct buf *to)
{
	struct buf path = { 0 };
	OWN(own_closep) int fd = -1;
	ssize_t got = 1;

	buf_clear(to);
	buf_printf(&path, "%s/proc/%s", root, name);
	fd = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	buf_done(&path);
	while (fd >= 0 && got > 0 && to->len < FILE_MAX_BYTES) {
		size_t before = to->len;

		got = read(fd, buf_room(to, 8192), 8192);
		to->len = before + (got > 0 ? (size_t)got : 0);
	}
	return (struct str){ to->at ? to->at : "", to->len };
}

static struct str next_word(struct str *line)
{
	*line = str_trim(*line);
	return str_cut(line, ' ');
}

/* "cpu  user nice system idle iowait irq softirq steal ..." in ticks; guest
 * time is part of user time. */
static void parse_cpu(struct str line, struct host_load *ret)
{
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	int64_t total = 0, idle = 0;

	for (int i = 0; i < 8; i++) {
		int64_t ticks;

		if (!str_to_i64(next_word(&line), &ticks))
			break;
		if (ticks < 0 || ticks > INT64_MAX / tick_ns / 16)
			return;
		total += ticks;
		idle += i == 3 || i == 4 ? ticks : 0;
	}
	ret->has_cpu = total > 0;
	ret->cpu_total_ns = total * tick_ns;
	ret->cpu_busy_ns = (total - idle) * tick_ns;
}

static void parse_stat(struct str text, struct host_load *ret)
{
	while (text.len) {
		struct str line = str_cut(&text, '\n');
		struct str word = next_word(&line);

		if (str_is(word, "cpu"))
			parse_cpu(line, ret);
		else if (str_starts(word, "cpu"))
			ret->cpus++;
	}
}

static void parse_memory(struct str text, struct host_load *ret)
{
	int64_t total = -1, available = -1;

	while (text.len) {
		struct str line = str_cut(&text, '\n');
		struct str word = next_word(&line);
		int64_t kib;

		if (!str_to_i64(next_word(&line), &kib) || kib < 0 || kib > INT64_MAX / 1024)
			continue;
		if (str_is(word, "MemTotal:"))
			total = kib * 1024;
		else if (str_is(word, "MemAvailable:"))
			available = kib * 1024;
	}
	ret->has_memory = total > 0 && available >= 0;
	ret->mem_total_bytes = ret->has_memory ? total : 0;
	ret->mem_available_bytes = ret->has_memory ? available : 0;
}

void host_load_read(const char *root, struct host_load *ret)
{
	struct buf file = { 0 };
	struct str text;

	memset(ret, 0, sizeof(*ret));
	parse_stat(read_file(root, "stat", &file), ret);
	parse_memory(read_file(root, "meminfo", &file), ret);
	text = read_file(root, "loadavg", &file);
	ret->has_load = str_to_f64(next_word(&text), &ret->load_1m);
	buf_done(&file);
}

bool host_load_busy(const struct host_load *before, const struct host_load *after, double *ret)
{
	int64_t total = after->cpu_total_ns - before->cpu_total_ns;
	int64_t busy = after->cpu_busy_ns - before->cpu_busy_ns;

	if (!before->has_cpu || !after->has_cpu || total <= 0 || busy < 0 || busy > total)
		return false;
	*ret = (double)busy / (double)total;
	return true;
}
