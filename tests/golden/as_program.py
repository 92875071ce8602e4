#!/usr/bin/env python3
"""Tuples and the programs that they make, both simulated: time and peak of the program over those of the tuple, in
tests/golden/as_program.csv. A ratio that moves by more than TOLERANCE is a change of one side that the other has not. After one that is
meant:
  PACELINE_UPDATE_GOLDEN=1 PACELINE=.build/release/paceline tests/golden/as_program.py
"""
import csv
import json
import os
import subprocess
import sys

TOLERANCE = 0.004
SOURCE = os.environ.get("SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TABLE = os.path.join(SOURCE, "tests", "golden", "as_program.csv")
COLUMNS = ["model", "platform", "gbs", "seq", "strategy", "framework", "products", "time", "peak"]


def model_of(name):
    """A shipped model, or a file beside this one."""
    return os.path.join(SOURCE, "tests", "golden", name) if name.endswith(".json") else name


def simulate(row, *options):
    command = [os.environ["PACELINE"], "simulate", "--json", *options, "--model", model_of(row["model"]), "--platform", row["platform"]]
    command += ["--gbs", row["gbs"], "--strategy", row["strategy"], "--framework", row["framework"]]
    command += ["--seq", row["seq"]] if row["seq"] else []
    command += ["--" + row["products"]] if row["products"] else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def measured(row):
    of_tuple, of_program = simulate(row), simulate(row, "--as-program")
    return {name: of_program[key] / of_tuple[key] for name, key in (("time", "iter_time_s"), ("peak", "peak_mem_bytes"))}


def main():
    with open(TABLE, newline="") as file:
        rows = list(csv.DictReader(file))
    moved = 0
    for row in rows:
        for name, ratio in measured(row).items():
            if abs(ratio - float(row[name] or 0)) > TOLERANCE:
                moved += 1
                print(f"{row['model']} {row['strategy']} {row['framework']} {row['products']}: {name} {row[name]} -> {ratio:.3f}")
            row[name] = f"{ratio:.3f}"
    if os.environ.get("PACELINE_UPDATE_GOLDEN"):
        with open(TABLE, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return
    if moved > 0:
        sys.exit(f"{moved} ratios are others than in {TABLE} (if that is meant, renew it: see {__file__})")
    times = sorted(float(row["time"]) for row in rows)
    print(f"{len(rows)} programs take {times[0]:.3f} to {times[-1]:.3f} of their tuples' time, median {times[len(times) // 2]:.3f}")


main()
