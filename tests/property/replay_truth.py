#!/usr/bin/env python3
"""Replay against synthetic jobs whose truth is known (tests/support/synthetic_job.py, an event model of its own): the step as it
was, with other computing and other links (the truth is that of the same job run so), and planted clocks found again."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ.get("SOURCE_DIR", "."), "tests", "support"))
import synthetic_job

PACELINE = os.environ["PACELINE"]
SEED = int(os.environ.get("PACELINE_SEED", "1"))
worst = {}
table, found = [], []


def paceline(*words):
    done = subprocess.run([PACELINE, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def make(folder, pattern, **options):
    words = [f"{key}={value}" for key, value in dict(options, seed=SEED).items()]
    synthetic_job.main(pattern, folder, *words)
    with open(folder + ".truth.json") as file:
        return json.load(file)


def imported(folder):
    paceline("trace", "import", folder, "-o", folder + ".h5", "--force")
    return folder + ".h5"


def compare(kind, got, true):
    error = abs(got / true - 1)
    table.append((kind, true, got, error))
    worst[kind.split()[-1]] = max(worst.get(kind.split()[-1], 0), error)


def replays(scratch):
    communication_bound = dict(bytes=64 << 20)
    jobs = [("collective", {}), ("ring", {}), ("tree", dict(ranks=7)), ("server", {}), ("pipeline", dict(bytes=1 << 20)),
            ("collective", communication_bound), ("ring", communication_bound), ("tree", communication_bound),
            ("server", communication_bound), ("pipeline", communication_bound), ("ring", dict(layers=40, steps=1))]
    for pattern, options in jobs:
        name = pattern + (" bound" if options.get("bytes", 0) > 1 << 25 else " long" if "layers" in options else "")
        folder = scratch + "/" + name.replace(" ", "-")
        options = dict(dict(per_host=8), **options)  # one clock: replay is what is looked at
        truth = make(folder, pattern, **options)
        job = imported(folder)
        now = json.loads(paceline("replay", job, "--json"))
        for step, true in zip(now["steps"], truth["steps_s"]):
            compare(f"{name} as-it-was", step["replayed_s"], true)
        for what, change in [("op:*=0.5", dict(compute=0.5)), ("link=2", dict(link=2)), ("link=0.5", dict(link=0.5))]:
            if what[:2] == "op":
                scales = [f"op:{p}*=0.5" for p in ("forward", "backward", "update", "sum", "f[0-9]", "b[0-9]")]
            else:
                scales = [what]
            other = make(folder + ".other", pattern, **{**options, **change})
            words = [word for scale in scales for word in ("--scale", scale)]
            then = json.loads(paceline("replay", job, "--json", *words))
            for step, true in zip(then["steps"], other["steps_s"]):  # the second begins while the first still goes on
                compare(f"{name} {what}", step["what_if_s"], true)


def clocks(scratch):
    for pattern in ("collective", "ring", "tree", "server", "pipeline"):
        folder = f"{scratch}/clocks-{pattern}"
        truth = make(folder, pattern, clocks=5000, per_host=2, ranks=6, steps=4, bytes=1 << 20, jitter=0.002)
        checked = json.loads(paceline("trace", "check", imported(folder), "--json"))
        planted = {c["host"]: c for c in truth["clocks"]}
        last = truth["end_ns"]
        for clock in checked["clocks"]:
            true = planted[clock["host"]]
            errors = []  # of what a date at either end of the recording is brought back to
            for date in (0, last):
                own = date + true["offset_ns"] + true["drift"] * date
                since = truth["base_ns"] - checked["clocks_middle_ns"] + own + clock["offset_ns"]
                errors.append(own + clock["offset_ns"] + clock["drift_ppm"] * 1e-6 * since - date)
            error, drift = abs(sum(errors)) / 2, abs(errors[1] - errors[0])
            worst["clock_ns"] = max([worst.get("clock_ns", 0)] + [abs(e) for e in errors])
            found.append((pattern, clock["host"], error, drift, clock["offset_sd_ns"]))


with tempfile.TemporaryDirectory() as scratch:
    print(f"PACELINE_SEED={SEED}")
    replays(scratch)
    clocks(scratch)
# With faster links the latency is left, which the noise of long messages hides: the most that was seen over eight seeds is 0.8 %.
most = {"as-it-was": 0.0001, "op:*=0.5": 0.01, "link=0.5": 0.01, "link=2": 0.01}
wrong = [f"{kind}: {got:.6f} s instead of {true:.6f}: {100 * error:.2f} % off" for kind, true, got, error in table
         if error > most[kind.split()[-1]]]
if "-v" in sys.argv:
    for kind, true, got, error in table:
        print(f"{kind:28s} {true * 1e3:9.3f} ms {got * 1e3:9.3f} ms {100 * error:6.3f} %")
    for pattern, host, error, drift, sd in found:
        print(f"{pattern:12s} {host} {error:7.0f} ns off (said +- {sd or 0:.0f}), drift {drift:7.0f} ns over the recording")
wrong += [f"clock of {host}, {pattern}: {error:.0f} ns off, said +- {sd or 0:.0f}; drift {drift:.0f} ns"
          for pattern, host, error, drift, sd in found if error + drift / 2 > 1000 or error > 10 + 5 * (sd or 0)]
print("largest error:", {k: (f"{100 * v:.3f} %" if k != "clock_ns" else f"{v:.0f} ns") for k, v in worst.items()})
assert not wrong, "\n".join(wrong)
