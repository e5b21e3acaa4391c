#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "collect/child_text.h"
#include "collect/host.h"
#include "know/compat.h"
#include "rules/check.h"

/* An invented machine in a folder of its own. */
static char root[] = "/tmp/sonde-doctor-XXXXXX";

static void make_folders(const char *path)
{
	char part[512];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%s%.*s", root, (int)(slash - path), path);
		(void)mkdir(part, 0700);
	}
}

static void put(const char *path, const char *text)
{
	char whole[512];
	FILE *file;

	make_folders(path);
	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	file = fopen(whole, "we");
	cr_assert_not_null(file, "%s", whole);
	cr_assert(fputs(text, file) >= 0);
	cr_assert_eq(fclose(file), 0);
}

static void put_link(const char *target, const char *path)
{
	char whole[512];

	make_folders(path);
	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	cr_assert_eq(symlink(target, whole), 0, "%s", whole);
}

static void start(void)
{
	cr_assert_not_null(mkdtemp(root));
	put("/proc/self/status", "Uid:\t1000\t1000\nCapEff:\t0\nCapBnd:\t0\nSeccomp:\t0\n");
	put_link("pid:[4026531836]", "/proc/self/ns/pid");
	put_link("user:[4026531837]", "/proc/self/ns/user");
}

static void stop(void)
{
	const char *const argv[] = { "rm", "-rf", root, NULL };
	struct buf out = { 0 };

	(void)child_program(argv, 10000, &out, NULL);
	buf_done(&out);
}

static struct host *look(char *const *variables, int (*try_open)(const char *path, int flags))
{
	static char *none[] = { NULL };
	struct host_opts opts = { .root = root,
				  .variables = variables ? variables : none,
				  .try_open = try_open };

	return host_read(&opts);
}

static const struct diagnosis *diagnosis_of(const struct checkup *checkup, const char *id)
{
	for (size_t i = 0; i < checkup->at.count; i++) {
		if (!strcmp(checkup->at.at[i].id, id))
			return &checkup->at.at[i];
	}
	cr_assert_fail("no check %s", id);
	return NULL;
}

static int refuse_with;

static int refuse(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return refuse_with;
}

static void expect_device(int error, const char *why, const char *lines)
{
	struct host *host;
	struct checkup checkup;
	struct scene scene = { 0 };
	const struct diagnosis *diagnosis;

	refuse_with = error;
	scene.host = host = look(NULL, refuse);
	checks_run(&scene, &checkup);
	diagnosis = diagnosis_of(&checkup, "devices");
	cr_assert_eq(diagnosis->state, CHECK_NO);
	cr_assert_not_null(strstr(diagnosis->why, why), "%s", diagnosis->why);
	cr_assert_gt(diagnosis->mends.count, 0);
	cr_assert_not_null(strstr(diagnosis->mends.at[0].lines, lines));
	checkup_done(&checkup);
	host_free(host);
}

TestSuite(doctor, .init = start, .fini = stop);

Test(doctor, the_errno_of_a_device_tells_a_lost_rule_from_a_missing_right)
{
	put("/dev/nvidiactl", "");
	put("/dev/nvidia0", "");
	put("/.dockerenv", "");
	put("/proc/self/mountinfo", "9 8 0:9 / / rw - overlay overlay rw\n");
	expect_device(EPERM, "device rule is gone", "create-dev-char-symlinks");
	expect_device(EACCES, "Permission denied", "--user 0");
}

