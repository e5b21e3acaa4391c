timeout 280 tests/gpu/run_cost.sh 3 launch eager train
tr '\n' ' ' < $OUT/run_cost.rows
