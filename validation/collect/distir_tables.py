#!/usr/bin/env python3
"""DistIR's experiments (Santhanam et al., arXiv:2111.05426) beside ours: python3 distir_tables.py prints validation/papers/distir.md's tables.
PACELINE names the program."""
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile

import h5py

PACELINE = os.environ.get("PACELINE", "paceline")
GPT2 = {"1.6B": (24, 2048), "13B": (40, 5120), "175B": (96, 12288)}
SEQ = 8  # of its GPT-2: figure 4 shows inputs of [256, 8, 768]
BEST = {  # table 2: batch size, its best D/T/P/K
    "mlp-1b": {128: "1/16/1/1", 256: "1/16/1/1", 512: "1/16/1/1", 1024: "1/16/1/1", 2048: "2/8/1/1", 4096: "4/4/1/1", 8192: "4/4/1/1",
               16384: "8/2/1/1", 32768: "8/2/1/1", 65536: "16/1/1/1", 131072: "16/1/1/1", 262144: "16/1/1/1"},
    "mlp-17b": {128: "1/16/1/1", 256: "1/16/1/1", 512: "1/16/1/1", 1024: "1/16/1/1", 2048: "1/16/1/1", 4096: "2/8/1/1", 8192: "4/4/1/1",
                16384: "4/4/1/1", 32768: "2/4/2/8", 65536: "4/2/2/8", 131072: "4/2/2/32"},
    "mlp-103b": {128: "1/16/1/1", 256: "1/16/1/1", 512: "1/16/1/1", 1024: "1/16/1/1"}}
BEST_GPT2 = {"1.6B": (32768, "16/1/1/1", 1.0, 3.7, 2.9), "13B": (16384, "16/1/1/1", 1.0, 2.6, 2.0), "175B": (1024, "1/8/2/2", None, 1.3, 5.6)}


def grid():
    """75: all D T P of 16 in powers of two, 2 to 128 microbatches where there is a pipeline."""
    for d, t, p in itertools.product([1, 2, 4, 8, 16], repeat=3):
        if d * t * p == 16:
            yield from ((d, t, p, k) for k in ([1] if p == 1 else [2, 4, 8, 16, 32, 64, 128]))


def name(config):
    return "/".join(str(part) for part in config)


