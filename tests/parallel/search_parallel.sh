#!/usr/bin/env bash
# The same search by any ranks x threads gives the same bytes, for every method and a budget in simulations; killed anywhere it
# loses no acknowledged row, leaves a file that opens, and --resume ends in those bytes.
# Not sanitized: a dozen searches by every ranks x threads; ThreadSanitizer runs them.
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$SOURCE_DIR"
seed=${PACELINE_SEED:-$RANDOM}
echo "seed $seed"
RANDOM=$seed
job=(--platform platforms/amp-hetero-cluster.xml --model workloads/models/gpt2-345m.json --gbs 32 --mbs 1,2)

# Under a sanitizer, where a run takes ten times as long, what a race needs: more than one thread.
shapes=(2x2 3x1) trials=(1 2 3 4) budget=120
case $PACELINE in */asan/* | */tsan/*) shapes=(2x2) trials=() budget=24 ;; esac

# name ranks threads options ...
search() {
  local name=$1 ranks=$2 threads=$3
  shift 3
  mpirun -n "$ranks" "$PACELINE" search "${job[@]}" --threads "$threads" --quiet -o "$folder/$name.h5" "$@"
}

for method in $("$PACELINE" search --help | sed -n '/^Methods:/,/^$/s/^  \([a-z]*\)  .*/\1/p'); do
  "$PACELINE" search "${job[@]}" --threads 1 --quiet -o "$folder/$method.h5" --method "$method" --budget "$budget"
  for shape in "${shapes[@]}"; do
    search "$method.$shape" "${shape%x*}" "${shape#*x}" --method "$method" --budget "$budget"
    cmp "$folder/$method.h5" "$folder/$method.$shape.h5"
  done
  echo "$method: the same bytes by 1x1 and ${shapes[*]}"
done

# All rows of a file that are acknowledged, as CSV.
rows() { "$PACELINE" show "$1" --where 'status != 0' --sort candidate --csv 2>/dev/null | tail -n +2; }
[ ${#trials[@]} -gt 0 ] || exit 0
search whole 1 2 --method exhaustive
rows "$folder/whole.h5" > "$folder/all.csv"
n=$(wc -l < "$folder/all.csv")
midway=0
for trial in "${trials[@]}"; do
  file=$folder/killed.h5
  rm -f "$file"
  ranks=$((trial % 3 + 1))
  setsid mpirun -n "$ranks" "$PACELINE" search "${job[@]}" --threads 1 --quiet --method exhaustive -o "$file" > "$folder/log" 2>&1 &
  launcher=$!
  for _ in $(seq 1000); do
    [ -e "$file" ] && break
    sleep 0.01
  done
  sleep "0.$(printf %03d $((RANDOM % 600)))"
  mapfile -t found < <(pgrep -P "$launcher" 2>/dev/null || true)
  if [ "${#found[@]}" -gt 0 ]; then kill -9 "${found[@]}" 2>/dev/null || true; fi
  wait "$launcher" 2>/dev/null || true
  rows "$file" > "$folder/acknowledged.csv"
  kept=$(wc -l < "$folder/acknowledged.csv")
  if ! cmp -s "$folder/acknowledged.csv" <(head -n "$kept" "$folder/all.csv"); then
    echo "trial $trial: the acknowledged rows are not the first of the undisturbed run's"; exit 1
  fi
  if [ "$kept" -lt "$n" ]; then midway=$((midway + 1)); fi
  mpirun -n $((trial % 2 + 1)) "$PACELINE" search "${job[@]}" --threads 2 --json --method exhaustive -o "$file" --resume > "$folder/summary.json"
  grep -q "\"simulated_now\": $((n - kept))," "$folder/summary.json" || { echo "trial $trial: simulated other than the $((n - kept)) missing rows"; exit 1; }
  cmp "$folder/whole.h5" "$file"
  [ -z "$(find "$folder" -name 'killed.h5.*')" ] || { echo "trial $trial: left behind: $(ls "$folder")"; exit 1; }
  echo "trial $trial: killed $ranks ranks at $kept of $n rows; resumed to the same bytes"
done
[ "$midway" -ge 1 ] || { echo "only $midway of ${#trials[@]} trials were killed midway"; exit 1; }
