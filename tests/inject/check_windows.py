#!/usr/bin/env python3
"""Windows of a recording: what a program does in them is in the profile, and
nothing that it does outside of them.

    check_windows.py SONDE HOST_DIR [CASE...]   as check.py
"""
import json
import os
import signal
import subprocess
import sys
import time

from check import LIMIT_S, SONDE, Failure, Place, expect, host, main

# A window's end that goes by time, and how long after it sonde and the program surely know.
EDGE_S, KNOWN_S = 2, 2
OUTSIDE, INSIDE = (0, 0, 0), (10, 10, 1)


class Late(Exception):
    pass


class Told:
    """A program under sonde that does what it is told."""

    def __init__(self, at, *options, argv=None):
        self.begun = time.monotonic()
        self.process = subprocess.Popen(at.sonde_argv(argv or host("windows"), *options), cwd=at.here, env=at.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.answer("+")
        self.ready = time.monotonic()

    def answer(self, wanted):
        got = self.process.stdout.read(1).decode()
        if got != wanted:
            self.process.kill()
            raise Failure("%r instead of %r" % (got, wanted))

    def do(self, steps):
        for step in steps:
            self.process.stdin.write(step.encode())
            self.process.stdin.flush()
            self.answer(step)

    def before_edge(self, steps):
        """Done before the edge can have been, or tried again."""
        self.do(steps)
        if time.monotonic() - self.begun >= EDGE_S:
            self.process.kill()
            self.process.communicate()
            raise Late()

    def after_edge(self, steps):
        time.sleep(max(0.0, self.ready + EDGE_S + KNOWN_S - time.monotonic()))
        self.do(steps)

    def end(self):
        out, err = self.process.communicate(timeout=LIMIT_S)
        self.said = err.decode()
        print("sonde:", self.said.strip())
        expect(self.process.returncode == 0, "status %d" % self.process.returncode)
        return out.decode()


def seen(at, name):
    return tuple(at.number("select count(*) from %s where name='%s'" % (table, name))
                 for table in ("kernel", "range", "mark"))


def expect_seen(at, **phases):
    got = {name: seen(at, name) for name in phases}
    expect(got == phases, "kernels, ranges, marks: %s, not %s" % (got, phases))
    expect(at.lost() == 0, "lost")


def states(at, what):
    """Of threads, exact or by looks, as the machine allows; CLOCK_MONOTONIC, as Python's."""
    rows = ["select start_ns, end_ns from " + table for table in ("state", "state_exact", "python_stack")]
    return at.number("select count(*) from (%s) where %s" % (" union all ".join(rows), what))


def on_time(check):
    """Where the machine was too slow for what comes before an edge, it is tried again."""
    def again():
        for _ in range(5):
            at = Place()
            try:
                return check(at)
            except Late:
                print("too late, again")
            finally:
                at.close()
        raise Failure("too slow each time")
    return again


def delay(at):
    told = Told(at, "--delay", str(EDGE_S))
    told.before_edge("Ao")
    told.after_edge("Bc")
    told.end()
    expect_seen(at, A=OUTSIDE, B=INSIDE, outer=(0, 1, 0))
    early = states(at, "start_ns < %d" % ((told.begun + EDGE_S) * 1e9))
    expect(early == 0, "%d states of threads in the delay" % early)


def duration(at):
    """Also a process that comes after the end."""
    argv = ["sh", "-c", '"$0" windows; exec "$0" one', host("one")[0]]
    told = Told(at, "-d", str(EDGE_S), argv=argv)
    told.before_edge("oA")
    told.after_edge("B")
    over = time.monotonic_ns()
    told.do("c")
    expect("launches 1000" in told.end(), "the second process")
    expect_seen(at, A=INSIDE, B=OUTSIDE, outer=(0, 1, 0))
    expect(at.kernels() == 10, "%d kernels" % at.kernels())
    late = states(at, "end_ns > %d" % over)
    expect(late == 0, "%d states of threads after the end" % late)
    expect(at.number("select count(*) from mark where name='module loaded'") == 1, "the second process is not told")


def delay_and_range(at):
    """Both have to say so: a range that is open when the delay ends, one that comes later."""
    told = Told(at, "--delay", str(EDGE_S), "-c", "cudaProfilerApi")
    told.before_edge("AsB")
    told.after_edge("CeDsEeF")
    told.end()
    expect_seen(at, A=OUTSIDE, B=OUTSIDE, C=INSIDE, D=OUTSIDE, E=INSIDE, F=OUTSIDE)


def duration_and_range(at):
    told = Told(at, "-d", str(EDGE_S), "-c", "cudaProfilerApi")
    told.before_edge("AsBeC")
    told.after_edge("DsEeF")
    told.end()
    expect_seen(at, A=OUTSIDE, B=INSIDE, C=OUTSIDE, D=OUTSIDE, E=OUTSIDE, F=OUTSIDE)


def duration_and_nvtx(at):
    told = Told(at, "-d", str(EDGE_S), "-c", "nvtx:outer")
    told.before_edge("AoBcC")
    told.after_edge("DoEcF")
    told.end()
    expect_seen(at, A=OUTSIDE, B=INSIDE, C=OUTSIDE, D=OUTSIDE, E=OUTSIDE, F=OUTSIDE, outer=(0, 1, 0))


def nvtx_ranges(name, steps, inside, *trace, whole=INSIDE, **ranges):
    """The phases that lie in ranges that are to be recorded, and the others."""
    def check():
        at = Place()
        try:
            told = Told(at, "-c", "nvtx:" + name, *trace)
            told.do(steps)
            told.end()
            phases = {step: whole if step in inside else OUTSIDE for step in steps if step.isupper()}
            expect_seen(at, **phases)
            for of, count in ranges.items():
                got = at.number("select count(*) from range where name='%s'" % of.replace("_", ": "))
                expect(got == count, "%d ranges %s, not %d" % (got, of, count))
        finally:
            at.close()
    return check


def never(steps, says, *options):
    """The range never came, or in vain: an empty profile, and one line that says why, in the report as well."""
    def check():
        at = Place()
        try:
            told = Told(at, *options)
            told.do(steps)
            told.end()
            expect_seen(at, **{step: OUTSIDE for step in steps if step.isupper()})
            lines = [line for line in told.said.splitlines() if "recording never began" in line]
            expect(lines == (["sonde run: " + says] if says else []), lines)
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            expect([note["text"] for note in report["notes"] if "never began" in note["text"]] == [says][:bool(says)], report["notes"])
        finally:
            at.close()
    return check


def nvtx_operator():
    """PyTorch's operators have numbers behind their names, which are no part of the name."""
    at = Place()
    try:
        done = at.sonde(host("nvtx_ops"), "--torch-ops", "-c", "nvtx:aten::mul")
        expect("never began" not in done.stderr.decode(), "said: %r" % done.stderr)
        count = at.number("select count(*) from range where name='aten::mul'")
        expect(count == 10000, "%d ranges" % count)
    finally:
        at.close()


def threads_between():
    """The host waits for a second between two ranges; that is nobody's idle time."""
    at = Place()
    try:
        told = Told(at, "-c", "nvtx:outer")
        told.do("oAc")
        apart = time.monotonic_ns()
        time.sleep(1)
        apart = time.monotonic_ns() - apart
        told.do("oBc")
        told.end()
        expect_seen(at, A=INSIDE, B=INSIDE)
        report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
        device = report["devices"][0]
        expect(device["paused_ns"] >= apart, "paused for %d ns, not %d" % (device["paused_ns"], apart))
        known = sum(device[part + "_ns"] for part in ("before", "span", "paused", "after"))
        expect(known == device["window_ns"], "%d ns of %d" % (known, device["window_ns"]))
        expect(device["busy_ns"] + sum(idle["ns"] for idle in device["idle"]) == device["span_ns"], "idle time")
        for idle in device["idle"]:
            told_ns = idle.get("thread_ns", 0)
            expect(told_ns <= idle["ns"], "%d ns of a thread's states in %d" % (told_ns, idle["ns"]))
    finally:
        at.close()


def interrupt():
    """The first one ends the recording for good, in a delay as well."""
    for options, before in ((("-c", "cudaProfilerApi"), INSIDE), (("--delay", str(EDGE_S)), OUTSIDE)):
        at = Place()
        try:
            told = Told(at, *options)
            told.do("sA")
            os.kill(told.process.pid, signal.SIGINT)
            told.after_edge("BeCsDe")
            told.end()
            expect_seen(at, A=before, B=OUTSIDE, C=OUTSIDE, D=OUTSIDE)
        finally:
            at.close()


def whole_in_delay():
    """Programs that end before the delay does; the second has no CUDA."""
    for name in ("one", "nvtx"):
        at = Place()
        try:
            done = at.sonde(host(name), "--delay", "600")
            expect(done.returncode == 0, "status %d" % done.returncode)
            counts = [at.number("select count(*) from " + what)
                      for what in ("kernel", "range", "mark where name='here'", "runtime", "driver", "sync")]
            expect(counts == [0] * 6, "of %s: %s" % (name, counts))
        finally:
            at.close()


def nvtx_forked():
    """The range that a child was forked in is its parent's."""
    at = Place()
    try:
        done = at.sonde(host("nvtx_forked"), "-c", "nvtx:outer")
        expect(b"child 0" in done.stdout, "the child")
        expect(at.kernels() == 10, "%d kernels" % at.kernels())
    finally:
        at.close()


CASES = {
    "delay": on_time(delay),
    "duration": on_time(duration),
    "delay_and_range": on_time(delay_and_range),
    "duration_and_range": on_time(duration_and_range),
    "duration_and_nvtx": on_time(duration_and_nvtx),
    "nvtx_range": nvtx_ranges("outer", "AoBcCoDocEcF", "BDE", outer=3),
    "nvtx_range_alone": nvtx_ranges("outer", "AoBcCoDocEcF", "BDE", "-t", "cuda", whole=(10, 0, 0), outer=0),
    "nvtx_started": nvtx_ranges("outer", "AaBbCwDvEfFgG", "BDF", outer=3),
    # Open as long as one of them is, by whichever call and thread.
    "nvtx_overlapping": nvtx_ranges("outer", "AaBfCbDgEaFoGbHcI", "BCDFGH", outer=4),
    "nvtx_any_domain": nvtx_ranges("outer@*", "AaBbCiDjEpFqGoHcI", "BDFH", outer=2, library_outer=2),
    "nvtx_no_domain": nvtx_ranges("outer", "AiBjCaDbE", "BD", outer=1, library_outer=1),
    "nvtx_default_domain": nvtx_ranges("outer@", "AiBjCpDqEaFbGoHcI", "FH", outer=2, library_outer=0),
    "nvtx_domain": nvtx_ranges("outer@library", "AiBjCpDqEaFbGoHcI", "BD", outer=0, library_outer=2),
    "nvtx_other_domain": nvtx_ranges("outer@lib", "AiBjCpDqEaFb", "", outer=0, library_outer=0),
    # Levels are each domain's own: a pop of another does not end the range.
    "nvtx_crossed": nvtx_ranges("outer@library", "ApBoCqDcE", "BC", outer=1, library_outer=1),
    "nvtx_never": never("AoBcCpDqaEb", "no NVTX range outr came: recording never began; the first of 7 that came: A, "
                        "outer, B, C", "-c", "nvtx:outr"),
    "nvtx_never_there": never("pqocA", "no NVTX range outer@lib came: recording never began; those that came: "
                              "outer@library, outer, A", "-c", "nvtx:outer@lib"),
    "nvtx_never_any": never("se", "no NVTX range outer came, nor any other: recording never began", "-c", "nvtx:outer"),
    "nvtx_never_named": never("AoBc", "no NVTX range outr came: recording never began (with nvtx in --trace those that "
                              "came are told)", "-c", "nvtx:outr", "-t", "cuda"),
    "nvtx_in_delay": never("AoBc", "the range of --capture-range came only where --delay and --duration leave no time for "
                           "it: recording never began", "-c", "nvtx:outer", "--delay", "600"),
    "profiler_never": never("AoBc", "cudaProfilerStart was not called: recording never began", "-c", "cudaProfilerApi"),
    "nvtx_operator": nvtx_operator,
    "nvtx_forked": nvtx_forked,
    "threads_between": threads_between,
    "interrupt": interrupt,
    "whole_in_delay": whole_in_delay,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
