#!/usr/bin/env python3
"""Predicted beside measured, for published iteration times in validation/measured/.

Each row becomes a platform (`paceline platform make`), a model (a Hugging Face config.json) and a strategy, is simulated
once and set beside the time that was published. How a row is read is in validation/README.md. Nothing is fitted here: the
device profiles and the platforms are the ones that everybody else gets, so the errors say how good those are.

    validation/compare.py                        the tables, as Markdown
    validation/compare.py --short                only the errors per family
    validation/compare.py --csv FILE --svg FILE  also one line per row; the scatter plot

Standard library only. PACELINE names the program (default: .build/release/paceline)."""

import argparse
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import scatter

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ["compute", "tensor_comm", "pipeline_comm", "data_comm", "bubble"]
FAMILIES = {"megatron_lm_readme": "Megatron-LM README", "paper_megatron_sc21": "SC21 paper"}
# To turn FLOPs and bytes into shares of what the machines could do: dense 16-bit peak; the NICs of a DGX A100 together.
PEAK_FLOPS = {"V100": 125e12, "A100": 312e12}
NODE_BPS = 8 * 25e9
NEEDED = ["gpu", "n_gpus", "gpus_per_node", "n_layers", "hidden", "n_heads", "seq_len", "vocab", "gbs", "recompute", "step_time_s"]


class Inexpressible(Exception):
    """A row that no platform, model or strategy of ours stands for; the text says why."""


def number(row, column, default=None):
    return int(row[column]) if row.get(column) else default


