#!/usr/bin/env python3
"""Synthetic jobs whose truth is known: plain traces as ranks would have recorded them, and what really happened.

    synthetic_job.py PATTERN FOLDER [key=value ...]

PATTERN: collective (whole all-reduces), ring and tree (all-reduces chunk by chunk), server (a parameter server), pipeline (1F1B).
Keys: ranks, layers, steps, seed, compute (factor on all computing), link (factor on the links' speed), bytes (of a layer's
gradient), jitter (relative), clocks (largest planted offset in us; drifts are up to 50 ppm), per_host (ranks that share a clock),
slow (factor on the computing of rank 1), launch (us that each op of computing takes more), plan (a file of `paceline optimize`:
the same job with its buckets, pieces and fused ops; patterns collective, ring, tree and server).
Writes FOLDER/rankN.json and, beside it, FOLDER.truth.json: the steps' times in s, the clocks' offsets and drifts, and over which dates they
hold (base_ns is 0 on the true clock).

The event model is its own: whatever is ready is served first come first served by the resource that it needs (a GPU, a link in one
direction, a member of a collective); nothing of it is shared with the replay that it tests. A random number belongs to the name of what
it disturbs, so a job with another `compute` or `link` is the same job on other hardware."""
import hashlib
import heapq
import json
import os
import re
import sys


def parse(argv):
    options = dict(ranks=4, layers=8, steps=2, seed=1, compute=1.0, link=1.0, bytes=4 << 20, jitter=0.05, clocks=0.0, per_host=1, slow=1.0,
                   launch=0.0, plan="")
    for word in argv:
        key, value = word.split("=")
        if key not in options:
            sys.exit(f"synthetic_job: '{key}' is none of {', '.join(options)}")
        options[key] = value if key == "plan" else type(options[key])(float(value))
    return options


