#!/bin/bash
# What CUPTI itself says where sonde has seen puppets only: unified memory, times of the
# queue, pools, calls inside calls, waits in captures, modules, what memory is told
# under. Once as a bare consumer (raw_cupti.c), once as `sonde run` tells of the same program.
#
#   SONDE=build/portable/sonde tests/gpu/run_raw.sh
#   DRY=build/dev tests/gpu/run_raw.sh           on puppets: that the script itself works
#
# Some 20 s on one H200, which has not been seen. All of it goes to $OUT/raw*.txt. Status 1 if
# something is otherwise than sonde takes it. DRY needs CUPTI's header.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dry=${DRY:+$(realpath "$DRY")}
sonde=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
bad=0
claim() { # CONDITION of numbers, what
	if (($1)); then echo "ok      $2"; else echo "FAILED  $2: $1"; bad=1; fi
}
cd "$work" || exit 1
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject PUPPET_CUPTI=unified
	program=("$dry/tests/inject/host" work)
	gcc -O2 -fPIC -shared -I/usr/local/cuda/include -o raw.so "$here/raw_cupti.c" \
		"$dry"/tests/inject/libcupti.so.13 || { echo "skipped raw records: no header of CUPTI"; exit 0; }
else
	"$here/build.sh" "$work" raw raw.so || exit 1
	program=(./raw)
fi

for when in start context; do
	echo "== CUPTI, unified memory configured at the $when"
	RAW=$out/raw_$when.txt UNIFIED=$when CUDA_INJECTION64_PATH=$work/raw.so \
		timeout -k 5 20 "${program[@]}" >"$when.out" 2>&1
	claim "$? == 0" "the program ends well; CUPTI's last line: $(tail -n 1 "$out/raw_$when.txt" | cut -c1-100)"
	cp "$when.out" "$out/raw_$when.out.txt"
	if [[ $when == start ]]; then
		python3 "$here/run_raw.py" "$out/raw_$when.txt" "$when.out" || bad=1
	else
		python3 "$here/run_raw.py" "$out/raw_$when.txt" "$when.out" | grep 'unified memory\|its records\|FAILED'
	fi
done

# Launches that fill the command buffer: what comes with those records is to be freed by us.
if [[ ! $dry ]]; then
	echo "== CUPTI, with a command buffer that is full"
	"$here/build.sh" "$work" owed || bad=1
	RAW=$out/raw_full.txt CUDA_INJECTION64_PATH=$work/raw.so timeout -k 5 20 ./owed graphs 5000 >full.out 2>&1
	claim "$? == 0" "the program ends well though what came with the records was freed: $(tail -n 1 "$out/raw_full.txt" | cut -c1-100)"
	echo "told    command buffer full: $(grep -c '^overhead kind=393216 ' "$out/raw_full.txt") records, with data $(
		grep '^overhead kind=393216 ' "$out/raw_full.txt" | grep -vc 'data=(nil)'); the first: $(
		grep -m 1 '^overhead kind=393216 ' "$out/raw_full.txt" | cut -d' ' -f 4-)"
fi

echo "== the same by sonde"
timeout -k 5 30 "$sonde" run --no-report -t cuda,nvtx,memory,sync,unified,queued -o raw.sonde -- "${program[@]}" \
	>sonde.out 2>"$out/raw_sonde.err.txt"
claim "$? == 0" "it ends well"
grep 'sonde run: ' "$out/raw_sonde.err.txt"
cp raw.sonde "$out/"
one() { "$sonde" sql raw.sonde "$1" | tail -1 | tr -d ' '; }
for table in page_fault sync mark; do
	"$sonde" sql raw.sonde "select name, count(*) from $table group by name"
done
"$sonde" sql raw.sonde "select bytes, device, name from alloc where bytes > 0 and bytes >= 1 << 20"
"$sonde" sql raw.sonde "select (select count(*) from kernel) kernels, (select count(*) from kernel where queued_ns is not null) queued"
if [[ ! $dry ]]; then
	claim "$(one "select count(*) from alloc where bytes >= 1 << 20") >= 7" "memory obtained, of 3, 5, 7, 9 and 11 MiB, managed and of the host"
	claim "$(one "select count(*) from alloc where bytes >= 1 << 20 and (name is null or name not like '%m%')") == 0" "each with where"
	claim "$(one "select count(*) from range where name = 'weit über 等待'") == 1" "a name of wide characters"
	claim "$(one "select count(*) from sync where name = 'Stream Sync'") >= 5" "waits for streams"
	(($(nvidia-smi -L | wc -l) < 2)) ||
		claim "$(one "select count(distinct device) from sync where name = 'Stream Sync'") == 2" "waits on both cards"
	claim "$(one "select count(*) from mark where name like 'memory pool%'") >= 3" "a pool made, trimmed and destroyed"
	claim "$(one "select coalesce(sum(dropped), 0) + coalesce(sum(malformed), 0) from loss") == 0" "nothing lost, nothing malformed"
fi
exit $bad
