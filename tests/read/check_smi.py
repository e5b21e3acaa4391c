#!/usr/bin/env python3
"""The nvidia-smi readers against values that somebody else computed.

    check_smi.py SMI_DUMP [PUBLIC]

PUBLIC is a folder with files in dmon, pmon, smi_q, smi_xml, smi_query_csv and
what they hold in expected/; without it there is nothing to check. Each file is
read through SMI_DUMP; one line a difference, status 1 if there is any.
"""
import json
import os
import subprocess
import sys

MIB = 1 << 20
DMON = {"pwr": ("power_w", 1), "gtemp": ("temp_c", 1), "mtemp": ("temp_mem_c", 1), "sm": ("util_pct", 1),
        "mem": ("mem_util_pct", 1), "enc": ("enc_pct", 1), "dec": ("dec_pct", 1), "jpg": ("jpg_pct", 1),
        "ofa": ("ofa_pct", 1), "mclk": ("mem_mhz", 1), "pclk": ("sm_mhz", 1), "pviol": ("power_violation_pct", 1),
        "tviol": ("thermal_violation", 1), "fb": ("mem_used_bytes", MIB), "bar1": ("bar1_used_bytes", MIB),
        "ccpm": ("protected_used_bytes", MIB), "sbecc": ("ecc_single", 1), "dbecc": ("ecc_double", 1),
        "pci": ("pcie_replays", 1), "rxpci": ("pcie_rx_bytes_s", 1e6), "txpci": ("pcie_tx_bytes_s", 1e6)}
Q = {"Performance State": "pstate", "Fan Speed": "fan_pct",
     "PCI / GPU Link Info / PCIe Generation / Current": "pcie_gen",
     "PCI / GPU Link Info / PCIe Generation / Max": "pcie_gen_max",
     "PCI / GPU Link Info / Link Width / Current": "pcie_width", "PCI / GPU Link Info / Link Width / Max": "pcie_width_max",
     "FB Memory Usage / Total": "mem_total_bytes", "FB Memory Usage / Used": "mem_used_bytes",
     "FB Memory Usage / Free": "mem_free_bytes", "Utilization / GPU": "util_pct", "Utilization / Gpu": "util_pct",
     "Utilization / Memory": "mem_util_pct", "Temperature / GPU Current Temp": "temp_c",
     "Temperature / Memory Current Temp": "temp_mem_c", "GPU Power Readings / Average Power Draw": "power_w",
     "GPU Power Readings / Power Draw": "power_w", "GPU Power Readings / Current Power Limit": "power_limit_w",
     "GPU Power Readings / Max Power Limit": "power_max_limit_w", "Clocks / Graphics": "graphics_mhz",
     "Clocks / SM": "sm_mhz", "Clocks / Memory": "mem_mhz", "Max Clocks / SM": "max_sm_mhz",
     "Max Clocks / Memory": "max_mem_mhz", "Remapped Rows / Correctable Error": "remapped_corrected",
     "Remapped Rows / Uncorrectable Error": "remapped_uncorrected", "Remapped Rows / Pending": "remapped_pending"}
XML = {"fan": "fan_pct", "pstate": "pstate", "temp_gpu": "temp_c", "temp_mem": "temp_mem_c", "fb_total": "mem_total_bytes",
       "fb_used": "mem_used_bytes", "fb_free": "mem_free_bytes", "fb_reserved": "mem_reserved_bytes",
       "util_gpu": "util_pct", "util_mem": "mem_util_pct", "util_enc": "enc_pct", "util_dec": "dec_pct",
       "sm_clock": "sm_mhz", "mem_clock": "mem_mhz", "graphics_clock": "graphics_mhz", "max_sm_clock": "max_sm_mhz",
       "max_mem_clock": "max_mem_mhz", "pcie_gen_cur": "pcie_gen", "pcie_gen_max": "pcie_gen_max",
       "pcie_w_cur": "pcie_width", "pcie_w_max": "pcie_width_max", "power_draw": "power_w",
       "average_power_draw": "power_w", "enforced_power_limit": "power_limit_w", "current_power_limit": "power_limit_w",
       "default_power_limit": "power_default_limit_w", "max_power_limit": "power_max_limit_w"}
