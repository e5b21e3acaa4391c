#!/bin/bash
# What `sonde run` claims and was shown on puppets only, in one call on a card: leaks
# with their sites, graphs, resets, calls of the system, threads, other tools beside
# us, PC sampling and windows while threads launch, several threads at
# the highest rate. What each part of a recording costs: run_parts.sh.
#
#   SONDE=build/portable/sonde tests/gpu/run_owed.sh [SECONDS]   at most so long; 450
#   DRY=build/dev tests/gpu/run_owed.sh          on puppets: that the script itself works
#
# About 3 minutes on one H200, 3 more if there is time for run_cost.sh. Needs libsonde-inject.so and -osrt.so beside sonde; on
# a card nvcc and python3 with torch. What there is no time or tool for is said to be
# skipped. Status 1 if a claim fails. Reports, logs and profiles up to 4 MiB go to $OUT.
set -u
here=$(cd "$(dirname "$0")" && pwd)
limit=${1:-450}
dry=${DRY:+$(realpath "$DRY")}
sonde=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
bad=0
claim() {
	if (($1 == 0)); then echo "ok      $2"; else echo "FAILED  $2"; bad=1; fi
}
skip() { echo "skipped $1"; }
# Is there time for SECONDS more?
time_for() {
	((SECONDS + $1 <= limit)) || { skip "$2: out of time at $SECONDS s"; return 1; }
	echo "== $2 (at $SECONDS s)"
}
run() { timeout -k 5 100 "$sonde" run --no-report "$@"; }
one() { "$sonde" sql "$1" "$2" | tail -1 | tr -d ' '; }
check() { python3 "$here/run_owed.py" "$@"; }
# What the process's own source lost, or with '=' the kernel's of context switches, which
# are neither kernels nor calls.
lost_of() { # profile [=]
	one "$1" "select coalesce(sum(l.dropped), 0) from loss l join source s on s.id = l.source
		join string t on t.id = s.reader where t.text ${2:-<>} 'perf'"
}
# On puppets no switch finds no room: here some did, to see that nothing counts them as launches.
lose_switches() { # profile
	[[ ! $dry ]] || python3 - "$1" <<-'END'
		import sqlite3, sys
		with sqlite3.connect(sys.argv[1]) as profile:
		    profile.execute("update loss set dropped = dropped + 1000 where source in (select s.id from source s "
		                    "join string t on t.id = s.reader where t.text = 'perf')")
	END
}
made() { grep -o 'launches [0-9]*' "$1" | awk '{ n += $2 } END { print n + 0 }'; }

cd "$work" || exit 1
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject
	host=$dry/tests/inject/host
	leaks=("$host" leaks) graphs=("$host" graphs) reset=("$host" reset) steady=("$host" steady)
	threads=("$host" storm_launches) many=("$host" many) several=("$host" threads)
else
	"$here/build.sh" "$work" owed launch cases pipeline pc_switch
	[[ -x owed && -x launch && -x cases && -x pipeline ]] || exit 1
	leaks=(./owed leaks 40) graphs=(./owed graphs 20000) reset=(./owed reset 5)
	steady=(./owed threads 1 8) threads=(./owed threads 8 60)
	many=(./owed threads 1 3) several=(./owed threads 4 5)
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
fi

# Every launch is in the profile, or counted as lost.
exact() { # name program...
	local name=$1 kernels lost
	shift
	run -o "$name.sonde" "${options[@]}" -- "$@" >"$name.out" 2>"$name.err"
	claim $? "$name: ends well"
	lose_switches "$name.sonde"
	kernels=$(one "$name.sonde" 'select count(*) from kernel')
	lost=$(lost_of "$name.sonde")
	grep 'sonde run: p' "$name.err"
	echo "  launched $(made "$name.out"), kernels $kernels, lost $lost, of context switches" \
		"$(lost_of "$name.sonde" =), $(stat -c %s "$name.sonde") bytes"
	(($(made "$name.out") == kernels + lost))
	claim $? "$name: kept and lost are all that was launched"
}

