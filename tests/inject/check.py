#!/usr/bin/env python3
"""Each host program runs alone and under `sonde run`: same output, same status,
nothing left behind, and every launch is in the profile or counted as lost.

    check.py SONDE HOST_DIR [CASE...]   status 1 if one fails, 77 if skipped
    check.py --list
"""
import glob
import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SONDE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 2 else ""
HOSTS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
LIMIT_S = 120


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


class Place:
    """A working directory, a TMPDIR, and what was in /dev/shm before."""

    def __init__(self, cupti=None, old=False, **more):
        self.top = tempfile.mkdtemp(prefix="sonde-inject-")
        os.chmod(self.top, 0o755)
        self.here = os.path.join(self.top, "here")
        self.tmp = os.path.join(self.top, "tmp")
        os.mkdir(self.here)
        os.mkdir(self.tmp)
        folders = [HOSTS] if not old else [os.path.join(HOSTS, "old"), HOSTS]
        self.env = {k: v for k, v in os.environ.items()
                    if not re.match("CUDA_|NVTX_|SONDE_|PUPPET_|COLUMNS|LANG", k)}
        self.env.update(LD_LIBRARY_PATH=":".join(folders), TMPDIR=self.tmp, LC_ALL="C.UTF-8", **more)
        if old:
            self.env["SONDE_CUPTI"] = os.path.join(HOSTS, "old", "libcupti.so.12")
        if cupti:
            self.env["PUPPET_CUPTI"] = cupti
        self.shm = set(os.listdir("/dev/shm"))

    def run(self, argv, **more):
        return subprocess.run(argv, cwd=self.here, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S, **more)

    def sonde_argv(self, argv, *options):
        return [SONDE, "run", "--no-report", "--no-system", "-o", "p.sonde", *options, "--", *argv]

    def sonde(self, argv, *options):
        done = self.run(self.sonde_argv(argv, *options))
        print("sonde:", done.stderr.decode().strip().replace("\n", "\n       "))
        return done

    def rows(self, query):
        done = self.run([SONDE, "sql", "--json", "p.sonde", query])
        expect(done.returncode == 0, "the profile can't be read: " + done.stderr.decode())
        return json.loads(done.stdout)

    def number(self, query):
        value = list(self.rows("select (%s) n" % query)[0].values())
        return value[0] if value else 0  # NULL is left out

    def kernels(self):
        return self.number("select count(*) from kernel")

    def launch_calls(self):
        return sum(self.number("select count(*) from %s where name like '%%Launch%%'" % table)
                   for table in ("runtime", "driver"))

    def lost(self):
        return self.number("select sum(dropped) from loss")

    def clean(self, keep=("p.sonde",)):
        left = sorted(set(os.listdir(self.here)) - set(keep)) + os.listdir(self.tmp)
        expect(not left, "left behind: %s" % left)
        stray = [name for name in set(os.listdir("/dev/shm")) - self.shm if "sonde-spool" in name]
        expect(not stray, "left in /dev/shm: %s" % stray)

    def close(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.top])
        shutil.rmtree(self.top)


def host(name):
    return [os.path.join(HOSTS, "host"), name]


def launches(text):
    return sum(int(n) for n in re.findall(r"launches (\d+)", text))


def same(argv, options=(), says=None, silent=None, exact=True, kernels=None, lost=None, setup=None, **place):
    """The program alone, then under sonde."""
    def check():
        at = Place(**place)
        try:
            program = setup(at, argv) if setup else argv
            alone = at.run(program)
            if alone.returncode == 77:
                raise Skip(alone.stdout.decode().strip())
            under = at.sonde(program, *options)
            out, err = under.stdout.decode(), under.stderr.decode()
            expect(alone.stdout == under.stdout, "output: %r became %r" % (alone.stdout, under.stdout))
            # A shell's way to say it: sonde has no program's death to die.
            wanted = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
            expect(wanted == under.returncode, "status: %d became %d" % (wanted, under.returncode))
            if says:
                expect(re.search(says, err), "not said: %s" % says)
            if silent:
                expect(not re.search(silent, err), "said: %s" % silent)
            made = launches(out) if kernels is None else kernels
            got, gone = at.kernels(), at.lost()
            print("launches %d, kernels %d, lost %d" % (made, got, gone))
            if exact:
                # Where the ring was full, the calls that launched are lost like the kernels.
                calls = at.launch_calls() if gone and lost is None else 0
                # What CUPTI's own work cost is recorded and lost, too.
                others = re.search(r"(\d+) of others", err)
                gone -= int(others.group(1)) if calls and others else 0
                expect(made in (got + gone, (got + calls + gone) / 2) if lost is None
                       else (got == made and gone == lost),
                       "%d launches, %d kernels, %d calls, %d lost" % (made, got, calls, gone))
            at.clean()
            return at
        finally:
            at.close()
    return check


def contents():
    """What one program did, in the profile to the number."""
    at = Place()
    try:
        at.sonde(host("work"))
        expect(at.number("select count(*) from kernel where name='scale(float*, float, int)'") == 10, "demangled")
        expect(at.number("select count(*) from kernel where name='plain_name' and grid='3x1x1'") == 10, "plain")
        expect(at.number("select sum(bytes) from memcpy where name='Memcpy HtoD (Pageable -> Device)'") == 655360,
               "bytes in")
        expect(at.number("select sum(bytes) from memcpy where name='Memcpy DtoH (Device -> Pinned)'") == 10240,
               "bytes out")
        expect(at.number("select sum(bytes) from memset") == 40960, "bytes set")
        expect(at.number("select count(*) from runtime where name='cudaLaunchKernel'") == 10, "runtime calls")
        expect(at.number("select count(*) from driver where name='cuLaunchKernel'") == 10, "driver calls")
        expect(at.number("select count(*) from driver where name like 'cuPuppet%'") == 0, "calls of no interest")
        expect(at.number("select count(*) from range where name='step'") == 10, "ranges")
        expect(at.number("select count(*) from kernel k join runtime r using(correlation)") == 10, "correlated")
        expect(at.number("select count(*) from sync where name='Context Sync'") == 10, "waits for all")
        expect(at.number("select count(*) from sync s join driver d using(correlation) where s.name='Stream Sync' "
                         "and d.name='cuStreamSynchronize' and s.start_ns >= d.start_ns and s.stream="
                         "(select stream from kernel where name='plain_name' limit 1)") == 10, "waits for a stream")
        expect(at.lost() == 0, "lost")
        expect(at.number("select count(*) from range r join kernel k on k.start_ns >= r.start_ns and "
                         "k.start_ns <= r.end_ns") >= 10, "one clock")
        at.clean()
    finally:
        at.close()


def unified():
    """Records of unified memory, which CUPTI gives only to who asks when there is a context, or never."""
    for word, there in (("unified", 1), ("unified,version=22", 1), ("", 0)):
        at = Place(cupti=word or None)
        try:
            done = at.sonde(host("work"), "--trace", "cuda,unified")
            expect(done.stdout == b"launches 20\n" and at.kernels() == 20, "the program and its kernels")
            expect(at.number("select count(*) from page_fault where name='GPU page faults (write)' and faults=7 "
                             "and duration_ns=20 and device is not null") == 20 * there, "faults of the GPU: " + word)
            expect(at.number("select count(*) from page_fault where name='CPU page faults' and faults=1") == 20 * there, "of the CPU")
            expect(at.number("select sum(bytes) from memcpy where name='Migration HtoD (page fault)'") == 20 * 65536 * there,
                   "moved: " + word)
            expect(bool(re.search("refused records of unified memory", done.stderr.decode())) == (not there), "said")
            expect(at.lost() == 0, "lost")
        finally:
            at.close()


