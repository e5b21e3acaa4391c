#!/bin/bash
# sonde monitor on a real card: its cost beside dmon's, its values beside nvidia-smi's,
# a power wall in the ledger, the driver's events; then top (tests/gpu/top.sh).
#
#   tests/gpu/monitor.sh [SONDE]      from the root of the tree; logs go to $OUT
#
# SONDE: build/gpu/sonde (cmake --preset portable -B build/gpu; ninja -C build/gpu
# sonde). Needs nvidia-smi and python3 with torch, and a card nobody else uses. Takes
# about 280 s; WINDOW=8 TOP=no makes it 110. The last line counts; status 1 if a claim
# fails:
#
#   - `sonde monitor --format dmon -i 1`: at most a tenth of the CPU time of
#     `nvidia-smi dmon -s pucvmet -d 1`, at rest, A B A B of WINDOW (20) seconds each,
#     by the CPU clocks of the processes once they have begun
#   - at 10 Hz into files: below 0.5 % of a core
#   - under a matrix loop with copies: medians of power, temperatures, utilisation,
#     clocks and memory within 1 % or one unit of dmon's, GPM within one point
#   - the report of the directory has the power limit in force for as long as the
#     loop ran against it, by the driver's counter
#   - rows of dmon have the PCIe rate of the copies, at least every second row
#   - the driver's events are registered without an error
#   - top knows the job; everything of top.sh
set -uo pipefail
sonde=${1:-build/gpu/sonde}
out=${OUT:-/tmp/monitor-gpu}
window=${WINDOW:-20}
mkdir -p "$out"
export LC_ALL=C.UTF-8
good=0 bad=0 load=
trap '[[ $load ]] && kill "$load" 2>/dev/null' EXIT
claim() {
	local status=$1
	shift
	if ((status == 0)); then echo "ok   $*"; good=$((good + 1)); else echo "BAD  $*"; bad=$((bad + 1)); fi
}
nvidia-smi --query-gpu=name,driver_version,power.limit,persistence_mode --format=csv,noheader

cat >"$out/cpu.py" <<'END'
import subprocess, sys, time


def clock(pid):
    """CPU time of a process, to the nanosecond: clock_getcpuclockid(3) in numbers."""
    return time.clock_gettime((~pid << 3) | 2)


def family(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [pid] + [int(word) for word in file.read().split()]


def measure(argv, log, seconds):
    """CPU ms a second of a command and its children, once it has begun."""
    with open(log, "w") as file:
        child = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT)
    time.sleep(3.5)
    pids = family(child.pid)
    before, start = [clock(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    spent = [clock(pid) - was for pid, was in zip(pids, before)]
    took = time.monotonic() - start
    child.terminate()
    child.wait()
    return [1e3 * each / took for each in spent]
END

echo "== CPU time at 1 Hz at rest, dmon's values, A B A B of $window s"
PYTHONPATH=$out python3 - "$sonde" "$out" "$window" <<'END'
import sys
from cpu import measure
sonde, out, window = sys.argv[1], sys.argv[2], float(sys.argv[3])
a, b = [], []
for i in range(2):
    a.append(measure([sonde, "monitor", "--cost", "--format", "dmon", "-i", "1"], "%s/ours.%d" % (out, i), window))
    b.append(measure(["nvidia-smi", "dmon", "-s", "pucvmet", "-d", "1"], "%s/theirs.%d" % (out, i), window))
ours, theirs = [sum(x) for x in a], [sum(x) for x in b]
for each in a:
    print("ours: %.2f ms a second, of it the process beside the driver's %.2f" % (sum(each), each[0]))
print("dmon's: %s ms a second; %.3f of it" % (["%.2f" % x for x in theirs], sum(ours) / sum(theirs)))
sys.exit(not sum(ours) <= 0.1 * sum(theirs))
END
claim $? "at most a tenth of dmon's CPU time"
grep -A 12 '^call' "$out/ours.1"
tail -n 2 "$out/theirs.1"

echo "== 10 Hz into files at rest"
rm -rf "$out/fast"
PYTHONPATH=$out python3 - "$sonde" "$out" "$window" <<'END'
import sys
from cpu import measure
sonde, out, window = sys.argv[1], sys.argv[2], float(sys.argv[3])
spent = measure([sonde, "monitor", "--cost", "-i", "0.1", out + "/fast"], out + "/fast.log", window)
print("10 Hz: %.3f %% of a core, of it here %.3f" % (sum(spent) / 10, spent[0] / 10))
sys.exit(not sum(spent) / 10 < 0.5)
END
claim $? "below 0.5 % of a core at 10 Hz"
grep -A 8 '^call' "$out/fast.log"

echo "== top at rest"
"$sonde" top --json >"$out/rest.json"
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); sys.exit(bool(r["processes"]))' "$out/rest.json"
claim $? "nobody is listed"

echo "== a matrix loop with copies"
cat >"$out/load.py" <<'END'
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
host = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)
card = torch.empty_like(host, device="cuda")
open(sys.argv[1], "w").close()
while True:
    for _ in range(40):
        c = a @ b
    card.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
