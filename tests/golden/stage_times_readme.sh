#!/usr/bin/env bash
# The sums of op times in validation/calibration/README.md are what stage_times_bench prints. To renew them after a change that is meant:
#   tests/golden/stage_times_readme.sh --renew BUILD_DIR
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && BUILD_DIR=$2
begin='<!-- stage_times_bench prints: -->' end='<!-- end of stage_times_bench -->'
page=$(block_page validation/calibration "$begin")
text=$(mktemp)
trap 'rm -f "$text"' EXIT

"$BUILD_DIR/tests/stage_times_bench" | grep -v -e '^ratio |' -e '^stage_times_bench:' >"$text"
if [[ ${1:-} == --renew ]]; then
  block_renew "$page" "$begin" "$end" "$text"
  exit
fi
block_check "$page" "$begin" "$end" "$text"
echo "$(wc -l <"$text") lines of $page are what the bench prints"
