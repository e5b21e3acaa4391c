/*
 * The least that mends a thing, as it is typed at each place. The first row is
 * the narrower right; a second one lasts longer or helps more people.
 *
 * Sources: NVIDIA's page on ERR_NVGPUCTRPERM (PERFMON from R565 on, else
 * SYS_ADMIN; the module option), the container toolkit's and Docker's
 * documentation, capabilities(7), the vGPU guide (enable_profiling).
 */
#include <string.h>

#include "rules/check_part.h"

/* Machines whose kernel is ours to configure. */
enum {
	OWN = PLACE_BARE | PLACE_VM,
	ENGINE = PLACE_DOCKER | PLACE_PODMAN,
	ANY = PLACE_BARE | PLACE_VM | PLACE_DOCKER | PLACE_PODMAN | PLACE_POD | PLACE_CONTAINER |
	      PLACE_SLURM | PLACE_WSL,
};

#define MODULE_OPTION                                                   \
	"echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 |\n" \
	"    sudo tee /etc/modprobe.d/nvidia-counters.conf\n"           \
	"sudo update-initramfs -u || sudo dracut -f\n"                  \
	"sudo reboot"

#define POD_CAPABILITY(name)     \
	"spec:\n"                \
	"  containers:\n"        \
	"  - name: CONTAINER\n"  \
	"    securityContext:\n" \
	"      capabilities:\n"  \
	"        add: [\"" name "\"]"

