"""The real Prometheus reads what we serve, and the files of deploy/ are right.

check_prometheus.py SERVE_MADE SONDE PUPPET; skipped (77) without prometheus.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from prometheus_bench import PROMETHEUS, PROMTOOL, RULES, SOURCE, Prometheus, fetch

BOARD = os.path.join(SOURCE, "deploy/grafana/sonde-gpus.json")
if not PROMETHEUS or not PROMTOOL:
    print("skipped: no prometheus here (tools/unpack prometheus build/prometheus)")
    sys.exit(77)
MADE = sys.argv[1]
del sys.argv[1:]


def promtool(*args, text=None):
    return subprocess.run([PROMTOOL, *args], input=text, text=True, capture_output=True)


class Exporter:
    def __init__(self):
        self.process = subprocess.Popen([MADE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().decode().strip()

    def step(self, line=b"\n"):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise AssertionError("the exporter failed")


class RoundTrip(unittest.TestCase):
    def setUp(self):
        self.exporter = Exporter()
        self.addCleanup(self.exporter.close)
        self.prometheus = Prometheus(self.exporter.address)
        self.addCleanup(self.prometheus.close)

    def test_values_come_back(self):
        until = self.prometheus.until
        until('up{job="sonde"}', 1)
        labels = until('sonde_gpu_power_watts{gpu="3"}', 687.25)
        self.assertEqual(labels["uuid"], "GPU-00000003-made")
        self.assertEqual(labels["pci_bus"], "0000:83:00.0")
        until('count(sonde_gpu_up == 1)', 9)  # eight cards, one instance
        until('sonde_gpu_sm_active_ratio{mig_profile="1g.18gb"}', 0.25)
        until('sonde_gpu_throttle_seconds_total{gpu="0",reason="sw_power_cap"}', 3)
        labels = until('sonde_gpu_process_info{pid="4000"}', 1)
        self.assertEqual(labels["command"], 'python "a b" \\ x\ny')
        self.assertEqual(labels["pod"], "train-0")
        until('DCGM_FI_DEV_FB_USED{gpu="0",GPU_I_ID=""}', 65536)

        self.exporter.step()
        until('sonde_gpu_throttle_seconds_total{gpu="0",reason="sw_power_cap"}', 4)
        until('sonde_gpu_energy_joules_total{gpu="0"}', 1000687)
        self.exporter.step(b"lost\n")
        until('sonde_gpu_up{gpu="1"}', 0)
        until('ALERTS{alertname="GpuLost",alertstate="firing"}', 1)

    def test_panels_of_the_board_show_something(self):
        self.prometheus.until('sonde_gpu_power_watts{gpu="3"}', 687.25)
        self.exporter.step()
        self.prometheus.until('sonde_gpu_energy_joules_total{gpu="0"}', 1000687)
        shown = set()
        for title, expr in board_queries():
            if self.prometheus.query(expr):
                shown.add(title)
        # What the invented cards tell. The others have no such value there.
        self.assertLessEqual(
            {"Cards up", "Cards lost", "Cards held down by heat", "Fatal Xids in range", "Power",
             "SM active, mean", "SM active", "Utilisation", "Tensor pipes active",
             "Time held down, by reason", "SM clock, share of the highest",
             "Power, share of the limit", "Temperature", "Device memory in use", "PCIe",
             "Memory by process", "SM use by process", "Xids since the exporter began",
             "ECC errors since the driver was loaded", "CPU", "Memory",
             "Time the driver takes to answer"}, shown)


def board_queries():
    """(panel, query) of the board, with Grafana's variables filled in."""
    with open(BOARD, encoding="utf-8") as board:
        panels = json.load(board)["panels"]
    for panel in panels:
        for target in panel.get("targets", []):
            expr = target["expr"]
            for name, value in (("$__rate_interval", "1m"), ("$__range_s", "10000000000"),
                                ("$instance", ".*"), ("$gpu", ".*")):
                expr = expr.replace(name, value)
            yield panel["title"], expr


class Files(unittest.TestCase):
    def test_metrics_pass_promtool(self):
        exporter = Exporter()
        self.addCleanup(exporter.close)
        kind, text = fetch(f"http://{exporter.address}/metrics")
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        # DCGM's own labels are not in Prometheus' style; the names are only for old boards.
        own = "".join(l for l in text.splitlines(True) if "DCGM" not in l)
        self.assertNotEqual(own, text)
        checked = promtool("check", "metrics", text=own)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        self.assertNotEqual(promtool("check", "metrics", text=own + "x{} y\n").returncode, 0)

        kind, om = fetch(f"http://{exporter.address}/metrics",
                         "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(om.endswith("\n# EOF\n"))
        samples = re.compile(r"^[a-zA-Z].*$", re.M)
        drop = "sonde_self_http"
        self.assertEqual([l for l in samples.findall(text) if drop not in l],
                         [l for l in samples.findall(om) if drop not in l])

    def test_rules_pass_promtool_and_fire_when_they_should(self):
        checked = promtool("check", "rules", RULES)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        fired = promtool("test", "rules", RULES.replace(".yml", ".test.yml"))
        self.assertEqual(fired.returncode, 0, fired.stdout + fired.stderr)

    def test_the_scrape_jobs_are_valid(self):
        path = os.path.join(SOURCE, "deploy/prometheus/scrape.yml")
        checked = promtool("check", "config", path)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_the_board_is_valid_and_asks_for_names_that_exist(self):
        with open(os.path.join(SOURCE, "doc/formats/prometheus.md"), encoding="utf-8") as page:
            known = set(re.findall(r"`(sonde_\w+)`", page.read()))
        rules = {"groups": [{"name": "board", "rules": []}]}
        with open(RULES, encoding="utf-8") as text:
            asked = set(re.findall(r"\bsonde_\w+", re.sub(r"#.*", "", text.read())))
        for title, expr in board_queries():
            self.assertNotIn("$", expr, title)
            asked |= set(re.findall(r"\bsonde_\w+", expr))
            rules["groups"][0]["rules"].append({"record": "x", "labels": {"t": title},
                                                "expr": expr})
        self.assertLessEqual(asked, known)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as out:
            json.dump(rules, out)
            out.flush()
            checked = promtool("check", "rules", out.name)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        with open(BOARD, encoding="utf-8") as board:
            ids = [panel["id"] for panel in json.load(board)["panels"]]
        self.assertEqual(len(ids), len(set(ids)))

    def test_panels_of_the_board_lie_side_by_side(self):
        """And each line has a name: from version 37 on Grafana takes a legend as it is told."""
        taken = set()
        with open(BOARD, encoding="utf-8") as board:
            panels = json.load(board)["panels"]
        for panel in panels:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            if panel["type"] == "timeseries":
                self.assertTrue(panel["options"]["legend"]["showLegend"], panel["title"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
