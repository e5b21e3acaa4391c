#!/bin/bash
# What CUPTI does in real programs, recorded small enough to be kept, and each recording
# played at once (tests/fake/replay_cupti.h): the profile must have what the recorded
# one had.
#
#   SONDE=build/portable/sonde tests/gpu/record_cupti.sh [SECONDS]   begins none after so long; 50
#   DRY=build/dev tests/gpu/record_cupti.sh          on puppets: that the script itself works
#
# Under a minute on one H200. Needs libsonde-inject.so beside sonde, gcc; on a card nvcc, and
# python3 with torch (its CUPTI) and triton (CUPTI 12.8): what is not there is said to be skipped.
# A row each as it is known, ok or FAILED in front. $OUT gets cupti_logs.tar, of cupti_NAME.log.gz
# for tests/fake/logs, and record_cupti.txt, what was said, with the rows; of one that is not played the
# same, both profiles. Status 1 if there is one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
limit=${1:-50}
dry=${DRY:+$(realpath "$DRY")}
sonde=$(realpath "${SONDE:-${dry:-$root/build/portable}/sonde}")
programs=$(realpath "${PROGRAMS:-$root/examples/programs}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
bad=0
cd "$work" || exit 1

# The recorder, the player, and what it needs in place of a driver: plain C, no header of CUDA's.
mkdir fake logs
fake="$root/tests/fake"
cc=(gcc -std=gnu17 -D_GNU_SOURCE -O2 -fPIC -I "$root/src" -I "$root/tests" -I "$root")
hosts=("$root"/tests/inject/host*.c)
build() {
	set -e
	"${cc[@]}" -shared -o fake/librecord-cupti.so "$fake/record_cupti.c" -lpthread -ldl
	"${cc[@]}" -shared -o fake/libcupti.so.13 "$fake"/replay_*.c "$fake/puppet_word.c" -lpthread
	"${cc[@]}" -shared -o fake/libcuda.so.1 "$fake/puppet_cuda.c" "$fake/puppet_graph.c" -lpthread -ldl
	"${cc[@]}" -o fake/host "${hosts[@]/*host_cupti.c/-O2}" fake/libcuda.so.1 -lpthread -ldl
}
(build) >cc.err 2>&1
[[ -x fake/host ]] || { cat cc.err; exit 1; }
if [[ ! $dry ]]; then
	for p in pipeline cases unified; do
		nvcc -O3 -lineinfo -arch=native -o "$p" "$programs/$p.cu" &
	done
	nvcc -O2 -std=c++17 -arch=native -o owed "$here/owed.cu" &
	python3 -c 'import triton, glob, os
print((glob.glob(os.path.join(os.path.dirname(triton.__file__), "**/libcupti.so*"), recursive=True) or [""])[0])' >old.txt 2>/dev/null &
	python3 -c 'import torch; print(torch.__version__)' >torch.txt 2>/dev/null &
	wait
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
fi
cat >loop.py <<'PY'
"""Some of what a training step does, a graph, an event, and two threads that launch."""
import threading
import torch
x = torch.ones(256, 256, device="cuda")
for step in range(4):
    fed = torch.ones(256, 256).pin_memory().to("cuda", non_blocking=True)
    loss = ((fed @ x).relu() * 1e-3).sum().item()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2 + 1
for step in range(10):
    graph.replay()
event = torch.cuda.Event()
event.record()
event.synchronize()
def launch():
    with torch.cuda.stream(torch.cuda.Stream()):
        z = x
        for _ in range(100):
            z = z * 1.0001
threads = [threading.Thread(target=launch) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
torch.cuda.synchronize()
PY

# One row: of kernels, copies, calls, waits, marks how many, of samples their sum; then times.
# Of what was recorded by us alone: a program that loads for long before it uses CUDA has been told of
# as one of the other processes by then, and they are source 0.
OURS="source in (select s.id from source s join string t on t.id = s.reader where t.text = 'cuda')"
FACTS="select (select count(*) from kernel) k, (select count(*) from memcpy) + (select count(*) from memset) c,
	(select count(*) from runtime) + (select count(*) from driver) a, (select count(*) from sync) w,
	(select count(*) from mark where $OURS and name not like '%recording%') m,
	(select coalesce(sum(samples), 0) from stall) s,
	(select count(*) from alloc) al, (select coalesce(sum(duration_ns), 0) from kernel) kn, (select coalesce(sum(bytes), 0) from memcpy) cb,
	(select coalesce(sum(duration_ns), 0) from runtime) rn, (select coalesce(sum(dropped), 0) from loss where $OURS) l"
facts() { "$sonde" sql "$1" "$FACTS" | tail -1 | xargs; }
row() { printf '%-7s %-20s %7s %8s %7s %7s %7s %6s %6s %9s  %s\n' "$@"; }
header() { row "" recording cupti "KiB .gz" kernels copies calls waits marks samples "played"; }
version_of() { # 1fbd1 in hex is 130001, 13.0; 1a is 26, 12.8
	local n
	n=$((16#$(sed -n 's/.* cuptiGetVersion 0 > //p' "$1" | head -1)))
	if ((n == 26)); then echo 12.8; elif ((n > 1000)); then echo "$((n / 10000)).$((n / 100 % 100))"; else echo "#$n"; fi
}

# What is recorded is played with the same options.
record() { # NAME [options...] -- program...
	local name=$1 options=() recorded played verdict=same word=ok kib
	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	((SECONDS < limit)) || { echo "skipped $name: out of time at $SECONDS s"; return; }
	timeout 30 "$sonde" run --no-report --no-system --no-threads "${options[@]}" -o recorded.sonde -- \
		env LD_PRELOAD="$work/fake/librecord-cupti.so" RECORD_CUPTI="$work/logs/$name" "$@" >>said.txt 2>&1
	echo "$name: recorded, status $?" >>said.txt
	[[ -s logs/$name ]] || { echo "FAILED $name: no log"; tail -3 said.txt; bad=1; return; }
	LD_LIBRARY_PATH=$work/fake SONDE_CUPTI='' PUPPET_CUPTI='' PUPPET_LOG=$work/logs/$name timeout 30 "$sonde" run --no-report \
		--no-system --no-threads "${options[@]}" -o played.sonde -- "$work/fake/host" replay >>said.txt 2>&1
	echo "$name: played, status $?" >>said.txt
	recorded=$(facts recorded.sonde)
	played=$(facts played.sonde)
	# Of a log that is full the rest is missing.
	if grep -q '^full' "logs/$name"; then
		verdict="log full, played ${played%% *} kernels"
		word=full
	elif [[ $recorded != "$played" || ! $recorded ]]; then
		verdict="DIFFERS: $played"
		word=FAILED
		bad=1
		cp recorded.sonde "$out/$name.recorded.sonde"
		cp played.sonde "$out/$name.played.sonde"
	fi
	gzip -9 -c "logs/$name" >"logs/cupti_$name.log.gz"
	kib=$((($(stat -c %s "logs/cupti_$name.log.gz") + 1023) / 1024))
	# shellcheck disable=SC2086
	set -- $recorded
	row $word "$name" "$(version_of "logs/$name")" $kib "${1:-?}" "${2:-?}" "${3:-?}" "${4:-?}" "${5:-?}" "${6:-?}" \
		"$verdict ($SECONDS s)" | tee -a table.txt
	[[ $verdict == same* ]] || echo "    recorded: $recorded"
}

header | tee table.txt
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject
	host=$dry/tests/inject/host
	record work -- "$host" work
	record threads -- "$host" threads
	record leaks -- "$host" leaks
	record sampled --pc-sampling on -- "$host" one
	SONDE_CUPTI=$dry/tests/inject/old/libcupti.so.12 PUPPET_CUPTI=version=22 record old_library -- "$host" work
	RECORD_CUPTI_KIB=200 record too_much -- "$host" one
	PUPPET_CUPTI=version=26 record old --pc-sampling on -- "$host" graphs
	record api_all --cuda-api all -- "$host" work
	record queued --trace cuda,queued -- "$host" work
	record graph_mode --cuda-graph graph -- "$host" graphs
	# shellcheck disable=SC2016
	record late -- sh -c 'for i in $(seq 14); do sleep 0.2; done; exec "$0" leaks' "$host"
else
	echo "ready at $SECONDS s, torch $(cat torch.txt)"
	record pipeline -- ./pipeline 2
	record pipeline_sampled --pc-sampling on -- ./pipeline 2
	record cases_sampled --pc-sampling on -- ./cases 1
	old=$(cat old.txt)
	if [[ $old ]]; then
		SONDE_CUPTI=$old record pipeline_old -- ./pipeline 2
		SONDE_CUPTI=$old record cases_old_sampled --pc-sampling on -- ./cases 1
	else
		echo "skipped CUPTI 12.8: no triton here"
	fi
	if [[ -s torch.txt ]]; then
		record torch -- python3 loop.py
	else
		echo "skipped PyTorch: not here"
	fi
	record graphs -- ./owed graphs 20
	record reset -- ./owed reset 3
	record unified --trace cuda,memory,sync,unified -- ./unified 1
	# More samples than there is memory for: how CUPTI says so.
	RECORD_CUPTI_KIB=2048 record flood --pc-sampling on --pc-period 12 -- ./cases 10
	record api_all --cuda-api all -- ./pipeline 1
	record queued --trace cuda,queued -- ./pipeline 1
	record graph_mode --cuda-graph graph -- ./owed graphs 20
	# Does 12.8 have one buffer for all threads?
	[[ ! $old ]] || SONDE_CUPTI=$old record threads_old -- ./owed threads 2 0
fi
(cd logs && tar cf "$out/cupti_logs.tar" cupti_*.log.gz)
cp said.txt "$out/record_cupti.txt" 2>/dev/null
cat table.txt >>"$out/record_cupti.txt"
grep -E 'sonde run: process|puppet:' said.txt | sort | uniq -c | head -20
echo "ended after $SECONDS s"
exit $bad
