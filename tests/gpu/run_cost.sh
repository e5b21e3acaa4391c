#!/bin/bash
# What `sonde run` costs the program: launch.cu, an eager torch loop, train.py, cases.cu,
# beside a bare CUPTI consumer, Nsight Systems and torch.profiler. Variants
# alternate; medians; launch.cu runs twice a round. A figure counts only if
# the profile holds every launch.
#
#   SONDE=build/portable/sonde tests/gpu/run_cost.sh [ROUNDS [PART...]]
#
# 5 rounds; PART: launch, eager, train, sampling; else all four, a round then takes about 130 s.
# Begins no part after LIMIT seconds; one takes 40 s at most. Each number is in ROWS, else in
# $OUT/run_cost.rows, as soon as it is known.
# ./bench overhead calls it. FIGURES: where the figures go as JSON. Status 1 if one is
# missed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
sonde=$(realpath "${SONDE:-$here/../../build/portable/sonde}")
rounds=${1:-5}
shift $(($# > 0))
parts=" ${*:-launch eager train sampling} "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
many=200000
nsys=$(ls /opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys 2>/dev/null | tail -1)
"$here/build.sh" "$work" launch cases bare.so || exit 1
cd "$work" || exit 1
# The thread that launches has a core for itself.
read -r CORE others < <(python3 "$here/quiet_core.py") || exit 1
export CORE
taskset -pc "$others" $$ >/dev/null

put() { # NAME, its value from standard input
	local value
	read -r value && echo "$value" >>"$1" && echo "$1:$value" >>"${ROWS:-$out/run_cost.rows}"
}
us() { grep -o '[0-9.]* us each' | grep -o '[0-9.]*'; }
step() { sed -n 's/.*step \([0-9.]*\).*/\1/p'; }
plain() { timeout -k 5 60 "$@"; }
run() { # what is counted afterwards is of this run
	rm -f "$work/p.sonde"
	timeout -k 5 60 "$sonde" run --no-report -o "$work/p.sonde" "$@" 2>>"$out/run_cost.err"
}
kernels() { "$sonde" sql "$work/p.sonde" 'select count(*) from kernel' | tail -1 | tr -d ' ' | grep . || echo 0; }
bytes() { "$sonde" sql "$work/p.sonde" 'select count(*) from kernel' >/dev/null && stat -c %s "$work/p.sonde"; }

# launch.cu, once each way.
launch() {
	plain ./launch $many | us | put plain
	CUDA_INJECTION64_PATH=$work/bare.so BARE=kernel plain ./launch $many | us | put bare
	CUDA_INJECTION64_PATH=$work/bare.so BARE=api plain ./launch $many | us | put bare_api
	run --no-system --no-threads -t kernel -- ./launch $many | us | put kernel
	kernels | put count
	run --no-system --no-threads -t cuda -- ./launch $many | us | put cuda
	kernels | put count
	run -- ./launch $many | us | put all
	kernels | put count
	bytes | put size
	if [[ $nsys ]]; then
		plain "$nsys" profile --trace=cuda --sample=none --cpuctxsw=none -f true -o nsys ./launch $many 2>/dev/null | us | put nsys_cuda
	fi
}

eager() {
	plain python3 "$here/eager.py" none | us | put t_plain
	run -- python3 "$here/eager.py" none | us | put t_sonde
	plain python3 "$here/eager.py" cuda 2>/dev/null | us | put t_torch
}
train() {
	local job="python3 $programs/train.py fast --profiler none --steps 150"

	# shellcheck disable=SC2086
	{
		plain $job 2>/dev/null | step | put s_plain
		run -- $job | step | put s_sonde
		CUDA_INJECTION64_PATH=$work/bare.so BARE=launch plain $job 2>/dev/null | step | put s_bare
	}
}
ms_of() { # command...
	local began
	began=$(date +%s%N)
	"$@" >/dev/null
	echo $((($(date +%s%N) - began) / 1000000))
}
sampling() {
	run --pc-sampling on -- ./launch $many | us | put pc
	kernels | put count
	run --pc-sampling on -- python3 "$here/eager.py" none | us | put t_pc
	ms_of plain ./cases 20 | put c_plain
	ms_of run --pc-sampling off -- ./cases 20 | put c_off
	ms_of run --pc-sampling on -- ./cases 20 | put c_on
	# Longer: the wait for the last samples is the same.
	ms_of run --pc-sampling off -- ./cases 200 | put l_off
	ms_of run --pc-sampling on -- ./cases 200 | put l_on
}
for ((i = 0; i < rounds; i++)); do
	for part in launch launch eager train train sampling; do
		[[ $parts == *" $part "* ]] && ((SECONDS < ${LIMIT:-100000})) && "$part"
	done
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 "$here/run_cost.py" "$work" ${FIGURES:+"$FIGURES"} | tee "$out/run_cost.txt"
exit "${PIPESTATUS[0]}"
