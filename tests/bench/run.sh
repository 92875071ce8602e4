#!/usr/bin/env bash
# Runs benches and collects their ratios into one table.
#
#   tests/bench/run.sh [--small] [NAME ...]     all of them, or those named (engine_bench, commands_bench, ...)
#   tests/bench/run.sh --renew                  puts the table of the last full run into tests/bench/README.md
#
# Environment: BUILD_DIR (default .build/release), SOURCE_DIR (default: the repository); BENCH_BASE=<build folder>:
# commands_bench also compares with that build of Paceline. A bench that fails, or ends without its closing line, fails the run.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
export PYTHONDONTWRITEBYTECODE=1 SOURCE_DIR=$PWD BUILD_DIR=${BUILD_DIR:-$PWD/.build/release}
export PACELINE=${PACELINE:-$BUILD_DIR/paceline}
readme=tests/bench/README.md begin='<!-- the last full run: -->' end='<!-- end -->' kept=$BUILD_DIR/bench_ratios.md

if [[ ${1:-} == --renew ]]; then
  [[ -s $kept ]] || { echo "run.sh: there is no $kept yet: './bootstrap bench' first" >&2; exit 2; }
  source tests/golden/blocks.sh.inc
  block_renew "$readme" "$begin" "$end" "$kept"
  exit 0
fi

small=()
if [[ ${1:-} == --small ]]; then small=(--small); shift; fi
names=("$@")
if [[ $# -eq 0 ]]; then
  mapfile -t names < <(basename -a -s .c tests/bench/*_bench.c && basename -a -s .py tests/bench/*_bench.py)
fi
output=$(mktemp)
table=$(mktemp)
trap 'rm -f "$output" "$table"' EXIT
failed=0
echo '| bench | what | against what | ratio | spread |' >"$table"
echo '|---|---|---|--:|---|' >>"$table"
for name in "${names[@]}"; do
  printf '\n$ %s %s\n' "$name" "${small[*]}"
  if [[ -e tests/bench/$name.py ]]; then command=(/usr/bin/python3 "tests/bench/$name.py"); else command=("$BUILD_DIR/tests/$name"); fi
  if "${command[@]}" "${small[@]}" | tee "$output" && grep -q "^$name: [0-9]* ratios" "$output"; then
    sed -n "s/^ratio | \(.*\)\$/| $name | \1 |/p" "$output" >>"$table"
  else
    echo "$name failed" >&2
    failed=1
  fi
done
printf '\n'
cat "$table"
if [[ $# -eq 0 && ${#small[@]} -eq 0 && $failed -eq 0 ]]; then
  cp "$table" "$kept"
  printf '\nTo put this table into %s: tests/bench/run.sh --renew\n' "$readme"
fi
exit $failed