def platform_of(row):
    """The arguments of `paceline platform make`."""
    n_gpus, per_node = number(row, "n_gpus"), number(row, "gpus_per_node")
    if "DGX-2" in row["gpu"]:
        machine = ["dgx-2"]
    elif "A100-80GB" in row["gpu"] or "A100-SXM4-80GB" in row["gpu"]:
        machine = ["dgx-a100"]
    elif "DGX-A100" in row["gpu"]:  # the README's table is of November 2020: the DGX A100 had 40 GB per GPU then
        machine = ["dgx-a100", "--device", "A100-SXM4-40GB"]
    else:
        raise Inexpressible(f"no machine for GPU '{row['gpu']}'")
    if n_gpus < per_node:
        return machine + ["--gpus-per-node", str(n_gpus)]
    if n_gpus % per_node:
        raise Inexpressible(f"{n_gpus} GPUs are no whole number of nodes of {per_node}")
    return machine + ["--nodes", str(n_gpus // per_node)]


def model_of(row):
    """A config.json of the GPT-2 family: Megatron's GPT is that, with other sizes."""
    return {
        "name": row["model"],
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_layer": number(row, "n_layers"),
        "n_embd": number(row, "hidden"),
        "n_inner": number(row, "ffn_hidden"),
        "n_head": number(row, "n_heads"),
        "n_positions": number(row, "seq_len"),
        "vocab_size": number(row, "vocab"),
    }


def microbatch_of(row):
    """Published, or all that a replica has at once; with a pipeline the example script that the README means says 1."""
    if row["mbs"]:
        return number(row, "mbs")
    return 1 if number(row, "pp", 1) > 1 else number(row, "gbs") // number(row, "dp", 1)


def strategy_of(row):
    recompute = row["recompute"].split()[0]
    if recompute not in ("none", "selective", "full"):
        raise Inexpressible(f"recomputation '{row['recompute']}'")
    zero = number(row, "zero_stage", 0)
    fields = {
        "pp": number(row, "pp", 1),
        "dp": number(row, "dp", 1),
        "tmp": number(row, "tp", 1),
        "mbs": microbatch_of(row),
        "recompute": recompute,
        "zero": zero,
        # Megatron-LM of 2020 and 2021 reduced its gradients behind the last backward pass; DeepSpeed's ZeRO-3 prefetches.
        "overlap": number(row, "overlap", 1 if zero == 3 else 0),
    }
    if number(row, "vpp", 1) > 1:
        fields.update(schedule="interleaved", vpp=number(row, "vpp"))
    return fields


def interleaved(row):
    """Cut into as few chunks as divide the layers of a stage."""
    if number(row, "pp", 1) == 1:
        return None
    layers = number(row, "n_layers") // number(row, "pp")
    return row | {"vpp": str(next(v for v in range(2, layers + 1) if layers % v == 0))}


def overlapped(row):
    return row | {"overlap": "1"} if number(row, "pp", 1) == 1 and number(row, "dp", 1) > 1 and not row["zero_stage"] else None


def with_80_GB(row):
    return row | {"gpu": "A100-80GB-SXM"} if row["gpu"] == "A100 (DGX-A100)" else None


# What the sources leave open, with the other way to read it: None where that makes no difference.
OPEN_QUESTIONS = [
    ("Gradients reduced behind the backward pass", "overlapped with it", overlapped),
    ("A100 with 40 GB (1.56 TB/s)", "with 80 GB (2.04 TB/s)", with_80_GB),
    ("1F1B", "interleaved, 2 or 3 chunks per stage", interleaved),
]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode == 2:
        raise Inexpressible(done.stderr.strip())
    if done.returncode != 0:
        sys.exit(f"compare.py: exit status {done.returncode} of: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def simulate(paceline, row, folder):
    """The JSON that `paceline simulate` prints for a row."""
    model, arguments = folder / "model.json", platform_of(row)
    platform = folder / ("_".join(arguments).replace("--", "") + ".xml")
    if not platform.exists():
        run(paceline, "platform", "make", *arguments, "-o", platform)
    model.write_text(json.dumps(model_of(row)))
    precision = "bf16" if row["precision"].startswith("bf16") else "fp16"
    strategy = ",".join(f"{key}={value}" for key, value in strategy_of(row).items())
    return json.loads(
        run(paceline, "simulate", "--platform", platform, "--model", model, "--gbs", row["gbs"], "--seq", row["seq_len"],
            "--dtype", precision, "--attention", "unfused", "--strategy", strategy, "--json"))


def model_flops(row):
    """Of one iteration, with recomputation (Narayanan et al. 2021, equation 3)."""
    s, h, layers = number(row, "seq_len"), number(row, "hidden"), number(row, "n_layers")
    return 96 * number(row, "gbs") * s * layers * h * h * (1 + s / (6 * h) + number(row, "vocab") / (16 * layers * h))


def parameters(row):
    """Narayanan et al. 2021, equation 2."""
    s, h, layers = number(row, "seq_len"), number(row, "hidden"), number(row, "n_layers")
    return 12 * layers * h * h * (1 + 13 / (12 * h) + (number(row, "vocab") + s) / (12 * layers * h))


def compare(paceline, row, folder):
    missing = [column for column in NEEDED if not row[column]]
    if missing:
        return {"family": row["family"], "model": row["model"], "gpu": row["gpu"], "n_gpus": row["n_gpus"], "zero": 0,
                "reason": f"not stated: {', '.join(missing)}"}
    zero = number(row, "zero_stage", 0)
    case = {
        "family": row["family"],
        "model": row["model"],
        "gpu": "V100" if "V100" in row["gpu"] else "A100",
        "n_gpus": number(row, "n_gpus"),
        "tp": number(row, "tp", 1),
        "pp": number(row, "pp", 1),
        "dp": number(row, "dp", 1),
        "mbs": microbatch_of(row),
        "zero": zero,
        "gbs": number(row, "gbs"),
        "measured_s": float(row["step_time_s"]),
        "flops": model_flops(row),
        "parameters": parameters(row),
        "reason": "",
    }
    try:
        result = simulate(paceline, row, folder)
    except Inexpressible as why:
        case["reason"] = str(why)
        return case
    case["predicted_s"] = result["iter_time_s"]
    case["error_pct"] = 100 * (result["iter_time_s"] / case["measured_s"] - 1)
    case["fits"] = result["fits"] == 1
    case["peak_mem_bytes"] = result["peak_mem_bytes"]
    for part in PARTS:
        case[part + "_pct"] = 100 * result[part + "_s"] / result["iter_time_s"]
        case[part + "_s"] = result[part + "_s"]
    return case


def tflops(case, column):
    return case["flops"] / case[column] / case["n_gpus"] / 1e12


def print_rows(cases):
    print("| | model | GPUs | tp / pp / dp | mbs | measured s | predicted s | error | TFLOP/s per GPU: measured, predicted |"
          " compute / tensor / pipeline / data / bubble % | fits |")
    print("|--:|---|--:|---|--:|--:|--:|--:|---|---|---|")
    for index, case in enumerate(cases, 1):
        if case["reason"]:
            continue
        layout = f"{case['tp']} / {case['pp']} / {case['dp']}" + (", ZeRO-3" if case["zero"] == 3 else "")
        parts = " / ".join(f"{case[part + '_pct']:.0f}" for part in PARTS)
        print(f"| {index} | {case['model']} | {case['n_gpus']} {case['gpu']} | {layout} | {case['mbs']} |"
              f" {case['measured_s']:.4g} | {case['predicted_s']:.4g} | {case['error_pct']:+.1f} % |"
              f" {tflops(case, 'measured_s'):.0f}, {tflops(case, 'predicted_s'):.0f} | {parts} |"
              f" {'yes' if case['fits'] else 'no'} |")


def groups_of(cases):
    for family, title in FAMILIES.items():
        rows = [case for case in cases if case["family"] == family]
        yield title, rows
        kinds = [("V100", [c for c in rows if c["gpu"] == "V100"]), ("A100", [c for c in rows if c["gpu"] == "A100"]),
                 ("tensor and pipeline", [c for c in rows if c["zero"] == 0]), ("ZeRO-3", [c for c in rows if c["zero"] == 3])]
        for kind, some in kinds:
            if 0 < len(some) < len(rows):
                yield f"&nbsp;&nbsp;{kind}", some


def print_summary(cases):
    print("| | rows | expressed | MAPE | median | 90th percentile | bias |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for title, rows in groups_of(cases):
        errors = [case["error_pct"] for case in rows if not case["reason"]]
        if not errors:
            print(f"| {title} | {len(rows)} | 0 | | | | |")
            continue
        sizes = sorted(abs(e) for e in errors)
        p90 = sizes[math.ceil(0.9 * len(sizes)) - 1]
        print(f"| {title} | {len(rows)} | {len(errors)} | {statistics.fmean(sizes):.1f} % | {statistics.median(sizes):.1f} % |"
              f" {p90:.1f} % | {statistics.fmean(errors):+.1f} % |")


def why(case):
    """What the numbers of one row say about its error; arithmetic on the row, no opinion."""
    reached = 1e12 * tflops(case, "measured_s") / PEAK_FLOPS[case["gpu"]]
    gone = f"The GPUs did {tflops(case, 'measured_s'):.0f} TFLOP/s, {100 * reached:.0f} % of their peak. "
    if case["zero"] == 3:
        traffic = 6 * case["parameters"]  # 2 bytes: gathered forward and backward, gradients scattered
        rate = traffic / case["measured_s"]
        return (gone + f"Two gathers and a reduce-scatter bring {traffic / 1e12:.2g} TB into every node: {traffic / NODE_BPS:.0f} s"
                f" at the nominal rate of its NICs, hidden behind {case['compute_s']:.0f} s of compute. Spread over the measured"
                f" time it is {rate / 1e9:.0f} GB/s, {100 * rate / NODE_BPS:.0f} % of the NICs.")
    rest = case["predicted_s"] - case["compute_s"]
    computed = [case["flops"] / (time - rest) / case["n_gpus"] / 1e12 for time in (case["measured_s"], case["predicted_s"])]
    return (gone + f"If the predicted {rest:.2g} s of exposed communication and bubble are right, they computed at"
            f" {computed[0]:.0f} TFLOP/s where the uncalibrated op costs expect {computed[1]:.0f}.")


def print_worst(cases, n=3):
    for family in FAMILIES:
        some = [(index, case) for index, case in enumerate(cases, 1) if case["family"] == family and not case["reason"]]
        for index, case in sorted(some, key=lambda item: -abs(item[1]["error_pct"]))[:n]:
            print(f"- Row {index}, {case['model']} on {case['n_gpus']} {case['gpu']}, {case['error_pct']:+.0f} %. {why(case)}")


def print_inexpressible(cases):
    for index, case in enumerate(cases, 1):
        if case["reason"]:
            print(f"- Row {index}, {case['model']} on {case['n_gpus']} {case['gpu']}, is not simulated: {case['reason']}")


def print_open_questions(paceline, rows, cases, folder):
    print("| taken | the other way | rows | MAPE, bias as taken | MAPE, bias the other way |")
    print("|---|---|--:|--:|--:|")
    for taken, otherwise, change in OPEN_QUESTIONS:
        pairs = [(case, compare(paceline, change(row), folder)) for row, case in zip(rows, cases)
                 if change(row) is not None and not case["reason"]]
        both = [[pair[i]["error_pct"] for pair in pairs if not pair[1]["reason"]] for i in (0, 1)]
        cells = [f"{statistics.fmean(map(abs, errors)):.1f} %, {statistics.fmean(errors):+.1f} %" for errors in both]
        print(f"| {taken} | {otherwise} | {len(both[0])} | {cells[0]} | {cells[1]} |")


def print_tables(paceline, rows, cases, folder):
    print_rows(cases)
    print("\nThe largest errors of each family:\n")
    print_worst(cases)
    print_inexpressible(cases)
    print("\nWhat the sources leave open:\n")
    print_open_questions(paceline, rows, cases, folder)


def write_csv(path, cases):
    columns = list(dict.fromkeys(column for case in cases for column in case))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(cases)


def read_rows(path, parser):
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        parser.error(f"{path}: {error}")
    absent = [column for column in ["family", "model", *NEEDED] if column not in (reader.fieldnames or [])]
    if absent:
        parser.error(f"{path}: no column {', '.join(absent)}; validation/README.md has the schema")
    for line, row in enumerate(rows, 2):
        if row["family"] not in FAMILIES:
            parser.error(f"{path}: row {line - 1}: family '{row['family']}' is not one of {', '.join(FAMILIES)}")
    return rows


def main():
    parser = argparse.ArgumentParser(description="Predicted beside measured iteration times.")
    parser.add_argument("--paceline", default=os.environ.get("PACELINE", HERE.parent / ".build/release/paceline"))
    parser.add_argument("--measured", default=HERE / "megatron.csv", help="rows to compare")
    parser.add_argument("--short", action="store_true", help="print only the errors per family")
    parser.add_argument("--csv", help="write one line per row")
    parser.add_argument("--svg", help="draw predicted against measured")
    options = parser.parse_args()
    if not os.access(options.paceline, os.X_OK):
        parser.error(f"{options.paceline} is not a program; build first, or name it with --paceline or PACELINE")
    rows = read_rows(options.measured, parser)
    with tempfile.TemporaryDirectory() as folder:
        cases = [compare(options.paceline, row, pathlib.Path(folder)) for row in rows]
        print_summary(cases)
        if not options.short:
            print()
            print_tables(options.paceline, rows, cases, pathlib.Path(folder))
    if options.csv:
        write_csv(options.csv, cases)
    if options.svg:
        scatter.write(options.svg, [case for case in cases if not case["reason"]], FAMILIES)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as problem:
        sys.exit(f"compare.py: {problem}")
