#!/bin/bash
# What the next card has to show, in one call: the scripts beside this one, one after another,
# each within a bound of its own. A line for each claim as soon as it is known.
#
#   SONDE=build/portable/sonde tests/gpu/run_all.sh [SECONDS] [--from PART] [--only PART]...
#   DRY=build/dev tests/gpu/run_all.sh             on puppets: that the scripts themselves work
#
# Ends within SECONDS (585). PART: truth cost raw unified record owed train ops, in this order; what no
# longer fits is named with the call that goes on. In $OUT, kept up to date: all.rows, a line for each
# claim and each number; all.log, all that the parts print; all.tar.gz, the rest that
# they leave; all_profiles.tar, the smallest of their profiles; cupti_logs.tar. Status 1 if a claim
# failed or a part did not end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dry=${DRY:+$(realpath "$DRY")}
SONDE=$(realpath "${SONDE:-${dry:-$here/../../build/portable}/sonde}")
export SONDE
limit=585 from='' only=''
while (($#)); do
	case $1 in
	--from) from=$2 && shift ;;
	--only) only+=" $2 " && shift ;;
	*) limit=$1 ;;
	esac
	shift
done
[[ -x $SONDE ]] || { echo "$SONDE: not there"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath "${OUT:-.}")
rows=$out/all.rows log=$out/all.log
export BUILT=$work/built
mkdir -p "$BUILT"
bad=0 skipped=''

# What a part prints: all of it into the log, what counts also here and into the rows.
show() { # part
	local line
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$log"
		case $line in
		ok\ * | FAILED* | skipped* | '  ! '* | *' ok' | *MISSED* | told\ * | '  '*' us ('*)
			printf '%-7s %3d s  %s\n' "$1" "$SECONDS" "$line" | tee -a "$rows"
			;;
		esac
	done
}

# All that it left, also of a part that was ended: its folder of temporary files is here, too.
pack() {
	(cd "$work" && find . -type f -size -4M ! -name '*.sonde' ! -name '*.pickle' ! -name cupti_logs.tar ! -path './built/*' \
		! -perm -u+x -print0 | tar --null -czf "$work.tar.gz" -T -)
	mv "$work.tar.gz" "$out/all.tar.gz"
	cp "$work/record/cupti_logs.tar" "$out/" 2>/dev/null
	local sum=0 profiles=() size path
	while read -r size path; do
		((sum += size, sum < 15000000)) && profiles+=("$path")
	done < <(cd "$work" && find . -name '*.sonde' -size +0 -printf '%s %p\n' | sort -n)
	((!${#profiles[@]})) || tar -C "$work" -cf "$out/all_profiles.tar" "${profiles[@]}"
}

# By its session: `timeout` makes groups of its own, which a signal to ours does not reach.
end_session() {
	pkill -KILL -s "$1"
	for ((i = 0; i < 20; i++)); do
		pgrep -s "$1" >/dev/null || return
		sleep 0.1
	done
}

part() { # NAME SECONDS-it-needs SECONDS-at-most command...
	local name=$1 least=$2 most=$3 began=$SECONDS left pid reader status
	shift 3
	[[ $from && $from != "$name" ]] && return
	from=''
	[[ ! $only || $only == *" $name "* ]] || return
	left=$((limit - SECONDS - 8)) # to pack
	if ((left < least)); then
		echo "skipped $name: it takes $least s, and $left s are left" | tee -a "$rows"
		skipped=${skipped:-$name}
		return
	fi
	bound=$((most < left ? most : left))
	mkdir -p "$work/$name/tmp"
	echo "== $name at $SECONDS s, for $bound s at most" | tee -a "$log" "$rows"
	mkfifo "$work/pipe"
	show "$name" <"$work/pipe" &
	reader=$!
	OUT=$work/$name TMPDIR=$work/$name/tmp ROWS=$rows LIMIT=$((bound - 45)) BOUND=$((bound - 5)) \
		setsid "$@" >"$work/pipe" 2>&1 </dev/null &
	pid=$!
	while kill -0 $pid 2>/dev/null && ((SECONDS - began < bound)); do
		sleep 0.2
	done
	if kill -0 $pid 2>/dev/null; then
		echo "FAILED  $name: it did not end within $bound s" | tee -a "$log" "$rows"
		bad=1
	fi
	end_session $pid # and what was left running
	wait $pid 2>/dev/null
	status=$?
	for ((i = 0; i < 20; i++)); do # what it printed last
		kill -0 $reader 2>/dev/null || break
		sleep 0.1
	done
	kill $reader 2>/dev/null
	wait $reader 2>/dev/null
	if ((status)); then
		bad=1
		grep -q "^$name .*\(FAILED\|MISSED\)\|^FAILED  $name" "$rows" ||
			printf 'FAILED  %s: %s\n' "$name" "$(tail -n 1 "$log")" | tee -a "$rows"
	fi
	rm -f "$work/pipe"
	echo "   $name: status $status after $((SECONDS - began)) s" | tee -a "$log" "$rows"
	pack
}

command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee -a "$rows"
if [[ $dry ]]; then
	export DRY=$dry
else
	# Once, while nothing is measured.
	"$here/build.sh" "$BUILT" launch cases pipeline unified owed waits raw bare.so raw.so pc_switch >>"$log" 2>&1 ||
		echo "FAILED  something does not compile: all.log" | tee -a "$rows"
	echo "compiled at $SECONDS s" | tee -a "$rows"
	part truth 60 260 bash -c 'exec "$0" "$BOUND"' "$here/run_truth.sh"
	part cost 100 340 "$here/run_cost.sh" 2 launch eager train sampling
fi
part raw 15 100 "$here/run_raw.sh"
part unified 20 90 "$here/run_unified.sh"
part waits 60 120 "$here/run_waits.sh"
part record 20 120 bash -c 'exec "$0" "$((BOUND < 60 ? BOUND : 60))"' "$here/record_cupti.sh"
part owed 40 300 bash -c 'exec "$0" "$((BOUND < 240 ? BOUND : 240))"' "$here/run_owed.sh"
[[ $dry ]] || part train 90 460 "$here/run_cost.sh" 5 train
part ops 80 240 "$here/run_ops.sh"
[[ ! $skipped ]] || echo "to go on: ${DRY:+DRY=$DRY }tests/gpu/run_all.sh $limit --from $skipped" | tee -a "$rows"
echo "ended at $SECONDS s; in all: $(grep -c ' ok      ' "$rows") held, $(grep -c 'FAILED' "$rows") failed, $(grep -c 'skipped' "$rows") skipped"
exit $bad
