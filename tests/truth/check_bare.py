#!/usr/bin/env python3
"""check_bare.py SONDE - what a recording without annotations must still tell.

Takes from each Kineto sample what `sonde run` does not record by itself:
framework operators, Python functions, ranges, profiler steps, and what NCCL's
kernels say of their sizes and ranks. Kernels, copies, sets and the runtime's
calls stay. The findings that rest on these must then be the same ones.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile

from tally import Tally

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEPT = {"cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "ac2g"}
SAYS_MORE = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "In split size",
             "Out split size", "Group size", "Process Group Name", "Process Group Description",
             "Process Group Ranks", "External id")
CASES = (("train_slow",), ("train_fast",), ("ddp_rank0", "ddp_rank1"))


def sample(name):
    return os.path.join(ROOT, "tests", "truth", "kineto", name + ".json.gz")


def strip(name, folder):
    with gzip.open(sample(name), "rt") as file:
        doc = json.load(file)
    doc["traceEvents"] = [e for e in doc["traceEvents"] if e.get("ph") == "M" or e.get("cat") in KEPT]
    doc["with_stack"] = doc["with_modules"] = doc["record_shapes"] = 0
    for event in doc["traceEvents"]:
        for key in SAYS_MORE:
            event.get("args", {}).pop(key, None)
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as file:
        json.dump(doc, file)
    return path


def report(sonde, paths):
    out = subprocess.run([sonde, "report", "--json", *paths], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)


def findings(doc):
    return sorted({finding["id"] for finding in doc["findings"]})


def waiting(doc):
    return {d["id"]: d["waiting_ns"] for d in doc["devices"] if d.get("waiting_ns") is not None}


def main():
    sonde = sys.argv[1]
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            full = report(sonde, [sample(name) for name in case])
            bare = report(sonde, [strip(name, folder) for name in case])
            for what, got, want in (
                    ("findings", findings(bare), findings(full)),
                    ("steps", bare.get("steps", {}).get("count"), full["steps"]["count"]),
                    ("waiting", waiting(bare), waiting(full)),
                    ("source of steps", bare.get("steps", {}).get("source"), "repeated launches"),
                    ("read-backs", sum(r["count"] for r in bare.get("readbacks", [])),
                     sum(r["count"] for r in full.get("readbacks", [])))):
                tally.same(" ".join(case), what, got, want)
    return tally.status()


if __name__ == "__main__":
    sys.exit(main())
