#!/usr/bin/env python3
"""AMP's tables (Li et al. 2022, NeurIPS) beside what Paceline simulates. Nothing here is fitted to them.

    amp_tables.py PACELINE strategies    tables 6 to 11, strategy by strategy
    amp_tables.py PACELINE methods       tables 3 to 5, best and mean of each method
    amp_tables.py PACELINE costs         how cost models rank the trials of the homogeneous cluster
    amp_tables.py PACELINE effort        table 2: what a search takes as the cluster grows (--counts: no times)

Run in the root of the source tree. The tables are those printed in the paper (arXiv:2210.07297); the trials are those of
its code (DachengLi1/AMP, src/results/homogeneous_results.txt), as validation/measured/amp_homogeneous.csv has them.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = "validation/calibration/amp_layer_times.csv"
# What AMP ran: Megatron-LM 1.1.5 in DeepSpeed, one of AMP's machines per setup.
SETUPS = {
    "homogeneous": ["--platform", "platforms/amp-homogeneous.xml", "--model", "workloads/models/gpt2-345m.json",
                    "--gbs", "32", "--op-profile", LAYERS],
    "het_cluster": ["--platform", "platforms/amp-hetero-cluster.xml", "--model", "workloads/models/gpt2-345m.json",
                    "--gbs", "32", "--op-profile", LAYERS],
    "het_model": ["--platform", "platforms/amp-p3-4.xml", "--model", "workloads/models/transgan-amp.json",
                  "--gbs", "64", "--op-profile", LAYERS],
}
SOFTWARE = ["--framework", "megatron-lm-1.1.5"]
# The dimensions of AMP's strategies; everything else as its scripts ran it.
AMP_SPACE = ["--schedule", "1f1b", "--zero", "0", "--recompute", "none", "--sp", "off", "--mbs", "1,2,4,8,16,32"]


def rows_of(name):
    with open(os.path.join(HERE, name)) as stream:
        return list(csv.DictReader(stream))


def run(*words):
    done = subprocess.run([PACELINE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"paceline {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def simulate(setup, strategy, *more):
    return run("simulate", *SETUPS[setup], *SOFTWARE, "--strategy", strategy, "--json", *more)


def search(setup, method, *more):
    return run("search", *SETUPS[setup], *SOFTWARE, *AMP_SPACE, "--method", method, "--json", *more)


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            result[i] = (start + end - 1) / 2
        start = end
    return result


def spearman(left, right):
    a, b = ranks(left), ranks(right)
    mean = (len(a) - 1) / 2
    cross = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    return cross / (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5


def regret(predicted, measured):
    chosen = min(range(len(predicted)), key=lambda i: predicted[i])
    return measured[chosen] / min(measured) - 1


# ---- tables 6 to 11 ----

def strategies():
    setups = {}
    print("table  setup        method     mbs  pp  dp  tmp  measured[s]  simulated[s]  ratio  boundaries")
    for row in rows_of("tables6_11_top_strategies.csv"):
        boundaries = row["deepspeed_partition"].replace(" ", ":")
        pp, tmp = boundaries.count(":"), int(row["tp"])  # tables 6 and 10 print other pp than their boundaries have
        dp = 16 // (pp * tmp)
        strategy = f"pp={pp},dp={dp},tmp={tmp},mbs={row['micro_batch']},assign={boundaries}"
        result = simulate(row["setup"], strategy)
        measured, ours = float(row["measured_iter_s"]), result["iter_time_s"]
        setups.setdefault(row["setup"], []).append((measured, ours))
        note = "" if result["fits"] else "  (out of memory)"
        print(f"{row['table']:>5}  {row['setup']:<11}  {row['method']:<9}  {row['micro_batch']:>3}  {pp:>2}  {dp:>2}  "
              f"{tmp:>3}  {measured:>11.2f}  {ours:>12.2f}  {ours / measured:>5.2f}  {boundaries}{note}")
    print("\nsetup        strategies  ratio, mean  spearman  regret of the choice[%]")
    for setup, pairs in setups.items():
        measured, ours = [p[0] for p in pairs], [p[1] for p in pairs]
        mean = sum(o / m for m, o in pairs) / len(pairs)
        print(f"{setup:<11}  {len(pairs):>10}  {mean:>11.2f}  {spearman(measured, ours):>8.2f}  "
              f"{100 * regret(ours, measured):>22.1f}")


# ---- tables 3 to 5 ----

EVERY_ASSIGNMENT = "uniform,balanced,optimal,amp-dp"
# As the paper names them; our method; how many it runs.
METHODS = {"Megatron": ("megatron", 10), "Megatron-LM": ("megatron", 10), "AMP": ("amp", 10), "SA": ("anneal", 10),
           "RS": ("random", 50)}


def of_fitting(found):
    times = [row["iter_time_s"] for row in found["top"]]
    return (min(times), sum(times) / len(times), len(times)) if times else (float("nan"), float("nan"), 0)


def print_method(table, setup, name, paper, ours, simulated):
    print(f"{table:>5}  {setup:<11}  {name:<24}  {paper:>17}  {ours[0]:>7.2f}  {ours[1]:>7.2f}  {simulated:>9}  {ours[2]:>3}")


def uniform_variant(setup, best):
    """AMP's best with Megatron's assignment."""
    keys = ("pp", "dp", "tmp", "mbs")
    row = simulate(setup, ",".join(f"{k}={best[k]}" for k in keys) + ",assign=uniform")
    return (row["iter_time_s"], row["iter_time_s"], 1 if row["fits"] else 0)


def methods():
    print("table  setup        method                    paper min, mean  ours min     mean  simulated  fit")
    for setup in SETUPS:
        table = {"homogeneous": 3, "het_cluster": 4, "het_model": 5}[setup]
        for row in rows_of("tables3_5_summary.csv"):
            if row["setup"] != setup:
                continue
            paper = f"{float(row['min_s']):.2f}, {float(row['mean_s']):.2f}"
            if row["method"] in METHODS:
                method, budget = METHODS[row["method"]]
                found = search(setup, method, "--budget", str(budget), "--top", str(budget))
                print_method(table, setup, f"{row['method']} ({method})", paper, of_fitting(found), found["rows"])
            elif row["method"] == "ours w/ uniform":
                best = search(setup, "amp", "--budget", "10")["top"][0]
                print_method(table, setup, "AMP, layers uniform", paper, uniform_variant(setup, best), 1)
        for name, method, options in (("all of AMP's dimensions", "exhaustive", []),
                                      ("and every assignment", "exhaustive", ["--assign", EVERY_ASSIGNMENT]),
                                      ("placement, 200 at most", "placement", ["--budget", "200"])):
            found = search(setup, method, "--top", "10", *options)
            print_method(table, setup, name, "-", of_fitting(found)[:2] + (found["fit"],), found["rows"])


# ---- the trials ----

def trials():
    with open("validation/measured/amp_homogeneous.csv") as stream:
        return [row for row in csv.DictReader(stream) if row["step_time_s"]]


def published():
    """AMP's own predictions, printed beside its trials."""
    return {(r["tp"], r["pp"], r["dp"], r["micro_batch"]): float(r["predicted_iter_s"])
            for r in rows_of("homogeneous_predictions.csv")}


