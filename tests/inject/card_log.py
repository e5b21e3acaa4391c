"""A plain reader of a log of CUPTI's (tests/fake/cupti_log.h) that was recorded on a card: what the
profile must have when it is played, by CUPTI's layouts and without any code of sonde's."""
import collections
import gzip
import re
import shutil
import struct
import subprocess

MEMCPY, MEMSET, DRIVER, RUNTIME, DEVICE, KERNEL, OVERHEAD = 1, 2, 4, 5, 8, 10, 17
UNIFIED, MEMORY, GRAPH = 25, 49, 51
# As CUPTI's header of 12.0 has them; what later versions put behind is not looked at.
LAYOUTS = {
    KERNEL: ("IBBHIIQQQIII3i3iiiIIIqQQQQ4BIQ", "kind cache shared registers requested executed start end completed "
             "device context stream gx gy gz bx by bz static dynamic local locals correlation grid name reserved queued "
             "submitted launch carveout carved pad executed_shared node"),
    MEMCPY: ("IBBBBQQQIIII", "kind copy source target flags bytes start end device context stream correlation"),
    MEMSET: ("IIQQQIIII", "kind value bytes start end device context stream correlation"),
    RUNTIME: ("IIQQIIII", "kind cbid start end process thread correlation result"),
    OVERHEAD: ("IIIIIIQQ", "kind what object process thread pad start end"),
    UNIFIED: ("IIQQQQIIIII", "kind counter value start end address source target stream process flags"),
    GRAPH: ("IIQQIIII", "kind correlation start end device graph context stream"),
    MEMORY: ("IIIIQQQ", "kind operation memory correlation address bytes time"),
}
LAYOUTS[DRIVER] = LAYOUTS[RUNTIME]
COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD"}
PLACES = {1: "Pageable", 2: "Pinned", 3: "Device"}
# CUpti_ActivityOverheadKind: the number of the bit, from 16 on.
OVERHEADS = {1: "Buffer flush", 2: "Instrumentation", 3: "Resource", 5: "Lazy function loading",
             7: "Activity buffer request", 8: "UVM activity initialisation"}
# Of unified memory: what moves, and what faults; 4 come as many at once as `value` says.
MOVES = {1: "HtoD", 2: "DtoH", 8: "DtoD"}
CPU_FAULT, GPU_FAULT = 3, 4
# What is made and has to be destroyed; each in one call of the driver's, inside the runtime's or not.
OBJECTS = {"cuEventCreate": "event created", "cuEventDestroy_v2": "event destroyed",
           "cuGraphCreate": "graph created", "cuStreamEndCapture": "graph created", "cuGraphDestroy": "graph destroyed",
           "cuGraphInstantiateWithFlags": "graph instantiated", "cuGraphExecDestroy": "executable graph destroyed"}
RESOURCES = {2: "context destroyed", 3: "stream created", 4: "stream destroyed", 6: "module loaded",
             7: "module unloaded"}
WAITS = {"StreamSynchronize": "Stream Sync", "EventSynchronize": "Event Sync", "CtxSynchronize": "Context Sync",
         "DeviceSynchronize": "Context Sync"}


def unpacked(at):
    """A record of `r HEX [NAME]`; what is not known is its kind alone."""
    record = bytes.fromhex(at[1])
    kind = int.from_bytes(record[:4], "little")
    if kind not in LAYOUTS:
        return {"kind": kind}
    layout, names = LAYOUTS[kind]
    size = struct.calcsize("<" + layout)
    fields = dict(zip(names.split(), struct.unpack("<" + layout, record.ljust(size, b"\0")[:size])))
    if len(at) > 2:
        fields["name"] = text(at[2])
    return fields


def text(quoted):
    return re.sub("%([0-9a-f]{2})", lambda found: chr(int(found.group(1), 16)), quoted.strip('"'))


def demangled(names):
    names = sorted(names)
    if not names or not shutil.which("c++filt"):
        return {}
    done = subprocess.run(["c++filt"], input="\n".join(names).encode(), stdout=subprocess.PIPE, check=True)
    return dict(zip(names, done.stdout.decode().split("\n")))


