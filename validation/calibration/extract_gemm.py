#!/usr/bin/env python3
"""Writes gemm_<device>.csv.gz, what the "gemm" sections of platforms/devices/ are fitted to, from published tables.

    validation/calibration/extract_gemm.py FOLDER

FOLDER holds gemm_aiconfigurator.csv.gz, gemm_deepbench.csv.gz, gemm_eleuther_sizing.csv.gz and
transformer_ops_sailor.csv.gz as collected: one row per published timing, with its source. Rules, the same for every
device that they do not name:

- aiconfigurator: every bf16 row with m >= 16. Stacks that timed the same shape (SGLang, TensorRT-LLM, vLLM; no one of them
  is always ahead) are pooled: the median of their times. Its fp8 rows time a cast of the input with the product (on an
  H100 16384 x 256 x 16384 takes 570 to 790 us in fp8, 200 in bf16), which training does in a kernel of its own: not used.
- EleutherAI cookbook (fp16, timed one call at a time, so that small products show the host): rows of at least 20 GFLOP.
- DeepBench, training set (column-major): m and n swapped, which is the same product in row-major order; m >= 16. Its
  inference set runs at 22 TFLOP/s on a T4 whatever the shape, where the training set reaches 36 to 46: not used. Two
  things that its code does in 16 bits (code/nvidia/gemm_bench.cu, tensor.h): m, k and sometimes n are padded to
  multiples of 8, which is the shape written here; and operands are zeros (uniform floats below 1, cut to integers),
  which draw little power.
- Sailor (V100; fp16 ops of Megatron's layers in PyTorch, 2,048 tokens a sequence): rows of at least 20 GFLOP of the
  products that are timed alone: forward of the MLP's first product at every tensor degree; forward and data gradient of
  both MLP products and of the attention's projection at degree 1 (else an all-reduce is in them); scores, the two
  products of their gradient (half the time each, they are alike) and context. Not query, key and value, whose time
  holds their separation.
- V100 has few timings and sources that differ (large products, TFLOP/s: DeepBench 95 to 110, Sailor 88 to 107,
  EleutherAI 80 to 90). What is far from training is left out: fp16 of DeepBench from 20 GFLOP on (zeros: the power
  limit does not show), EleutherAI's batches (64 whatever the size, where the same squares alone reach 89 and Sailor's
  batches of attention up to 72), and of EleutherAI's sweeps of aligned n in steps of 8 and 64 all but every 64th n and,
  from 1,536 on, every 256th, lest neighbours that say the same outvote the others.
- Times in microseconds with four digits; rows sorted; gzip without a time stamp: the same input gives the same bytes.
"""
import argparse
import csv
import gzip
import io
import pathlib
import statistics
import sys

TENSOR_CORES = {"FP16 in / mixed math (tensor core)": "fp16", "FP32": "fp32"}
# Multiprocessors as PyTorch reports them (B200 and GB200: both dies together).
DEVICES = {
    "A100": dict(sm=108, aic="NVIDIA A100-SXM4-80GB", eleuther=("A100", "A100 (not stated in the file)")),
    "H100": dict(sm=132, aic="NVIDIA H100 80GB HBM3"),
    "H200": dict(sm=132, aic="NVIDIA H200"),
    "B200": dict(sm=148, aic="NVIDIA B200"),
    "GB200": dict(sm=152, aic="NVIDIA GB200"),
    "L40S": dict(sm=142, aic="NVIDIA L40S"),
    "V100": dict(sm=80, eleuther=("V100",), sailor="V100-16", deepbench={"NV_V100": TENSOR_CORES}, few=True),
    "T4": dict(sm=40, deepbench={"NV_T4": TENSOR_CORES}),
    "P100": dict(sm=56, deepbench={"NV_P100": {"FP32": "fp32"}}),
    "TitanXp": dict(sm=30, deepbench={"NV_TitanXp": {"FP32": "fp32"}}),
}
LEAST_M = 16
LEAST_FRAMEWORK_FLOPS = 20e9  # timed from Python
SWEEPS = {27648: 64, 2304: 256}  # EleutherAI's sweeps of n by their m: of which n is a multiple when timings are few
SAILOR_MOST_US = 1e5  # one row ran out of memory and took seconds


