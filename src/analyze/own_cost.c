/*
 * What recording cost, as the recording itself measured it and wrote it into rows
 * of the environment, "name=number;name=number".
 */
#include "analyze/timeline.h"

#include "base/str.h"

/* The number of that name; FACT_UNKNOWN. */
static int64_t number_in(const char *text, const char *name)
{
	struct str rest = str_of(text);

	while (rest.at) {
		struct str value = str_cut(&rest, ';');
		struct str word = str_cut(&value, '=');
		int64_t number;

		if (str_is(word, name))
			return value.at && str_to_i64(value, &number) ? number : FACT_UNKNOWN;
	}
	return FACT_UNKNOWN;
}

static void take_pc(struct facts *facts, uint32_t source, const char *text)
{
	struct pc_sampling_fact fact = { .source = source };

	fact.covered_ns = number_in(text, "covered_ns");
	fact.span_ns = number_in(text, "span_ns");
	fact.period = number_in(text, "period");
	fact.samples = number_in(text, "samples");
	fact.dropped = number_in(text, "dropped");
	fact.other_kernels = number_in(text, "other");
	if (fact.covered_ns >= 0 && fact.span_ns >= fact.covered_ns)
		*VEC_ADD(&facts->pc_samplings) = fact;
}

static void take_calibration(struct facts *facts, uint32_t source, const char *text)
{
	static const char *const names[2][3] = { { "ps_low", "ps", "ps_high" },
						 { "ppm_low", "ppm", "ppm_high" } };
	struct calibration_fact fact = { .source = source };

	fact.windows = number_in(text, "windows");
	fact.launches = number_in(text, "launches");
	for (size_t i = 0; i < 3; i++) {
		int64_t ps = number_in(text, names[0][i]), ppm = number_in(text, names[1][i]);

		if (ps == FACT_UNKNOWN || ppm == FACT_UNKNOWN)
			return;
		fact.launch_ns[i] = (double)ps / 1e3;
		fact.share[i] = (double)ppm / 1e6;
	}
	if (fact.windows > 0 && fact.launches > 0)
		*VEC_ADD(&facts->calibrations) = fact;
}

static void take_callbacks(struct facts *facts, uint32_t source, const char *text)
{
	struct callback_fact fact = { .source = source };

	fact.count = number_in(text, "callbacks");
	fact.sum_ns = number_in(text, "ns");
	if (fact.count > 0 && fact.sum_ns >= 0)
		*VEC_ADD(&facts->callbacks) = fact;
}

static void take_recorder(struct facts *facts, const char *text)
{
	struct recorder_fact fact = { .wall_ns = number_in(text, "wall_ns"),
				      .cpu_ns = number_in(text, "cpu_ns"),
				      .cards_cpu_ns = number_in(text, "cards_cpu_ns") };

	if (fact.wall_ns > 0 && fact.cards_cpu_ns >= 0 && fact.cpu_ns >= fact.cards_cpu_ns)
		facts->recorder = fact;
}

void own_cost_facts(const struct session *session, struct facts *facts)
{
	for (size_t i = 0; i < session->envs.count; i++) {
		const struct env *env = &session->envs.at[i];
		const char *key = session_text(session, env->key);

		if (!strcmp(key, "pc_sampling_cost"))
			take_pc(facts, env->source, session_text(session, env->value));
		else if (!strcmp(key, "calibration"))
			take_calibration(facts, env->source, session_text(session, env->value));
		else if (!strcmp(key, "callback_cost"))
			take_callbacks(facts, env->source, session_text(session, env->value));
		else if (!strcmp(key, "recorder_cost"))
			take_recorder(facts, session_text(session, env->value));
	}
}
