/*
 * Where we run: container, pod, job, virtual machine. No mark is certain, so
 * several are looked for; the one that names a maker wins over one that only
 * says "a container".
 */
#include <string.h>

#include "base/str.h"
#include "collect/host_part.h"

static bool holds(const char *text, const char *needle)
{
	return text && strstr(text, needle);
}

/* The mount of "/" as mountinfo tells it: "ID PARENT DEV ROOT / ... - TYPE ...". */
static struct str root_mount(const char *mountinfo)
{
	struct str rest = mountinfo ? str_of(mountinfo) : (struct str){ 0 };
	struct str last = { 0 };

	while (rest.at && rest.len) {
		struct str line = str_cut(&rest, '\n'), words = line;

		for (int i = 0; i < 4; i++)
			(void)str_cut(&words, ' ');
		if (str_is(str_cut(&words, ' '), "/"))
			last = line; /* a later mount covers the earlier */
	}
	return last;
}

/* A root of its own block device in the first PID namespace is no container,
 * whatever files lie about: virtual machines get made from container images,
 * with their /.dockerenv. "ID PARENT DEV ROOT / OPTS ... - TYPE SOURCE OPTS" */
static bool is_whole_machine(const struct tree *tree, const char *root_line)
{
	struct str head = root_line ? str_of(root_line) : (struct str){ 0 };
	const char *source = root_line ? strstr(root_line, " - ") : NULL;

	for (int i = 0; i < 3; i++)
		(void)str_cut(&head, ' ');
	if (!source || !str_is(str_cut(&head, ' '), "/"))
		return false;
	source += 3;
	source += strcspn(source, " ");
	return !strncmp(source, " /dev/", 6) && host_first_namespace(tree, "pid") == TRUTH_YES;
}

static enum runtime by_words(const char *text)
{
	static const struct {
		const char *word;
		enum runtime runtime;
	} marks[] = {
		{ "/docker", RUNTIME_DOCKER },
		{ "docker-", RUNTIME_DOCKER },
		{ "libpod", RUNTIME_PODMAN },
		{ "/containers/storage", RUNTIME_PODMAN },
		{ "cri-containerd", RUNTIME_CONTAINERD },
		{ "io.containerd", RUNTIME_CONTAINERD },
		{ "crio-", RUNTIME_CRIO },
		{ "lxc.payload", RUNTIME_LXC },
		{ "/lxc/", RUNTIME_LXC },
	};

	for (size_t i = 0; text && i < sizeof(marks) / sizeof(*marks); i++) {
		if (strstr(text, marks[i].word))
			return marks[i].runtime;
	}
	return RUNTIME_NONE;
}

static enum runtime by_variable(const struct tree *tree)
{
	const char *container = tree_variable(tree, "container");

	if (tree_variable(tree, "APPTAINER_CONTAINER") ||
	    tree_variable(tree, "SINGULARITY_CONTAINER") || tree_has(tree, "/.singularity.d"))
		return RUNTIME_APPTAINER;
	if (tree_variable(tree, "ENROOT_ROOTFS") || tree_has(tree, "/etc/enroot/environ.d"))
		return RUNTIME_ENROOT;
	if (!container)
		return RUNTIME_NONE;
	if (!strcmp(container, "podman"))
		return RUNTIME_PODMAN;
	if (!strcmp(container, "lxc"))
		return RUNTIME_LXC;
	if (!strcmp(container, "systemd-nspawn"))
		return RUNTIME_NSPAWN;
	return RUNTIME_OTHER;
}

static enum runtime find_runtime(const struct tree *tree)
{
	const char *mounts = tree_text(tree, "/proc/self/mountinfo");
	struct str root = root_mount(mounts);
	const char *root_line = root.at ? arena_text(tree->arena, root.at, root.len) : NULL;
	enum runtime found;

