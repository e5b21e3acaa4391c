#!/usr/bin/env python3
"""What CUPTI did on an H200 (tests/fake/logs/cupti_*.log.gz), played as it was and otherwise: what is reported
of it, a buffer lost or never given back, buffers in another order, the program killed, things told twice.

    check_recorded.py SONDE HOST_DIR [CASE...]   status 1 if one fails
    check_recorded.py --list
"""
import collections
import json
import os
import re
import sys

from card_log import DEVICE, KERNEL, MEMCPY, OVERHEAD, CardLog, demangled
from check import SONDE, expect, host, main
from check_replay import Session, kept, same_facts

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "truth"))
import check_run
from tally import Tally


def report(session):
    done = session.at.run([SONDE, "report", "--json", "p.sonde"])
    expect(done.returncode == 0, "no report: %r" % done.stderr)
    return json.loads(done.stdout)


def played(name, check, cupti=None, status=0, change=None):
    """A log, its bytes changed if need be, and what `check` says of the session, the log, the run."""
    def run():
        with Session() as session:
            log = CardLog(kept(name)[0])
            with open(session.log, "wb") as file:
                file.write(change(log.whole) if change else log.whole)
            done = session.play(*log.options(), cupti=cupti(log) if callable(cupti) else cupti)
            expect(done.returncode == status, "status %d: %r" % (done.returncode, done.stderr))
            check(session, log, done)
            session.at.clean()
    return run


def pipeline(session, log, _):
    """The program (examples/programs/pipeline.cu, two steps): what was built into it is found, with its times. Its
    ranges of NVTX are not CUPTI's, and not in the log."""
    told = report(session)
    device = told["devices"][0]
    kernels = [{"start_ns": k["start"], "end_ns": k["end"], "duration_ns": k["end"] - k["start"], "stream": k["stream"]}
               for k in log.of(KERNEL)]
    copies = [{"start_ns": c["start"], "end_ns": c["end"], "duration_ns": c["end"] - c["start"], "stream": c["stream"],
               "bytes": c["bytes"]} for c in log.of(MEMCPY)]
    tally = Tally()
    check_run.times(tally, device, kernels, copies)
    ways = collections.Counter()
    for c in log.of(MEMCPY):
        ways[c["copy"], 1 in (c["source"], c["target"])] += c["end"] - c["start"]
    tally.same("copies", "of each", [(c["kind"], c["pageable"], c["count"], c["bytes"], c["sum_ns"]) for c in told["copies"]],
               [("HtoD", True, 2, 2 << 24, ways[1, True]), ("HtoD", False, 2, 2 << 24, ways[1, False]),
                ("DtoH", True, 16, 64, ways[2, True])])
    tally.same("program", "kernels", [(k["name"], k["count"]) for k in told["kernels"]],
               [("work(float*, int, int)", 4), ("tiny(float*)", 600)])
    memory = told["memory"][0]
    tally.same("program", "live at the end", (memory["live_bytes"], memory["streams_live"]), (5 << 23, 3))
    found = {finding["id"]: finding for finding in told["findings"]}
    tally.same("findings", "the first", told["findings"][0]["id"], "gpu_starved")
    if log.samples:
        # With PC sampling the first launch takes 120 ms: of the whole span the read-backs are too little.
        tally.same("findings", "all", sorted(found), ["gpu_starved", "launch_bound", "pageable_copy"])
    else:
        tally.same("findings", "all", sorted(found), ["gpu_starved", "launch_bound", "pageable_copy", "sync_readback"])
        evidence(tally, log, found, kernels + copies)
    expect(tally.status() == 0, "the report")


