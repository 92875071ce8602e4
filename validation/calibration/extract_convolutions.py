#!/usr/bin/env python3
"""Makes convolutions.csv.gz from DeepBench's published training timings of convolutions (see README.md here).

usage: extract_convolutions.py FOLDER_OF_TABLES [OUTPUT_FOLDER]

FOLDER_OF_TABLES holds conv_deepbench.csv.gz. One row per shape and pass; figures are copied. fp16 rows are those on tensor
cores (fp16 in, fp32 sums). Python's standard library only.
"""
import csv
import gzip
import io
import sys

GPUS = {"NV_V100": ("V100-SXM2-32GB", 80), "NV_T4": ("T4", 40), "NV_P100": ("P100", 56), "NV_TitanXp": ("TitanXp", 30)}
DTYPES = {"FP32": "fp32", "FP16 in / mixed math (tensor core)": "fp16"}
PASSES = {"forward": "fwd_ms", "data": "bwd_data_ms", "weight": "bwd_weight_ms"}
EXTENTS = {"batch": "n", "channels": "c", "height": "h", "width": "w", "filters": "k", "filter_height": "r_filter_h",
           "filter_width": "s_filter_w", "stride": "stride_h", "out_height": "p_out", "out_width": "q_out"}


def rows(folder):
    with gzip.open(f"{folder}/conv_deepbench.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row["gpu"] not in GPUS or row["precision"] not in DTYPES:
                continue
            for name, column in PASSES.items():
                if row[column] and float(row[column]) > 0:
                    yield [*GPUS[row["gpu"]], DTYPES[row["precision"]], name, *(int(float(row[c])) for c in EXTENTS.values()),
                           f"{1e3 * float(row[column]):.6g}"], row["source"]


def main():
    folder, output = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "."
    found = list(rows(folder))
    text = io.StringIO()
    text.write("# Timings of convolutions, made by extract_convolutions.py; its rules are there.\n")
    for source in sorted({source for _, source in found}):
        text.write(f"# {source}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["device", "multiprocessors", "dtype", "pass", *EXTENTS, "time_us"])
    writer.writerows(row for row, _ in found)
    with open(f"{output}/convolutions.csv.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as file:
        file.write(text.getvalue().encode())


if __name__ == "__main__":
    main()
