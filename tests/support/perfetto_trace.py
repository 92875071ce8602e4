"""Reads a timeline in Perfetto's own format (Protocol Buffers) by what its .proto files say, and nothing of Paceline's:
`load(path)` gives the slices, counters and flows; as a program it compares one with a Chrome trace of the same run,
`perfetto_trace.py RUN.pftrace[.gz] RUN.json`, and says what differs."""
import collections
import gzip
import json
import sys

Slice = collections.namedtuple("Slice", "process track name categories start end depth args flows last_flows")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [values]} of a message; fixed numbers as integers, messages as bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert kind == 2, kind
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "cut off"
        found[key >> 3].append(value)
    return found


class Sequence:
    """What holds from its first packet on."""

    def __init__(self):
        self.track, self.clock, self.incremental = None, None, {}
        self.names, self.categories, self.annotations = {}, {}, {}

    def intern(self, data):
        for number, table in ((1, self.categories), (2, self.names), (3, self.annotations)):
            for entry in data.get(number, []):
                entry = fields(entry)
                assert entry[1][0] not in table, "a name is said twice"
                table[entry[1][0]] = entry[2][0].decode()


def value_of(annotation):
    if 12 in annotation:
        return [value_of(fields(element)) for element in annotation[12]]
    return annotation[4][0] if 4 in annotation else annotation[6][0].decode()


def arguments(sequence, event):
    found = {}
    for annotation in map(fields, event.get(4, [])):
        name = annotation[10][0].decode() if 10 in annotation else sequence.annotations[annotation[1][0]]
        found[name] = value_of(annotation)
    return found


class Trace:
    def __init__(self, data):
        self.processes, self.tracks, self.counters, self.header = {}, {}, collections.defaultdict(list), {}
        self.slices, self.open, self.sequences = [], collections.defaultdict(list), {}
        for packet in fields(data)[1]:
            self.read(fields(packet))
        assert not any(self.open.values()), "a slice does not end"

    def read(self, packet):
        flags, sequence = packet[13][0], packet[10][0]
        if flags & 1:
            self.sequences[sequence] = Sequence()
        own = self.sequences[sequence]  # KeyError: a packet in front of its sequence's state
        for defaults in map(fields, packet.get(59, [])):
            own.track, own.clock = fields(defaults[11][0])[11][0], defaults[58][0]
        for snapshot in map(fields, packet.get(6, [])):
            for clock in map(fields, snapshot[1]):
                if clock.get(3) == [1]:
                    assert 64 <= clock[1][0] < 128
                    own.incremental[clock[1][0]] = clock[2][0]
        if 12 in packet:
            own.intern(fields(packet[12][0]))
        for track in map(fields, packet.get(60, [])):
            self.describe(track)
        if 11 in packet:
            own.incremental[own.clock] += packet[8][0]
            self.happen(own, fields(packet[11][0]), own.incremental[own.clock])

    def describe(self, track):
        uuid = track[1][0]
        if 3 in track:
            process = fields(track[3][0])
            self.processes[uuid] = (process[1][0], process[6][0].decode())
        elif uuid != 0:
            assert uuid not in self.tracks
            parent = track[5][0] if 5 in track else None
            self.tracks[uuid] = (self.processes[parent] if parent is not None else None, track[2][0].decode())

    def happen(self, own, event, time):
        kind = event[9][0]
        process, track = self.tracks[own.track]
        if kind == 3:
            self.header = arguments(own, event)
        elif kind == 4:
            self.counters[process].append((time, event[30][0]))
        elif kind == 1:
            categories = tuple(own.categories[identity] for identity in event[3])
            self.open[own.track].append((own.names[event[10][0]], categories, time, arguments(own, event), event.get(47, []), event.get(48, [])))
        else:
            assert kind == 2
            depth = len(self.open[own.track]) - 1
            name, categories, start, args, flows, last = self.open[own.track].pop()
            self.slices.append(Slice(process, track, name, categories, start, time, depth, args, flows, last))


def load(path):
    return Trace((gzip.open if path.endswith(".gz") else open)(path, "rb").read())


# ---- beside a Chrome trace ----

def within(dates, others, what):
    assert len(dates) == len(others), (what, len(dates), len(others))
    for date, other in zip(dates, others):
        assert all(abs(a - b) <= 1.001 for a, b in zip(date, other)), (what, date, other)


def compare(trace, chrome):
    events = chrome["traceEvents"]
    process = {e["pid"]: (e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"}
    thread = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted(process.values()) == sorted(trace.processes.values())
    said, there = dict(trace.header), dict(chrome.get("otherData", {}))
    assert said.pop("command", "").split(" --trace ")[0] == there.pop("command", "").split(" --trace ")[0]
    assert said == there, (said, there)
    drawn, drawn_here = collections.defaultdict(list), collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            category = (e["cat"],) if e["cat"] == e["args"]["category"] else (e["cat"], e["args"]["category"])
            said = tuple((key, str(e["args"].get(key))) for key in ("flops", "bytes", "peers"))
            drawn[process[e["pid"]], thread[e["pid"], e["tid"]], e["name"], category, said].append((e["ts"] * 1e3, (e["ts"] + e["dur"]) * 1e3))
    for s in trace.slices:
        said = tuple((key, str(s.args.get(key))) for key in ("flops", "bytes", "peers"))
        drawn_here[s.process, s.track, s.name, s.categories, said].append((s.start, s.end))
        assert s.depth == (0 if "task" in s.args else 1) or s.depth == 2 and s.categories[0] != "block", s
    assert set(drawn) == set(drawn_here), set(drawn) ^ set(drawn_here)
    for key in drawn:
        within(sorted(drawn[key]), sorted(drawn_here[key]), key)
    counters = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "C":
            counters[process[e["pid"]]].append((e["ts"] * 1e3, e["args"]["GiB"]))
    assert set(counters) == set(trace.counters)
    for key in counters:
        within(sorted(counters[key]), [(time, value / 2**30) for time, value in trace.counters[key]], key)
    compare_arrows(trace, events, process)


def compare_arrows(trace, events, process):
    ends = collections.defaultdict(dict)
    for e in events:
        if e["ph"] in "sf":
            ends[e["id"]][e["ph"]] = (process[e["pid"]], e["ts"] * 1e3)
    arrows = [(start["s"], start["f"]) for start in ends.values()]
    leaves = {flow: (s.process, s.start) for s in trace.slices for flow in s.flows}
    arrives = {flow: (s.process, s.start) for s in trace.slices for flow in s.last_flows}
    assert set(leaves) == set(arrives) and len(leaves) == len(arrows), (len(leaves), len(arrives), len(arrows))
    for here, there in zip(sorted((leaves[f], arrives[f]) for f in leaves), sorted(arrows)):
        for (p, time), (q, other) in zip(here, there):
            assert p == q and abs(time - other) <= 1.001, (here, there)


if __name__ == "__main__":
    found = load(sys.argv[1])
    compare(found, json.load(open(sys.argv[2])))
    print(len(found.slices), "slices,", sum(len(s.flows) for s in found.slices), "arrows,", sum(map(len, found.counters.values())), "counters")
