#include "present/present_doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/i18n.h"
#include "base/json.h"

static void put_text(struct json *json, const char *key, const char *value)
{
	if (value && *value)
		json_text(json, key, value);
}

static void put_truth(struct json *json, const char *key, enum truth truth)
{
	if (truth != TRUTH_UNKNOWN)
		json_bool(json, key, truth == TRUTH_YES);
}

static void put_hex(struct json *json, const char *key, uint64_t bits)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)bits);
	json_text(json, key, text);
}

static void put_host(struct json *json, const struct host *host)
{
	const struct host_rights *rights = &host->rights;

	json_object(json, "host");
	json_text(json, "runtime", runtime_name(host->runtime));
	json_bool(json, "pod", host->pod);
	json_bool(json, "slurm", host->slurm);
	put_text(json, "slurm_job", host->slurm_job);
	json_bool(json, "wsl", host->wsl);
	json_bool(json, "gvisor", host->gvisor);
	put_text(json, "virtual_machine", host->machine);
	put_text(json, "jetson", host->jetson);
	put_text(json, "kernel", host->kernel);
	if (rights->uid >= 0)
		json_i64(json, "uid", rights->uid);
	if (rights->caps_known == TRUTH_YES) {
		put_hex(json, "caps_effective", rights->caps_effective);
		put_hex(json, "caps_bounding", rights->caps_bounding);
	}
	if (rights->seccomp >= 0)
		json_i64(json, "seccomp", rights->seccomp);
	put_truth(json, "no_new_privs", rights->no_new_privs);
	put_truth(json, "first_pid_namespace", rights->first_pid_namespace);
	put_truth(json, "first_user_namespace", rights->first_user_namespace);
	if (host->dmesg_restrict >= 0)
		json_i64(json, "dmesg_restrict", host->dmesg_restrict);
	if (host->perf_paranoid > -100)
		json_i64(json, "perf_event_paranoid", host->perf_paranoid);
	put_text(json, "visible_devices", host->visible_devices);
	put_text(json, "driver_capabilities", host->driver_capabilities);
	json_bool(json, "hami", host->hami.present);
	put_text(json, "mps", host->mps_pipe);
	json_end(json);
}

static void put_driver(struct json *json, const struct scene *scene)
{
	const struct host *host = scene->host;

	json_object(json, "driver");
	put_text(json, "module", host->driver);
	put_truth(json, "open_module", host->driver_open);
	put_truth(json, "counters_admin_only", host->counters_admin);
	put_text(json, "libnvidia_ml", host->libnvidia_ml.path);
	put_text(json, "libcuda", host->libcuda.path);
	if (scene->cards) {
		put_text(json, "version", scene->cards->driver);
		put_text(json, "cuda", scene->cards->cuda);
		put_text(json, "nvml", scene->cards->nvml);
		put_text(json, "library", scene->cards->library);
		put_text(json, "wrapper", scene->cards->wrapper);
	} else {
		if (scene->nvml_status)
			json_i64(json, "nvml_status", scene->nvml_status);
		put_text(json, "error", scene->nvml_error);
	}
	json_end(json);
}

static void put_cards(struct json *json, const struct snapshot *cards)
{
	json_array(json, "cards");
	for (size_t i = 0; cards && i < cards->boards.count; i++) {
		const struct board *board = &cards->boards.at[i];
		char cc[32];

		json_object(json, NULL);
		json_i64(json, "index", board->index);
		put_text(json, "uuid", board->uuid);
		put_text(json, "name", board->name);
		put_text(json, "pci_bus", board->pci_bus);
		put_text(json, "mig_profile", board->mig_profile);
		if (board->parent >= 0 && (size_t)board->parent < cards->boards.count)
			json_text(json, "parent", cards->boards.at[board->parent].uuid);
		(void)snprintf(cc, sizeof(cc), "%d.%d", board->cc_major, board->cc_minor);
		if (board->cc_major > 0)
			json_text(json, "compute_capability", cc);
		if (board->mig_mode >= 0)
			json_bool(json, "mig", board->mig_mode == 1);
		if (board->virtualization >= 0)
			json_i64(json, "virtualization", board->virtualization);
		json_bool(json, "gpm", board->gpm);
		json_bool(json, "lost", board->state == BOARD_LOST);
		json_end(json);
	}
	json_end(json);
}

/* Cards as the bus and the driver's /proc list them, asked or not. */
static void put_pci(struct json *json, const struct host *host)
{
	json_array(json, "pci");
	for (size_t i = 0; i < host->cards.count; i++) {
		const struct host_card *card = &host->cards.at[i];

		json_object(json, NULL);
		json_text(json, "bus", card->bus);
		put_text(json, "driver", card->driver);
		put_text(json, "model", card->model);
		put_text(json, "uuid", card->uuid);
		put_text(json, "runtime_state", card->runtime_state);
		if (card->minor >= 0)
			json_i64(json, "minor", card->minor);
		if (card->link_lanes)
			json_i64(json, "lanes", card->link_lanes);
		if (card->link_max_lanes)
			json_i64(json, "lanes_max", card->link_max_lanes);
		json_end(json);
	}
	json_end(json);
}

