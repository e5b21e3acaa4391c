#!/bin/bash
# What PyTorch itself, Nsight Compute and the driver's numbers of launches have to show:
# --torch-ops leaves nothing on stderr however the program ends, an operator has one
# name, --calibrate tells its figures in every run, and ncu in a script is told of.
#
#   SONDE=build/portable/sonde tests/gpu/run_ops.sh
#   DRY=build/dev tests/gpu/run_ops.sh           on puppets: that the script itself works
#
# Two to three minutes on one H200. Needs libsonde-inject.so and its python/ beside sonde; on a
# card nvcc, python3 with torch, ncu. What is not there is said to be skipped. Status 1 if a
# claim fails.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dry=${DRY:+$(realpath "$DRY")}
programs=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
sonde=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
claim() {
	if (($1 == 0)); then echo "ok      $2"; else echo "FAILED  $2"; bad=1; fi
}
run() { timeout -k 5 100 "$sonde" run --no-report "$@"; }
one() { "$sonde" sql "$1" "$2" | tail -1 | tr -d ' '; }
# What the program itself wrote to stderr.
own() { grep -v '^sonde run: ' "$1"; }

cd "$work" || exit 1
cat >ends.py <<'END'
"""One operator in a way of its own, and an end of its own: plain, exit, raise, thread."""
import os, sys, threading, torch
way = sys.argv[1]
def work():
    x = torch.ones(8, device="cuda")
    for _ in range(100):
        x = x * 2
thread = threading.Thread(target=work) if way == "thread" else None
thread.start() if thread else work()
if thread:
    thread.join()
if way == "exit":
    sys.exit(3)
if way == "raise":
    raise ValueError("its own")
END

if [[ ! $dry ]] && python3 -c 'import torch' 2>/dev/null; then
	for way in plain exit raise thread; do
		timeout -k 5 60 python3 ends.py $way 2>alone.err
		alone=$?
		run --torch-ops -o ends.sonde -- python3 ends.py $way 2>with.err
		[[ $? == "$alone" ]] && cmp <(own with.err) alone.err
		claim $? "--torch-ops, $way: status and stderr are the program's own"
	done
	run --torch-ops -o ops.sonde -- python3 "$here/eager.py" none
	claim $? "--torch-ops: ends well"
	n=$(one ops.sonde "select count(*) from range where name = 'aten::mul'")
	names=$(one ops.sonde "select count(*) from string where text like 'aten::mul%'")
	echo "  ranges of aten::mul $n of 252000, names $names, $(stat -c %s ops.sonde) bytes"
	((n >= 252000 && names == 1))
	claim $? "--torch-ops: each operator's range, one name"
	# One such run ended without a word on an H200, as if by a signal.
	out=$(realpath "${OUT:-$work}")
	for turn in 1 2 3 4 5 6; do
		PYTHONFAULTHANDLER=1 run --calibrate -o train.sonde -- python3 "$programs/train.py" fast \
			--profiler none --steps 500 >train.out 2>train.err
		status=$?
		((status == 0)) && grep -q '^wall' train.out
		claim $? "--calibrate, train.py, run $turn: status $status, $(head -1 train.out)"
		((status == 0)) || cp train.sonde train.err "$out/"
	done
else
	echo "skipped PyTorch: not here"
fi

if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject
	steady=("$dry/tests/inject/host" steady)
else
	"$here/build.sh" "$work" owed || exit 1
	steady=(./owed threads 1 8)
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
fi
query="select v.text t from env e join string k on k.id = e.key join string v on v.id = e.value
	where k.text = 'calibration'"
for turn in 1 2; do
	run --calibrate -o quiet.sonde -- "${steady[@]}" >/dev/null 2>quiet.err
	told=$("$sonde" sql quiet.sonde "$query" | grep -o 'windows=.*')
	echo "  ${told:-$(grep "can't be told" quiet.err)}"
	[[ $told == windows=* ]]
	claim $? "--calibrate, run $turn: told"
done

if [[ $dry ]]; then
	printf '#!/bin/sh\nsleep 0.5\nexit 1\n' >ncu
	chmod +x ncu
	PATH=$work:$PATH
fi
if command -v ncu >/dev/null; then
	run -o ncu.sonde -- sh -c 'ncu --launch-count 1 "$@"; exit $?' sh "${steady[@]}" >ncu.out 2>ncu.err
	echo "  status $?: $(grep -h ERROR ncu.out ncu.err | head -1)"
	grep 'ncu was started by the command' ncu.err
	claim $? "ncu in a script: a line says how to call it"
	run -o ncu.sonde -- sh -c 'env -u CUDA_INJECTION64_PATH -u NVTX_INJECTION64_PATH ncu --launch-count 1 "$@"; exit $?' \
		sh "${steady[@]}" >ncu.out 2>ncu.err
	status=$?
	! grep 'ncu was started by the command' ncu.err && [[ $dry || $status == 0 ]]
	claim $? "ncu in a script, called so: it works, and no line"
else
	echo "skipped ncu: not here"
fi
exit $bad
