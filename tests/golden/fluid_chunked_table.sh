#!/usr/bin/env bash
# The tables of netmodel/collective/FLUID_AND_CHUNKED.md are what fluid_chunked_bench prints. To renew them after a change that is meant:
#   tests/golden/fluid_chunked_table.sh --renew BUILD_DIR
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && BUILD_DIR=$2
begin='<!-- fluid_chunked_bench prints: -->' end='<!-- end of fluid_chunked_bench -->'
page=$(block_page netmodel/collective "$begin")
text=$(mktemp)
trap 'rm -f "$text"' EXIT

"$BUILD_DIR/tests/fluid_chunked_bench" | grep -v -e '^ratio |' -e '^fluid_chunked_bench:' >"$text"
[[ -s $text ]] || { echo "the bench printed nothing"; exit 1; }
if [[ ${1:-} == --renew ]]; then
  block_renew "$page" "$begin" "$end" "$text"
  exit
fi
block_check "$page" "$begin" "$end" "$text"
echo "$(wc -l <"$text") lines of $page are what the bench prints"
