#!/bin/bash
# What recording takes of a training step (train.py fast). First within one process: what CUPTI
# itself adds, by what is asked of it, and what sonde does; beside them the same program
# with nothing recorded at all, which says how much is chance. Then whole processes in turn:
# alone, with a bare CUPTI consumer of more and more, and under `sonde run` of more and more.
#
#   SONDE=build/portable/sonde tests/gpu/run_train.sh [SECONDS [STEPS]]
#
# Begins none of the processes in turn after SECONDS (300); 1,200 STEPS within one, about 2 minutes on one
# H200; 0: none of that. Needs nvcc, gcc, python3 with torch. $OUT gets run_train.txt and .rows.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
PROGRAMS=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
export PROGRAMS
sonde=$(realpath "${SONDE:-$here/../../build/portable/sonde}")
limit=${1:-300} steps=${2:-1200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
"$here/build.sh" "$work" bare.so || exit 1
cd "$work" || exit 1
cost() { # what, command...
	local what=$1
	shift
	echo "== $what (at $SECONDS s)"
	timeout -k 5 60 "$@" 2>said | grep -v '^wall' || { touch failed && tail -3 said; }
}
recorded() { # sonde's options
	cost "sonde run $*" "$sonde" run --no-report -o p.sonde -c cudaProfilerApi "$@" -- python3 "$here/train_cost.py" "$steps"
}
within() {
	cost "nothing at all" python3 "$here/train_cost.py" "$steps"
	cost "CUPTI" python3 "$here/train_cost.py" $((steps * 2)) "$work/bare.so"
	recorded
	recorded --no-threads --no-system
	recorded --no-threads --no-system -t kernel
}
# A step, and the processor time of it, in microseconds.
turn() { # name, command...
	local name=$1
	shift
	timeout -k 5 60 "$@" python3 "$here/train_cost.py" 320 2>said |
		sed -n "s/^whole: step \([0-9.]*\), processor time \([0-9.]*\)/step $name \1e6\nprocessor $name \2e6/p" |
		tee -a "$out/run_train.rows" | grep . || { touch failed && tail -3 said; }
}
between() {
	: >"$out/run_train.rows"
	while ((SECONDS < limit)); do
		printf '%s round 0\n' step processor >>"$out/run_train.rows"
		turn plain
		for bare in "" launch,launch_ex launch,launch_ex,driver_launch launch,launch_ex,copy; do
			BARE=$bare turn "bare,$bare" env CUDA_INJECTION64_PATH="$work/bare.so"
		done
		turn kernels "$sonde" run --no-report -o p.sonde --no-threads --no-system -t kernel --
		turn calls "$sonde" run --no-report -o p.sonde --no-threads --no-system -t cuda --
		turn sonde "$sonde" run --no-report -o p.sonde --
	done
	python3 "$here/run_parts.py" "$out/run_train.rows"
}
{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	((!steps)) || within
	between
} | tee "$out/run_train.txt"
[[ ! -e failed ]]