XML_ENV = {"product_name": "product_name", "uuid": "uuid", "mig_mode": "mig_mode / current_mig",
           "ecc_mode": "ecc_mode / current_ecc", "virtualization": "gpu_virtualization_mode / virtualization_mode",
           "compute_mode": "compute_mode", "vbios": "vbios_version", "power_limit": "power_readings / power_limit",
           "instant_power_draw": "gpu_power_readings / instant_power_draw"}
CSV = {"temperature.gpu": "temp_c", "temperature.memory": "temp_mem_c", "power.draw [W]": "power_w",
       "utilization.gpu [%]": "util_pct", "utilization.memory [%]": "mem_util_pct", "memory.used [MiB]": "mem_used_bytes",
       "memory.total [MiB]": "mem_total_bytes", "clocks.current.sm [MHz]": "sm_mhz",
       "clocks.current.memory [MHz]": "mem_mhz", "clocks_event_reasons.active": "clock_reasons",
       "pcie.link.gen.current": "pcie_gen", "pcie.link.gen.max": "pcie_gen_max", "pcie.link.width.current": "pcie_width",
       "pcie.link.width.max": "pcie_width_max", "pstate": "pstate"}
CSV_ENV = ["driver_version", "mig.mode.current", "ecc.mode.current", "pcie.link.gen.gpucurrent", "power.limit [W]"]
BITS = {"idle": 1, "gpu_idle": 1, "applications_clocks_setting": 2, "sw_power_cap": 4, "hw_slowdown": 8,
        "sync_boost": 16, "sw_thermal_slowdown": 32, "hw_thermal_slowdown": 64, "hw_power_brake_slowdown": 128,
        "display_clock_setting": 256, "display_clocks_setting": 256}

bad = 0


def say(*words):
    global bad
    bad += 1
    print(*words)


def value_of(text):
    """The number that a cell means, None if it means none."""
    if text is None or text.strip("[]") in ("N/A", "ERR!", "") or "deprecated" in text or "WDDM" in text:
        return None
    if text in ("Yes", "No"):
        return float(text == "Yes")
    if text.startswith("0x"):
        return float(int(text, 16))
    word = text.split()
    number = float(word[0].strip("Px%WC").removesuffix("MiB"))
    return number * MIB if word[-1].endswith("MiB") else number


class Dump:
    def __init__(self, program, *paths):
        run = subprocess.run([program, *paths], capture_output=True, text=True, errors="replace", check=False)
        self.failed = run.stderr if run.returncode else None
        self.samples, self.devices, self.processes, self.env, self.sources = [], [], {}, {}, []
        for line in run.stdout.split("\n"):
            cell = line.split("\t")
            if cell[0] == "sample":
                values = dict((k, float(v)) for k, v in (x.split("=") for x in cell[5:]))
                self.samples.append((int(cell[2]), int(cell[3]), int(cell[4]), values))
            elif cell[0] == "device":
                self.devices.append({"ordinal": int(cell[2]), "uuid": cell[3], "bus": cell[4], "name": cell[5]})
            elif cell[0] == "process":
                self.processes[int(cell[1])] = cell[2:]
            elif cell[0] == "env":
                self.env.setdefault((int(cell[2]), cell[3]), []).append(cell[4])
            elif cell[0] == "source":
                self.sources.append(dict(x.split("=") for x in cell[7:]))

    def board(self, device):
        return [s for s in self.samples if s[0] == device and s[1] < 0]


def same(got, want):
    if want is None or got is None:
        return want is None and got is None
    return abs(got - want) <= 1e-9 * max(1, abs(want))


def bus_of(text):
    domain, rest = text.split(":", 1)
    return ("%04x:%s" % (int(domain, 16), rest)).lower()


