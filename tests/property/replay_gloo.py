#!/usr/bin/env python3
"""Real traces: jobs of two ranks over gloo are recorded here and now (validation/collect/gloo_job.py), imported and replayed; the
replay must give what the recording shows, and the recording about what the wall clock did. Without torch there is nothing to record."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

PACELINE, SOURCE = os.environ["PACELINE"], os.environ.get("SOURCE_DIR", ".")
if importlib.util.find_spec("torch") is None:
    print("not tested: python3 has no torch (Debian: python3-torch)")
    sys.exit(0)


def paceline(*words):
    done = subprocess.run([PACELINE, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout) if "--json" in words else done.stdout


for kind, collectives in ("ddp", None), ("sharded", 12):
    with tempfile.TemporaryDirectory() as scratch:
        folder, job, steps = f"{scratch}/job", f"{scratch}/job.h5", 3
        script = f"{SOURCE}/validation/collect/gloo_job.py"
        subprocess.run([sys.executable, script, folder, "--kind", kind, "--steps", str(steps)], check=True, capture_output=True, timeout=240)
        with open(folder + ".measured.json") as file:
            measured = json.load(file)
        paceline("trace", "import", folder, "-o", job)
        checked = paceline("trace", "check", job, "--json")
        assert checked["unmatched_collectives"] == 0 and checked["violated"] == 0, checked
        assert checked["collectives"] == (collectives or checked["collectives"] // steps) * steps, checked["collectives"]
        assert checked["collectives"] >= 3 * steps
        replayed = paceline("replay", job, "--json")
        assert len(replayed["steps"]) == steps
        drift = max(abs(s["replayed_s"] / s["measured_s"] - 1) for s in replayed["steps"])
        assert drift <= 0.01, drift
        found = paceline("diagnose", job, "--json")
        assert abs(sum(found["critical_path_s"].values()) / found["replayed_s"] - 1) < 1e-9
        wall = sum(max(times) for times in zip(*measured["ranks"])) / steps
        print(f"{kind}: {checked['collectives']} collectives, step {1e3 * replayed['measured_s']:.1f} ms recorded, largest drift "
              f"{100 * drift:.3f} %, {1e3 * wall:.1f} ms on the wall clock ({100 * (replayed['replayed_s'] / wall - 1):+.1f} %), "
              f"clocks within {checked['end_residual_ns'] / 1e3:.0f} us")
        assert 0.7 < replayed["replayed_s"] / wall < 1.4, (replayed["replayed_s"], wall)
