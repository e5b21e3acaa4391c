"""What raw_cupti.c wrote, as answers: run_raw.py RAW [PROGRAM'S OUTPUT]. A line "ok" or "FAILED" for
each thing that sonde takes for granted, "told" for what is only to be known. Status 1 if one failed."""
import collections
import re
import sys

rows = collections.defaultdict(list)
order = []
for line in open(sys.argv[1], errors="replace"):
    word, _, rest = line.rstrip("\n").partition(" ")
    fields = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", rest))
    rows[word].append(fields)
    order.append((word, fields))
bad = []


def num(row, key):
    return int(row.get(key, "0"), 16 if key in ("address", "pool") else 10)


def claim(good, text):
    print("%s%s" % ("ok      " if good else "FAILED  ", text))
    if not good:
        bad.append(text)


def told(text):
    print("told    %s" % text)


def counts(values):
    return ", ".join("%s: %d" % pair for pair in sorted(collections.Counter(values).items(), key=str)) or "none"


def unified():
    for row in rows["configure"]:
        told("unified memory, configured at %s: all counters %s, four %s, enable %s" %
             (row["when"], row["all"], row["four"], row["enable"]))
    faults = rows["unified"]
    told("its records by counter: %s" % counts(row["counter"] for row in faults))
    if not faults:
        return
    begin = num(rows["begin"][0], "time")
    end = num(rows["flush"][0], "time") if rows["flush"] else begin + 600 * 10**9
    inside = [begin - 10**9 <= num(row, "start") <= end + 10**9 for row in faults]
    claim(all(inside), "its times are those of the timestamp callback: %d of %d; first %s, of %d to %d" %
          (sum(inside), len(faults), faults[0]["start"], begin, end))
    gpu = [row for row in faults if row["counter"] == "4"]
    told("faults of the GPU: %d records, %d distinct times, value %s; from %s, access %s, end after start %d" %
         (len(gpu), len({(row["start"], row["end"]) for row in gpu}), counts(row["value"] for row in gpu)[:80],
          counts(row["from"] for row in gpu), counts(row["flags"] for row in gpu),
          sum(num(row, "end") > num(row, "start") for row in gpu)))
    cpu = [row for row in faults if row["counter"] == "3"]
    if cpu:
        claim(all(num(row, "value") > 1 << 20 for row in cpu), "of a fault of the CPU `value` is an instruction: %s" %
              [hex(num(row, "value")) for row in cpu[:3]])
    for counter, way in (("1", "to the card"), ("2", "to the host"), ("5", "thrashing"), ("6", "throttling"), ("7", "mapping")):
        of = [row for row in faults if row["counter"] == counter]
        if of:
            told("%s: from %s, to %s, cause %s, bytes %d" % (way, counts(row["from"] for row in of), counts(
                row["to"] for row in of), counts(row["flags"] for row in of), sum(num(row, "value") for row in of)))
    device = [row["to"] for row in faults if row["counter"] == "1"] + [row["from"] for row in faults if row["counter"] in "24"]
    claim(set(device) <= {"0", "1"}, "devices are numbered as CUDA does: %s" % counts(device))


def kernels():
    both = [row for row in rows["kernel"] if num(row, "queued") and num(row, "submitted")]
    stale = [row for row in rows["kernel"] if num(row, "queued") and not num(row, "submitted")]
    told("kernels %d: queued and submitted %d, queued alone %d (of graphs %d), neither %d; latency asked: %s" %
         (len(rows["kernel"]), len(both), len(stale), sum(num(row, "graph") > 0 for row in stale),
          sum(not num(row, "queued") for row in rows["kernel"]), counts(row["result"] for row in rows["latency"])))
    if both:
        good = sum(num(row, "queued") <= num(row, "submitted") <= num(row, "start") for row in both)
        late = sum(num(row, "queued") > num(row, "start") for row in both)
        claim(late * 100 <= len(both), "queued <= submitted <= start in %d of %d; queued after the start %d" %
              (good, len(both), late))


