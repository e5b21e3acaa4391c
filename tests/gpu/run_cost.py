"""What run_cost.sh measured: medians (and least values) beside their yardsticks.

    run_cost.py FOLDER [FIGURES]    one number a line in FOLDER/VARIANT, the n-th of each from
                                    the n-th round; the figures that count go to FIGURES as
                                    JSON. Status 1 if one is missed.

What a variant adds is the median over the rounds of what it added to the plain run of the same
round: a machine drifts by more from round to round than what is looked for, and so the
medians of two variants may lie in different rounds. The difference of the medians, which
is shown beside it, does not see that.
"""
import json
import os
import statistics
import sys

folder = sys.argv[1]
figures = []


def numbers(name):
    path = os.path.join(folder, name)
    return [float(line) for line in open(path) if line.strip()] if os.path.exists(path) else []


def median(name):
    return statistics.median(numbers(name)) if numbers(name) else None


def more(name, plain):
    """Over the plain run of the same round, the median. A run that gave no number leaves
    the rounds apart: then of the medians. None: not measured."""
    mine, base = numbers(name), numbers(plain)
    if not mine or not base:
        return None
    if len(mine) == len(base):
        return statistics.median(m - b for m, b in zip(mine, base))
    return statistics.median(mine) - statistics.median(base)


def table(title, plain, variants):
    print(title + ": median (least); added in the same round, of the medians, of the least")
    for what, name in variants:
        mine, base = numbers(name), numbers(plain)
        if mine and base:
            print("  %-42s %8.3f us (%.3f)  %+.3f %+.3f %+.3f" %
                  (what, statistics.median(mine), min(mine), more(name, plain),
                   statistics.median(mine) - statistics.median(base), min(mine) - min(base)))


def figure(what, value, yardstick, ratio, bound):
    """Counts only if both were measured."""
    ok = None if ratio is None or bound is None else ratio <= bound
    figures.append({"what": what, "value": value, "yardstick": yardstick,
                    "ratio": "-" if ratio is None else "%.2f" % ratio,
                    "wanted": "" if bound is None else "<= %g" % bound, "ok": ok})
    print("%-44s %12s  of %-22s %6s  %-8s %s" %
          (what, value, yardstick, figures[-1]["ratio"], figures[-1]["wanted"],
           {True: "ok", False: "MISSED", None: ""}[ok]))


def added(what, name, plain, other, yardstick, bound):
    mine, theirs = more(name, plain), more(other, plain)
    figure(what, "-" if mine is None else "%+.3f us" % mine,
           yardstick + ("" if theirs is None else " %+.3f" % theirs),
           mine / theirs if None not in (mine, theirs) and theirs > 0 else None, bound)


def percent(what, name, plain, bound):
    mine, base = more(name, plain), median(plain)
    figure(what, "-" if mine is None else "%+.4g" % mine, "-" if base is None else "%.4g" % base,
           None if mine is None or not base else 100 * mine / base, bound)


table("launch.cu, 200,000 launches, us each", "plain",
      (("plain", "plain"), ("bare CUPTI consumer, kernels", "bare"), ("bare CUPTI consumer, kernels + runtime", "bare_api"),
       ("sonde run -t kernel, no host side", "kernel"), ("sonde run -t cuda, no host side", "cuda"), ("sonde run", "all"),
       ("sonde run --pc-sampling on", "pc"), ("nsys --trace=cuda", "nsys_cuda")))
table("eager torch loop, 25 times 10,000 operators, us each", "t_plain",
      (("plain", "t_plain"), ("sonde run", "t_sonde"), ("sonde run --pc-sampling on", "t_pc"),
       ("torch.profiler(CUDA)", "t_torch")))
added("kernels alone", "kernel", "plain", "bare", "bare consumer", 1.25)
added("kernels and launches", "cuda", "plain", "nsys_cuda", "nsys", 1.0)
added("everything", "all", "plain", "nsys_cuda", "nsys", None)
added("eager torch loop", "t_sonde", "t_plain", "t_torch", "torch.profiler", 0.5)
percent("train.py fast, s a step, % added", "s_sonde", "s_plain", 5)
percent("  by a bare consumer of kernels and launches", "s_bare", "s_plain", None)
percent("cases.cu 20, ms, % added", "c_off", "c_plain", None)
percent("cases.cu 20 with PC sampling, ms, % added", "c_on", "c_off", None)
percent("cases.cu 200 with PC sampling, ms, % added", "l_on", "l_off", 3)
percent("eager torch loop with PC sampling, us, % added", "t_pc", "t_sonde", 3)
lacking = sum(n < 200000 for n in numbers("count"))
figure("profiles that lack a launch", str(lacking), "%d" % len(numbers("count")), float(lacking), 0)
if median("size"):
    figure("bytes a launch with its kernel", "%.2f" % (median("size") / 200000), "-", median("size") / 200000, 12)
if len(sys.argv) > 2:
    with open(sys.argv[2], "w") as out:
        json.dump(figures, out)
sys.exit(any(f["ok"] is False for f in figures))
