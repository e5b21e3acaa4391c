/*
 * smi_dump FILE... - what the readers make of nvidia-smi files, as lines of
 * tab-separated text for check_smi.py: all files go into one session.
 */
#include <stdio.h>

#include "base/own.h"
#include "read/reader.h"

static void show_sample(const struct session *session, const struct sample *sample)
{
	const struct lane *lane = &session->lanes.at[sample->lane];

	printf("sample\t%u\t%u\t%lld\t%lld", lane->source, lane->device,
	       lane->process == SESSION_NONE ? -1LL
					     : (long long)session->processes.at[lane->process].pid,
	       (long long)sample->time_ns);
	for (int i = 0; i < METRIC_COUNT; i++) {
		double value;

		if (sample_get(sample, (enum metric)i, &value))
			printf("\t%s=%.17g", metric_name((enum metric)i), value);
	}
	printf("\n");
}

static int take_sample(struct sink *sink, const struct sample *sample, struct err *err)
{
	(void)err;
	show_sample(sink->session, sample);
	return 0;
}

static void show_text(const struct session *session, uint32_t id)
{
	const char *text = session_text(session, id);

	for (; *text; text++)
		putchar((unsigned char)*text < 32 ? ' ' : *text);
}

static void show_env(const struct session *session, const struct env *env)
{
	printf("env\t%u\t%d\t", env->source, env->device == SESSION_NONE ? -1 : (int)env->device);
	show_text(session, env->key);
	printf("\t");
	show_text(session, env->value);
	printf("\n");
}

static void show_session(const struct session *session)
{
	for (size_t i = 0; i < session->sources.count; i++) {
		const struct source *s = &session->sources.at[i];
		const int64_t *loss = session->losses.at[i].count;

		printf("source\t%zu\t%s\t%lld\t%d\t%lld\t%lld\tseen=%lld\tdropped=%lld\t"
		       "malformed=%lld\ttruncated_bytes=%lld\n",
		       i, session_text(session, s->reader), (long long)s->interval_ns,
		       s->interval_assumed, (long long)s->first_ns, (long long)s->last_ns,
		       (long long)loss[LOSS_seen], (long long)loss[LOSS_dropped],
		       (long long)loss[LOSS_malformed], (long long)loss[LOSS_truncated_bytes]);
	}
	for (size_t i = 0; i < session->devices.count; i++) {
		const struct device *d = &session->devices.at[i];

		printf("device\t%zu\t%lld\t%s\t%s\t%s\t%lld\t%lld.%lld\n", i, (long long)d->ordinal,
		       session_text(session, d->uuid), session_text(session, d->pci_bus),
		       session_text(session, d->name), (long long)d->memory_bytes,
		       (long long)d->cc_major, (long long)d->cc_minor);
	}
	for (size_t i = 0; i < session->processes.count; i++) {
		const struct process *p = &session->processes.at[i];

		printf("process\t%lld\t%s\t%s\t%s\n", (long long)p->pid,
		       session_text(session, p->type), session_text(session, p->name),
		       session_text(session, p->command));
	}
	for (size_t i = 0; i < session->envs.count; i++)
		show_env(session, &session->envs.at[i]);
	for (size_t i = 0; i < session->notes.count; i++)
		printf("note\t%s\n", session_text(session, session->notes.at[i].text));
	for (size_t i = 0; i < session->missing_columns.count; i++)
		printf("missing\t%s\n", session_text(session, session->missing_columns.at[i]));
}

int main(int argc, char **argv)
{
	static const struct sink_ops ops = { .sample = take_sample };
	OWN(session_freep) struct session *session = session_new();
	struct sink sink = { .ops = &ops, .session = session };

	for (int i = 1; i < argc; i++) {
		struct err err = { 0 };
		uint32_t source;

		if (reader_import(argv[i], &sink, &source, &err) < 0) {
			(void)fprintf(stderr, "%s\n", err.line);
			return 1;
		}
	}
	show_session(session);
	return 0;
}
