#!/usr/bin/env bash
# Candidates per second of one sweep: 1 against all threads, 1 against 2 and 4 ranks, as ratios in one run; and CPU time
# per candidate against that of one thread, which says how much of a loss is the program's (contention, waiting awake)
# and how much the machine's, where others run. Not a test.
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
measure() { # ranks threads: candidates per second, and CPU milliseconds per candidate of all ranks together
  /usr/bin/python3 - mpirun -n "$1" "$PACELINE" sweep "${job[@]}" --threads "$2" --force --json -o "$folder/bench.h5" <<'PYTHON'
import json, resource, subprocess, sys
result = json.loads(subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(result["simulated_now"] / result["elapsed_s"], 1e3 * (used.ru_utime + used.ru_stime) / result["simulated_now"])
PYTHON
}
read -r base base_ms <<< "$(measure 1 1)"
printf '%-22s %8.0f candidates/s  CPU %.2f ms each\n' "1 rank, 1 thread" "$base" "$base_ms"
for shape in "1 2" "1 $cores" "2 1" "$cores 1" "2 $((cores / 2))"; do
  read -r ranks threads <<< "$shape"
  read -r now now_ms <<< "$(measure "$ranks" "$threads")"
  /usr/bin/python3 -c 'import sys
ranks, threads, now, base, now_ms, base_ms = map(float, sys.argv[1:])
print("%-22s %8.0f candidates/s  %.2fx = %.0f %% of %d cores; CPU %.2fx" % ("%d ranks, %d threads" % (ranks, threads), now, now / base, 100 * now / base / ranks / threads, ranks * threads, now_ms / base_ms))' \
    "$ranks" "$threads" "$now" "$base" "$now_ms" "$base_ms"
done
