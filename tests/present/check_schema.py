#!/usr/bin/env python3
"""Real reports against doc/formats/report.schema.json.

    check_schema.py SONDE SOURCE_DIR

Reports of every recording at hand: the cases of tests/, examples/, and the
samples beside the source tree where they exist. Also shows that the schema can
fail. Exit status 77 (skipped) without python3-jsonschema.
"""
import copy
import glob
import json
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

PLACES = ["tests/cli/small.json", "examples/*.sonde", "tests/read/*/*",
          "../shared/samples/kineto/*.json.gz", "../shared/samples/ncu/*.csv.gz",
          "../shared/samples/smi/*", "tests/truth/kernel_log/*.log",
          "../shared/public/xid_log/*"]


def report(sonde, path):
    run = subprocess.run([sonde, "report", "--json", path], capture_output=True, check=False)
    if run.returncode < 0:
        raise SystemExit(f"{path}: sonde died of signal {-run.returncode}")
    # What can't be read at all has no report; other tests say which must.
    return json.loads(run.stdout) if run.returncode == 0 else None


def main():
    sonde, source = sys.argv[1:3]
    with open(f"{source}/doc/formats/report.schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    paths = [p for place in PLACES for p in sorted(glob.glob(f"{source}/{place}"))]
    checked, bad = None, 0
    system = schema["properties"]["devices"]["items"]["properties"]["system"]["properties"]
    stats = system["stats"]["properties"]
    with open(f"{source}/src/model/metric.h", encoding="utf-8") as file:
        metrics = set(re.findall(r"\bX\((\w+),\s*\"", file.read()))
    if metrics != set(stats) or metrics - set(system):
        bad += 1
        print(f"metrics and the schema's differ: {sorted((metrics ^ set(stats)) | (metrics - set(system)))}")
    count = 0
    for path in paths:
        got = report(sonde, path)
        if got is None:
            continue
        count += 1
        checked = checked or got
        for error in validator.iter_errors(got):
            bad += 1
            print(f"{path}: {'/'.join(map(str, error.path))}: {error.message[:200]}")
    if not checked:
        print("no report could be made")
        return 1
    for spoil in ({"schema": "sonde.report/2"}, {"unheard_of": 1}, {"devices": [{}]},
                  {"findings": None}):
        wrong = copy.deepcopy(checked)
        wrong.update(spoil)
        if validator.is_valid(wrong):
            print(f"the schema accepts {spoil}")
            bad += 1
    print(f"{count} reports fit the schema" if not bad else f"{bad} faults")
    return 1 if bad else 0


sys.exit(main())
