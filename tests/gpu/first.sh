#!/bin/bash
# First look of the tracer at a card.
set -u
S=${SONDE:-build/portable/sonde}
W=/tmp/w; mkdir -p $W; OUT=${OUT:-/tmp/out}; mkdir -p $OUT
P=${PROGRAMS:-examples/programs}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for p in launch pipeline; do nvcc -O3 -lineinfo -arch=sm_90 -o $W/$p $P/$p.cu & done
nvcc -O3 -lineinfo -arch=sm_90 -o $W/cases $P/cases.cu & wait
cd $W
S=$(cd - >/dev/null; realpath $S); P=$(cd - >/dev/null; realpath $P)
echo "== pipeline"; $S run -o $OUT/pipeline.sonde -- $W/pipeline 20 > $OUT/pipeline.txt 2>&1; echo rc=$?; head -60 $OUT/pipeline.txt
$S sql $OUT/pipeline.sonde "select count(*) kernels from kernel; " ; $S sql $OUT/pipeline.sonde "select count(*) n, count(distinct name) names from runtime"
$S sql $OUT/pipeline.sonde "select name, count(*) n from runtime group by name order by n desc limit 12"
$S sql $OUT/pipeline.sonde "select name, count(*) n from driver group by name order by n desc limit 12"
$S sql $OUT/pipeline.sonde "select name, count(*) n from range group by name order by n desc limit 12"
echo "== launch"; for i in 1 2 3; do $W/launch 200000; timeout 60 $S run --no-report -o $OUT/launch$i.sonde -- $W/launch 200000 2>&1; timeout 60 $S run --no-report --trace cuda -o $OUT/launchc$i.sonde -- $W/launch 200000 2>&1 | grep us; done
$S sql $OUT/launch1.sonde "select count(*) kernels from kernel"; ls -l $OUT/launch*.sonde
echo "== cases"; $W/cases 2; timeout 100 $S run --pc-sampling on --no-report -o $OUT/cases.sonde -- $W/cases 4 2>&1; 
$S sql $OUT/cases.sonde "select count(*) kernels from kernel"; $S sql $OUT/cases.sonde "select count(*), sum(samples) from stall"
timeout 60 $S report $OUT/cases.sonde > $OUT/cases.txt 2>&1; head -50 $OUT/cases.txt
echo "== torch"; timeout 100 python3 $P/train.py fast --profiler none; timeout 100 $S run --no-report -o $OUT/fast.sonde -- python3 $P/train.py fast --profiler none; echo rc=$?
$S sql $OUT/fast.sonde "select count(*) kernels from kernel"; timeout 60 $S report $OUT/fast.sonde > $OUT/fast.txt; head -40 $OUT/fast.txt
echo "== torch with its profiler"; timeout 100 $S run --no-report -o $OUT/own.sonde -- python3 $P/train.py slow; echo rc=$?; ls -l /tmp/train_slow.json
