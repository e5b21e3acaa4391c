/* Identity and clocks. */
#include <criterion/criterion.h>

#include "model/event.h"
#include "model/session.h"

Test(session, one_ordinal_in_two_files_is_two_devices)
{
	OWN(session_freep) struct session *session = session_new();
	struct device a = { .source = session_source(session, "kineto", "a"), .ordinal = 0 };
	struct device b = { .source = session_source(session, "kineto", "b"), .ordinal = 0 };

	cr_assert_neq(session_device(session, &a), session_device(session, &b));
	cr_assert_eq(session_device(session, &a), 0);
}

Test(session, a_part_of_a_device_is_another_device)
{
	OWN(session_freep) struct session *session = session_new();
	struct device whole = { .scope = DEVICE_OF_SMI, .ordinal = 0 };
	struct device part = whole, other = whole;
	uint32_t first = session_device(session, &whole), second;

	part.part = intern_text(session->strings, "MIG 0");
	other.part = intern_text(session->strings, "MIG 1");
	second = session_device(session, &part);
	cr_assert_neq(second, first);
	cr_assert_eq(session_device(session, &part), second);
	cr_assert_neq(session_device(session, &other), second);
	cr_assert_eq(session_device(session, &whole), first);
	/* A UUID of its own says the same without the number. */
	part.uuid = intern_text(session->strings, "MIG-1");
	cr_assert_eq(session_device(session, &part), second);
	part.part = 0;
	cr_assert_eq(session_device(session, &part), second);
}

Test(session, a_uuid_joins_and_a_contradiction_parts)
{
	OWN(session_freep) struct session *session = session_new();
	struct device index = { .scope = DEVICE_OF_SMI, .ordinal = 0 };
	struct device named = index, other = index;
	uint32_t first = session_device(session, &index);

	named.uuid = intern_text(session->strings, "GPU-1");
	named.source = 1;
	cr_assert_eq(session_device(session, &named), first);
	other.uuid = intern_text(session->strings, "GPU-2");
	cr_assert_neq(session_device(session, &other), first);
	named.scope = DEVICE_OF_SOURCE;
	named.ordinal = 5;
	cr_assert_eq(session_device(session, &named), first);
}

Test(session, lanes_and_keys_are_found_again)
{
	OWN(session_freep) struct session *session = session_new();
	struct kernel_key key = { .name = 1, .grid = { 4, 1, 1 }, .block = { 32, 1, 1 } };
	struct lane lane = { .kind = LANE_STREAM, .context = 1, .stream = 7 };
	uint32_t lane_id = session_lane(session, &lane);
	uint32_t key_id = session_key(session, &key);

	lane.stream = 8;
	cr_assert_neq(session_lane(session, &lane), lane_id);
	lane.stream = 7;
	lane.name = 3;
	cr_assert_eq(session_lane(session, &lane), lane_id);
	cr_assert_eq(session->lanes.at[lane_id].name, 3);
	key.registers = 40;
	cr_assert_eq(session_key(session, &key), key_id);
	key.grid[2] = 2;
	cr_assert_neq(session_key(session, &key), key_id);
}

Test(session, sources_with_utc_share_a_clock_and_others_start_at_their_own_zero)
{
	OWN(session_freep) struct session *session = session_new();
	uint32_t a = session_source(session, "kineto", "a");
	uint32_t b = session_source(session, "kineto", "b");
	uint32_t c = session_source(session, "smi_dmon", "c");

	session->sources.at[a].has_utc = session->sources.at[b].has_utc = true;
	session->sources.at[a].utc_offset_ns = 1790000000000000000;
	session->sources.at[b].utc_offset_ns = 1790000000000000500;
	session->sources.at[a].first_ns = session->sources.at[b].first_ns = 100;
	session->sources.at[a].last_ns = session->sources.at[b].last_ns = 900;
	session->sources.at[c].first_ns = session->sources.at[c].last_ns = 42;
	session_settle(session);
	cr_assert_eq(session_time(session, a, 100), 0);
	cr_assert_eq(session_time(session, b, 100), 500);
	cr_assert_eq(session_time(session, c, 43), 1);
	cr_assert_eq(session_time(session, a, INT64_MAX), INT64_MAX - 100);
}
