"""The Kubernetes files ask for the rights that deploy/README.md says, and no more.

check_kubernetes.py SERVE_MADE SONDE; skipped (77) without python3-yaml.
"""

import os
import re
import sys
import unittest

try:
    import yaml
except ImportError:
    print("skipped: no python3-yaml here")
    sys.exit(77)

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
del sys.argv[1:]


def load(name):
    with open(os.path.join(SOURCE, "deploy/kubernetes", name), encoding="utf-8") as text:
        (document,) = yaml.safe_load_all(text)
    pod = document["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return document, pod, container


class Rights(unittest.TestCase):
    def common(self, document, pod, container):
        self.assertEqual((document["apiVersion"], document["kind"]), ("apps/v1", "DaemonSet"))
        self.assertEqual(document["spec"]["selector"]["matchLabels"],
                         document["spec"]["template"]["metadata"]["labels"])
        self.assertFalse(pod["automountServiceAccountToken"])
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        rights = container["securityContext"]
        self.assertFalse(rights["allowPrivilegeEscalation"])
        self.assertTrue(rights["readOnlyRootFilesystem"])
        self.assertNotIn("privileged", rights)
        self.assertEqual(rights["capabilities"]["drop"], ["ALL"])
        for host in ("hostNetwork", "hostIPC"):
            self.assertNotIn(host, pod)
        # A card must not be taken from the jobs.
        self.assertNotIn("nvidia.com/gpu", str(container["resources"]))
        self.assertEqual(container["args"][0], "monitor")
        port = container["args"][container["args"].index("--listen") + 1].rsplit(":", 1)[1]
        self.assertEqual(int(port), container["ports"][0]["containerPort"])
        for mount in container.get("volumeMounts", []):
            self.assertTrue(mount["readOnly"])

        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertNotIn("add", rights["capabilities"])

    def test_least_rights(self):
        document, pod, container = load("daemonset.yaml")
        self.common(document, pod, container)
        self.assertNotIn("hostPID", pod)
        self.assertNotIn("volumes", pod)

    def test_whose_a_process_is_takes_the_host_s_pids_and_log_names(self):
        document, pod, container = load("daemonset-processes.yaml")
        self.common(document, pod, container)
        self.assertTrue(pod["hostPID"])
        self.assertEqual([v["hostPath"]["path"] for v in pod["volumes"]],
                         ["/var/log/containers"])

    def test_scrape_jobs_keep_both(self):
        with open(os.path.join(SOURCE, "deploy/prometheus/scrape-kubernetes.yml"),
                  encoding="utf-8") as text:
            (job,) = yaml.safe_load(text)["scrape_configs"]
        keep = re.compile(job["relabel_configs"][0]["regex"] + "$")
        for name in ("daemonset.yaml", "daemonset-processes.yaml"):
            labels = load(name)[0]["spec"]["template"]["metadata"]["labels"]
            self.assertTrue(keep.match(labels["app.kubernetes.io/name"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
