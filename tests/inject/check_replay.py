#!/usr/bin/env python3
"""What CUPTI did in a program, recorded (tests/fake/record_cupti.c) and played again
(tests/fake/replay_cupti.h), gives the same profile; what is done to the log in between shows
in it, and a file that is no such log is one line.

    check_replay.py SONDE HOST_DIR [CASE...]   status 1 if one fails, 77 if skipped
    check_replay.py SONDE HOST_DIR LOG...      plays a log, also compressed, as the case "logs" does
    check_replay.py --list
"""
import collections
import concurrent.futures
import glob
import os
import random
import re
import sys

from card_log import QUERIES, CardLog
from check import HOSTS, SONDE, Place, expect, host, main

# What of a profile must be the same. Waits are timed as they are played, and call stacks are
# the player's.
SAME = {
    "kernels": "select name, grid, block, device, context, stream, graph_node, bytes, duration_ns, "
               "start_ns - (select min(start_ns) from kernel) at from kernel order by at, duration_ns, stream, name",
    "queued": "select queued_ns - start_ns from kernel where queued_ns > 0 order by start_ns",
    "copies": "select name, kind, bytes, device, context, stream, duration_ns from memcpy order by start_ns",
    "fills": "select name, bytes, device, context, stream, duration_ns from memset order by start_ns",
    "runtime calls": "select name, duration_ns, correlation from runtime order by start_ns, correlation",
    "driver calls": "select name, duration_ns, correlation from driver order by start_ns, correlation",
    "threads": "select count(*) n from (select tid, name from runtime union all select tid, name from driver) "
               "group by tid order by n",
    "waits": "select name, device, context, stream, count(*) n from sync group by 1, 2, 3, 4 order by 1, 2, 3, 4",
    "memory": "select bytes, count(*) n from alloc group by 1 order by 1",
    "overheads": "select name, duration_ns, o.tid in (select tid from runtime union select tid from driver) own "
                 "from overhead o order by start_ns, own, duration_ns",
    "graphs": "select name, duration_ns from graph order by start_ns",
    "samples": "select f.text function, pc_offset, r.text reason, cubin, sum(samples) n from stall s join string f "
               "on f.id = s.function join string r on r.id = s.reason group by 1, 2, 3, 4 order by 1, 2, 3, 4",
    "marks": "select name, count(*) n from mark where name not like '%recording%' group by 1 order by 1",
    "losses": "select sum(dropped) n from loss l join source s on s.id = l.source join string t on t.id = s.reader "
              "where t.text = 'cuda'",
}


class Session:
    """A place with a log in it."""

    def __init__(self, cupti=None):
        self.at = Place(cupti=cupti)
        self.log = os.path.join(self.at.top, "log")
        self.recorder = os.path.join(HOSTS, "librecord-cupti.so")

    def record(self, program, *options, kib=None):
        words = ["LD_PRELOAD=" + self.recorder, "RECORD_CUPTI=" + self.log]
        if kib:
            words.append("RECORD_CUPTI_KIB=%d" % kib)
        done = self.at.sonde(["env", *words, *program], *options)
        expect(os.path.exists(self.log), "no log")
        return done, self.facts()

    def play(self, *options, cupti=None, log=None):
        env = dict(self.at.env)
        try:
            self.at.env.pop("PUPPET_CUPTI", None)
            self.at.env.update(PUPPET_LOG=log or self.log, LD_LIBRARY_PATH="%s/replay:%s" % (HOSTS, HOSTS))
            if cupti:
                self.at.env["PUPPET_CUPTI"] = cupti
            return self.at.sonde(host("replay"), *options)
        finally:
            self.at.env = env

    def facts(self):
        return {name: self.at.rows(query) for name, query in SAME.items()}

    def lines(self):
        with open(self.log, "rb") as file:
            return file.read().rstrip(b"\0").decode().splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.at.close()


def count(facts):
    return {name: len(rows) for name, rows in facts.items()}


def differ(recorded, played, but=()):
    for name in SAME:
        if name not in but:
            expect(recorded[name] == played[name], "%s: %s became %s" % (
                name, *([str(r)[:300] for r in (recorded[name], played[name])])))


def round_trip(program, *options, cupti=None, has=("kernels",), status=0):
    def check():
        with Session(cupti) as session:
            done, recorded = session.record(host(program), *options)
            expect(done.returncode == status, "status %d" % done.returncode)
            for name in has:
                expect(recorded[name], "nothing of it was recorded: " + name)
            again = session.play(*options)
            print(count(recorded))
            kinds, samples = said(session.lines())
            expect(kinds[10] == len(recorded["kernels"]) and kinds[1] <= len(recorded["copies"]) and
                   kinds[5] == len(recorded["runtime calls"]) and kinds[4] == len(recorded["driver calls"]) and
                   samples == sum(row["n"] for row in recorded["samples"]), "the log has less: %s" % kinds)
            played = session.facts()
            expect(again.returncode == 0, "status %d" % again.returncode)
            differ(recorded, played)
            # What the program did beside CUDA is not in the log.
            told = [re.sub(r"process \d+|puppet: .*\n", "", d.stderr.decode()) for d in (done, again)]
            expect(told[0] == told[1], "said: %r became %r" % tuple(told))
            session.at.clean()
    return check


