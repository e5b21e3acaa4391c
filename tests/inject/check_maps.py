#!/usr/bin/env python3
"""Perf maps: what a program made has its names, what sonde asked for is gone, and
what it did not ask for stays.

    check_maps.py SONDE HOST_DIR [CASE...]   as check.py
"""
import glob
import os
import re
import shutil
import subprocess
import sys

from check import HOSTS, LIMIT_S, SONDE, Place, Skip, expect, host, main

HERE = os.path.dirname(os.path.abspath(__file__))
ASKS = os.path.join(HERE, "python", "asks.py")


def maps():
    return set(glob.glob("/tmp/perf-*.map"))


class Maps(Place):
    """Its maps are told from others' by the folder that their functions are in."""

    def __init__(self, **more):
        super().__init__(**more)
        if "PYTHONPERFSUPPORT" not in more:
            self.env.pop("PYTHONPERFSUPPORT", None)
        self.env["HOST_MADE_FOLDER"] = self.here
        self.before = maps()
        self.script = os.path.join(self.here, "asks.py")
        shutil.copy(ASKS, self.script)

    def own(self):
        found = []
        for path in maps() - self.before:
            try:
                with open(path, "rb") as file:
                    if self.here.encode() in file.read():
                        found.append(path)
            except OSError:
                pass
        return sorted(found)

    def report(self):
        return self.run([SONDE, "report", "p.sonde"]).stdout.decode()

    def close(self):
        for path in self.own():
            os.unlink(path)
        super().close()


def site_of(at):
    rows = at.rows("select name from alloc")
    return rows[0].get("name", "") if rows else ""


def made(how, options, status=0, site=None, left=0, says=None, silent=None, argv=None, **env):
    def check():
        at = Maps(HOST_MADE=how, **env)
        try:
            done = at.sonde(argv or host("made"), *options)
            expect(done.returncode == status, "status %d" % done.returncode)
            print("where:", site_of(at), "left:", at.own())
            if site:
                expect(site_of(at) == site.replace("%s", at.here), "where: " + site_of(at))
            expect(len(at.own()) == left, "maps: %s" % at.own())
            text = at.report()
            if says:
                expect(re.search(says, " ".join(text.split())), "not said: %s in %s" % (says, text))
            if silent:
                expect(not re.search(silent, text), "said: " + text)
            at.clean(keep=("p.sonde", "asks.py"))
        finally:
            at.close()
    return check


def on_a_core():
    """What a thread runs is named by the map, where perf events may be had."""
    at = Maps(HOST_MADE="python", HOST_MADE_MS="1500")
    try:
        done = at.sonde(host("made"), "--perf-map")
        if b"threads are only looked at" in done.stderr:
            raise Skip("no perf events")
        seen = at.rows("select name, count(*) n from cpu_stack group by 1 order by 2 desc")
        expect(seen and seen[0]["name"] == "spin data", "on a core: %s" % seen)
    finally:
        at.close()


def shell(script):
    return ["sh", "-c", script, "sh", *host("made")]


def in_container():
    """Its own /tmp and its own number, which it has in no file of ours."""
    # What was built may lie in /tmp, too, and stays where it is.
    built = os.path.dirname(os.path.dirname(os.path.realpath(HOSTS)))
    unshare = ["unshare", "-m", "-p", "-f", "sh", "-c",
               'mount --bind "$0" /mnt && mount -t tmpfs none /tmp && mkdir -p "$0" && mount --bind /mnt "$0" && "$@"',
               built]
    at = Maps(HOST_MADE="node", HOST_MADE_MS="400")
    try:
        if os.getuid() or at.run([*unshare, "true"]).returncode:
            raise Skip("no namespaces")
        done = at.sonde([*unshare, *host("made")])
        expect(done.returncode == 0, "status %d" % done.returncode)
        expect(site_of(at) == "obtain_block < LazyCompile:*collate %s/data (host)" % at.here, "where: " + site_of(at))
        expect(not at.own(), "maps: %s" % at.own())
    finally:
        at.close()


