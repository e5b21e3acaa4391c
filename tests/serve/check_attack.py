"""Clients that mean no good, against an exporter of invented cards.

check_attack.py SERVE_MADE [SONDE]

Whatever they do, one honest client is answered meanwhile and afterwards.
"""

import resource
import socket
import subprocess
import sys
import threading
import unittest

PROGRAM = sys.argv.pop(1)
del sys.argv[1:]
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Server:
    def __enter__(self):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        host, port = self.process.stdout.readline().decode().strip().rsplit(":", 1)
        self.address = (host, int(port))
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.status = self.process.wait()
        self.process.stdout.close()
        assert self.status == 0, f"the server ended with {self.status}"

    def connect(self):
        client = socket.create_connection(self.address)
        client.settimeout(60)
        return client

    def ask(self, text):
        with self.connect() as client:
            client.sendall(text)
            return read_all(client)

    def rss_kib(self):
        """0 under a sanitizer, whose memory says nothing about ours."""
        with open(f"/proc/{self.process.pid}/maps") as maps:
            if any("libasan" in line for line in maps):
                return 0
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(l.split()[1]) for l in status if l.startswith("VmRSS"))


def read_all(client):
    got = b""
    while part := client.recv(65536):
        got += part
    return got


class Attacks(unittest.TestCase):
    def honest(self, server):
        got = server.ask(GET)
        self.assertTrue(got.startswith(b"HTTP/1.1 200 OK\r\n"), got[:100])
        head, _, body = got.partition(b"\r\n\r\n")
        self.assertIn(b"Content-Length: %d\r\n" % len(body), head)
        self.assertIn(b"sonde_gpu_power_watts{", body)

    def test_a_thousand_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 1100:
            self.skipTest("too few descriptors for the client itself")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1100), hard))
        with Server() as server:
            clients = []
            for i in range(1000):
                clients.append(server.connect())
                if i % 250 == 0:
                    self.honest(server)
            self.honest(server)
            self.assertLess(server.rss_kib(), 32 * 1024)
            for client in clients:
                client.close()
            self.honest(server)

    def test_hundreds_that_send_half_a_request(self):
        with Server() as server:
            clients = []
            for _ in range(500):
                client = server.connect()
                try:
                    client.sendall(b"GET /metrics HTTP/1.1\r\nX-")
                except OSError:
                    pass  # had to make room already
                clients.append(client)
            self.honest(server)
            for client in clients:
                client.close()

    def test_slow_loris(self):
        with Server() as server:
            drips = [server.connect() for _ in range(100)]
            for byte in GET[:40]:
                for drip in drips:
                    drip.sendall(bytes([byte]))
                self.honest(server)
            for drip in drips:
                drip.sendall(GET[40:])
            for drip in drips:
                self.assertTrue(read_all(drip).startswith(b"HTTP/1.1 200"))
                drip.close()

    def test_many_at_once(self):
        with Server() as server:
            failures = []

            def work():
                for _ in range(20):
                    if not server.ask(GET).startswith(b"HTTP/1.1 200"):
                        failures.append(1)

            threads = [threading.Thread(target=work) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_bad_requests(self):
        cases = [
            (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd", b"405"),
            (b"PUT /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"405"),
            (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
            (b"GET /metrics HTTP/1.1\r\n\r\n", b"400"),
            (b"GET /etc/passwd HTTP/1.0\r\n\r\n", b"404"),
            (b"GET /metrics/ HTTP/1.0\r\n\r\n", b"404"),
            (b"GET //metrics HTTP/1.0\r\n\r\n", b"404"),
            (b"GET /%6detrics HTTP/1.0\r\n\r\n", b"404"),
            (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\n\r\n", b"431"),
            (b"GET /" + b"a" * 100000 + b" HTTP/1.0\r\n\r\n", b"414"),
            (b"\x00" * 100 + b"\n\n", b"400"),
            (b"\n\n", b"400"),
            (b"GET /metrics HTTP/1.0\r\nA: \xff\xfe\r\nB\r\n\r\n", b"400"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"505"),
            (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", b"405"),
        ]
        with Server() as server:
            for request, status in cases:
                got = server.ask(request)
                self.assertEqual(got[:12], b"HTTP/1.1 " + status, request[:60])
                self.honest(server)

    def test_a_large_body_is_neither_read_nor_answered_by_a_reset(self):
        with Server() as server, server.connect() as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            client.sendall(b"x" * 100000)
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 405"))
            self.honest(server)

    def test_half_closed(self):
        with Server() as server:
            with server.connect() as client:
                client.sendall(GET)
                client.shutdown(socket.SHUT_WR)
                self.assertIn(b"sonde_build_info", read_all(client))
            with server.connect() as client:
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(read_all(client), b"")

    def test_gone_before_the_answer(self):
        with Server() as server:
            for _ in range(200):
                client = server.connect()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.sendall(GET)
                client.close()  # by a reset
            self.honest(server)

    def test_memory_does_not_grow(self):
        with Server() as server:
            for _ in range(200):
                self.honest(server)
            before = server.rss_kib()
            for _ in range(2000):
                server.ask(GET)
            self.assertLess(server.rss_kib() - before, 512)

    def test_a_taken_port_is_one_line(self):
        with Server() as server:
            at = "%s:%d" % server.address
            second = subprocess.run([PROGRAM, at], stdin=subprocess.DEVNULL, capture_output=True)
            # Both at once: what a sanitizer that ended it wrote says more than its status.
            self.assertEqual((second.stderr.decode(), second.returncode),
                             (f"serve_made: {at}: another program listens there\n", 8))
            self.honest(server)


if __name__ == "__main__":
    unittest.main(verbosity=2)
