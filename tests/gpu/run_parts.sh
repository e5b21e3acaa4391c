#!/bin/bash
# Which part of a recording costs what: launch.cu, an eager torch loop and a training
# job, each plain, beside a bare CUPTI consumer, and with more and more of what
# `sonde run` does. Variants alternate; each row comes as it is measured.
#
#   SONDE=build/portable/sonde tests/gpu/run_parts.sh [SECONDS [PROGRAM...]]
#   DRY=build/dev tests/gpu/run_parts.sh 1     on puppets: that the script itself works
#
# Begins no round after SECONDS (300). PROGRAM: launch, eager, train; else all three. A round of
# them takes about 40, 110 and 150 s on one H200. ROWS: variants, if not all. IN_PROCESS:
# seconds for what CUPTI takes of the eager loop within one process (eager_bare.py), first.
# Needs nvcc, gcc, python3 with torch.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dry=${DRY:+$(realpath "$DRY")}
sonde=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
programs=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
limit=${1:-300}
shift $(($# > 0))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
declare -A commands=(
	[launch]="./launch 200000"
	[eager]="python3 $here/eager.py none"
	[train]="python3 $programs/train.py fast --profiler none --steps 150"
)
cd "$work" || exit 1
read -r CORE others < <(python3 "$here/quiet_core.py") || exit 1
export CORE
taskset -pc "$others" $$ >/dev/null
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject
	commands=([launch]="$dry/tests/inject/host many")
else
	nvcc -O3 -arch=native -o launch "$programs/launch.cu" || exit 1
	cuda=$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")
	gcc -O2 -fPIC -shared -I"$cuda/include" -I"$cuda/extras/CUPTI/include" -o bare.so "$here/bare_cupti.c" \
		-L"$cuda/lib64" -L"$cuda/extras/CUPTI/lib64" -lcupti \
		-Wl,-rpath,"$cuda/lib64:$cuda/extras/CUPTI/lib64" || exit 1
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
fi

# Microseconds a launch, an operator, a step.
number() {
	sed -n 's/.* \([0-9.]*\) us each.*/\1/p; s/.*step \([0-9.]*\).*/\1e6/p; s/^launches.*/1/p' | tail -1
}
all=cuda,nvtx,memory,sync
# What CUPTI itself takes for each thing that is asked of it: bare_cupti.c.
bare="bare_kernel bare_api bare_launch bare_launch,memory bare_launch,wait bare_launch,event bare_launch,callback bare_launch,driver_callback"
none="--no-system --no-threads"
# shellcheck disable=SC2086
as() { # variant command...
	local how=$1
	shift
	case $how in
	plain) "$@" ;;
	bare_*) CUDA_INJECTION64_PATH=$work/bare.so BARE=${how#bare_} "$@" ;;
	torch) [[ $* == *eager* ]] && "${@/none/cuda}" ;;
	kernels) run -t kernel $none -- "$@" ;;
	launches) run -t cuda $none -- "$@" ;;
	memory) run -t cuda,nvtx,memory $none -- "$@" ;;
	sync) run -t $all $none -- "$@" ;;
	cards) run -t $all --no-threads -- "$@" ;;
	switches) run -t $all,sched,cpu --no-system -- "$@" ;;
	python) run -t $all,python --no-system -- "$@" ;;
	everything) run -- "$@" ;;
	esac
}
run() { timeout 100 "$sonde" run --no-report -o p.sonde "$@"; }

if [[ ${IN_PROCESS:-} && ! $dry ]]; then
	python3 "$here/eager_bare.py" "$work/bare.so" "$IN_PROCESS" | tee "$out/eager_bare.txt"
fi
(($#)) || set -- "${!commands[@]}"
while ((SECONDS < limit)); do
	for program in "$@"; do
		echo "$program round $SECONDS" >>"$out/run_parts.rows"
		for how in ${ROWS:-plain $bare torch kernels launches memory sync cards switches python everything}; do
			# shellcheck disable=SC2086
			value=$(as $how ${commands[$program]} 2>>"$out/run_parts.err" | number)
			[[ $value ]] || continue
			echo "$program $how $value" | tee -a "$out/run_parts.rows"
		done
	done
done
python3 "$here/run_parts.py" "$out/run_parts.rows"