class CardLog:
    def __init__(self, path):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as file:
            self.whole = file.read().rstrip(b"\0")
        self.records = []
        self.events = []     # kind, nanoseconds since the start, records of a buffer
        self.start_ns = 0
        self.sizes = {}      # of records, by kind
        self.givers = set()  # threads that give buffers back
        self.callers = set() # those that call CUDA, or CUPTI
        self.order = []      # numbers of what becomes of contexts and modules
        self.names = {}      # of calls, by domain and number
        self.callbacks = []  # domain, name, site, correlation, result, thread
        self.resources = collections.Counter()
        self.reasons = {}
        self.samples = collections.Counter()  # by function, offset, CRC, reason
        self.total = self.others = self.lost = 0
        self.trace = []
        for line in self.whole.decode().splitlines():
            self.take(line.split(" "))

    def take(self, at):
        if at[0] in ("a", "b", "d", "m"):
            self.events.append((at[0], int(at[1]), []))
        if at[0] == "d":
            self.givers.add(at[2])
        elif at[0] == "b" or (at[0] == "c" and at[4] == "cuptiActivityFlushAll"):
            self.callers.add(at[2])
        if at[0] == "s":
            self.sizes[int(at[1])] = int(at[2])
        elif at[0] == "r":
            self.records.append(unpacked(at))
            self.events[-1][2].append(self.records[-1])
        elif at[0] == "p":
            for word in at[4:]:
                reason, count = (int(part, 16) for part in word.split(":"))
                self.samples[text(at[3]), int(at[1], 16), int(at[2], 16), self.reasons[reason]] += count
        elif at[0] == "b":
            self.callbacks.append((int(at[3]), self.names.get((int(at[3]), int(at[4]))), int(at[5]), int(at[6], 16),
                                   int(at[9], 16), at[2]))
        elif at[0] == "m":
            self.resources[int(at[3])] += 1
            self.order.append(int(at[3]))
        elif at[0] == "start":
            self.start_ns = int(at[1])
        elif at[0] == "trace":
            self.trace = text(at[1]).split(",")
        elif at[0] == "c" and at[5] == "0":
            self.answer(at[4], at[6:])

    def answer(self, name, at):
        if name == "cuptiGetCallbackName":
            self.names[int(at[0], 16), int(at[1], 16)] = text(at[3])
        elif name == "cuptiActivityGetNumDroppedRecords":
            self.lost += int(at[1], 16)
        elif name == "cuptiPCSamplingGetStallReasons":
            self.reasons = {int(number, 16): text(word) for number, word in zip(at[2::2], at[3::2])}
        elif name == "cuptiPCSamplingGetData":
            self.total += int(at[2], 16)
            self.others += int(at[6], 16)

    def options(self):
        """To be played as it was recorded."""
        known = ("cuda", "kernel", "nvtx", "memory", "sync", "unified", "queued")
        return ["--trace", ",".join(word for word in self.trace if word in known)] + \
            ["--pc-sampling", "on"] * ("pc" in self.trace) + ["--cuda-api", "all"] * ("api-all" in self.trace) + \
            ["--cuda-graph", "graph"] * ("graph" in self.trace)

    def of(self, *kinds):
        return [record for record in self.records if record["kind"] in kinds]

    def buffers(self):
        """Records of each that came back with some, in this order."""
        return [records for kind, _, records in self.events if kind == "d" and records]

    def there(self, event):
        """Records that are in buffers when the program dies at this event: those that had come back, and of
        others what was over, up to the first that was not. CUPTI's times are those of the log."""
        _, now, _ = self.events[event]
        found = []
        for i, (_, _, records) in enumerate(self.events):
            for record in records:
                over = max(record.get("end", 0), record.get("time", 0)) - self.start_ns
                if i >= event and over > now:
                    break
                found.append(record)
        return found

    def call_name(self, call):
        return re.sub(r"_v\d{4,}$", "", self.names[1 if call["kind"] == DRIVER else 2, call["cbid"]])

    def waits(self):
        """One each: the runtime's and the driver's inside it have one correlation."""
        found = {}
        for _, name, site, correlation, _, _ in self.callbacks:
            for part, wait in WAITS.items():
                if site == 0 and part in name:
                    found.setdefault(correlation, wait)
        return collections.Counter(found.values())

    def marks(self):
        """Of events and graphs that ended those that began here."""
        found = collections.Counter({RESOURCES[number]: count for number, count in self.resources.items()
                                     if number in RESOURCES})
        for domain, name, site, _, result, _ in self.callbacks:
            if domain == 1 and name in OBJECTS and site == ("estroy" not in name) and not result:
                found[OBJECTS[name]] += 1
        return found

    def nested(self):
        """Do calls inside others have their numbers, and no records?"""
        calls, same = collections.defaultdict(list), True
        for _, _, site, correlation, _, thread in self.callbacks:
            if site == 0:
                same = same and (not calls[thread] or calls[thread][-1] == correlation)
                calls[thread].append(correlation)
            else:
                calls[thread].pop()
        outer = {call["correlation"] for call in self.of(RUNTIME)}
        return same and not any(call["correlation"] in outer for call in self.of(DRIVER))

    def shared(self):
        """Has a buffer calls of several threads?"""
        return any(len({record["thread"] for record in records if "cbid" in record}) > 1 for records in self.buffers())

    def facts(self):
        """What QUERIES, too, say of the profile. Times from the first kernel's start on."""
        kernels = self.of(KERNEL)
        first = min(work["start"] for work in self.of(KERNEL, GRAPH))
        plain = demangled({kernel["name"] for kernel in kernels} | {key[0] for key in self.samples})
        calls = self.of(RUNTIME, DRIVER)
        numbers = {call["correlation"] for call in calls}
        return {
            "kernels": [(plain.get(k["name"], k["name"]), "%dx%dx%d" % (k["gx"], k["gy"], k["gz"]),
                         "%dx%dx%d" % (k["bx"], k["by"], k["bz"]), k["device"], k["context"], k["stream"],
                         k["node"], k["correlation"], k["end"] - k["start"], k["start"] - first) for k in kernels],
            "launched": [(sum(k["correlation"] in numbers for k in kernels),)],
            "copies": [("Memcpy %s (%s -> %s)" % (COPIES[c["copy"]], PLACES[c["source"]], PLACES[c["target"]]),
                        c["bytes"], c["device"], c["context"], c["stream"], c["correlation"], c["end"] - c["start"],
                        c["start"] - first) for c in self.of(MEMCPY)],
            "queued": [(k["queued"] - first,) for k in kernels if k["queued"]],
            "graphs": [(g["device"], g["context"], g["stream"], g["correlation"], g["end"] - g["start"],
                        g["start"] - first) for g in self.of(GRAPH)],
            "moves": [(MOVES[u["counter"]], u["value"], u["end"] - u["start"], u["start"] - first)
                      for u in self.of(UNIFIED) if u["counter"] in MOVES],
            "faults": [(1, u["start"] - first) for u in self.of(UNIFIED) if u["counter"] == CPU_FAULT] +
                      [(u["value"], u["start"] - first) for u in self.of(UNIFIED) if u["counter"] == GPU_FAULT],
            "fills": [(c["bytes"], c["device"], c["context"], c["stream"], c["correlation"], c["end"] - c["start"],
                       c["start"] - first) for c in self.of(MEMSET)],
            "calls": [(self.call_name(c), c["correlation"], c["end"] - c["start"], c["start"] - first) for c in calls],
            "overheads": [(OVERHEADS[o["what"] >> 16], o["end"] - o["start"], o["start"] - first)
                          for o in self.of(OVERHEAD)],
            "callers": [(sum(o["thread"] in {call["thread"] for call in calls} for o in self.of(OVERHEAD)),)],
            # 6 and 7: variables of a module, which nobody obtains.
            "memory": [(m["bytes"] if m["operation"] == 1 else -m["bytes"], m["address"], m["time"] - first)
                       for m in self.of(MEMORY) if m["memory"] not in (6, 7)],
            "waits": list(self.waits().items()),
            "marks": list(self.marks().items()),
            "samples": [(plain.get(key[0], key[0]), *key[1:], count) for key, count in self.samples.items()],
            "losses": [(self.lost,)],
        }