END
rm -rf "$out/wall" "$out/ready"
"$sonde" monitor --cost --flight -i 0.5 "$out/wall" 2>"$out/wall.log" & monitor=$!
nvidia-smi dmon -s pucvmet -d 1 >"$out/wall.dmon" & dmon=$!
sleep 2
python3 "$out/load.py" "$out/ready" 2>"$out/load.err" & load=$!
for ((i = 0; i < 150; i++)); do [[ -e $out/ready ]] || sleep 0.2; done
sleep 4
date +%s.%N >"$out/from"
nvidia-smi dmon -s pucvmet -d 1 -c "$window" >"$out/load.dmon" & dmons=$!
nvidia-smi dmon -s p --gpm-metrics 1,2,3,5,10 -d 1 -c "$window" >"$out/load.gpm" & gpms=$!
"$sonde" monitor -q --format dmon -i 1 -c "$window" >"$out/load.rows" & rows=$!
sleep 1
"$sonde" top >"$out/top.txt"
"$sonde" top --json >"$out/top.json"
wait $dmons $gpms $rows
date +%s.%N >"$out/to"
kill $load
wait $load 2>/dev/null
sleep 3
kill $monitor $dmon
wait $monitor
claim $? "the monitor ended well"
wait $dmon 2>/dev/null
head -n 20 "$out/top.txt"
cat "$out/wall.log"
"$sonde" report --layer system "$out/wall" >"$out/wall.txt"
"$sonde" report --json "$out/wall" >"$out/wall.json"
sed -n '/^The board/,$p' "$out/wall.txt" | head -n 50
for file in "$out"/wall/*.sonde; do
	"$sonde" sql --csv "$file" "SELECT start_ns, power_w, temp_c, temp_mem_c, util_pct, mem_util_pct, sm_mhz, mem_mhz, mem_used_bytes,
		sm_active_pct, occupancy_pct, tensor_pct, dram_pct FROM sample WHERE pid IS NULL"
done >"$out/wall.csv"
python3 - "$out" "$load" "$sonde" >"$out/claims" <<'END'
import csv, json, statistics, sys

out, load, sonde = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def claim(good, what, *facts):
    print("%d %s %s" % (not good, what, " ".join(map(str, facts))))


def table(name):
    """Columns of card 0 in the text of dmon, '-' left out."""
    columns, names = {}, []
    for line in open("%s/%s" % (out, name)):
        words = line.split()
        if line.startswith("# gpu"):
            names = words[1:]
        elif words and words[0] == "0" and len(words) == len(names):
            for key, word in zip(names, words):
                columns.setdefault(key, []).append(None if word == "-" else float(word))
    return columns


start, end = (float(open("%s/%s" % (out, n)).read()) * 1e9 for n in ("from", "to"))
ours = {}
for row in csv.DictReader(line for i, line in enumerate(open(out + "/wall.csv")) if not i or line[:1].isdigit()):
    if start <= float(row["start_ns"]) <= end:
        for key, word in row.items():
            if word:
                ours.setdefault(key, []).append(float(word))
dmon, gpm = table("load.dmon"), table("load.gpm")
median = lambda values: statistics.median(v for v in values if v is not None) if values else None
for key, column, scale in (("power_w", "pwr", 1), ("temp_c", "gtemp", 1), ("temp_mem_c", "mtemp", 1), ("util_pct", "sm", 1),
                           ("mem_util_pct", "mem", 1), ("sm_mhz", "pclk", 1), ("mem_mhz", "mclk", 1),
                           ("mem_used_bytes", "fb", 1 << 20)):
    mine, theirs = median(ours.get(key)), median(dmon.get(column))
    mine = mine and mine / scale
    claim(mine is not None and theirs is not None and abs(mine - theirs) <= max(1, 0.01 * theirs),
          "%s as dmon's" % key, mine, theirs)
for key, column in (("sm_active_pct", "smutil"), ("occupancy_pct", "smocc"), ("tensor_pct", "mmaact"), ("dram_pct", "dram")):
    mine, theirs = median(ours.get(key)), median(gpm.get(column))
    # dmon cuts off what is behind the point.
    claim(mine is not None and theirs is not None and -1 <= mine - theirs <= 1.999, "GPM: %s as dmon's" % key, mine, theirs)
rows = table("load.rows")
rates = [r for r in rows.get("rxpci", []) if r is not None]
# Each is the rate of some milliseconds, with a copy in it or without: means, and those roughly.
mean = lambda values: statistics.mean(v for v in values if v is not None) if values else 0
claim(2 * len(rates) >= len(rows.get("rxpci", [0])) and mean(dmon.get("rxpci")) / 5 < mean(rates) < mean(dmon.get("rxpci")) * 5,
      "rows have the rate of the copies", len(rates), "of", len(rows.get("rxpci", [])), "rows, mean", mean(rates),
      "MB/s; dmon's", mean(dmon.get("rxpci")))
ledger = json.load(open(out + "/wall.json"))["devices"][0]["system"]["ledger"]
power = [r for r in ledger["limits"] if r["reason"] == "power"][0]
pviol = sum(v or 0 for v in table("wall.dmon").get("pviol", [])) / 100
# dmon's shares are of one second each and rounded; the loop starts between two.
claim(power["means"] == "counter" and power["ns"] > 5e9 and abs(power["ns"] / 1e9 - pviol) <= max(2.5, pviol / 10),
      "the ledger has the seconds of the power wall:", "%.2f by %s, worth %.2f s; dmon's pviol adds up to %.1f s" %
      (power["ns"] / 1e9, power["means"], power["lost_ns"] / 1e9, pviol))
calls = {}
for line in open(out + "/wall.log"):
    words = line.split()
    if words and words[0].startswith("nvml"):
        calls[words[0]] = (int(words[1]), int(words[2]))
for name in ("nvmlEventSetCreate", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents"):
    claim(calls.get(name, (0, 1))[0] > 0 and calls[name][1] == 0, "%s without an error" % name, calls.get(name))
top = json.load(open(out + "/top.json"))
found = [p for p in top["processes"] if p["pid"] == load]
claim(top["gpus"][0]["metrics"].get("sm_active_pct", 0) > 80, "top: the job fills the SMs",
      top["gpus"][0]["metrics"].get("sm_active_pct"))
claim(found and "load.py" in found[0].get("command", "") and found[0].get("user"), "top: the job is known by command and user")
END
claim $? "the comparison ran"
while read -r status what; do claim "$status" "$what"; done <"$out/claims"

if [[ ${TOP:-yes} == yes ]]; then
	echo "== tests/gpu/top.sh"
	OUT=$out/top tests/gpu/top.sh "$sonde"
	claim $? "tests/gpu/top.sh"
fi
echo "$good claims hold, $bad do not"
exit $((bad > 0))
