#!/usr/bin/env python3
"""check_ncu.py SONDE - the verdict on kernels that were built to be bound by one thing.

21 kernels of examples' cases.cu, measured with Nsight Compute on an H200. The
class (and unit) of each is known because the kernel was written for it. The
same must come out when names are replaced and every number is jittered by 3 %,
and from the details page, which has fewer metrics.
"""
import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

from tally import Tally

HERE = os.path.dirname(os.path.abspath(__file__))

# kernel: (classes, units; None: any). From the table beside the recordings.
TRUTH = {
    "copy_scalar": ({"memory:dram"}, {"dram"}),
    "copy_float4": ({"memory:dram"}, {"dram"}),
    "copy_strided": ({"memory:l2"}, {"lts"}),
    "softmax_row_scalar": ({"latency"}, {"memory"}),
    "softmax_row_vec4": ({"memory:dram"}, {"dram"}),
    "act_powf": ({"compute"}, {"issue", "issue slots", "fma", "alu"}),
    "act_mul": ({"compute"}, {"issue", "issue slots", "fma"}),
    "fma_bound": ({"compute"}, {"fma"}),
    "fp64_bound": ({"compute"}, {"fp64"}),
    "int_bound": ({"compute"}, {"alu"}),
    "chase": ({"latency"}, {"memory"}),
    "one_block": ({"small_grid"}, None),
    "reg_heavy": ({"compute"}, {"fma"}),
    "barrier_heavy": ({"latency"}, {"sync", "barrier"}),
    "transpose_conflict": ({"memory:l1"}, {"shared memory", "shared"}),
    "transpose_padded": ({"memory:dram"}, {"dram"}),
    "matmul_naive": ({"memory:l1"}, {"l1tex data pipe", "l1tex"}),
    "matmul_tiled": ({"memory:l1"}, {"shared memory", "shared"}),
    "atomic_hot": ({"latency", "memory:l2"}, None),
    "tail_wave": ({"tail"}, None),
    "divergent": ({"compute"}, {"issue", "issue slots", "xu", "fma"}),
}
# What would contradict the truth.
FORBIDDEN = {
    "reg_heavy": {"low_occupancy", "low_cache_reuse"},
    "copy_scalar": {"low_occupancy", "uncoalesced", "low_cache_reuse"},
    "copy_float4": {"uncoalesced", "low_occupancy", "low_cache_reuse"},
    "fma_bound": {"low_occupancy"}, "fp64_bound": {"low_occupancy"},
    "int_bound": {"low_occupancy"}, "atomic_hot": {"low_cache_reuse"},
    "transpose_padded": {"bank_conflicts", "uncoalesced", "low_cache_reuse"},
    "transpose_conflict": {"low_cache_reuse"}, "copy_strided": {"low_cache_reuse"},
    "softmax_row_vec4": {"uncoalesced"}, "barrier_heavy": {"bank_conflicts", "low_cache_reuse"},
    "act_mul": {"special_function_bound"},
}
EXPECTED = {
    "copy_strided": {"uncoalesced"}, "softmax_row_scalar": {"uncoalesced", "low_occupancy"},
    "transpose_conflict": {"bank_conflicts"}, "fp64_bound": {"fp64_bound"},
    "one_block": {"small_grid"}, "tail_wave": {"tail_effect"}, "divergent": {"divergence"},
    "barrier_heavy": {"barrier_stall"}, "atomic_hot": {"atomic_contention"},
    "matmul_naive": {"low_cache_reuse"}, "matmul_tiled": {"low_cache_reuse"},
}
tally = Tally()


def load(name):
    with gzip.open(os.path.join(HERE, "ncu", name), "rt", newline="") as file:
        return list(csv.reader(file))


def disguise(rows, seed):
    """Other names, every measured number off by up to 3 %."""
    rng = random.Random(seed)
    at = rows[0].index("Kernel Name")
    fixed = {"ID", "Process ID", "Context", "Stream", "Device", "CC", "Block Size", "Grid Size",
             "Kernel Name", "Process Name", "Host Name"}
    names = {}
    out = [rows[0], rows[1]]
    for row in rows[2:]:
        short = row[at].split("(")[0].split(" ")[-1]
        names.setdefault(short, "k%04x" % rng.randrange(65536))
        new = list(row)
        new[at] = row[at].replace(short, names[short])
        for i, cell in enumerate(row):
            head = rows[0][i]
            if head in fixed or head.startswith(("launch__", "device__")):
                continue
            try:
                value = float(cell.replace(",", ""))
            except ValueError:
                continue
            new[i] = repr(value * rng.uniform(0.97, 1.03))
        out.append(new)
    return out, {new: old for old, new in names.items()}


def verdicts(sonde, rows, folder, names=None):
    path = os.path.join(folder, "cases.csv")
    profile = os.path.join(folder, "cases.sonde")
    with open(path, "w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    subprocess.run([sonde, "import", "-o", profile, path], check=True, stdout=subprocess.DEVNULL)
    doc = json.loads(subprocess.run([sonde, "report", "--json", profile], check=True,
                                    stdout=subprocess.PIPE).stdout)
    found = {}
    for kernel in doc["kernels"]:
        short = kernel["name"].split("(")[0].split(" ")[-1]
        short = (names or {}).get(short, short)
        found[short] = (kernel.get("bound", {}), set())
    for finding in doc["findings"]:
        for short in found:
            real = {v: k for k, v in (names or {}).items()}.get(short, short)
            if any(real == w.split("(")[0] for e in finding.get("evidence", [])
                   for w in e.get("where", "").replace(",", " ").split()):
                found[short][1].add(finding["id"])
    return found


def judge(where, found, units):
    for kernel, (classes, accepted) in TRUTH.items():
        bound, findings = found.get(kernel, ({}, set()))
        tally.holds(where, bound.get("class") in classes,
                    "%s is called %s" % (kernel, bound.get("class")))
        if units and accepted:
            tally.holds(where, bound.get("unit") in accepted,
                        "%s: unit %s" % (kernel, bound.get("unit")))
        tally.holds(where, not findings & FORBIDDEN.get(kernel, set()),
                    "%s is blamed for %s" % (kernel, findings & FORBIDDEN.get(kernel, set())))
        if units and kernel in EXPECTED:
            tally.holds(where, EXPECTED[kernel] <= findings,
                        "%s: no %s among %s" % (kernel, sorted(EXPECTED[kernel] - findings),
                                                sorted(findings)))


def main():
    sonde = sys.argv[1]
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    raw = load("cases_raw.csv.gz")
    with tempfile.TemporaryDirectory(prefix="sonde-truth-") as folder:
        judge("raw page", verdicts(sonde, raw, folder), True)
        judge("details page", verdicts(sonde, load("cases_details.csv.gz"), folder), False)
        for seed in range(seeds):
            rows, names = disguise(raw, seed)
            judge("disguise %d" % seed, verdicts(sonde, rows, folder, names), True)
    return tally.status()


sys.exit(main())
