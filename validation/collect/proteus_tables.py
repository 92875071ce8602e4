#!/usr/bin/env python3
"""Proteus's evaluation (Duan et al., arXiv:2306.02267, section VIII) beside ours: python3 proteus_tables.py prints validation/papers/proteus.md.
PACELINE names the program, BENCH tests' data_parallel_bench; both, and the working folder, of this repository."""
import csv
import json
import os
import re
import resource
import subprocess
import tempfile

PACELINE = os.environ.get("PACELINE", "paceline")
BENCH = os.environ.get("BENCH", ".build/release/tests/data_parallel_bench")
HC = {"HC1": ("hc1", 8), "HC2": ("hc2", 32), "HC3": ("hc3", 16)}
TABLE6 = {1: (0.039, 0.258), 2: (0.460, 0.792), 4: (0.644, 1.196), 8: (0.733, 1.881), 16: (0.966, 3.138), 32: (1.698, 6.265)}
# What its published code took here, compile and execute, on 1, 8, 32 and 256 GPUs (the best of several runs).
HERE = {"GPT-2": {1: 0.34, 8: 1.96, 32: 5.3, 256: 113.0}, "VGG-19": {1: 0.13, 8: 0.51, 32: 1.2}}
MODEL = "workloads/models/%s.json"


def run(*args):
    done = subprocess.run([PACELINE, *args], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None, done.stderr.strip()


def simulate(platform, model, gbs, strategy, *more):
    pictures = model.startswith(("vgg", "resnet", "inception", "dlrm"))
    args = ["simulate", "--platform", platform, "--model", MODEL % model, "--gbs", str(gbs), "--dtype", "fp32", "--json", "--strategy", strategy]
    out, error = run(*args, *([] if pictures else ["--seq", "1024"]), *more)
    return (json.loads(out), "") if out else (None, error)


def table5():
    table = "validation/papers/proteus_table5.csv"
    with open(table) as file:
        lines = [next(csv.reader([line])) for line in file]
    of_line = {number + 1: dict(zip(lines[0], cells)) for number, cells in enumerate(lines)}
    told = json.loads(run("validate", table, "--json")[0])
    print("| cluster | strategy dp x tp x pp, microbatch | measured | Proteus | ours |\n|---|---|--:|--:|--:|")
    correlations = []
    for order in told["orders"]:
        if "run_gpt" in order["family"]:
            continue
        cluster = "HC1" if order["gpu"] == "TITAN Xp" else "HC2"
        correlations.append("%s %.3f" % (cluster, order["spearman"]))
        for row in sorted(order["configurations"], key=lambda r: r["measured_rank"]):
            cells = of_line[row["line"]]
            print("| %s | %s x %s x %s, %s | %d | %d | %d |" % (cluster, cells["dp"], cells["tp"], cells["pp"], cells["mbs"], row["measured_rank"],
                  row["other_rank"], row["rank"]))
    return ", ".join(correlations)


def tree(text):
    file = tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False)
    file.write(text)
    file.close()
    return file.name


