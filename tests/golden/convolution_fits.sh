#!/usr/bin/env bash
# The shipped fits of convolutions are what `paceline calibrate` makes of the shipped table (figures may differ by 1 %), and
# the errors in validation/calibration/README.md are those of the profiles. PACELINE_UPDATE_GOLDEN=1 writes the errors.
# Control: a changed figure must be found.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
SECTION=convolutions
source tests/golden/fits.sh.inc
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
devices=platforms/devices table=validation/calibration/convolutions.csv.gz readme=validation/calibration/README.md

for name in V100-SXM2-32GB T4 P100 TitanXp; do
  jq 'del(.convolutions, .provenance.convolutions)' "$devices/$name.json" >"$scratch/bare.json"
  "$PACELINE" calibrate --convolutions $table --base "$scratch/bare.json" -o "$scratch/made.json" --force >"$scratch/said"
  same "$devices/$name.json" "$scratch/made.json" || { echo "(if that is meant, run validation/calibration/fit_convolutions.sh)"; exit 1; }
done
jq '.convolutions[0].efficiency *= 1.02' "$scratch/made.json" >"$scratch/changed.json"
if same "$scratch/changed.json" "$scratch/made.json" >/dev/null; then echo "control: a changed figure was not found" >&2; exit 1; fi

for profile in "$devices"/*.json; do
  jq -r 'def pct: . * 100 | round | tostring;
    .name as $name | (.convolutions // []) | map(select(.held_out)) | group_by(.dtypes)[] |
    "| \($name) | \(.[0].dtypes | join(", ")) | " + (map({(.pass): "\(.held_out.calls): \(.held_out.median_error | pct) / \(.held_out.p90_error | pct)"}) | add |
      "\(.forward) | \(.data) | \(.weight) |")' "$profile"
done >"$scratch/are"
[[ $(wc -l <"$scratch/are") -eq 6 ]]
if [[ -n ${PACELINE_UPDATE_GOLDEN-} ]]; then
  sed -i -e "/^<!-- convolutions held out/,/^<!-- end/{/^| [A-Z]/d}" -e "/^<!-- convolutions held out/,/^<!-- end/{/^|---/r $scratch/are
}" "$readme"
fi
sed -n '/^<!-- convolutions held out/,/^<!-- end/p' "$readme" | grep '^| [A-Z]' >"$scratch/shown" || true
diff -u "$scratch/shown" "$scratch/are" || { echo "$readme shows other errors than the profiles have"; exit 1; }
