"""Print a Chrome trace with as many kernels as the first argument says."""
import random
import sys

count = int(sys.argv[1])
random.seed(1)
print('{"traceEvents": [')
for i in range(count):
    start = 10 * i + random.randrange(1000) / 1000
    print('{"ph": "X", "cat": "kernel", "name": "kernel_%d", "pid": 0, "tid": 7, "ts": %.3f, '
          '"dur": %.3f, "args": {"device": 0, "context": 1, "stream": 7, "correlation": %d, '
          '"grid": [%d, 1, 1], "block": [128, 1, 1]}},'
          % (random.randrange(1000), start, random.randrange(1, 9000) / 1000, i + 1,
             random.randrange(1, 100000)))
print('{"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "x"}}]}')
