#!/usr/bin/env python3
"""What a strategy tree costs against the tuple that says the same: `paceline simulate` as a whole, the loading of the program
and of the platform with it. In instructions, by valgrind; where there is none, in CPU time."""
import re
import shutil
import subprocess
import sys
import tempfile

from bench import PROGRAM, SMALL, SOURCE, Run, end, model, ratio

PAIRS = [  # what, arguments, tree, tuple
    ("GPT-2 345M over 2 stages of 2 x 2 GPUs", "dgx-a100 gpt2-345m 16 1024",
     "mesh: {dp: 2, tp: 2}\npipeline: {stages: 2}\nschedule: {microbatches: 8}\npartition: {b: dp, v|g|r|f: tp}\n",
     "pp=2,dp=2,tmp=2,mbs=1"),
    ("Llama 3 8B over 2 x 4 GPUs", "dgx-a100 llama-3-8b 32 8192",
     "mesh: {dp: 2, tp: 4}\nschedule: {microbatches: 16}\npartition: {b: dp, v|g|r|f: tp}\n",
     "pp=1,dp=2,tmp=4,mbs=1"),
    ("Mixtral 8x7B, experts over 8 GPUs", "dgx-a100 mixtral-8x7b 64 4096",
     "mesh: {dp: 8}\nschedule: {microbatches: 8}\npartition: {b|x: dp}\n",
     "pp=1,dp=8,tmp=1,ep=8,mbs=1"),
    ("Mixtral 8x7B over 4 stages of 4 x 2 GPUs", "dgx-a100:4 mixtral-8x7b 64 4096",
     "mesh: {dp: 4, tp: 2}\npipeline: {stages: 4}\nschedule: {microbatches: 16}\npartition: {b|x: dp, v|g|r|f|s: tp}\n"
     "memory: {states: b}\n",
     "pp=4,dp=4,tmp=2,sp=1,ep=4,etp=2,mbs=1,zero=1"),
    ("GPT-3 175B over 8 stages of 2 x 8 GPUs, 768 microbatches", "platforms/dgx-a100-16.xml gpt3-175b 1536 2048",
     "mesh: {dp: 2, tp: 8}\npipeline: {stages: 8}\nschedule: {microbatches: 768}\npartition: {b: dp, v|g|r|f: tp}\n",
     "pp=8,dp=2,tmp=8,mbs=1"),
]
VALGRIND = shutil.which("valgrind")


def cost(arguments, strategy):
    """Instructions; or seconds of CPU time, of ten runs."""
    platform, name, gbs, seq = arguments.split()
    command = ["simulate", "--platform", platform, "--model", model(name), "--gbs", gbs, "--seq", seq, "--strategy", strategy]
    if VALGRIND is None:
        return sum(Run(PROGRAM, command).cpu_s for _ in range(10))
    run = subprocess.run([VALGRIND, "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM] + command,
                         capture_output=True, text=True, cwd=SOURCE)
    counted = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or counted is None:
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}: {run.stderr}")
    return int(counted[1])


with tempfile.TemporaryDirectory() as folder:
    unit = "CPU time" if VALGRIND is None else "instructions"
    for what, arguments, tree, strategy in PAIRS[:1] if SMALL else PAIRS:
        path = f"{folder}/tree.yaml"
        with open(path, "w") as file:
            file.write(tree)
        of_tree, of_tuple = cost(arguments, path), cost(arguments, strategy)
        if VALGRIND is not None:
            print(f"{what}: {of_tree / 1e6:.1f} M instructions, its tuple {of_tuple / 1e6:.1f} M")
        ratio(f"tree of {what}: {unit}", "its tuple", of_tree / of_tuple)
end("trees_bench")
