#!/usr/bin/env bash
# The same sweep by any ranks x threads gives the same bytes; killed anywhere, by one rank or all, it loses no acknowledged row and
# --resume ends in those bytes.
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$SOURCE_DIR"
seed=${PACELINE_SEED:-$RANDOM}
echo "seed $seed"
RANDOM=$seed
job=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --mbs 1,2,4)

# Under a sanitizer, where a run takes ten times as long, what a race needs and one kill of each kind.
shapes=(1x4 2x2 4x1) n_trials=12
case $PACELINE in */asan/* | */tsan/*) shapes=(2x2) n_trials=3 ;; esac

# name ranks threads [more options]: one complete sweep
sweep() {
  local name=$1 ranks=$2 threads=$3
  shift 3
  mpirun -n "$ranks" "$PACELINE" sweep "${job[@]}" --threads "$threads" --quiet -o "$folder/$name.h5" "$@"
}

# The same bytes without features, and then with them, as all that follows.
"$PACELINE" sweep "${job[@]}" --threads 1 --quiet -o "$folder/plain.h5"
sweep plain2x2 2 2
cmp "$folder/plain.h5" "$folder/plain2x2.h5"
job+=(--features)

started_us=${EPOCHREALTIME/./}
"$PACELINE" sweep "${job[@]}" --threads 1 --quiet -o "$folder/1x1.h5" # without mpirun
sweep_us=$((${EPOCHREALTIME/./} - started_us)) # on this machine, as busy as it is: trials below are killed within that
for shape in "${shapes[@]}"; do
  sweep "$shape" "${shape%x*}" "${shape#*x}"
  cmp "$folder/1x1.h5" "$folder/$shape.h5"
  echo "$shape: the bytes of 1x1"
done

# Rows of a file whose status is not 0, as CSV, candidate first.
rows() { "$PACELINE" show "$1" --where 'status != 0' --sort candidate --csv 2>/dev/null | tail -n +2; }
rows "$folder/1x1.h5" > "$folder/all.csv"
n=$(wc -l < "$folder/all.csv")

killed_midway=0
for trial in $(seq "$n_trials"); do
  file=$folder/killed.h5
  rm -f "$file"
  ranks=$((trial % 3 + 1)) victim=$([ $((trial % 2)) = 0 ] && echo one || echo all)
  # A session of its own, so that only these processes are killed; the pause after the file appears is random,
  # up to half of what the ranks would need.
  if [ "$ranks" = 1 ]; then launch=(setsid); else launch=(setsid mpirun -n "$ranks"); fi # one without MPI
  "${launch[@]}" "$PACELINE" sweep "${job[@]}" --threads 1 --quiet -o "$file" > "$folder/log" 2>&1 &
  launcher=$!
  for _ in $(seq 400); do
    [ -e "$file" ] && break
    sleep 0.01
  done
  pause_us=$((RANDOM * sweep_us / 65536 / ranks))
  sleep "$((pause_us / 1000000)).$(printf %06d $((pause_us % 1000000)))"
  if [ "$ranks" = 1 ]; then found=("$launcher"); else mapfile -t found < <(pgrep -P "$launcher" 2>/dev/null || true); fi
  if [ "${#found[@]}" -gt 0 ]; then
    if [ "$victim" = one ]; then kill -9 "${found[$((RANDOM % ${#found[@]}))]}" 2>/dev/null || true; else kill -9 "${found[@]}" 2>/dev/null || true; fi
  fi
  wait "$launcher" 2>/dev/null || true
  rows "$file" > "$folder/acknowledged.csv"
  kept=$(wc -l < "$folder/acknowledged.csv")
  # Every acknowledged row is whole: the row of the undisturbed run.
  if [ -n "$(comm -23 <(sort "$folder/acknowledged.csv") <(sort "$folder/all.csv"))" ]; then
    echo "trial $trial: an acknowledged row is not the undisturbed run's"; exit 1
  fi
  if [ "$kept" -lt "$n" ]; then killed_midway=$((killed_midway + 1)); fi
  mpirun -n $((trial % 2 + 1)) "$PACELINE" sweep "${job[@]}" --threads 2 --json -o "$file" --resume > "$folder/summary.json"
  grep -q "\"simulated_now\": $((n - kept))," "$folder/summary.json" || { echo "trial $trial: resumed more or less than the $((n - kept)) missing rows"; exit 1; }
  cmp "$folder/1x1.h5" "$file"
  echo "trial $trial: killed $victim of $ranks ranks at $kept of $n rows; resumed to the same bytes"
done
[ "$killed_midway" -ge $((n_trials / 4)) ] || { echo "only $killed_midway of $n_trials trials were killed midway"; exit 1; }
