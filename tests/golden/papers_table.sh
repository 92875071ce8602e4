#!/usr/bin/env bash
# What validation/papers/README.md says of the papers' own tables is what `paceline validate` gives now. To renew it after a change that is meant:
#   tests/golden/papers_table.sh --renew BUILD_DIR
# Control: a table with one figure changed is noticed.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
end='<!-- end -->'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/parts"

trials=validation/measured/amp_homogeneous.csv layers=validation/calibration/amp_layer_times.csv
# amp LABEL OPTION ...: the family's line under another name
amp() {
  local label=$1
  shift
  "$PACELINE" validate "$trials" "$@" | sed -n '/^family /,/^$/p' | sed -e '/^$/d' -e 's/^\(.\{113\}\).*/\1/' -e "s/^amp_homogeneous.\{25\}/$(printf '%-40s' "$label")/"
}
{
  echo '```'
  amp 'without layer times'
  amp 'with them' --op-profile $layers | tail -1
  amp 'with them, no contention' --op-profile $layers --network analytic | tail -1
  echo '```'
} >"$scratch/parts/AMP"

# mixed LABEL NETWORK: DT-FM's mixed cluster
mixed() {
  "$PACELINE" validate validation/papers/dtfm/mixed.csv --platform validation/papers/dtfm/mixed.xml --network "$2" |
    sed -n '/^family /,/^$/p' | sed -e '/^$/d' -e 's/^\(.\{113\}\).*/\1/' -e "s/^dtfm_mixed.\{30\}/$(printf '%-40s' "$1")/"
}
{
  echo '```'
  mixed 'transfers share links' flow
  mixed 'each as if alone' analytic | tail -1
  echo '```'
} >"$scratch/parts/DT-FM"

"$PACELINE" validate validation/papers/proteus_table5.csv >"$scratch/proteus.txt"
{
  echo '```'
  sed -n '/^order: /,/^  rank correlation/p' "$scratch/proteus.txt"
  echo '```'
} >"$scratch/parts/Proteus"

"$PACELINE" validate validation/papers/d*.csv >"$scratch/others.txt"
{
  echo '```'
  sed -n '/^family /,/^$/p' "$scratch/others.txt" | sed -e '/^$/d' -e 's/^\(.\{113\}\).*/\1/'
  echo
  sed -n '/^beside /,/^$/p' "$scratch/others.txt" | sed '/^$/d'
  echo
  sed -n '/^not expressed /,/^$/p' "$scratch/others.txt" | sed -e '/^$/d' -e 's/validation\/papers\///'
  echo '```'
} >"$scratch/parts/dPRO and DistIR"

act=block_check
[[ ${1:-} == --renew ]] && act=block_renew
n=0
for text in "$scratch"/parts/*; do
  [[ $(wc -l <"$text") -ge 5 ]] || { echo "paceline validate printed no table for: ${text##*/}"; exit 1; }
  begin="<!-- ${text##*/}, of papers -->"
  page=$(block_page validation/papers "$begin")
  "$act" "$page" "$begin" "$end" "$text"
  n=$((n + 1))
done

sed '/^with them, no/s/ 52 / 51 /' "$scratch/parts/AMP" >"$scratch/other"
! block_check validation/papers/README.md "<!-- AMP, of papers -->" "$end" "$scratch/other" >/dev/null || { echo "control: a changed figure is not noticed"; exit 1; }
echo "$n tables are what paceline validate prints"
