#!/bin/bash
# sonde monitor on a real card: a power wall in the ledger, and its cost beside dmon's.
#
#   tests/gpu/monitor.sh [SONDE]      from the root of the tree; logs go to $OUT
#
# SONDE: build/gpu/sonde (cmake --preset portable -B build/gpu; ninja -C build/gpu
# sonde). Needs nvidia-smi and python3 with torch. Takes about 170 s. Status 1 if a
# claim fails:
#
#   - the report of a directory has the power limit in force for as long as the
#     loop ran against it, by the driver's counter
#   - `sonde monitor --format dmon -i 1`: at most a tenth of the CPU time of
#     `nvidia-smi dmon -s pucvmet -d 1`, alternating A B A B of 15 s each
#   - at 10 Hz into files: below 0.5 % of a core
set -uo pipefail
sonde=${1:-build/gpu/sonde}
out=${OUT:-/tmp/monitor-gpu}
mkdir -p "$out"
export LC_ALL=C
bad=0
claim() {
	local status=$1
	shift
	if ((status == 0)); then echo "ok   $*"; else echo "BAD  $*"; bad=1; fi
}
nvidia-smi --query-gpu=name,driver_version,power.limit --format=csv

echo "== power wall"
cat >"$out/load.py" <<'END'
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
(a @ b).sum().item()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(20):
        c = a @ b
    torch.cuda.synchronize()
END
rm -rf "$out/wall"
"$sonde" monitor --cost --flight -i 0.5 "$out/wall" 2>"$out/wall.log" & monitor=$!
nvidia-smi dmon -s pucvmet -d 1 -c 32 >"$out/wall.dmon" & dmon=$!
sleep 5
python3 "$out/load.py" 20
sleep 4
kill $monitor
wait $monitor
claim $? "the monitor ended well"
wait $dmon
cat "$out/wall.log"
ls -l "$out/wall"
"$sonde" report --layer system "$out/wall" >"$out/wall.txt"
"$sonde" report --json "$out/wall" >"$out/wall.json"
sed -n '/^The board/,$p' "$out/wall.txt" | head -n 70
python3 - "$out/wall.json" "$out/wall.dmon" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
ledger = report["devices"][0]["system"]["ledger"]
power = [r for r in ledger["limits"] if r["reason"] == "power"][0]
rows = [l.split() for l in open(sys.argv[2]) if not l.startswith("#")]
pviol = sum(float(r[12]) for r in rows if r[0] == "0" and r[12] != "-") / 100
print("ledger: power limit %.2f s by %s, %.1f MHz below %.0f, worth %.2f s; dmon's pviol adds up to %.1f s"
      % (power["ns"] / 1e9, power["means"], power.get("mhz_lost", 0), ledger["reference_mhz"],
         power["lost_ns"] / 1e9, pviol))
# dmon's shares are of one second each and rounded; the loop starts between two.
ok = power["means"] == "counter" and power["ns"] > 5e9 and abs(power["ns"] / 1e9 - pviol) <= max(2.5, pviol / 10)
sys.exit(not ok)
END
claim $? "the ledger has the seconds of the power wall"

echo "== CPU time at 1 Hz, dmon's values, A B A B"
python3 - "$sonde" "$out" <<'END'
import os, resource, subprocess, sys, time
sonde, out = sys.argv[1:]

def cpu(argv, name):
    """CPU seconds of the command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.path.join(out, name), "w") as file:
        subprocess.run(argv, stdout=file, stderr=subprocess.STDOUT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

ours = [sonde, "monitor", "--cost", "--format", "dmon", "-i", "1", "-c"]
theirs = ["nvidia-smi", "dmon", "-s", "pucvmet", "-d", "1", "-c"]
# Starting costs both the same whatever the time: what counts is each second more.
start = {"ours": cpu(ours + ["2"], "ours.start"), "theirs": cpu(theirs + ["2"], "theirs.start")}
a, b = [], []
for i in range(2):
    a.append((cpu(ours + ["17"], "ours.%d" % i) - start["ours"]) / 15)
    b.append((cpu(theirs + ["17"], "theirs.%d" % i) - start["theirs"]) / 15)
ratio = sum(a) / sum(b)
print("a second: ours %s ms, dmon's %s ms; %.3f of it" %
      (["%.2f" % (x * 1e3) for x in a], ["%.2f" % (x * 1e3) for x in b], ratio))
print("with start: ours %.1f ms, dmon's %.1f ms" % (start["ours"] * 1e3, start["theirs"] * 1e3))
sys.exit(not ratio <= 0.1)
END
claim $? "at most a tenth of dmon's CPU time"
tail -n 25 "$out/ours.1"
head -n 4 "$out/theirs.1"

echo "== 10 Hz into files"
rm -rf "$out/fast"
python3 - "$sonde" "$out" <<'END'
import os, resource, subprocess, sys
sonde, out = sys.argv[1:]

def cpu(count):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.path.join(out, "fast.log"), "w") as file:
        subprocess.run([sonde, "monitor", "--cost", "-i", "0.1", "-c", str(count), os.path.join(out, "fast")],
                       stderr=file, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

start = cpu(20)
share = (cpu(220) - start) / 20
print("10 Hz: %.3f %% of a core (start: %.1f ms)" % (share * 100, start * 1e3))
sys.exit(not share < 0.005)
END
claim $? "below 0.5 % of a core at 10 Hz"
cat "$out/fast.log"
exit $bad
