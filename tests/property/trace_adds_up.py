#!/usr/bin/env python3
"""A timeline shows the run that the row tells of: of jobs with host time, contexts, experts, recomputation and interleaving,
the slices are valid JSON of known categories, none is nameless, none ends after the iteration and the last one ends with it;
on each device's compute track none overlaps another, computing adds up to the row's compute_s, and communication to no less
than what the row calls exposed. A pass encloses its parts; the memory counters peak at what the program needs beside its buffers;
every arrow has two ends, the second not before the first. A window of microbatches shows those and no other, compressed or not. Read with Python's json alone, from what `simulate --trace` writes."""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

os.chdir(os.environ.get("SOURCE_DIR", "."))
COMPUTING = {"forward", "backward", "recompute", "optimizer", "host"}
COMMUNICATING = {"tensor": "tensor_comm_s", "pipeline": "pipeline_comm_s", "data": "data_comm_s", "context": "context_comm_s", "expert": "expert_comm_s"}
GRAIN_S = 1e-12  # dates have six decimals of a microsecond
JOBS = [  # platform, model, gbs, seq, strategy, options, categories that must be there
    ("amp-homogeneous", "gpt2-345m", 16, 1024, "pp=4,dp=4,tmp=1,mbs=1", [], {"forward", "backward", "optimizer", "pipeline", "data"}),
    ("dgx-a100", "llama-2-7b", 8, 1024, "pp=2,dp=1,tmp=4,mbs=1,vpp=2,recompute=full", ["--framework", "nanotron"], {"host", "tensor", "recompute"}),
    ("dgx-h100-16", "llama-3-8b", 16, 16384, "pp=2,dp=2,tmp=2,cp=4,mbs=1,sp=1,idle=1", ["--framework", "megatron-core"], {"context", "tensor"}),
    ("dgx-h100-16", "mixtral-8x7b", 64, 2048, "pp=2,dp=8,tmp=4,mbs=1,sp=1,ep=8,zero=1,idle=1", ["--framework", "nemo"], {"expert", "tensor", "data"}),
    ("dgx-1v", "resnet-50", 64, 1, "pp=1,dp=8,tmp=1,mbs=8", ["--framework", "torch-ddp"], {"forward", "backward", "data"}),
]


def near(a, b, n):
    return abs(a - b) <= 1e-9 * abs(b) + n * GRAIN_S


def check_passes(passes, slices, wrong):
    """Each part of a fused task lies in it, and the parts of one track fill it."""
    parts = {}
    for part in slices:
        parts.setdefault((part["args"]["task"], part["pid"], part["tid"]), []).append(part)
    for parent in passes:
        own = parts.get((parent["args"]["task"], parent["pid"], parent["tid"]), [])
        end = parent["ts"] + parent["dur"]
        if parent["args"]["category"] not in COMPUTING or parent["name"] in COMMUNICATING:
            wrong.append(f"a pass called {parent['name']}, of category {parent['args']['category']}")
            return
        if not own or any(p["ts"] < parent["ts"] - 2e-6 or p["ts"] + p["dur"] > end + 2e-6 for p in own):
            wrong.append(f"a pass without its parts in it: task {parent['args']['task']}")
            return


def check_blocks(blocks, slices, has_layers, wrong):
    """The parent of a block's ops begins and ends with one of them, and those in it fill it; computing says what it computes."""
    parts = {}
    for part in slices:
        parts.setdefault((part["args"]["task"], part["pid"], part["tid"]), []).append(part)
    for block in blocks:
        own = parts.get((block["args"]["task"], block["pid"], block["tid"]), [])
        end = block["ts"] + block["dur"]
        inside = [p for p in own if p["ts"] >= block["ts"] - 2e-6 and p["ts"] + p["dur"] <= end + 2e-6]
        if not inside or abs(sum(p["dur"] for p in inside) - block["dur"]) > 2e-6 * (len(inside) + 1):
            wrong.append(f"a block '{block['name']}' that its ops do not fill: task {block['args']['task']}")
            return
    if has_layers and not any(re.match(r"layer \d+$", block["name"]) for block in blocks):
        wrong.append("no layer has a parent")
    if not any(part["args"].get("flops", 0) > 0 and part["args"].get("bytes", 0) > 0 for part in slices):
        wrong.append("no op says its FLOPs and bytes")


def check_arrows(events, wrong):
    ends = {}
    for event in events:
        if event["ph"] in "sf":
            ends.setdefault(event["id"], []).append((event["ph"], event["ts"], event["pid"]))
    for id, pair in ends.items():
        if [end[0] for end in pair] != ["s", "f"] or pair[0][1] > pair[1][1] or pair[0][2] == pair[1][2]:
            wrong.append(f"arrow {id}: {pair}")
            return