def waits(**place):
    """Each wait once, the runtime's and not the driver's inside it, on the stream it is for."""
    def check():
        at = Place(**place)
        try:
            at.sonde(host("waits"))
            expect(at.number("select count(*) from sync s join runtime r using(correlation) where "
                             "s.name='Context Sync' and s.start_ns >= r.start_ns") == 801, "waits for all")
            expect(at.number("select count(*) from sync") == 801 + 800 + 1, "no others")
            streams = at.rows("select s.stream, count(*) n, (select count(*) from kernel k where k.stream = s.stream) k "
                              "from sync s where s.name='Stream Sync' group by s.stream order by n")
            expect([(row["n"], row["k"]) for row in streams] == [(1, 0)] + 4 * [(200, 200)], streams)
            expect(streams[0]["stream"] == 7, "the default stream")
            expect(at.lost() == 0, "lost")
        finally:
            at.close()
    return check


OPEN_WAIT = "name='wait that did not return'"


def hangs(end, status, options=(), ms="200", named=False):
    """A kernel never ends, and a thread waits for it to the end of the program: told, and not the waits that returned.
    named: CUPTI was told to hand over all that it has."""
    def run():
        at = Place(HOST_END=end, HOST_MS=ms)
        try:
            done = at.sonde(host("hang"), *options)
            expect(done.returncode == status, "status %d" % done.returncode)
            told_of_hang(at, named)
            reported_hang(at, named)
            at.clean()
        finally:
            at.close()
    return run


def told_of_hang(at, named):
    marks = at.rows("select * from mark where " + OPEN_WAIT)
    expect(len(marks) == 1, "marks: %s" % marks)
    detail = dict(part.split("=", 1) for part in marks[0]["detail"].split(";"))
    expect(detail["call"] == "cuStreamSynchronize", detail)
    streams = at.rows("select distinct stream, context from kernel where stream<>7")
    expect([str(streams[0][key]) for key in ("stream", "context")] == [detail["stream"], detail["context"]], detail)
    waited = int(detail["waited_ns"])
    expect(250e6 < waited < 60e9, "waited %d" % waited)
    call = at.rows("select * from driver where detail='did_not_return=1'")
    expect(len(call) == 1 and call[0]["start_ns"] == marks[0]["start_ns"] and call[0]["tid"] == marks[0]["tid"] and
           call[0]["duration_ns"] <= waited, "the call: %s" % call)
    expect(at.number("select count(*) from sync") == 5 + 1, "waits that returned")
    expect(detail["handover"] == ("all" if named else "lost"), detail)
    expect(at.number("select count(*) from driver where name='cuLaunchKernel'") == 13 and at.kernels() == 11, "launches")
    untimed = [row["name"] for row in at.rows("select name from mark where detail like 'op=kernel;%' and stream=" + detail["stream"])]
    known = ["hangs", "plain_name"] if named or waited > 1e9 else 2 * ["(kernel without a name)"]
    expect(sorted(untimed) == known, "without times: %s" % untimed)
    expect(at.number("select sum(untimed) from loss") == 2, "counted")
    expect(at.number("select sum(malformed) + sum(dropped) from loss") == 0, "and not as broken")


def reported_hang(at, named):
    report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
    wait = report["waits"][0]
    expect(wait["end"] == "open" and wait["last_op"] in ("before", "(kernel without a name)") and wait["handover"] == ("all" if named else "lost"), wait)
    expect(wait["pending_launches"] == 2 and wait["pending_range"] == "all_reduce", wait)
    # When it waited for long enough, sonde read the name from the program.
    knows = named or wait["waited_ns"] > 1e9
    expect(wait.get("pending_kernel") == ("hangs" if knows else None), wait)
    expect(knows or wait["last_op"] != "before" or wait["likely_kernel"] == "plain_name" and wait["likely_count"] == 5, wait)
    expect(not knows or "likely_kernel" not in wait, wait)
    expect(("known_until_ns" in wait) != named and wait.get("known_until_ns", 0) <= wait["since_ns"], wait)
    expect(wait["longest_ns"] < wait["waited_ns"] and wait["device"] == 0, wait)
    if wait["waited_ns"] < 1e9:
        return # too short for a finding
    finding = report["findings"][0]
    expect(finding["id"] == "open_wait" and finding["severity"] == "bad", finding)
    text = at.run([SONDE, "report", "p.sonde"]).stdout.decode()
    expect("cuStreamSynchronize has not returned" in text, text)
    words = " ".join(text.split())
    expect('The first of them is "hangs".' in words, text)
    expect(("may be missing" in words) != named and "No launch is without its end" not in words, text)


