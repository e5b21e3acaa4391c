#include "collect/collector.h"

#include "base/mem.h"

struct collector {
	struct collector_opts opts;
};

int collector_open(const struct collector_opts *opts, struct collector **ret_collector,
		   struct err *err)
{
	struct collector *collector = mem_zero(sizeof(*collector));

	(void)err;
	collector->opts = *opts;
	*ret_collector = collector;
	return 0;
}

void collector_close(struct collector *collector)
{
	free(collector);
}

int collector_ask(struct collector *collector, uint32_t groups, struct err *err)
{
	(void)collector;
	(void)groups;
	return err_set(err, ERR_MISSING, "no driver");
}

int collector_take(struct collector *collector, struct snapshot *snapshot, struct err *err)
{
	(void)snapshot;
	return collector_ask(collector, 0, err);
}

int collector_fd(const struct collector *collector)
{
	(void)collector;
	return -1;
}

int64_t collector_deadline_ns(const struct collector *collector)
{
	(void)collector;
	return 0;
}

enum collector_state collector_state(const struct collector *collector)
{
	(void)collector;
	return COLLECTOR_NO_DRIVER;
}

int collector_status(const struct collector *collector)
{
	(void)collector;
	return 12;
}

uint32_t collector_started(const struct collector *collector)
{
	(void)collector;
	return 0;
}

uint32_t collector_hung(const struct collector *collector)
{
	(void)collector;
	return 0;
}

pid_t collector_pid(const struct collector *collector)
{
	(void)collector;
	return -1;
}