def check_counters(events, devices, row, wrong):
    """On no device do the counters pass the row's peak, and the worst of them comes near it: what is not in them is the buffers of
    communication and what the allocator and the context hold."""
    most = max([e["args"]["GiB"] for e in events if e["ph"] == "C"], default=0) * 2**30
    least = row["mem_parameters_bytes"] + row["mem_gradients_bytes"] + row["mem_optimizer_bytes"]
    if most > row["peak_mem_bytes"] * 1.001 + 2**21 or most < 0.5 * least:
        wrong.append(f"memory counters reach {most / 2**30:.3f} GiB, the row's peak is {row['peak_mem_bytes'] / 2**30:.3f}, of which {least / 2**30:.3f} are always there")


def check_window(job, whole, wrong):
    platform, model, gbs, seq, strategy, options, _ = job
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.json.gz")
        subprocess.run([os.environ["PACELINE"], "simulate", "--platform", f"platforms/{platform}.xml", "--model", f"workloads/models/{model}.json",
                        "--gbs", str(gbs), "--seq", str(seq), "--strategy", strategy, "--trace", path, "--trace-microbatches", "0-0"] + options,
                       capture_output=True, check=True)
        with gzip.open(path) as file:
            window = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    wanted = [e for e in whole if e["ph"] == "X" and e["args"].get("microbatch", 0) == 0]
    if window != wanted:
        wrong.append(f"a window of microbatch 0 has {len(window)} slices, the whole has {len(wanted)} of it")


def check(job, wrong):
    platform, model, gbs, seq, strategy, options, wanted = job
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.json")
        run = subprocess.run([os.environ["PACELINE"], "simulate", "--platform", f"platforms/{platform}.xml", "--model", f"workloads/models/{model}.json",
                              "--gbs", str(gbs), "--seq", str(seq), "--strategy", strategy, "--trace", path, "--json"] + options,
                             capture_output=True, text=True, check=True)
        row = json.loads(run.stdout)
        with open(path) as file:
            text = file.read()
    trace = json.loads(text)
    if "(null)" in text:
        wrong.append("a nameless thing")
    devices, tracks = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "process_name":
            devices[event["pid"]] = int((re.search(r"stands for (\d+) devices", event["args"]["name"]) or [0, "1"])[1])
        elif event["ph"] == "M" and event["name"] == "thread_name":
            tracks[event["pid"], event["tid"]] = event["args"]["name"]
    sums, last, on_track = {}, 0, {}
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] not in ("pass", "block")]
    passes = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "pass"]
    check_passes(passes, slices, wrong)
    check_blocks([e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "block"], slices, job[1] != "resnet-50", wrong)
    check_arrows(trace["traceEvents"], wrong)
    check_counters(trace["traceEvents"], devices, row, wrong)
    if not trace["otherData"]["command"].startswith("paceline simulate --platform ") or trace["otherData"]["strategy"] != strategy:
        wrong.append(f"the header is {trace['otherData']}")
    check_window(job, trace["traceEvents"], wrong)
    for slice in slices:
        if slice["cat"] not in COMPUTING | set(COMMUNICATING) or not slice["name"]:
            wrong.append(f"a slice '{slice['name']}' of category '{slice['cat']}'")
        sums[slice["cat"]] = sums.get(slice["cat"], 0) + devices[slice["pid"]] * slice["dur"] * 1e-6
        last = max(last, slice["ts"] + slice["dur"])
        on_track.setdefault((slice["pid"], slice["tid"]), []).append((slice["ts"], slice["ts"] + slice["dur"]))
    if {pid for (pid, _), name in tracks.items() if name == "compute"} != set(devices):
        wrong.append("a device without a compute track")
    for (pid, tid), spans in on_track.items():
        if tracks.get((pid, tid)) == "compute":
            spans.sort()
            if any(a[1] > b[0] + 2e-6 for a, b in zip(spans, spans[1:])):
                wrong.append(f"slices of device {pid} overlap on its compute track")
    if not near(last * 1e-6, row["iter_time_s"], 1):
        wrong.append(f"the last slice ends at {last * 1e-6}, the iteration at {row['iter_time_s']}")
    n = sum(devices.values())
    computing = sum(sums.get(category, 0) for category in COMPUTING) / n
    if not near(computing, row["compute_s"], len(slices)):
        wrong.append(f"computing adds up to {computing}, the row says {row['compute_s']}")
    for category, column in COMMUNICATING.items():
        if sums.get(category, 0) / n < row[column] * (1 - 1e-9) - len(slices) * GRAIN_S:
            wrong.append(f"{category} adds up to {sums.get(category, 0) / n}, of which {row[column]} are exposed")
    if not wanted <= set(sums):
        wrong.append(f"nothing of {sorted(wanted - set(sums))}")
    return len(slices)


all_wrong = 0
for job in JOBS:
    wrong = []
    n = check(job, wrong)
    print(f"{job[1]} on {job[0]}, {job[4]}: {n} slices" + "".join(f"\n  {w}" for w in wrong))
    all_wrong += len(wrong)
sys.exit(1 if all_wrong else 0)
