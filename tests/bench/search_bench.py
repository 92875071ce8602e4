#!/usr/bin/env python3
"""What bound-and-prune saves: the full space of GPT-3 175B on 1024 A100, candidates per simulation; wall time against
a limit of 60 s and memory of a rank against one of 2 GiB.

  PACELINE=.build/release/paceline SOURCE_DIR=. tests/bench/search_bench.py [--small]"""
import json
import tempfile

import bench
from bench import CORES, PROGRAM, SMALL, Run, model, platform, ratio

with tempfile.TemporaryDirectory() as folder:
    run = Run(PROGRAM, ["search", "--platform", platform(folder, 8 if SMALL else 128), "--threads", "1", "--model", model("gpt3-175b"),
                        "--gbs", "192" if SMALL else "1536", "--seq", "2048", "-o", f"{folder}/best.h5", "--json"] +
              (["--tmp", "8"] if SMALL else []), ranks=2 if SMALL else CORES)
    found = json.loads(run.output)
    print(f"{found['candidates']} candidates: {found['memory_away']} cannot fit, {found['bounded_away']} bounded away, "
          f"{found['rows']} simulated; best {found['top'][0]['strategy']}")
    ratio("search, method bound, of 1024 A100: candidates", "simulated", found["candidates"] / found["rows"])
    ratio(f"search, method bound, of 1024 A100, {CORES} ranks: wall time", "60 s", run.wall_s / 60)
    ratio("search, method bound, of 1024 A100: largest rank", "2 GiB", run.peak_bytes / 2**31)
bench.end("search_bench")
