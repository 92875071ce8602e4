#!/usr/bin/env python3
"""Damaged results files: `show` and `--resume` end in their own words, whatever libhdf5 does with the bytes. Seeded mutations of
a small file: bytes of its metadata flipped, set or swapped, and files cut off. Each run ends within a minute with status 0 (the
damage is in a value or in nothing) or with one line and status 1 or 2, and then without a byte on standard output."""
import json
import os
import random
import subprocess
import sys
import tempfile

import h5py

PACELINE = os.environ["PACELINE"]
SEED = int(os.environ.get("PACELINE_SEED", "0")) or random.randrange(1 << 30)
SANITIZED = any(name in PACELINE for name in ("/asan/", "/tsan/"))
N_SHOW, N_RESUME = (40, 8) if SANITIZED else (int(os.environ.get("N_SHOW", "180")), 30)
JOB = ["--platform", "platforms/amp-homogeneous.xml", "--model", "workloads/models/gpt2-345m.json", "--gbs", "32", "--pp", "1,2",
       "--tmp", "1", "--mbs", "1", "--schedule", "1f1b", "--threads", "1", "--quiet"]


def metadata_places(path):
    """Every byte of the file that is not a value of a column."""
    is_value = bytearray(os.path.getsize(path))
    with h5py.File(path, "r") as file:
        for dataset in file.values():
            if dataset.id.get_offset() is None:
                continue
            start, size = dataset.id.get_offset(), dataset.id.get_storage_size()
            is_value[start:start + size] = b"\1" * size
    return [place for place, value in enumerate(is_value) if not value]


def mutate(whole, places, draw):
    if draw.random() < 0.1:
        return whole[:draw.randrange(len(whole))]
    bytes_ = bytearray(whole)
    used = [place for place in places if whole[place]] if draw.random() < 0.7 else places
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        place = draw.choice(used)
        kind = draw.randrange(4)
        if kind == 0:
            bytes_[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            bytes_[place] = draw.choice((0, 1, 0x7f, 0x80, 0xff))
        elif kind == 2:
            bytes_[place] = draw.randrange(256)
        else:
            other = draw.choice(used)
            bytes_[place], bytes_[other] = bytes_[other], bytes_[place]
    return bytes(bytes_)


def run(arguments):
    return subprocess.run([PACELINE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)


def judge(what, done, command, counts):
    said = done.stderr.decode(errors="replace").splitlines()
    if done.returncode == 0:
        counts["read"] += 1
        if "--json" in what:
            json.loads(done.stdout)
        return
    good = done.returncode in (1, 2) and len(said) == 1 and said[0].startswith(f"paceline {command}: ") and done.stdout == b""
    if not good:
        sys.exit(f"{what}: status {done.returncode}, {len(done.stdout)} bytes printed, said: {said}")
    counts["crash" if "crashes" in said[0] else "endless" if "does not end" in said[0] else "refused"] += 1


def main():
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        path, damaged = f"{folder}/whole.h5", f"{folder}/damaged.h5"
        for command in ("search", "sweep"):
            subprocess.run([PACELINE, command, *JOB, "--force", "-o", path], check=True)
            places = metadata_places(path)
            with open(path, "rb") as file:
                whole = file.read()
            counts = dict.fromkeys(("read", "refused", "crash", "endless"), 0)
            for i in range(N_SHOW // 2 + N_RESUME // 2):
                with open(damaged, "wb") as file:
                    file.write(mutate(whole, places, draw))
                what = f"seed {SEED}, {command}, mutation {i}"
                if i < N_SHOW // 2:
                    form = ("--json", "--csv", "--columns=all")[i % 3]
                    judge(f"{what}, show {form}", run(["show", damaged, form, "--where", "true"]), "show", counts)
                else:
                    judge(f"{what}, resume", run([command, *JOB, "--resume", "-o", damaged]), command, counts)
            print(f"{command}: {counts}")


main()