def buffers(session):
    """The number of kernels in each buffer that came back with records."""
    found = []
    for line in session.lines():
        if line.startswith("d ") and not line.endswith(" 0"):
            found.append(0)
        elif line.startswith("r 0a000000"):
            found[-1] += 1
    return found


def sampled_again():
    """Memory for samples that ran over and had room again does so when it is played."""
    with Session("pc-full=2000,pc-again=1") as session:
        done, recorded = session.record(host("steady"), "--pc-sampling", "on", kib=16384)
        again = session.play("--pc-sampling", "on")
        for each in (done, again):
            expect(b"the memory for PC samples was full" in each.stderr, "said: %r" % each.stderr)
        played = session.facts()
        # A busy machine asks for samples less often, and not for the last ones any more.
        differ(recorded, played, but=("samples",))
        before, after = [sum(row["n"] for row in facts["samples"]) for facts in (recorded, played)]
        expect(before > 2000, "%d samples: none after the first time" % before)
        expect(0 < after <= before, "%d samples became %d" % (before, after))


def varied():
    """A buffer is lost, is cut, comes before another."""
    with Session() as session:
        _, recorded = session.record(host("threads"))
        kernels = buffers(session)
        print("kernels in buffers:", kernels)
        expect(len(kernels) >= 8 and sum(kernels) == 4000, "one for each thread at least")
        session.play(cupti="drop-buffer=3")
        expect(session.at.kernels() == 4000 - kernels[2], "dropped: %d" % session.at.kernels())
        session.play(cupti="short-buffer=5")
        expect(4000 - kernels[4] < session.at.kernels() < 4000, "cut: %d" % session.at.kernels())
        done = session.play(cupti="swap-buffers=3")
        expect(done.returncode == 0 and session.at.kernels() == 4000, "swapped: %d" % session.at.kernels())
        differ(recorded, session.facts(), but=("threads",))
        session.play(cupti="until=1")
        expect(session.at.kernels() == 0, "nothing is played")


def failing():
    """Any call of CUPTI's fails, alone or each time: the program goes on, and something is said where all is lost."""
    with Session() as session:
        session.record(host("leaks"), "--pc-sampling", "on")
        for call in (1, 2, 3, 4, 5, 6, 20, 100, 1000):
            done = session.play(cupti="fail-call=%d" % call)
            expect(done.returncode == 0 and b"launches 200" in done.stdout, "call %d" % call)
            expect(session.at.kernels() in (0, 200), "call %d: %d kernels" % (call, session.at.kernels()))
            expect(session.at.kernels() or b"CUPTI" in done.stderr, "call %d: not said" % call)
        for name in ("Subscribe", "ActivityRegisterCallbacks", "GetStreamIdEx", "GetContextId", "GetDeviceId",
                     "PCSamplingEnable", "PCSamplingGetData", "ActivityRegisterTimestampCallback",
                     "EnableCallback", "GetCallbackName", "ActivityGetNumDroppedRecords"):
            sampling = ("--pc-sampling", "on") if name[:2] == "PC" else ()
            done = session.play(*sampling, cupti="cupti%s=35" % name)
            expect(done.returncode == 0 and b"launches 200" in done.stdout, name)


def cut_off():
    """Of a log that ends early, in a line or behind it, what is there is played."""
    with Session() as session:
        session.record(host("waits"))
        with open(session.log, "rb") as file:
            whole = file.read()
        for part in (0.5, 0.8, 0.99):
            cut = session.log + ".cut"
            with open(cut, "wb") as file:
                file.write(whole[:int(len(whole) * part)] + b"\0" * 1000)
            done = session.play(log=cut)
            expect(done.returncode == 0, "status %d" % done.returncode)
            expect(done.stderr.count(b"cut off") == 1, "said once: %r" % done.stderr)
            expect(session.at.kernels() <= 800 and session.at.number("select count(*) from sync") <= 1602, "too much")


def killed():
    """The log of a program that was killed has what came back until then."""
    with Session() as session:
        done, recorded = session.record(host("killed"))
        expect(done.returncode == 137, "status %d" % done.returncode)
        expect(not any(line.startswith("end ") for line in session.lines()), "it has no end")
        done = session.play()
        expect(done.stderr.count(b"cut off") == 1, "said once")
        expect(session.at.kernels() == sum(buffers(session)), "kernels that came back")
        print("kernels", len(recorded["kernels"]), session.at.kernels())