def cut(n, what, dimension):
    """All on n GPUs data parallel but `what`, whose `dimension` is cut in 8."""
    way = "%s: 8" % dimension if n == 8 else "b: %d, %s: 8" % (n // 8, dimension)
    return tree("partition: {b: %d}\nchildren:\n  - {match: %s, partition: {%s}}\n" % (n, what, way))


def pairs(n):
    """Model, samples per GPU, and (name, strategy) of S1 and S2 on n GPUs."""
    data = "pp=1,dp=%d,tmp=1,mbs=%%d" % n
    yield "ResNet50", "resnet-50", 32, [("data parallel", data % 32)]
    yield "Inception v3", "inception-v3", 32, [("data parallel", data % 32)]
    yield "VGG19", "vgg-19", 32, [("data parallel", data % 32), ("one weird trick, linears in 8", cut(n, "h.*, ops: product", "o"))]
    yield "GPT-2", "gpt2-117m", 4, [("data parallel", data % 4), ("op shard 2", "pp=1,dp=%d,tmp=2,mbs=8" % (n // 2))]
    yield "GPT-1.5B", "gpt2-1.5b", 1, [("ZeRO 3, recomputation", (data % 1) + ",zero=3,recompute=full"),
                                       ("pipeline 2, recomputation", "pp=2,dp=%d,tmp=1,mbs=1,recompute=full" % (n // 2))]
    yield "DLRM", "dlrm-516m", 128, [("data parallel", tree("partition: {b: %d}\n" % n)), ("8 groups of tables", cut(n, "tables*", "n"))]


def table4():
    print("| model | pair | " + " | ".join("%s, %d GPUs" % (hc, n) for hc, (_, n) in HC.items()) + " |\n|---|---|" + "--:|" * len(HC))
    cells = {}
    for hc, (platform, n) in HC.items():
        for model, file, each, strategies in pairs(n):
            for number, (name, strategy) in enumerate(strategies):
                row, error = simulate(platform, file, each * n, strategy)
                key = (model, "S%d, %s" % (number + 1, name))
                if row is None:
                    cells.setdefault(key, []).append("refused")
                    print("<!-- %s %s %s: %s -->" % (hc, *key, error)) if os.environ.get("DEBUG") else None
                    continue
                speed = row.get("samples_per_s", each * n / row["iter_time_s"])
                verdict = "" if "fits" not in row else ", fits" if row["fits"] else ", **out of memory**"
                cells.setdefault(key, []).append("%.4g/s%s" % (speed, verdict))
    for (model, pair), row in cells.items():
        print("| %s | %s | %s |" % (model, pair, " | ".join(row)))


def measure(model):
    out = subprocess.run([BENCH, MODEL % model, "1024" if "gpt" in model else "1"], capture_output=True, text=True, check=True).stdout
    return {int(n): tuple(map(float, times)) for n, *times in re.findall(r"^ *(\d+) GPUs: first ([\d.]+) ms, then ([\d.]+) ms, with caches ([\d.]+) ms", out, re.M)}


def cpu_ms(strategy):
    """Of 20 runs, the median."""
    times = []
    for _ in range(20):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("program", "print", "--model", MODEL % "gpt2-345m", "--gbs", "32", "--seq", "1024", "--strategy", strategy)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1e3 * sorted(times)[10]


def trees():
    same = "pp=2,dp=2,tmp=2,mbs=4,recompute=full,zero=1"
    return cpu_ms("workloads/strategies/gpt-megatron-3d.yaml"), cpu_ms(same), same


def table6():
    ours = {"VGG-19": measure("vgg-19"), "GPT-2": measure("gpt2-117m")}
    print("| GPUs | VGG19: paper | here | ours | times | GPT-2: paper | here | ours | times |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for n in sorted(ours["GPT-2"]):
        cells = []
        for at, name in enumerate(("VGG-19", "GPT-2")):
            paper, here = TABLE6.get(n, (None, None))[at], HERE[name].get(n)
            own = ours[name][n][1] * 1e-3
            against = here if here else paper
            cells += ["%.3g s" % paper if paper else "", "%.3g s" % here if here else "", "%.2f ms" % (1e3 * own), "%.0f" % (against / own) if against else ""]
        print("| %d | %s |" % (n, " | ".join(cells)))
    large, small = ours["GPT-2"][4096], ours["GPT-2"][32]
    return large[1] / small[1], large[2], small[2], large[2] / small[2], *trees()


FIGURE9 = [("VGG19", "vgg-19", "hc1", 32 * 8, "pp=1,dp=8,tmp=1,mbs=32"), ("VGG19", "vgg-19", "hc2", 32 * 32, "pp=1,dp=32,tmp=1,mbs=32"),
           ("GPT-2", "gpt2-117m", "hc1", 8, "pp=1,dp=4,tmp=2,mbs=2"), ("GPT-2", "gpt2-117m", "hc1", 8, "pp=2,dp=2,tmp=2,mbs=2"),
           ("GPT-2", "gpt2-117m", "hc2", 64, "pp=1,dp=8,tmp=2,mbs=8,idle=1"), ("GPT-2", "gpt2-117m", "hc2", 64, "pp=1,dp=4,tmp=4,mbs=16,idle=1"),
           ("GPT-2", "gpt2-117m", "hc2", 64, "pp=2,dp=2,tmp=4,mbs=8,idle=1")]


def figure9():
    kinds = ["proteus-plain", "proteus-overlap", "proteus-sharing", "proteus"]
    print("| job | engine | " + " | ".join(k.replace("proteus-", "") for k in kinds) + " |\n|---|--:|" + "--:|" * len(kinds))
    sums = [0.0] * len(kinds)
    for title, model, platform, gbs, strategy in FIGURE9:
        own = simulate(platform, model, gbs, strategy)[0]["iter_time_s"]
        row = []
        for at, kind in enumerate(kinds):
            time = simulate(platform, model, gbs, strategy, "--executor", kind)[0]["iter_time_s"]
            sums[at] += abs(time / own - 1)
            row.append("%+.1f %%" % (100 * (time / own - 1)))
        print("| %s on %s, `%s` | %.1f ms | %s |" % (title, platform.upper(), strategy.replace(",idle=1", ""), 1e3 * own, " | ".join(row)))
    print("| mean of the absolute values | | " + " | ".join("%.1f %%" % (100 * s / len(FIGURE9)) for s in sums) + " |")


def main():
    print("""# Proteus's evaluation beside ours

Duan et al., arXiv:2306.02267, section VIII: what the paper prints, beside what Paceline says of the same jobs. [collect/proteus_tables.py](../collect/proteus_tables.py) prints this page; nothing was fitted to it.
HC1 is a node of 8 TITAN Xp, HC2 4 nodes of 8 V100, HC3 2 of 8 A100 ([platforms](../../platforms/README.md)). fp32; samples are 1,024 tokens, or a picture.

## Table V: the order of 13 strategies of GPT-2
""")
    correlation = table5()
    print("""
Rank correlation with what was measured: %s (Proteus: 1 on both). Elsewhere: [README](README.md).

## Table IV: six models, two strategies, three clusters

The paper prints errors, and its throughputs in a figure alone: no numbers to compare with. Batches are said for VGG19 (32 per GPU) only; here 32 pictures, 4 sequences (GPT-1.5B: 1) or 128 queries per GPU. S2 of ResNet50 and Inception v3 cuts
output channels in degrees that are not said, and is left out; GPT-1.5B has 25 heads, which no power of two divides: its S2 is without op shard. What is a strategy tree (one weird trick, DLRM) runs as the program that it makes, in kernels, its layouts chosen by what collectives take there.
""" % correlation)
    table4()
    print("""
## Table VI: what a prediction costs

Compile and execute, data parallel on HC2. "Paper" is its table VI; "here" its published code, run by us on four shared cores; "ours" is CPU time of `pl_simulate` (program, folding, compilation and run; the platform is loaded and
its routes are known; nothing else is kept), the median of 15 in one process (`tests/bench/data_parallel_bench.c`); "times" is against "here" where there is one, else the paper.
""")
    costs = table6()
    print("""
Of one simulation alone the 4,096 GPUs take %.1f times what 32 do (1.98 times the instructions, 31.7 of 16.0 million): nodes that are wired alike are looked at once
(`netmodel/platform/node_shape.h`), what is left goes through lists of GPUs and links. With the caches that a sweep or search keeps from one candidate to the next (groups, folds,
blocks) it is %.3f ms against %.3f ms, %.0f times: lists of ranks are still gone through.

A strategy tree costs what the tuple costs that says the same: `program print` of GPT-2 345M takes %.1f ms of CPU time with `gpt-megatron-3d.yaml` and %.1f ms with `%s`;
`simulate` as a whole takes at most 1.2 times the instructions of its tuple ([trees_bench](../../tests/bench/README.md)).

## Figure 9: what its executor's rules change

`simulate --executor proteus` runs the same graph by the rules of HTAE (`core/engine/htae.h`); `plain`, `overlap` and `sharing` leave rules out, as figure 9 does. Measured times are not in the paper (it has an average error of 14.4 %% for plain and
2.4 %% for all): the columns are differences to our engine, where transfers share links for exactly as long as they do and the overlap factor acts only while something overlaps.
""" % costs)
    figure9()


main()
