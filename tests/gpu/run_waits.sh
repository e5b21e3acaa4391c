#!/bin/bash
# What was shown on puppets only of calls that wait: one that never returns is told when the
# program is killed, a kernel's error is told with the wait that met it, and which stream a
# stream waits for; what `events` adds to a record of an event.
#
#   SONDE=build/portable/sonde tests/gpu/run_waits.sh   about 40 s on one card; needs nvcc
#   DRY=build/dev tests/gpu/run_waits.sh                on puppets: that the script works
#
# Status 1 if a claim fails. Reports go to $OUT.
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
	"$sonde" report --json "$1" | python3 -c "import json, sys; print(json.load(sys.stdin)['waits'][0].get('$2'))"
}

cd "$work" || exit 1
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject HOST_END=kill HOST_MS=3000
	hang=("$dry/tests/inject/host" hang) fault=("$dry/tests/inject/host" fault) events=("$dry/tests/inject/host" events)
else
	"$here/build.sh" "$work" waits
	[[ -x waits ]] || exit 1
	hang=(timeout -s KILL 8 ./waits hang) fault=(./waits fault) events=(./waits events)
fi

echo "== hang"
run -o hang.sonde -- "${hang[@]}" >hang.txt 2>&1
[[ $(field hang.sonde end) == open ]]; claim $? "a wait that never returned is told after SIGKILL"
[[ $(field hang.sonde pending_launches) -ge 1 ]]; claim $? "so is the launch that has no end: $(field hang.sonde pending_launches)"
echo "        last $(field hang.sonde last_op), stack $(field hang.sonde stack), card $(field hang.sonde util_pct) %"
"$sonde" report hang.sonde >"$out/hang.report.txt"

echo "== fault"
run -o fault.sonde -- "${fault[@]}" >fault.txt 2>&1
[[ $(field fault.sonde result) == 700 ]]; claim $? "the error of a kernel is told: $(field fault.sonde error)"
[[ $(field fault.sonde last_op) != None ]]; claim $? "what ended before it is still handed over: $(field fault.sonde last_op)"
"$sonde" report fault.sonde >"$out/fault.report.txt"

echo "== events"
run -t cuda,sync,events -o events.sonde -- "${events[@]}" >events.txt 2>&1
count=$(one events.sonde "select count(*) from sync where detail like 'wait_on_stream=%'")
((count >= 10)); claim $? "streams that wait say for which: $count"
"$sonde" report events.sonde >"$out/events.report.txt"
grep -A 3 'Streams that wait' "$out/events.report.txt"
if [[ ! $dry ]]; then
	echo "== a record of an event, ns: alone $(./waits records)," \
		"recorded $(run -t cuda,nvtx,memory,sync -o a.sonde -- ./waits records 2>said)," \
		"with events $(run -t cuda,nvtx,memory,sync,events -o b.sonde -- ./waits records 2>said)"
fi
exit $bad
