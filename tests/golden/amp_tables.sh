#!/usr/bin/env bash
# "AMP's tables" in search/README.md are what validation/papers/amp/amp_tables.py prints now. To renew them after a change that is meant:
#   tests/golden/amp_tables.sh --renew BUILD_DIR
# Control: a table with one figure changed is noticed.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
readme=search/README.md end='<!-- end -->'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

between() { sed -n "/^<!-- amp_tables.py $1: -->\$/,/^$end\$/p" "$readme" | sed '1d;$d'; }

for table in strategies methods costs 'effort --counts'; do
  text=$scratch/text
  # shellcheck disable=SC2086
  { echo '```'; /usr/bin/python3 validation/papers/amp/amp_tables.py "$PACELINE" $table; echo '```'; } >"$text"
  [[ $(wc -l <"$text") -ge 9 ]] || { echo "amp_tables.py $table printed no table"; exit 1; }
  if [[ ${1:-} == --renew ]]; then
    sed -i -e "/^<!-- amp_tables.py $table: -->\$/,/^$end\$/{/^<!-- amp_tables.py $table: -->\$/{p;r $text
}
/^$end\$/!d}" "$readme"
    continue
  fi
  diff -u <(between "$table") "$text" || { echo "$readme differs from what amp_tables.py $table prints (renew: see $0)"; exit 1; }
  ! diff -q <(between "$table" | sed '0,/1/s//2/') "$text" >/dev/null || { echo "control: a changed figure is not noticed"; exit 1; }
done
