"""Claims of run_owed.sh: prints what it compares, ends with status 1 if one is wrong."""
import json

from claims import check, load, run


def leaks(path):
    report = load(path)
    memory = [m for m in report["memory"] if "events_live" in m]
    check(memory, "events are told of")
    for word, function in (("events", "_event"), ("graphs", "capture"), ("graph_execs", "instantiate")):
        told = memory[0] if memory else {}
        site = told.get(word + "_site", "-")
        check(told.get(word + "_leaked", 0) >= 10, "%s left: %s of %s" %
              (word, told.get(word + "_leaked"), told.get(word + "_live")))
        check(function in site, "%s made in %s" % (word, site))
    found = [f["title"] for f in report["findings"] if f["id"] == "leak"]
    check(len(found) >= 3, "findings: %s" % found)


def pipeline(path):
    report = load(path)
    memory = [m for m in report["memory"] if m.get("streams_leaked")]
    check(memory and memory[0]["streams_leaked"] >= 4, "streams left: %s" % [m.get("streams_leaked") for m in memory])
    check(memory and "main" in memory[0].get("streams_site", ""), "streams of %s" %
          [m.get("streams_site") for m in memory])
    blocks = [leak for m in report["memory"] for leak in m.get("leaks", []) if leak["block_bytes"] == 8 << 20]
    check(blocks and "main" in blocks[0].get("site", ""), "blocks of 8 MiB: %s" % blocks)


def threads(path, os_calls):
    report = load(path)
    check(int(os_calls) > 0, "%s calls of the system" % os_calls)
    causes = [idle for device in report["devices"] for idle in device.get("idle", [])]
    for idle in causes[:8]:
        print("    %s" % json.dumps(idle)[:200])
    check(any(idle.get("thread_state") for idle in causes) or not causes, "a thread's state is told")


def sampling(path):
    report = load(path)
    told = report["overhead"].get("pc_sampling", [])
    print("  %s" % told)
    check(told, "how long samples were taken is told")
    for row in told:
        check(0 < row["covered_ns"] <= row["span_ns"], "taken for %.2f s of %.2f s" %
              (row["covered_ns"] / 1e9, row["span_ns"] / 1e9))


run(globals())