static void put_software(struct json *json, const struct host *host)
{
	json_array(json, "toolkits");
	for (size_t i = 0; i < host->toolkits.count; i++) {
		json_object(json, NULL);
		json_text(json, "path", host->toolkits.at[i].path);
		json_text(json, "version", host->toolkits.at[i].version);
		json_bool(json, "nvcc", host->toolkits.at[i].nvcc);
		json_end(json);
	}
	json_end(json);
	json_array(json, "cupti");
	for (size_t i = 0; i < host->cuptis.count; i++) {
		json_object(json, NULL);
		json_text(json, "path", host->cuptis.at[i].path);
		put_text(json, "version", host->cuptis.at[i].version);
		json_i64(json, "cuda_major", host->cuptis.at[i].major);
		json_text(json, "origin", host->cuptis.at[i].origin);
		json_end(json);
	}
	json_end(json);
	if (host->python.asked == TRUTH_YES) {
		json_object(json, "python");
		put_text(json, "interpreter", host->python.interpreter);
		put_text(json, "version", host->python.version);
		put_text(json, "torch", host->python.torch);
		put_text(json, "torch_cuda", host->python.torch_cuda);
		json_end(json);
	}
	json_array(json, "processes");
	for (size_t i = 0; i < host->processes.count; i++) {
		json_object(json, NULL);
		json_text(json, "role", role_name(host->processes.at[i].role));
		json_i64(json, "pid", host->processes.at[i].pid);
		json_text(json, "command", host->processes.at[i].command);
		json_end(json);
	}
	json_end(json);
}

static void put_probe(struct json *json, const struct scene *scene)
{
	const struct probe *probe = scene->probe;
	const struct {
		const char *name;
		int result;
	} results[] = {
		{ "cuda_init", probe->cuda_init },     { "cuda_context", probe->cuda_context },
		{ "activity", probe->activity },       { "counters", probe->counters },
		{ "pc_sampling", probe->pc_sampling }, { "pm_sampling", probe->pm_sampling },
	};

	json_object(json, "probe");
	put_text(json, "chip", probe->chip);
	put_text(json, "missing", probe->missing);
	put_text(json, "error", scene->probe_error);
	if (probe->cupti_version)
		json_i64(json, "cupti_version", probe->cupti_version);
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		if (results[i].result != PROBE_NOT_TRIED)
			json_i64(json, results[i].name, results[i].result);
	}
	json_end(json);
}

static void put_mends(struct json *json, const struct diagnosis *diagnosis)
{
	json_array(json, "mend");
	for (size_t i = 0; i < diagnosis->mends.count; i++) {
		const char *lines = diagnosis->mends.at[i].lines;

		json_object(json, NULL);
		json_text(json, "what", diagnosis->mends.at[i].what);
		json_array(json, "lines");
		while (lines && *lines) {
			size_t len = strcspn(lines, "\n");

			json_str(json, NULL, (struct str){ lines, len });
			lines += len + (lines[len] == '\n');
		}
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

void present_doctor_json(const struct scene *scene, const struct checkup *checkup, struct buf *out)
{
	struct json json = { .out = out };

	json_object(&json, NULL);
	json_text(&json, "schema", "sonde.doctor/1");
	json_text(&json, "place", place_name(checkup->place));
	json_bool(&json, "fine", checkup_is_fine(checkup));
	json_object(&json, "abilities");
	for (int state = CHECK_UNKNOWN; state <= CHECK_NO; state++)
		json_i64(&json, check_state_name((enum check_state)state),
			 (int64_t)checkup->counts[state]);
	json_end(&json);
	json_i64(&json, "faults", (int64_t)checkup->faults);
	json_array(&json, "checks");
	for (size_t i = 0; i < checkup->at.count; i++) {
		const struct diagnosis *diagnosis = &checkup->at.at[i];

		json_object(&json, NULL);
		json_text(&json, "id", diagnosis->id);
		json_text(&json, "title", _(diagnosis->title));
		json_bool(&json, "ability", diagnosis->ability);
		json_text(&json, "state", check_state_name(diagnosis->state));
		json_text(&json, "why", diagnosis->why);
		put_text(&json, "costs", diagnosis->costs);
		put_mends(&json, diagnosis);
		json_end(&json);
	}
	json_end(&json);
	put_host(&json, scene->host);
	put_driver(&json, scene);
	put_cards(&json, scene->cards);
	put_pci(&json, scene->host);
	put_software(&json, scene->host);
	if (scene->probe)
		put_probe(&json, scene);
	json_end(&json);
	buf_char(out, '\n');
}
