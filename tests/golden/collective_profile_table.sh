#!/usr/bin/env bash
# platforms/collectives/nccl.json is what `paceline calibrate` makes of validation/calibration/collectives.csv.gz, byte for byte, and the
# tables of netmodel/collective/CALIBRATED.md are what it prints. To renew both after a change that is meant:
#   tests/golden/collective_profile_table.sh --renew BUILD_DIR
# Control: with a ring of another rate the errors are others.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
begin='<!-- calibrate prints: -->' end='<!-- end of calibrate -->'
page=$(block_page netmodel/collective "$begin")
profile=platforms/collectives/nccl.json rows=validation/calibration/collectives.csv.gz
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline

"$PACELINE" calibrate --collectives "$rows" --output "$scratch/nccl.json" >"$scratch/printed"
if [[ ${1:-} == --renew ]]; then
  cp "$scratch/nccl.json" "$profile"
  block_renew "$page" "$begin" "$end" "$scratch/printed"
  exit
fi
cmp "$scratch/nccl.json" "$profile" || { echo "$profile is not what calibrate makes (if that is meant, renew it: see $0)"; exit 1; }
block_check "$page" "$begin" "$end" "$scratch/printed"

"$PACELINE" calibrate --collectives "$rows" --check >"$scratch/checked"
sed '1,/^$/d' "$scratch/printed" | diff -u - "$scratch/checked" || { echo "--check says other errors than the fit"; exit 1; }
sed 's/"rate": 0\.[78][0-9]*/"rate": 0.2/' "$profile" >"$scratch/slow.json"
"$PACELINE" calibrate --collectives "$rows" --check --profile "$scratch/slow.json" >"$scratch/slow"
! cmp -s "$scratch/slow" "$scratch/checked" || { echo "another rate changes no error"; exit 1; }
