#!/bin/bash
# Compiles the CUDA programs and injected libraries that the scripts beside it run, side by
# side: tests/gpu/build.sh FOLDER NAME... gives FOLDER/NAME of each.
#
# BUILT: a folder that several scripts share; what is in it is compiled once. Needs nvcc and
# gcc. Status 1 if one can't be had.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=$(realpath "${PROGRAMS:-$here/../../examples/programs}")
folder=$1
shift
built=${BUILT:-$folder}
mkdir -p "$folder" "$built"
nvcc=$(command -v nvcc) || { echo "nvcc: not found"; exit 1; }
cuda=$(dirname "$(dirname "$(realpath "$nvcc")")")
cupti=(-I"$cuda/include" -I"$cuda/extras/CUPTI/include" -L"$cuda/lib64" -L"$cuda/extras/CUPTI/lib64")

compile() { # NAME
	local to=$built/$1.new

	case $1 in
	# What it leaves is looked for by function: nothing is inlined that is not so at -O2.
	owed) nvcc -O2 -std=c++17 -arch=native -o "$to" "$here/owed.cu" ;;
	raw) nvcc -O2 -std=c++17 -arch=native -o "$to" "$here/raw.cu" -lcuda ;;
	waits) nvcc -O2 -std=c++17 -arch=native -o "$to" "$here/waits.cu" ;;
	pc_switch) nvcc -O2 -std=c++17 -arch=native "${cupti[@]}" -o "$to" "$here/$1.cu" -lcupti -lcuda ;;
	bare.so | raw.so)
		gcc -O2 -fPIC -shared "${cupti[@]}" -o "$to" "$here/${1%.so}_cupti.c" -lcupti \
			-Wl,-rpath,"$cuda/lib64:$cuda/extras/CUPTI/lib64"
		;;
	*) nvcc -O3 -lineinfo -arch=native -o "$to" "$programs/$1.cu" ;;
	esac && mv "$to" "$built/$1"
}

bad=0
waits=()
for name; do
	[[ -e $built/$name ]] && continue
	compile "$name" &
	waits+=($!)
done
for pid in "${waits[@]}"; do
	wait "$pid" || bad=1
done
for name; do
	[[ $built -ef $folder ]] || cp "$built/$name" "$folder/$name" || bad=1
done
exit $bad