def check_dmon(name, dump, want):
    if sum(1 for s in dump.samples if s[1] < 0) != want["data_rows"]:
        say(name, "rows", len(dump.samples), "want", want["data_rows"])
    for device, row in enumerate(dump.devices):
        stats = want["stats"][str(row["ordinal"])]
        samples = [s[3] for s in dump.board(device)]
        if len(samples) != stats["rows"]:
            say(name, row["ordinal"], "rows", len(samples), "want", stats["rows"])
        for column, stat in stats.items():
            if column == "rows":
                continue
            metric, factor = DMON[column]
            got = [s[metric] / factor for s in samples if metric in s]
            if len(got) != stat["n"] or len(samples) - len(got) != stat["dashes"]:
                say(name, column, "values", len(got), "want", stat["n"])
            elif got and (round(sum(got) / len(got), 4) != stat["mean"] or min(got) != stat["min"] or
                          max(got) != stat["max"]):
                say(name, column, got, "want", stat)
    if {str(d["ordinal"]) for d in dump.devices} != set(want["gpus"]):
        say(name, "GPUs", dump.devices, "want", want["gpus"])


def check_pmon(name, dump, want):
    if int(dump.sources[0]["seen"]) != want["data_rows"]:
        say(name, "rows", dump.sources[0], "want", want["data_rows"])
    got = {}
    for device, pid, _, values in dump.samples:
        kind, command = dump.processes[pid][:2]
        key = "%d/%d/%s/%s" % (dump.devices[device]["ordinal"], pid, kind, command)
        entry = got.setdefault(key, {"samples": 0, "max_sm": -1})
        entry["samples"] += 1
        entry["max_sm"] = max(entry["max_sm"], values.get("proc_sm_pct", -1))
    if got != want["processes"]:
        say(name, "processes", got, "want", want["processes"])


def check_reasons(name, values, reasons):
    mask = sum(BITS[r.split("reason_")[-1].split(" / ")[-1].lower().replace(" ", "_")] for r in reasons)
    if not same(values.get("clock_reasons"), float(mask)):
        say(name, "reasons", values.get("clock_reasons"), "want", mask)


def check_processes(name, dump, device, want, memory):
    got = sorted((s[1], dump.processes[s[1]][0], s[3].get("proc_mem_used_bytes"))
                 for s in dump.samples if s[0] == device and s[1] >= 0)
    kind = "type" if memory == "mem" else "Type"
    wanted = sorted((int(p["pid"]), p[kind], value_of(p[memory])) for p in want)
    if got != wanted:
        say(name, "processes", got, "want", wanted)


def check_table(name, dump, want):
    for device, gpu in enumerate(want["gpus"]):
        row, values = dump.devices[device], dump.board(device)[0][3]
        if (row["ordinal"], row["bus"]) != (gpu["index"], bus_of(gpu["pci"])):
            say(name, row, "want", gpu)
        if dump.env[(device, "Name")] != [gpu["name"]]:
            say(name, dump.env[(device, "Name")], "want", gpu["name"])
        temp, state, power, limit, used, total, util = [value_of(x) for x in want["use_lines"][device]]
        for metric, number in (("temp_c", temp), ("pstate", state), ("power_w", power), ("power_limit_w", limit),
                               ("mem_used_bytes", used * MIB), ("mem_total_bytes", total * MIB), ("util_pct", util)):
            if not same(values.get(metric), number):
                say(name, device, metric, values.get(metric), "want", number)
    if dump.env[(-1, "driver")] != [want["driver_version"]]:
        say(name, "driver", dump.env[(-1, "driver")], "want", want["driver_version"])


def check_q(name, dump, want):
    if want["layout"] == "default table":
        return check_table(name, dump, want)
    for key, title in (("driver_version", "Driver Version"), ("cuda_version", "CUDA Version"), ("attached_gpus", "Attached GPUs")):
        if dump.env[(-1, title)] != [want[key]]:
            say(name, title, dump.env[(-1, title)], "want", want[key])
    if len(dump.devices) != len(want["gpus"]):
        say(name, "GPUs", len(dump.devices), "want", len(want["gpus"]))
    for device, gpu in enumerate(want["gpus"]):
        values = dump.board(device)[0][3]
        if dump.devices[device]["bus"] != bus_of(gpu["pci"]) or dump.devices[device]["ordinal"] != device:
            say(name, dump.devices[device], "want", gpu["pci"])
        for path, text in gpu.items():
            if not isinstance(text, str) or path == "pci":
                continue
            if dump.env.get((device, path)) != [text]:
                say(name, device, path, dump.env.get((device, path)), "want", text)
            if path in Q and not (path.endswith("Average Power Draw") and value_of(text) is None) and \
                    not same(values.get(Q[path]), value_of(text)):
                say(name, device, Q[path], values.get(Q[path]), "want", text)
        check_reasons(name, values, gpu["active_reasons"])
        check_processes(name, dump, device, gpu["processes"], "Used GPU Memory")
        first = {k[1]: v[0] for k, v in dump.env.items() if k[0] == device and "[" not in k[1]}
        if (len(first), sum(v == "N/A" for v in first.values())) != (gpu["n_keys"], gpu["n_na"]):
            say(name, device, "leaves", len(first), "want", gpu["n_keys"], gpu["n_na"])


