"""`sonde monitor --listen` on the puppet library, read by clients and by Prometheus.

check_monitor.py SERVE_MADE SONDE PUPPET
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from prometheus_bench import PROMETHEUS, SOURCE, Prometheus, fetch, wait_until

SONDE, PUPPET = sys.argv[2:4]
del sys.argv[1:]


class Monitor:
    """Plays a scene of tests/fake; another one can take its place."""

    def __init__(self, scene, *options, more=""):
        self.folder = tempfile.mkdtemp(prefix="sonde-monitor-")
        self.script = os.path.join(self.folder, "now.nvml")
        self.play(scene, more)
        self.errors = os.path.join(self.folder, "errors")
        self.process = None
        self.start("0", *options)
        self.address = wait_until(self.find_address, "the address", self.running, self.told)

    def start(self, listen, *options):
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [SONDE, "monitor", "--quiet", "--interval", "0.2", "--listen", listen,
                 "--nvml", PUPPET, *options],
                stderr=errors, env=dict(os.environ, PUPPET_NVML=self.script))

    def running(self):
        return self.process.poll() is None

    def told(self):
        with open(self.errors, encoding="utf-8") as errors:
            return errors.read()

    def find_address(self):
        found = re.search(r"metrics at http://([^/]+)/metrics\n", self.told())
        return found and found[1]

    def play(self, scene, more=""):
        with open(os.path.join(SOURCE, "tests/fake", scene), encoding="utf-8") as text:
            script = text.read() + more
        with open(self.script + ".new", "w", encoding="utf-8") as out:
            out.write(script)
        os.rename(self.script + ".new", self.script)

    def play_at(self, bus, more):
        """The same scene, with more lines of the card at this address."""
        with open(self.script, encoding="utf-8") as text:
            script = "".join(line for line in text if not line.startswith("event "))
        place = f"bus {bus}\n"
        assert script.count(place) == 1, script
        with open(self.script + ".new", "w", encoding="utf-8") as out:
            out.write(script.replace(place, place + more))
        os.rename(self.script + ".new", self.script)

    def value(self, line):
        """Of the series that begins so; None if there is none."""
        _, text = fetch(f"http://{self.address}/metrics")
        found = re.search(r"^" + re.escape(line) + r"[^ ]* (.*)$", text, re.M)
        return found and float(found[1])

    def until(self, line, value):
        wait_until(lambda: self.value(line) == value, f"{line} {value}", self.running, self.told)

    def close(self):
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        told = self.told()
        shutil.rmtree(self.folder)
        if status != 0:
            raise AssertionError(f"sonde monitor ended with {status}\n{told}")


class Serving(unittest.TestCase):
    def monitor(self, scene, *options, more=""):
        monitor = Monitor(scene, *options, more=more)
        self.addCleanup(monitor.close)
        return monitor

    def test_values_follow_the_cards(self):
        monitor = self.monitor("eight.nvml")
        monitor.until('sonde_gpu_power_watts{gpu="5",', 401)
        monitor.until('sonde_gpu_sm_active_ratio{gpu="0",', 0.91)
        self.assertIsNone(monitor.value("DCGM"))
        monitor.play("lost.nvml")
        monitor.until('sonde_gpu_up{gpu="1",', 0)
        self.assertIsNone(monitor.value('sonde_gpu_power_watts{gpu="1",'))

    def test_an_xid_is_counted_once(self):
        log = os.path.join(tempfile.mkdtemp(prefix="sonde-log-"), "kern.log")
        self.addCleanup(shutil.rmtree, os.path.dirname(log))
        open(log, "w", encoding="utf-8").close()
        monitor = self.monitor("eight.nvml", "--kernel-log", log)
        monitor.until("sonde_driver_up", 1)
        xid = 'sonde_gpu_xid_errors_total{gpu="2",'
        self.assertIsNone(monitor.value(xid))
        # A fault of which both tell, and one of which NVML alone tells.
        with open(log, "a", encoding="utf-8") as out:
            out.write(f"[{time.clock_gettime(time.CLOCK_MONOTONIC):.6f}] NVRM: Xid "
                      "(PCI:0000:38:00): 79, pid=7, name=a, GPU has fallen off the bus.\n")
        monitor.play_at("0000:38:00.0", "event 8 79\n")
        monitor.until(xid, 1)
        monitor.play_at("0000:28:00.0", "event 8 31\n")
        monitor.until('sonde_gpu_xid_errors_total{gpu="1",', 1)
        self.assertEqual(monitor.value(xid), 1)

    def test_a_driver_that_hangs_leaves_no_stale_values(self):
        monitor = self.monitor("eight.nvml")
        monitor.until("sonde_driver_up", 1)
        monitor.play("eight.nvml", "hang nvmlDeviceGetPowerUsage\n")
        monitor.until("sonde_driver_up", 0)
        self.assertIsNone(monitor.value("sonde_gpu_power_watts"))
        self.assertEqual(fetch(f"http://{monitor.address}/-/healthy")[1], "ok\n")
        monitor.play("eight.nvml")
        monitor.until("sonde_driver_up", 1)
        self.assertGreaterEqual(monitor.value("sonde_self_collector_hangs_total"), 1)

    def test_without_a_driver_it_serves_that_there_is_none(self):
        monitor = self.monitor("eight.nvml", "--nvml", "/no/such/library.so")
        monitor.until("sonde_driver_up", 0)
        self.assertIsNone(monitor.value("sonde_gpu_"))

    def test_the_board_and_the_rules_ask_for_what_is_served(self):
        """Every metric of deploy/'s queries, from the exporter as it runs."""
        log = os.path.join(tempfile.mkdtemp(prefix="sonde-log-"), "kern.log")
        self.addCleanup(shutil.rmtree, os.path.dirname(log))
        open(log, "w", encoding="utf-8").close()
        # NVLink, and what only older cards answer.
        monitor = self.monitor("h200.nvml", "--kernel-log", log, "--listen-processes",
                               more="field 31 0\nfield 138 0+1000\nfield 139 0+1000\n")
        monitor.until("sonde_driver_up", 1)
        monitor.play_at("0000:83:00.0", "event 8 31\n")
        monitor.until("sonde_gpu_xid_errors_total", 1)
        monitor.until("sonde_gpu_sm_active_ratio", 0.9425)
        wait_until(lambda: monitor.value("sonde_gpu_process_sm_utilization_ratio"), "a process",
                   monitor.running, monitor.told)
        _, text = fetch(f"http://{monitor.address}/metrics")
        served = set(re.findall(r"^(sonde_\w+)", text, re.M))
        asked = set()
        for name in ("deploy/grafana/sonde-gpus.json", "deploy/prometheus/sonde.rules.yml"):
            with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
                found = set(re.findall(r"\bsonde_[a-z_]*[a-z]\b", file.read()))
            self.assertGreater(len(found), 10, name)
            asked |= found
        self.assertEqual(asked - served, set())

    def test_rounds_go_on_under_attack(self):
        monitor = self.monitor("eight.nvml")
        monitor.until("sonde_driver_up", 1)
        host, port = monitor.address.rsplit(":", 1)
        clients = []
        for i in range(300):
            client = socket.create_connection((host, int(port)))
            if i % 3 == 0:
                try:
                    client.sendall(b"GET /metrics HTTP/1.1\r\nHo")
                except OSError:
                    pass
            clients.append(client)
        before = monitor.value("sonde_self_snapshots_total")
        wait_until(lambda: monitor.value("sonde_self_snapshots_total") > before + 3, "rounds",
                   monitor.running, monitor.told)
        self.assertGreater(monitor.value(
            'sonde_self_http_connections_cut_total{cause="evicted"'), 0)
        for client in clients:
            client.close()

    def test_a_taken_port_is_one_line(self):
        monitor = self.monitor("eight.nvml")
        second = subprocess.run([SONDE, "monitor", "--listen", monitor.address, "--nvml", PUPPET],
                                capture_output=True, text=True,
                                env=dict(os.environ, PUPPET_NVML=monitor.script))
        self.assertEqual(second.returncode, 8)
        self.assertEqual(second.stderr.count("\n"), 1, second.stderr)
        self.assertIn(f"{monitor.address}: another program listens there", second.stderr)

    @unittest.skipUnless(PROMETHEUS, "no prometheus here")
    def test_prometheus_gives_the_values_back(self):
        monitor = self.monitor("eight.nvml", "--listen-dcgm")
        prometheus = Prometheus(monitor.address)
        self.addCleanup(prometheus.close)
        prometheus.until("count by (job) (sonde_gpu_up == 1)", 8)
        labels = prometheus.until('sonde_gpu_power_watts{gpu="5"}', 401)
        self.assertEqual(labels["uuid"], "GPU-00000005-2222-3333-4444-555555555555")
        self.assertEqual(labels["pci_bus"], "0000:68:00.0")
        prometheus.until('sonde_gpu_clock_reason{gpu="5",reason="hw_thermal"}', 1)
        prometheus.until('sonde_gpu_clock_reason{gpu="4",reason="hw_thermal"}', 0)
        prometheus.until('DCGM_FI_DEV_GPU_TEMP{gpu="5",modelName="NVIDIA H200"}', 88)
        prometheus.until('count by (job) (sonde_gpu_memory_used_bytes == 64511803392)', 8)
        monitor.play("lost.nvml")
        prometheus.until('ALERTS{alertname="GpuLost",alertstate="firing",gpu="1"}', 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