if time_for 15 leaks; then
	options=()
	exact leaks "${leaks[@]}"
	"$sonde" report --json leaks.sonde >leaks.json
	"$sonde" report leaks.sonde >"$out/leaks.txt"
	check leaks leaks.json
	claim $? "events, graphs, executable graphs: told, each with its function"
	if [[ ! $dry ]]; then
		run -o pipeline.sonde -- ./pipeline 20 >/dev/null 2>pipeline.err
		"$sonde" report --json pipeline.sonde >pipeline.json
		check pipeline pipeline.json
		claim $? "pipeline.cu: 8 MiB blocks and streams of main()"
	fi
fi

if time_for 20 graphs; then
	options=(--cuda-graph node)
	exact graph_nodes "${graphs[@]}"
	run --cuda-graph graph -o graphs.sonde -- "${graphs[@]}" >graphs.out 2>/dev/null
	claim $? "graph mode: ends well"
	echo "  graphs $(one graphs.sonde 'select count(*) from graph'), kernels $(one graphs.sonde 'select count(*) from kernel')"
	options=()
	exact reset "${reset[@]}"
	options=(--pc-sampling on)
	exact reset_sampled "${reset[@]}"
fi

if time_for 15 "least and most memory"; then
	for memory in 16M 1G; do
		options=(--memory $memory)
		exact memory_$memory "${many[@]}"
	done
fi

if time_for 20 "calls of the system, threads"; then
	target=("${steady[@]}")
	[[ $dry ]] || target=(./pipeline 20)
	run -t cuda,nvtx,osrt,sched,cpu -o os.sonde -- "${target[@]}" >os.out 2>os.err
	claim $? "osrt: ends well"
	cat os.err
	"$sonde" report --json os.sonde >os.json
	echo "  calls of the system: $(one os.sonde 'select count(*) from os')"
	check threads os.json "$(one os.sonde 'select count(*) from os')"
	claim $? "what the thread was at is named in the idle causes"
fi