def nested():
    """Callbacks are of one thread: what enters before the outer one has left is inside it."""
    stack, inside = [], collections.Counter()
    for word, row in order:
        if word != "call":
            continue
        if row["site"] == "0":
            if stack:
                same = "same" if stack[-1]["correlation"] == row["correlation"] else "another"
                inside["%s > %s: %s number" % (stack[-1]["name"], row["name"], same)] += 1
            stack.append(row)
        elif stack:
            stack.pop()
    for what, count in sorted(inside.items()):
        told("%s (%d)" % (what, count))
    claim(not stack, "each call that entered has left: %s" % [row["name"] for row in stack])
    lost = [row for row in rows["call"] if row.get("has_context") == "0" or row["context"] == "0"]
    told("calls without a context: %s" % counts("%s at %s" % (row["name"], "exit" if row["site"] == "1" else "entry") for row in lost))
    streams = [row for row in rows["call"] if "stream_result" in row]
    claim(all(row["stream_result"] == "0" for row in streams if row["result"] == "0"),
          "the stream of a wait has a number, also in a capture: %s" % counts(row["stream_result"] for row in streams))


def memory():
    outer, depth = {}, 0
    for word, row in order:
        if word == "call" and row["site"] == "0":
            if not depth:
                outer[row["correlation"]] = row["name"]
            depth += 1
        elif word == "call":
            depth = max(depth - 1, 0)
    made = [row for row in rows["memory"] if row["operation"] == "1" and num(row, "kind") not in (6, 7)]
    lost = [row for row in made if row["correlation"] not in outer]
    claim(not lost, "memory obtained has the number of the outer call: %d of %d; not: %s" %
          (len(made) - len(lost), len(made), ["%s bytes, kind %s" % (row["bytes"], row["kind"]) for row in lost[:6]]))
    told("by: %s" % counts(outer[row["correlation"]] for row in made if row["correlation"] in outer))
    back = [row for row in rows["memory"] if row["operation"] == "2"]
    claim(all(num(row, "bytes") for row in back), "memory given back says how much: %d, without %d (from pools %d)" %
          (len(back), sum(not num(row, "bytes") for row in back), sum(not num(row, "bytes") and num(row, "pool") for row in back)))
    for row in rows["memory"]:
        if num(row, "pool_type"):
            told("memory of a pool: operation %s bytes %s pool_bytes %s utilised %s" %
                 (row["operation"], row["bytes"], row["pool_bytes"], row["utilised"]))
    for row in rows["pool"]:
        told("pool: operation %s type %s bytes %s threshold %s utilised %s" %
             (row["operation"], row["type"], row["bytes"], row["threshold"], row["utilised"]))


def rest():
    came = {row["id"]: row for row in rows["module"] if row["what"] == "6"}
    gone = [row for row in rows["module"] if row["what"] == "7"]
    told("modules: %d loaded, %d without a cubin; %d unloaded, %d of them with another one" %
         (len(came), sum(row["first"] == "00000000" for row in came.values()), len(gone),
          sum(row["id"] in came and came[row["id"]]["first"] != row["first"] for row in gone)))
    data = [row for row in rows["overhead"] if row.get("data", "(nil)") != "(nil)"]
    told("overheads by kind / 65536: %s; with data that is ours to free: %d" %
         (counts(num(row, "kind") >> 16 for row in rows["overhead"]), len(data)))
    told("bytes of records by kind: %s" % ", ".join("%s: %s" % (row["kind"], row["bytes"]) for row in rows["size"]))
    for row in rows["enable"]:
        told("kind %s was refused: %s" % (row["kind"], row["result"]))


if not rows["begin"]:
    claim(False, "the library was loaded")
    sys.exit(1)
told("CUPTI %s" % rows["begin"][0]["version"])
for part in (unified, kernels, nested, memory, rest):
    part()
if len(sys.argv) > 2:
    wrong = [line for line in open(sys.argv[2]) if ".cu:" in line]
    claim(not wrong, "no call of the program failed: %s" % wrong[:4])
sys.exit(1 if bad else 0)