def hang_interrupted():
    """Recording ends with the first interrupt, the program with the second: the wait is older than both."""
    at = Place(HOST_END="stay")
    try:
        process = subprocess.Popen(at.sonde_argv(host("hang")), cwd=at.here, env=at.env, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        expect(process.stdout.readline() == b"launches 11\n", "output")
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(2) # a busy machine may take its time to see the first
        os.killpg(process.pid, signal.SIGINT)
        expect(process.wait(LIMIT_S) == 130, "status")
        told_of_hang(at, True)
        reported_hang(at, True)
        call = at.rows("select duration_ns from driver where detail='did_not_return=1'")[0]["duration_ns"]
        waited = int(re.search(r"waited_ns=(\d+)", at.rows("select detail from mark where " + OPEN_WAIT)[0]["detail"])[1])
        expect(call + 200e6 < waited, "the call ends with the recording, not with the program: %d, %d" % (call, waited))
    finally:
        at.close()


def fault():
    """A kernel fails: each wait after it, the runtime's and the driver's own, with its error, once."""
    at = Place()
    try:
        alone = at.run(host("fault"))
        under = at.sonde(host("fault"))
        expect((alone.stdout, alone.returncode) == (under.stdout, under.returncode), "the program")
        marks = at.rows("select detail from mark where name='wait failed' order by start_ns")
        details = [dict(part.split("=", 1) for part in row["detail"].split(";")) for row in marks]
        expect([(d["call"], d["result"]) for d in details] == [
            ("cuStreamSynchronize", "700"), ("cudaDeviceSynchronize", "700"), ("cuStreamSynchronize", "700"),
            ("cuCtxSynchronize", "700")], details)
        untimed = at.rows("select name, stream, detail from mark where detail like 'op=kernel;%'")
        expect([row["name"] for row in untimed].count("faults") == 1 and len(untimed) == 11 and at.kernels() == 0, untimed)
        expect(at.number("select sum(untimed) from loss") == 11 and at.number("select sum(malformed) + sum(dropped) from loss") == 0,
               "counted as what it is")
        stream = untimed[0]["stream"]
        expect([d.get("stream") for d in details] == [str(stream), None, str(stream), None], details)
        expect(at.number("select count(*) from sync where detail='result=700'") == 4, "calls")
        expect(at.number("select count(*) from sync") == 5 + 4, "waits")
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        wait = report["waits"][0]
        expect(len(report["waits"]) == 1 and wait["error"] == "cudaErrorIllegalAddress" and wait["count"] == 4, wait)
        expect("last_op" not in wait and wait["pending_launches"] == 1 and wait["pending_kernel"] == "faults", wait)
        claim = report["findings"][0]["claim"]
        expect(report["findings"][0]["id"] == "failed_wait" and 'It is "faults".' in claim and
               "A wait there returned well at" in claim, claim)
        at.clean()
    finally:
        at.close()


def events():
    """Which stream a stream waits for: only where it was asked for, and events are then called back for."""
    for trace, there in (("cuda,sync,events", True), ("cuda,sync", False), ("cuda,events", True),
                         ("cuda,memory,events", True)):
        at = Place()
        try:
            at.sonde(host("events"), "--trace", trace)
            waits = at.rows("select stream, detail, correlation from sync where name='Stream Wait Event'")
            expect(len(waits) == 12, "waits: %s" % waits)
            streams = {row["name"]: [r["stream"] for r in at.rows(
                "select distinct stream from kernel where name='%s' order by stream" % row["name"])]
                for row in at.rows("select distinct name from kernel")}
            details = [row.get("detail") for row in waits]
            expect(details.count(None) == (2 if there else len(waits)), details)
            if there:
                records = [r["correlation"] for r in at.rows(
                    "select correlation from driver where name='cuEventRecord' order by start_ns")]
                expect([d for d in details if d] == [
                    "wait_on_stream=%d;wait_on_cuda_event_record_corr_id=%d" % (
                        streams["produce"][1] if i < 7 else streams["produce"][0], records[i]) for i in range(10)],
                       details)
            gone = at.number("select count(*) from mark where name='event destroyed'")
            expect(gone == ("memory" in trace), "%d events destroyed" % gone)
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            told = [(w["stream"], w["on_stream"], w["count"]) for w in report.get("stream_waits", [])]
            expect(sorted(told) == (sorted([(streams["consume"][0], streams["produce"][1], 7),
                                            (streams["consume"][0], 7, 3)]) if there else []), told)
            expect(at.lost() == 0, "lost")
        finally:
            at.close()


def queued():
    """How long kernels were in the driver's queue: only where it was asked for."""
    for trace, there in (("cuda,queued", True), ("cuda", False)):
        at = Place()
        try:
            at.sonde(host("work"), "--trace", trace)
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            device = [d for d in report["devices"] if d.get("kernel_count")][0]
            expect(device.get("queued_p50_ns") == (700 if there else None), "median: %s" % device.get("queued_p50_ns"))
            text = at.run([SONDE, "report", "p.sonde"]).stdout.decode()
            expect(("driver's queue to the start: median 700 ns" in " ".join(text.split())) == there, "told")
        finally:
            at.close()


def queued_known():
    """Where CUPTI leaves a stale time, as in nodes of graphs, it is not taken, and told as not known."""
    for cupti, program, known, kernels in ((None, "leaks", 160, 200), ("untold", "work", 10, 20)):
        at = Place(cupti=cupti)
        try:
            at.sonde(host(program), "--trace", "cuda,queued")
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            device = [d for d in report["devices"] if d.get("kernel_count")][0]
            expect(device["kernel_count"] == kernels, "%d kernels" % device["kernel_count"])
            expect(device.get("queued_count", 0) == known, "known of %s" % device.get("queued_count"))
            expect(device.get("queued_p95_ns") == 700, "95 %%: %s" % device.get("queued_p95_ns"))
            text = " ".join(at.run([SONDE, "report", "p.sonde"]).stdout.decode().split())
            expect("where it is known: %d of %d kernels" % (known, kernels) in text, "told")
        finally:
            at.close()


def queued_refused():
    """A CUPTI that can't tell, or won't: a line says so, beside what else is missing."""
    for cupti, old, says in (("queued=15", False, r"refused to tell when launches were queued \(15\)"),
                             ("version=22", True, "this CUPTI does not tell when launches were queued")):
        at = Place(cupti=cupti, old=old)
        try:
            said = at.sonde(host("work"), "--trace", "cuda,queued,unified").stderr.decode()
            expect(re.search(says, said), "not said: %s" % says)
            expect(old or "refused records of unified memory" in said, "both are told")
            expect(at.kernels() == 20, "%d kernels" % at.kernels())
        finally:
            at.close()


def memory_bound():
    """No more memory of the host than was allowed, and what finds no room is counted."""
    for options, most in (((), 64), (("--memory", "16M"), 16), (("--memory", "128MiB"), 128)):
        at = Place()
        try:
            program = subprocess.Popen(at.sonde_argv(host("wait"), *options), cwd=at.here, env=at.env,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                sizes, until = [], time.monotonic() + 20
                while not sizes and time.monotonic() < until:
                    time.sleep(0.02)
                    children = open("/proc/%d/task/%d/children" % (program.pid, program.pid)).read().split()
                    lines = [line for child in children for line in open("/proc/%s/maps" % child)]
                    ends = [line.split()[0].split("-") for line in lines if "memfd:sonde-spool" in line]
                    sizes = [size for size in (int(b, 16) - int(a, 16) for a, b in ends) if size > 4096]
                expect(len(sizes) == 1 and most * 0.8 < sizes[0] / 2**20 < most, "mapped: %s" % sizes)
            finally:
                program.communicate()
        finally:
            at.close()
    same(host("many"), ("--memory", "16M"))()


def environment_cupti():
    """Which CUPTI a process had, for whoever reads the profile."""
    at = Place()
    try:
        at.sonde(host("one"))
        told = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)["environment"].get("cupti", "")
        expect(re.fullmatch(r"13\.0\.1 /.*/libcupti\.so\.13", told), "told: %r" % told)
    finally:
        at.close()


def reports():
    """The program's output as it is, and beside it the report, in the language asked for."""
    for options, says in (((), "Where the time went"), (("--lang", "zh"), "时间花在哪里"), (("--no-report",), None)):
        at = Place()
        try:
            done = at.run([SONDE, "run", "--no-system", "-o", "p.sonde", *options, "--", *host("work")])
            text = done.stderr.decode()
            expect(done.returncode == 0 and done.stdout == b"launches 20\n", "the program's own output alone")
            expect(says in text if says else text == "sonde run: p.sonde\n", "the report: %s" % says)
            expect(not says or "plain_name" in text, "its kernels")
            at.clean()
        finally:
            at.close()


def api_all():
    at = Place()
    try:
        at.sonde(host("work"), "--cuda-api", "all", "--trace", "cuda")
        expect(at.number("select count(*) from runtime where name='cudaDeviceSynchronize'") == 10, "the runtime's")
        expect(at.number("select count(*) from driver where name='cuCtxSynchronize'") == 0, "what is inside has no record")
        expect(at.number("select count(*) from range") == 0, "NVTX was not asked for")
        expect(at.number("select count(*) from driver") == 10 * 5 + 5, "all driver calls but cuInit")
    finally:
        at.close()


def nvtx():
    at = Place()
    try:
        alone = at.run(host("nvtx"))
        under = at.sonde(host("nvtx"))
        expect((alone.stdout, alone.returncode) == (under.stdout, under.returncode), "output")
        names = sorted(row["name"] for row in at.rows("select name from range"))
        expect(names == sorted(["outer", "inner", "library: registered", "library: wide \u4e2d \u00e9"[9:],
                                "handed over", "never popped", "around", "wide push", "wide start", "batch",
                                "sorted: batch", "blobs: popped with a payload", "blobs: named by a pointer",
                                "blobs: (no message)", "blobs: in the blob"]), "ranges: %s" % names)
        blobs = at.rows("select a.end_ns <= b.start_ns n, (select count(*) from mark where name='blobs: by a handle') m "
                        "from range a, range b where a.name='blobs: popped with a payload' and "
                        "b.name='blobs: named by a pointer'")
        expect(blobs == [{"n": 1, "m": 1}], "popped with a payload: %s" % blobs)
        inner = at.rows("select i.start_ns > o.start_ns and i.end_ns < o.end_ns n from range i, range o "
                        "where i.name='inner' and o.name='outer'")
        expect(inner[0]["n"] == 1, "nesting")
        expect(at.number("select count(*) from mark where name='here'") == 1, "mark")
        expect(at.number("select sum(unmatched_ends) from loss") == 2, "one pop and one push too many")
        wide = at.rows("select w.start_ns > a.start_ns and w.end_ns < a.end_ns n, m.start_ns < a.end_ns m "
                       "from range w, range a, mark m "
                       "where w.name='wide push' and a.name='around' and m.name='wide mark'")
        expect(wide == [{"n": 1, "m": 1}], "the pop was the wide push's: %s" % wide)
        expect(at.number("select count(*) from mark where name='wide library \u00e9: wide registered'") == 1, "wide")
        details = at.rows("select name, detail from range where detail is not null union all "
                          "select name, detail from mark where name='sorted: batch' order by 2")
        expect([(row["name"], row["detail"]) for row in details] ==
               [("sorted: batch", "category=8"), ("sorted: batch", "payload=-0.1;category=\u5b58"),
                ("batch", "payload=18446744073709551615;category=load; all")], "details: %s" % details)
    finally:
        at.close()


def leaks():
    """What each step leaves behind, with the place in the program."""
    at = Place()
    try:
        done = at.sonde(host("leaks"))
        expect(done.returncode == 0, "status %d" % done.returncode)
        expect(at.kernels() == 200, "%d kernels" % at.kernels())
        for word, made, gone in (("event", 60, 40), ("graph", 20, 0), ("graph_exec", 40, 20)):
            for kind, count in (("created", made), ("destroyed", gone)):
                query = "select count(*) from mark where detail like '%%;%s=%%' and name like '%%%s'" % (
                    word, "instantiated" if word == "graph_exec" and kind == "created" else kind)
                expect(at.number(query) == count, "%s %s: %d" % (word, kind, at.number(query)))
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        memory = [m for m in report["memory"] if "events_live" in m][0]
        told = {k: memory.get(k) for k in memory if k.split("_")[0] in ("events", "graphs", "graph")}
        print(told)
        for word, function in (("events", "make_events"), ("graphs", "capture"), ("graph_execs", "instantiate")):
            expect(memory[word + "_live"] == 20, word)
            expect(memory[word + "_leaked"] >= 15, word)
            expect(memory[word + "_site"].startswith(function + " < host_leaks < "), "site of %s" % word)
        found = [f["title"] for f in report["findings"] if f["id"] == "leak"]
        expect(len(found) == 3, "findings: %s" % found)
        text = at.run([SONDE, "report", "p.sonde"]).stdout.decode()
        expect("make_events < host_leaks" in text, "the report names the place")
        at.clean()
    finally:
        at.close()


def graph_mode():
    """A graph as one block: its kernels are not told."""
    at = Place()
    try:
        done = at.sonde(host("graphs"), "--cuda-graph", "graph")
        expect(done.returncode == 0, "status %d" % done.returncode)
        expect(at.kernels() == 0, "%d kernels" % at.kernels())
        expect(at.number("select count(*) from graph") == 500, "graphs")
        expect(at.lost() == 0, "lost")
        at.clean()
    finally:
        at.close()


def sampling(words="", share=1.0):
    """Each reset ends a context: what was sampled in it comes before that."""
    def check():
        at = Place(cupti=words)
        try:
            done = at.sonde(host("reset"), "--pc-sampling", "on")
            expect(done.returncode == 0, "status %d" % done.returncode)
            expect(at.kernels() == 3000, "kernels")
            samples = at.number("select sum(samples) from stall")
            expect(samples == 30000 * share, "%d samples" % samples)
            expect(at.number("select count(distinct reason) from stall") == 2 * (share > 0), "reasons")
            if share:
                expect(at.number("select count(*) from stall s join string t on t.id=s.function "
                                 "where t.text<>'scale(float*, float, int)'") == 0,
                       "function names")
            at.clean()
        finally:
            at.close()
    return check


def sampling_end():
    """The last samples are decoded after the last kernel: the exit waits for them."""
    at = Place()
    try:
        at.sonde(host("one"), "--pc-sampling", "on")
        made = at.kernels()
        expect(made > 0 and at.number("select sum(samples) from stall") == made * 10, "%d kernels" % made)
    finally:
        at.close()


def sampling_second():
    """CUPTI can't sample a second context of a card beside the first: said, and nothing hangs."""
    at = Place()
    try:
        done = at.sonde(host("contexts"), "--pc-sampling", "on")
        expect(done.returncode == 0 and at.kernels() == 100, "%d kernels" % at.kernels())
        expect(at.number("select count(*) from stall") == 0, "samples of others")
        expect(b"of the first context on each card" in done.stderr, "said: %r" % done.stderr)
    finally:
        at.close()


def sampling_nameless():
    """CUPTI does not say which card a context is on: it is not sampled as if it were the first."""
    at = Place(cupti="no-device")
    try:
        done = at.sonde(host("reset"), "--pc-sampling", "on")
        expect(done.returncode == 0 and at.kernels() == 3000, "%d kernels" % at.kernels())
        expect(at.number("select count(*) from stall") == 0, "samples")
        expect(b"no PC sampling (CUPTI 1): no stall reasons" in done.stderr, "said: %r" % done.stderr)
        at.clean()
    finally:
        at.close()


def sampling_full():
    """The memory for samples ran over: how long it was sampled is said, launches go on."""
    at = Place(cupti="pc-full=2000")
    try:
        under = at.sonde(host("steady"), "--pc-sampling", "on")
        expect(under.returncode == 0, "status %d" % under.returncode)
        expect(b"the memory for PC samples was full" in under.stderr, "said: %r" % under.stderr)
        made, got, gone = launches(under.stdout.decode()), at.kernels(), at.lost()
        expect((made, gone) == (got, 0), "%d launches, %d kernels, %d lost" % (made, got, gone))
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        pc = report["overhead"]["pc_sampling"][0]
        expect(pc["period"] == 18 and pc["covered_ns"] < 0.9 * pc["span_ns"], "covered: %s" % pc)
        expect(at.number("select coalesce(sum(samples), 0) from stall") <= 2000, "samples")
        at.clean()
    finally:
        at.close()


def sampling_again():
    """The memory for samples ran over and had room again: samples go on, the gap is said."""
    at = Place(cupti="pc-full=2000,pc-again=1")
    try:
        under = at.sonde(host("steady"), "--pc-sampling", "on")
        expect(under.returncode == 0, "status %d" % under.returncode)
        expect(b"the memory for PC samples was full" in under.stderr, "said: %r" % under.stderr)
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        pc = report["overhead"]["pc_sampling"][0]
        expect(0 < pc["covered_ns"] < pc["span_ns"], "covered: %s" % pc)
        samples = at.number("select coalesce(sum(samples), 0) from stall")
        expect(samples > 2000, "%d samples: none after the first time" % samples)
        at.clean()
    finally:
        at.close()


def sampling_ends():
    """CUPTI gives no more samples in mid-run: what there is holds for the time before."""
    at = Place(cupti="pc-data=999,pc-good=2")
    try:
        under = at.sonde(host("steady"), "--pc-sampling", "on")
        said = under.stderr.decode()
        expect(under.returncode == 0, "status %d" % under.returncode)
        expect("PC sampling ended early (CUPTI 999)" in said and "no stall reasons" not in said, "said: %s" % said)
        expect(at.number("select sum(samples) from stall") > 0, "samples")
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        pc = report["overhead"]["pc_sampling"][0]
        expect(0 < pc["covered_ns"] < 0.9 * pc["span_ns"], "covered: %s" % pc)
        told = re.search(r"stall reasons are of ([0-9.]+) s of ([0-9.]+) s", said).groups()
        expect(["%.1f" % (pc[key] / 1e9) for key in ("covered_ns", "span_ns")] == list(told), "told %s" % (told,))
        at.clean()
    finally:
        at.close()


def devices():
    """Each device has its own kernels."""
    at = Place()
    try:
        under = at.sonde(host("devices"))
        expect(under.returncode == 0 and at.kernels() == 1000, "%d kernels" % at.kernels())
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        counts = [d.get("kernel_count") for d in report["devices"] if d.get("kernel_count")]
        expect(counts == [250] * 4, "kernels of devices: %s" % counts)
        at.clean()
    finally:
        at.close()


def sampled_range():
    """Outside of the range nothing is sampled."""
    at = Place()
    try:
        under = at.sonde(host("steady_range"), "-c", "cudaProfilerApi", "--pc-sampling", "on")
        expect(launches(under.stdout.decode()) == at.kernels(), "%d kernels" % at.kernels())
        samples = at.number("select sum(samples) from stall")
        made = at.kernels()
        # It is switched by our thread, which looks every 50 ms.
        expect(made * 5 < samples < made * 15, "%d samples of %d launches" % (samples, made))
    finally:
        at.close()


def profiler_range():
    at = Place()
    try:
        at.sonde(host("profiler"), "-c", "cudaProfilerApi")
        expect(at.kernels() == 70, "%d kernels" % at.kernels())
        calls = at.number("select count(*) from driver where name='cuLaunchKernel'")
        expect(calls == 70, "%d calls" % calls)
        waits = at.number("select count(*) from sync")
        expect(waits == 1, "%d waits" % waits)
    finally:
        at.close()


def where(at, argv, **more):
    at.env.update(more)
    done = at.sonde(argv)
    expect(done.returncode == 0, "status %d" % done.returncode)
    return at.rows("select name from alloc")[0].get("name", "")


def sites_by_path():
    """A library's functions are named by whatever path it was loaded, or not at all."""
    at = Place()
    try:
        library = os.path.join(at.here, "odd\t; name", "asker.so")
        os.mkdir(os.path.dirname(library))
        shutil.copy(os.path.join(HOSTS, "libasker.so"), library)
        for path in (library, "odd\t; name/asker.so", "./odd\t; name/../odd\t; name/asker.so"):
            site = where(at, host("where"), HOST_LIBRARY=path)
            expect(site.startswith("obtain_block < ask_for_memory < host_where < "), "by %r: %s" % (path, site))
        site = where(at, host("where"), HOST_LIBRARY=library, HOST_LIBRARY_HOW="memory")
        expect(re.fullmatch(r"obtain_block < \d+\+0x[0-9a-f]+ < host_where < .*", site), "in memory: " + site)
        site = where(at, host("where"), HOST_LIBRARY=library, HOST_LIBRARY_HOW="gone")
        expect(re.fullmatch(r"obtain_block < asker.so\+0x[0-9a-f]+ < host_where < .*", site), "gone: " + site)
        at.clean(keep=("p.sonde", "odd\t; name"))
    finally:
        at.close()


def sites_in_container():
    """Files are those that the program sees: with its mounts, which are gone when it ends."""
    at = Place()
    try:
        inside = os.path.join(at.here, "inside")
        os.mkdir(inside)
        unshare = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && cp "$1" "$0" && shift && exec "$@"', inside]
        if os.getuid() or at.run([*unshare, SONDE, "true"]).returncode:
            raise Skip("no mount namespaces")
        site = where(at, [*unshare, os.path.join(HOSTS, "libasker.so"), *host("where")],
                     HOST_LIBRARY=os.path.join(inside, "libasker.so"), HOST_LIBRARY_HOW="stay")
        expect(site.startswith("obtain_block < ask_for_memory < host_where < "), "where: " + site)
        at.clean(keep=("p.sonde", "inside"))
    finally:
        at.close()


def sites_by_loader():
    """A program that the loader was told to run: what the kernel started is the loader."""
    loaders = glob.glob("/lib64/ld-linux-*.so.2") + glob.glob("/lib/ld-linux-*.so.1")
    if not loaders:
        raise Skip("no loader")
    at = Place()
    try:
        site = where(at, [loaders[0], *host("memory")])
        # Until glibc 2.36 it does not say what it was told.
        expect(re.match(r"obtain_buffer\S* < host_memory|\[program\]\+0x", site), "where: " + site)
        at.clean()
    finally:
        at.close()


def coroutine():
    """On a stack that is not the thread's we do not know how much room there is."""
    same(host("coroutine"), lost=0)()
    at = Place()
    try:
        at.sonde(host("coroutine"))
        sites = [row.get("name", "") for row in at.rows("select name from alloc")]
        expect(sites == ["", ""], "where: %s" % sites)
    finally:
        at.close()


def memory_sites(cupti=None):
    """Allocations name the function that asked, of the runtime or of the driver, whichever of the two
    calls CUPTI's record has the number of."""
    at = Place(cupti=cupti)
    try:
        at.sonde(host("memory"))
        sites = [row.get("name", "") for row in at.rows("select name from alloc order by start_ns")]
        expect(len(sites) == 4, "%d allocations" % len(sites))
        expect(all(re.match(r"obtain_buffer\S* < host_memory", site) for site in sites[:3]), "where: %s" % sites)
        expect(sites[3].startswith("host_memory < "), "where: %s" % sites)
        told = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)["overhead"]["callbacks"]
        expect(len(told) == 1 and told[0]["count"] >= 3 and told[0]["sum_ns"] > 0, "callbacks: %s" % told)
        at.sonde(host("memory"), "-t", "cuda")
        expect(at.number("select count(*) from alloc") == 0, "memory was not asked for")
        at.clean()
    finally:
        at.close()