def pythons():
    """Interpreters of this machine, by version."""
    places = [os.path.join(folder, name) for folder in os.environ.get("PATH", "").split(":")
              for name in ("python3", "python3.11", "python3.12", "python3.13")]
    found = {}
    for path in places + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
        if os.path.exists(path):
            done = subprocess.run([path, "-c", "import sys, ctypes; print(*sys.version_info[:2])"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                found.setdefault(tuple(map(int, done.stdout.split())), path)
    return found


def python_new():
    """CPython itself: its functions in the stack, the maps of it and of its child gone, killed or not."""
    new = {version: path for version, path in pythons().items() if version >= (3, 12)}
    if not new:
        raise Skip("no Python 3.12 or later")
    for version, path in new.items():
        for words, status in (([], 0), (["kill"], 137)):
            at = Maps()
            try:
                done = at.sonde([path, at.script, *words], "--perf-map")
                expect(done.returncode == status, "%s: status %d" % (version, done.returncode))
                print(version, "where:", site_of(at))
                # What CUPTI still held of it goes with a program that is killed.
                expect(words or re.search(r" < collate asks\.py \(", site_of(at)), "%s: %s" % (version, site_of(at)))
                expect(not at.own(), "%s: maps: %s" % (version, at.own()))
                expect("--perf-map" not in at.report(), "a note: " + at.report())
            finally:
                at.close()


def python_short():
    """Processes that end as soon as they can, and one that asks for its map itself."""
    new = [path for version, path in pythons().items() if version >= (3, 12)]
    if not new:
        raise Skip("no Python 3.12 or later")
    at = Maps()
    try:
        loop = 'for i in 1 2 3 4 5 6 7 8 9 10; do "$0" "$1" end & done; "$0" -X perf "$1" end; wait'
        at.sonde(["sh", "-c", loop, new[0], at.script], "--perf-map")
        expect(len(at.own()) == 1, "maps: %s" % at.own())
    finally:
        at.close()


def python_late():
    """sonde has gone, and its name for the memory is that of a pipe that nobody reads."""
    new = [path for version, path in pythons().items() if version >= (3, 12)]
    if not new:
        raise Skip("no Python 3.12 or later")
    at = Maps()
    ends = os.pipe()
    try:
        pipe = os.path.join(at.here, "pipe")
        os.mkfifo(pipe)
        for name in (pipe, "/proc/%d/fd/%d" % (os.getpid(), ends[1])):
            env = dict(at.env, SONDE_PERF_MAP=name, PYTHONPATH=os.path.join(HERE, "..", "..", "inject", "python"))
            done = subprocess.run([new[0], at.script, "end"], env=env, timeout=LIMIT_S)
            expect(done.returncode == 0, "status %d" % done.returncode)
        os.set_blocking(ends[0], False)
        os.write(ends[1], b".")
        expect(os.read(ends[0], 100) == b".", "it was written to")
    finally:
        os.close(ends[0])
        os.close(ends[1])
        at.close()


def python_old():
    """One that can't write a map is named in the report."""
    old = {version: path for version, path in pythons().items() if (3, 11) <= version < (3, 12)}
    if not old:
        raise Skip("no Python 3.11")
    for version, path in old.items():
        at = Maps()
        try:
            done = at.sonde([path, at.script], "--perf-map")
            if b"Python functions are not read" in done.stderr:
                raise Skip("its memory may not be read")
            text = " ".join(at.report().split())
            expect(re.search(r"--perf-map: Python 3\.11 of process \d+ writes no perf map", text), text)
            # Maps of other programs that come and go meanwhile are told, too.
            expect(len(re.findall("writes no perf map", text)) == 1, "said twice: " + text)
            expect(not at.own(), "maps: %s" % at.own())
        finally:
            at.close()


PYTHON_SITE = "obtain_block < collate data (host)"
NODE_SITE = "obtain_block < LazyCompile:*collate %s/data (host)"

CASES = {
    "asked": made("python", ["--perf-map"], site=PYTHON_SITE, silent="--perf-map"),
    # Below more functions than are told.
    "deep": made("python", ["--perf-map"], HOST_MADE_LEVELS="20",
                 site="obtain_block < " + 7 * "obtain_deep < " + "... < collate data (host)"),
    "not_asked": made("python", [], site="obtain_block (host)"),
    "killed": made("python", ["--perf-map"], status=137, HOST_MADE_END="kill"),
    "none_came": made("", ["--perf-map"], argv=host("memory"), says="--perf-map: no process wrote a perf map"),
    "users_own": made("python", ["--perf-map"], site=PYTHON_SITE, left=1, PYTHONPERFSUPPORT="1"),
    "others": made("node", [], site=NODE_SITE, left=1),
    "others_asked": made("node", ["--perf-map"], site=NODE_SITE, left=1),
    # What a file begins with tells who made it.
    "before": made("python", ["--perf-map"], left=1,
                   argv=shell('echo "1 1 older" > /tmp/perf-$$.map; exec "$@"')),
    "without_mark": made("python", ["--perf-map"], left=1, argv=shell('env -u SONDE_PERF_MAP "$@"')),
    "without_threads": made("python", ["--perf-map", "--no-threads"], site=PYTHON_SITE),
    "on_a_core": on_a_core,
    "in_container": in_container,
    "python_new": python_new,
    "python_short": python_short,
    "python_late": python_late,
    "python_old": python_old,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
