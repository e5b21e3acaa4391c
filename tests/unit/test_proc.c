/* Who a PID is, on invented machines. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <time.h>

#include "collect/host_load.h"
#include "collect/proc.h"
#include "proc_tree.h"

#define ID_A "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define ID_B "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define UID  "c1b2a390-0011-2233-4455-66778899aabb"

static struct proc_tree tree;

static void make_machine(void)
{
	tree_make(&tree);
	tree_file(&tree, "proc/stat",
		  "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 50 0 25 400 25 0 0 0 0 0\n"
		  "cpu1 50 0 25 400 25 0 0 0 0 0\nintr 1 2\nbtime 1700000000\n");
	tree_file(&tree, "etc/passwd",
		  "root:x:0:0:root:/root:/bin/sh\nana:x:1001:1001::/:/bin/sh\n");
}

static void remove_machine(void)
{
	tree_remove(&tree);
}

static struct procs *open_machine(void)
{
	struct procs *procs = NULL;
	struct err err = { 0 };

	cr_assert_eq(procs_open(tree.root, &procs, &err), 0, "%s", err.line);
	return procs;
}

TestSuite(proc, .init = make_machine, .fini = remove_machine);

Test(proc, a_process_has_user_command_and_cost)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_process(&tree, 42, "python3", 1001, 5000);
	tree_bytes(&tree, "proc/42/cmdline", "python3\0train.py\0--lr\0001e-3", 27);
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 42, &proc), PROC_OK);
	cr_assert_str_eq(proc.user, "ana");
	cr_assert_eq(proc.uid, 1001);
	cr_assert_str_eq(proc.comm, "python3");
	cr_assert_str_eq(proc.command, "python3 train.py --lr 1e-3");
	cr_assert_eq(proc.run_state, 'S');
	cr_assert_eq(proc.parent, 1);
	cr_assert_eq(proc.cpu_ns, 200 * (1000000000 / sysconf(_SC_CLK_TCK)));
	cr_assert_eq(proc.rss_bytes, 256 * sysconf(_SC_PAGESIZE));
	cr_assert_eq(proc.start_utc_ns,
		     1700000000000000000 + 5000 * (1000000000 / sysconf(_SC_CLK_TCK)));
	cr_assert_str_eq(proc.group.container_id, "");
	cr_assert_str_eq(proc.group.slurm_job, "");
}

Test(proc, a_user_without_a_name_is_a_number)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_process(&tree, 42, "x", 4711, 1);
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 42, &proc), PROC_OK);
	cr_assert_str_eq(proc.user, "4711");
	cr_assert_eq(procs_read(procs, 42, &proc), PROC_OK);
	cr_assert_str_eq(proc.user, "4711");
}

Test(proc, a_hostile_name_cannot_drive_the_terminal)
{
	OWN(procs_closep) struct procs *procs = NULL;
	static const char command[] = "a\33[2J\0b\nc\xff\xc2\x9b\xe7\x8c\xab";
	struct proc proc;

	tree_process(&tree, 7, "ev) S 1 (\33[31m\xc3", 0, 1);
	tree_bytes(&tree, "proc/7/cmdline", command, sizeof(command));
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 7, &proc), PROC_OK);
	cr_assert_str_eq(proc.comm, "ev) S 1 (?[31m?");
	cr_assert_str_eq(proc.command, "a?[2J b?c??\xe7\x8c\xab");
	cr_assert_eq(proc.run_state, 'S');
}

Test(proc, a_long_command_is_cut_between_characters)
{
	OWN(procs_closep) struct procs *procs = NULL;
	char command[3000];
	struct proc proc;

	for (size_t i = 0; i < sizeof(command); i += 3)
		memcpy(command + i, "\xe7\x8c\xab", 3);
	tree_process(&tree, 7, "x", 0, 1);
	tree_bytes(&tree, "proc/7/cmdline", command, sizeof(command));
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 7, &proc), PROC_OK);
	cr_assert_eq(strlen(proc.command), 510);
	cr_assert_null(strchr(proc.command, '?'));
}

Test(proc, the_dead_and_the_damaged_are_gone)
{
	OWN(procs_closep) struct procs *procs = open_machine();
	static const char *const damaged[] = { "",      "8",      "8 (",      "8 (x",
					       "8 (x)", "8 (x) ", "8 )x( S 1" };
	struct proc proc;

	cr_assert_eq(procs_read(procs, 8, &proc), PROC_GONE);
	cr_assert_eq(proc.pid, 8);
	cr_assert_eq(procs_read(procs, 0, &proc), PROC_GONE);
	cr_assert_eq(procs_read(procs, -1, &proc), PROC_GONE);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		tree_file(&tree, "proc/8/stat", damaged[i]);
		cr_assert_eq(procs_read(procs, 8, &proc), PROC_GONE, "%s", damaged[i]);
	}
}

Test(proc, links_in_place_of_files_are_not_followed)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_process(&tree, 9, "x", 0, 1);
	tree_link(&tree, "proc/9/cmdline", "/etc/passwd");
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_OK);
	cr_assert_str_eq(proc.command, "");
	tree_link(&tree, "proc/9/stat", "../42/stat");
	tree_process(&tree, 42, "y", 0, 1);
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_GONE);
}

Test(proc, what_is_stuck_in_the_kernel_is_not_asked_for_its_memory)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_process(&tree, 9, "x", 1001, 1);
	tree_file(&tree, "proc/9/stat",
		  "9 (stuck) D 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0 1 0\n");
	tree_file(&tree, "proc/9/cmdline", "secret");
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_OK);
	cr_assert_eq(proc.run_state, 'D');
	cr_assert_str_eq(proc.comm, "stuck");
	cr_assert_str_eq(proc.command, "");
	cr_assert_str_eq(proc.user, "ana");
}

Test(proc, in_a_namespace_of_its_own_an_open_device_is_the_proof)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;
	int64_t pids[4];

	tree_link(&tree, "proc/self/ns/pid", "pid:[4026532999]");
	tree_process(&tree, 9, "other", 0, 1);
	tree_link(&tree, "proc/9/fd/0", "/dev/null");
	tree_process(&tree, 10, "worker", 1001, 1);
	tree_link(&tree, "proc/10/fd/5", "/dev/nvidia0");
	procs = open_machine();
	cr_assert(procs_nested(procs));
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_FOREIGN);
	cr_assert_str_eq(proc.comm, "");
	cr_assert_eq(procs_read(procs, 40213, &proc), PROC_FOREIGN);
	cr_assert_eq(procs_read(procs, 10, &proc), PROC_OK);
	cr_assert_str_eq(proc.comm, "worker");
	cr_assert_eq(procs_with_gpu_open(procs, pids, 4), 1);
	cr_assert_eq(pids[0], 10);
}

Test(proc, the_first_namespace_needs_no_proof)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_link(&tree, "proc/self/ns/pid", "pid:[4026531836]");
	tree_process(&tree, 9, "other", 0, 1);
	procs = open_machine();
	cr_assert_not(procs_nested(procs));
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_OK);
}

Test(proc, a_pod_is_named_by_the_log_of_its_container)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_process(&tree, 9, "python", 0, 1);
	tree_file(&tree, "proc/9/cgroup",
		  "0::/kubepods.slice/kubepods-burstable.slice/"
		  "kubepods-burstable-podc1b2a390_0011_2233_4455_66778899aabb.slice/"
		  "cri-containerd-" ID_A ".scope\n");
	tree_file(&tree, "var/log/containers/train-0_team-a_main-" ID_A ".log", "");
	tree_file(&tree, "var/log/containers/nonsense.log", "");
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_OK);
	cr_assert_str_eq(proc.group.container_id, ID_A);
	cr_assert_str_eq(proc.group.runtime, "containerd");
	cr_assert_str_eq(proc.group.pod_uid, UID);
	cr_assert_str_eq(proc.pod, "train-0");
	cr_assert_str_eq(proc.namespace, "team-a");
	cr_assert_str_eq(proc.container, "main");
}

Test(proc, a_batch_job_is_found_in_the_environment_too)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct proc proc;

	tree_process(&tree, 9, "x", 0, 1);
	tree_bytes(&tree, "proc/9/environ", "A=1\0XSLURM_JOB_ID=5\0SLURM_JOB_ID=123\0", 37);
	tree_process(&tree, 10, "y", 0, 1);
	tree_bytes(&tree, "proc/10/environ", "SLURM_JOB_ID=; rm -rf\0", 22);
	procs = open_machine();
	cr_assert_eq(procs_read(procs, 9, &proc), PROC_OK);
	cr_assert_str_eq(proc.group.slurm_job, "123");
	cr_assert_eq(procs_read(procs, 10, &proc), PROC_OK);
	cr_assert_str_eq(proc.group.slurm_job, "");
}

Test(proc, this_machine_knows_this_process)
{
	OWN(procs_closep) struct procs *procs = NULL;
	struct err err = { 0 };
	struct proc proc;
	struct timespec now;

	cr_assert_eq(procs_open("", &procs, &err), 0, "%s", err.line);
	if (procs_nested(procs))
		return; /* without an NVIDIA device open there is no proof */
	cr_assert_eq(procs_read(procs, getpid(), &proc), PROC_OK);
	cr_assert_eq(proc.uid, geteuid());
	cr_assert(proc.rss_bytes > 0);
	cr_assert(*proc.command && *proc.comm);
	cr_assert_eq(proc.parent, getppid());
	(void)clock_gettime(CLOCK_REALTIME, &now);
	cr_assert(proc.start_utc_ns > 0 && proc.start_utc_ns / 1000000000 <= now.tv_sec + 1);
}