def yields(what):
    def check():
        at = Place()
        try:
            argv = [os.path.join(HOSTS, "host_cupti"), what]
            alone, under = at.run(argv), at.sonde(argv)
            expect(b"my kernels: 80, others: 0" in alone.stdout, "alone: %r" % alone.stdout)
            expect((alone.stdout, alone.returncode) == (under.stdout, under.returncode), "%r" % under.stdout)
            expect(b"asked for CUPTI itself" in under.stderr, "said")
            expect(at.kernels() == 120, "%d kernels before it asked" % at.kernels())
            at.clean()
        finally:
            at.close()
    return check


def other_tool():
    """Somebody's own injection library stays."""
    library = os.path.join(HOSTS, "libother_tool.so")
    at = Place(CUDA_INJECTION64_PATH=library)
    try:
        alone, under = at.run(host("one")), at.sonde(host("one"))
        expect(b"the other tool is here" in alone.stdout, "alone")
        expect((alone.stdout, alone.returncode) == (under.stdout, under.returncode), "%r" % under.stdout)
        expect(b"CUDA_INJECTION64_PATH" in under.stderr and library.encode() in under.stderr, "said")
    finally:
        at.close()


def beside(name, direct):
    """Under another tool, called by its name or by a script: as without us, and said."""
    def check():
        at = Place()
        try:
            tool = os.path.join(at.top, name)
            with open(tool, "w") as file:
                file.write('#!/bin/sh\n"$@"\n')
            os.chmod(tool, 0o755)
            program = [tool, *host("quick_exit")]
            argv = program if direct else ["sh", "-c", '"$@"; exit $?', "sh", *program]
            alone, under = at.run(argv), at.sonde(argv)
            expect((alone.stdout, alone.returncode) == (under.stdout, under.returncode), "%r" % under.stdout)
            expect(under.returncode == 7, "status %d" % under.returncode)
            lines = [line for line in under.stderr.decode().splitlines() if "not recorded" in line]
            expect(len(lines) == 1 and name in lines[0], "said: %s" % lines)
            expect(at.kernels() == 0, "%d kernels" % at.kernels())
            at.clean()
        finally:
            at.close()
    return check


