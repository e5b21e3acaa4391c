#include <string.h>

#include "base/i18n.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/terminal.h"
#include "collect/collector.h"
#include "collect/host.h"
#include "collect/probe.h"
#include "present/present_doctor.h"

struct doctor_args {
	bool json;
	bool probe;
	const char *python;
	const char *root;
	const char *lang;
	const char *color;
	const char *nvml;
};

static const struct opt doctor_opts[] = {
	OPT_FLAG(struct doctor_args, json, 'j', "json", N_("for programs: schema sonde.doctor/1")),
	OPT_FLAG(struct doctor_args, probe, 0, "probe",
		 N_("ask CUPTI itself, in a child that makes a CUDA context")),
	OPT_STRING(struct doctor_args, python, 0, "python", "FILE",
		   N_("the interpreter whose torch counts; \"\" for none")),
	OPT_STRING(struct doctor_args, root, 0, "root", "DIR",
		   N_("read /proc, /sys, /dev below here: a node mounted in a pod")),
	OPT_STRING(struct doctor_args, lang, 'l', "lang", "en|zh", N_("the text's language")),
	OPT_STRING(struct doctor_args, color, 0, "color", "auto|always|never",
		   N_("auto: on a terminal, unless NO_COLOR is set")),
	OPT_STRING(struct doctor_args, nvml, 0, "nvml", "FILE", NULL),
	OPT_END,
};

enum { NVML_LIMIT_S = 20, PROBE_LIMIT_MS = 30000 };

/* Cards as the driver tells them; a failure is a finding, not an error. */
static int ask_cards(const struct doctor_args *args, struct scene *scene, struct snapshot *cards,
		     struct err *why, struct err *err)
{
	OWN(collector_closep) struct collector *collector = NULL;
	struct collector_opts opts = { .library = args->nvml,
				       .root = args->root,
				       .groups = COLLECT_FAST | COLLECT_MEMORY | COLLECT_HEALTH |
						 COLLECT_GPM | COLLECT_PROCESSES,
				       .deadline_ns = (int64_t)NVML_LIMIT_S * 1000000000,
				       .wake = true };

	if (collector_open(&opts, &collector, err) < 0)
		return err->code;
	if (collector_take(collector, cards, why) >= 0) {
		scene->cards = cards;
		return 0;
	}
	scene->nvml_status = collector_status(collector);
	scene->nvml_hung = collector_state(collector) == COLLECTOR_HUNG ||
			   collector_state(collector) == COLLECTOR_ABANDONED;
	scene->nvml_error = why->line;
	return 0;
}

static void run_probe(struct scene *scene, struct probe *probe, struct err *why)
{
	const char *cupti = check_cupti(scene);

	scene->probe = probe;
	if (!cupti)
		(void)err_set(why, ERR_MISSING, "no libcupti to ask");
	else if (probe_run(cupti, PROBE_LIMIT_MS, probe, why) >= 0 && *probe->missing)
		(void)err_set(why, ERR_MISSING, "missing: %s", probe->missing);
	scene->probe_error = why->code ? why->line : NULL;
}

static int doctor(const struct doctor_args *args, struct buf *out, struct err *err)
{
	struct host_opts opts = { .root = args->root, .python = args->python };
	OWN(host_freep) struct host *host = NULL;
	struct err nvml_why = { 0 }, probe_why = { 0 };
	struct present_style style = terminal_style(args->color);
	struct snapshot cards = { 0 };
	struct checkup checkup = { 0 };
	struct scene scene = { 0 };
	struct probe probe;
	int status = ask_cards(args, &scene, &cards, &nvml_why, err);

	if (status < 0)
		return status;
	probe_none(&probe);
	host = host_read(&opts);
	scene.host = host;
	if (args->probe)
		run_probe(&scene, &probe, &probe_why);
	checks_run(&scene, &checkup);
	if (args->json)
		present_doctor_json(&scene, &checkup, out);
	else
		present_doctor(&scene, &checkup, &style, out);
	status = checkup_is_fine(&checkup) ? 0 : 1;
	checkup_done(&checkup);
	snapshot_done(&cards);
	return status;
}

static int doctor_run(const void *arguments, struct err *err)
{
	const struct doctor_args *args = arguments;
	struct buf out = { 0 };
	int status = terminal_language(args->lang, args->json, err);

	if (status == 0)
		status = doctor(args, &out, err);
	if (status >= 0 && cmd_print(&out, err) < 0)
		status = err->code;
	buf_done(&out);
	return status;
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = N_("Say what can be measured here, why not, and the line that mends it"),
	.description =
		N_("Looks at the driver, the cards, this process's rights, the container or\n"
		   "job around it, and the software, and names for each thing that is\n"
		   "missing what it costs and the least that mends it, as it is typed here.\n"
		   "Changes nothing."),
	.examples = "  sonde doctor\n"
		    "  sonde doctor --probe\n"
		    "  sonde doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .why'\n"
		    "  sonde doctor --python ~/venv/bin/python",
	.opts = doctor_opts,
	.args_size = sizeof(struct doctor_args),
	.run = doctor_run,
};
