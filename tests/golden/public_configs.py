#!/usr/bin/env python3
"""Configurations that nobody here wrote, and what becomes of each: its parameters, or the one line that refuses it.

public_configs.jsonl has the architecture facts of public config.json files as ai-dynamo/aiconfigurator@095f58a51c4c keeps
them (src/aiconfigurator/model_configs/, Apache-2.0; names of models on Hugging Face; without token ids, versions and
long lists). Verdicts stand in public_configs.csv, so that a model that begins or ceases to load shows up as a diff. And
independently of that table: what loads must have about as many parameters as its name says (MODEL-8B).

After a change that is meant: PACELINE_UPDATE_GOLDEN=1 PACELINE=.build/release/paceline tests/golden/public_configs.py"""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

os.chdir(os.environ.get("SOURCE_DIR", "."))
FOLDER = "tests/golden"
NAMED_SHARE = 0.07  # names round: Qwen3-1.7B has 1.72 or, with tied embeddings counted once, 1.72; Llama 3.1 70B has 70.6


ROUNDED_DOWN = {"XiaomiMiMo/MiMo-7B-Base": 7.6e9}  # its layers are those of Qwen2.5-7B, which has 7.62


def named_parameters(name):
    """Of 235B-A22B the whole, not what is active; None where the name does not say."""
    if name in ROUNDED_DOWN:
        return ROUNDED_DOWN[name]
    found = re.search(r"(?<![A-Za-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)B(?![A-Za-z0-9])", name)
    if re.search(r"-\d+E\b|-VL-", name):  # 17B-16E: what is active, and how many experts; VL: with what sees
        return None
    return None if found is None or found.group(1) else float(found.group(2)) * 1e9


wrong = []
table = io.StringIO()
rows = csv.writer(table, lineterminator="\n")
rows.writerow(["model", "model_type", "torch_dtype", "verdict"])
n_loaded = 0
with tempfile.TemporaryDirectory() as folder, open(f"{FOLDER}/public_configs.jsonl") as lines:
    for line in lines:
        one = json.loads(line)
        name, config = one["name"], one["config"]
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        run = subprocess.run([os.environ["PACELINE"], "model", "show", "--json", path], capture_output=True, text=True)
        if run.returncode == 0:
            shown = json.loads(run.stdout)
            n_loaded += 1
            verdict = f"{shown['parameters']:.0f} parameters"
            named = named_parameters(name)
            if named is not None and abs(shown["parameters"] / named - 1) > NAMED_SHARE:
                wrong.append(f"{name} has {shown['parameters']:.4g} parameters")
        else:
            verdict = run.stderr.strip()
            if run.returncode != 2 or "\n" in verdict or not verdict or run.stdout:
                wrong.append(f"{name}: exit status {run.returncode}, {run.stdout!r}, {run.stderr!r}")
            verdict = re.sub(r"^paceline model: .*?config.json:[0-9:]+ ", "", verdict).split(";")[0]  # behind ';' stands the way out
        rows.writerow([name, config.get("model_type"), config.get("torch_dtype") or config.get("dtype"), verdict])

kept = f"{FOLDER}/public_configs.csv"
if os.environ.get("PACELINE_UPDATE_GOLDEN"):
    with open(kept, "w") as file:
        file.write(table.getvalue())
else:
    with open(kept) as file:
        for old, new in zip(file.read().split("\n"), table.getvalue().split("\n"), strict=True):
            if old != new:
                wrong.append(f"- {old}\n+ {new}")
print("\n".join(wrong))
print(f"{n_loaded} configurations load")
sys.exit(1 if wrong else 0)
