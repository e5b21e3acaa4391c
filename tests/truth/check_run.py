#!/usr/bin/env python3
"""check_run.py SONDE - a recording of `sonde run` on a card, against its program and its rows.

examples/pipeline.sonde is the recording: pipeline.cu (examples/programs) ran
20 steps under `sonde run` on an H200. What the program does is known from its source; every
time in the report is computed here again from the rows that `sonde sql` gives, by
intervals and sets, without any code of ours.
"""
import csv
import io
import json
import os
import subprocess
import sys

from tally import Tally

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFILE = os.path.join(ROOT, "examples", "pipeline.sonde")
STEPS, TINY, READS, BLOCK = 20, 300, 8, 8 << 20
BYTES = 4 * (1 << 22)


def rows(sonde, table, columns):
    text = subprocess.run([sonde, "sql", "--csv", PROFILE, "select %s from %s order by start_ns" % (columns, table)],
                          check=True, stdout=subprocess.PIPE).stdout.decode()
    return [{key: int(value) if value.lstrip("-").isdigit() else value for key, value in row.items()}
            for row in csv.DictReader(io.StringIO(text))]


def union(intervals):
    """Disjoint and sorted."""
    whole = []
    for start, end in sorted(intervals):
        if whole and start <= whole[-1][1]:
            whole[-1][1] = max(whole[-1][1], end)
        else:
            whole.append([start, end])
    return whole


def length(intervals):
    return sum(end - start for start, end in intervals)


def both(a, b):
    """Where the disjoint `a` and `b` are at once."""
    return [[max(s, t), min(e, f)] for s, e in a for t, f in b if max(s, t) < min(e, f)]


def busy_streams(ops):
    """How long two streams or more were busy at once."""
    edges = []
    for stream in {op["stream"] for op in ops}:
        for start, end in union((op["start_ns"], op["end_ns"]) for op in ops if op["stream"] == stream):
            edges += [(start, 1), (end, -1)]
    total = depth = last = 0
    for time, step in sorted(edges):
        total += (time - last) * (depth >= 2)
        depth, last = depth + step, time
    return total


def times(tally, device, kernels, copies):
    ops = kernels + copies
    busy = union((op["start_ns"], op["end_ns"]) for op in ops)
    computing = union((op["start_ns"], op["end_ns"]) for op in kernels)
    copying = union((op["start_ns"], op["end_ns"]) for op in copies)
    span = busy[-1][1] - busy[0][0]
    want = {
        "span_ns": span,
        "busy_ns": length(busy),
        "idle_ns": span - length(busy),
        "kernel_ns": length(computing),
        "kernel_sum_ns": sum(op["duration_ns"] for op in kernels),
        "copy_ns": length(copying),
        "copy_overlap_ns": length(both(computing, copying)),
        "stream_overlap_ns": busy_streams(ops),
        "kernel_count": len(kernels),
        "memcpy_count": len(copies),
        "memcpy_bytes": sum(op["bytes"] for op in copies),
        "stream_count": len({op["stream"] for op in ops}),
    }
    for key, value in want.items():
        tally.same("GPU 0", key, device[key], value)
    tally.same("GPU 0", "idle by cause, in all", sum(part["ns"] for part in device["idle"]), want["idle_ns"])
    return [[a[1], b[0]] for a, b in zip(busy, busy[1:])]


def main():
    sonde = sys.argv[1]
    tally = Tally()
    report = json.loads(subprocess.run([sonde, "report", "--json", PROFILE], check=True,
                                       stdout=subprocess.PIPE).stdout)
    device = report["devices"][0]
    kernels = rows(sonde, "kernel", "start_ns, end_ns, duration_ns, stream, name")
    copies = rows(sonde, "memcpy", "start_ns, end_ns, duration_ns, stream, bytes, name")
    ranges = rows(sonde, "range", "start_ns, end_ns, name")
    gaps = times(tally, device, kernels, copies)

    # The program: what it launched, copied and left behind.
    tally.same("program", "kernels", [(k["name"], k["count"]) for k in report["kernels"]],
               [("work(float*, int, int)", 2 * STEPS), ("tiny(float*)", TINY * STEPS)])
    tally.same("program", "copies", [(c["kind"], c["pageable"], c["count"], c["bytes"]) for c in report["copies"]],
               [("HtoD", True, STEPS, BYTES * STEPS), ("HtoD", False, STEPS, BYTES * STEPS),
                ("DtoH", True, READS * STEPS, 4 * READS * STEPS)])
    tally.same("program", "ranges", {r["name"]: r["count"] for r in report["ranges"]},
               dict.fromkeys(("step", "data loading", "copy in (pageable)", "copy in (pinned)", "forward",
                              "many tiny", "read loss", "sleep"), STEPS))
    tally.same("program", "reads a step", report["readbacks"][0]["per_step"], READS)
    memory = report["memory"][0]
    tally.same("program", "live at the end", memory["live_bytes"], 2 * BYTES + 5 * BLOCK)
    tally.same("program", "blocks", memory["leaks"][0]["block_bytes"], BLOCK)
    tally.holds("program", memory["leaks"][0]["site"] == "cudaMalloc < main (pipeline)", "where blocks are obtained")
    tally.holds("program", memory["streams_site"] == "cudaStreamCreate < main (pipeline)", "where streams are made")
    tally.same("program", "streams", memory["streams_live"], 2 + 5)

    # Why the card idled: the time in gaps during these ranges, by the rows.
    late = [part for part in device["idle"] if part["cause"] == "host_late"][0]
    told = {part["name"]: part["ns"] for part in late["during"] if part["kind"] == "range"}
    for name in ("data loading", "sleep"):
        inside = length(both(gaps, [[r["start_ns"], r["end_ns"]] for r in ranges if r["name"] == name]))
        tally.holds("idle", abs(told[name] - inside) <= inside / 100, "%s: %d ns, by rows %d" % (name, told[name], inside))
    found = [finding["id"] for finding in report["findings"]]
    for rule in ("gpu_starved", "pageable_copy", "sync_readback", "leak", "launch_bound"):
        tally.holds("findings", rule in found, "%s is missing: %s" % (rule, found))
    tally.same("findings", "the first", found[0], "gpu_starved")
    parts = {e["metric"]: e["value"] for e in report["findings"][0]["evidence"]}
    tally.same("findings", "loading", parts["idle.host_late.during.loader"], told["data loading"])
    tally.same("findings", "the sleep", parts["idle.host_late.during"], told["sleep"])
    sys.exit(tally.status())


if __name__ == "__main__":
    main()
