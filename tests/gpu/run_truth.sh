#!/bin/bash
# What `sonde run` records is true: programs with known faults, beside a Kineto
# trace of the same job, with CUPTI in the program's own use, with KILLS (20) kills.
# On two cards also a torchrun job. About 170 s on one H200, 40 s more on two.
#
#   SONDE=build/portable/sonde tests/gpu/run_truth.sh [SECONDS]     begins nothing that would end later; 600
#
# Needs libsonde-inject.so beside sonde, nvcc, python3 with torch. Logs and
# profiles go to $OUT. Status 1 if a claim fails.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
sonde=$(realpath "${SONDE:-$here/../../build/portable/sonde}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
kills=${KILLS:-20}
limit=${1:-600}
"$here/build.sh" "$work" launch cases pipeline || exit 1
cd "$work" || exit 1
bad=0
claim() {
	if (($1 == 0)); then echo "ok      $2"; else echo "FAILED  $2"; bad=1; fi
}
# Is there time for SECONDS more?
time_for() {
	((SECONDS + $1 <= limit)) || { echo "skipped $2: out of time at $SECONDS s"; return 1; }
	echo "== $2 (at $SECONDS s)"
}
run() { timeout -k 5 90 "$sonde" run --no-report "$@"; }
one() { "$sonde" sql "$1" "$2" | tail -1 | tr -d ' '; }

if time_for 10 "pipeline"; then
	run -o pipeline.sonde -- ./pipeline 20 >/dev/null 2>"$out/pipeline.err"
	"$sonde" report --json pipeline.sonde >pipeline.json
	"$sonde" report pipeline.sonde >"$out/pipeline.txt"
	python3 "$here/run_truth.py" pipeline pipeline.json
	claim $? "pipeline.cu: the faults built into it are told"
fi

if time_for 30 "cases"; then
	# Without and with PC sampling in turn. one_block alone is on one SM: 18 samples of 5 rounds.
	for i in 0 1 2; do
		run -o cases0.sonde -- ./cases 5 >/dev/null
		run --pc-sampling on -o cases1.sonde -- ./cases 10 >/dev/null
		for k in 0 1; do
			"$sonde" sql --json cases$k.sonde 'select name, duration_ns from kernel' >cases$k.$i.rows
		done
	done
	"$sonde" report --json cases1.sonde >cases1.json
	python3 "$here/run_truth.py" cases 'cases0.*.rows' 'cases1.*.rows' cases1.json
	claim $? "cases.cu: durations and top stalls"
	"$sonde" report cases1.sonde >"$out/cases.txt"
fi

for mode in slow fast; do
	time_for 40 "train $mode" || continue
	OUT=$work timeout -k 5 60 python3 "$programs/train.py" $mode >/dev/null 2>&1
	"$sonde" import -o trace.sonde "train_$mode.json" >/dev/null
	"$sonde" report --json trace.sonde >trace.json
	run -c cudaProfilerApi -o train.sonde -- python3 "$programs/train.py" $mode --profiler none
	"$sonde" report --json train.sonde >train.json
	"$sonde" report train.sonde >"$out/train_$mode.txt"
	python3 "$here/run_truth.py" train $mode trace.json train.json
	claim $? "train.py $mode: as Kineto sees it"
done

if time_for 40 "other users of CUPTI"; then
	mkdir -p own
	OUT=$work/own run -o own.sonde -- python3 "$programs/train.py" fast >own.log 2>&1
	[[ -s own/train_fast.json ]] && grep -q 'asked for CUPTI itself' own.log
	claim $? "its trace is written, and sonde says that it stepped back"
	cupti12=$(python3 -c 'import triton, glob, os; print((glob.glob(os.path.join(os.path.dirname(triton.__file__), "**/libcupti.so*"), recursive=True) or [""])[0])' 2>/dev/null)
	if [[ $cupti12 ]]; then
		SONDE_CUPTI=$cupti12 run -o c12.sonde -- ./launch 20000 >/dev/null 2>c12.err
		n=$(one c12.sonde 'select count(*) from kernel')
		echo "$cupti12: $n kernels"; cat c12.err
		[[ $n == 20001 ]]
		claim $? "CUPTI 12.8: every launch"
	fi
fi

if time_for 10 "the end"; then
	run -o end.sonde -- sh -c './launch 400000 >/dev/null; date +%s%N >end.ns' 2>/dev/null
	ms=$((($(date +%s%N) - $(cat end.ns)) / 1000000))
	((ms < 1000)) && [[ $(one end.sonde 'select count(*) from kernel') == 400001 ]]
	claim $? "the profile is complete $ms ms after the target's end (1,000)"
fi

if time_for 50 "kills"; then
	unreadable=0
	for ((i = 1; i <= kills / 2; i++)); do
		run -o kill$i.sonde -- ./launch 400000 >/dev/null 2>&1 &
		sleep "0.$((RANDOM % 9))"; sleep 0.3
		pkill -9 -x launch; wait $!
		"$sonde" report --json kill$i.sonde >/dev/null 2>&1 || unreadable=$((unreadable + 1))
	done
	for ((i = kills / 2 + 1; i <= kills; i++)); do
		"$sonde" run --no-report -o kill$i.sonde -- ./launch 200000 >alive$i 2>/dev/null &
		pid=$!
		sleep "0.$((RANDOM % 9))"; sleep 0.4
		kill -9 $pid; wait $pid 2>/dev/null
		for ((k = 0; k < 200; k++)); do pgrep -x launch >/dev/null || break; sleep 0.1; done
		grep -q '200000 launches' alive$i || { echo "kill $i: the target did not end"; unreadable=$((unreadable + 1)); }
		"$sonde" report --json kill$i.sonde >/dev/null 2>&1 ||
			"$sonde" report --json kill$i.sonde.part >/dev/null 2>kill.err ||
			{ unreadable=$((unreadable + 1)); echo "kill $i: $(cat kill.err)"; }
	done
	echo "unreadable: $unreadable; left in /dev/shm: $(ls /dev/shm | grep -c sonde); others: $(ls | grep -v 'sonde\|alive\|json\|rows\|log\|err\|own\|launch$\|cases$\|pipeline$\|pickle\|txt' | tr '\n' ' ')"
	claim $unreadable "$kills kills: profiles readable, targets unharmed"
fi

if (($(nvidia-smi -L | wc -l) > 1)) && time_for 60 "torchrun on two cards"; then
	mkdir -p ddp
	OUTD=$work/ddp run -o ddp0.sonde -- torchrun --nproc-per-node 2 "$programs/ddp.py" >ddp.log 2>&1
	sed "s/with profile(.*/import contextlib\nwith contextlib.nullcontext() as p:/; s/ p.step()/ pass/" "$programs/ddp.py" >ddp_plain.py
	OUTD=$work/ddp run -o ddp.sonde -- torchrun --nproc-per-node 2 ddp_plain.py >>ddp.log 2>&1
	claim $? "torchrun ends well"
	"$sonde" report --json ddp.sonde >ddp.json
	"$sonde" report ddp.sonde >"$out/ddp.txt"
	cp ddp.sonde ddp.log "$out/"
	python3 "$here/run_truth.py" ddp ddp.json
	claim $? "both ranks in one profile, each with its card"
fi
exit $bad
