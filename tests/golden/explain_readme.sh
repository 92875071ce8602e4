#!/usr/bin/env bash
# The example of `paceline explain` in workloads/EXPLAIN.md is what the command prints. To renew it after a change that is meant:
#   tests/golden/explain_readme.sh --renew BUILD_DIR
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
begin='<!-- explain prints: -->' end='<!-- end of explain -->'
page=$(block_page workloads "$begin")
text=$(mktemp)
trap 'rm -f "$text"' EXIT

command=$(sed -n 's/^    paceline \(explain .*\)/\1/p' "$page")
[[ $(wc -l <<<"$command") -eq 1 && -n $command ]] || { echo "$page: not one example of explain"; exit 1; }
# shellcheck disable=SC2086
{ echo '```'; "$PACELINE" $command; echo '```'; } >"$text"

if [[ ${1:-} == --renew ]]; then
  block_renew "$page" "$begin" "$end" "$text"
  exit
fi
block_check "$page" "$begin" "$end" "$text"
echo "the example of $page is what explain prints"