def unharmed():
    """The recorder harms nobody either: forks, signals, descriptors, ends of all kinds."""
    for name in ("forked", "fork_exec", "vforked", "closed_first", "quick_exit", "errno_kept", "storm", "small_stacks"):
        with Session() as session:
            alone = session.at.run(host(name))
            done, _ = session.record(host(name))
            expect((done.stdout, done.returncode) == (alone.stdout, alone.returncode), name)
            expect(session.lines()[0] == "sonde-cupti-log 1", name)


def bounded():
    """A log that is full says so, counts what it left out, and is one."""
    with Session() as session:
        session.record(host("one"), kib=100)
        lines = session.lines()
        expect(lines[-2] == "full" and int(lines[-1].split()[1]) >= 1, "the end: %s" % lines[-2:])
        expect(os.path.getsize(session.log) <= 100 << 10, "bytes")
        done = session.play()
        expect(done.returncode == 0 and not re.search(b"puppet", done.stderr), "played: %r" % done.stderr)


def hostile():
    """Bytes of a log changed, lines moved: it is played or refused in one line, and never crashes."""
    with Session() as session:
        session.record(host("one"), "--pc-sampling", "on")
        with open(session.log, "rb") as file:
            lines = file.read().splitlines(True)
        head = [line for line in lines if line[:2] != b"r "]
        lines = head[:3] + [line for line in head[3:] if b"GetCallbackName" not in line] + \
            [line for line in lines if line[:2] == b"r "][:50]
        dice = random.Random(1)
        seen = collections.Counter()
        for text in (b"", b"\0\0\0\0", b"sonde-cupti-log 2\n", b"sonde-cupti-log 1\n", b"\xff" * 100,
                     b"sonde-cupti-log 1\nstart 1 1 1 1\n",
                     b"sonde-cupti-log 1\nstart 1 1 1 1\nd 1 1 7f00 100 100 1\n",
                     b"sonde-cupti-log 1\nstart 1 1 1 1\na 1 1 7f00 99999999999999999999\n",
                     b"sonde-cupti-log 1\nstart 1 1 1 1\ns 10 4\n", b"sonde-cupti-log 1\nstart 1 1 1 1\nr 0a\n",
                     b"sonde-cupti-log 1\nstart 1 1 1 1\ns 10 1024\na 1 1 7f 8\nd 1 1 7f 8 8 1\nr 0a\nend 0\n",
                     b"sonde-cupti-log 1\nstart 1 1 1 1\np 1 1 \"f\" 1:1\n", None, *range(60)):
            bad = session.log + ".bad"
            if isinstance(text, int):
                mine = list(lines)
                for _ in range(dice.randrange(1, 4)):
                    at = dice.randrange(len(mine))
                    line = bytearray(mine[at])
                    if dice.random() < 0.3:
                        mine[at], mine[dice.randrange(3, len(mine))] = mine[dice.randrange(3, len(mine))], mine[at]
                    else:
                        line[dice.randrange(len(line))] = dice.choice(b"0123456789abcdefz \n\"%:-\xff\0")
                        mine[at] = bytes(line)
                text = b"".join(mine)
            if text is None:
                bad = os.path.join(session.at.top, "not", "there")
            else:
                with open(bad, "wb") as file:
                    file.write(text)
            env = dict(session.at.env, PUPPET_LOG=bad)
            session.at.env, kept = env, session.at.env
            session.at.env["LD_LIBRARY_PATH"] = "%s/replay:%s" % (HOSTS, HOSTS)
            done = session.at.run(host("replay"))  # alone: it is read, nothing listens
            session.at.env = kept
            puppet = re.findall(rb"^puppet: .*", done.stderr, re.M)
            expect(done.returncode in (0, 1), "status %d of %r" % (done.returncode, text))
            expect(done.returncode == 0 or len(puppet) == 1 and done.stderr.count(b"\n") == 1,
                   "not one line: %r" % done.stderr)
            seen[done.returncode] += 1
            if done.returncode == 0 and text:
                done = session.play("--pc-sampling", "on", log=bad)
                expect(done.returncode in (0, 1), "status %d under sonde" % done.returncode)
        print("played %d, refused %d" % (seen[0], seen[1]))
        expect(seen[1] > 12, "refused")


