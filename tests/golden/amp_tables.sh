#!/usr/bin/env bash
# The tables of validation/papers/amp.md are what validation/papers/amp/amp_tables.py prints now. To renew them after a change that is meant:
#   tests/golden/amp_tables.sh --renew BUILD_DIR
# Control: a table with one figure changed is noticed.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
end='<!-- end -->'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for table in strategies methods costs 'effort --counts'; do
  text=$scratch/text begin="<!-- amp_tables.py $table: -->"
  page=$(block_page validation/papers "$begin")
  # shellcheck disable=SC2086
  { echo '```'; /usr/bin/python3 validation/papers/amp/amp_tables.py "$PACELINE" $table; echo '```'; } >"$text"
  [[ $(wc -l <"$text") -ge 9 ]] || { echo "amp_tables.py $table printed no table"; exit 1; }
  if [[ ${1:-} == --renew ]]; then
    block_renew "$page" "$begin" "$end" "$text"
    continue
  fi
  block_check "$page" "$begin" "$end" "$text"
  sed '0,/1/s//2/' "$text" >"$scratch/other"
  ! block_check "$page" "$begin" "$end" "$scratch/other" >/dev/null || { echo "control: a changed figure is not noticed"; exit 1; }
done