def sweep(model, gbs):
    """The grid's rows that can be (microbatches of at least one sample): config -> (samples/s, fits), and CPU seconds per candidate."""
    sizes = sorted({gbs // (d * k) for d, _, _, k in grid() if gbs % (d * k) == 0 and gbs // (d * k) > 0})
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([PACELINE, "sweep", "--platform", "dgx-2", "--model", model, "--gbs", str(gbs), "--framework", "distir", "--mbs",
                        ",".join(str(size) for size in sizes if size <= 65536), "--assign", "uniform", "--recompute", "none", "--zero", "0",
                        "--sp", "off", "--schedule", "1f1b", "--threads", "1", "-o", f"{folder}/x.h5", "--quiet"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with h5py.File(f"{folder}/x.h5") as file:
            columns = [file[key][:] for key in ("dp", "tmp", "pp", "n_microbatches", "samples_per_s", "fits")]
    found = {tuple(int(part) for part in row[:4]): (float(row[4]), bool(row[5])) for row in zip(*columns)}
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {config: found[config] for config in grid() if config in found}, cpu / len(columns[0])


def tables_1_and_2():
    print("| model | samples | its best | ours | its best, by ours | of the grid fit |\n|---|--:|---|---|--:|--:|")
    costs, same, total = {}, 0, 0
    for model, best in BEST.items():
        for gbs, theirs in best.items():
            rows, cpu = sweep(model, gbs)
            costs.setdefault(model, []).append(cpu)
            fitting = {config: rate for config, (rate, fits) in rows.items() if fits}
            ours = max(fitting, key=fitting.get)
            wanted = tuple(int(part) for part in theirs.split("/"))
            share = f"{rows[wanted][0] / fitting[ours]:.3f}" if wanted in rows and rows[wanted][1] else "does not fit"
            same, total = same + (wanted == ours), total + 1
            print(f"| {model} | {gbs} | {theirs} | {name(ours)} | {share} | {len(fitting)} of {len(rows)} |")
    print(f"\nThe same best in {same} of {total}.\n")
    for model, cpu in costs.items():
        mean = sum(cpu) / len(cpu)
        print(f"{model}: {1e3 * mean:.3f} ms of CPU a candidate, start and reading of files included; a grid of 75: {75 * mean:.4f} s")


def simulate(model, gbs, config, times):
    """`times` forward passes, one behind the other without a barrier: nothing comes back to the first stage. Seconds, whether it fits."""
    d, t, p, k = config
    done = subprocess.run([PACELINE, "simulate", "--platform", "dgx-2", "--model", model, "--gbs", str(gbs * times), "--seq", str(SEQ), "--inference",
                           "--strategy", f"pp={p},dp={d},tmp={t},mbs={gbs // (d * k)}", "--json"], capture_output=True, text=True)
    return (lambda said: (said["iter_time_s"], said["fits"]))(json.loads(done.stdout)) if done.returncode == 0 else None


def infer(model, gbs, config):
    """Samples/s in a row, as its backend times them (dist_ir/backend/torch.py: "we do not need any synchronization between these events"),
    and whether it fits; None: it cannot be."""
    d, _, p, k = config
    one = simulate(model, gbs, config, 1) if gbs % (d * k) == 0 else None
    if one is None:
        return None
    return (gbs / one[0] if p == 1 else gbs / (simulate(model, gbs, config, 2)[0] - one[0])), one[1]


def best_pure(model, most, config):
    """Of all batch sizes from 128 on that fit."""
    sizes = [128 << i for i in range(20) if 128 << i <= most]
    found = [(rate[0], size) for size in sizes if (rate := infer(model, size, config)) is not None and rate[1]]
    return max(found) if found else None


def table_3(folder):
    print("| model | samples | its best | its best against D, T, P measured | simulated, in a row | best of the grid by ours, one pass |\n|---|--:|---|---|---|---|")
    for size, (layers, hidden) in GPT2.items():
        path = f"{folder}/gpt2-{size}.json"
        with open(path, "w") as file:
            json.dump({"model_type": "gpt2", "n_layer": layers, "n_embd": hidden, "n_head": hidden // 128, "n_positions": 1024, "vocab_size": 50257}, file)
        gbs, theirs, *measured = BEST_GPT2[size]
        wanted = tuple(int(part) for part in theirs.split("/"))
        fitting = [(d, t, p, k) for d, t, p, k in grid() if 12 * layers * hidden**2 * 2 / (t * p) < 32e9]  # weights of 16 bits alone
        rates = {(d, t, p, k): gbs / one[0] for d, t, p, k in fitting if gbs % (d * k) == 0 and (one := simulate(path, gbs, (d, t, p, k), 1)) is not None}
        in_a_row = infer(path, gbs, wanted)[0]
        pure = [best_pure(path, gbs, config) for config in ((16, 1, 1, 1), (1, 16, 1, 1), (1, 1, 16, 128))]
        ratio = [f"{in_a_row / rate[0]:.1f} ({rate[1]})" if rate else "-" for rate in pure]
        best = max(rates, key=rates.get)
        said = [f"{value:.1f}" if value else "-" for value in measured]
        print(f"| GPT-2 {size} | {gbs} | {theirs} | {', '.join(said)} | {', '.join(ratio)} | {name(best)} ({rates[wanted] / rates[best]:.3f}),"
              f" {len(rates)} of {len(fitting)} |")


if __name__ == "__main__":
    if "inference" not in sys.argv:
        tables_1_and_2()
        print()
    with tempfile.TemporaryDirectory() as scratch:
        table_3(scratch)