if time_for 60 "other tools"; then
	for tool in ncu nsys compute-sanitizer cuda-gdb; do
		path=$(command -v $tool || ls /opt/nvidia/nsight-compute/*/host/target-linux-x64/$tool 2>/dev/null | tail -1)
		[[ $dry || $path ]] || { skip "$tool: not here"; continue; }
		case $tool in
		ncu) with=(--clock-control none --launch-count 2) ;;
		nsys) with=(profile --trace=cuda --sample=none --cpuctxsw=none -f true -o nsys) ;;
		cuda-gdb) with=(-batch -ex run --args) ;;
		*) with=() ;;
		esac
		program=(./launch 100)
		if [[ $dry ]]; then
			printf '#!/bin/sh\n"$@"\n' >$tool
			chmod +x $tool
			path=./$tool with=() program=("$host" quick_exit)
		fi
		timeout -k 5 60 "$path" "${with[@]}" "${program[@]}" >alone.log 2>&1
		alone=$?
		for way in called "called by a script"; do
			# What ncu does in a script is in run_ops.sh.
			[[ $tool$way != ncucalled?* || $dry ]] || continue
			command=("$path" "${with[@]}" "${program[@]}")
			[[ $way == called ]] || command=(sh -c '"$@"; exit $?' sh "${command[@]}")
			run -o tool.sonde -- "${command[@]}" >tool.log 2>&1
			status=$?
			lines=$(grep -c 'not recorded' tool.log)
			((status == alone && lines == 1))
			claim $? "$tool, $way: status $status as alone ($alone), one line ($lines)"
			grep 'sonde run: p' tool.log
		done
	done
fi

if time_for 40 "PC sampling"; then
	options=(--pc-sampling on)
	exact sampled "${many[@]}"
	"$sonde" report --json sampled.sonde >sampled.json
	check sampling sampled.json
	claim $? "PC sampling while one thread launches: every launch is there, and the time it covers"
	run --pc-sampling on -o several.sonde -- "${several[@]}" >several.out 2>several.err
	claim $? "PC sampling while several threads launch: it ends"
	cat several.err
	echo "  samples $(one several.sonde 'select sum(samples) from stall')"
	if [[ ! $dry ]]; then
		run --pc-sampling on --pc-period 12 -o flood.sonde -- ./cases 40 >/dev/null 2>flood.err
		claim $? "PC sampling, more samples than there is memory for: it ends"
		cat flood.err
		# Does it ever have room again?
		[[ -x pc_switch ]] && PERIOD=8 SPAN=1000 MIB=8 timeout -k 5 10 ./pc_switch full
		run --pc-sampling on -o short.sonde -- ./cases 1 >/dev/null 2>short.err
		claim $? "PC sampling, a short program: it ends"
		echo "  samples $(one short.sonde 'select sum(samples) from stall')"
	fi
fi

if time_for 20 "windows while several threads launch"; then
	run --calibrate -o several.sonde -- "${several[@]}" >several.out 2>&1
	claim $? "--calibrate while several threads launch: it ends"
	# Threads' records come before that of the card, which is in the main thread's buffer.
	cards=$([[ $dry ]] && echo 1 || nvidia-smi -L | wc -l)
	(($(one several.sonde 'select count(*) from device') == cards))
	claim $? "cards, of which $cards are there: $(one several.sonde 'select count(*) from device')"
	run --delay 1 --duration 2 -o window.sonde -- "${several[@]}" >window.out 2>&1
	claim $? "recording begins and ends while several threads launch: it ends"
	recorded=$(one window.sonde 'select count(*) from kernel')
	echo "  kernels $recorded, launched $(made window.out)"
	if [[ ! $dry ]]; then # a puppet's program is over by then
		((recorded > 0 && recorded < $(made window.out)))
		claim $? "some launches lie in the window, some outside"
		us=$(one window.sonde 'select coalesce((max(start_ns) - min(start_ns)) / 1000, 0) from kernel')
		((us > 500000 && us < 2600000))
		claim $? "from the first kernel to the last $us us, of a window of 2 s"
	fi
fi

if [[ ! $dry ]] && time_for 10 "cost of events made and destroyed"; then
	for count in 10000 100000; do
		timeout -k 5 30 ./owed events $count
		run --no-system --no-threads -t cuda -o events.sonde -- ./owed events $count 2>/dev/null
		run --no-system --no-threads -o events.sonde -- ./owed events $count 2>/dev/null
	done
fi

if time_for 80 "several threads at the highest rate"; then
	options=()
	run -o threads.sonde -- "${threads[@]}" >threads.out 2>threads.err
	claim $? "threads: ends well"
	cat threads.err
	lose_switches threads.sonde
	n=$(made threads.out)
	kernels=$(one threads.sonde 'select count(*) from kernel')
	calls=$(one threads.sonde "select (select count(*) from runtime where name like 'cudaLaunchKernel%') + (select count(*) from driver where name like 'cuLaunchKernel%')")
	lost=$(lost_of threads.sonde)
	echo "  launched $n, kernels $kernels, their calls $calls, lost $lost, of context switches" \
		"$(lost_of threads.sonde =), $(stat -c %s threads.sonde) bytes"
	((2 * n == kernels + calls + lost))
	claim $? "threads: kernels and calls, kept and lost, are all that was launched"
fi

if [[ ! $dry ]] && time_for 180 "cost beside others"; then
	SONDE=$sonde "$here/run_cost.sh" 2
fi
cp ./*.err ./*.json ./*.log "$out/" 2>/dev/null
find . -maxdepth 1 -name "*.sonde" -size -4M -exec cp {} "$out/" \;
echo "ended after $SECONDS s"
exit $bad
