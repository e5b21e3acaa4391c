#!/usr/bin/env python3
"""check_kineto.py SONDE - Kineto traces against values computed by somebody else.

Imports each trace, takes `sonde report --json`, and compares counts, sums and
unions to the nanosecond: the samples of tests/truth/kineto with what plain
Python said of them, and, where ../shared/public is there, real traces of others
with the values that lie beside them.
"""
import json
import os
import subprocess
import sys
import tempfile

from tally import Tally

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUBLIC = os.path.join(os.path.dirname(ROOT), "shared", "public")

# Computed with Python's json and int64 ns when the samples were recorded.
SAMPLES = {
    "train_slow": dict(kernel_count=1200, kernel_sum_ns=19043611, kernel_ns=19038267,
                       busy_ns=20503577, span_ns=313027091, memset_count=84, memcpy_count=72,
                       memcpy_bytes=100663296 + 64 + 12584960),
    "train_fast": dict(kernel_count=1200, kernel_sum_ns=19061617, kernel_ns=19056689,
                       busy_ns=19448084, span_ns=88500159, memset_count=84, memcpy_count=56),
    "ddp_rank0": dict(kernel_count=516, kernel_sum_ns=112836238, kernel_ns=96730793,
                      busy_ns=98060421, span_ns=123254977),
    "ddp_rank1": dict(kernel_sum_ns=19959293, kernel_ns=19715514, busy_ns=21512247,
                      span_ns=111509230),
}
COLLECTIVE_NS = {"ddp_rank0": 89298680, "ddp_rank1": 3414389}
COPIES = {
    "train_slow": {("DtoD", None): (48, 100663296), ("DtoH", None): (16, 64),
                   ("HtoD", True): (8, 12584960)},
    "train_fast": {("HtoD", False): (8, None)},
}
tally = Tally()


def report(sonde, path, folder):
    profile = os.path.join(folder, "check.sonde")
    subprocess.run([sonde, "import", "-o", profile, path], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run([sonde, "report", "--json", profile], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def sample(sonde, name, folder):
    doc = report(sonde, os.path.join(ROOT, "tests", "truth", "kineto", name + ".json.gz"), folder)
    device = [d for d in doc["devices"] if d.get("kernel_count")]
    tally.same(name, "devices", len(device), 1)
    for field, want in SAMPLES[name].items():
        tally.same(name, field, device[0].get(field), want)
    tally.same(name, "idle_ns", device[0]["idle_ns"], device[0]["span_ns"] - device[0]["busy_ns"])
    tally.same(name, "sum of idle causes", sum(i["ns"] for i in device[0]["idle"]),
               device[0]["idle_ns"])
    if name in COLLECTIVE_NS:
        tally.same(name, "all-reduce", sum(k["sum_ns"] for k in doc["kernels"]
                                           if "AllReduce_Sum_f32_RING_LL" in k["name"]),
                   COLLECTIVE_NS[name])
    for (kind, pageable), (count, size) in COPIES.get(name, {}).items():
        rows = [c for c in doc["copies"] if c["kind"] == kind and
                (pageable is None or c.get("pageable") == pageable)]
        tally.same(name, kind + " copies", sum(c["count"] for c in rows), count)
        if size is not None:
            tally.same(name, kind + " bytes", sum(c["bytes"] for c in rows), size)


def public(sonde, name, folder):
    with open(os.path.join(PUBLIC, "expected", name)) as file:
        case = json.load(file)
    want = case["expected"]
    path = os.path.join(PUBLIC, case["file"].split("/", 1)[1])
    doc = report(sonde, path, folder)
    where = os.path.basename(path)[:40]
    devices = {str(d.get("ordinal", d["id"])): d for d in doc["devices"]}
    if not want.get("gpu"):
        tally.same(where, "says that there is no device work",
                   doc["profile"].get("no_device_activity"), True)
        tally.same(where, "kernels without device work", doc["kernels"], [])
        tally.same(where, "prints zeros", [d for d in doc["devices"] if "kernel_count" in d], [])
    else:
        active = [d for d in doc["devices"] if "span_ns" in d]
        tally.same(where, "kernels", sum(d["kernel_count"] for d in active), want["kernels"]["count"])
        tally.same(where, "kernel sum", sum(d["kernel_sum_ns"] for d in active),
                   want["kernels"]["total_ns"])
        for ordinal, ns in want["kernels"]["union_busy_ns_by_device"].items():
            tally.same(where, "kernel union", devices[ordinal]["kernel_ns"], ns)
        for ordinal, ns in want["gpu"]["busy_ns_by_device"].items():
            tally.same(where, "busy", devices[ordinal]["busy_ns"], ns)
        if len(active) == 1:
            tally.same(where, "span", active[0]["span_ns"], want["gpu"]["span_ns"])
            tally.same(where, "idle", active[0]["idle_ns"],
                       want["gpu"]["idle_ns_in_span_all_devices_merged"])
            tally.same(where, "idle causes", sum(i["ns"] for i in active[0]["idle"]),
                       active[0]["idle_ns"])
        tally.same(where, "memsets", sum(d["memset_count"] for d in active), want["memset"]["count"])
        for top in want["kernels"]["top3_by_total"]:
            rows = [k for k in doc["kernels"] if k["name"] == top["name"]]
            tally.same(where, "top kernel", sum(k["sum_ns"] for k in rows), top["total_ns"])
            tally.same(where, "top kernel count", sum(k["count"] for k in rows), top["count"])
    for kind, count in want["memcpy"]["count_by_kind"].items():
        rows = [c for c in doc["copies"] if c["kind"] == kind]
        tally.same(where, kind + " copies", sum(c["count"] for c in rows), count)
        tally.same(where, kind + " bytes", sum(c["bytes"] for c in rows),
                   want["memcpy"]["bytes_by_kind"][kind])
        tally.same(where, kind + " time", sum(c["sum_ns"] for c in rows),
                   want["memcpy"]["total_ns_by_kind"][kind])
    for device in want.get("devices") or []:
        tally.same(where, "device name", devices.get(str(device["id"]), {}).get("name"),
                   device["name"])
    for top in (want.get("runtime") or {}).get("top3_by_total", []):
        rows = [c for c in doc["calls"] if c["name"] == top["name"]]
        tally.same(where, "call " + top["name"], sum(c["sum_ns"] for c in rows), top["total_ns"])
        tally.same(where, "calls of " + top["name"], sum(c["count"] for c in rows), top["count"])
    tally.same(where, "records seen", doc["loss"]["seen"], want["n_events"])


def main():
    sonde = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="sonde-truth-") as folder:
        for name in SAMPLES:
            sample(sonde, name, folder)
        if os.path.isdir(PUBLIC):
            for name in sorted(os.listdir(os.path.join(PUBLIC, "expected"))):
                if name.startswith("kineto__"):
                    public(sonde, name, folder)
        else:
            print("no ../shared/public: only the samples")
    return tally.status()


sys.exit(main())
