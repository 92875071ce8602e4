#!/usr/bin/env bash
# The tables of netmodel/README.md, "Fluid against chunked", are what fluid_chunked_bench prints. To renew them after a change that is meant:
#   tests/golden/fluid_chunked_table.sh --renew BUILD_DIR
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
readme=netmodel/README.md begin='<!-- fluid_chunked_bench prints: -->' end='<!-- end of fluid_chunked_bench -->'

if [[ ${1:-} == --renew ]]; then
  table=$(mktemp)
  "$2/tests/fluid_chunked_bench" | grep -v -e '^ratio |' -e '^fluid_chunked_bench:' >"$table"
  sed -i -e "/^$begin\$/,/^$end\$/{/^$begin\$/{p;r $table
}
/^$end\$/!d}" "$readme"
  rm -f "$table"
  exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$BUILD_DIR/tests/fluid_chunked_bench" | grep -v -e '^ratio |' -e '^fluid_chunked_bench:' >"$scratch/printed"
sed -n "/^$begin\$/,/^$end\$/p" "$readme" | sed '1d;$d' >"$scratch/written"
[[ -s $scratch/printed ]] || { echo "the bench printed nothing"; exit 1; }
diff -u "$scratch/written" "$scratch/printed" || { echo "$readme differs from what the bench prints (renew: see $0)"; exit 1; }
echo "$(wc -l <"$scratch/printed") lines of $readme are what the bench prints"
