#!/usr/bin/env python3
"""check_kernel_log.py SONDE - kernel logs against values computed by somebody else.

Imports each log, takes the faults out of the profile with `sonde sql`, and
compares number, place, process and text of every Xid: the logs beside this file
with what their makers put into them, and, where ../shared/public is there, real
logs of others with the values that lie beside them.
"""
import collections
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

from tally import Tally

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUBLIC = os.path.join(os.path.dirname(ROOT), "shared", "public")
OWN = os.path.join(ROOT, "tests", "truth", "kernel_log")

tally = Tally()


def rows(sonde, profile, query):
    out = subprocess.run([sonde, "sql", "--csv", profile, query], check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    return list(csv.DictReader(io.StringIO(out)))


def parts_of(detail):
    parts = {}
    while detail:
        if detail.startswith("text="):
            parts["text"] = detail[5:]
            break
        pair, _, detail = detail.partition(";")
        key, _, value = pair.partition("=")
        parts[key] = value
    return parts


def faults_of(sonde, path, folder):
    profile = os.path.join(folder, "check.sonde")
    subprocess.run([sonde, "import", "-o", profile, path], check=True, stdout=subprocess.DEVNULL)
    faults = [parts_of(row["detail"]) for row in
              rows(sonde, profile, "SELECT start_ns, detail FROM mark ORDER BY start_ns")]
    faults.sort(key=lambda fault: int(fault["line"]))
    loss = rows(sonde, profile, "SELECT * FROM loss")
    return faults, {row.get("name") or row.get("loss"): int(row["count"]) for row in loss
                    if row.get("count")} if loss and "count" in loss[0] else loss[0]


def shown(fault):
    return (fault["pci"][:-2], int(fault["number"]),
            int(fault["pid"]) if "pid" in fault else None, fault.get("name"))


def compare(sonde, name, path, want, folder):
    faults, loss = faults_of(sonde, path, folder)
    xids = [fault for fault in faults if fault["fault"] == "xid"]
    tally.same(name, "Xid lines", len(xids), want["xid_events"])
    tally.same(name, "by number", dict(collections.Counter(fault["number"] for fault in xids)),
               want["by_xid"])
    tally.same(name, "by place", dict(collections.Counter("%s %s" % (fault["pci"][:-2],
                                                                     fault["number"])
                                                          for fault in xids)),
               want["by_pci_and_xid"])
    tally.same(name, "by process", collections.Counter(shown(fault) for fault in xids),
               collections.Counter({tuple(row[:4]): row[4]
                                    for row in want["distinct_pci_xid_pid_name"]}))
    tally.same(name, "unreadable", int(loss.get("malformed", 0)), len(want["unparsed"]))
    for fault, first in zip(xids, want["first_events"]):
        tally.same(name, "line", int(fault["line"]), first["line"])
        tally.same(name, "number at line %d" % first["line"], shown(fault),
                   (first["pci"], first["xid"], first["pid"], first["name"]))
        tally.same(name, "text at line %d" % first["line"],
                   fault.get("text", "")[:len(first["msg"])], first["msg"])
        tally.same(name, "MIG instance at line %d" % first["line"],
                   int(fault["gi"]) if "gi" in fault else None,
                   int(first["gpu_instance"]) if first["gpu_instance"] is not None else None)
    other = want.get("other", {})
    kinds = collections.Counter(fault["fault"] for fault in faults)
    tally.same(name, "SXid", kinds["sxid"], other.get("SXid_lines", 0))
    tally.same(name, "initialisation", kinds["init"], other.get("RmInitAdapter_failed", 0))
    tally.same(name, "versions", kinds["api_mismatch"], other.get("api_mismatch", 0))
    tally.same(name, "OOM", kinds["oom"], other.get("oom_killer_lines", 0))


def main():
    sonde = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(OWN)):
            if not name.endswith(".json"):
                with open(os.path.join(OWN, name + ".json")) as file:
                    compare(sonde, name, os.path.join(OWN, name), json.load(file), folder)
        expected = os.path.join(PUBLIC, "expected")
        for name in sorted(os.listdir(expected)) if os.path.isdir(expected) else []:
            if not name.startswith("xid_log__"):
                continue
            with open(os.path.join(expected, name)) as file:
                want = json.load(file)["expected"]
            path = os.path.join(PUBLIC, "xid_log", name[len("xid_log__"):-len(".json")])
            compare(sonde, name, path, want, folder)
    return tally.status()


if __name__ == "__main__":
    sys.exit(main())