class Job:
    def __init__(self, o):
        self.o = o
        self.tasks = []  # dicts; done once simulated
        self.queue = []  # (date, serial, task)
        self.busy = {}  # resource -> list of waiting
        self.records = {}  # rank -> ops
        plan = json.load(open(o["plan"])) if o["plan"] else {}
        number = lambda tensor: int(re.search(r"\d+", tensor["name"]).group())
        self.buckets = [([number(t) for t in b["tensors"]], b["pieces"]) for b in plan.get("buckets", [])]
        self.fused = [group["ops"] for group in plan.get("fused_ops", [])]
        self.sizes = {}  # of what is named like no layer: [(layer, bytes)]

    def noise(self, name):
        digest = hashlib.sha256(f"{self.o['seed']} {name}".encode()).digest()
        uniform = int.from_bytes(digest[:8], "big") / 2**64
        return 1 + self.o["jitter"] * (2 * uniform - 1)

    def wire_noise(self, before, name, after):
        """Of a message of a bucket: its layers', each by its bytes, so that the same bytes take as long in any bucket."""
        layers = self.sizes.get(name.split(".")[0])
        if not layers:
            return self.noise(f"{before}{name}{after}")
        kind, rest = re.match(r"[a-z]+", name).group(), "." + name.split(".", 1)[1] if "." in name else ""
        return sum(b * self.noise(f"{before}{kind}{layer}{rest}{after}") for layer, b in layers) / sum(b for _, b in layers)

    def add(self, resource, seconds, after=(), **what):
        task = dict(id=len(self.tasks), resource=resource, ns=round(seconds * 1e9), after=list(after), waits=0, next=[], **what)
        self.tasks.append(task)
        for other in after:
            other["next"].append(task)
            task["waits"] += 1
        return task

    def compute(self, rank, name, ms, step, after=()):
        ms *= self.o["slow"] if rank == 1 else 1
        seconds = ms * 1e-3 * self.o["compute"] * self.wire_noise(f"{rank} ", name, f" {step}") + self.o["launch"] * 1e-6
        return self.add(("gpu", rank), seconds, after, kind="compute", rank=rank, name=name, step=step)

    def compute_row(self, rank, ops, step, last):
        """Ops one behind the other, those that the plan fuses as one: (op by name, the last one)."""
        made, at = {}, 0
        while at < len(ops):
            group = next((g for g in self.fused if g[0] == ops[at][0]), [ops[at][0]])
            parts = ops[at:at + len(group)]
            assert [name for name, _ in parts] == group, (group, parts)
            ms = sum(one * self.noise(f"{rank} {name} {step}") for name, one in parts) * (self.o["slow"] if rank == 1 else 1)
            seconds = ms * 1e-3 * self.o["compute"] + self.o["launch"] * 1e-6
            last = self.add(("gpu", rank), seconds, [last] if last else [], kind="compute", rank=rank, name="+".join(group), step=step)
            made.update((name, last) for name in group)
            at += len(group)
        return made, last

    def gradients(self, kind):
        """(name, layers, bytes) of what is synchronised, in the order in which it is ready, pieces apart."""
        o = self.o
        size = lambda layer: o["bytes"] * (1 + layer % 3)
        found = []
        for layers, pieces in self.buckets or [([layer], 1) for layer in range(o["layers"])]:
            whole = sum(size(layer) for layer in layers)
            for piece in range(pieces):
                name = kind + "+".join(map(str, layers)) + (f"p{piece}" if pieces > 1 else "")
                if len(layers) > 1 or pieces > 1:
                    self.sizes[name] = [(layer, size(layer)) for layer in layers]
                found.append((name, layers, whole // pieces))
        return found

    def transfer(self, a, b, size, tag, step, after, posted=()):
        """A message over the link a -> b. `posted`: what b has done before it posts its receive."""
        seconds = 5e-6 + size / (10e9 * self.o["link"]) * self.wire_noise(f"{a} {b} ", tag, f" {step}")
        return self.add(("link", a, b), seconds, after, kind="transfer", rank=a, to=b, size=size, name=tag, step=step, posted=list(posted))

    def collective(self, members, size, name, step, after):
        """Per member a task of no length in the queue of its communicator; the last one there starts the rest."""
        seconds = 20e-6 + size / (8e9 * self.o["link"]) * self.wire_noise("", name, f" {step}")
        whole = self.add(None, seconds, [], kind="whole", name=name, step=step)
        parts = []
        for rank, ready in zip(members, after):
            part = self.add(("communicator", rank), 0, ready, kind="member", rank=rank, name=name, step=step, size=size, whole=whole)
            whole["waits"] += 1
            parts.append(part)
        whole["members"] = parts
        return parts

    # ---- events: a resource serves in the order of readiness ----

    def ready(self, task, date):
        task["ready"] = date
        if task["resource"] is None:
            self.start(task, date)
            return
        held = self.busy.setdefault(task["resource"], [])
        held.append(task)
        if len(held) == 1:
            self.start(task, date)

    def start(self, task, date):
        task["start"] = date
        if task["kind"] == "member":  # holds its communicator until the whole has ended
            whole = task["whole"]
            whole["waits"] -= 1
            if whole["waits"] == 0:
                self.ready(whole, date)
            return
        heapq.heappush(self.queue, (date + task["ns"], task["id"], task))

    def end(self, task, date):
        task["end"] = date
        ended = task["members"] if task["kind"] == "whole" else [task]
        for one in ended:
            one["end"] = date
            for other in one["next"]:
                other["waits"] -= 1
                if other["waits"] == 0:
                    self.ready(other, date)
        for one in ended:
            if one["resource"] is not None:
                held = self.busy[one["resource"]]
                held.pop(0)
                if held:
                    self.start(held[0], date)

    def run(self):
        for task in [t for t in self.tasks if t["waits"] == 0 and t["kind"] != "whole"]:
            self.ready(task, 0)
        while self.queue:
            date, _, task = heapq.heappop(self.queue)
            self.end(task, date)
        assert all("end" in t for t in self.tasks), "the job never ends"

    # ---- what the ranks wrote down ----

    def op(self, rank):
        ops = self.records.setdefault(rank, [])
        ops.append(dict(id=len(ops)))
        return ops[-1]

    def record(self):
        local, posted = {}, {}  # op by (task id, rank); end of the last receive by link
        shown = sorted((t for t in self.tasks if t["kind"] != "whole"), key=lambda t: (t["start"], t["id"]))
        for t in shown:
            local[t["id"], t["rank"]] = self.op(t["rank"])
            if t["kind"] == "transfer":
                local[t["id"], t["to"]] = self.op(t["to"])
        for t in shown:
            after = [local[o["id"], t["rank"]]["id"] for o in t["after"]]
            base = dict(name=t["name"], start_ns=t["start"], duration_ns=t["end"] - t["start"], step=t["step"], after=after)
            own = local[t["id"], t["rank"]]
            if t["kind"] == "compute":
                own.update(stream="gpu", **base)
            elif t["kind"] == "member":
                own.update(stream="communicator", kind="collective", collective="all-reduce", group="all", bytes=t["size"], **base)
            else:
                link, to = (t["rank"], t["to"]), t["to"]
                own.update(stream=f"to {to}", kind="send", peer=to, tag=t["name"], bytes=t["size"], **base)
                # The receive begins when it is posted, mostly long before anything arrives, as libraries record it. One that
                # is posted late holds up no message but its own: those that went before it on the link ended when they did.
                held = [local[o["id"], to]["id"] for o in t["posted"]]
                since = max([min(posted.get(link, 0), t["end"])] + [o["end"] for o in t["posted"]])
                end = max(t["end"], since)
                posted[link] = max(posted.get(link, 0), end)
                base.update(start_ns=since, duration_ns=end - since, after=held)
                local[t["id"], to].update(stream=f"from {t['rank']}", kind="receive", peer=t["rank"], tag=t["name"], bytes=t["size"],
                                          **base)


def layers(job, rank, step, before):
    """Forward and backward pass: (all forward, backward ops from the last layer on)."""
    n = job.o["layers"]
    ops = [(f"forward{layer}", 0.4 + 0.05 * layer) for layer in range(n)]
    ops += [(f"backward{layer}", 0.8 + 0.1 * layer) for layer in reversed(range(n))]
    made, _ = job.compute_row(rank, ops, step, before)
    return [made[f"backward{layer}"] for layer in reversed(range(n))]


def data_parallel(job, reduce):
    o, before = job.o, [None] * job.o["ranks"]
    for step in range(o["steps"]):
        back = [layers(job, rank, step, before[rank]) for rank in range(o["ranks"])]
        done = [[] for _ in range(o["ranks"])]
        for name, layers_of, size in job.gradients("grad"):
            ends = reduce(job, [b[layers_of[-1]] for b in back], name, size, step)
            for rank, end in enumerate(ends):
                done[rank] += end
        before = [job.compute(rank, "update", 0.3, step, done[rank] + [back[rank][-1]]) for rank in range(o["ranks"])]


def whole(job, ready, name, size, step):
    return [[p] for p in job.collective(range(job.o["ranks"]), size, name, step, [[r] for r in ready])]


def ring(job, ready, name, size, step):
    n = len(ready)
    held = [ready[r] for r in range(n)]
    for chunk in range(2 * (n - 1)):
        sent = [job.transfer(r, (r + 1) % n, size // n, f"{name}.{chunk}", step, [held[r]] if chunk == 0 else [held[r], ready[r]],
                             [ready[(r + 1) % n]]) for r in range(n)]
        held = [sent[(r - 1) % n] for r in range(n)]
    return [[h] for h in held]


def tree(job, ready, name, size, step):
    n, parts = len(ready), 4
    ends = [[] for _ in range(n)]
    for part in range(parts):
        up = {}
        for r in reversed(range(1, n)):
            children = [up[c] for c in (2 * r + 1, 2 * r + 2) if c < n]
            up[r] = job.transfer(r, (r - 1) // 2, size // parts, f"{name}.up{part}", step, [ready[r]] + children, [ready[(r - 1) // 2]])
        down = {0: None}
        ends[0] += [up[c] for c in (1, 2) if c < n]
        for r in range(1, n):
            parent = (r - 1) // 2
            after = [down[parent]] if parent else [ready[0]] + [up[c] for c in (1, 2) if c < n]
            down[r] = job.transfer(parent, r, size // parts, f"{name}.down{part}", step, after, [ready[r]])
            ends[r].append(down[r])
    return ends


def server(job):
    """The last rank serves: push of all, sum, pull by all."""
    o = job.o
    n, hub = o["ranks"] - 1, o["ranks"] - 1
    before, served = [None] * n, []
    for step in range(o["steps"]):
        back = [layers(job, rank, step, before[rank]) for rank in range(n)]
        done, sums = [[] for _ in range(n)], []
        for name, held, size in job.gradients("push"):
            pushed = [job.transfer(r, hub, size, name, step, [back[r][held[-1]]], served) for r in range(n)]
            pieces = sum(1 for _, other, _ in job.gradients("push") if other == held)
            sum_name = name.replace("push", "sum")
            job.sizes[sum_name] = [(layer, 1) for layer, _ in job.sizes.get(name, [])]  # a sum takes the same for every layer
            total = job.compute(hub, sum_name, 0.1 * len(held) / pieces, step, pushed)
            pull = name.replace("push", "pull")
            job.sizes[pull] = job.sizes.get(name, [])
            for r in range(n):
                done[r].append(job.transfer(hub, r, size, pull, step, [total], [back[r][held[-1]]]))
            sums.append(total)
        served = [sums[-1]]
        before = [job.compute(r, "update", 0.3, step, done[r] + [back[r][-1]]) for r in range(n)]


def pipeline(job):
    """1F1B with four microbatches a stage."""
    o = job.o
    p, m = o["ranks"], 4 * o["ranks"]
    last = [None] * p
    for step in range(o["steps"]):
        plan = []
        for s in range(p):
            warm = min(p - s - 1, m)
            order = [("f", k) for k in range(warm)]
            for k in range(m - warm):
                order += [("f", warm + k), ("b", k)]
            plan.append(order + [("b", k) for k in range(m - warm, m)])
        sent, at = {}, [0] * p
        while any(at[s] < len(plan[s]) for s in range(p)):
            for s in range(p):
                if at[s] == len(plan[s]):
                    continue
                what, k = plan[s][at[s]]
                source = s - 1 if what == "f" else s + 1
                need = (what, k, source) if 0 <= source < p else None
                if need and need not in sent:
                    continue
                after = [last[s]] if last[s] else []
                if need:
                    out = sent[need]
                    message = job.transfer(source, s, o["bytes"], f"send {what}{k}", step, [out], after)
                    after = after + [message]
                ms = (1.0 if what == "f" else 2.0) * (1 + 0.1 * s)
                last[s] = job.compute(s, f"{what}{k}", ms, step, after)
                sent[what, k, s] = last[s]
                at[s] += 1
        last = [job.compute(s, "update", 0.5, step, [last[s]]) for s in range(p)]


PATTERNS = dict(collective=lambda job: data_parallel(job, whole), ring=lambda job: data_parallel(job, ring),
                tree=lambda job: data_parallel(job, tree), server=server, pipeline=pipeline)


def main(pattern, folder, *words):
    if pattern not in PATTERNS:
        sys.exit(f"synthetic_job: '{pattern}' is none of {', '.join(PATTERNS)}")
    o = parse(words)
    job = Job(o)
    PATTERNS[pattern](job)
    job.run()
    job.record()
    os.makedirs(folder, exist_ok=True)
    base, clocks, spans = 1_700_000_000_000_000_000, [], {}
    for rank, ops in sorted(job.records.items()):
        host = rank // o["per_host"]
        unit = [int.from_bytes(hashlib.sha256(f"{o['seed']} clock {host} {k}".encode()).digest()[:8], "big") / 2**63 - 1 for k in (0, 1)]
        offset = unit[0] * o["clocks"] * 1e3 if host else 0.0  # ns
        drift = unit[1] * 50e-6 if host and o["clocks"] else 0.0
        clocks.append(dict(rank=rank, host=f"host{host}", offset_ns=offset, drift=drift))
        for op in ops:
            low, high = spans.setdefault(op["step"], [op["start_ns"], 0])
            spans[op["step"]] = [min(low, op["start_ns"]), max(high, op["start_ns"] + op["duration_ns"])]
        shown = []
        for op in ops:
            start, end = op["start_ns"], op["start_ns"] + op["duration_ns"]
            own = [base + round(t + offset + drift * t) for t in (start, end)]
            shown.append(dict(op, start_ns=own[0], duration_ns=own[1] - own[0]))
        marks = {}
        for op in shown:
            low, high = marks.setdefault(op["step"], [op["start_ns"], 0])
            marks[op["step"]] = [min(low, op["start_ns"]), max(high, op["start_ns"] + op["duration_ns"])]
        with open(f"{folder}/rank{rank}.json", "w") as out:
            json.dump(dict(paceline_trace=1, rank=rank, host=f"host{host}", world_size=o["ranks"], groups=dict(all=list(range(o["ranks"]))),
                           steps=[dict(number=s, start_ns=a, duration_ns=b - a) for s, (a, b) in sorted(marks.items())], ops=shown), out)
    with open(f"{folder}.truth.json", "w") as out:
        json.dump(dict(steps_s=[(b - a) * 1e-9 for _, (a, b) in sorted(spans.items())], clocks=clocks, options=o, base_ns=base,
                       end_ns=max(b for _, b in spans.values())), out)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
