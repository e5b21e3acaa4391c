"""The tables of tests/gpu/nvml.sh: our values beside nvidia-smi's."""
import re
import statistics
import sys

out = sys.argv[1]
failed = 0


def lines(name):
    with open(f"{out}/{name}") as file:
        return file.read().splitlines()


def ours(name, board="0"):
    """metric -> values of all rounds"""
    values = {}
    for line in lines(name):
        word = line.split()
        if word and word[0] == "value" and word[3] == board:
            values.setdefault(word[4], []).append(float(word[5]))
    return values


def dmon(name):
    """column -> values, from the text of nvidia-smi dmon"""
    columns, header = {}, None
    for line in lines(name):
        word = line.replace("#", " ").split()
        if line.lstrip().startswith("#"):
            if "gpu" in word:
                header = word
            continue
        if not header or len(word) != len(header):
            continue
        for key, cell in zip(header, word):
            if re.fullmatch(r"-?[0-9.]+", cell):
                columns.setdefault(key, []).append(float(cell))
    return columns


def show(name, mine, theirs, limit, note=""):
    global failed
    if mine is None or theirs is None:
        print(f"{name:22} {mine!s:>12} {theirs!s:>12}    -")
        return
    good = abs(mine - theirs) <= limit
    failed += not good
    print(f"{name:22} {mine:12.2f} {theirs:12.2f}    {'ok' if good else 'DIFFERS'} {note}")


def median(values):
    return statistics.median(values) if values else None


mine, smi, gpm = ours("ours.txt"), dmon("dmon.txt"), dmon("gpm.txt")
print("== medians under steady load: ours, nvidia-smi dmon; 1 % or one unit")
for metric, column, scale in [
    ("power_w", "pwr", 1), ("temp_c", "gtemp", 1), ("temp_mem_c", "mtemp", 1),
    ("util_pct", "sm", 1), ("mem_util_pct", "mem", 1), ("mem_mhz", "mclk", 1),
    ("sm_mhz", "pclk", 1), ("power_violation_pct", "pviol", 1),
    ("thermal_violation", "tviol", 1), ("mem_used_bytes", "fb", 2**20),
    ("bar1_used_bytes", "bar1", 2**20), ("ecc_single", "sbecc", 1),
    ("ecc_double", "dbecc", 1), ("pcie_replays", "pci", 1),
    ("pcie_rx_bytes_s", "rxpci", 1e6), ("pcie_tx_bytes_s", "txpci", 1e6)]:
    m, s = median(mine.get(metric)), median(smi.get(column))
    m = m if m is None else m / scale
    # A 20 ms window of a bursty copy is no yardstick for a counter over a second.
    loose = column in ("rxpci", "txpci")
    show(metric, m, s, float("inf") if loose else max(1, abs(s or 0) * 0.01),
         "(for the eye: dmon looks at 20 ms)" if loose else "")

print("== GPM: ours, nvidia-smi dmon --gpm-metrics; one point, MiB/s 5 %")
for metric, column, scale in [
    ("gr_active_pct", "gract", 1), ("sm_active_pct", "smutil", 1),
    ("occupancy_pct", "smocc", 1), ("tensor_pct", "mmaact", 1), ("dram_pct", "dram", 1),
    ("gpm_pcie_tx_bytes_s", "pcitx", 2**20), ("gpm_pcie_rx_bytes_s", "pcirx", 2**20),
    ("nvlink_rx_bytes_s", "nvlrx", 2**20), ("nvlink_tx_bytes_s", "nvltx", 2**20)]:
    m, s = median(mine.get(metric)), median(gpm.get(column))
    m = m if m is None else m / scale
    show(metric, m, s, max(1, abs(s or 0) * 0.05 if scale > 1 else 1))
if mine.get("pcie_rx_bytes_s") and mine.get("gpm_pcie_rx_bytes_s"):
    a, b = median(mine["pcie_rx_bytes_s"]), median(mine["gpm_pcie_rx_bytes_s"])
    print(f"PCIe receive by counter {a / 1e6:.1f} MB/s, by GPM {b / 1e6:.1f} MB/s")

print("== counters and facts between two nvidia-smi queries: before, ours, after")
names = ["reason_power_cap_us", "reason_sw_thermal_us", "ecc_single", "ecc_double",
         "mem_used_bytes", "mem_reserved_bytes", "mem_total_bytes", "pcie_gen", "pcie_width",
         "power_limit_w", "max_sm_mhz", "max_mem_mhz"]
between = ours("between.txt")
for name, low, high in zip(names, lines("before.csv")[0].split(","), lines("after.csv")[0].split(",")):
    scale = 2**20 if name.endswith("bytes") else 1
    value = between.get(name, [None])[-1]
    try:
        low, high = float(low), float(high)
    except ValueError:
        print(f"{name:22} {low:>16} {value}")
        continue
    good = value is not None and low - 1 <= value / scale <= high + 1
    failed += not good
    print(f"{name:22} {low:16.0f} {value / scale if value is not None else float('nan'):16.1f} {high:16.0f}    "
          f"{'ok' if good else 'DIFFERS'}")
apps = sorted(int(l.split(",")[0]) for l in lines("apps.csv") if l.strip())
seen = sorted({int(l.split()[3]) for l in lines("between.txt") if l.startswith("process")})
print("processes: nvidia-smi", apps, "ours", seen)

print("== energy: integrated over the run, and the counter")
e = mine.get("energy_j", [])
true = between.get("energy_j", [])
if len(e) > 2 and true:
    steps = [b - a for a, b in zip(e, e[1:])]
    print(f"first {e[0]:.1f} J, last {e[-1]:.1f} J, counter read later {true[0]:.1f} J; "
          f"mean step {statistics.mean(steps):.1f} J/s, at the re-reading {steps[59] if len(steps) > 59 else float('nan'):.1f} J")

print("== cost")
for name in ("ours.txt", "cost.txt", "fast.txt", "flight.txt"):
    rounds = [l.split() for l in lines(name) if l.startswith("round")]
    wall = [float(r[3]) for r in rounds[1:]]
    cpu = [float(r[4]) for r in rounds[1:]]
    last = [l for l in lines(name) if l.startswith("cpu")]
    print(f"{name:12} {len(rounds)} rounds, {rounds[-1][2]} calls, child wall median {median(wall):.0f} us, "
          f"CPU median {median(cpu):.0f} us; {last[0] if last else ''}")
print("dmon:", " ".join(lines("dmon.time")).strip())
print("== cost of each call, us: mean, max")
for line in sorted((l.split() for l in lines("ours.txt") if l.startswith("cost")),
                   key=lambda w: -float(w[4]) * int(w[2])):
    print(f"{line[1]:48} {line[2]:>6} calls {line[3]:>4} failed {line[4]:>10} {line[5]:>10}")
print("==", "all within limits" if not failed else f"{failed} outside of their limits")
sys.exit(1 if failed else 0)
