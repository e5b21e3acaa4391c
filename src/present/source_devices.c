#include "present/source_devices.h"

#include <string.h>

size_t source_devices(const struct session *session, uint32_t source, uint32_t *ret_at,
		      size_t limit)
{
	size_t count = 0;

	for (uint32_t device = 0; device < session->devices.count; device++) {
		bool has = false;

		for (size_t i = 0; i < session->lanes.count && !has; i++)
			has = session->lanes.at[i].kind == LANE_STREAM &&
			      session->lanes.at[i].source == source &&
			      session->lanes.at[i].device == device;
		if (has && count < limit)
			ret_at[count] = device;
		count += has;
	}
	return count;
}

int64_t source_pid(const struct session *session, uint32_t source)
{
	int64_t pid = -1;

	for (size_t i = 0; i < session->processes.count; i++) {
		if (session->processes.at[i].source != source)
			continue;
		if (pid >= 0)
			return -1;
		pid = session->processes.at[i].pid;
	}
	return pid;
}

/* The first source's wins. */
uint32_t profile_env(const struct session *session, const char *key)
{
	for (size_t i = 0; i < session->envs.count; i++) {
		const struct env *env = &session->envs.at[i];

		if (env->device == SESSION_NONE && !strcmp(session_text(session, env->key), key))
			return env->value;
	}
	return 0;
}
