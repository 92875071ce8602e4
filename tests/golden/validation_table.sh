#!/usr/bin/env bash
# The tables of validation/*.md and the picture are what `paceline validate` gives now, so that no change of a prediction goes unseen; and the top
# README.md has the headline figures of them. To renew all that after a change that is meant:
#   tests/golden/validation_table.sh --renew BUILD_DIR
# Control: a table with one figure changed is noticed.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
end='<!-- end -->'
begin_excerpt='<!-- headline, from here -->' end_excerpt='<!-- headline, to here -->'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
residuals=workloads/residuals.json
"$PACELINE" calibrate --residuals validation/calibration -o "$scratch/residuals.json" >"$scratch/residuals.txt"
if [[ ${1:-} == --renew ]]; then
  cp "$scratch/residuals.json" $residuals
else
  cmp $residuals "$scratch/residuals.json" || { echo "$residuals is not what paceline calibrate --residuals writes (renew: see $0)"; exit 1; }
fi
"$PACELINE" validate validation/measured/*.csv --ablation --svg "$scratch/picture.svg" \
  --csv "$scratch/measured.csv" >"$scratch/measured.txt"
"$PACELINE" validate validation/memory/*.csv.gz >"$scratch/memory.txt"
"$PACELINE" validate validation/calibration/{mosaicml_mpt,vocab_parallelism}.csv >"$scratch/calibration.txt"

# part SET FIRST_WORD: that table, without the paths of files, as a block of code
part() {
  echo '```'
  sed -n "/^$2/,/^\$/p" "$scratch/$1.txt" | sed -e '/^$/d' -e 's/ validation\/[a-z/]*\/\([a-z0-9_]*\)\.csv/ \1/'
  echo '```'
}
mkdir "$scratch/parts"
part measured 'family ' | sed -e '/^mean over/d' -e 's/^\([^`].\{112\}\).*/\1/; s/ *$//' >"$scratch/parts/families of measured"
{
  echo '```'
  sed -n '1s/.*\(, [0-9]* compared\); \(.*\)/all: \2\1/p' "$scratch/measured.txt" | sed 's/ of them//'
  python3 - "$scratch/measured.csv" <<'END'
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["error_pct"] and r["family"] != "nanotron_ultrascale"]
inside = sum(float(r["predicted_low_s"]) <= float(r["measured_s"]) <= float(r["predicted_high_s"]) for r in rows)
print("without nanotron: %.0f %% in their 80 %% intervals, %d compared" % (100 * inside / len(rows), len(rows)))
END
  part measured 'family ' | sed -e 1d -e '/^mean /!s/^\([^`].\{39\}\).\{73\}/\1/' -e 's/ *$//' -e '/^[a-z_0-9]*$/d'
} >"$scratch/parts/coverage of measured"
{
  part measured 'ablation' | sed '$d'
  echo
  part measured 'sharing changes' | sed 1d
} >"$scratch/parts/ablation of measured"
{
  echo '```'
  PACELINE=$PACELINE validation/calibration/leave_one_out.sh "$scratch/measured.txt"
  echo '```'
} >"$scratch/parts/sources left out"
sed '/^$/d; s/^centre/\n&/' "$scratch/residuals.txt" >"$scratch/parts/residuals of calibration"
part measured 'where sharing counts' >"$scratch/parts/sharing of measured"
part measured 'not expressed' >"$scratch/parts/reasons of measured"
part measured 'memory ' >"$scratch/parts/memory of measured"
part memory 'memory ' >"$scratch/parts/memory of memory"
part calibration 'family ' >"$scratch/parts/families of calibration"

act=block_check
[[ ${1:-} == --renew ]] && act=block_renew
n=0
for text in "$scratch"/parts/*; do
  [[ $(wc -l <"$text") -ge 4 ]] || { echo "paceline validate printed no table for: ${text##*/}"; exit 1; }
  begin="<!-- ${text##*/}/ -->"
  page=$(block_page validation "$begin")
  "$act" "$page" "$begin" "$end" "$text"
  n=$((n + 1))
done

awk '/^mean over the sources/ { gsub(/[()]/, ""); n = $5; mean = $6; middle = $NF }
  END { if (n > 0) printf "**Over %s sources of published runs, predicted iteration times are off by %s %% on average (median source: %s %%).** Nothing of a source is in any fit when it is\npredicted. The twenty that were collected last, run blind, were off by 29.4 %% at first: people'\''s own trainers, Ethernet, single cards ([what was wrong](validation/UNSEEN_SOURCES.md#blind-own)).\n", n, mean, middle }' \
  "$scratch/parts/sources left out" >"$scratch/excerpt"
[[ $(wc -l <"$scratch/excerpt") -eq 2 ]] || { echo "the sources left out have no means for the top README"; exit 1; }
"$act" README.md "$begin_excerpt" "$end_excerpt" "$scratch/excerpt"

picture=validation/measured_vs_predicted.svg
if [[ $act == block_renew ]]; then
  cp "$scratch/picture.svg" "$picture"
else
  cmp "$picture" "$scratch/picture.svg" || { echo "$picture is not what paceline validate --svg draws (renew: see $0)"; exit 1; }
fi

sed 's/^bigscience_bloom_a100  *108/bigscience_bloom_a100 107/' "$scratch/parts/families of measured" >"$scratch/other"
! block_check validation/README.md "<!-- families of measured/ -->" "$end" "$scratch/other" >/dev/null || { echo "control: a changed figure is not noticed"; exit 1; }
echo "$n tables are what paceline validate prints"
