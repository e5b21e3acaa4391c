# Invented machines for the cases of doctor: sourced, not run.
#
#   tree                  an empty machine in WORK/root: x86-64, glibc, bare metal
#   driver [VERSION]      its driver: module, libraries, nodes, one H200
#   toolkit VERSION MAJOR a CUDA toolkit with libcupti.so.MAJOR
#   proc PID COMMAND...   a process
#   cards FILE            what the puppet of NVML plays
#   doctor [ARG...]       sonde doctor on all that, in a clean environment; VAR=VALUE
#                         words in front are its variables
put() {
	mkdir -p "$(dirname "root/$1")"
	printf '%s\n' "$2" >"root/$1"
}
link() {
	mkdir -p "$(dirname "root/$2")"
	ln -sfn "$1" "root/$2"
}
tree() {
	rm -rf root script
	put proc/version 'Linux version 6.8.0 (builder@host) #1 SMP'
	put proc/sys/kernel/osrelease 6.8.0
	put proc/sys/kernel/dmesg_restrict 0
	put proc/sys/kernel/perf_event_paranoid 2
	put proc/cpuinfo 'flags		: fpu sse2 avx2'
	put proc/self/mountinfo '29 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw'
	put proc/1/cgroup '0::/init.scope'
	put proc/self/cgroup '0::/user.slice'
	link 'pid:[4026531836]' proc/self/ns/pid
	link 'user:[4026531837]' proc/self/ns/user
	put lib64/ld-linux-x86-64.so.2 ''
	put dev/kmsg ''
	rights 1000 0 1ffffffffff
}
# rights UID EFFECTIVE BOUNDING [SECCOMP]
rights() {
	printf 'Name:\tsonde\nUid:\t%s\t%s\t%s\t%s\nCapEff:\t%016x\nCapBnd:\t%016x\nNoNewPrivs:\t0\nSeccomp:\t%s\n' \
		"$1" "$1" "$1" "$1" "0x$2" "0x$3" "${4:-0}" >root/proc/self/status
}
driver() {
	local version=${1:-580.159.04}
	put proc/driver/nvidia/version "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  $version  Release Build"
	put proc/driver/nvidia/params 'RmProfilingAdminOnly: 1'
	put proc/driver/nvidia/gpus/0000:83:00.0/information "Model: 		 NVIDIA H200
GPU UUID: 	 GPU-11111111-2222-3333-4444-555555555555
Device Minor: 	 0
GPU Excluded:	 No"
	put sys/bus/pci/devices/0000:83:00.0/vendor 0x10de
	put sys/bus/pci/devices/0000:83:00.0/class 0x030200
	link ../../../bus/pci/drivers/nvidia sys/bus/pci/devices/0000:83:00.0/driver
	for node in nvidia0 nvidiactl nvidia-uvm; do put dev/$node ''; done
	link "libnvidia-ml.so.$version" usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
	link "libcuda.so.$version" usr/lib/x86_64-linux-gnu/libcuda.so.1
	cards "$SOURCE/tests/fake/h200.nvml"
}
toolkit() {
	put "usr/local/cuda-$1/bin/nvcc" ''
	put "usr/local/cuda-$1/lib64/libnvperf_host.so" ''
	link "libcupti.so.2025.3.1" "usr/local/cuda-$1/lib64/libcupti.so.$2"
}
proc() {
	mkdir -p "root/proc/$1"
	printf '%s\0' "${@:2}" >"root/proc/$1/cmdline"
}
cards() {
	cp "$1" script
}
# container RUNTIME: not the host's PID namespace, an overlay as root
container() {
	put proc/self/mountinfo '900 800 0:99 / / rw,relatime - overlay overlay rw,lowerdir=/l'
	link 'pid:[4026532999]' proc/self/ns/pid
	rm -f root/dev/kmsg
	case $1 in
	docker) put .dockerenv '' ;;
	podman) put run/.containerenv '' ;;
	esac
}
doctor() {
	local variables=() program fake
	while [[ ${1:-} == *=* ]]; do
		variables+=("$1")
		shift
	done
	program=$(readlink -f "$(command -v sonde)")
	fake=$(dirname "$program")/tests/fake
	echo "\$ ${variables[*]:+${variables[*]} }sonde doctor $*"
	if [[ -f script ]]; then
		variables+=(SONDE_NVML="$fake/libnvidia-ml.so.1" PUPPET_NVML="$PWD/script")
	else
		variables+=(SONDE_NVML="$PWD/no-such-library")
	fi
	env -i ${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} LC_ALL=C.UTF-8 PATH="$PATH" "${variables[@]}" "$program" doctor --root root "$@"
	echo "= $?"
}
