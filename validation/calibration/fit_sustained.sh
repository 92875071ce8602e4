#!/usr/bin/env bash
# Makes the sections "sustained" of platforms/devices/ from the two families of training runs that may be calibrated on;
# after fit_gemm.sh, since it is what the runs leave over when the products are known. Takes seconds.
#
#   validation/calibration/fit_sustained.sh [FOLDER]
#
# FOLDER: another folder with the profiles (they are changed in place). PACELINE names the program.
#
# Of MosaicML's rows those of llm-foundry. The same tables in its predecessor, mosaicml/examples, come out 2 to 20 % slower
# than predicted (10 to 40 before its autocast around fp32 weights was counted): what is missing there is not the products.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
paceline=${PACELINE:-$here/../../.build/release/paceline}
devices=${1:-$here/../../platforms/devices}

# fit PROFILE
fit() {
  printf '== %s\n' "$1"
  "$paceline" calibrate --training "$here/mosaicml_mpt.csv" --training "$here/vocab_parallelism.csv" --source llm-foundry \
    --source VocabularyParallelism --base "$devices/$1.json" -o "$devices/$1.json" --force \
    --provenance "fitted by validation/calibration/fit_sustained.sh to training runs on one machine in validation/calibration/mosaicml_mpt.csv (mosaicml/llm-foundry) and vocab_parallelism.csv" |
    grep -v '^written'
}

# like RELATIVE PROFILE
like() {
  printf '== %s\n' "$2"
  "$paceline" calibrate --sustained-like "$devices/$1.json" --base "$devices/$2.json" -o "$devices/$2.json" --force \
    --provenance "no training run of this device may be calibrated on: transferred by validation/calibration/fit_sustained.sh from $1, as much less as there than the fit of matrix products says of 16384 x 16384 x 16384" |
    grep -v '^written'
}

fit A100-SXM4-80GB
fit H100-SXM5-80GB
for profile in A100-SXM4-40GB A100-PCIe-40GB A100-PCIe-80GB A800-SXM4-80GB; do like A100-SXM4-80GB "$profile"; done
# GB300 has the figure of a published table of its products, which GB200's fit is not: see its profile.
for profile in H100-PCIe-80GB H800-SXM5-80GB GH200-96GB H200-SXM5-141GB B200 B300 GB200; do like H100-SXM5-80GB "$profile"; done