OURS = "(select s.id from source s join string t on t.id = s.reader where t.text = 'cuda')"
FIRST = "(select min(start_ns) from (select start_ns from kernel union all select start_ns from graph))"
AT = "start_ns - " + FIRST
QUERIES = {
    "kernels": "select name, grid, block, device, context, stream, graph_node, correlation, duration_ns, %s a from kernel" % AT,
    "launched": "select count(*) n from kernel where correlation in (select correlation from runtime union "
                "select correlation from driver)",
    "copies": "select name, bytes, device, context, stream, correlation, duration_ns, %s a from memcpy "
              "where name like 'Memcpy%%'" % AT,
    "queued": "select queued_ns - %s a from kernel where queued_ns" % FIRST,
    "graphs": "select device, context, stream, correlation, duration_ns, %s a from graph" % AT,
    "moves": "select kind, bytes, duration_ns, %s a from memcpy where name like 'Migration%%'" % AT,
    "faults": "select faults, %s a from page_fault" % AT,
    "fills": "select bytes, device, context, stream, correlation, duration_ns, %s a from memset" % AT,
    "calls": "select name, correlation, duration_ns, %s a from runtime union all "
             "select name, correlation, duration_ns, %s a from driver" % (AT, AT),
    "overheads": "select name, duration_ns, %s a from overhead" % AT,
    "callers": "select count(*) n from overhead where tid in (select tid from runtime union select tid from driver)",
    "memory": "select bytes, address, %s a from alloc" % AT,
    "waits": "select name, count(*) n from sync group by name",
    "marks": "select name, count(*) n from mark where source in %s and name not like '%%recording%%' group by name" % OURS,
    "samples": "select f.text f, pc_offset, cubin, r.text r, sum(samples) n from stall s join string f on f.id = s.function "
               "join string r on r.id = s.reason group by 1, 2, 3, 4",
    "losses": "select coalesce(sum(dropped), 0) n from loss where source in %s" % OURS,
}