def refusing_tool():
    """ncu does not work beside an injection library: said where the command starts it with ours, else not."""
    at = Place()
    try:
        folder = os.path.join(at.top, "bin")
        os.mkdir(folder)
        for name, code in (("ncu", 1), ("ncurses", 0)):
            with open(os.path.join(folder, name), "w") as file:
                file.write("#!/bin/sh\nsleep 0.5\nexit %d\n" % code)
            os.chmod(os.path.join(folder, name), 0o755)
        at.env["PATH"] = folder + ":" + at.env["PATH"]
        without = "env -u CUDA_INJECTION64_PATH -u NVTX_INJECTION64_PATH "
        for script, said in (("ncu; exit $?", True), ("(sh -c 'ncu; exit $?'); exit $?", True), ("exec ncu", True),
                             (without + "ncu; exit $?", False), ("ncurses", False), ("sleep 0.3", False)):
            argv = ["sh", "-c", script]
            alone, under = at.run(argv), at.sonde(argv)
            expect(alone.returncode == under.returncode, "%s: status %d" % (script, under.returncode))
            lines = [line for line in under.stderr.decode().splitlines() if "`" + without + "ncu`" in line]
            expect(len(lines) == said, "%s: said: %s" % (script, under.stderr))
        direct = at.sonde(["ncu"])
        expect(b"started by the command" not in direct.stderr and direct.returncode == 1, "%r" % direct.stderr)
        at.clean()
    finally:
        at.close()


