#!/usr/bin/env bash
# What `paceline search` finds on the shipped platforms: the best strategy of each method, its time, and how many were simulated. A
# change shows up as a diff of tests/golden/search_results.csv. After a change that is meant:
#   PACELINE_UPDATE_GOLDEN=1 PACELINE=.build/release/paceline tests/golden/search_results.sh
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/parallel/mpi_environment.sh.inc
table=tests/golden/search_results.csv

# platform, model, gbs, seq, method, further options
cases() {
  cat <<'CASES'
amp-homogeneous gpt2-345m 32 1024 bound
amp-homogeneous gpt2-345m 32 1024 amp
amp-homogeneous gpt2-345m 32 1024 megatron
hc1 vgg-16 64 1 bound --dtype fp32
dgx-2 mlp-1b 128 1 bound
dgx-h100-16 mixtral-8x7b 128 4096 bound --dtype bf16 --ep 1,8 --sp on --mbs 1 --pp 1,2,4
dgx-h100 llama-3-8b 16 16384 bound --dtype bf16 --cp 1,2,4 --mbs 1 --framework megatron-core
dgx-a100-16 gpt3-175b 256 2048 bound --dtype bf16 --mbs 1,2
CASES
}

made=$(mktemp)
trap 'rm -f "$made"' EXIT
echo "platform,model,gbs,seq,method and options,candidates,simulated,iter_time_s,strategy" >"$made"
while read -r platform model gbs seq method options; do
  # shellcheck disable=SC2086
  "$PACELINE" search --platform "platforms/$platform.xml" --model "workloads/models/$model.json" --gbs "$gbs" --seq "$seq" --method "$method" \
    $options --threads 1 --json | jq -r --arg job "$platform,$model,$gbs,$seq,\"$method${options:+ $options}\"" \
    '"\($job),\(.candidates),\(.rows),\(.top[0].iter_time_s * 1e9 | round / 1e9),\"\(.top[0].strategy)\""' >>"$made"
done < <(cases)
if [[ -n ${PACELINE_UPDATE_GOLDEN:-} ]]; then
  cp "$made" "$table"
  exit 0
fi
diff -u "$table" "$made" || { echo "results differ from $table (if that is meant, renew it: see $0)"; exit 1; }
echo "$(($(wc -l <"$made") - 1)) searches end as in $table"
