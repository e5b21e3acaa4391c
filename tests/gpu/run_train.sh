#!/bin/bash
# What recording takes of a training step (train.py fast), each within one process: what CUPTI
# itself adds, by what is asked of it, and what sonde does. Beside them the same program
# with nothing recorded at all, which says how much is chance.
#
#   SONDE=build/portable/sonde tests/gpu/run_train.sh [STEPS]    1200; 2 minutes on one H200
#
# Needs nvcc, gcc, python3 with torch. Rows in $OUT/run_train.txt.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
PROGRAMS=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
export PROGRAMS
sonde=$(realpath "${SONDE:-$here/../../build/portable/sonde}")
steps=${1:-1200}
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
{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	cost "nothing at all" python3 "$here/train_cost.py" "$steps"
	cost "CUPTI" python3 "$here/train_cost.py" $((steps * 2)) "$work/bare.so"
	recorded
	recorded --no-threads --no-system
	recorded --no-threads --no-system -t kernel
	echo "== --calibrate (at $SECONDS s)"
	timeout -k 5 60 "$sonde" run --no-report --calibrate -o c.sonde -- \
		python3 "$PROGRAMS/train.py" fast --profiler none --steps "$steps"
	"$sonde" report --json c.sonde | python3 -c 'import json, sys; print(json.load(sys.stdin)["overhead"].get("calibration"))'
} | tee "$out/run_train.txt"
[[ ! -e failed ]]
