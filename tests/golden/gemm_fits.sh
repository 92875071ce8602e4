#!/usr/bin/env bash
# The shipped fits of matrix products are what `paceline calibrate` makes of the shipped tables, and the errors in
# validation/calibration/README.md are those of the profiles. Run again here: the small tables (the others take a minute:
# validation/calibration/fit_gemm.sh). Figures may differ by 1 %: libraries of mathematics round the last bit as they like.
# Control: a profile with one figure changed must be found. That the stated errors are right is gemm_errors.py's business.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
SECTION=gemm
source tests/golden/fits.sh.inc
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
devices=platforms/devices tables=validation/calibration readme=validation/calibration/README.md

for pair in V100:V100-SXM2-32GB T4:T4 P100:P100 TitanXp:TitanXp; do
  profile=$devices/${pair#*:}.json
  jq 'del(.gemm, .provenance.gemm)' "$profile" >"$scratch/bare.json"
  "$PACELINE" calibrate --gemm "$tables/gemm_${pair%%:*}.csv.gz" --base "$scratch/bare.json" -o "$scratch/made.json" --force >"$scratch/said"
  same "$profile" "$scratch/made.json" || { echo "(if that is meant, run validation/calibration/fit_gemm.sh)"; exit 1; }
done
jq '.gemm.fits[0].tile_efficiency["128x128"] *= 1.02' "$scratch/made.json" >"$scratch/changed.json"
if same "$scratch/changed.json" "$scratch/made.json" >/dev/null; then echo "control: a changed figure was not found" >&2; exit 1; fi

# The table's third to fifth columns: shapes held out, median / 90th percentile.
sed -n '/^<!-- held out/,/^<!-- end of held out/p' "$readme" | sed -n 's/^| \([A-Z][^|]*\) | \([bft][^|]*\) | [0-9,]* | \([0-9,]*\) | \([0-9.]* \/ [0-9.]*\) .*/\1 \2: \3: \4/p' | tr -d ',' | sort >"$scratch/shown"
for profile in "$devices"/*.json; do
  jq -r 'def round1: . * 1000 | round / 10 | tostring | if test("\\.") then . else . + ".0" end;
    .name as $name | .gemm.fits[]? | select(.held_out) |
    "\($name) \(.dtypes | join(" ")): \(.held_out.shapes): \(.held_out.median_error | round1) / \(.held_out.p90_error | round1)"' "$profile"
done | sort >"$scratch/are"
diff -u "$scratch/shown" "$scratch/are" || { echo "$readme shows other errors than the profiles have"; exit 1; }
[[ $(wc -l <"$scratch/are") -ge 9 ]]

# What the project set out to reach, on shapes that no fit has seen.
for name in A100-SXM4-80GB H100-SXM5-80GB; do
  jq -e '[.gemm.fits[] | select(.dtypes | index("bf16")) | .held_out | .median_error <= 0.05 and .p90_error <= 0.15] == [true]' "$devices/$name.json" >/dev/null ||
    { echo "$name: the error of matrix products is above 5 % (median) or 15 % (90th percentile)"; exit 1; }
done
for profile in "$devices"/*.json; do
  [[ $(wc -c <"$profile") -le $((256 * 1024)) ]] || { echo "$profile has more than 256 KiB"; exit 1; }
done
echo "4 fits made again, $(wc -l <"$scratch/are") errors as shown"
