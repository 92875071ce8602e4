#!/usr/bin/env bash
# No room for the results: one clear message, exit status 1, nothing left behind. By a limit on file sizes, and, where mounting is
# allowed, by a disk that really is full.
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
folder=$(mktemp -d)
trap 'umount "$folder/small" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$SOURCE_DIR"
job=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --quiet)
# Open MPI wants files of 4 MB for itself: the space is widened until the results need more than the limit allows.
wide=(--gbs 512 --mbs 1-64 --vpp 2-24 --order tdp,tpd,dtp,dpt,ptd,pdt)

# name, file, command ...: must fail with status 1, say so in one line, and leave the folder as it was
expect_no_room() {
  local name=$1 file=$2 before after status=0
  shift 2
  before=$(ls -A "$(dirname "$file")")
  "$@" 2> "$folder.err" > /dev/null || status=$?
  after=$(ls -A "$(dirname "$file")")
  local said
  said=$(cat "$folder.err")
  rm -f "$folder.err"
  [ "$status" = 1 ] || { echo "$name: status $status: $said"; exit 1; }
  [[ "$said" == "paceline sweep: $file: no room for "* ]] && [ "$(wc -l <<< "$said")" = 1 ] || { echo "$name: said: $said"; exit 1; }
  [ "$before" = "$after" ] || { echo "$name: left behind: $after"; exit 1; }
  echo "$name: $said"
}

mkdir "$folder/limited"
# shellcheck disable=SC2016
expect_no_room "file size limit" "$folder/limited/out.h5" bash -c 'ulimit -f 10240; exec "$0" sweep "${@:2}" -o "$1"' "$PACELINE" "$folder/limited/out.h5" "${job[@]}" "${wide[@]}"
mkdir "$folder/small"
if mount -t tmpfs -o size=300k none "$folder/small" 2>/dev/null; then
  expect_no_room "full disk" "$folder/small/out.h5" "$PACELINE" sweep "${job[@]}" -o "$folder/small/out.h5"
else
  echo "full disk: not tried, mounting is not allowed here"
fi
