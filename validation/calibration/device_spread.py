#!/usr/bin/env python3
"""How far GPUs of one type lie apart: the figure "spread" of device profiles, from device_spread.csv (see README.md here).

usage: device_spread.py                     what each system says
       device_spread.py --extract FOLDER    makes device_spread.csv from aggregated_data of hal-uw/blox-pal

A GPU is what it takes in the middle of its runs; the spread is that of the logarithms of these over the GPUs, from their
quartiles, as of a Gaussian: a few broken GPUs, which a job would be rid of, do not count. Python's standard library only.
"""
import csv
import math
import os
import statistics
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "device_spread.csv")
QUARTILES_OF_GAUSSIAN = 1.349
SOURCE = "github:hal-uw/blox-pal:aggregated_data/%s@da726cabd311"
# system, device, what ran, file, time per run, file's unit in seconds
SYSTEMS = [("longhorn", "V100-SXM2-16GB", "sgemm", "sim/sgemm-longhorn-agg.csv", "perf", 1e-3),
           ("longhorn", "V100-SXM2-16GB", "bert", "sim/bert-longhorn-agg.csv", "perf", 1e-3),
           ("longhorn", "V100-SXM2-16GB", "resnet50", "sim/resnet-longhorn-agg.csv", "perf", 1e-3),
           ("lonestar6", "A100-PCIe-40GB", "resnet50", "ls6/resnet-ls6-agg.csv", "perf", 1)]


def extract(folder):
    """The middle of each GPU's runs; GPUs are numbered."""
    with open(TABLE, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system", "device", "workload", "gpu", "runs", "time_s", "source"])
        for system, device, workload, name, column, unit in SYSTEMS:
            gpus = {}
            with open(os.path.join(folder, name), newline="") as table:
                for row in csv.DictReader(table):
                    gpus.setdefault(row["uuid"], []).append(float(row[column]) * unit)
            for number, runs in enumerate(sorted(gpus.values(), key=statistics.median)):
                writer.writerow([system, device, workload, number, len(runs), f"{statistics.median(runs):.6g}",
                                 SOURCE % name if number == 0 else ""])


def spread_of(times):
    logs = sorted(math.log(t) for t in times)
    low, _, high = statistics.quantiles(logs, n=4, method="inclusive")
    return (high - low) / QUARTILES_OF_GAUSSIAN


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--extract":
        extract(sys.argv[2])
    elif len(sys.argv) > 1:
        sys.exit("usage: device_spread.py [--extract FOLDER]")
    systems = {}
    with open(TABLE, newline="") as file:
        for row in csv.DictReader(file):
            systems.setdefault((row["system"], row["device"], row["workload"]), []).append(float(row["time_s"]))
    for (system, device, workload), times in systems.items():
        print(f"{system} {device} {workload}: {len(times)} GPUs, spread {spread_of(times):.3f}, "
              f"slowest {max(times) / statistics.median(times):.2f} of the middle")


main()
