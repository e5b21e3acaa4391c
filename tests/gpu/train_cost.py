"""What recording takes of a training step, within ONE process, as two processes differ by more
than what is looked for: train.py fast, in which every WINDOW steps something else is
recorded. Medians of each window; what it added to the window of the same round in which nothing was.

    python3 train_cost.py STEPS                 windows between cudaProfilerStop and Start: under
                                                `sonde run -c cudaProfilerApi` what sonde adds, without
                                                sonde how much is chance
    python3 train_cost.py STEPS BARE.so         what CUPTI itself adds: bare_cupti.c, by what is
                                                asked of it

Needs PROGRAMS, where train.py is, or finds it. Prints a row for each variant, then "whole": the
medians of all windows, of a step's time and of the processor time that the process takes for
it, in all threads. Two processes differ less in that than in the step's time: who else is at
work on the machine, and which thread has Python's lock when, is not in it.
"""
import ctypes
import os
import runpy
import statistics
import sys
import time

import torch

WINDOW, SETTLE = 16, 3
program = os.path.join(os.environ.get("PROGRAMS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/programs"),
                       "train.py")
count = int(sys.argv[1])
bare = ctypes.CDLL(sys.argv[2]) if len(sys.argv) > 2 else None
ALL = "launch,launch_ex,driver_launch,copy,memory,driver_callback"
VARIANTS = [None, "", "launch,launch_ex,driver_launch", "copy", ALL] if bare else [None, "recorded"]
clock = time.perf_counter
cuda = torch.cuda.cudart()
steps = {words: [] for words in VARIANTS}
spent = []
state = {"step": 0, "at": 0.0, "window": [], "spent": 0.0}


class Untouched:
    """In place of cudart for train.py, whose own range would be in the way."""
    cudaProfilerStart = cudaProfilerStop = staticmethod(lambda: None)


def switch(words, on):
    if words is None:
        return
    if bare:
        bare.bare_switch(words.encode(), int(on))
    elif on:
        cuda.cudaProfilerStart()
    else:
        cuda.cudaProfilerStop()


def step_done():
    """train.py looks at the clock once a step."""
    number, words = state["step"], VARIANTS[state["step"] // WINDOW % len(VARIANTS)]
    now = clock()
    if number % WINDOW > SETTLE:
        state["window"].append(now - state["at"])
    if number % WINDOW == SETTLE:
        state["spent"] = time.process_time()
    state["step"] += 1
    if state["step"] % WINDOW == 0:
        took = (time.process_time() - state["spent"]) / (WINDOW - 1 - SETTLE)
        torch.cuda.synchronize()
        switch(words, False)
        if number >= WINDOW * len(VARIANTS): # the first round is warming up
            steps[words].append(statistics.median(state["window"]))
            spent.append(took)
        state["window"] = []
        switch(VARIANTS[state["step"] // WINDOW % len(VARIANTS)], True)
    state["at"] = clock()
    return now


def main():
    torch.cuda.cudart = lambda: Untouched
    time.perf_counter = step_done
    sys.argv = ["train.py", "fast", "--profiler", "none", "--steps", str(count)]
    runpy.run_path(program, run_name="__main__")
    rounds = min(len(values) for values in steps.values())
    plain = steps[None][:rounds]
    print("train.py fast, %d rounds of %d steps: ms a step, median; added in the same round: median (quartiles), %%" % (rounds, WINDOW))
    for words, values in steps.items():
        values = values[:rounds]
        added = [value - base for value, base in zip(values, plain)]
        low, middle, high = statistics.quantiles(added, n=4) if rounds > 1 else added * 3
        name = "nothing" if words is None else words if not bare else "kernels" + ("," + words if words else "")
        print("  %-58s %8.3f  %+7.3f (%+.3f to %+.3f)  %+6.2f %%" %
              (name, 1e3 * statistics.median(values), 1e3 * middle, 1e3 * low, 1e3 * high, 100 * middle / statistics.median(plain)), flush=True)
    print("whole: step %.6f, processor time %.6f" %
          (statistics.median(value for values in steps.values() for value in values), statistics.median(spent)))


if __name__ == "__main__":
    main()
