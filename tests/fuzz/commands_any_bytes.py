#!/usr/bin/env python3
"""Any bytes in, through the commands: damaged copies of good files (platforms, models, device, framework and collective
profiles, tables of measurements, op profiles, results files) and damaged arguments. A command ends with 0, or with 2 (1
for the machine's failures) and exactly one line on standard error, nothing on standard output, no file left; never by a
signal, never late, and what reaches the terminal can be shown on it.

PACELINE_SEED chooses another seed, PACELINE_CASES how many inputs each command gets."""
import os
import random
import re
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = os.environ["PACELINE"], os.environ["SOURCE_DIR"]
SEED, CASES = int(os.environ.get("PACELINE_SEED", "1")), int(os.environ.get("PACELINE_CASES", "25"))
LATE_S = 120
TOKENS = [b"0", b"-1", b"1e999", b"99999999999999999999", b"NaN", b"null", b'""', b"{", b"}", b"[", b"]", b"<", b">", b"&", b"%s", b"\n",
          b"\x1b[31m", b"\\u0007", "\u202e".encode(), b"\xff", b"..", b"/etc/passwd", b"--", b"=", b",", b":", b"16777216", b"4294967296"]


def damaged(good, r):
    data = bytearray(good)
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        at = r.randrange(len(data) + 1)
        what = r.randrange(6)
        if what == 0 and at < len(data):
            data[at] ^= 1 << r.randrange(8)
        elif what == 1:
            del data[at:at + r.randrange(1, 40)]
        elif what == 2:
            data[at:at] = r.choice(TOKENS)
        elif what == 3:  # a number or a word becomes another
            words = list(re.finditer(rb"[0-9.]+|[A-Za-z_]+", bytes(data)))
            if words:
                word = r.choice(words)
                data[word.start():word.end()] = r.choice(TOKENS) if r.random() < 0.5 else r.choice(words).group()
        elif what == 4:
            piece = data[at:at + r.randrange(1, 80)]
            data[r.randrange(len(data) + 1):0] = piece
        else:
            del data[at:]
    return bytes(data)


def unprintable(text):
    """What a terminal should not get from a file: controls but line ends and tabs, and characters that turn the text around."""
    return [c for c in text if (ord(c) < 32 and c not in "\n\t\r") or 127 <= ord(c) < 160 or c in "\u200e\u200f\u061c" or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069"]


def check(arguments, folder, kept):
    before = set(os.listdir(folder))
    try:
        run = subprocess.run([PROGRAM.encode()] + arguments, cwd=SOURCE, stdin=subprocess.DEVNULL, capture_output=True, timeout=LATE_S,
                             env=dict(os.environ, OMP_NUM_THREADS="1"))
    except subprocess.TimeoutExpired:
        return "does not end"
    after = set(os.listdir(folder)) - before
    for name in after:
        os.unlink(os.path.join(folder, name))
    try:
        output, errors = run.stdout.decode(), run.stderr.decode()
    except UnicodeDecodeError:
        return "prints what is not UTF-8"
    if run.returncode < 0:
        return f"ends by signal {-run.returncode}"
    if unprintable(output) or unprintable(errors):
        return f"prints {unprintable(output + errors)[:4]}"
    if run.returncode == 0:
        kept.add("accepted")
        return None
    if run.returncode not in (1, 2):
        return f"exit status {run.returncode}"
    if run.returncode == 1:
        return f"says that the machine failed: {errors.strip()}"
    lines = [line for line in errors.split("\n") if line]
    if len(lines) != 1:
        return f"{len(lines)} lines on standard error: {errors[:300]!r}"
    if output:
        return f"prints half a result: {output[:100]!r}"
    if after:
        return f"leaves {sorted(after)}"
    kept.add("refused")
    return None


def good(path):
    with open(os.path.join(SOURCE, path), "rb") as file:
        return file.read()


PLATFORM, MODEL = "platforms/hc1.xml", "workloads/models/gpt2-117m.json"
JOB = ["--gbs", "8", "--seq", "64"]
STRATEGY = "pp=2,dp=2,tmp=2,mbs=1,recompute=full,zero=1,assign=balanced"
MOE = b'{"model_type":"mixtral","hidden_size":256,"num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":4,"intermediate_size":512,' \
      b'"num_local_experts":8,"num_experts_per_tok":2,"vocab_size":1000,"max_position_embeddings":128,"torch_dtype":"bfloat16"}'
FEW_ROWS = b"".join(good("validation/measured/megatron_lm_readme.csv").splitlines(True)[:4])


def commands(folder):
    """(name, good bytes, ending, arguments with {} where the damaged file goes)"""
    simulate = ["simulate"] + JOB + ["--strategy", STRATEGY]
    yield "platform check", good(PLATFORM), ".xml", ["platform", "check", "{}"]
    yield "simulate, platform", good(PLATFORM), ".xml", simulate + ["--platform", "{}", "--model", MODEL]
    yield "simulate, model", good(MODEL), ".json", simulate + ["--platform", PLATFORM, "--model", "{}"]
    yield "simulate, experts", MOE, ".json", ["simulate"] + JOB + ["--platform", PLATFORM, "--model", "{}", "--strategy", "pp=1,dp=4,tmp=2,mbs=1,sp=1,ep=2", "--dtype", "fp32"]
    yield "model show, network", good("workloads/models/resnet-50.json"), ".json", ["model", "show", "--ops", "{}"]
    yield "explain, framework", good("workloads/frameworks/megatron-core.json"), ".json", ["explain"] + simulate[1:] + \
        ["--platform", PLATFORM, "--model", MODEL, "--framework", "{}"]
    yield "simulate, collectives", good("platforms/collectives/nccl.json"), ".json", simulate + \
        ["--platform", PLATFORM, "--model", MODEL, "--collective-profile", "{}"]
    yield "validate, rows", FEW_ROWS, ".csv", ["validate", "{}"]
    results = os.path.join(folder, "good.h5")
    subprocess.run([PROGRAM, "sweep", "--platform", PLATFORM, "--model", MODEL] + JOB + ["--pp", "2", "--mbs", "1", "--quiet", "-o", results],
                   cwd=SOURCE, check=True)
    yield "show, results", good(results), ".h5", ["show", "--json", "{}"]
    yield "simulate, strategy", STRATEGY.encode(), None, ["simulate"] + JOB + ["--platform", PLATFORM, "--model", MODEL, "--strategy", "{}"]


wrong, n = 0, 0
print(f"PACELINE_SEED={SEED}")
with tempfile.TemporaryDirectory() as folder:
    for name, bytes_, ending, arguments in commands(folder):
        r, kept = random.Random(f"{SEED} {name}"), set()
        for case in range(CASES):
            data = damaged(bytes_, r) if case else bytes_
            if ending is None:
                data = data.replace(b"\0", b"")
                argument = data
            else:
                argument = os.path.join(folder, "input" + ending).encode()
                with open(argument, "wb") as file:
                    file.write(data)
            problem = check([argument if a == "{}" else a.encode() for a in arguments], folder, kept)
            n += 1
            if problem is not None:
                wrong += 1
                keep = os.path.join(tempfile.gettempdir(), f"paceline-{name.replace(', ', '-').replace(' ', '-')}-{SEED}-{case}{ending or ''}")
                with open(keep, "wb") as file:
                    file.write(data)
                print(f"{name}, case {case}: {problem} (input kept as {keep})")
        if kept != {"accepted", "refused"}:
            wrong += 1
            print(f"{name}: of {CASES} inputs all were {kept}: this tests nothing")
print(f"{n} inputs, {wrong} wrong")
sys.exit(1 if wrong else 0)
