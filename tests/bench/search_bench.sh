#!/usr/bin/env bash
# What bound-and-prune saves: the full space of GPT-3 175B on 1024 A100 on 4 cores, candidates per simulation, time against a
# limit of 60 s and memory of a rank against one of 2 GiB. Not a test.
#   PACELINE=.build/release/paceline SOURCE_DIR=. tests/bench/search_bench.sh [RANKS THREADS [search options]]
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ranks=${1:-4} threads=${2:-1}
"$PACELINE" platform make dgx-a100 --nodes 128 -o "$folder/a100-1024.xml"
/usr/bin/python3 - mpirun -n "$ranks" "$PACELINE" search --platform "$folder/a100-1024.xml" --threads "$threads" \
  --model "$SOURCE_DIR/workloads/models/gpt3-175b.json" --gbs 1536 --seq 2048 -o "$folder/best.h5" --json "${@:3}" <<'PYTHON'
import json, resource, subprocess, sys, time
start = time.monotonic()
s = json.loads(subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout)
wall = time.monotonic() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
best = s["top"][0]
print(f"candidates / simulated  {s['candidates']} / {s['rows']} = {s['candidates'] / s['rows']:.0f}")
print(f"  cannot fit            {s['memory_away']}")
print(f"  bounded away          {s['bounded_away']}")
print(f"wall time / 60 s        {wall / 60:.3f} (platform, bounds and the file included)")
print(f"largest rank / 2 GiB    {peak / 2**31:.3f}")
print(f"best                    {best['strategy']}")
PYTHON
