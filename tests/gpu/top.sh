#!/bin/bash
# sonde top on a real card: at rest, with one job, with two that share it, with
# tiny kernels that look like full use, with a holder of memory at rest.
#
#   tests/gpu/top.sh [SONDE]      from the root of the tree; pictures go to $OUT
#
# SONDE: build/portable/sonde (cmake --preset portable; ninja -C build/portable
# sonde). Needs python3 with torch for the loads, nvidia-smi; a card nobody else uses.
# Takes about 80 s. Status 1 if a check fails.
set -uo pipefail
sonde=${1:-build/portable/sonde}
out=${OUT:-/tmp/top-gpu}
mkdir -p "$out"
export LC_ALL=C.UTF-8
jobs=()
trap 'kill "${jobs[@]}" 2>/dev/null' EXIT

cat >"$out/load.py" <<'END'
import sys, time, torch
kind = sys.argv[1]
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
tiny = torch.zeros(32, device="cuda")
# Launched one by one from Python, tiny kernels keep the card busy a fifth of the
# time. A graph of them leaves no gaps.
graph = torch.cuda.CUDAGraph()
if kind == "tiny":
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        tiny += 1
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(2000):
            tiny += 1
held = torch.empty(8 << 30, dtype=torch.uint8, device="cuda") if kind == "hold" else None
torch.cuda.synchronize()
open(sys.argv[2], "w").close()
while kind == "hold":
    time.sleep(1)
while True:
    for i in range(40):
        if kind == "matmul":
            y = x @ x
        else:
            graph.replay()
    torch.cuda.synchronize()
END

# start KIND: the PID of the load goes to $job once it has begun
start() {
	rm -f "$out/ready"
	python3 "$out/load.py" "$1" "$out/ready" 2>"$out/$1.err" &
	job=$!
	jobs+=("$job")
	until [[ -e $out/ready ]]; do
		kill -0 "$job" 2>/dev/null || { cat "$out/$1.err"; exit 1; }
		sleep 0.2
	done
	sleep 4
}
stop() {
	kill "$@"
	wait "$@" 2>/dev/null
	sleep 3
}
picture() {
	echo "== $1"
	"$sonde" top 2>&1 | tee "$out/$1.txt"
	for i in 1 2 3 4 5 6 7 8 9 10; do "$sonde" top --json >"$out/$1.$i.json"; done
	nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits >"$out/$1.apps"
	nvidia-smi pmon -s um -c 1 >"$out/$1.pmon"
	tail -n +3 "$out/$1.pmon"
}

nvidia-smi --query-gpu=name,driver_version,power.limit,persistence_mode --format=csv,noheader
picture rest
start matmul
matmul=$job
picture one
start hold
hold=$job
start tiny
tiny=$job
sleep 8
picture shared
stop "$matmul"
picture tiny
stop "$tiny"
sleep 12
picture holder
"$sonde" top --watch 0.5 --json >"$out/watch.jsonl" &
watch=$!
sleep 10
read -r -a spent < <(cut -d' ' -f14,15 "/proc/$watch/stat")
echo "watch at 2 Hz for 10 s: ${spent[0]} + ${spent[1]} ticks of CPU, without its child"
kill "$watch"

python3 - "$out" "$matmul" "$hold" "$tiny" <<'END'
import json, sys

out, matmul, hold, tiny = sys.argv[1], *map(int, sys.argv[2:])
failed = 0


def check(what, good, *facts):
    global failed
    failed += not good
    print("ok     " if good else "FAILED ", what, *facts)


def looks(name):
    return [json.load(open(f"{out}/{name}.{i}.json")) for i in range(1, 11)]


def card(look, metric):
    return look["gpus"][0]["metrics"].get(metric)


def process(look, pid):
    found = [p for p in look["processes"] if p["pid"] == pid]
    return found[0] if found else None


def apps(name):
    rows = (line.split(",") for line in open(f"{out}/{name}.apps") if "," in line)
    return {int(pid): float(mib) for pid, mib in rows if mib.strip().isdigit()}


rest, one, shared, alone, holder = map(looks, ["rest", "one", "shared", "tiny", "holder"])
check("at rest no SM is active", all(card(l, "sm_active_pct") < 1 for l in rest))
check("at rest nobody is listed", all(not l["processes"] for l in rest))
check("the job fills the SMs", all(card(l, "sm_active_pct") > 80 for l in one),
      [card(l, "sm_active_pct") for l in one])
check("the job is listed in every look", all(process(l, matmul) for l in one))
found = process(one[0], matmul) or {}
check("and known by command and user", "load.py matmul" in found.get("command", "") and found.get("user"),
      found.get("user"), found.get("command"), found.get("state"))
check("and never looks idle", all((process(l, matmul) or {}).get("idle_ns") == 0 for l in one),
      [(process(l, matmul) or {}).get("metrics", {}).get("proc_sm_pct") for l in one])
for name, look in (("one", one[0]), ("shared", shared[0])):
    for pid, mib in apps(name).items():
        ours = (process(look, pid) or {}).get("metrics", {}).get("proc_mem_used_bytes", 0) / 2**20
        check(f"memory of {pid} as nvidia-smi has it", abs(ours - mib) <= 1, ours, mib)
check("three share the card", all(process(l, p) for l in shared for p in (matmul, hold, tiny)))
check("the holder has no use while others work",
      all((process(l, hold) or {}).get("metrics", {}).get("proc_sm_pct") == 0 for l in shared))
check("tiny kernels: utilisation is high, SM activity is not",
      all(card(l, "util_pct") >= 90 and card(l, "sm_active_pct") < 10 for l in alone),
      [(card(l, "util_pct"), card(l, "sm_active_pct")) for l in alone][:3])
check("the holder is told as one in one shot",
      all((process(l, hold) or {}).get("idle_holder") for l in holder),
      (process(holder[0], hold) or {}).get("idle_ns"))
check("a round costs less than 10 ms of CPU", all(l["cost"]["cpu_ns"] < 10e6 for l in one),
      [l["cost"]["cpu_ns"] for l in one][:3], one[0]["cost"]["slowest"])
lines = [json.loads(line) for line in open(f"{out}/watch.jsonl")]
check("the watch gave a line each half second", 17 <= len(lines) <= 22, len(lines))
print(f"{failed} failed")
sys.exit(failed > 0)
END
