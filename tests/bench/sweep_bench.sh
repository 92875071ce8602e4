#!/usr/bin/env bash
# Candidates per second of one sweep: 1 against all threads, 1 against 2 and 4 ranks, as ratios in one run. Not a test.
#   PACELINE=.build/release/paceline SOURCE_DIR=. tests/bench/sweep_bench.sh [sweep options, default: GPT-2 345M on 16 T4]
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
job=("$@")
if [ $# = 0 ]; then
  job=(--platform "$SOURCE_DIR/platforms/amp-homogeneous.xml" --model "$SOURCE_DIR/workloads/models/gpt2-345m.json" --gbs 256)
fi
cores=$(nproc)
rate() { # ranks threads: candidates per second
  mpirun -n "$1" "$PACELINE" sweep "${job[@]}" --threads "$2" --force --json -o "$folder/bench.h5" |
    /usr/bin/python3 -c 'import json, sys; s = json.load(sys.stdin); print(s["simulated_now"] / s["elapsed_s"])'
}
base=$(rate 1 1)
printf '%-22s %8.0f candidates/s\n' "1 rank, 1 thread" "$base"
for shape in "1 2" "1 $cores" "2 1" "$cores 1" "2 $((cores / 2))"; do
  read -r ranks threads <<< "$shape"
  now=$(rate "$ranks" "$threads")
  /usr/bin/python3 -c 'import sys
ranks, threads, now, base = map(float, sys.argv[1:])
print("%-22s %8.0f candidates/s  %.2fx = %.0f %% of %d cores" % ("%d ranks, %d threads" % (ranks, threads), now, now / base, 100 * now / base / ranks / threads, ranks * threads))' \
    "$ranks" "$threads" "$now" "$base"
done