def rows_of(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


class Table:
    """Times by (dtype, batch, m, n, k), and the sources they came from."""

    def __init__(self):
        self.times, self.sources = {}, set()

    def add(self, dtype, batch, m, n, k, time_us, source):
        if m >= LEAST_M and time_us > 0:
            self.times.setdefault((dtype, batch, m, n, k), []).append(time_us)
            self.sources.add(source)


def short_source(text):
    """'github:owner/name:path@commit' without the path: one line per repository and commit."""
    text = text.removeprefix("github:")
    return text.split(":")[0] + "@" + text.rsplit("@", 1)[-1]


def read_aiconfigurator(path, tables):
    names = {d["aic"]: name for name, d in DEVICES.items() if "aic" in d}
    for row in rows_of(path):
        if row["gpu"] in names and row["gemm_dtype"] == "bfloat16":
            source = f"{short_source(row['source'])} ({row['framework']} {row['version']})"
            tables[names[row["gpu"]]].add("bf16", 1, int(row["m"]), int(row["n"]), int(row["k"]),
                                          1e3 * float(row["time_ms"]), source)


def read_eleuther(path, tables):
    names = {gpu: name for name, d in DEVICES.items() for gpu in d.get("eleuther", ())}
    for row in rows_of(path):
        if row["gpu"] not in names or not row["tflops"]:
            continue
        batch, m, n, k = (int(float(row[key] or 1)) for key in ("batch", "m", "n", "k"))
        flops, rate = 2.0 * batch * m * n * k, 1e12 * float(row["tflops"])
        name = names[row["gpu"]]
        dense = n % 8 == 0 and m in SWEEPS and k == 4096 and n % SWEEPS[m] != 0
        if DEVICES[name].get("few") and (batch > 1 or dense):
            continue
        if flops >= LEAST_FRAMEWORK_FLOPS and rate > 0:
            tables[name].add("fp16", batch, m, n, k, 1e6 * flops / rate, short_source(row["source"]))


def products_of_sailor(row):
    """(batch, m, n, k, time in us) of each product that the row times alone."""
    tokens = int(row["seq_len"]) * int(row["mbs"])
    hidden, wide, seq, tp = (int(row[key]) for key in ("hidden", "ffn_hidden", "seq_len", "tp"))
    batch, size = int(row["mbs"]) * int(row["n_heads"]) // tp, hidden // int(row["n_heads"])
    forward, backward = float(row["fwd_us"] or 0), float(row["bwd_us"] or 0)
    ends = {"enc-MLP-GEMM-1": (hidden, wide), "enc-MLP-GEMM-2": (wide, hidden), "enc-attention-dense": (hidden, hidden)}
    if row["op"] in ends and tp == 1:
        k, n = ends[row["op"]]
        yield 1, tokens, n, k, forward
        yield 1, tokens, k, n, backward
    elif row["op"] == "enc-MLP-GEMM-1":
        yield 1, tokens, wide // tp, hidden, forward
    elif row["op"] == "enc-attention-score":
        yield batch, seq, seq, size, forward
        yield batch, seq, size, seq, backward / 2
    elif row["op"] == "enc-attention-context":
        yield batch, seq, size, seq, forward


def read_sailor(path, tables):
    names = {d["sailor"]: name for name, d in DEVICES.items() if "sailor" in d}
    for row in rows_of(path):
        if row["gpu"] not in names or row["precision"] != "fp16" or row["tp_algo"] != "0":
            continue
        for batch, m, n, k, time_us in products_of_sailor(row):
            if 2.0 * batch * m * n * k >= LEAST_FRAMEWORK_FLOPS and 0 < time_us < SAILOR_MOST_US:
                tables[names[row["gpu"]]].add("fp16", batch, m, n, k, time_us, short_source(row["source"]))


def deepbench_extents(row, dtype):
    """Its m, n, k, padded as it pads them for tensor cores."""
    m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
    if dtype != "fp16":
        return m, n, k
    second_is_transposed = row["trans_b"] == "T"
    pads = [True, second_is_transposed, row["trans_a"] == "T" or not second_is_transposed]
    return tuple((x + 7) // 8 * 8 if pad else x for x, pad in zip((m, n, k), pads))


def read_deepbench(path, tables):
    names = {gpu: (name, kinds) for name, d in DEVICES.items() for gpu, kinds in d.get("deepbench", {}).items()}
    for row in rows_of(path):
        name, kinds = names.get(row["gpu"], (None, {}))
        if row["family"] == "deepbench_train" and row["precision"] in kinds and row["op"] == "gemm" and row["time_ms"]:
            dtype = kinds[row["precision"]]
            n, m, k = deepbench_extents(row, dtype)
            if DEVICES[name].get("few") and dtype == "fp16" and 2.0 * m * n * k >= LEAST_FRAMEWORK_FLOPS:
                continue
            tables[name].add(dtype, 1, m, n, k, 1e3 * float(row["time_ms"]), short_source(row["source"]))


def write(path, name, table):
    text = io.StringIO()
    text.write(f"# Timings of matrix products on {name}, made by extract_gemm.py; its rules are there.\n")
    for source in sorted(table.sources):
        text.write(f"# {source}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["gpu", "multiprocessors", "dtype", "batch", "m", "n", "k", "time_us"])
    for (dtype, batch, m, n, k), times in sorted(table.times.items()):
        writer.writerow([name, DEVICES[name]["sm"], dtype, batch, m, n, k, f"{statistics.median(times):.4g}"])
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    print(f"{path}: {len(table.times)} shapes, {path.stat().st_size >> 10} KiB", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the three published tables are")
    folder = parser.parse_args().folder
    tables = {name: Table() for name in DEVICES}
    read_aiconfigurator(folder / "gemm_aiconfigurator.csv.gz", tables)
    read_eleuther(folder / "gemm_eleuther_sizing.csv.gz", tables)
    read_deepbench(folder / "gemm_deepbench.csv.gz", tables)
    read_sailor(folder / "transformer_ops_sailor.csv.gz", tables)
    for name, table in tables.items():
        write(pathlib.Path(__file__).parent / f"gemm_{name}.csv.gz", name, table)


if __name__ == "__main__":
    main()
