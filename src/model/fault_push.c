/*
 * A fault on its way into a session: device, process, lane, mark.
 */
#include <string.h>

#include "model/fault.h"

static uint32_t string_of(struct session *session, const char *text)
{
	return session_string(session, text, strlen(text));
}

/* What an NVSwitch is called stands where a GPU's product name would. */
static uint32_t device_of(struct session *session, uint32_t source, const struct fault *fault)
{
	struct device facts = { .scope = DEVICE_OF_SMI,
				.source = source,
				.ordinal = -1,
				.maker = intern_text(session->strings, "NVIDIA") };

	if (!*fault->pci && !*fault->uuid)
		return SESSION_NONE;
	facts.pci_bus = string_of(session, fault->pci);
	facts.uuid = string_of(session, fault->uuid);
	if (fault->kind == FAULT_SXID)
		facts.name = intern_text(session->strings, "NVSwitch");
	return session_device(session, &facts);
}

static uint32_t process_of(struct session *session, uint32_t source, const struct fault *fault)
{
	uint32_t id;

	if (!fault_has(fault, FAULT_PID))
		return SESSION_NONE;
	id = session_process(session, source, fault->pid);
	if (!session->processes.at[id].name)
		session->processes.at[id].name = string_of(session, fault->process);
	return id;
}

int fault_push(struct sink *sink, uint32_t source, const struct fault *fault, struct err *err)
{
	struct session *session = sink->session;
	struct lane lane = { .kind = LANE_OTHER,
			     .source = source,
			     .device = device_of(session, source, fault),
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };
	struct mark mark = { .kind = fault_mark_kind(fault->kind), .time_ns = fault->time_ns };
	struct buf text = { 0 };

	if (fault->kind == FAULT_DRIVER)
		session_env(session, source, SESSION_NONE, STR("driver"), str_of(fault->module));
	if (fault->kind == FAULT_IDENTITY && *fault->serial)
		session_env(session, source, lane.device, STR("serial"), str_of(fault->serial));
	if (fault->kind == FAULT_DRIVER || fault->kind == FAULT_IDENTITY)
		return 0;
	(void)process_of(session, source, fault);
	lane.kind = lane.device == SESSION_NONE ? LANE_OTHER : LANE_BOARD;
	mark.lane = session_lane(session, &lane);
	fault_title(fault, &text);
	mark.name = session_string(session, text.at, text.len);
	buf_clear(&text);
	fault_detail(fault, &text);
	mark.detail = session_detail(session, text.at, text.len);
	buf_done(&text);
	return sink_mark(sink, &mark, err);
}
