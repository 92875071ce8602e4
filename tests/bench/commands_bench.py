#!/usr/bin/env python3
"""What users wait for: CPU time, wall time and memory of whole commands. With BENCH_BASE=<build folder> against another
build of Paceline, in turns, each with the data of its own repository, on the tables that the base has; and, in any case,
against the same command with 16 times the batch, and a strategy tree against its tuple."""
import glob
import os
import tempfile

import bench
from bench import BASE, PROGRAM, SMALL, Run, model, platform, ratio

GPT3 = ["--model", model("gpt3-175b"), "--seq", "2048"]
DEMO = ["--platform", "platforms/dgx-a100-16.xml"] + GPT3
FEW = ["--pp", "8,16", "--tmp", "8", "--recompute", "full"]  # of a small run
TABLES = sorted(glob.glob(f"{os.path.abspath(bench.BASE_SOURCE)}/validation/measured/*.csv"))


def works(folder, program):
    """Name, arguments, how often."""
    large = ["--platform", platform(folder, 8 if SMALL else 128, program)] + GPT3
    few = FEW if SMALL else []
    results = ["--threads", "1", "--force", "--quiet", "-o", f"{folder}/results.h5"]
    stages = "pp=8,dp=8,tmp=1,mbs=1" if SMALL else "pp=96,dp=1,tmp=8,mbs=1,idle=1"
    yield "sweep of 128 A100, gbs 1536", ["sweep"] + DEMO + ["--gbs", "1536"] + few + results, 1
    yield "sweep of 1024 A100, gbs 3072", ["sweep"] + large + ["--gbs", "3072"] + few + results, 1
    yield "search, method bound, of 1024 A100", ["search"] + large + ["--gbs", "1536", "--threads", "1"] + few, 3
    yield "simulate, 96 stages, gbs 3072", ["simulate"] + large + ["--gbs", "192" if SMALL else "3072", "--strategy", stages], 3
    yield "validate, all measured tables", ["validate"] + (["validation/measured/tinyllama.csv"] if SMALL else TABLES), 3


def against_base(folder):
    for (name, of_base, often), (_, own, _) in zip(works(folder, BASE), works(folder, PROGRAM)):
        pairs = [(Run(BASE, of_base), Run(PROGRAM, own)) for _ in range(1 if SMALL else often)]
        ratio(f"{name}: CPU time, base", "this build", [base.cpu_s / own.cpu_s for base, own in pairs])
        ratio(f"{name}: wall time, base", "this build", [base.wall_s / own.wall_s for base, own in pairs])
        ratio(f"{name}: memory, base", "this build", [base.peak_bytes / own.peak_bytes for base, own in pairs])


def batches(folder):
    space = ["--pp", "4,8,16", "--mbs", "1,2", "--recompute", "full"] + (["--tmp", "8"] if SMALL else [])
    job = ["sweep"] + DEMO + space + ["--threads", "1", "--force", "--quiet", "-o", f"{folder}/results.h5", "--gbs"]
    few, many = ("192", "3072") if SMALL else ("1536", "24576")
    pairs = [(Run(PROGRAM, job + [many]), Run(PROGRAM, job + [few])) for _ in range(1 if SMALL else 3)]
    ratio("sweep with 16 times the batch: CPU time", "with the batch", [a.cpu_s / b.cpu_s for a, b in pairs])


TREE = """mesh: {{dp: 2, tp: 8}}
pipeline: {{stages: 8}}
schedule: {{microbatches: {}, kind: 1f1b}}
partition: {{b: dp, v|g|r|f: tp}}
"""


def trees(folder):
    """A strategy tree against the tuple that says the same, and against itself with fewer microbatches."""
    def run(microbatches, strategy):
        return Run(PROGRAM, ["simulate"] + DEMO + ["--gbs", str(2 * microbatches), "--strategy", strategy])

    few, many = 48, 96 if SMALL else 768
    for n in few, many:
        with open(f"{folder}/{n}.yaml", "w") as file:
            file.write(TREE.format(n))
    runs = [(run(many, f"{folder}/{many}.yaml"), run(few, f"{folder}/{few}.yaml"), run(many, "pp=8,dp=2,tmp=8,mbs=1"))
            for _ in range(1 if SMALL else 5)]
    ratio(f"tree of {many} microbatches: CPU time", f"with {few}", [a.cpu_s / b.cpu_s for a, b, _ in runs])
    ratio(f"tree of {many} microbatches: CPU time", "its tuple", [a.cpu_s / c.cpu_s for a, _, c in runs])
    ratio(f"tree of {many} microbatches: memory", "its tuple", [a.peak_bytes / c.peak_bytes for a, _, c in runs])


with tempfile.TemporaryDirectory() as folder:
    if BASE is not None:
        against_base(folder)
    batches(folder)
    trees(folder)
bench.end("commands_bench")