def amp_estimates(*options):
    import h5py
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "amp.h5")
        setup = [word for word in SETUPS["homogeneous"] if word not in ("--op-profile", LAYERS)]
        run("search", *setup, *SOFTWARE, "--method", "amp", "--mbs", "1,2,4,8,16,32", "--json", "-o", path, *options)
        with h5py.File(path) as found:
            keys = zip(*(found[name][:] for name in ("tmp", "pp", "dp", "mbs")))
            return {tuple(str(k) for k in key): float(e) for key, e in zip(keys, found["estimate_s"][:])}


def costs():
    measured_rows = trials()
    keys = [(r["tp"], r["pp"], r["dp"], r["mbs"]) for r in measured_rows]
    measured = [float(r["step_time_s"]) for r in measured_rows]

    def simulated(*options, layers=True):
        job = SETUPS["homogeneous"] if layers else SETUPS["homogeneous"][:-2]
        times = []
        for key, row in zip(keys, measured_rows):
            strategy = f"pp={key[1]},dp={key[2]},tmp={key[0]},mbs={key[3]},assign={row['assign']}"
            times.append(run("simulate", *job, *SOFTWARE, "--strategy", strategy, "--json", *options)["iter_time_s"])
        return times

    def looked_up(table):
        return [table[key] for key in keys]

    models = [("AMP's, as it printed them", looked_up(published())),
              ("AMP's equations 3 to 5, its layer times", looked_up(amp_estimates("--op-profile", LAYERS))),
              ("the same, our ops' times", looked_up(amp_estimates())),
              ("analytic network, its layer times", simulated("--network", "analytic")),
              ("flow network, its layer times", simulated()),
              ("flow network, our ops' times", simulated(layers=False))]
    print(f"{len(measured)} trials                                 spearman  regret[%]  ratio, mean")
    for name, predicted in models:
        ratio = sum(p / m for p, m in zip(predicted, measured)) / len(measured)
        print(f"{name:<40}  {spearman(predicted, measured):>10.3f}  {100 * regret(predicted, measured):>9.1f}  {ratio:>11.2f}")


# ---- table 2 ----

SIZES = ("2x2", "4x4", "8x8", "16x16", "32x8", "64x8", "128x8")
SEARCHES = (("amp", ["--budget", "10"]), ("anneal", ["--budget", "10"]), ("megatron", []), ("bound", []))


def cluster(folder, size):
    nodes, gpus = size.split("x")
    path = os.path.join(folder, size + ".xml")
    subprocess.run([PACELINE, "platform", "make", "dgx-2", "--nodes", nodes, "--gpus-per-node", gpus, "-o", path],
                   check=True, stdout=subprocess.DEVNULL)
    for name in ("devices", "collectives"):
        if not os.path.exists(os.path.join(folder, name)):
            os.symlink(os.path.abspath("platforms/" + name), os.path.join(folder, name))
    return path


def effort(counts_only):
    paper = {row["cluster"]: float(row["optimization_time_s"]) for row in rows_of("table2_opt_time.csv")}
    first = {}
    with tempfile.TemporaryDirectory() as folder:
        print("cluster  GPUs  paper, to 2x2  method      candidates  simulated" + ("" if counts_only else "  time, to 2x2"))
        for size in SIZES:
            path = cluster(folder, size)
            gpus = int(size.split("x")[0]) * int(size.split("x")[1])
            ratio = f"{paper[size] / paper['2x2']:.1f}" if size in paper else "-"
            for method, options in SEARCHES:
                found = run("search", "--platform", path, "--model", "workloads/models/gpt2-345m.json", "--gbs", "32",
                            "--method", method, "--threads", "1", "--json", *options)
                first.setdefault(method, found["elapsed_s"])
                time = "" if counts_only else f"  {found['elapsed_s'] / first[method]:>12.1f}"
                print(f"{size:<7}  {gpus:>4}  {ratio:>13}  {method:<10}  {found['candidates']:>10}  {found['rows']:>9}{time}")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in ("strategies", "methods", "costs", "effort"):
        sys.exit(__doc__)
    PACELINE = sys.argv[1]
    effort("--counts" in sys.argv[3:]) if sys.argv[2] == "effort" else globals()[sys.argv[2]]()
