#!/usr/bin/env bash
# The distributed programs that tuple strategies give, to the byte, as digests in tests/golden/partition_programs.csv: what a tree says
# for a tuple must not change what devices run. After a change that is meant:
#   PACELINE_UPDATE_GOLDEN=1 PACELINE=.build/release/paceline tests/golden/partition_programs.sh
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
table=tests/golden/partition_programs.csv

# model, gbs, seq, strategy
cases() {
  cat <<'CASES'
tiny-gpt2 8 8 pp=1,dp=1,tmp=1,mbs=1
tiny-gpt2 8 8 pp=2,dp=2,tmp=2,mbs=1
tiny-gpt2 8 8 pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1
tiny-gpt2 8 8 pp=1,dp=2,tmp=2,mbs=1,sp=1,cp=2,recompute=full
tiny-gpt2 8 8 pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe
tiny-gpt2 8 8 pp=2,dp=1,tmp=1,mbs=1,assign=0:1:4,recompute=selective
tiny-llama 8 8 pp=1,dp=2,tmp=4,mbs=1,sp=1
tiny-llama 8 8 pp=1,dp=2,tmp=8,mbs=1,zero=3,recompute=alternate
tiny-llama 8 8 pp=1,dp=2,tmp=2,mbs=1,zero=2
tiny-llama 8 8 pp=1,dp=4,tmp=1,mbs=1,zero=1,shard=2
tiny-llama 8 8 pp=1,dp=4,tmp=1,mbs=1,zero=3,shard=2
tiny-llama 8 8 pp=1,dp=2,tmp=1,mbs=1,cp=2,cp_comm=gather,zero=2
tiny-llama 8 8 pp=1,dp=1,tmp=1,mbs=1,cp=4
tiny-llama 8 8 pp=2,dp=1,tmp=2,mbs=1,vpp=2
tiny-llama 8 8 pp=2,dp=2,tmp=1,mbs=1,vpp=2,schedule=breadth-first
tiny-llama 8 8 pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1
tiny-llama 8 8 pp=2,dp=1,tmp=2,mbs=1,vpp=2,schedule=zb-v,sp=1
tiny-llama 8 8 pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=dualpipe-v
tiny-llama 8 8 pp=2,dp=2,tmp=2,mbs=1,cp=2,sp=1,zero=1,recompute=full
tiny-mixtral 8 8 pp=1,dp=2,tmp=2,mbs=1,ep=2,sp=1
tiny-mixtral 8 8 pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1,zero=1
tiny-mixtral 8 8 pp=2,dp=2,tmp=2,mbs=1,ep=4,sp=1,recompute=full
tiny-mixtral 8 8 pp=1,dp=4,tmp=1,mbs=1,ep=2,zero=3
bert-base 16 128 pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1
gemma-7b 16 512 pp=2,dp=2,tmp=4,mbs=1
qwen3-8b 16 512 pp=4,dp=2,tmp=4,mbs=1,sp=1,schedule=zb-h2
deepseek-v2-lite 16 512 pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1,zero=1
mixtral-8x7b 64 4096 pp=4,dp=8,tmp=4,mbs=1,sp=1,ep=8,zero=1
llama-3-405b 32 8192 pp=16,dp=2,tmp=8,mbs=1,sp=1,assign=ends
llama-3-8b 64 8192 pp=1,dp=4,tmp=2,cp=4,mbs=1,sp=1,zero=1
gpt3-175b 32 2048 pp=8,dp=2,tmp=8,mbs=1,sp=1,vpp=3
resnet-50 64 1 pp=2,dp=4,tmp=1,mbs=4
vgg-16 64 1 pp=1,dp=8,tmp=1,mbs=8,zero=2
inception-v3 64 1 pp=1,dp=4,tmp=1,mbs=4,recompute=full
mlp-1b 32 1 pp=2,dp=4,tmp=2,mbs=2
CASES
}

print_table() {
  echo "model,gbs,seq,strategy,sha256"
  while read -r model gbs seq strategy; do
    digest=$("$PACELINE" program print --level distributed --model "workloads/models/$model.json" --gbs "$gbs" --seq "$seq" \
      --strategy "$strategy" | sha256sum | cut -c1-32)
    echo "$model,$gbs,$seq,\"$strategy\",$digest"
  done < <(cases)
}

if [[ -n ${PACELINE_UPDATE_GOLDEN:-} ]]; then
  print_table >"$table.new"
  mv "$table.new" "$table"
  exit 0
fi
print_table | diff -u "$table" - || { echo "other programs than in $table (if that is meant, renew it: see $0)"; exit 1; }
echo "$(cases | wc -l) programs are those of $table"
