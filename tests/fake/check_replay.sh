#!/bin/bash
# A recorded call log, replayed, gives the values that were collected while it was
# recorded. check_replay.sh FAKE_DIR COLLECT_DUMP: FAKE_DIR has the built puppets.
set -euo pipefail
fake=$1 dump=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export SONDE_NVML=$fake/libnvidia-ml.so.1
# Rates and energy depend on the time between rounds, the use of a process on the
# age of its row, origins on the recorder, whose functions stand before the
# library's.
values() {
	grep -E '^(value 2|process 2|absent|board)' "$1" | grep -vE '_bytes_s |energy_j' |
		awk '$1 == "value" { print $1, $4, $5, $6; next } $1 == "process" { $NF = "" } { print }'
}
PUPPET_NVML=$(dirname "$0")/h200.nvml RECORD_NVML=$tree/log LD_AUDIT=$fake/librecord-nvml.so \
	"$dump" 3 150 >"$tree/recorded"
grep -q '^nvmlDeviceGetPowerUsage d0 = 0 [0-9]* >60490600$' "$tree/log" ||
	{ echo "no such line in the log"; exit 1; }
echo "replay $tree/log" >"$tree/script"
PUPPET_NVML=$tree/script "$dump" 3 150 >"$tree/replayed"
values "$tree/recorded" >"$tree/a"
values "$tree/replayed" >"$tree/b"
(($(wc -l <"$tree/a") > 60)) || { echo "too few values recorded"; exit 1; }
diff "$tree/a" "$tree/b"