def evidence(tally, log, found, ops):
    starved = {e["metric"]: e["value"] for e in found["gpu_starved"]["evidence"]}["idle.host_late"]
    # The second step's loading: the longest gap.
    busy = check_run.union((op["start_ns"], op["end_ns"]) for op in ops)
    gap = max(b[0] - a[1] for a, b in zip(busy, busy[1:]))
    tally.holds("findings", 0.9 * gap <= starved <= gap, "starved for %d ns of %d" % (starved, gap))
    tally.same("findings", "read-backs", [e["value"] for e in found["sync_readback"]["evidence"]][0], 16)
    tally.same("findings", "short kernels", {e["metric"]: e["value"] for e in found["launch_bound"]["evidence"]}
               ["small_kernels"], sum(k["end"] - k["start"] < 10000 for k in log.of(KERNEL)))


def cases(session, log, _):
    """Each kernel's first stall is the reason that CUPTI counted most, of all but those that issued."""
    counts = collections.defaultdict(collections.Counter)
    for (function, _, _, reason), number in log.samples.items():
        short = re.sub("^smsp__pcsamp_warps_issue_stalled_", "", reason)
        if not short.endswith("_not_issued"):
            counts[function][short] += number
    plain = demangled(counts)
    want = {plain.get(function, function): (sum(of.values()), (of - collections.Counter(selected=of["selected"])).most_common(1)[0])
            for function, of in counts.items()}
    got = {kernel["name"]: kernel for kernel in report(session)["kernels"]}
    expect(len(got) == 21 and set(got) == set(want), "kernels: %s" % set(got).symmetric_difference(want))
    for name, (samples, (reason, most)) in want.items():
        kernel = got[name]
        expect(kernel["pc_samples"] == samples, "%s: %d samples, of the log %d" % (name, kernel["pc_samples"], samples))
        # Of fewer than 30 none is named.
        expect((kernel.get("top_stall"), kernel.get("top_stall_samples")) == ((reason, most) if samples >= 30 else (None, None)),
               "%s: %s, of the log %s of %d" % (name, kernel.get("top_stall"), reason, most))


def kernels_are(session, records):
    got = collections.Counter(row["correlation"] for row in session.at.rows("select correlation from kernel"))
    want = collections.Counter(record["correlation"] for record in records if record["kind"] == KERNEL)
    print("kernels", sum(got.values()))
    expect(got == want, "kernels: %d, of the log %d" % (sum(got.values()), sum(want.values())))


def whole(session, log, _):
    same_facts(session, log)


def nameless(session, log, _):
    """No buffer came back, and names are in the memory of a program that is no more."""
    same_facts(session, log, but=("kernels",))
    kernels_are(session, log.records)
    names = session.at.rows("select distinct name from kernel")
    expect(names == [{"name": "(kernel without a name)"}], names)


def lost(number):
    """One buffer never came: the rest is there."""
    return lambda session, log, _: kernels_are(
        session, [record for i, records in enumerate(log.buffers()) if i != number for record in records])


def killed(part):
    """The program dies after this part of the launches: what CUPTI had written is there."""
    def event(log):
        ends = sorted(kernel["end"] - log.start_ns for kernel in log.of(KERNEL))
        after = [i for i, (_, now, _) in enumerate(log.events) if now >= ends[int(part * (len(ends) - 1))]]
        return after[0]

    def check(session, log, _):
        records = log.there(event(log))
        kernels_are(session, records)
        calls = session.at.number("select (select count(*) from runtime) + (select count(*) from driver)")
        expect(calls == sum("cbid" in record for record in records), "calls: %d" % calls)
        expect(0 < session.at.kernels() < len(log.of(KERNEL)), "all or nothing: %d" % session.at.kernels())
    return lambda name: played(name, check, lambda log: "kill=%d" % (event(log) + 1), status=137)


def twice(kinds):
    """Lines of these kinds are there twice."""
    def change(log):
        lines = []
        for line in log.split(b"\n"):
            lines += [line] * (2 if line[:1] in kinds and line[1:2] == b" " else 1)
        return b"\n".join(lines)
    return change


def told_twice(session, log, _):
    """Contexts, streams, modules: what was launched on them is there once."""
    same_facts(session, log, but=("marks",))
    made = dict(log.facts()["marks"])
    for row in session.at.rows("select name, count(*) n from mark group by name"):
        expect(row["n"] <= 2 * made.get(row["name"], 1), "%s: %d" % (row["name"], row["n"]))


