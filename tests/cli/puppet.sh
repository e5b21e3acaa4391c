# For cases with a puppet of NVIDIA's management library: source it.
library=$(dirname "$(realpath "$(command -v sonde)")")/tests/fake/libnvidia-ml.so.1
[[ -e $library ]] || skip 'the puppet library is not built'
export SONDE_NVML=$library PUPPET_NVML=$WORK/../world
# The kernel log of this machine has no place in a case.
LOG=$WORK/../kern.log
: >"$LOG"
# A file an hour: a case that runs into a full hour would find two.
left=$((3600 - $(date +%s) % 3600))
((left > 90)) || sleep $((left + 1))

# world N: N cards at work, all alike.
world() {
	cat >"$PUPPET_NVML.new" <<-END
	nvmlSystemGetDriverVersion 580.159.04
	gpu
	name NVIDIA H200
	uuid GPU-0
	bus 0000:80:00.0
	nvmlDeviceGetPowerUsage 338400
	nvmlDeviceGetUtilizationRates 100 19
	nvmlDeviceGetClockInfo.1 1980
	nvmlDeviceGetClockInfo.2 3201
	nvmlDeviceGetMemoryInfo_v2 150000000000 100000000 145000000000 3840000000
	nvmlDeviceGetCurrentClocksEventReasons 0
	field 74 1000000000+500000000
	gpm 2 50
	process $$ C 3000000000 95 19 0 0
	END
	local i
	for ((i = 1; i < $1; i++)); do
		printf 'gpu\nlike 0\nuuid GPU-%d\nbus 0000:8%d:00.0\n' "$i" "$i"
	done >>"$PUPPET_NVML.new"
	mv "$PUPPET_NVML.new" "$PUPPET_NVML"
}
# change SED...: the world after it.
change() {
	sed "$@" "$PUPPET_NVML" >"$PUPPET_NVML.new"
	mv "$PUPPET_NVML.new" "$PUPPET_NVML"
}
# until COMMAND...: wait for it to succeed, 20 s at most.
until_true() {
	local i
	for ((i = 0; i < 1000; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.02
	done
	echo "never: $*"
	return 1
}
# Samples of cards in a file or part.
samples() {
	sonde sql --csv "$1" "SELECT count(*) FROM sample" 2>/dev/null | tail -n 1
}
at_least() {
	(($(samples "$1") >= $2))
}
# Stamps, sizes and costs out of lines.
plain() {
	sed -E 's/[0-9]{8}T[0-9]{6}Z/STAMP/g; s/'"$(uname -n)"'-STAMP/HOST-STAMP/g; s/snapshot\(s\) in .*/snapshot(s) in .../; s/pid [0-9]+/pid N/'
}
