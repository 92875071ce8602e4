#!/usr/bin/env python3
"""Scaling of one sweep (GPT-2 345M on 16 T4): candidates per second and core with more threads or ranks against one
thread, and CPU time per candidate against that of one thread, which says how much of a loss is the program's (contention,
waiting awake) and how much the machine's, where others run."""
import json
import tempfile

import bench
from bench import CORES, PROGRAM, SMALL, Run, model, ratio

JOB = ["sweep", "--platform", "platforms/amp-homogeneous.xml", "--model", model("gpt2-345m"), "--gbs", "32" if SMALL else "256",
       "--force", "--json"] + (["--pp", "4"] if SMALL else [])
SHAPES = dict.fromkeys([(1, 2), (1, CORES), (2, 1), (CORES, 1), (2, max(1, CORES // 2))])  # ranks, threads; each once


def measure(folder, ranks, threads):
    run = Run(PROGRAM, JOB + ["--threads", str(threads), "-o", f"{folder}/bench.h5"], ranks)
    result = json.loads(run.output)
    return result["simulated_now"] / result["elapsed_s"], run.cpu_s / result["simulated_now"]


with tempfile.TemporaryDirectory() as folder:
    one = measure(folder, 1, 1)
    for ranks, threads in SHAPES:
        pairs = [(measure(folder, ranks, threads), one if i == 0 else measure(folder, 1, 1)) for i in range(1 if SMALL else 3)]
        name = f"sweep, {ranks} ranks x {threads} threads on {CORES} cores"
        cores = min(ranks * threads, CORES)
        ratio(f"{name}: candidates per second and core", "1 x 1", [rate / base / cores for (rate, _), (base, _) in pairs])
        ratio(f"{name}: CPU time per candidate", "1 x 1", [cpu / base for (_, cpu), (_, base) in pairs])
bench.end("sweep_bench")
