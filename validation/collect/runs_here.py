#!/usr/bin/python3
"""Predicted beside measured on this machine: grids of D (data), T (tensor) and P (pipeline) over 1, 2 and 4 ranks.

For each number of ranks: `paceline calibrate --this-machine` with so many ranks, then every program of the grid is made,
predicted on that platform and run. Nothing is fitted to the programs of the grid: calibration runs other models.

    validation/collect/runs_here.py --paceline .build/release/paceline -o out

writes out/runs.csv (as `paceline validate` reads it), the programs and platforms beside it, and out/README.md, the table.
"""
import argparse
import json
import os
import subprocess
import sys

MODELS = {  # name: (config, gbs, seq); none of them is among those that calibration runs
    "mlp-64": ({"model_type": "mlp", "num_hidden_layers": 8, "hidden_size": 64}, 64, 1),
    "mlp-128": ({"model_type": "mlp", "num_hidden_layers": 4, "hidden_size": 128}, 16, 1),
    "mlp-256": ({"model_type": "mlp", "num_hidden_layers": 4, "hidden_size": 256}, 64, 1),
    "gpt-16": ({"model_type": "gpt2", "n_layer": 4, "n_embd": 16, "n_head": 4, "n_positions": 16, "vocab_size": 64}, 8, 16),
    "gpt-48": ({"model_type": "gpt2", "n_layer": 4, "n_embd": 48, "n_head": 4, "n_positions": 16, "vocab_size": 128}, 8, 16),
}
ENVIRONMENT = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def grid(n):
    return [(d, t, n // d // t) for d in (1, 2, 4) for t in (1, 2, 4) if n % (d * t) == 0]


def run(command, ranks=0):
    if ranks:
        command = ["mpirun", "-n", str(ranks)] + command
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def ranks_of(values):
    """Places of values, ties in the middle."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    places = [0.0] * len(values)
    i = 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in range(i, j + 1):
            places[order[k]] = (i + j) / 2
        i = j + 1
    return places


def spearman(a, b):
    x, y = ranks_of(a), ranks_of(b)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    sxy = sum((p - mx) * (q - my) for p, q in zip(x, y))
    sxx, syy = sum((p - mx) ** 2 for p in x), sum((q - my) ** 2 for q in y)
    return sxy / (sxx * syy) ** 0.5 if sxx > 0 and syy > 0 else float("nan")


def mape(rows):
    return 100 * sum(abs(r["predicted_s"] / r["measured_s"] - 1) for r in rows) / len(rows)


def measure(own, folder, n, name, degrees):
    config, gbs, seq = MODELS[name]
    d, t, p = degrees
    mbs = gbs // d // (4 if p > 1 else 1)
    with open(f"{folder}/{name}.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    program = f"{folder}/{name}-d{d}t{t}p{p}.plir"
    run([own.paceline, "program", "print", "--force", "--model", f"{folder}/{name}.json", "--gbs", str(gbs), "--seq", str(seq),
         "--dtype", "fp32", "--strategy", f"pp={p},dp={d},tmp={t},mbs={mbs}", "-o", program])
    csv = f"{folder}/row.csv"
    result = json.loads(run([own.paceline, "run", program, "--iterations", str(own.iterations), "--platform",
                             f"{folder}/here{n}/platform.xml", "--csv", csv, "--least", "--force", "--json"], n))
    with open(csv, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return {"ranks": n, "model": name, "d": d, "t": t, "p": p, "mbs": mbs, "header": lines[0], "row": lines[1],
            "measured_s": result["iter_time_least_s"], "median_s": result["iter_time_s"], "predicted_s": result["predicted_s"],
            "sent": result["communication_s"] / result["iter_time_s"]}


def table(rows):
    yield "| ranks | model | D | T | P | mbs | least | median | moves and waiting | predicted | error |"
    yield "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for r in rows:
        yield (f"| {r['ranks']} | {r['model']} | {r['d']} | {r['t']} | {r['p']} | {r['mbs']} | {1e3 * r['measured_s']:.2f} ms | "
               f"{1e3 * r['median_s']:.2f} ms | {100 * r['sent']:.0f} % | {1e3 * r['predicted_s']:.2f} ms | "
               f"{100 * (r['predicted_s'] / r['measured_s'] - 1):+.0f} % |")


def summary(rows):
    yield "| | programs | MAPE | bias | Spearman |"
    yield "|---|--:|--:|--:|--:|"
    groups = [(f"{n} rank{'s' if n > 1 else ''}", [r for r in rows if r["ranks"] == n]) for n in sorted({r["ranks"] for r in rows})]
    groups += [(name, [r for r in rows if r["model"] == name]) for name in MODELS]
    for name, some in groups + [("all", rows)]:
        bias = 100 * sum(r["predicted_s"] / r["measured_s"] - 1 for r in some) / len(some)
        order = spearman([r["predicted_s"] for r in some], [r["measured_s"] for r in some])
        yield f"| {name} | {len(some)} | {mape(some):.1f} % | {bias:+.1f} % | {order:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paceline", default="paceline")
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("-o", "--output", required=True)
    own = parser.parse_args()
    own.paceline = os.path.abspath(own.paceline) if "/" in own.paceline else own.paceline
    folder = own.output
    os.makedirs(folder, exist_ok=True)
    rows, profiles = [], []
    for n in (int(text) for text in own.ranks.split(",")):
        said = run([own.paceline, "calibrate", "--this-machine", "-o", f"{folder}/here{n}", "--force"], n)
        profiles.append(said.split("\n\n")[0])
        load = os.getloadavg()[0]
        for name in own.models.split(","):
            rows += [measure(own, folder, n, name, degrees) for degrees in grid(n)]
        profiles[-1] += f"\nload of the machine when that was done and when the runs were: {load:.1f}, {os.getloadavg()[0]:.1f}"
    with open(f"{folder}/runs.csv", "w", encoding="utf-8") as file:
        file.writelines([rows[0]["header"]] + [r["row"] for r in rows])
    text = "\n".join(["\n".join(summary(rows)), "", "\n".join(table(rows)), "", "```"] + profiles + ["```", ""])
    with open(f"{folder}/README.md", "w", encoding="utf-8") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
