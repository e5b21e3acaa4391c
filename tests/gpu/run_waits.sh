#!/bin/bash
# What was shown on puppets only of calls that wait: one that never returns is told when the
# program is killed, and what is not known of it; what names its kernel; a kernel's error is told
# with the wait that met it; and which stream a stream waits for; what `events` adds to a
# record of an event.
#
#   SONDE=build/portable/sonde tests/gpu/run_waits.sh   about 60 s on one card; needs nvcc
#   DRY=build/dev tests/gpu/run_waits.sh                on puppets: that the script works
#
# Status 1 if a claim fails. Reports and profiles go to $OUT, and what CUPTI holds while the kernel
# spins (held.py).
set -u
here=$(cd "$(dirname "$0")" && pwd)
dry=${DRY:+$(realpath "$DRY")}
sonde=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
bad=0
claim() {
	if (($1 == 0)); then echo "ok      $2"; else echo "FAILED  $2"; bad=1; fi
}
run() { timeout -k 5 60 "$sonde" run --no-report "$@"; }
one() { "$sonde" sql "$1" "$2" | tail -1 | tr -d ' '; }
field() { # profile, field of the first wait
	"$sonde" report --json "$1" | python3 -c "import json, sys; print((json.load(sys.stdin).get('waits') or [{}])[0].get('$2', '-'))"
}
says() { tr -s ' \n' ' ' <"$out/$1.report.txt" | grep -qF -- "$2"; } # report, words, wherever its lines end
keep() { # name of a profile
	"$sonde" report "$1.sonde" >"$out/$1.report.txt"
	[[ $out == "$work" ]] || cp "$1.sonde" "$out/"
	echo "        $(field "$1.sonde" call): last $(field "$1.sonde" last_op), pending $(field "$1.sonde" pending_launches)" \
		"named $(field "$1.sonde" pending_kernel), sampled $(field "$1.sonde" sampled_kernel)," \
		"records $(field "$1.sonde" handover), card $(field "$1.sonde" util_pct) %"
	echo "        stack $(field "$1.sonde" stack)"
	"$sonde" sql "$1.sonde" "SELECT start_ns, tid, stream, name, detail FROM mark WHERE detail LIKE 'call=%' OR detail LIKE 'op=%'"
	"$sonde" sql "$1.sonde" "SELECT name, count(*), min(start_ns), max(start_ns) FROM kernel GROUP BY name"
	"$sonde" sql "$1.sonde" "SELECT name, count(*), min(start_ns), max(start_ns) FROM runtime WHERE name LIKE '%Launch%' OR
		name LIKE '%Sync%' GROUP BY name"
	"$sonde" sql "$1.sonde" "SELECT sum(seen), sum(dropped), sum(malformed), sum(untimed) FROM loss"
}

cd "$work" || exit 1
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject HOST_END=kill HOST_MS=3000
	hang=("$dry/tests/inject/host" hang) fault=("$dry/tests/inject/host" fault) events=("$dry/tests/inject/host" events)
	spins=hangs faults=faults
else
	"$here/build.sh" "$work" waits
	[[ -x waits ]] || exit 1
	hang=(timeout -s KILL 8 ./waits hang) fault=(./waits fault) events=(./waits events)
	spins='spins(long long)' faults='faults(float*)'
fi

echo "== hang"
timeout -k 5 60 "$sonde" run --no-report -o hang.sonde -- "${hang[@]}" >hang.txt 2>&1 &
runs=$!
sleep $((${#dry} ? 2 : 5))
python3 "$here/held.py" "$(pgrep -P $runs | head -1)" "$out/hang.held.gz"
wait $runs
[[ $(field hang.sonde end) == open ]]; claim $? "a wait that never returned is told after SIGKILL"
keep hang
[[ $(field hang.sonde handover) == lost ]]; claim $? "what was not handed over is not known"
! says hang "No launch is without its end"; claim $? "and nothing is concluded from it"
if [[ ! $dry ]]; then
	[[ $(field hang.sonde pending_launches) == 1 ]]; claim $? "its launch is read from what CUPTI held: $(field hang.sonde pending_launches)"
	[[ $(field hang.sonde pending_kernel) == "$spins" ]]; claim $? "the kernel is named: $(field hang.sonde pending_kernel)"
	says hang "): a kernel "; claim $? "the card is busy: a kernel does not end"
	says hang "Its stack then: cudaStreamSynchronize"; claim $? "its stack begins with the call"
fi

echo "== hang, and recording ends before the program does"
run -d $((${#dry} ? 1 : 4)) -o ends.sonde -- "${hang[@]}" >ends.txt 2>&1
keep ends
[[ $(field ends.sonde pending_kernel) == "$spins" ]]; claim $? "the kernel is named: $(field ends.sonde pending_kernel)"
[[ $(one ends.sonde "select sum(malformed) from loss") == 0 ]]; claim $? "nothing is called malformed"

if [[ ! $dry ]]; then
	echo "== hang, sampled"
	run --pc-sampling on -o sampled.sonde -- "${hang[@]}" >sampled.txt 2>&1
	keep sampled
	"$sonde" sql sampled.sonde "SELECT function, sum(samples), min(start_ns), max(start_ns) FROM stall GROUP BY function"
	[[ $(field sampled.sonde sampled_kernel) == spins* ]]; claim $? "its samples name it: $(field sampled.sonde sampled_kernel)"
fi

echo "== fault"
run -o fault.sonde -- "${fault[@]}" >fault.txt 2>&1
[[ $(field fault.sonde result) == 700 ]]; claim $? "the error of a kernel is told: $(field fault.sonde error)"
keep fault
[[ $(field fault.sonde pending_kernel) == "$faults" ]]; claim $? "so is the kernel: $(field fault.sonde pending_kernel)"
[[ $(one fault.sonde "select sum(malformed) from loss") == 0 ]]; claim $? "nothing is called malformed"
[[ $(one fault.sonde "select sum(untimed) from loss") -ge 1 ]]; claim $? "but without times: $(one fault.sonde "select sum(untimed) from loss")"

echo "== events"
run -t cuda,sync,events -o events.sonde -- "${events[@]}" >events.txt 2>&1
count=$(one events.sonde "select count(*) from sync where detail like 'wait_on_stream=%'")
((count >= 10)); claim $? "streams that wait say for which: $count"
"$sonde" report events.sonde >"$out/events.report.txt"
[[ $out == "$work" ]] || cp events.sonde "$out/"
grep -A 3 'Streams that wait' "$out/events.report.txt"
if [[ ! $dry ]]; then
	echo "== a record of an event, ns: alone $(./waits records)," \
		"recorded $(run -t cuda,nvtx,memory,sync -o a.sonde -- ./waits records 2>said)," \
		"with events $(run -t cuda,nvtx,memory,sync,events -o b.sonde -- ./waits records 2>said)"
fi
exit $bad
