#!/usr/bin/env bash
# Makes the sections "gemm" of platforms/devices/ from the tables beside this file, as they are shipped; takes a minute.
#
#   validation/calibration/fit_gemm.sh [FOLDER]
#
# FOLDER: another folder with the profiles (they are changed in place). PACELINE names the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
paceline=${PACELINE:-$here/../../.build/release/paceline}
devices=${1:-$here/../../platforms/devices}

# fit TABLE PROFILE PROVENANCE
fit() {
  printf '== %s\n' "$2"
  "$paceline" calibrate --gemm "$here/gemm_$1.csv.gz" --base "$devices/$2.json" -o "$devices/$2.json" --force \
    --provenance "fitted by validation/calibration/fit_gemm.sh to validation/calibration/gemm_$1.csv.gz: $3" | grep -v '^written'
}

# transfer FROM PROFILE MULTIPROCESSORS WHY
transfer() {
  printf '== %s\n' "$2"
  "$paceline" calibrate --transfer "$1" --base "$devices/$2.json" -o "$devices/$2.json" --force --multiprocessors "$3" \
    --provenance "not measured on this device: transferred by validation/calibration/fit_gemm.sh from $4" | grep -v '^written'
}

pooled="ai-dynamo/aiconfigurator@095f58a51c4c, median of the serving stacks SGLang, TensorRT-LLM and vLLM for each shape"
deepbench="baidu-research/DeepBench@da81ba782073, training set"
sailor="eth-easl/sailor@cf2c8e3cc53c, Aceso profiles, products of Megatron's layers from 20 GFLOP on (fp16)"
eleuther="EleutherAI/cookbook@27dff48d595f, products of at least 20 GFLOP"

fit A100 A100-SXM4-80GB "$pooled (bf16); $eleuther (fp16: batched and unaligned ones)"
fit H100 H100-SXM5-80GB "$pooled"
fit H200 H200-SXM5-141GB "$pooled"
fit B200 B200 "$pooled"
fit GB200 GB200 "$pooled"
fit L40S L40S "$pooled"
fit V100 V100-SXM2-32GB "$sailor; $eleuther (fp16); $deepbench (fp32; fp16 below 20 GFLOP)"
fit T4 T4 "$deepbench (fp16, fp32)"
fit P100 P100 "$deepbench (fp32; its fp16 rows compute in fp32 and say nothing of fp16)"
fit TitanXp TitanXp "$deepbench (fp32)"
transfer "$devices/A100-SXM4-80GB.json" A100-SXM4-40GB 108 "A100-SXM4-80GB: the same chip with slower memory"
for profile in V100-SXM2-16GB V100-SXM3-32GB; do
  transfer "$devices/V100-SXM2-32GB.json" "$profile" 80 "V100-SXM2-32GB: the same chip"
done
for profile in A800-SXM4-80GB A100-PCIe-80GB A100-PCIe-40GB; do
  transfer "$devices/A100-SXM4-80GB.json" "$profile" 108 "A100-SXM4-80GB: the same chip"
done
for profile in H800-SXM5-80GB GH200-96GB; do
  transfer "$devices/H100-SXM5-80GB.json" "$profile" 132 "H100-SXM5-80GB: the same chip"
done
transfer "$devices/H100-SXM5-80GB.json" H100-PCIe-80GB 114 "H100-SXM5-80GB: the same chip with fewer multiprocessors and less power"
transfer "$devices/L40S.json" L4 58 "L40S: multiprocessors of the same kind"
transfer "$devices/L40S.json" RTX-6000-Ada 142 "L40S: the same chip with less power"
transfer "$devices/L40S.json" RTX-4090 128 "L40S: the same chip with tensor cores at half the rate"
for profile in A40 RTX-A6000; do
  transfer "$devices/A100-SXM4-80GB.json" "$profile" 84 "A100-SXM4-80GB: tensor cores of the same generation"
done
transfer "$devices/B200.json" B300 160 "B200: the same tensor cores in 16 bits, more multiprocessors"
transfer "$devices/GB200.json" GB300 160 "GB200: the same tensor cores in 16 bits, more multiprocessors"
transfer "$devices/A100-SXM4-80GB.json" A10G 80 "A100-SXM4-80GB: tensor cores of the same generation; L40S, a generation younger, was timed with operands in its 96 MB cache"
transfer "$devices/A100-SXM4-80GB.json" RTX-3090 82 "A100-SXM4-80GB: tensor cores of the same generation, here at half the rate"
transfer "$devices/A100-SXM4-80GB.json" A10 72 "A100-SXM4-80GB: tensor cores of the same generation"
