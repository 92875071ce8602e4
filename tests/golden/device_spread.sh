#!/usr/bin/env bash
# The spread of devices in the shipped profiles is what validation/calibration/device_spread.py makes of its table, and
# README has what it prints. Control: another figure must be found.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
readme=validation/calibration/README.md
said=$(validation/calibration/device_spread.py)
while IFS= read -r line; do
  grep -qF "$line" "$readme" || { echo "$readme does not have: $line"; exit 1; }
done <<<"$said"
products=$(sed -n 's/^longhorn .* sgemm: .*spread \([0-9.]*\),.*/\1/p' <<<"$said")
[[ -n $products ]]
others() { jq -r --arg of "$1" 'select(.spread != null and (.spread.compute | tostring) != $of) | .name' platforms/devices/*.json; }
if [[ -n $(others "$products") ]]; then
  echo "not $products, as the table says:"
  others "$products"
  exit 1
fi
n=$(jq -r 'select(.spread != null) | .name' platforms/devices/*.json | wc -l)
[[ $n -eq 17 ]] || { echo "$n profiles have a spread"; exit 1; }
[[ $(others "${products}1" | wc -l) -eq $n ]] || { echo "control: another figure was not found"; exit 1; }
echo "$n profiles have $products"
