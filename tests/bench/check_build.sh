#!/bin/bash
# ./bench builds what it runs, however build/release was configured before. Usage:
#
#   check_build.sh SOURCE
#
# A tree of links to SOURCE, with a build folder of its own. What stands for ninja only
# asks the real one whether it knows the targets.
set -euo pipefail
source=$(realpath "$1")
{ command -v cmake && command -v ninja; } >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree" "$work/bin"
for name in "$source"/*; do
	[[ ${name##*/} == build ]] || ln -s "$name" "$work/tree/"
done
rm "$work/tree/bench"
cp "$source/bench" "$work/tree/"
cat >"$work/bin/ninja" <<END
#!/bin/sh
[ "\$3" = sonde ] || exec "$(command -v ninja)" "\$@" # cmake asks, too
build=\$2
shift 2
"$(command -v ninja)" -C "\$build" -t query "\$@" >"$work/said" 2>&1 && echo known >"$work/known"
exit 1
END
chmod +x "$work/bin/ninja"

try() { # what was there before
	rm -f "$work/known"
	(cd "$work/tree" && PATH=$work/bin:$PATH ./bench report --quick) >"$work/log" 2>&1 || true
	[[ -e $work/known ]] || { echo "$1: bench lacks a target:"; tail -n 3 "$work"/said "$work"/log; exit 1; }
}
try "no build folder"
(cd "$work/tree" && cmake --preset release) >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
try "build/release without the tests"
rm "$work/tree/build/release/CMakeCache.txt"
try "build/release without its cache"