def check_xml(name, dump, want):
    for key in ("driver_version", "cuda_version", "attached_gpus", "timestamp"):
        if dump.env[(-1, key)] != [want[key]]:
            say(name, key, dump.env[(-1, key)], "want", want[key])
    schema = dump.env.get((-1, "schema"), [None])[0]
    if schema != (want["dtd"] and "nvsmi_device_%s.dtd" % want["dtd"]):
        say(name, "schema", schema, "want", want["dtd"])
    for device, gpu in enumerate(want["gpus"]):
        values = dump.board(device)[0][3]
        for key, text in gpu.items():
            if key in XML and not same(values.get(XML[key]), value_of(text)):
                say(name, XML[key], values.get(XML[key]), "want", text)
            if key in XML_ENV and dump.env.get((device, XML_ENV[key]), [None]) != [text]:
                say(name, XML_ENV[key], dump.env.get((device, XML_ENV[key])), "want", text)
        for key, text in gpu.get("remapped_rows", {}).items():
            if dump.env[(device, "remapped_rows / " + key)] != [text]:
                say(name, key, dump.env[(device, "remapped_rows / " + key)], "want", text)
        check_reasons(name, values, gpu["active_reasons"])
        check_processes(name, dump, device, gpu["processes"], "mem")
        leaves = sum(len(v) for k, v in dump.env.items() if k[0] == device)
        missing = sum(x == "N/A" for k, v in dump.env.items() if k[0] == device for x in v)
        if (leaves, missing) != (gpu["leaves"], gpu["leaves_na"]):
            say(name, "leaves", leaves, missing, "want", gpu["leaves"], gpu["leaves_na"])


def check_csv(name, dump, want):
    rows = len(dump.samples)
    if rows != want["rows"]:
        say(name, "rows", rows, "want", want["rows"])
    for row, sample in zip(want["picked"], dump.samples):
        device, pid, _, values = sample
        if "pid" in row:
            got = (pid, values.get("proc_mem_used_bytes"))
            command = dump.processes[pid][2] or dump.processes[pid][1]
            if got != (int(row["pid"]), value_of(row["used_gpu_memory [MiB]"])) or command != row["process_name"]:
                say(name, got, command, "want", row)
            continue
        for column, metric in CSV.items():
            if column in row and not same(values.get(metric), value_of(row[column])):
                say(name, metric, values.get(metric), "want", row[column])
        for column in CSV_ENV:
            if column in row and dump.env.get((device, column.split(" [")[0])) != [row[column]]:
                say(name, column, dump.env.get((device, column.split(" [")[0])), "want", row[column])
        if dump.devices[device]["uuid"] != row["uuid"] or dump.devices[device]["name"] != row["name"]:
            say(name, dump.devices[device], "want", row["uuid"])


CHECKS = {"dmon": check_dmon, "pmon": check_pmon, "smi_q": check_q, "smi_xml": check_xml, "smi_query_csv": check_csv}


def main():
    program = sys.argv[1]
    here = os.path.dirname(os.path.abspath(__file__))
    public = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "../../../shared/public")
    count = 0
    for kind, check in CHECKS.items():
        folder = os.path.join(public, kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(public, "expected", "%s__%s.json" % (kind, name)), encoding="utf-8") as file:
                want = json.load(file)["expected"]
            dump = Dump(program, os.path.join(folder, name))
            count += 1
            if dump.failed:
                say(name, dump.failed)
                continue
            for loss in ("dropped", "malformed", "truncated_bytes"):
                if dump.sources[0][loss] != "0":
                    say(name, "loss", dump.sources[0])
            check(name, dump, want)
    print("%d files checked, %d differences" % (count, bad))
    return 1 if bad else 0


sys.exit(main())
