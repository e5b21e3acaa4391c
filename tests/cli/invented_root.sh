# For cases of commands that read /proc: an invented machine in ./root.
#
#	process PID USER_ID COMMAND...     who that PID is
#	top SCENE ARG...                   sonde top on the puppet of tests/fake/SCENE.nvml
mkdir -p root/proc root/etc root/var/log/containers
printf 'cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\nbtime 1700000000\n' >root/proc/stat
printf 'MemTotal: 134217728 kB\nMemAvailable: 91226112 kB\n' >root/proc/meminfo
printf 'root:x:0:0::/:/bin/sh\nana:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >root/etc/passwd

process() {
	local pid=$1 uid=$2
	shift 2
	mkdir -p "root/proc/$pid"
	echo "$pid (${1:0:15}) S 1 1 1 0 -1 4194560 10 0 0 0 150 50 0 0 20 0 4 0 5000 99999999 256 0" \
		>"root/proc/$pid/stat"
	printf 'Uid:\t0\t%d\t%d\t%d\n' "$uid" "$uid" "$uid" >"root/proc/$pid/status"
	printf '%s\0' "$@" >"root/proc/$pid/cmdline"
}

top() {
	local scene=$1 library=$FAKE/libnvidia-ml.so.1
	shift
	[[ $scene == old ]] && library=$FAKE/old/libnvidia-ml.so.1
	[[ -f $scene.nvml ]] || cp "$SOURCE/tests/fake/$scene.nvml" .
	echo "\$ sonde top $*  ($scene)"
	PUPPET_NVML=$scene.nvml sonde top --nvml "$library" --root root "$@" |
		sed 's/^20[0-9-]* [0-9:]*  /DATE TIME            /'
	echo "= ${PIPESTATUS[0]}"
}
