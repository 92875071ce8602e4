#!/usr/bin/env bash
# Makes the sections "convolutions" of platforms/devices/ from the table beside this file, as they are shipped; takes
# seconds. Relatives take them over in fit_gemm.sh, which transfers both kinds of fits.
#
#   validation/calibration/fit_convolutions.sh [FOLDER]
#
# FOLDER: another folder with the profiles (they are changed in place). PACELINE names the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
paceline=${PACELINE:-$here/../../.build/release/paceline}
devices=${1:-$here/../../platforms/devices}
for device in V100-SXM2-32GB T4 P100 TitanXp; do
  printf '== %s\n' "$device"
  "$paceline" calibrate --convolutions "$here/convolutions.csv.gz" --base "$devices/$device.json" -o "$devices/$device.json" --force \
    --provenance "fitted by validation/calibration/fit_convolutions.sh to validation/calibration/convolutions.csv.gz: baidu-research/DeepBench@da81ba782073, training set" |
    grep -v '^written'
done
