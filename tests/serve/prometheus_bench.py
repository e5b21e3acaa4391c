"""Debian's Prometheus, started for a test, and what it scrapes.

Found in PATH or in build/prometheus (tools/unpack prometheus build/prometheus).
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PATHS = os.environ["PATH"] + ":" + os.path.join(SOURCE, "build/prometheus/usr/bin")
PROMETHEUS = shutil.which("prometheus", path=PATHS)
PROMTOOL = shutil.which("promtool", path=PATHS)
RULES = os.path.join(SOURCE, "deploy/prometheus/sonde.rules.yml")
GIVE_UP_S = 120  # bounds a failing test only


def fetch(url, accept=None):
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def wait_until(look, what, running=lambda: True, more=lambda: ""):
    """Ask `look` until it says something; a refused connection says nothing."""
    end = time.monotonic() + GIVE_UP_S
    while time.monotonic() < end and running():
        try:
            found = look()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"not seen: {what}\n{more()}")


class Prometheus:
    """Started on a free port, with one target."""

    def __init__(self, target):
        self.folder = tempfile.mkdtemp(prefix="sonde-prometheus-")
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as out:
            json.dump({  # JSON is YAML
                "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms",
                           "evaluation_interval": "250ms"},
                "rule_files": [RULES],
                "scrape_configs": [{"job_name": "sonde",
                                    "static_configs": [{"targets": [target]}]}],
            }, out)
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={config}", "--web.listen-address=127.0.0.1:0",
                 f"--storage.tsdb.path={self.folder}/data", "--log.level=debug"],
                stdout=log, stderr=log)
        self.base = None
        self.wait(self.find_port, "its port")

    def find_port(self):
        """Port 0 means any; which one, only its sockets tell."""
        links = set()
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            try:
                links.add(os.readlink(f"/proc/{self.process.pid}/fd/{fd}"))
            except FileNotFoundError:
                pass
        with open("/proc/net/tcp", encoding="ascii") as table:
            for line in table.readlines()[1:]:
                field = line.split()
                if field[3] == "0A" and f"socket:[{field[9]}]" in links:
                    self.base = "http://127.0.0.1:%d" % int(field[1].split(":")[1], 16)
                    return fetch(self.base + "/-/ready")
        return None

    def wait(self, look, what):
        return wait_until(look, what, lambda: self.process.poll() is None, self.log_end)

    def log_end(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()[-3000:]

    def query(self, expr):
        url = f"{self.base}/api/v1/query?" + urllib.parse.urlencode({"query": expr})
        data = json.loads(fetch(url)[1])["data"]["result"]
        return [(row["metric"], float(row["value"][1])) for row in data]

    def until(self, expr, value):
        """Wait for the only series of `expr` to have `value`; its labels."""
        def look():
            rows = self.query(expr)
            return rows if len(rows) == 1 and rows[0][1] == value else None
        return self.wait(look, f"{expr} == {value}")[0][0]

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)
