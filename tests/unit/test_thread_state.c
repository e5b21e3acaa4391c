/* What a thread is at, as text and back. */
#include "model/thread_state.h"

#include <criterion/criterion.h>

static void expect(const char *text, enum thread_state state, const char *call)
{
	const char *got = NULL;

	cr_assert_eq(thread_state_of(text, &got), state, "%s", text);
	cr_assert_str_eq(got, call);
}

Test(thread_state, every_state_comes_back_from_its_text)
{
	struct session *session = session_new();

	for (int i = THREAD_STATE_unknown + 1; i < THREAD_STATE_COUNT; i++) {
		enum thread_state state = (enum thread_state)i;

		expect(session_text(session, thread_state_string(session, state, NULL)), state, "");
		expect(session_text(session, thread_state_string(session, state, "futex")), state,
		       "futex");
	}
	session_free(session);
}

Test(thread_state, what_is_no_state_is_unknown)
{
	expect("", THREAD_STATE_unknown, "");
	expect("poll", THREAD_STATE_unknown, "");
	expect("waitingroom", THREAD_STATE_unknown, "");
	expect("waiting:futex", THREAD_STATE_unknown, "");
	expect("waiting: ", THREAD_STATE_waiting, "");
}
