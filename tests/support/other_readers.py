#!/usr/bin/env python3
"""What other tools' readers ask of traces, in their terms, where they would refuse a file or read it in silence as something else.

    other_readers.py astra-sim|hta FOLDER

astra-sim: Workload, CommunicatorGroup and Chakra's feeder. hta: HolisticTraceAnalysis' search for ranks and its trace parser."""
import json
import os
import re
import sys

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
TIMED, AS_RECORDED = {0, 2, 6, 7}, {5}  # comm_type: all-reduce, all-gather, all-to-all, reduce-scatter; broadcast


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, "a wire type that the schema has not"
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def records(data):
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        yield fields(data[at:at + size])
        at += size


def packed(values):
    out = []
    for value in values:
        at = 0
        while not isinstance(value, int) and at < len(value):
            number, at = varint(value, at)
            out.append(number)
        if isinstance(value, int):
            out.append(value)
    return out


def node_of(record):
    node = {"id": 0, "type": 0, "after": [], "us": 0, "attributes": {}}
    for key, value in record:
        if key == 1:
            node["id"] = value
        elif key == 3:
            node["type"] = value
        elif key == 5:
            node["after"] += packed([value])
        elif key == 7:
            node["us"] = value
        elif key == 10:
            attribute = dict(fields(value))
            name, (kind, data) = attribute.pop(1).decode(), next(iter(attribute.items()))
            node["attributes"][name] = (kind, data)
    return node


def check_message(node, rank, groups, where):
    says = node["attributes"]
    for name in ("comm_size", "comm_type") if node["type"] == COLLECTIVE else ("comm_size", "comm_src", "comm_dst", "comm_tag"):
        assert name in says, f"{where}: no {name}; ASTRA-sim stops there"
        assert 0 <= says[name][1] < 1 << (63 if name == "comm_size" else 31), f"{where}: {name} {says[name][1]}"
    if node["type"] != COLLECTIVE:
        assert says["comm_src" if node["type"] == SEND else "comm_dst"][1] == rank, f"{where}: an end that is not of this rank"
        return
    assert says["comm_type"][1] in TIMED | AS_RECORDED, f"{where}: comm_type {says['comm_type'][1]} is not supported"
    assert says["comm_type"][1] in AS_RECORDED or says["comm_size"][1] > 0, f"{where}: nothing to send"
    if "pg_name" in says:
        name = says["pg_name"][1].decode()
        assert name.isdigit() and int(name) > 0, f"{where}: group '{name}', which counts as all ranks"
        assert name in groups and rank in groups[name], f"{where}: group {name} has no rank {rank}"


def check_order(nodes, where):
    """Every dependency is there, and none waits in a circle."""
    waits = {k: len(set(n["after"])) for k, n in nodes.items()}
    followers = {k: set() for k in nodes}
    for k, node in nodes.items():
        for before in set(node["after"]):
            assert before in nodes, f"{where}: {k} waits for {before}, which is not there"
            followers[before].add(k)
    ready = [k for k, n in waits.items() if n == 0]
    done = 0
    while ready:
        done += 1
        for k in followers[ready.pop()]:
            waits[k] -= 1
            if waits[k] == 0:
                ready.append(k)
    assert done == len(nodes), f"{where}: {len(nodes) - done} nodes can never start"


def astra_sim(folder):
    with open(f"{folder}/comm_group.json") as file:
        groups = json.load(file)
    assert all(int(name) > 0 for name in groups), "group 0 is reserved"
    files = [name for name in os.listdir(folder) if name.endswith(".et")]
    messages = 0
    for rank in range(len(files)):  # --workload-configuration=FOLDER/trace, one file per NPU from 0 on
        with open(f"{folder}/trace.{rank}.et", "rb") as file:
            _, *bodies = records(file.read())
        nodes = {}
        for body in bodies:
            node = node_of(body)
            where = f"trace.{rank}.et, node {node['id']}"
            assert node["id"] not in nodes, f"{where}: twice"
            nodes[node["id"]] = node
            assert node["type"] in (COMPUTE, SEND, RECEIVE, COLLECTIVE), f"{where}: type {node['type']}"
            kind, on_host = node["attributes"]["is_cpu_op"]
            assert kind == 27 and node["us"] < 1 << 40, f"{where}: is_cpu_op is no bool"
            if node["type"] != COMPUTE:
                assert not on_host, f"{where}: a message on the host"
                check_message(node, rank, groups, where)
                messages += 1
        check_order(nodes, f"trace.{rank}.et")
    print(f"{len(files)} ranks, {messages} messages")


def hta(folder):
    ranks, streams = set(), []
    for name in os.listdir(folder):
        with open(f"{folder}/{name}") as file:
            found = next((m for m in map(re.compile(r'"rank":\s+(\d+)').search, file) if m), None)
        assert found, f"{name}: no rank that is found; taken as rank 0"
        with open(f"{folder}/{name}") as file:
            trace = json.load(file)
        assert int(found.group(1)) == trace["distributedInfo"]["rank"] and int(found.group(1)) not in ranks, name
        ranks.add(int(found.group(1)))
        kernels = [e for e in trace["traceEvents"] if e["cat"] == "kernel"]
        launches = {e["args"]["correlation"] for e in trace["traceEvents"] if e["cat"] == "cuda_runtime" and "correlation" in e["args"]}
        assert any(e["name"].startswith("ProfilerStep#") for e in trace["traceEvents"]), f"{name}: no step"
        for event in trace["traceEvents"]:
            assert {"ph", "cat", "name", "pid", "tid", "ts", "dur"} <= set(event), f"{name}: {event}"
        streams.append({k["tid"] for k in kernels})
        for kernel in kernels:
            assert kernel["args"]["stream"] == kernel["tid"] and kernel["args"].get("correlation", min(launches)) in launches, f"{name}: {kernel}"
            assert ("Collective name" in kernel["args"]) == bool(re.match(r"nccl|ncclDev", kernel["name"])), f"{name}: {kernel}"
    assert ranks == set(range(len(ranks))), ranks
    assert set.intersection(*streams), "no stream of one number on all ranks: stragglers are found by comparing those"
    print(f"{len(ranks)} ranks")


if __name__ == "__main__":
    {"astra-sim": astra_sim, "hta": hta}[sys.argv[1]](sys.argv[2])
