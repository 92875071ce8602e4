#!/usr/bin/env python3
"""Plans of `paceline optimize` against synthetic jobs whose truth is known (tests/support/synthetic_job.py, an event model of its own,
which reads the plan): what the plan is predicted to gain is what the same job gains that runs with it. Whole all-reduces, rings,
trees and a parameter server; buckets, pieces, fused ops. -v prints every case."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ.get("SOURCE_DIR", "."), "tests", "support"))
import synthetic_job

PACELINE = os.environ["PACELINE"]
SEED = int(os.environ.get("PACELINE_SEED", "1"))
BOTH, ALL = "tensor-fusion,tensor-partition", "op-fusion,tensor-fusion,tensor-partition"
# latency bound, bandwidth bound, launch bound; without noise the gain is exact, with it latencies must be read from noisy messages
CASES = [
    ("collective", BOTH, dict(layers=24, bytes=10000, compute=0.01)),
    ("collective", ALL, dict(layers=24, bytes=100000, compute=0.01, launch=4)),
    ("ring", "tensor-fusion", dict(layers=24, bytes=100000, compute=0.02)),
    ("ring", BOTH, dict(layers=8, bytes=10000000)),
    ("ring", ALL, dict(layers=24, bytes=100000, compute=0.01, launch=4)),
    ("tree", BOTH, dict(layers=8, bytes=10000000, ranks=7)),
    ("server", BOTH, dict(layers=8, bytes=10000000, ranks=5)),
    ("server", ALL, dict(layers=12, bytes=30000, ranks=4, compute=0.02, launch=4)),
]


def make(folder, pattern, **options):
    synthetic_job.main(pattern, folder, *[f"{key}={value}" for key, value in dict(options, seed=SEED, per_host=99).items()])
    with open(folder + ".truth.json") as file:
        return json.load(file)["steps_s"]


def paceline(*words):
    done = subprocess.run([PACELINE, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def try_case(scratch, k, pattern, passes, options):
    folder, words = f"{scratch}/job{k}", []
    if options.get("launch"):
        with open(scratch + "/costs.csv", "w") as file:
            file.write(f"ops,time_s\n(launch),{options['launch']}e-6\n")
        words = ["--op-cost", scratch + "/costs.csv"]
    before = make(folder, pattern, **options)
    paceline("trace", "import", folder, "-o", folder + ".h5")
    paceline("optimize", folder + ".h5", "--step", "0", "--passes", passes, "-o", folder + ".plan", *words)
    after = make(folder + ".planned", pattern, **options, plan=folder + ".plan")
    with open(folder + ".plan") as file:
        plan = json.load(file)
    # The second step begins while the first still goes on, which has the plan, too.
    behind = max(abs(step["after_s"] / true - 1) for step, true in zip(plan["steps"], after))
    assert all(step["is_behind"] for step in plan["steps"][1:])
    return before[0] - after[0], plan["before_s"] - plan["after_s"], before[0], plan["before_s"], after[0], plan["after_s"], behind


with tempfile.TemporaryDirectory() as scratch:
    print(f"PACELINE_SEED={SEED}")
    wrong, gained = [], 0
    for k, (pattern, passes, options) in enumerate(CASES):
        for jitter in (0, 0.05):
            true, said, before, said_before, after, said_after, behind = try_case(scratch, f"{k}-{jitter}", pattern, passes, dict(options, jitter=jitter))
            gained += true > 0.005 * before
            text = (f"{pattern:10s} {passes} {options} jitter {jitter}: {before:.6f} -> {after:.6f} s, predicted {said_before:.6f} -> "
                    f"{said_after:.6f}, gain off by {100 * abs(said - true) / max(true, 1e-12):.3f} %, any step by "
                    f"{100 * behind:.3f} %")
            if "-v" in sys.argv:
                print(text)
            if abs(said_before - before) > 1e-6 * before or (jitter == 0 and abs(said - true) > max(0.001 * true, 2e-9 * 100)):
                wrong.append(text)
            if behind > (0.001 if jitter == 0 else 0.01):
                wrong.append(text)
            if jitter > 0 and abs(said_after - after) > 0.01 * after:  # latencies are read from noisy messages
                wrong.append(text)
    assert gained >= len(CASES), f"only {gained} plans gained anything"
    assert not wrong, "\n".join(wrong)
