#!/usr/bin/env bash
# What `paceline simulate` gives for strategies over the shipped platforms and models: a change of any number shows up as a diff of
# tests/golden/simulate_results.csv. After a change that is meant:
#   PACELINE_UPDATE_GOLDEN=1 PACELINE=.build/release/paceline tests/golden/simulate_results.sh
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
table=tests/golden/simulate_results.csv

# platform, model, gbs, seq, strategy, further options
cases() {
  cat <<'CASES'
amp-homogeneous gpt2-345m 32 1024 pp=4,dp=4,tmp=1,mbs=1,assign=0:9:15:21:30
amp-homogeneous gpt2-345m 32 1024 pp=1,dp=4,tmp=4,mbs=2
amp-homogeneous gpt2-345m 32 1024 pp=4,dp=4,tmp=1,mbs=1,assign=balanced,schedule=gpipe
amp-homogeneous gpt2-345m 32 1024 pp=4,dp=4,tmp=1,mbs=1 --network analytic
amp-homogeneous gpt2-345m 32 1024 pp=2,dp=2,tmp=4,mbs=2 --collectives chunked
amp-homogeneous gpt2-345m 32 1024 pp=4,dp=4,tmp=1,mbs=1,order=pdt --sharing rtt
amp-hetero-cluster gpt2-345m 32 1024 pp=4,dp=1,tmp=4,mbs=4
amp-hetero-cluster gpt2-345m 32 1024 pp=2,dp=8,tmp=1,mbs=1,recompute=full,zero=1
amp-p3-4 gpt2-1.5b 64 1024 pp=4,dp=4,tmp=1,mbs=2,vpp=2
amp-p3-4 bert-large 64 512 pp=1,dp=16,tmp=1,mbs=4,zero=3
hc1 gpt2-117m 32 1024 pp=1,dp=8,tmp=1,mbs=4 --dtype fp32
hc2 bert-base 64 128 pp=2,dp=8,tmp=2,mbs=4 --algorithm tree
hc3 gpt2-345m 16 1024 pp=1,dp=4,tmp=4,mbs=1,overlap=0
dgx-1v megatron-1.7b 32 1024 pp=1,dp=1,tmp=8,mbs=4,sp=1,recompute=selective --attention unfused
dgx-2 megatron-3.6b 64 2048 pp=2,dp=1,tmp=8,mbs=2
dgx-a100 llama-2-7b 32 4096 pp=1,dp=8,tmp=1,mbs=1,zero=3,recompute=full --dtype bf16
dgx-h100 llama-3-8b 32 8192 pp=2,dp=1,tmp=4,mbs=1,sp=1 --dtype bf16
dgx-a100-16 gpt3-175b 1536 2048 pp=8,dp=2,tmp=8,mbs=1,recompute=full
dgx-a100-16 gpt3-175b 1536 2048 pp=16,dp=1,tmp=8,mbs=1,vpp=3,sp=1,recompute=selective
dgx-a100-16 megatron-18.4b 512 2048 pp=1,dp=16,tmp=8,mbs=4,zero=2 --algorithm hierarchical
dgx-h100-16 llama-3-70b 512 8192 pp=4,dp=8,tmp=4,mbs=1,sp=1,zero=1 --dtype bf16 --bucket-bytes 100MB
amp-p3-4 gpt2-345m 32 128 pp=1,dp=8,tmp=2,mbs=1,order=dtp --framework megatron-deepspeed
dgx-h100 mixtral-8x7b 32 4096 pp=1,dp=8,tmp=1,mbs=1,ep=8,zero=3,recompute=full --dtype bf16
dgx-h100-16 mixtral-8x7b 256 4096 pp=4,dp=8,tmp=4,mbs=1,sp=1,ep=8,zero=1 --dtype bf16 --framework nemo
dgx-h100-16 deepseek-v3 512 4096 pp=16,dp=8,tmp=1,mbs=1,ep=8,zero=1,recompute=full --dtype bf16
dgx-h100-16 llama-3-8b 64 32768 pp=1,dp=16,tmp=2,cp=4,mbs=1,sp=1,zero=1 --dtype bf16 --framework megatron-core
dgx-h100-16 llama-3-8b 32 65536 pp=2,dp=2,tmp=4,cp=8,cp_comm=gather,mbs=1,sp=1,recompute=full --dtype bf16
dgx-1v resnet-50 512 1 pp=1,dp=8,tmp=1,mbs=64 --dtype fp16 --framework torch-ddp
dgx-1v vgg-16 256 1 pp=2,dp=4,tmp=1,mbs=32,assign=balanced --dtype fp32
dgx-2 mlp-1b 256 1 pp=2,dp=4,tmp=2,mbs=8,assign=filled
dgx-a100-16 llama-2-7b 256 4096 pp=2,dp=8,tmp=8,mbs=1,sp=1,order=dtp --dtype bf16 --framework nanotron
dgx-a100-16 gpt3-175b 1536 2048 pp=8,dp=2,tmp=8,mbs=1,recompute=full --framework megatron-lm-2021
CASES
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cases >"$scratch/cases"
number=0
while read -r platform model gbs seq strategy options; do
  number=$((number + 1))
  # shellcheck disable=SC2086
  "$PACELINE" simulate --platform "platforms/$platform.xml" --model "workloads/models/$model.json" --gbs "$gbs" --seq "$seq" \
    --strategy "$strategy" $options --json >"$scratch/$number.json" || { echo "case $number: $platform $model $strategy $options"; exit 1; }
done <"$scratch/cases"

/usr/bin/python3 - "$scratch" >"$scratch/table" <<'PYTHON'
import json, sys
columns = ("iter_time_s mfu compute_s tensor_comm_s pipeline_comm_s data_comm_s bubble_s peak_mem_bytes fits peak_stage "
           "mem_parameters_bytes mem_gradients_bytes mem_optimizer_bytes mem_activations_bytes mem_buffers_bytes n_classes").split()
print(",".join(["platform", "model", "gbs", "seq", "strategy and options"] + columns))
for number, line in enumerate(open(sys.argv[1] + "/cases"), 1):
    row = json.load(open("%s/%d.json" % (sys.argv[1], number)))
    words = line.split(None, 4)
    print(",".join(words[:4] + ['"%s"' % words[4].strip()] + ["%.9g" % row[name] for name in columns]))
PYTHON

if [[ -n ${PACELINE_UPDATE_GOLDEN:-} ]]; then
  cp "$scratch/table" "$table"
  exit 0
fi
diff -u "$table" "$scratch/table" || { echo "results differ from $table (if that is meant, renew it: see $0)"; exit 1; }
echo "$number results are those of $table"
