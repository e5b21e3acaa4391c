#!/bin/bash
# What `sonde run` costs the program: launch.cu, an eager torch loop, train.py, cases.cu,
# beside a bare CUPTI consumer, Nsight Systems and torch.profiler. Variants
# alternate; medians; launch.cu runs twice a round. A figure counts only if
# the profile holds every launch.
#
#   SONDE=build/portable/sonde tests/gpu/run_cost.sh [ROUNDS]     5; a round takes about 95 s
#
# ./bench overhead calls it. FIGURES: where the figures go as JSON. Status 1 if one is
# missed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=${PROGRAMS:-$here/../../examples/programs}
sonde=$(realpath "${SONDE:-$here/../../build/portable/sonde}")
rounds=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
many=200000
nsys=$(ls /opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys 2>/dev/null | tail -1)
for p in launch cases; do
	nvcc -O3 -lineinfo -arch=sm_90 -o "$work/$p" "$programs/$p.cu" || exit 1
done
cuda=$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")
gcc -O2 -fPIC -shared -I"$cuda/include" -I"$cuda/extras/CUPTI/include" -o "$work/bare.so" \
	"$here/bare_cupti.c" -L"$cuda/lib64" -L"$cuda/extras/CUPTI/lib64" -lcupti \
	-Wl,-rpath,"$cuda/lib64:$cuda/extras/CUPTI/lib64" || exit 1
cd "$work"
# One CPU of each core; the thread of the torch loop has one for itself.
read -r CORE others < <(python3 "$here/quiet_core.py")
export CORE
taskset -pc "$others" $$ >/dev/null

us() { grep -o '[0-9.]* us each' | grep -o '[0-9.]*'; }
step() { sed -n 's/.*step \([0-9.]*\).*/\1/p'; }
run() { timeout 120 "$sonde" run --no-report -o "$work/p.sonde" "$@" 2>>"$out/run_cost.err"; }
kernels() { "$sonde" sql "$work/p.sonde" 'select count(*) from kernel' | tail -1 | tr -d ' '; }
bytes() { "$sonde" sql "$work/p.sonde" 'select count(*) from kernel' >/dev/null && stat -c %s "$work/p.sonde"; }

# launch.cu, once each way.
launches() {
	./launch $many | us >>plain
	CUDA_INJECTION64_PATH=$work/bare.so BARE=kernel ./launch $many | us >>bare
	CUDA_INJECTION64_PATH=$work/bare.so BARE=api ./launch $many | us >>bare_api
	run --no-system --no-threads -t kernel -- ./launch $many | us >>kernel
	kernels >>count
	run --no-system --no-threads -t cuda -- ./launch $many | us >>cuda
	kernels >>count
	run -- ./launch $many | us >>all
	kernels >>count
	bytes >>size
	run --pc-sampling on -- ./launch $many | us >>pc
	kernels >>count
	if [[ $nsys ]]; then
		"$nsys" profile --trace=cuda --sample=none --cpuctxsw=none -f true -o nsys ./launch $many 2>/dev/null | us >>nsys_cuda
	fi
}

for ((i = 0; i < rounds; i++)); do
	launches
	launches
	python3 "$here/eager.py" none | us >>t_plain
	run -- python3 "$here/eager.py" none | us >>t_sonde
	run --pc-sampling on -- python3 "$here/eager.py" none | us >>t_pc
	python3 "$here/eager.py" cuda 2>/dev/null | us >>t_torch
	train="python3 $programs/train.py fast --profiler none --steps 150"
	$train 2>/dev/null | step >>s_plain
	CUDA_INJECTION64_PATH=$work/bare.so BARE=launch $train 2>/dev/null | step >>s_bare
	# shellcheck disable=SC2086
	run -- $train | step >>s_sonde
	a=$(date +%s%N); ./cases 20 >/dev/null; b=$(date +%s%N); run --pc-sampling off -- ./cases 20 >/dev/null; c=$(date +%s%N)
	run --pc-sampling on -- ./cases 20 >/dev/null; d=$(date +%s%N)
	echo $(((b - a) / 1000000)) >>c_plain
	echo $(((c - b) / 1000000)) >>c_off
	echo $(((d - c) / 1000000)) >>c_on
done
grep -sI . plain bare bare_api kernel cuda all pc nsys_cuda [cst]_* >"$out/run_cost.rows"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 "$here/run_cost.py" "$work" ${FIGURES:+"$FIGURES"} | tee "$out/run_cost.txt"
exit "${PIPESTATUS[0]}"
