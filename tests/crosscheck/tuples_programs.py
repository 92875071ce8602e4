#!/usr/bin/env python3
"""Strategies drawn at random, simulated as tuples and as the programs that they make: two ways to the same time and peak. Most times
have to be within 3 % and most peaks within 10 %, and none may be far off; those that are not near are printed.
  PACELINE=.build/release/paceline tests/crosscheck/tuples_programs.py [draws [seed]]
"""
import json
import os
import random
import subprocess
import sys

NEAR, FAR, SHARE_NEAR = (0.03, 0.1), (0.12, 0.35), 0.9  # of time and peak
MODELS = ["gpt2-345m", "gpt2-1.5b", "bert-large", "llama-3-8b", "llama-2-13b", "qwen3-8b", "gemma-7b", "nemotron-4-15b", "mixtral-8x7b",
          "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b", "gpt3-5b", "megatron-7.5b"]
EXPERTS = {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b"}
FRAMEWORKS = ["ideal", "megatron-core", "megatron-lm-2021", "megatron-lm-2023", "nemo", "deepspeed", "torch-fsdp", "torchtitan", "torch-ddp",
              "nanotron", "jax-xla", "paddlenlp", "internevo"]


def draw(source):
    """One job, or None: the degrees do not fit the devices."""
    model, framework, nodes = source.choice(MODELS), source.choice(FRAMEWORKS), source.choice([1, 1, 2, 4])
    pp, tmp, cp = source.choice([1, 1, 2, 4]), source.choice([1, 1, 2, 4, 8]), source.choice([1, 1, 1, 1, 2])
    if pp * tmp * cp > 8 * nodes:
        return None
    dp, mbs, microbatches = 8 * nodes // (pp * tmp * cp), source.choice([1, 2, 4]), source.choice([1, 2, 4, 8]) * pp
    keys = {"pp": pp, "dp": dp, "tmp": tmp, "mbs": mbs}
    ep = source.choice([1, 2, 4, 8]) if model in EXPERTS else 1
    if cp > 1:
        keys["cp"] = cp
    if 1 < ep <= dp:
        keys["ep"] = ep
    if tmp > 1 and (source.random() < 0.6 or model in EXPERTS):
        keys["sp"] = 1
    keys["recompute"] = source.choice(["none", "none", "selective", "full"])
    keys["zero"] = source.choice([0, 1, 1, 2, 3])
    if keys["zero"] < 2 and source.random() < 0.2:
        keys["overlap"] = 0
    if pp > 1:
        keys["schedule"] = source.choice(["1f1b", "1f1b", "gpipe", "zb-h1", "interleaved"])
        if keys["schedule"] == "interleaved":
            keys["vpp"] = 2
    if source.random() < 0.2:
        keys["order"] = source.choice(["pdt", "dtp", "tpd"])
    seq = source.choice([512, 1024] if model[:4] in ("gpt2", "bert") else [1024, 2048, 4096])
    fused = model == "gpt-oss-20b"  # its sinks stay fused in programs, which say so
    options = source.choice([[], [], [] if fused else ["--attention", "unfused"], ["--fp8", "--dtype", "bf16"]])
    if model == "bert-large":
        seq = 512
    if fused and framework == "megatron-lm-2021":  # of before there were sinks, without fused attention
        return None
    return ["--model", model, "--framework", framework, "--platform", f"dgx-h100:{nodes}", "--gbs", str(dp * mbs * microbatches), "--seq",
            str(seq), "--strategy", ",".join(f"{key}={value}" for key, value in keys.items()), *options]


def simulate(job, *options):
    done = subprocess.run([os.environ["PACELINE"], "simulate", "--json", *job, *options], capture_output=True, text=True)
    if done.returncode == 2:
        return None, done.stderr  # a framework that has no such thing, a degree that does not divide
    if done.returncode != 0:
        sys.exit(f"{' '.join(job)}: {done.stderr}")
    row = json.loads(done.stdout)
    return (row["iter_time_s"], row["peak_mem_bytes"]), ""


def main():
    n_draws = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    source = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 4)
    near, drawn, far = 0, 0, 0
    while drawn < n_draws:
        job = draw(source)
        of_tuple, _ = simulate(job) if job else (None, "")
        if of_tuple is None:
            continue
        of_program, message = simulate(job, "--as-program")
        if of_program is None:
            sys.exit(f"{' '.join(job)}: simulated as a tuple, and refused as a program: {message}")
        drawn += 1
        ratios = [b / a for a, b in zip(of_tuple, of_program)]
        is_near = all(abs(ratio - 1) <= most for ratio, most in zip(ratios, NEAR))
        near += is_near
        far += any(abs(ratio - 1) > most for ratio, most in zip(ratios, FAR))
        if not is_near:
            print(f"time {ratios[0]:.3f} peak {ratios[1]:.3f}  {' '.join(job)}")
    print(f"{near} of {drawn} programs are within {NEAR[0]:.0%} of their tuples' time and {NEAR[1]:.0%} of their peak, {far} are off by more "
          f"than {FAR[0]:.0%} or {FAR[1]:.0%}")
    if near < SHARE_NEAR * drawn or far > 0:
        sys.exit(f"{SHARE_NEAR:.0%} have to be near, and none far")


main()