def elsewhere(log):
    """The first block lies at another address than those of later contexts, as CUDA has it now and then."""
    def moved(found):
        return found.group(1) + b"%02x" % (int(found.group(2), 16) ^ 0x20)
    changed = re.sub(rb"(\nr 310000000100000003000000[0-9a-f]{12})([0-9a-f]{2})", moved, log, count=1)
    expect(changed != log, "no such record")
    return changed


def memory_of_contexts(session, log, _):
    """Memory goes with its context, whatever address the next has it at."""
    memory = report(session)["memory"][0]
    expect((memory["peak_bytes"], memory["live_bytes"]) == (4096, 4096), memory)
    contexts = session.at.rows("select context, count(*) n from alloc group by context order by context")
    expect(contexts == [{"context": i + 1, "n": 1} for i in range(3)], contexts)


def habits(log):
    """What the puppet, invented before there were logs, has to do as CUPTI did."""
    return {
        "who calls gives no buffer back": not log.givers & log.callers,
        "what is inside a call has its number and no record": log.nested(),
        "modules go behind their context": 2 not in log.order or log.order[log.order.index(2) + 1] == 7,
        "a device is told of once": len(log.of(DEVICE)),
        "what giving back costs has a buffer of its own":
            any({record["kind"] for record in records} == {OVERHEAD} for records in log.buffers()),
    }


def puppet(version, names, threads):
    """Records are as long and calls come as in the logs of this version; `threads`: one with several that launch."""
    def check():
        with Session("version=%d" % version) as session:
            session.record(host("threads"))
            card = CardLog(kept(threads)[0])
            expect(CardLog(session.log).shared() == card.shared(), "threads share a buffer: %s" % card.shared())
            expect(card.nested(), "calls inside others")
        cards = [CardLog(path) for name in names for path in kept(name)]
        sizes = {kind: size for log in cards for kind, size in log.sizes.items()}
        for program in ("reset", "memory"):
            with Session("version=%d" % version) as session:
                session.record(host(program))
                log = CardLog(session.log)
                for kind in sorted(set(log.sizes) & set(sizes)):
                    expect(log.sizes[kind] == sizes[kind], "kind %d: %d bytes, of the card %d" % (
                        kind, log.sizes[kind], sizes[kind]))
                for card in cards:
                    expect(habits(log) == habits(card), "%s: %s, of the card %s" % (program, habits(log), habits(card)))
        print(sorted(sizes.items()), habits(log))
    return check


CASES = {
    "puppet": puppet(130001, ("reset", "pipeline", "graphs", "api_all"), "torch"),
    "puppet_old": puppet(26, ("pipeline_old",), "threads_old"),
    "pipeline": played("pipeline", pipeline),
    "pipeline_old": played("pipeline_old", pipeline),
    "pipeline_sampled": played("pipeline_sampled", pipeline),
    "cases": played("cases_sampled", cases),
    "cases_old": played("cases_old_sampled", cases),
    "memory_of_contexts": played("reset", memory_of_contexts, change=elsewhere),
    "killed_old_threads": killed(0.5)("threads_old"),
    "shuffled": played("torch", whole, "swap-buffers=1"),
    "shuffled_later": played("torch", whole, "swap-buffers=2"),
    "shuffled_contexts": played("reset", whole, "swap-buffers=1"),
    "never_given_back": played("reset", whole, "keep-buffer=2"),
    "none_given_back": played("pipeline", nameless, "keep-buffer=1"),
    "lost": played("reset", lost(0), "drop-buffer=1"),
    "lost_thread": played("torch", lost(1), "drop-buffer=2"),
    "killed": killed(0.5)("pipeline"),
    "killed_contexts": killed(0.7)("reset"),
    "killed_threads": killed(0.1)("torch"),
    "told_twice": played("reset", told_twice, change=twice((b"m",))),
    "told_twice_streams": played("torch", told_twice, change=twice((b"m",))),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
