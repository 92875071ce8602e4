#!/usr/bin/env bash
# The example of `search --vary` in search/WHAT_IF.md is what the command prints now. To renew it after a change that is meant:
#   tests/golden/what_if_readme.sh --renew BUILD_DIR
# Control: a table with one figure changed is noticed.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
source tests/parallel/mpi_environment.sh.inc
source tests/golden/blocks.sh.inc
[[ ${1:-} == --renew ]] && PACELINE=$2/paceline
begin='<!-- search --vary prints: -->' end='<!-- end -->'
page=$(block_page search "$begin")
text=$(mktemp)
trap 'rm -f "$text"' EXIT
command=(search --platform platforms/amp-hetero-cluster.xml --model workloads/models/gpt2-345m.json --gbs 32 --method bound
  --vary 'link:nic+fabric.bandwidth=x1,x2,x4' --vary device:T4=T4,V100-SXM2-16GB)
{
  echo '```'
  echo "paceline ${command[*]}"
  echo
  "$PACELINE" "${command[@]}"
  echo '```'
} >"$text"
[[ $(wc -l <"$text") -eq 14 ]] || { echo "${command[*]} printed no table"; exit 1; }
if [[ ${1:-} == --renew ]]; then
  block_renew "$page" "$begin" "$end" "$text"
  exit
fi
block_check "$page" "$begin" "$end" "$text"
# the strategy that the search does not meet, and its time
missed=$(grep -o 'pp=8,dp=2,[^`]*placement=8-9:0-1:[^`]*' "$page")
says=$(grep -A1 -F "$missed" "$page" | grep -oE 'takes [0-9]+ ms' | grep -oE '[0-9]+')
takes=$("$PACELINE" simulate --platform platforms/amp-hetero-cluster.xml --model gpt2-345m --gbs 32 --strategy "$missed" \
  --vary link:nic+fabric.bandwidth=x4 | awk '/^link:/ {printf "%.0f", $2}')
[[ -n $says && $says == "$takes" ]] || { echo "$page: $missed takes $takes ms, not $says"; exit 1; }
! diff -q <(block_text "$page" "$begin" "$end" | sed '0,/ 1\.000/s// 1.001/') "$text" >/dev/null || { echo "control: a changed figure is not noticed"; exit 1; }