Test(proc, without_proc_there_is_a_clear_line)
{
	struct procs *procs = NULL;
	struct err err = { 0 };

	cr_assert_eq(procs_open("/no/such/root", &procs, &err), ERR_MISSING);
	cr_assert_str_eq(err.line, "/no/such/root/proc: No such file or directory");
	cr_assert_null(procs);
}

struct group_case {
	const char *text, *id, *runtime, *pod, *job;
};

Test(proc_group, the_paths_of_runtimes_are_known)
{
	static const struct group_case cases[] = {
		{ "0::/\n", "", "", "", "" },
		{ "0::/user.slice/user-1000.slice/session-2.scope\n", "", "", "", "" },
		{ "0::/system.slice/docker-" ID_A ".scope\n", ID_A, "docker", "", "" },
		{ "12:devices:/docker/" ID_A "\n11:cpu:/docker/" ID_A "\n", ID_A, "docker", "",
		  "" },
		{ "4:memory:/kubepods/burstable/pod" UID "/" ID_A "\n", ID_A, "", UID, "" },
		{ "0::/kubepods.slice/kubepods-podc1b2a390_0011_2233_4455_66778899aabb.slice/"
		  "crio-" ID_A ".scope\n",
		  ID_A, "crio", UID, "" },
		{ "0::/kubepods.slice/kubepods-podc1b2a390_0011_2233_4455_66778899aabb.slice/"
		  "crio-conmon-" ID_A ".scope\n",
		  "", "", UID, "" },
		{ "0::/system.slice/containerd.service/kubepods-burstable-pod"
		  "c1b2a390_0011_2233_4455_66778899aabb.slice:cri-containerd:" ID_A "\n",
		  ID_A, "containerd", UID, "" },
		{ "0::/machine.slice/libpod-" ID_B ".scope/container\n", ID_B, "podman", "", "" },
		{ "0::/machine.slice/libpod-conmon-" ID_B ".scope\n", "", "", "", "" },
		/* a cluster in a container: the innermost one runs the process */
		{ "0::/docker/" ID_B "/kubelet/kubepods/besteffort/pod" UID "/" ID_A "\n", ID_A, "",
		  UID, "" },
		/* static pods have a hash for a UID */
		{ "0::/kubepods/pod00112233445566778899aabbccddeeff/" ID_A "\n", ID_A, "",
		  "00112233445566778899aabbccddeeff", "" },
		{ "5:devices:/slurm/uid_1000/job_17/step_0/task_0\n", "", "", "", "17" },
		{ "0::/system.slice/slurmstepd.scope/job_18/step_batch/user/task_0\n", "", "", "",
		  "18" },
		{ "0::/home/job_99\n", "", "", "", "" },
		{ "1:name=systemd:/slurm/job_5\n0::/docker/" ID_A, ID_A, "docker", "", "5" },
		{ "garbage", "", "", "", "" },
		{ "::\n:::::\n/\n", "", "", "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct proc_group group;

		proc_group_parse(str_of(cases[i].text), &group);
		cr_assert_str_eq(group.container_id, cases[i].id, "%s", cases[i].text);
		cr_assert_str_eq(group.runtime, cases[i].runtime, "%s", cases[i].text);
		cr_assert_str_eq(group.pod_uid, cases[i].pod, "%s", cases[i].text);
		cr_assert_str_eq(group.slurm_job, cases[i].job, "%s", cases[i].text);
	}
}

Test(proc_group, other_names_of_logs_are_refused)
{
	static const char *const bad[] = {
		"",
		".log",
		"a_b_c-" ID_A,
		"a_b-" ID_A ".log",
		"_b_c-" ID_A ".log",
		"a__c-" ID_A ".log",
		"a_b_-" ID_A ".log",
		"a_b_c_d-" ID_A ".log",
		"a_b_c" ID_A ".log",
		"a_b_c-0" ID_A ".log",
	};
	struct str pod, namespace, container, id;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_assert_not(proc_log_name(str_of(bad[i]), &pod, &namespace, &container, &id),
			      "%s", bad[i]);
}

Test(proc, the_host_is_busy_for_a_share_of_its_time)
{
	struct host_load before, after, none = { 0 };
	double share = -1;

	tree_file(&tree, "proc/meminfo",
		  "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 400 kB\n");
	tree_file(&tree, "proc/loadavg", "1.25 0.50 0.10 2/300 999\n");
	host_load_read(tree.root, &before);
	cr_assert(before.has_cpu && before.has_memory && before.has_load);
	cr_assert_eq(before.cpus, 2);
	cr_assert_eq(before.mem_total_bytes, 1024000);
	cr_assert_eq(before.mem_available_bytes, 409600);
	cr_assert_float_eq(before.load_1m, 1.25, 1e-9);
	tree_file(&tree, "proc/stat", "cpu  150 0 75 850 75 0 0 0 0 0\n");
	host_load_read(tree.root, &after);
	cr_assert(host_load_busy(&before, &after, &share));
	cr_assert_float_eq(share, 0.5, 1e-9);
	cr_assert_not(host_load_busy(&after, &before, &share));
	cr_assert_not(host_load_busy(&none, &after, &share));
	host_load_read("/no/such/root", &after);
	cr_assert_not(after.has_cpu || after.has_memory || after.has_load);
}