def tool_itself():
    """The tool and what it starts use CUDA: neither is recorded, one line for both."""
    at = Place()
    try:
        tool = os.path.join(at.top, "nsys")
        shutil.copy(host("one")[0], tool)
        under = at.sonde(["sh", "-c", '"$0" one && "$0" one', tool])
        expect(under.returncode == 0, "status %d" % under.returncode)
        lines = [line for line in under.stderr.decode().splitlines() if "not recorded" in line]
        expect(len(lines) == 1 and "(nsys)" in lines[0], "said: %s" % lines)
        expect(at.kernels() == 0, "%d kernels" % at.kernels())
    finally:
        at.close()


def preloaded_tool():
    """Another injection library is in the process, by LD_PRELOAD."""
    library = os.path.join(HOSTS, "libother_tool.so")
    at = Place()
    try:
        under = at.sonde(["env", "LD_PRELOAD=" + library, *host("quick_exit")])
        expect(under.returncode == 7, "status %d" % under.returncode)
        expect(b"another tool is at work there (libother_tool.so)" in under.stderr, "said")
        expect(at.kernels() == 0, "%d kernels" % at.kernels())
    finally:
        at.close()


def calibrates(words, least_ns, most_ns):
    """Quiet windows tell what recording costs; counts leave them out and say so."""
    def check():
        at = Place(cupti=words)
        try:
            under = at.sonde(host("steady"), "--calibrate")
            expect(under.returncode == 0, "status %d" % under.returncode)
            made, got = launches(under.stdout.decode()), at.kernels()
            expect(0.1 * made < got < 0.95 * made, "%d of %d" % (got, made))
            expect(b"recording paused to see what it costs" in under.stderr, "said")
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            told = report["overhead"]["calibration"][0]
            print(told)
            expect(told["windows"] >= 4, "windows")
            pauses = at.rows("select start_ns, end_ns from range where name = 'recording paused'")
            expect(len(pauses) >= told["windows"], "%d pauses in the profile" % len(pauses))
            loaded = at.number("select max(start_ns) from mark where name='module loaded'")
            expect(min(row["start_ns"] for row in pauses) - loaded >= 1e9, "none while the program sets itself up")
            device = [one for one in report["devices"] if one.get("span_ns")][0]
            expect(device["paused_ns"] > 0.5 * sum(row["end_ns"] - row["start_ns"] for row in pauses),
                   "%d ns off" % device["paused_ns"])
            expect(device["busy_ns"] + device["idle_ns"] == device["span_ns"], "pauses are in the idle time")
            expect(told["launch_ns"]["low"] <= told["launch_ns"]["median"] <= told["launch_ns"]["high"], "spread")
            expect(least_ns <= told["launch_ns"]["median"] <= most_ns, "%f ns" % told["launch_ns"]["median"])
            text = at.run([SONDE, "report", "p.sonde"]).stdout.decode()
            expect("Recording added" in text, "told in the report")
            at.clean()
        finally:
            at.close()
    return check