Test(doctor, a_virtual_machine_made_from_an_image_is_no_container)
{
	struct host *host;

	put("/.dockerenv", "");
	put("/proc/self/mountinfo", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n");
	put("/proc/cpuinfo", "flags\t\t: fpu hypervisor lm\n");
	host = look(NULL, NULL);
	cr_assert_eq(host->runtime, RUNTIME_NONE);
	cr_assert_eq(place_of(host), PLACE_VM);
	host_free(host);
	/* The same marks in a container that shares the host's process numbers. */
	put("/proc/self/mountinfo", "9 8 0:9 / / rw - overlay overlay rw\n");
	host = look(NULL, NULL);
	cr_assert_eq(host->runtime, RUNTIME_DOCKER);
	host_free(host);
}

Test(doctor, runtimes_are_told_by_cgroup_environment_and_root)
{
	static const struct {
		const char *cgroup, *variable;
		enum runtime runtime;
		enum place place;
	} cases[] = {
		{ "0::/docker/4f5a", NULL, RUNTIME_DOCKER, PLACE_DOCKER },
		{ "0::/machine.slice/libpod-4f.scope", NULL, RUNTIME_PODMAN, PLACE_PODMAN },
		{ "0::/kubepods/pod1/cri-containerd-4f", NULL, RUNTIME_CONTAINERD, PLACE_POD },
		{ "0::/kubepods/pod1/crio-4f", NULL, RUNTIME_CRIO, PLACE_POD },
		{ "0::/", "container=lxc", RUNTIME_LXC, PLACE_CONTAINER },
		{ "0::/", "APPTAINER_CONTAINER=/x.sif", RUNTIME_APPTAINER, PLACE_CONTAINER },
		{ "0::/", "SLURM_JOB_ID=1", RUNTIME_NONE, PLACE_SLURM },
		{ "0::/", NULL, RUNTIME_NONE, PLACE_BARE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char variable[64];
		char *variables[] = { NULL, NULL };
		struct host *host;

		(void)snprintf(variable, sizeof(variable), "%s",
			       cases[i].variable ? cases[i].variable : "");
		variables[0] = cases[i].variable ? variable : NULL;
		put("/proc/1/cgroup", cases[i].cgroup);
		host = look(variables, NULL);
		cr_assert_eq(host->runtime, cases[i].runtime, "case %zu: %s", i,
			     runtime_name(host->runtime));
		cr_assert_eq(place_of(host), cases[i].place, "case %zu", i);
		host_free(host);
	}
}

Test(doctor, a_right_of_another_user_namespace_is_none)
{
	struct host *host;

	put("/proc/self/status", "Uid:\t0\t0\nCapEff:\t1ffffffffff\nCapBnd:\t1ffffffffff\n");
	host = look(NULL, NULL);
	cr_assert_eq(host_has_cap(host, CAP_BIT_SYS_ADMIN), TRUTH_YES);
	host->rights.first_user_namespace = TRUTH_NO;
	cr_assert_eq(host_has_cap(host, CAP_BIT_SYS_ADMIN), TRUTH_NO);
	host->rights.caps_known = TRUTH_UNKNOWN;
	cr_assert_eq(host_has_cap(host, CAP_BIT_SYS_ADMIN), TRUTH_UNKNOWN);
	host_free(host);
}

Test(doctor, counters_need_perfmon_from_565_on_and_sys_admin_before)
{
	static const struct {
		const char *version, *caps;
		enum check_state state;
	} cases[] = {
		{ "565.57.01", "4000000000", CHECK_OK }, { "560.35.05", "4000000000", CHECK_NO },
		{ "560.35.05", "200000", CHECK_OK },     { "580.159.04", "200000", CHECK_OK },
		{ "580.159.04", "400000000", CHECK_NO }, /* SYSLOG */
	};

	put("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
	put("/usr/local/cuda-12.6/lib64/libcupti.so.12", "");
	put("/usr/local/cuda-12.6/lib64/libnvperf_host.so", "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct snapshot cards = { 0 };
		struct board *board = VEC_ADD(&cards.boards);
		struct checkup checkup;
		struct scene scene = { .cards = &cards };
		char status[128];
		struct host *host;

		*board = (struct board){ .parent = -1, .cc_major = 9 };
		(void)snprintf(cards.driver, sizeof(cards.driver), "%s", cases[i].version);
		(void)snprintf(status, sizeof(status), "Uid:\t0\nCapEff:\t%s\nCapBnd:\t%s\n",
			       cases[i].caps, cases[i].caps);
		put("/proc/self/status", status);
		scene.host = host = look(NULL, NULL);
		checks_run(&scene, &checkup);
		cr_assert_eq(diagnosis_of(&checkup, "counters")->state, cases[i].state,
			     "case %zu: %s", i, diagnosis_of(&checkup, "counters")->why);
		checkup_done(&checkup);
		snapshot_done(&cards);
		host_free(host);
	}
}

Test(doctor, what_cupti_said_counts_more_than_what_rights_suggest)
{
	struct snapshot cards = { 0 };
	struct probe probe;
	struct checkup checkup;
	struct scene scene = { .cards = &cards, .probe = &probe };
	struct host *host;

	put("/usr/local/cuda-13.0/lib64/libcupti.so.13", "");
	put("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n");
	*VEC_ADD(&cards.boards) = (struct board){ .parent = -1, .cc_major = 9 };
	probe_none(&probe);
	probe.activity = 0;
	probe.counters = 35;
	probe.pc_sampling = 26;
	probe.pm_sampling = 41;
	scene.host = host = look(NULL, NULL);
	checks_run(&scene, &checkup);
	cr_assert_eq(diagnosis_of(&checkup, "tracing")->state, CHECK_OK);
	cr_assert_eq(diagnosis_of(&checkup, "counters")->state, CHECK_NO);
	cr_assert_not_null(strstr(diagnosis_of(&checkup, "pc_sampling")->why, "holds"));
	cr_assert_not_null(strstr(diagnosis_of(&checkup, "pm_sampling")->why, "CONFIDENTIAL"));
	checkup_done(&checkup);
	snapshot_done(&cards);
	host_free(host);
}

Test(doctor, an_empty_tree_is_unknown_not_fine)
{
	struct host *host = look(NULL, NULL);
	struct scene scene = { .host = host };
	struct checkup checkup;

	checks_run(&scene, &checkup);
	cr_assert_not(checkup_is_fine(&checkup));
	cr_assert_eq(diagnosis_of(&checkup, "osrt")->state, CHECK_UNKNOWN);
	cr_assert_eq(diagnosis_of(&checkup, "driver")->state, CHECK_UNKNOWN);
	checkup_done(&checkup);
	host_free(host);
}

Test(doctor, versions_compare_by_number)
{
	cr_assert_lt(version_compare("550.54.15", "565"), 0);
	cr_assert_gt(version_compare("1000.1", "999.9"), 0);
	cr_assert_eq(version_compare("580", "580.159.04"), 0);
	cr_assert_gt(version_compare("570.124.06", "570.99"), 0);
}

Test(compat, wheels_and_toolkits_follow_the_tables)
{
	struct compat_toolkit toolkit;
	char floor[24];

	cr_assert_eq(compat_torch("2.8.0+cu128", "12.8", 12, 0), COMPAT_YES);
	cr_assert_eq(compat_torch("2.8.0+cu126", "12.6", 12, 0), COMPAT_NO);
	cr_assert_eq(compat_torch("2.14.0", "13.0", 7, 0), COMPAT_NO);   /* see 2.12 */
	cr_assert_eq(compat_torch("2.12.1", "13.0", 12, 1), COMPAT_YES); /* same major, and PTX */
	cr_assert_eq(compat_torch("2.12.1", "13.0", 8, 9), COMPAT_YES);
	cr_assert_eq(compat_torch("2.6.0", "12.4", 9, 0), COMPAT_UNKNOWN);
	cr_assert_eq(compat_torch("nightly", "12.8", 9, 0), COMPAT_UNKNOWN);
	cr_assert(compat_toolkit("12.8", &toolkit));
	cr_assert_str_eq(toolkit.driver, "570.26");
	cr_assert_eq(toolkit.sm_max, 120);
	cr_assert_not(compat_toolkit("12", &toolkit) && strstr(toolkit.name, "floor"));
	cr_assert_not(compat_toolkit("99.1", &toolkit));
	compat_floor(12, floor);
	cr_assert_str_eq(floor, "525.60.13");
	compat_floor(13, floor);
	cr_assert_str_eq(floor, "580");
	compat_floor(99, floor);
	cr_assert_str_eq(floor, "");
}

static void hang(int fd, void *arg)
{
	(void)arg;
	(void)dprintf(fd, "before\n");
	for (;;)
		(void)pause();
}

static void crash(int fd, void *arg)
{
	(void)arg;
	(void)dprintf(fd, "before\n");
	abort();
}

Test(child, what_hangs_or_crashes_costs_only_what_comes_after_it)
{
	struct buf out = { 0 };
	struct err err = { 0 };

	cr_assert_eq(child_text(hang, NULL, 50, &out, &err), ERR_BUSY);
	cr_assert_str_eq(out.at, "before\n");
	buf_clear(&out);
	cr_assert_eq(child_text(crash, NULL, 5000, &out, &err), ERR_IO, "%s", err.line);
	cr_assert_str_eq(out.at, "before\n");
	buf_clear(&out);
	cr_assert_eq(
		child_program((const char *const[]){ "/no/such/program", NULL }, 5000, &out, &err),
		ERR_IO);
	buf_done(&out);
}
