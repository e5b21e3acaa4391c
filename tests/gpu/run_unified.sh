#!/bin/bash
# Records of unified memory on a card: pages that move, page faults of both sides, the
# finding; the program's output as without sonde. About 20 s on one H200.
#
#   SONDE=build/portable/sonde tests/gpu/run_unified.sh
#   DRY=build/dev tests/gpu/run_unified.sh       on puppets: that the script itself works
#
# Status 1 if a claim fails. The profile goes to $OUT.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dry=${DRY:+$(realpath "$DRY")}
sonde=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-$work}")
cd "$work" || exit 1
if [[ $dry ]]; then
	export LD_LIBRARY_PATH=$dry/tests/inject PUPPET_CUPTI=unified
	program=("$dry/tests/inject/host" work)
else
	"$here/build.sh" "$work" unified || exit 1
	program=(./unified 5)
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
fi
bad=0
claim() { # CONDITION of numbers, what
	if (($1)); then echo "ok      $2"; else echo "FAILED  $2: $1"; bad=1; fi
}
one() { "$sonde" sql unified.sonde "$1" | tail -1 | tr -d ' '; }
timeout -k 5 30 "${program[@]}" >alone
timeout -k 5 60 "$sonde" run --no-report -t cuda,unified -o unified.sonde -- "${program[@]}" >under
cp unified.sonde "$out/"
"$sonde" report unified.sonde | tee "$out/unified.txt" | head -60
"$sonde" sql unified.sonde 'select name, count(*), sum(faults), sum(duration_ns) from page_fault group by name'
"$sonde" sql unified.sonde "select name, count(*), sum(bytes), sum(duration_ns) from memcpy group by name"
cmp -s alone under
claim "$? == 0" "the same output"
kernels=$([[ $dry ]] && echo 20 || echo 10)
cards=$([[ $dry ]] && echo 1 || nvidia-smi -L | wc -l)
least=$([[ $dry ]] && echo 1 || echo $((500 << 20)))
claim "$(one "select coalesce(sum(bytes), 0) from memcpy where name like 'Migration HtoD%'") >= $least" "pages that moved to the card, of 640 MiB"
[[ $dry ]] || claim "$(one "select coalesce(sum(bytes), 0) from memcpy where name like 'Migration DtoH%'") >= $least" "and back"
[[ $dry ]] || claim "$(one "select count(*) from memcpy where name = 'Migration HtoD (asked for)'") > 0" "some were asked for in time"
claim "$(one "select coalesce(sum(faults), 0) from page_fault where name like 'GPU page faults%'") > 0" "page faults of the GPU"
claim "$(one "select count(*) from page_fault where name = 'CPU page faults'") > 0" "page faults of the CPU"
claim "$(one "select count(*) from page_fault where name = 'CPU page faults' and faults <> 1") == 0" "each of which is one"
claim "$(one "select count(*) from kernel") == $kernels" "all kernels"
claim "$(one "select count(*) from device") == $cards" "as many cards as there are"
claim "$("$sonde" report --json unified.sonde | grep -c '"page_faults"') > 0" "the finding"
exit $bad
