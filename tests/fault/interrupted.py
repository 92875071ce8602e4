#!/usr/bin/env python3
"""Searches and sweeps that are interrupted, alone and under mpirun, at seeded moments: nothing half-made stays behind, one line says
what to do, and that command, run as it stands there, ends in the bytes of the undisturbed run."""
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time

PACELINE = os.environ["PACELINE"]
SEED = int(os.environ.get("PACELINE_SEED", "0")) or random.randrange(1 << 30)
MICROBATCHES = "1" if any(name in PACELINE for name in ("/asan/", "/tsan/")) else "1,2"
JOB = ["--platform", "platforms/amp-homogeneous.xml", "--model", "workloads/models/gpt2-345m.json", "--gbs", "32", "--mbs", MICROBATCHES]
COMMANDS = (["search", *JOB, "--method", "exhaustive"], ["sweep", *JOB])
os.environ.update(OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader", OMPI_MCA_hwloc_base_binding_policy="none",
                  OMPI_MCA_mpi_yield_when_idle="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def interrupt(command, path, launcher, which, pause_s):
    """-> what the command said, and whether it had come to its end before."""
    process = subprocess.Popen([*launcher, PACELINE, *command, "--threads", "1", "--quiet", "-o", path], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        time.sleep(pause_s)
        process.send_signal(which)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    if not launcher and process.returncode not in (0, -which):
        sys.exit(f"{command[0]}: ended with {process.returncode}: {said}")
    return [line for line in said.splitlines() if line.startswith("paceline ")], process.returncode == 0


def trial(folder, command, whole, launcher, which, pause_s):
    path = f"{folder}/it's.h5"
    said, ended = interrupt(command, path, launcher, which, pause_s)
    what = f"seed {SEED}, {' '.join([*launcher, command[0]])} after {pause_s:.2f} s"
    left = sorted(os.listdir(folder))
    if left not in ([], ["it's.h5"]):
        sys.exit(f"{what}: left behind: {left}")
    start = f"paceline {command[0]}: interrupted"
    if ended:
        outcome = "had ended"
    elif not said and not left:
        outcome = "before it began"
    elif not said:  # on its way out: then the file is whole
        with open(path, "rb") as file:
            if file.read() != whole:
                sys.exit(f"{what}: said nothing, and the file is not whole")
        outcome = "had ended"
    elif said == [f"{start}; nothing was written to {path}"] or (len(said) == 1 and said[0] == start):
        outcome = "nothing written"
        if left:
            sys.exit(f"{what}: said {said}, but wrote")
    elif len(said) == 1 and said[0].startswith(f"{start}; what is done is in {path}, and this goes on: paceline "):
        again = shlex.quote(PACELINE) + said[0].split("this goes on: paceline", 1)[1]
        subprocess.run(again, shell=True, check=True, stdout=subprocess.DEVNULL)
        with open(path, "rb") as file:
            if file.read() != whole:
                sys.exit(f"{what}: resumed to other bytes")
        outcome = "resumed"
    else:
        sys.exit(f"{what}: said: {said}")
    print(f"{what}: {outcome}")
    if left:
        os.remove(path)
    return outcome


def main():
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    outcomes = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        for command in COMMANDS:
            start_s = time.monotonic()
            subprocess.run([PACELINE, *command, "--threads", "1", "--quiet", "-o", f"{other}/whole.h5", "--force"], check=True)
            takes_s = time.monotonic() - start_s
            with open(f"{other}/whole.h5", "rb") as file:
                whole = file.read()
            for i in range(4):
                launcher = ["mpirun", "-n", "2"] if i == 2 else []
                which = signal.SIGINT if i % 2 else signal.SIGTERM
                pause_s = draw.uniform(0.2, 0.7) * takes_s + (0.5 if launcher else 0)
                outcomes.append(trial(folder, command, whole, launcher, which, pause_s))
    if outcomes.count("resumed") < 2:
        sys.exit(f"only {outcomes.count('resumed')} of {len(outcomes)} were interrupted midway")


main()