def on_terminal(stdout_too):
    """--status: what a terminal gets; the program's own output is whole, and the line is gone at the end."""
    def check():
        at = Place()
        try:
            ours, theirs = pty.openpty()
            at.env["TERM"] = "xterm"
            out = theirs if stdout_too else open(os.path.join(at.top, "out"), "wb")
            process = subprocess.Popen(at.sonde_argv(host("steady"), "--status"), cwd=at.here, env=at.env,
                                       stdout=out, stderr=theirs, stdin=subprocess.DEVNULL)
            os.close(theirs)
            seen = b""
            while True:
                try:
                    got = os.read(ours, 4096)
                except OSError:
                    break
                if not got:
                    break
                seen += got
            expect(process.wait(timeout=LIMIT_S) == 0, "status")
            lines = re.findall(rb"sonde: [^\r\007]*kernels[^\r\007]*lost", seen)
            expect(len(lines) >= 3, "drawn %d times: %r" % (len(lines), seen))
            print(lines[-1].decode())
            if stdout_too:
                expect(b"\033[K" not in seen and seen.count(b"\033]2;") == len(lines) + 1, "in the title: %r" % seen)
                text = re.sub(rb"\033\]2;[^\007]*\007", b"", seen)
                expect(text.startswith(b"launches "), "the program's output is whole: %r" % text)
            else:
                expect(seen.rsplit(b"lost", 1)[1].split(b"\r", 1)[1].startswith(b"\r\033[K"), "wiped: %r" % seen)
                expect(open(os.path.join(at.top, "out"), "rb").read().startswith(b"launches "), "output")
            at.clean()
        finally:
            at.close()
    return check


def no_terminal():
    """--status without a terminal writes nothing."""
    at = Place()
    try:
        under = at.sonde(host("one"), "--status")
        expect(under.stderr == b"sonde run: p.sonde\n", "%r" % under.stderr)
    finally:
        at.close()


def sonde_dies():
    """Target goes on when sonde is killed."""
    at = Place()
    try:
        out = open(os.path.join(at.top, "out"), "wb")
        process = subprocess.Popen(at.sonde_argv(host("slow")), cwd=at.here, env=at.env, stdout=out,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.4)
        process.kill()
        process.wait()
        deadline = time.time() + LIMIT_S
        while b"slow 1000\n" not in open(os.path.join(at.top, "out"), "rb").read():
            expect(time.time() < deadline, "the program did not end")
            time.sleep(0.05)
        at.run([SONDE, "sql", "p.sonde.part", "select count(*) from kernel"])
    finally:
        at.close()


