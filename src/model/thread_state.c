#include "model/thread_state.h"

#include <stdio.h>
#include <string.h>

static const char *const names[THREAD_STATE_COUNT] = { [THREAD_STATE_unknown] = "",
#define X(id) [THREAD_STATE_##id] = #id,
						       THREAD_STATE_LIST(X)
#undef X
};

static const char BETWEEN[] = ": ";

uint32_t thread_state_string(struct session *session, enum thread_state state, const char *call)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "%s%s%s", names[state], call ? BETWEEN : "",
			   call ? call : "");

	if (len < 0)
		return 0;
	return session_string(session, text,
			      (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

enum thread_state thread_state_of(const char *text, const char **ret_call)
{
	for (int i = THREAD_STATE_unknown + 1; i < THREAD_STATE_COUNT; i++) {
		size_t len = strlen(names[i]);

		if (strncmp(text, names[i], len) != 0)
			continue;
		*ret_call = text + len;
		if (!**ret_call)
			return (enum thread_state)i;
		if (!strncmp(*ret_call, BETWEEN, sizeof(BETWEEN) - 1)) {
			*ret_call += sizeof(BETWEEN) - 1;
			return (enum thread_state)i;
		}
	}
	*ret_call = "";
	return THREAD_STATE_unknown;
}
