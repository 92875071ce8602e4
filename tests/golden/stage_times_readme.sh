#!/usr/bin/env bash
# The sums of op times in validation/calibration/README.md are what stage_times_bench prints. After a change that is meant:
#   PACELINE_UPDATE_GOLDEN=1 BUILD_DIR=.build/release tests/golden/stage_times_readme.sh
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
readme=validation/calibration/README.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$BUILD_DIR/tests/stage_times_bench" | grep -v -e '^ratio |' -e '^stage_times_bench:' >"$scratch/printed"
sed -n '/^<!-- stage_times_bench prints/,/^<!-- end of stage_times_bench/p' "$readme" | sed '1d;$d' >"$scratch/shown"

if [[ -n ${PACELINE_UPDATE_GOLDEN:-} ]]; then
  sed -e "/^<!-- stage_times_bench prints/r $scratch/printed" \
    -e '/^<!-- stage_times_bench prints/,/^<!-- end of stage_times_bench/{/^<!--/!d}' "$readme" >"$scratch/readme"
  cp "$scratch/readme" "$readme"
  exit 0
fi
diff -u "$scratch/shown" "$scratch/printed" || { echo "other figures than in $readme (if that is meant, renew it: see $0)"; exit 1; }
echo "$(wc -l <"$scratch/shown") lines are those of $readme"
