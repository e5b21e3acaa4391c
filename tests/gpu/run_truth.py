"""Comparisons for run_truth.sh: prints what it compares, ends with status 1 on a
difference. Formulas are those of the claims, not of sonde."""
import glob
import json
import statistics

from claims import check, load, run


def rows(path):
    """Rows of `sonde sql --json`."""
    return [tuple(row.values()) for row in load(path)]


def findings(report):
    return {f["id"]: f for f in report["findings"]}


def pipeline(path):
    report = load(path)
    found = findings(report)
    device = report["devices"][0]
    for id in ("gpu_starved", "pageable_copy", "sync_readback", "launch_bound"):
        check(id in found, "finding %s: %s" % (id, found.get(id, {}).get("claim", "-")))
    check("data loading" in json.dumps(found.get("gpu_starved", {})), "the starved GPU waits in 'data loading'")
    idle = json.dumps(device["idle"])
    check("sleep" in idle, "the sleep is named in the idle causes")
    check("sleep" in found.get("gpu_starved", {}).get("claim", ""), "and in the finding")
    check(device["kernel_count"] == 20 * 302, "kernels %d of %d" % (device["kernel_count"], 20 * 302))
    check(device["memcpy_count"] == 20 * 10, "copies %d of %d" % (device["memcpy_count"], 20 * 10))
    check(device["kernel_ns"] <= device["kernel_sum_ns"], "overlap of streams is not summed: %d <= %d"
          % (device["kernel_ns"], device["kernel_sum_ns"]))
    memory = json.dumps(report.get("memory", "-"))
    print("  memory: %s" % memory[:400])
    check("leak" in memory or "leak" in json.dumps(list(found)), "leaked 8 MiB blocks and streams are told")


def cases(plain, sampled, report):
    times = [{}, {}]
    for i, paths in enumerate((plain, sampled)):
        for name, ns in [row for path in glob.glob(paths) for row in rows(path)]:
            times[i].setdefault(name.split("(")[0].split("<")[0].replace("void ", ""), []).append(ns)
    top, samples, sure = {}, {}, {}
    for kernel in load(report)["kernels"]:
        name = kernel["name"].split("(")[0].split("<")[0].replace("void ", "")
        top[name] = kernel.get("top_stall", "-")
        samples[name] = kernel.get("pc_samples", 0)
        sure[name] = kernel.get("top_stall_sure", False)
    # By ncu's counters. Its own PC samples say wait of divergent (126,197 of not_selected's
    # 101,899), and nothing of int_bound (60,844 to 60,551).
    as_sampled = dict(divergent="wait", int_bound="not_selected")
    truth = dict(copy_scalar="long_scoreboard", copy_float4="long_scoreboard", copy_strided="long_scoreboard",
                 softmax_row_scalar="long_scoreboard", softmax_row_vec4="long_scoreboard", act_powf="not_selected",
                 act_mul="long_scoreboard", fma_bound="not_selected", fp64_bound="not_selected",
                 int_bound="math_pipe_throttle", chase="long_scoreboard", one_block="wait", reg_heavy="not_selected",
                 barrier_heavy="barrier", transpose_conflict="mio_throttle", transpose_padded="long_scoreboard",
                 matmul_naive="long_scoreboard", matmul_tiled="mio_throttle", atomic_hot="long_scoreboard",
                 tail_wave="wait", divergent="not_selected")
    check(len(times[0]) == 21 and len(times[1]) == 21, "21 kernels: %d, %d" % (len(times[0]), len(times[1])))
    far = right = unsure = 0
    for name in sorted(times[0]):
        a, b = (statistics.median(t.get(name, [0])) for t in times)
        best = top.get(name, "-") # "-": fewer than 30 samples
        ratio = b / a if a else 0
        far += abs(ratio - 1) > 0.01
        same = best in (truth.get(name), as_sampled.get(name))
        print("  %-20s %10.0f ns  x %.4f  %8d samples  %s%s %s" %
              (name, a, ratio, samples.get(name, 0), best, "" if sure.get(name) else "?",
               "" if same else "(ncu: %s)" % truth.get(name)))
        right += same
        unsure += not same and not sure.get(name)
    check(right + unsure == 21 and right >= 18, "top stall as ncu's: %d of 21; another, and not sure: %d" % (right, unsure))
    check(far == 0, "%d of 21 kernels more than 1 %% from the run without PC sampling" % far)


def idle_share(path, cause):
    device = [d for d in load(path)["devices"] if d.get("kernel_count")][0]
    return sum(idle["ns"] for idle in device["idle"] if idle["cause"] == cause) / device["span_ns"]


def train(mode, trace, run):
    a, b = ([d for d in load(path)["devices"] if d.get("kernel_count")][0] for path in (trace, run))
    for key in ("kernel_count", "memcpy_count", "memcpy_bytes", "memset_count"):
        check(a[key] == b[key], "%s: Kineto %d, run %d" % (key, a[key], b[key]))
    ratio = b["kernel_sum_ns"] / a["kernel_sum_ns"]
    check(abs(ratio - 1) < 0.02, "kernel time: Kineto %d, run %d, x %.4f" % (a["kernel_sum_ns"], b["kernel_sum_ns"], ratio))
    ids = [sorted({f["id"] for f in load(path)["findings"]} & {"gpu_starved", "launch_bound", "sync_readback", "pageable_copy"})
           for path in (trace, run)]
    # Two runs of one job: a share near the finding's threshold of 10 % may be on either side.
    late = [idle_share(path, "host_late") for path in (trace, run)]
    near = set(ids[0]) ^ set(ids[1]) == {"gpu_starved"} and all(0.05 < share < 0.15 for share in late)
    check(ids[0] == ids[1] or near, "findings: Kineto %s, run %s; host late %.1f and %.1f %%" %
          (*ids, 100 * late[0], 100 * late[1]))
    steps = [load(path).get("steps", {}) for path in (trace, run)]
    check(steps[0].get("count") == steps[1].get("count"), "steps: Kineto %s, run %s (%s)" %
          (steps[0].get("count"), steps[1].get("count"), steps[1].get("source")))
    first = load(run)["findings"][0]["id"] if load(run)["findings"] else "-"
    check(first == ("gpu_starved" if mode == "slow" else "launch_bound"), "first finding: %s" % first)


def ddp(path):
    report = load(path)
    uuids = {d.get("uuid") for d in report["devices"] if d.get("kernel_count", 0) > 0}
    check(len(uuids) == 2, "two cards with kernels: %s" % uuids)
    for d in report["devices"]:
        print("  device %s: %s kernels, busy %s waiting %s" %
              (d.get("id"), d.get("kernel_count"), d.get("busy_ns"), d.get("waiting_ns")))
    check(report["loss"].get("dropped", 0) == 0, "nothing dropped: %s" % report["loss"])
    waits = [d for d in report["devices"] if d.get("waiting_ns") is not None]
    check(len(waits) == 2, "waiting of both ranks is told")
    check(any(f["id"] == "collective_wait" and f["grade"] == "high" for f in report["findings"]), "collective_wait, high")
    for d in waits:
        print("  device %s: last to %s of %s collectives, late by %s" %
              (d["id"], d.get("compared_last"), d.get("compared_count"), d.get("late_p50_ns")))
    print("  ranks: %s" % json.dumps(report.get("ranks", "-"))[:300])
    print("  findings: %s" % [f["id"] for f in report["findings"]])


run(globals())