	if (is_whole_machine(tree, root_line))
		return RUNTIME_NONE;
	if (tree_has(tree, "/run/.containerenv"))
		return RUNTIME_PODMAN;
	if (tree_has(tree, "/.dockerenv"))
		return RUNTIME_DOCKER;
	if ((found = by_variable(tree)) != RUNTIME_NONE && found != RUNTIME_OTHER)
		return found;
	if (by_words(tree_text(tree, "/proc/1/cgroup")) != RUNTIME_NONE)
		return by_words(tree_text(tree, "/proc/1/cgroup"));
	if (by_words(root_line) != RUNTIME_NONE)
		return by_words(root_line);
	/* Live systems have such a root too, but the first PID namespace. */
	if (found == RUNTIME_NONE && holds(root_line, " - overlay ") &&
	    host_first_namespace(tree, "pid") == TRUTH_NO)
		return RUNTIME_OTHER;
	return found;
}

static bool is_pod(const struct tree *tree)
{
	return tree_variable(tree, "KUBERNETES_SERVICE_HOST") ||
	       tree_has(tree, "/var/run/secrets/kubernetes.io") ||
	       tree_has(tree, "/run/secrets/kubernetes.io") ||
	       holds(tree_text(tree, "/proc/self/mountinfo"), "/kubelet/pods/") ||
	       holds(tree_text(tree, "/proc/1/cgroup"), "kubepods");
}

/* What DMI says of well-known hypervisors; else only that there is one. */
static const char *find_machine(const struct tree *tree)
{
	static const struct {
		const char *word, *name;
	} marks[] = {
		{ "VMware", "VMware" },
		{ "VirtualBox", "VirtualBox" },
		{ "QEMU", "QEMU/KVM" },
		{ "KVM", "KVM" },
		{ "Google", "Google Compute Engine" },
		{ "Amazon EC2", "Amazon EC2" },
		{ "Alibaba", "Alibaba Cloud" },
		{ "OpenStack", "OpenStack" },
		{ "Virtual Machine", "Hyper-V" },
		{ "Xen", "Xen" },
		{ "Tencent", "Tencent Cloud" },
	};
	const char *vendor = tree_line(tree, "/sys/class/dmi/id/sys_vendor");
	const char *product = tree_line(tree, "/sys/class/dmi/id/product_name");
	const char *flags = tree_value(tree, tree_text(tree, "/proc/cpuinfo"), "flags");
	const char *hypervisor = tree_line(tree, "/sys/hypervisor/type");
	bool guest = flags && strstr(flags, " hypervisor");

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		/* A bare-metal server of a cloud names the cloud too. */
		if (guest && (holds(vendor, marks[i].word) || holds(product, marks[i].word)))
			return marks[i].name;
	}
	if (hypervisor)
		return hypervisor;
	return guest ? "unknown hypervisor" : NULL;
}

void host_read_place(const struct host_look *look, struct host *host)
{
	const struct tree *tree = &look->tree;
	const char *version = tree_text(tree, "/proc/version");
	const char *model = tree_line(tree, "/proc/device-tree/model");

	host->kernel = tree_line(tree, "/proc/sys/kernel/osrelease");
	host->runtime = find_runtime(tree);
	host->pod = is_pod(tree);
	host->slurm_job = tree_variable(tree, "SLURM_JOB_ID");
	host->slurm = host->slurm_job ||
		      holds(tree_text(tree, "/proc/self/cgroup"), "slurmstepd") ||
		      holds(tree_text(tree, "/proc/self/cgroup"), "/slurm/");
	host->wsl = tree_has(tree, "/dev/dxg") || holds(version, "microsoft") ||
		    holds(version, "Microsoft");
	/* gVisor's own kernel text; it claims one build date on all machines. */
	host->gvisor =
		holds(version, "gVisor") || holds(version, "#1 SMP Sun Jan 10 15:06:54 PST 2016");
	if (tree_has(tree, "/etc/nv_tegra_release") || holds(model, "Jetson"))
		host->jetson = model ? model : "Jetson";
	if (!host->wsl)
		host->machine = find_machine(tree);
	if (host->pod && host->runtime == RUNTIME_NONE)
		host->runtime = RUNTIME_OTHER;
}
