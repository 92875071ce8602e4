#!/usr/bin/env python3
"""The errors of matrix products that the device profiles state, worked out again without a line of the program: the tables
of validation/calibration are read, shapes held out by the rule of validation/fit/gemm_fit.h, each priced by the formula of
workloads/cost/gemm_cost.h as it is written there, and the median and 90th percentile compared with the profile's. So the fit, its
report and the cost model cannot all be wrong in the same way unseen.

Only what a profile states of a table of its own; profiles transferred from another device state none."""
import csv
import gzip
import io
import json
import math
import os
import re
import statistics
import sys

os.chdir(os.environ.get("SOURCE_DIR", "."))
UNITS = {"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "Tf": 1e12, "Gf": 1e9, "Pf": 1e15, "GBps": 1e9, "TBps": 1e12, "MBps": 1e6}
TILES = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (256, 64), (64, 256), (64, 64)]
KIND = {(256, 128): "256x128", (128, 256): "256x128", (128, 128): "128x128", (64, 64): "64x64"}
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4, "fp8": 1, "fp4": 0.5}
LEAST_M, BIG_FLOPS = 16, 1e9


def figure(value):
    number, unit = re.fullmatch(r"([-+0-9.e]+)([A-Za-z]*)", str(value)).groups()
    return float(number) * UNITS[unit]


def is_held_out(shape):
    value = 0
    for word in shape:
        value = (value ^ word) * 0xD6E8FEB86659FD93 & 0xFFFFFFFFFFFFFFFF
        value ^= value >> 32
    return value % 5 == 0


def samples(path, dtypes):
    """(batch, m, n, k) -> median time in seconds; types that share a fit are pooled."""
    with gzip.open(path, "rt") as file:
        lines = [line for line in file if not line.startswith("#")]
    times = {}
    for row in csv.DictReader(io.StringIO("".join(lines))):
        shape = tuple(int(row[c] or 1) for c in ("batch", "m", "n", "k"))
        if row["dtype"] in dtypes and shape[1] >= LEAST_M:
            times.setdefault(shape, []).append(float(row["time_us"]) * 1e-6)
    return {shape: statistics.median(t) for shape, t in times.items()}


def residual(fit, m, n, k):
    table = fit.get("residual")
    if table is None:
        return 0
    weights = []
    for value, key in ((m, "log2_m"), (n, "log2_n"), (k, "log2_k")):
        first, last = table[key]
        x = min(max(math.log2(value) - first, 0), last - first)
        low = min(int(x), last - first - 1)
        weights.append(((low, 1 - (x - low)), (low + 1, x - low)))
    return sum(a * b * c * table["milli"][i][j][l] for i, a in weights[0] for j, b in weights[1] for l, c in weights[2]) / 1000


def seconds(profile, fit, dtype, batch, m, n, k):
    peak, bandwidth = figure(profile["peak_flops"][dtype]), figure(profile["bandwidth"])
    processors, size = profile["gemm"]["multiprocessors"], BYTES[dtype]
    moved = batch * (size * (m * k + k * n) + max(size, 2) * m * n)
    memory_rate, cache_rate = bandwidth * fit["memory_efficiency"], figure(fit["cache_rate"])
    extents = n | k
    aligned_bytes = (extents & -extents) * size
    slower = 1 if aligned_bytes >= 16 else fit["unaligned_time"]["4B" if aligned_bytes >= 4 else "2B"]
    q, best = fit["wave_quantisation"], math.inf
    for tm, tn in TILES:
        blocks = batch * math.ceil(m / tm) * math.ceil(n / tn)
        for split in (1, 2, 3, 4, 6, 8, 12, 16):
            if split > 1 and (k < 64 * split or blocks * split > 4 * processors):
                break
            t, part = blocks * split, math.ceil(k / split)
            waves = max(1, (1 - q) * t / processors + q * math.ceil(t / processors))
            efficiency = fit["tile_efficiency"][KIND.get((tm, tn), "128x64")]
            compute = waves * (2 * tm * tn * part / (peak / processors * efficiency) * slower + figure(fit["tile_overhead"]))
            memory = (moved + (8 * batch * m * n * split if split > 1 else 0)) / memory_rate
            cache = t * (tm + tn) * part * size / cache_rate
            overhead = figure(fit["overhead"]) + (figure(fit["split_overhead"]) if split > 1 else 0)
            best = min(best, overhead + (compute**4 + memory**4 + cache**4) ** 0.25)
    least = max(2 * batch * m * n * k / peak, moved / bandwidth)
    return max(best * math.exp(residual(fit, m * batch, n, k)), least)


def quantile(values, q):
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


wrong = n_fits = 0
for table, name in (("A100", "A100-SXM4-80GB"), ("H100", "H100-SXM5-80GB"), ("V100", "V100-SXM2-32GB"), ("T4", "T4"), ("P100", "P100"), ("TitanXp", "TitanXp")):
    with open(f"platforms/devices/{name}.json") as file:
        profile = json.load(file)
    for fit in profile["gemm"]["fits"]:
        stated = fit.get("held_out")
        if stated is None:
            continue
        found = [abs(seconds(profile, fit, fit["dtypes"][0], *shape) / time_s - 1)
                 for shape, time_s in samples(f"validation/calibration/gemm_{table}.csv.gz", fit["dtypes"]).items()
                 if is_held_out(shape) and 2 * math.prod(shape) >= BIG_FLOPS]
        median, p90 = (quantile(found, q) for q in (0.5, 0.9)) if found else (0, 0)
        n_fits += 1
        # A profile's figures are rounded to four digits, and its errors too.
        if len(found) != stated["shapes"] or abs(median - stated["median_error"]) > 0.002 or abs(p90 - stated["p90_error"]) > 0.005:
            wrong += 1
            print(f"{name} {fit['dtypes']}: {len(found)} shapes, {median:.4f} / {p90:.4f}; the profile states {stated}")
print(f"{n_fits} fits, {wrong} whose errors are not what their profile states")
sys.exit(1 if wrong or n_fits < 7 else 0)
