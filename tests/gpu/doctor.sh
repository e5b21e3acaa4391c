#!/bin/bash
# What `sonde doctor` says on a real card: as root and as an unprivileged user,
# with and without a probe. About half a minute after the build.
#
#   tests/gpu/doctor.sh [OUT]     OUT: a folder for the reports (default: build/gpu)
#
# Fails if the conclusions and the probe differ, if the JSON is not what the
# schema says, or if doctor leaves a process or a CUDA context behind.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/gpu}
mkdir -p "$out"
sonde=build/dev/sonde
[[ -x $sonde ]] || { cmake --preset dev && cmake --build --preset dev --target sonde; } >"$out/build.log" 2>&1
failed=0
fail() {
	echo "FAILED: $*"
	failed=1
}
# as USER NAME ARG...
as() {
	local user=$1 name=$2 status=0 start=$EPOCHREALTIME
	shift 2
	if [[ $user == root ]]; then
		"$sonde" doctor "$@" >"$out/$name" 2>"$out/$name.err" || status=$?
	else
		# A folder of root's is not everybody's.
		cp "$sonde" /tmp/sonde-doctor-copy
		chmod 755 /tmp/sonde-doctor-copy
		setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all \
			--inh-caps=-all /tmp/sonde-doctor-copy doctor "$@" >"$out/$name" \
			2>"$out/$name.err" || status=$?
		rm -f /tmp/sonde-doctor-copy
	fi
	echo "== $user: sonde doctor $* = $status, $(awk "BEGIN { print $EPOCHREALTIME - $start }") s"
	((status <= 1)) || fail "$name: status $status: $(cat "$out/$name.err")"
}
state() {
	python3 -c 'import json, sys
for c in json.load(open(sys.argv[1]))["checks"]:
    if c["id"] == sys.argv[2]: print(c["state"])' "$out/$1" "$2"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
grep -e RmProfilingAdminOnly /proc/driver/nvidia/params
before=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1)
for user in root nobody; do
	as $user $user.txt
	cat "$out/$user.txt"
	as $user $user.json --json
	as $user $user-probe.txt --probe
	cat "$out/$user-probe.txt"
	as $user $user-probe.json --probe --json
	for id in tracing pc_sampling pm_sampling counters; do
		said=$(state $user.json $id) tried=$(state $user-probe.json $id)
		echo "$user $id: concluded $said, tried $tried"
		[[ $said == unknown || $said == limited || $said == "$tried" ]] ||
			fail "$user $id: concluded $said, tried $tried"
	done
	python3 -c 'import json, sys
print(json.dumps(json.load(open(sys.argv[1])).get("probe")))' "$out/$user-probe.json"
done
# A binary alone has no catalog beside it.
if compgen -G "$(dirname "$sonde")/locale/zh*/LC_MESSAGES/sonde.mo" >/dev/null ||
	compgen -G "$(dirname "$sonde")/../share/locale/zh*/LC_MESSAGES/sonde.mo" >/dev/null; then
	as root zh.txt --lang zh
else
	echo "left out: --lang zh, no catalog beside $sonde"
fi
after=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1)
echo "memory used before and after: $before $after MiB"
((after <= before + 64)) || fail "memory of the card is still in use"
pgrep -x sonde >/dev/null && fail "a process is left"
if python3 -c 'import jsonschema' 2>/dev/null; then
	for name in root nobody root-probe nobody-probe; do
		python3 -c 'import json, sys, jsonschema
jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' \
			"$out/$name.json" doc/formats/doctor.schema.json || fail "$name.json: schema"
	done
fi
((failed)) || echo "all as it should be"
exit $failed
