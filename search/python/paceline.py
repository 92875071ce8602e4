"""Paceline from Python: results as a pandas DataFrame, simulations as dictionaries.

    import paceline
    frame = paceline.read("sweep.h5")
    best = frame[frame.fits].nsmallest(10, "iter_time_s")
    row = paceline.simulate(platform="dgx-h100:16", model="llama-3.1-8b", gbs=512, strategy=paceline.strategy(best.iloc[0]))

Nothing is compiled: results are read with h5py, simulations are the command's own, run as a process with --json. The program is
PACELINE of the environment, else the one of the prefix that this file is installed in, else `paceline` on PATH.
"""
import json
import os
import shutil
import subprocess

__all__ = ["PacelineError", "program", "read", "run", "search", "simulate", "strategy"]
__version__ = "0.1.0"

STRATEGY_KEYS = ("pp", "dp", "tmp", "cp", "ep", "etp", "ep_overlap", "mbs", "schedule", "vpp", "sp", "recompute", "zero", "overlap", "order", "assign")
# What most rows have, and a strategy says by leaving it out.
PLAIN = {"cp": 1, "ep": 1, "etp": 1, "ep_overlap": 0}


class PacelineError(RuntimeError):
    """The command refused: its one line says why. `status` is its exit status (2: the request is wrong, 1: the machine, 3: --must-fit)."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def program():
    """Path of the command."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bin", "paceline")
    found = os.environ.get("PACELINE") or (beside if os.access(beside, os.X_OK) else None) or shutil.which("paceline")
    if found is None:
        raise PacelineError("no paceline on PATH; the variable PACELINE may name it", 1)
    return found


def _words(options):
    """{"must_fit": True, "vary": ["nodes=2", "nodes=4"]} -> --must-fit --vary=nodes=2 --vary=nodes=4."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            yield option if one is True else f"{option}={one}"


def run(command, *arguments, **options):
    """What `paceline COMMAND ARGUMENTS --options --json` prints, read."""
    words = [program(), command, *map(str, arguments), *_words(options), "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise PacelineError(done.stderr.strip() or f"exit status {done.returncode}", done.returncode)
    return json.loads(done.stdout)


def simulate(**options):
    """One strategy: keys are the columns of a sweep, and more (see paceline simulate --help for the options)."""
    return run("simulate", **options)


def search(**options):
    """The fastest strategies: the summary of `paceline search`, with the best in "top"."""
    return run("search", **options)


def read(path):
    """All rows of a results file as a DataFrame: text as str, what is 0 or 1 as bool, bytes and counts as they are. Units and what
    the columns mean are in frame.attrs["columns"], the attributes of the file (command, versions) in frame.attrs["file"]."""
    import h5py
    import pandas

    def clean(value):
        return value.decode() if isinstance(value, bytes) else value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value

    columns, about = {}, {}
    with h5py.File(path, "r") as file:
        for name, data in file.items():
            if data.ndim != 1 or data.attrs.get("CLASS") == b"DIMENSION_SCALE":
                continue
            columns[name] = data.asstr()[:] if data.dtype.kind in "SO" else data[:]
            about[name] = {key: clean(data.attrs[key]) for key in ("units", "long_name", "description") if key in data.attrs}
        attributes = {key: clean(value) for key, value in file.attrs.items()}
    frame = pandas.DataFrame(columns)
    for flag in ("fits", "sp", "overlap"):
        if flag in frame:
            frame[flag] = frame[flag] == 1
    frame.attrs.update(file=attributes, columns=about)
    return frame


def strategy(row):
    """A row of `read` as --strategy takes it."""
    if isinstance(row.get("strategy"), str) and row["strategy"]:
        return row["strategy"]
    text = {key: int(row[key]) if not isinstance(row[key], str) else row[key] for key in STRATEGY_KEYS if key in row}
    return ",".join(f"{key}={value}" for key, value in text.items() if value != PLAIN.get(key))
