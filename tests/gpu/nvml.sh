#!/bin/bash
# The collector against nvidia-smi on steady load: values, counters, GPM, cost.
#
#   tests/gpu/nvml.sh [SECONDS]      from the root of the tree; logs go to $OUT
#
# Needs build/gpu/collect_dump and build/gpu/tests/fake/librecord-nvml.so
# (cmake --preset portable -B build/gpu -DSONDE_TESTS=ON; ninja -C build/gpu
# collect_dump record_nvml), python3 with torch for the load, nvidia-smi.
# Takes SECONDS (60) and about 40 more. Status 1 if a comparison fails.
set -uo pipefail
seconds=${1:-60}
out=${OUT:-/tmp/nvml-gpu}
dump=build/gpu/collect_dump
recorder=$PWD/build/gpu/tests/fake/librecord-nvml.so
gpm=1,2,3,5,10,20,21,60,61
mkdir -p "$out"
export LC_ALL=C

smi_counters() {
	nvidia-smi --format=csv,noheader,nounits --query-gpu="clocks_event_reasons_counters.sw_power_cap,\
clocks_event_reasons_counters.sw_thermal_slowdown,ecc.errors.corrected.volatile.total,\
ecc.errors.uncorrected.volatile.total,memory.used,memory.reserved,memory.total,pcie.link.gen.current,pcie.link.width.current,\
power.limit,clocks.max.sm,clocks.max.memory"
}

echo "== machine"
nvidia-smi --query-gpu=name,driver_version,power.limit,persistence_mode,mig.mode.current --format=csv
header=$(find / -xdev -path '*/cuda*/include/nvml.h' 2>/dev/null | head -1)
if [[ $header ]] && command -v cc >/dev/null; then
	cc -std=c17 -fsyntax-only -x c -I src -I tests -I "${header%/*}" tests/fake/nvml_layout.h &&
		echo "layouts are those of $header"
fi
"$dump" 3 200 >"$out/idle.txt"
tail -n 60 "$out/idle.txt" | grep -E '^(board|absent|library)'

echo "== load"
cat >"$out/load.py" <<'END'
import sys, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
host = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)
card = torch.empty_like(host, device="cuda")
print("ready", flush=True)
while True:
    for _ in range(40):
        c = a @ b
    card.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
END
mkfifo "$out/ready.fifo"
python3 "$out/load.py" >"$out/ready.fifo" 2>"$out/load.err" &
load=$!
trap 'kill $load 2>/dev/null; rm -f "$out/ready.fifo"' EXIT
read -r word <"$out/ready.fifo" || { cat "$out/load.err"; exit 1; }
sleep 8

# Each at its own moment of the second.
"$dump" $((seconds + 2)) 1000 0x7f >"$out/ours.txt" &
ours=$!
sleep 0.2
{ time nvidia-smi dmon -s pucvmet -d 1 -c "$seconds" -o T >"$out/dmon.txt"; } 2>"$out/dmon.time" &
dmon=$!
sleep 0.2
nvidia-smi dmon -s p --gpm-metrics "$gpm" -d 1 -c "$seconds" >"$out/gpm.txt" &
gpms=$!
sleep 0.2
"$dump" "$seconds" 1000 0x07 >"$out/cost.txt" & # as dmon
cost=$!
wait $ours $dmon $gpms $cost

smi_counters >"$out/before.csv"
"$dump" 2 200 >"$out/between.txt"
smi_counters >"$out/after.csv"
nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits >"$out/apps.csv"
"$dump" 30 100 0x01 >"$out/fast.txt"
"$dump" 60 100 0x33 >"$out/flight.txt" # fast, counters, processes, rings

echo "== recorded"
RECORD_NVML=$out/collector.log LD_AUDIT=$recorder "$dump" 4 500 >"$out/recorded.txt"
RECORD_NVML=$out/dmon.log LD_AUDIT=$recorder nvidia-smi dmon -s pucvmet -d 1 -c 3 >"$out/dmon_recorded.txt"
kill $load
wait $load 2>/dev/null
sleep 2
RECORD_NVML=$out/idle.log LD_AUDIT=$recorder "$dump" 3 300 >/dev/null
# Who a card is is nobody's business.
sed -i -E 's/GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/GPU-11111111-2222-3333-4444-555555555555/g;
	/^nvmlDeviceGetSerial/s/"[^"]*"/"0000000000000"/' "$out"/*.log
wc -l "$out"/*.log
if [[ -x build/portable/sonde ]]; then
	build/portable/sonde top >"$out/top.txt" 2>&1
	cat "$out/top.txt"
fi
python3 tests/gpu/nvml_compare.py "$out"
