#!/usr/bin/env bash
# One rank of two runs out of memory, at any of its own allocations: all ranks leave together, with one line and exit status 1; none
# waits for ever. What ends well all the same has the bytes of the undisturbed run, or a row that says that its candidate failed.
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
case $PACELINE in */asan/* | */tsan/*) echo "not under a sanitizer, which has a malloc of its own"; exit 0 ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$SOURCE_DIR"
job=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --pp 1,2 --tmp 1 --mbs 1 --schedule 1f1b
  --threads 1)
cc -shared -fPIC -O1 -o "$folder/preload.so" tests/fault/rank_memory_preload.c

# rank, number of the allocation, command ...
disturbed() {
  local rank=$1 at=$2
  shift 2
  rm -f "$folder"/out.h5*
  PACELINE_FAIL_RANK=$rank PACELINE_FAIL_AT=$at PACELINE_FAIL_COUNT=$folder/count \
    timeout 60 mpirun -n 2 -x LD_PRELOAD="$folder/preload.so" "$PACELINE" "$@" "${job[@]}"
}

# name, rank, step, how many, command ...: every step-th allocation of that rank, from the last one backwards, fails.
try() {
  local name=$1 rank=$2 step=$3 tries=$4 status said n
  shift 4
  disturbed "$rank" 0 "$@" > "$folder/expected"
  n=$(cat "$folder/count")
  if [ -e "$folder/out.h5" ]; then mv "$folder/out.h5" "$folder/expected.h5"; fi
  [ "$n" -gt 10 ] || { echo "$name: only $n allocations were seen"; exit 1; }
  for ((at = n; at > 0 && at > n - tries * step; at -= step)); do
    status=0
    disturbed "$rank" "$at" "$@" > "$folder/out" 2> "$folder/err" || status=$?
    said=$(grep -c '^paceline .*: out of memory: no room for ' "$folder/err" || true)
    if [ "$status" = 0 ]; then
      cmp "$folder/expected" "$folder/out"
      if [ -e "$folder/expected.h5" ] && ! cmp -s "$folder/expected.h5" "$folder/out.h5" &&
        [ "$("$PACELINE" show "$folder/out.h5" --where "status == 'failed'" --csv | wc -l)" -lt 2 ]; then
        echo "$name, allocation $at of $n of rank $rank: other bytes, and no row that says that it failed"
        exit 1
      fi
    elif [ "$status" != 1 ] || [ "$said" != 1 ]; then
      echo "$name, allocation $at of $n of rank $rank: status $status, said: $(cat "$folder/err")"
      exit 1
    fi
  done
  rm -f "$folder/expected.h5"
  echo "$name: allocations of rank $rank, of $n every $step. from the end, $tries at most"
}

try "sweep" 1 1 6 sweep --quiet -o "$folder/out.h5"
try "sweep" 0 3 3 sweep --quiet -o "$folder/out.h5"
try "search" 1 7 3 search --quiet -o "$folder/out.h5"
try "search" 0 9 4 search --quiet -o "$folder/out.h5"
try "searches side by side" 1 11 3 search --compare bound,megatron --vary link:nic.bandwidth=x2
