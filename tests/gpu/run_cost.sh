#!/bin/bash
# What `sonde run` costs the program: launch.cu, an eager torch loop, cases.cu,
# beside a bare CUPTI consumer, Nsight Systems and torch.profiler. Variants
# alternate; medians; a figure counts only if the profile holds every launch.
#
#   SONDE=build/portable/sonde tests/gpu/run_cost.sh [ROUNDS]
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=${PROGRAMS:-$here/../../examples/programs}
sonde=$(realpath "${SONDE:-$here/../../build/portable/sonde}")
rounds=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
launches=200000
nsys=$(ls /opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys 2>/dev/null | tail -1)
for p in launch cases; do
	nvcc -O3 -lineinfo -arch=sm_90 -o "$work/$p" "$programs/$p.cu" || exit 1
done
cuda=$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")
gcc -O2 -fPIC -shared -I"$cuda/include" -I"$cuda/extras/CUPTI/include" -o "$work/bare.so" \
	"$here/bare_cupti.c" -L"$cuda/lib64" -L"$cuda/extras/CUPTI/lib64" -lcupti \
	-Wl,-rpath,"$cuda/lib64:$cuda/extras/CUPTI/lib64" || exit 1
cd "$work"

us() { grep -o '[0-9.]* us each' | grep -o '[0-9.]*'; }
step() { sed -n 's/.*step \([0-9.]*\).*/\1/p'; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR+1)/2] : (v[NR/2] + v[NR/2+1]) / 2 }'; }
run() { timeout 120 "$sonde" run --no-report -o "$work/p.sonde" "$@" 2>>"$out/run_cost.err"; }
kernels() { "$sonde" sql "$work/p.sonde" 'select count(*) from kernel' | tail -1 | tr -d ' '; }
bytes() { "$sonde" sql "$work/p.sonde" 'select count(*) from kernel' >/dev/null && stat -c %s "$work/p.sonde"; }

for ((i = 0; i < rounds; i++)); do
	./launch $launches | us >>plain
	CUDA_INJECTION64_PATH=$work/bare.so BARE=kernel ./launch $launches | us >>bare
	CUDA_INJECTION64_PATH=$work/bare.so BARE=api ./launch $launches | us >>bare_api
	run --no-system -t kernel -- ./launch $launches | us >>kernel
	kernels >>count
	run -- ./launch $launches | us >>all
	kernels >>count
	bytes >>size
	run --pc-sampling on -- ./launch $launches | us >>pc
	kernels >>count
	if [[ $nsys ]]; then
		"$nsys" profile --trace=cuda --sample=none --cpuctxsw=none -f true -o nsys ./launch $launches 2>/dev/null | us >>nsys_cuda
	fi
	python3 "$here/eager.py" none | us >>t_plain
	run -- python3 "$here/eager.py" none | us >>t_sonde
	run --pc-sampling on -- python3 "$here/eager.py" none | us >>t_pc
	python3 "$here/eager.py" cuda 2>/dev/null | us >>t_torch
	python3 "$programs/train.py" fast --profiler none 2>/dev/null | step >>s_plain
	run -- python3 "$programs/train.py" fast --profiler none | step >>s_sonde
	a=$(date +%s%N); ./cases 20 >/dev/null; b=$(date +%s%N); run --pc-sampling off -- ./cases 20 >/dev/null; c=$(date +%s%N)
	run --pc-sampling on -- ./cases 20 >/dev/null; d=$(date +%s%N)
	echo $(((b - a) / 1000000)) >>c_plain
	echo $(((c - b) / 1000000)) >>c_off
	echo $(((d - c) / 1000000)) >>c_on
done
m() { median <"$1"; }
p=$(m plain)
row() { # name file baseline
	awk -v n="$1" -v v="$(m "$2")" -v p="$3" 'BEGIN { printf "%-44s %8.3f us  +%.3f\n", n, v, v - p }'
}
{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	echo "launch.cu, $launches launches, medians of $rounds"
	row "plain" plain "$p"
	row "bare CUPTI consumer, kernels" bare "$p"
	row "bare CUPTI consumer, kernels + runtime API" bare_api "$p"
	row "sonde run, kernels alone" kernel "$p"
	row "sonde run" all "$p"
	row "sonde run, PC sampling" pc "$p"
	[[ -s nsys_cuda ]] && row "nsys --trace=cuda" nsys_cuda "$p"
	awk -v k="$(m kernel)" -v b="$(m bare)" -v a="$(m all)" -v n="$( [[ -s nsys_cuda ]] && m nsys_cuda || echo 0)" -v p="$p" \
		'BEGIN { printf "kernels alone / bare: %.2f x (<= 1.25); sonde / nsys: %.2f x (<= 1, goal 0.8)\n", (k-p)/(b-p), n ? (a-p)/(n-p) : -1 }'
	echo "profiles without every launch: $(awk -v n=$((launches + 1)) '$1 != n' count | wc -l) of $(wc -l <count)"
	awk -v s="$(m size)" -v n=$launches 'BEGIN { printf "bytes a launch, whole file: %.2f\n", s / n }'
	t=$(m t_plain)
	echo "eager torch loop, 50,000 operators"
	row "plain" t_plain "$t"
	row "sonde run" t_sonde "$t"
	row "sonde run, PC sampling" t_pc "$t"
	row "torch.profiler(CUDA)" t_torch "$t"
	awk -v s="$(m t_sonde)" -v o="$(m t_torch)" -v p="$t" 'BEGIN { printf "sonde / torch.profiler(CUDA): %.2f x (<= 0.5)\n", (s-p)/(o-p) }'
	awk -v p="$(m s_plain)" -v s="$(m s_sonde)" 'BEGIN { printf "train.py fast, a step: plain %.2f ms, sonde run %.2f ms (+%.1f %%, <= 5)\n", p * 1e3, s * 1e3, (s - p) * 100 / p }'
	awk -v a="$(m c_plain)" -v b="$(m c_off)" -v c="$(m c_on)" 'BEGIN { printf "cases 20: plain %d ms, sonde %d ms, with PC sampling %d ms (+%.1f %% of sonde)\n", a, b, c, (c-b)*100/b }'
} | tee "$out/run_cost.txt"