def script():
    """What is run on a card: a row for each recording, once; one that is played otherwise is one failure."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with Session() as session:
        sonde, out = os.path.join(session.at.top, "sonde"), os.path.join(session.at.top, "out")
        os.mkdir(out)
        with open(sonde, "w") as file:
            file.write('#!/bin/sh\ncase $PUPPET_LOG in */threads) export PUPPET_CUPTI=drop-buffer=3 ;; esac\n'
                       'exec "%s" "$@"\n' % SONDE)
        os.chmod(sonde, 0o755)
        session.at.env.update(DRY=os.path.dirname(SONDE), SONDE=sonde, OUT=out)
        done = session.at.run([os.path.join(tests, "gpu", "run_all.sh"), "200", "--only", "record"])
        print(done.stdout.decode() + done.stderr.decode())
        with open(os.path.join(out, "all.rows")) as file:
            rows = [line.split() for line in file if re.match(r"record +\d+ s  ", line)]
        words = {row[4]: row[3] for row in rows}
        expect(len(rows) == len(words), "a recording has two rows")
        expect([name for name, word in words.items() if word != "ok"] == ["threads"] and len(words) >= 7,
               "recordings: %s" % words)
        expect(done.returncode == 1 and "in all: %d held, 1 failed" % (len(words) - 1) in done.stdout.decode(), "the sum")


def said(lines):
    """What a log says that the profile must have: records by kind, samples."""
    kinds = collections.Counter(int.from_bytes(bytes.fromhex(line[2:10]), "little") for line in lines
                                if line.startswith("r "))
    samples = sum(int(word.split(":")[1], 16) for line in lines if line.startswith("p ")
                  for word in line.rsplit('"', 1)[1].split())
    return kinds, samples


def same_facts(session, log, but=()):
    """The profile has what the log says."""
    facts = log.facts()
    for name, query in QUERIES.items():
        if name in but:
            continue
        got = sorted(tuple(row.values()) for row in session.at.rows(query))
        want = sorted(facts[name])
        expect(got == want, "%s: %d, of the log %d; %s for %s" % (
            name, len(got), len(want), [row for row in got if row not in want][:3],
            [row for row in want if row not in got][:3]))
    return facts


def plays(path):
    """A log of a card: all of it is in the profile."""
    with Session() as session:
        log = CardLog(path)
        with open(session.log, "wb") as file:
            file.write(log.whole)
        done = session.play(*log.options())
        expect(done.returncode == 0, "status %d" % done.returncode)
        print(os.path.basename(path), count(same_facts(session, log)))
        # Those of copies and fills by the driver's kernels have no place; what was not issued counts twice.
        shown = sum(number for key, number in log.samples.items() if not key[3].endswith("_not_issued"))
        expect(log.total == shown + log.others, "of the log: %d samples, %d and %d" % (log.total, shown, log.others))
        refused = "refused" in path
        expect((b"refused records of unified memory (13)" in done.stderr) == refused, "said: %r" % done.stderr)
        expect((b"the memory for PC samples was full" in done.stderr) == ("flood" in path), "said: %r" % done.stderr)


def kept(name="*"):
    here = os.path.dirname(os.path.abspath(__file__))
    return sorted(glob.glob(os.path.join(here, "..", "fake", "logs", "cupti_%s.log.gz" % name)))


def logs():
    """Each that is kept. They take the time that the programs took."""
    paths = kept()
    expect(len(paths) >= 15, "logs are missing: %s" % paths)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in pool.map(plays, paths):
            pass


CASES = {
    "work": round_trip("work", has=("kernels", "copies", "fills", "runtime calls", "driver calls", "waits", "memory")),
    "threads": round_trip("threads"),
    "old_records": round_trip("threads", cupti="version=24"),
    "one_buffer": round_trip("threads", cupti="version=18"),
    "no_worker": round_trip("threads", cupti="no-worker"),
    "epoch_times": round_trip("one", cupti="no-stamp"),
    "leaks": round_trip("leaks", has=("kernels", "marks")),
    "graphs": round_trip("graphs"),
    "graph_mode": round_trip("graphs", "--cuda-graph", "graph", has=("graphs",)),
    "waits": round_trip("waits", has=("waits",)),
    "reset": round_trip("reset"),
    "devices": round_trip("devices"),
    "contexts": round_trip("contexts"),
    "sampled": round_trip("one", "--pc-sampling", "on", has=("samples",)),
    "sampled_contexts": round_trip("contexts", "--pc-sampling", "on"),
    "sampled_again": sampled_again,
    "no_rights": round_trip("one", "--pc-sampling", "on", cupti="pc-enable=35"),
    "unified": round_trip("work", "--trace", "cuda,unified", cupti="unified", has=("copies",)),
    "queued": round_trip("work", "--trace", "cuda,queued", has=("queued",)),
    "varied": varied,
    "failing": failing,
    "cut_off": cut_off,
    "killed": killed,
    "unharmed": unharmed,
    "bounded": bounded,
    "hostile": hostile,
    "script": script,
    "logs": logs,
}

if __name__ == "__main__":
    more = {path: lambda path=path: plays(path) for path in sys.argv[3:] if path not in CASES}
    sys.exit(main(sys.argv, {**CASES, **more} if len(sys.argv) > 3 else CASES))
