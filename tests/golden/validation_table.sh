#!/usr/bin/env bash
# The tables of validation/README.md and the picture are what validation/compare.py prints now, so that no change of a prediction goes
# unseen; and the top README.md says of it what validation/README.md says, table and words. To renew all that after a change that is meant:
#   tests/golden/validation_table.sh --renew BUILD_DIR
# Control: compare.py names a row that it cannot express, and does not drop it.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
picture=validation/measured_vs_predicted.svg
end='<!-- end of compare.py -->'
begin_excerpt='<!-- as in validation/README.md, from here -->' end_excerpt='<!-- as in validation/README.md, to here -->'
begin_full='<!-- compare.py prints: -->' begin_short='<!-- compare.py --short prints: -->'
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
export PACELINE PYTHONDONTWRITEBYTECODE=1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
/usr/bin/python3 validation/compare.py --svg "$scratch/picture.svg" >"$scratch/full"
sed '/^$/,$d' "$scratch/full" >"$scratch/short"
[[ -s $scratch/full && -s $scratch/short ]] || { echo "compare.py printed nothing"; exit 1; }

# between FILE BEGIN END: the lines between the marks
between() { sed -n "\\|^$2\$|,\\|^$3\$|p" "$1" | sed '1d;$d'; }

renew() { # FILE BEGIN END TEXT
  sed -i -e "\\|^$2\$|,\\|^$3\$|{\\|^$2\$|{p;r $4
}
\\|^$3\$|!d}" "$1"
}

check() { # FILE BEGIN END TEXT
  diff -u <(between "$1" "$2" "$3") "$4" || { echo "$1 differs from what compare.py prints (renew: see $0)"; exit 1; }
}

act=check
if [[ ${1:-} == --renew ]]; then
  act=renew
  cp "$scratch/picture.svg" "$picture"
fi
"$act" validation/README.md "$begin_full" "$end" "$scratch/full"
"$act" validation/README.md "$begin_short" "$end" "$scratch/short"

# What validation/README.md has for the top README, from where that stands: the same, with its picture found.
between validation/README.md '<!-- for the top README: from here -->' '<!-- for the top README: to here -->' |
  sed -e 's|](measured_vs_predicted.svg)|](validation/measured_vs_predicted.svg)|' -e '${/^$/d}' >"$scratch/excerpt"
grep -q "^$begin_short\$" "$scratch/excerpt" || { echo "validation/README.md has no table for the top README"; exit 1; }
"$act" README.md "$begin_excerpt" "$end_excerpt" "$scratch/excerpt"
cmp "$picture" "$scratch/picture.svg" || { echo "$picture is not what compare.py draws (renew: see $0)"; exit 1; }

sed -e '2s/DGX-2/abacus/' -e '4s/,1.238,/,,/' validation/megatron.csv >"$scratch/odd.csv"
/usr/bin/python3 validation/compare.py --measured "$scratch/odd.csv" >"$scratch/odd"
grep -q "Row 1, GPT 1B on 1 V100, is not simulated: no machine for GPU 'V100-32GB-SXM3 (abacus)'" "$scratch/odd" ||
  { echo "control: a row on an unknown machine is not named"; exit 1; }
grep -q "Row 3, GPT 4B on 4 .*, is not simulated: not stated: step_time_s" "$scratch/odd" ||
  { echo "control: a row without a measurement is not named"; exit 1; }
grep -q '^| Megatron-LM README | 13 | 11 |' "$scratch/odd" || { echo "control: such rows were counted"; exit 1; }
echo "$(wc -l <"$scratch/full") lines and one picture are what compare.py makes"