def sonde_dies_early():
    """Before anything was recorded: an empty profile, not a damaged one."""
    at = Place()
    try:
        process = subprocess.Popen(at.sonde_argv(["sleep", "2"]), cwd=at.here, env=at.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + LIMIT_S
        while not os.path.exists(os.path.join(at.here, "p.sonde.part-wal")):
            expect(time.time() < deadline, "it did not begin")
            time.sleep(0.01)
        time.sleep(0.2)
        process.kill()
        process.wait()
        done = at.run([SONDE, "report", "p.sonde.part"])
        expect(done.returncode == 0 and b"was cut off" in done.stdout, "%r" % (done.stdout + done.stderr))
    finally:
        at.close()


def target_dies():
    """SIGKILL at 20 moments: what was launched is there or counted."""
    random.seed(4)
    for turn in range(20):
        at = Place(cupti="no-worker" if turn % 2 else None)
        try:
            count = os.path.join(at.top, "count")
            with open(count, "wb") as file:
                file.write(bytes(8))
            at.env["HOST_COUNT"] = count
            process = subprocess.Popen(at.sonde_argv(host("forever")), cwd=at.here, env=at.env,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_ms = random.randrange(30, 400)
            deadline = time.time() + LIMIT_S
            while not int.from_bytes(open(count, "rb").read(), "little"):
                expect(time.time() < deadline, "it does not begin")
                time.sleep(0.002)
            time.sleep(wait_ms / 1000)
            for child in open("/proc/%d/task/%d/children" % (process.pid, process.pid)).read().split():
                if open("/proc/%s/comm" % child).read() == "host\n":
                    os.kill(int(child), signal.SIGKILL)
            process.communicate(timeout=LIMIT_S)
            expect(process.returncode == 137, "status %d" % process.returncode)
            made = int.from_bytes(open(count, "rb").read(), "little")
            got, gone = at.kernels(), at.lost()
            print("killed %d ms after: %d launches, %d kernels, %d lost" % (wait_ms, made, got, gone))
            expect(made <= got + gone <= made + 2, "not all is there or counted")
            expect(got < 20000 or at.number("select count(*) from kernel where name like 'scale(%'") > 0, "names")
            at.clean()
        finally:
            at.close()


def setuid_copy(at, argv):
    if os.geteuid() != 0:
        raise Skip("not root")
    copy = os.path.join(at.top, "host")
    shutil.copy(argv[0], copy)
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o6755)
    if at.run([copy, "homeless"]).returncode == 127:
        raise Skip("its libraries are out of reach")
    return [copy, argv[1]]


def in_namespace(at, argv):
    """A PID namespace whose /proc is still that of outside."""
    program = ["unshare", "--pid", "--fork", *argv]
    if at.run(program).returncode != 0:
        raise Skip("no rights to make a namespace")
    return program


def pip_layout():
    """libcupti beside the runtime of a Python environment, not in any path."""
    at = Place()
    try:
        lib = os.path.join(at.top, "nvidia", "cuda_runtime", "lib")
        own = os.path.join(at.top, "nvidia", "cuda_cupti", "lib")
        os.makedirs(lib)
        os.makedirs(own)
        shutil.copy(os.path.join(HOSTS, "libother_tool.so"), os.path.join(lib, "libcudart.so.12"))
        shutil.copy(os.path.join(HOSTS, "old", "libcupti.so.12"), own)
        shutil.copy(os.path.join(HOSTS, "libcuda.so.1"), at.top)
        at.env.update(LD_LIBRARY_PATH=at.top, PUPPET_CUPTI="version=24")
        done = at.sonde(["env", "LD_PRELOAD=" + os.path.join(lib, "libcudart.so.12"), *host("one")])
        expect(done.returncode == 0 and at.kernels() == 1000, "%d kernels" % at.kernels())
    finally:
        at.close()


def other_build():
    """A library that writes another version: one line, and the program is not started."""
    at = Place()
    word = b"sonde segment mark:\0"
    try:
        with open(os.path.join(os.path.dirname(SONDE), "libsonde-inject.so"), "rb") as file:
            library = file.read()
        mark = library.index(word) + len(word)
        other = os.path.join(at.here, "libsonde-inject.so")
        for changed, says in ((library[:mark] + b"\7\0\0\0" + library[mark + 4:], b"it writes recordings of version 7"),
                              (library.replace(word, b"x" * len(word)), b"or one of an older build")):
            with open(other, "wb") as file:
                file.write(changed)
            done = at.sonde(host("one"), "--inject", other)
            expect(done.returncode == 125 and not done.stdout, "%d %r" % (done.returncode, done.stdout))
            expect(done.stderr.count(b"\n") == 1 and says in done.stderr, "not said: %s" % says.decode())
        at.clean(keep=("libsonde-inject.so",))
    finally:
        at.close()


def terminal_end():
    """A flush at exit that hangs holds up neither the program nor the profile, which has what was there."""
    at = Place(cupti="hang-exit")
    try:
        process = subprocess.Popen(at.sonde_argv(host("one")), cwd=at.here, env=at.env)
        try:
            expect(process.wait(timeout=LIMIT_S) == 0, "the status")
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failure("a flush that hangs at exit hangs the program") from None
        expect(at.kernels() == 1000, "kernels: %d" % at.kernels())
    finally:
        at.close()


CASES = {
    "other_build": other_build,
    "one": same(host("one"), kernels=1000, lost=0),
    "no_worker": same(host("one"), cupti="no-worker", kernels=1000, lost=0),
    "threads": same(host("threads"), lost=0),
    "threads_no_worker": same(host("threads"), cupti="no-worker", lost=0),
    "old_records": same(host("threads"), cupti="version=24", lost=0),
    "one_buffer": same(host("threads"), cupti="version=18", lost=0),
    "missing_functions": same(host("threads"), old=True, cupti="version=22", lost=0),
    "epoch_times": same(host("one"), cupti="no-stamp", lost=0),
    "contents": contents,
    "reports": reports,
    "unified": unified,
    "queued": queued,
    "queued_known": queued_known,
    "queued_refused": queued_refused,
    "memory_bound": memory_bound,
    "environment_cupti": environment_cupti,
    "api_all": api_all,
    "nvtx": nvtx,
    "waits": waits(),
    "waits_old": waits(old=True, cupti="version=22"),
    "hang_killed": hangs("kill", 137),
    "hang_killed_late": hangs("kill", 137, ms="1500"),
    "hang_aborted": hangs("abort", 134),
    "hang_exit": hangs("exit", 4, named=True),
    "hang_duration": hangs("kill", 137, ("-d", "1"), ms="1500", named=True),
    "hang_interrupted": hang_interrupted,
    "fault": fault,
    "events": events,
    "profiler_range": profiler_range,
    "memory_sites": memory_sites,
    "memory_sites_inside": lambda: memory_sites("inner-numbers"),
    "memory_sites_by_path": sites_by_path,
    "memory_sites_by_loader": sites_by_loader,
    "memory_sites_in_container": sites_in_container,
    "coroutine": coroutine,
    "contexts": same(host("contexts"), lost=0),
    "leaks": leaks,
    "graph_nodes": same(host("graphs"), lost=0),
    "graph_mode": graph_mode,
    "devices": devices,
    "many_contexts": same(host("many_contexts"), lost=0),
    "many_contexts_sampled": same(host("many_contexts"), ("--pc-sampling", "on"), lost=0),
    "exec_self": same(host("exec_self"), lost=0),
    "device_reset": same(host("reset"), lost=0),
    "device_reset_sampled": same(host("reset"), ("--pc-sampling", "on"), lost=0),
    "storm_launches": same(host("storm_launches")),
    "storm_launches_no_worker": same(host("storm_launches"), cupti="no-worker"),
    "sampling": sampling(),
    "sampling_end": sampling_end,
    "sampling_second": sampling_second,
    "sampling_nameless": sampling_nameless,
    "sampling_full": sampling_full,
    "sampling_again": sampling_again,
    "sampling_ends": sampling_ends,
    "sampling_range": sampled_range,
    "sampling_no_rights": sampling("pc-enable=35", 0),
    "sampling_no_memory": sampling("pc-data=8", 0),
    "sampling_fails": same(host("one"), ("--pc-sampling", "on"), cupti="pc-data=999", exact=False,
                           says=r"no PC sampling \(CUPTI 999"),
    "unknown_version": same(host("one"), cupti="version=140000", exact=False,
                            says=r"CUPTI version 140000 is not one of"),
    "ancient_version": same(host("one"), cupti="version=14", exact=False, says=r"CUPTI version 14 is not"),
    "call_fails": same(host("one"), cupti="register=999", exact=False, says=r"CUPTI failed \(999\)"),
    "subscribed": same(host("one"), cupti="subscribed", exact=False, says="another tool holds CUPTI"),
    "yields_subscribe": yields("subscribe"),
    "yields_register": yields("register"),
    "by_dlsym": same(host("by_dlsym"), lost=0),
    "other_tool": other_tool,
    "kineto_in_process": same(host("torch"), lost=0, silent="another tool"),
    "calibrate": calibrates("trace-cost=300000", 200000, 3000000),
    "calibrate_free": calibrates("", -300000, 300000),
    "calibrate_short": same(host("one"), ("--calibrate",), says="can't be told: too few windows"),
    "calibrate_no_numbers": same(host("steady"), ("--calibrate",), cupti="no-numbers", exact=False,
                                 says="can't be told: the launches have no numbers"),
    "status_line": on_terminal(False),
    "status_title": on_terminal(True),
    "status_pipe": no_terminal,
    "tool_ncu": beside("ncu", False),
    "tool_ncu_direct": beside("ncu", True),
    "tool_nsys": beside("nsys", False),
    "tool_sanitizer": beside("compute-sanitizer", False),
    "tool_sanitizer_direct": beside("compute-sanitizer", True),
    "tool_gdb": beside("cuda-gdb", False),
    "tool_itself": tool_itself,
    "tool_refuses": refusing_tool,
    "tool_preloaded": preloaded_tool,
    "tool_by_variable": same(host("one"), NV_NSIGHT_INJECTION_PORT_BASE="49152", exact=False,
                             says=r"another tool is at work there \(NV_NSIGHT_INJECTION_"),
    "pip_layout": pip_layout,
    "forked": same(host("forked"), lost=0),
    "fork_exec": same(host("fork_exec"), lost=0),
    "cloned": same(host("cloned"), lost=0),
    "vforked": same(host("vforked"), lost=0),
    "background": same(host("background"), exact=False, says="still runs"),
    "pid_namespace": same(host("slow_one"), setup=in_namespace, lost=0),
    "quick_exit": same(host("quick_exit"), lost=0),
    "aborted": same(host("aborted"), lost=0),
    "killed": same(host("killed"), lost=0),
    "crashed": same(host("crashed"), lost=0),
    "descriptors": same(host("descriptors"), lost=0),
    "closed_first": same(host("closed_first"), lost=0),
    "rooted": same(host("rooted"), lost=0),
    "rooted_first": same(host("rooted_first"), exact=False),
    "homeless": same(host("homeless"), lost=0),
    "small_stacks": same(host("small_stacks"), lost=0),
    "storm": same(host("storm"), exact=False),
    "exit_threads": same(host("exit_threads"), exact=False),
    "dlclose": same(host("one"), PUPPET_DLCLOSE="1", lost=0),
    "errno_kept": same(host("errno_kept"), lost=0),
    "secure": same(host("secure"), exact=False, setup=setuid_copy, says="no process"),
    "hanging_flush": terminal_end,
    "sonde_dies_early": sonde_dies_early,
    "sonde_dies": sonde_dies,
    "target_dies": target_dies,
}


def main(argv, cases):
    if argv[1:] == ["--list"]:
        print("\n".join(cases))
        return 0
    worst = 0
    for name in argv[3:] or cases:
        print("==", name)
        try:
            cases[name]()
        except Skip as why:
            print("skipped:", why)
            worst = worst or 77
        except (Failure, subprocess.TimeoutExpired) as what:
            print("FAILED:", what)
            worst = 1
    return 0 if worst == 77 and len(argv) != 4 else worst


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