static const struct {
	enum cure cure;
	unsigned int places;
	const char *what;
	const char *lines;
} CURES[] = {
	{ CURE_COUNTERS, OWN, N_("run sonde alone with the right, as yourself"),
	  "sudo -E setpriv --reuid $(id -u) --regid $(id -g) --init-groups \\\n"
	  "    --inh-caps +perfmon --ambient-caps +perfmon \\\n"
	  "    $(command -v sonde) run -- CMD" },
	{ CURE_COUNTERS_OLD, OWN, N_("run sonde alone with the right, as yourself"),
	  "sudo -E setpriv --reuid $(id -u) --regid $(id -g) --init-groups \\\n"
	  "    --inh-caps +sys_admin --ambient-caps +sys_admin \\\n"
	  "    $(command -v sonde) run -- CMD" },
	{ CURE_COUNTERS, OWN, N_("or for all users, from the next start on"), MODULE_OPTION },
	{ CURE_COUNTERS_OLD, OWN, N_("or for all users, from the next start on"), MODULE_OPTION },
	{ CURE_COUNTERS, PLACE_DOCKER, N_("one capability for the container"),
	  "docker run --cap-add=PERFMON ..." },
	{ CURE_COUNTERS, PLACE_PODMAN, N_("one capability for the container, as root"),
	  "sudo podman run --cap-add=PERFMON ..." },
	{ CURE_COUNTERS_OLD, PLACE_DOCKER,
	  N_("one capability for the container (drivers before R565 take no smaller one)"),
	  "docker run --cap-add=SYS_ADMIN ..." },
	{ CURE_COUNTERS_OLD, PLACE_PODMAN,
	  N_("one capability for the container (drivers before R565 take no smaller one)"),
	  "sudo podman run --cap-add=SYS_ADMIN ..." },
	{ CURE_COUNTERS, PLACE_POD, N_("one capability for the container"),
	  POD_CAPABILITY("PERFMON") },
	{ CURE_COUNTERS_OLD, PLACE_POD,
	  N_("one capability for the container (drivers before R565 take no smaller one)"),
	  POD_CAPABILITY("SYS_ADMIN") },
	{ CURE_COUNTERS, PLACE_SLURM | PLACE_CONTAINER,
	  N_("ask the administrator of the node for this"), MODULE_OPTION },
	{ CURE_COUNTERS_OLD, PLACE_SLURM | PLACE_CONTAINER,
	  N_("ask the administrator of the node for this"), MODULE_OPTION },
	{ CURE_COUNTERS, PLACE_WSL,
	  N_("on Windows: NVIDIA Control Panel, Desktop, Enable Developer Settings; then "
	     "Developer, Manage GPU Performance Counters, Allow access to all users"),
	  NULL },
	{ CURE_COUNTERS_OLD, PLACE_WSL,
	  N_("on Windows: NVIDIA Control Panel, Desktop, Enable Developer Settings; then "
	     "Developer, Manage GPU Performance Counters, Allow access to all users"),
	  NULL },
	{ CURE_COUNTERS_USER, PLACE_DOCKER,
	  N_("the container has the capability, this user has not: be root in it"),
	  "docker exec --user 0 CONTAINER sonde run -- CMD" },
	{ CURE_COUNTERS_USER, PLACE_PODMAN,
	  N_("the container has the capability, this user has not: be root in it"),
	  "sudo podman exec --user 0 CONTAINER sonde run -- CMD" },
	{ CURE_COUNTERS_USER, PLACE_POD,
	  N_("the container has the capability, this user has not: be root in it"),
	  "spec:\n"
	  "  containers:\n"
	  "  - name: CONTAINER\n"
	  "    securityContext:\n"
	  "      runAsUser: 0" },
	{ CURE_USER_NAMESPACE, PLACE_PODMAN,
	  N_("capabilities of a rootless container don't count for the driver: run it as root"),
	  "sudo podman run --cap-add=SYS_ADMIN ..." },
	{ CURE_USER_NAMESPACE, ANY & ~PLACE_PODMAN,
	  N_("capabilities of a rootless container don't count for the driver: on the host"),
	  MODULE_OPTION },
	{ CURE_VGPU, ANY, N_("on the hypervisor's host, before the virtual machine starts"),
	  "echo enable_profiling=1 > /sys/bus/mdev/devices/UUID/nvidia/vgpu_params" },

	{ CURE_KMSG, OWN | PLACE_SLURM,
	  N_("read the same messages from the journal (log in again after it)"),
	  "sudo usermod -aG systemd-journal $USER" },
	{ CURE_KMSG, PLACE_DOCKER, N_("the device, for reading, and the right to open it"),
	  "docker run --device=/dev/kmsg:/dev/kmsg:r --cap-add=SYSLOG ..." },
	{ CURE_KMSG, PLACE_PODMAN, N_("the device, for reading, and the right to open it"),
	  "sudo podman run --device=/dev/kmsg:/dev/kmsg:r --cap-add=SYSLOG ..." },
	{ CURE_KMSG, PLACE_POD, N_("the node's log files, for reading"),
	  "spec:\n"
	  "  volumes:\n"
	  "  - name: log\n"
	  "    hostPath: {path: /var/log, type: Directory}\n"
	  "  containers:\n"
	  "  - name: CONTAINER\n"
	  "    volumeMounts:\n"
	  "    - {name: log, mountPath: /var/log, readOnly: true}" },
	{ CURE_KMSG, PLACE_WSL, N_("driver faults are in the Windows Event Log: source nvlddmkm"),
	  NULL },

	{ CURE_PERF, OWN | PLACE_WSL, N_("let users measure their own programs"),
	  "sudo sysctl kernel.perf_event_paranoid=2" },
	{ CURE_PERF, PLACE_DOCKER, N_("one capability for the container"),
	  "docker run --cap-add=PERFMON ..." },
	{ CURE_PERF, PLACE_PODMAN, N_("one capability for the container"),
	  "sudo podman run --cap-add=PERFMON ..." },
	{ CURE_PERF, PLACE_POD, N_("one capability for the container"), POD_CAPABILITY("PERFMON") },
	{ CURE_PERF, PLACE_SLURM | PLACE_CONTAINER,
	  N_("ask the administrator of the node for this"),
	  "sudo sysctl kernel.perf_event_paranoid=2" },
	{ CURE_PERF_SYSCALL, PLACE_DOCKER,
	  N_("if the engine's seccomp profile is too old to allow it with that capability"),
	  "docker run --security-opt seccomp=PROFILE.json ..." },
	{ CURE_PERF_SYSCALL, PLACE_PODMAN,
	  N_("if the engine's seccomp profile is too old to allow it with that capability"),
	  "podman run --security-opt seccomp=PROFILE.json ..." },

	{ CURE_HOST_PID, PLACE_DOCKER, N_("share the host's process numbers"),
	  "docker run --pid=host ..." },
	{ CURE_HOST_PID, PLACE_PODMAN, N_("share the host's process numbers"),
	  "podman run --pid=host ..." },
	{ CURE_HOST_PID, PLACE_POD, N_("share the node's process numbers"),
	  "spec:\n"
	  "  hostPID: true" },
	{ CURE_HOST_PID, PLACE_CONTAINER | PLACE_SLURM, N_("run sonde on the host itself"), NULL },

	{ CURE_GIVE_GPU, PLACE_DOCKER, N_("give the container the cards"),
	  "docker run --gpus all ..." },
	{ CURE_GIVE_GPU, PLACE_PODMAN, N_("give the container the cards"),
	  "podman run --device nvidia.com/gpu=all ..." },
	{ CURE_GIVE_GPU, PLACE_POD, N_("ask for a card"),
	  "spec:\n"
	  "  containers:\n"
	  "  - name: CONTAINER\n"
	  "    resources:\n"
	  "      limits:\n"
	  "        nvidia.com/gpu: 1" },
	{ CURE_GIVE_GPU, PLACE_SLURM, N_("ask for a card"), "srun --gres=gpu:1 ..." },
	{ CURE_GIVE_GPU, PLACE_CONTAINER, N_("give the container the cards"),
	  "apptainer exec --nv IMAGE CMD" },
	{ CURE_GIVE_GPU, PLACE_WSL, N_("install NVIDIA's Windows driver, and restart WSL"),
	  "wsl.exe --update\n"
	  "wsl.exe --shutdown" },

	{ CURE_UTILITY, ENGINE, N_("the driver's management library too"),
	  "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..." },
	{ CURE_UTILITY, PLACE_POD, N_("the driver's management library too"),
	  "spec:\n"
	  "  containers:\n"
	  "  - name: CONTAINER\n"
	  "    env:\n"
	  "    - {name: NVIDIA_DRIVER_CAPABILITIES, value: \"compute,utility\"}" },

	{ CURE_DEVICE_RULE, ENGINE,
	  N_("make the container anew; and so that it does not come again, on the host"),
	  "sudo nvidia-ctk system create-dev-char-symlinks --create-all" },
	{ CURE_DEVICE_RULE, PLACE_POD,
	  N_("make the pod anew; and so that it does not come again, on the node"),
	  "sudo nvidia-ctk system create-dev-char-symlinks --create-all" },
	{ CURE_DEVICE_RULE, PLACE_SLURM, N_("the job was not given this card: ask for it"),
	  "srun --gres=gpu:1 ..." },
	{ CURE_DEVICE_RIGHT, OWN, N_("let all users open the cards"),
	  "sudo chmod a+rw /dev/nvidia*" },
	{ CURE_DEVICE_RIGHT, ENGINE, N_("as the user that may open them"),
	  "docker exec --user 0 CONTAINER sonde doctor" },

	{ CURE_RELOAD, OWN, N_("stop what uses the cards, load the module anew; or restart"),
	  "sudo modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia\n"
	  "sudo modprobe nvidia" },
	{ CURE_RELOAD, ENGINE | PLACE_POD | PLACE_CONTAINER,
	  N_("make the container anew, without libraries of the driver mounted or installed "
	     "in it: the container toolkit brings those of the host"),
	  NULL },
	{ CURE_RELOAD, PLACE_SLURM, N_("tell the administrator; the node needs a restart"), NULL },
	{ CURE_LOAD, OWN, N_("load the driver; if that fails, the kernel's log has the reason"),
	  "sudo modprobe nvidia\n"
	  "sudo dmesg | grep -i -e nvrm -e nouveau" },

	{ CURE_PERSISTENCE, OWN, N_("keep the driver's state"),
	  "sudo systemctl enable --now nvidia-persistenced" },
	{ CURE_PERSISTENCE, ANY & ~OWN & ~PLACE_WSL, N_("keep the driver's state: on the host"),
	  "sudo systemctl enable --now nvidia-persistenced" },

	{ CURE_CUPTI_12, ANY, N_("CUPTI for CUDA 12, without a toolkit"),
	  "pip install nvidia-cuda-cupti-cu12" },
	{ CURE_CUPTI_13, ANY, N_("CUPTI for CUDA 13, without a toolkit"),
	  "pip install nvidia-cuda-cupti" },
	{ CURE_NEW_DRIVER, OWN | PLACE_SLURM, N_("a newer driver"), NULL },
	{ CURE_NEW_DRIVER, ANY & ~OWN & ~PLACE_SLURM, N_("a newer driver, on the host"), NULL },

	{ CURE_PAUSE_DCGM, OWN | PLACE_SLURM | PLACE_CONTAINER,
	  N_("let DCGM rest while you measure"),
	  "sudo dcgmi profile --pause\n"
	  "sonde run -- CMD\n"
	  "sudo dcgmi profile --resume" },
	{ CURE_PAUSE_DCGM, ENGINE, N_("let DCGM rest while you measure: on the host"),
	  "sudo dcgmi profile --pause    # --resume afterwards" },
	{ CURE_PAUSE_DCGM, PLACE_POD, N_("let DCGM rest while you measure"),
	  "kubectl exec -n gpu-operator DCGM_POD -- dcgmi profile --pause" },

	{ CURE_RESET, OWN, N_("with nothing running on the card"),
	  "sudo nvidia-smi --gpu-reset -i N" },
	{ CURE_RESET, ANY & ~OWN, N_("on the host, with nothing running on the card"),
	  "sudo nvidia-smi --gpu-reset -i N" },
	{ CURE_GLIBC, ANY, N_("an image with glibc: Debian, Ubuntu, Rocky"), NULL },
};

void mend_with(struct diagnosis *diagnosis, const char *what, const char *lines)
{
	*VEC_ADD(&diagnosis->mends) = (struct mend){ what, lines };
}

void mend(struct diagnosis *diagnosis, enum cure cure, enum place place)
{
	for (size_t i = 0; i < sizeof(CURES) / sizeof(*CURES); i++) {
		if (CURES[i].cure == cure && (CURES[i].places & place))
			mend_with(diagnosis, _(CURES[i].what), CURES[i].lines);
	}
}
