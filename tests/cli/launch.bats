#!/usr/bin/env bats
# Launch files both ways: `paceline launch` writes what starts a strategy, `simulate --from` reads it back, and others' files.

bats_require_minimum_version 1.5.0

setup() {
  dir=$(mktemp -d)
  platform=dgx-a100:4
}

teardown() {
  rm -rf "$dir"
}

# Exit status 2, one line that contains $1, and no file.
refuses() {
  local says=$1
  shift
  run --separate-stderr "$PACELINE" "$@"
  [ "$status" -eq 2 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr == *"$says"* ]] || { echo "said: $stderr"; return 1; }
}

# round FORM EXTENSION MODEL STRATEGY [OPTION ...]: what is written and read again is the same strategy and the same time.
round() {
  local form=$1 file=$dir/job.$2 model=$3 strategy=$4
  shift 4
  local writes=()
  [ "$form" != megatron ] || writes=(--framework megatron-core) # whose kernels for tokens of experts are written
  "$PACELINE" launch --platform "$platform" --model "$model" --gbs 64 --strategy "$strategy" --as "$form" "${writes[@]}" -o "$file" --force
  "$PACELINE" simulate --from "$file" --platform "$platform" --json "$@" >"$dir/read"
  local profile
  profile=$(jq -r .framework "$dir/read")
  "$PACELINE" simulate --platform "$platform" --model "$model" --gbs 64 --strategy "$strategy" --framework "$profile" --json >"$dir/direct"
  for key in iter_time_s peak_mem_bytes pp dp tmp cp ep mbs schedule vpp sp recompute zero overlap assign gbs seq dtype; do
    [ "$(jq ".$key" "$dir/read")" = "$(jq ".$key" "$dir/direct")" ] || { echo "$form: $key"; return 1; }
  done
  [ "$(jq -c .from.not_understood "$dir/read")" = "{}" ]
}

@test "Megatron-LM: written, read, the same job" {
  round megatron sh llama-3.1-8b pp=2,dp=4,tmp=4,mbs=1,sp=1,zero=1,vpp=2,schedule=interleaved,recompute=selective
  round megatron sh gpt2-345m pp=1,dp=32,tmp=1,mbs=1,overlap=0
  round megatron sh mixtral-8x7b pp=1,dp=16,tmp=2,sp=1,ep=8,mbs=1,zero=1,recompute=full
  round megatron sh mixtral-8x7b pp=2,dp=8,tmp=2,sp=1,ep=8,mbs=1,zero=1,vpp=4,ep_overlap=1
  round megatron sh qwen3-30b-a3b pp=2,dp=16,tmp=1,ep=8,mbs=1,zero=1
}

@test "torchtitan, NeMo and DeepSpeed: written, read, the same job" {
  round torchtitan toml llama-3.1-8b pp=2,dp=4,tmp=4,mbs=1,sp=1,zero=1,vpp=2,schedule=interleaved,recompute=alternate
  round torchtitan toml llama-3.1-8b pp=1,dp=32,tmp=1,mbs=2,zero=3,shard=8
  round nemo yaml gpt3-5b pp=4,dp=4,tmp=2,sp=1,mbs=1,zero=1,recompute=full
  round deepspeed json llama-2-7b pp=1,dp=32,tmp=1,mbs=2,zero=3 --model llama-2-7b
}

@test "the best of a file of results, with its job" {
  "$PACELINE" search --platform dgx-a100:2 --model llama-3.1-8b --gbs 64 -o "$dir/best.h5" --quiet >/dev/null
 "$PACELINE" launch "$dir/best.h5" --as megatron -o "$dir/train.sh"
  "$PACELINE" simulate --from "$dir/train.sh" --platform dgx-a100:2 --json >"$dir/read"
  [ "$(jq .gbs "$dir/read")" = 64 ]
  # which row it is of is said of a file that can be written alone
  [[ $("$PACELINE" launch "$dir/best.h5" --as torchtitan -o "$dir/job.toml" 2>&1) == *"which torchtitan cannot say"* ]]
  refuses "cannot write $dir/none/x.toml" launch "$dir/best.h5" --as torchtitan -o "$dir/none/x.toml"
  refuses "$dir/job.toml exists" launch "$dir/best.h5" --as torchtitan -o "$dir/job.toml"
  refuses "best.h5: row: 100000000 is out of range" launch "$dir/best.h5" --as megatron --row 100000000
}

@test "what is taken, assumed, ignored and not understood is said" {
  cat >"$dir/train.sh" <<'S'
ARGS="--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 4 --fp16 --lr 1 --brand-new 7"
torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
S
  run "$PACELINE" simulate --from "$dir/train.sh" --platform "$platform"
  [ "$status" -eq 0 ]
  [[ $output == *"taken"*"num_layers 24"* ]]
  [[ $output == *"gbs=128: 1 microbatch of 4 for each of 32 replicas"* ]]
  [[ $output == *"not understood brand_new 7 (line 1)"* ]]
  # what has nothing to run beside is no setting without effect
  sed -i 's/--fp16/--fp16 --num-experts 8 --moe-ffn-hidden-size 512 --moe-shared-expert-intermediate-size 512 --moe-shared-expert-overlap --delay-wgrad-compute/' "$dir/train.sh"
  run "$PACELINE" simulate --from "$dir/train.sh" --platform "$platform"
  [[ $output == *"no delay_wgrad_compute: it is of overlap_moe_expert_parallel_comm"*"no moe_shared_expert_overlap: one rank has all experts"* ]]
  [[ ${output%%assumed*} != *overlap* && ${output%%assumed*} != *delay_wgrad* ]]
  sed -i 's/--num-experts.*-intermediate-size 512//' "$dir/train.sh"
  run "$PACELINE" simulate --from "$dir/train.sh" --platform "$platform"
  [[ $output != *"shared_expert"* && $output == *"ignored        2 settings that no time here depends on"* ]]
  sed -i 's/--moe-shared-expert-overlap//' "$dir/train.sh"
  run "$PACELINE" simulate --from "$dir/train.sh" --platform "$platform"
  [[ $output == *"ignored        1 setting that no time here depends on"* ]]
  # options are stronger than the file
  run "$PACELINE" simulate --from "$dir/train.sh" --platform "$platform" --gbs 256 --strategy pp=4,dp=8,tmp=1,mbs=4
  [[ $output == *"256 sequences"* ]]
  [[ $output == *"pp=4,dp=8"* ]]
}

@test "explain takes a launch file as simulate does" {
  local job=(--platform "$platform" --model gpt2-345m --gbs 64 --strategy pp=2,dp=8,tmp=2,mbs=1)
  "$PACELINE" launch "${job[@]}" --as megatron -o "$dir/explained.sh" >/dev/null
  run -0 "$PACELINE" explain --from "$dir/explained.sh" --platform "$platform" --top 2
  [[ $output == *"taken"*"num_layers 24"* && $output == *"pp=2,dp=8,tmp=2"* && $output == *"(the busiest)"* ]]
  "$PACELINE" explain --from "$dir/explained.sh" --platform "$platform" --json >"$dir/explained"
  "$PACELINE" explain "${job[@]}" --framework "$(jq -r .framework "$dir/explained")" --json >"$dir/direct"
  for key in iter_time_s run_digest stages; do
    [ "$(jq -c ".$key" "$dir/explained")" = "$(jq -c ".$key" "$dir/direct")" ]
  done
  sed -i 's/--tensor-model-parallel-size 2/--tensor-model-parallel-size 3/' "$dir/explained.sh"
  refuses "--tensor-model-parallel-size: pp=2 * tmp=3: a multiple of 6 GPUs is needed" explain --from "$dir/explained.sh" --platform "$platform"
  refuses "what is explained as a program is not read from launch files" explain --as-program --from "$dir/explained.sh" --platform "$platform"
}

@test "what moves tokens of experts is taken and written" {
  local job=(--platform dgx-h100:1 --model mixtral-8x7b --gbs 8 --strategy pp=1,dp=8,tmp=1,mbs=1,ep=4,zero=1)
  time_of() { "$PACELINE" simulate "$@" --json | jq .iter_time_s; }
  # Megatron Core's own kernels, grouped products of experts
  "$PACELINE" launch "${job[@]}" --framework megatron-core --as megatron -o "$dir/steps.sh" >/dev/null
  [[ $(grep -c -- '--moe-grouped-gemm' "$dir/steps.sh") == 1 && $(<"$dir/steps.sh") != *"--moe-permute-fusion"* ]]
  local steps fused alone
  steps=$(time_of --from "$dir/steps.sh" --platform dgx-h100:1)
  [ "$steps" = "$(time_of "${job[@]}" --framework megatron-core)" ]
  sed 's/--moe-grouped-gemm/--moe-grouped-gemm --moe-permute-fusion/' "$dir/steps.sh" >"$dir/fused.sh"
  fused=$(time_of --from "$dir/fused.sh" --platform dgx-h100:1)
  sed '/--moe-grouped-gemm/d' "$dir/steps.sh" >"$dir/alone.sh"
  alone=$(time_of --from "$dir/alone.sh" --platform dgx-h100:1)
  jq -en "$fused < $steps and $steps < $alone"
  # what Megatron Core was has no word there
  jq '.kernels.permutation = "weighted" | .name = "core-0.10"' "$BATS_TEST_DIRNAME/../../workloads/frameworks/megatron-core.json" >"$dir/older.json"
  run "$PACELINE" launch "${job[@]}" --framework "$dir/older.json" --as megatron
  [ "$status" -eq 0 ]
  [[ $output == *"paceline launch: how framework core-0.10 moves tokens of experts is not in the file: it is read as what Megatron Core has since 0.13"* ]]
}

@test "a dispatcher of tokens and the multiprocessors that it takes are taken" {
  local job=(--platform dgx-h100:2 --model mixtral-8x7b --gbs 64 --strategy pp=1,dp=16,tmp=1,mbs=1,ep=8,zero=1,ep_overlap=1)
  "$PACELINE" launch "${job[@]}" --as megatron -o "$dir/moe.sh" >/dev/null
  # shellcheck disable=SC2317
  takes() { "$PACELINE" simulate --from "$1" --platform dgx-h100:2 "${@:2}" | sed -n 's/^exchanges take *//p'; }
  [[ $(takes "$dir/moe.sh") == "16 of 132 multiprocessors"* ]]
  # what the file has no word for is said
  run "$PACELINE" launch "${job[@]}" --exchange-sms 22 --as megatron
  [ "$status" -eq 0 ]
  [[ ${lines[0]}$output == *"paceline launch: --exchange-sms 22 is not in the file: the dispatcher alltoall"*"is read as NCCL's 16"* ]]
  run "$PACELINE" launch "${job[@]}" --exchange-sms 16 --as megatron
  [[ $output != *"not in the file"* ]]
  # written of a framework with DeepEP, and read back as it was
  "$PACELINE" launch "${job[@]}" --framework nemo --exchange-sms 22 --as megatron -o "$dir/nemo.sh" >/dev/null
  [[ $(<"$dir/nemo.sh") == *"--moe-token-dispatcher-type flex"*"--moe-flex-dispatcher-num-sms 22"* ]]
  diff <("$PACELINE" simulate "${job[@]}" --framework nemo --exchange-sms 22 | grep -E '^(iteration|exchanges)') \
    <("$PACELINE" simulate --from "$dir/nemo.sh" --platform dgx-h100:2 --framework nemo | grep -E '^(iteration|exchanges)')
  sed 's/--moe-token-dispatcher-type alltoall/--moe-token-dispatcher-type flex/' "$dir/moe.sh" >"$dir/flex.sh"
  [[ $(takes "$dir/flex.sh") == "20 of 132 multiprocessors"* ]]
  sed 's/type flex/type flex --moe-flex-dispatcher-backend hybridep/' "$dir/flex.sh" >"$dir/hybrid.sh"
  [[ $(takes "$dir/hybrid.sh") == "16 of 132 multiprocessors"* ]]
  sed 's/type flex/type flex --moe-deepep-num-sms 24/' "$dir/flex.sh" >"$dir/deep.sh"
  [[ $(takes "$dir/deep.sh") == "24 of 132 multiprocessors"* ]]
  [[ $(takes "$dir/deep.sh" --exchange-sms 4) == "4 of 132 multiprocessors"* ]]
  [[ -z $(takes "$dir/deep.sh" --exchange-sms 0) ]]
  sed -i 's/--moe-deepep-num-sms 24/--moe-deepep-num-sms many/' "$dir/deep.sh"
  refuses "$dir/deep.sh:" simulate --from "$dir/deep.sh" --platform dgx-h100:2
  refuses "--exchange-sms 132: H100-SXM5-80GB has 132 multiprocessors" simulate --from "$dir/flex.sh" --platform dgx-h100:2 --exchange-sms 132
  refuses "--exchange-sms 132: H100-SXM5-80GB has 132 multiprocessors" simulate --program "$BATS_TEST_DIRNAME/../../workloads/programs/mlp-2-stages.plir" --platform dgx-h100:1 --exchange-sms 132
  # of a device whose multiprocessors nobody knows nothing could be taken: what is asked for is refused, a file's default is not
  mkdir "$dir/devices"
  cp "$BATS_TEST_DIRNAME/../../platforms/dgx-h100.xml" "$dir"
  jq 'del(.gemm)' "$BATS_TEST_DIRNAME/../../platforms/devices/H100-SXM5-80GB.json" >"$dir/devices/H100-SXM5-80GB.json"
  local bare=(--platform "$dir/dgx-h100.xml" --model mixtral-8x7b --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=1,ep=8,zero=1,ep_overlap=1)
  "$PACELINE" launch "${bare[@]}" --as megatron | sed 's/type alltoall/type flex/' >"$dir/bare.sh"
  "$PACELINE" simulate --from "$dir/bare.sh" --platform "$dir/dgx-h100.xml" >/dev/null
  refuses "--exchange-sms 4: of how many multiprocessors is not known of H100-SXM5-80GB" simulate --from "$dir/bare.sh" --platform "$dir/dgx-h100.xml" --exchange-sms 4
  "$PACELINE" simulate "${bare[@]}" --exchange-sms 0 >/dev/null
  jq '.communication.exchange_multiprocessors = 500' "$BATS_TEST_DIRNAME/../../workloads/frameworks/megatron-core.json" >"$dir/all.json"
  refuses "framework megatron-core, exchange_multiprocessors 500: H100-SXM5-80GB has 132 multiprocessors" simulate "${job[@]}" --framework "$dir/all.json"
  "$PACELINE" simulate "${job[@]}" --framework "$dir/all.json" --exchange-sms 0 >/dev/null
}

@test "gradients of weights that are put off and shared experts beside exchanges: written and read" {
  local job=(--platform dgx-h100:2 --model deepseek-v2-lite --gbs 64 --seq 4096) how read
  for how in 1 delayed shared; do
    "$PACELINE" launch "${job[@]}" --strategy "pp=1,dp=16,tmp=1,mbs=1,ep=8,zero=1,ep_overlap=$how" --as megatron -o "$dir/$how.sh" >/dev/null
    read=$("$PACELINE" simulate --from "$dir/$how.sh" --platform dgx-h100:2)
    [[ $read == *"ep=8,ep_overlap=$how,"* ]]
  done
  [[ $(<"$dir/delayed.sh") == *--overlap-moe-expert-parallel-comm*--delay-wgrad-compute* ]]
  [[ $(<"$dir/shared.sh") == *--moe-shared-expert-overlap* ]]
  # both at once are not Megatron Core's
  sed 's/--delay-wgrad-compute/--moe-shared-expert-overlap/' "$dir/delayed.sh" >"$dir/both.sh"
  read=$("$PACELINE" simulate --from "$dir/both.sh" --platform dgx-h100:2)
  [[ $read == *"no moe_shared_expert_overlap: another pass runs beside the exchange"*"ep_overlap=1,"* ]]
  refuses "strategy: ep_overlap=shared, but mixtral-8x7b has no shared experts" simulate --platform dgx-h100:2 --model mixtral-8x7b --gbs 64 --strategy pp=1,dp=16,tmp=1,mbs=1,ep=8,ep_overlap=shared
  refuses "strategy: ep_overlap=shared with recompute=full" simulate "${job[@]}" --strategy pp=1,dp=16,tmp=1,mbs=1,ep=8,recompute=full,ep_overlap=shared
  refuses "strategy: ep_overlap=delayed with etp=tmp" simulate "${job[@]}" --strategy pp=1,dp=8,tmp=2,sp=1,etp=2,mbs=1,ep=8,ep_overlap=delayed
  refuses "strategy: ep_overlap='late': 0, 1 (a pass beside another), delayed" simulate "${job[@]}" --strategy pp=1,dp=16,tmp=1,mbs=1,ep=8,ep_overlap=late
}

@test "a strategy that a file makes and that is refused: the setting that says so, and its line" {
  local job=(--platform dgx-h100:4 --model mixtral-8x7b --gbs 64 --strategy pp=1,dp=16,tmp=2,sp=1,mbs=1,ep=8,zero=1,ep_overlap=1)
  "$PACELINE" launch "${job[@]}" --as megatron -o "$dir/moe.sh" >/dev/null
  line() { grep -n -e "$1" "$2" | cut -d: -f1; }
  sed 's/--expert-model-parallel-size 8/--expert-model-parallel-size 1/' "$dir/moe.sh" >"$dir/one.sh"
  refuses "$dir/one.sh:$(line overlap-moe "$dir/one.sh"): --overlap-moe-expert-parallel-comm: ep_overlap=1 hides" simulate --from "$dir/one.sh" --platform dgx-h100:4
  sed 's/--sequence-parallel//' "$dir/moe.sh" >"$dir/no-sp.sh"
  refuses "$dir/no-sp.sh:$(line tensor-model "$dir/no-sp.sh"): --tensor-model-parallel-size: " simulate --from "$dir/no-sp.sh" --platform dgx-h100:4
  # what the command line says is not the file's
  refuses "strategy: ep_overlap=1 hides" simulate --from "$dir/moe.sh" --platform dgx-h100:4 --strategy pp=1,dp=32,tmp=1,mbs=1,ep=1,ep_overlap=1
}

# job WORD ...: a Megatron job with these words in line 3.
job() {
  cat >"$dir/train.sh" <<S
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 \\
  --micro-batch-size 1 --global-batch-size 64 --swiglu --normalization RMSNorm --disable-bias-linear --vocab-size 32000 --bf16 \\
  $*
S
}

# says MESSAGE WORD ...: the job with these words is refused, at line 3, with this message.
says() {
  local message=$1
  shift
  job "$@"
  refuses "$dir/train.sh:3: $message" simulate --from "$dir/train.sh" --platform dgx-h100:2
}

@test "degrees, chunks and dimensions of a file that do not go: its line, and its own names" {
  says "--tensor-model-parallel-size: pp=2 * tmp=3: a multiple of 6 GPUs is needed, and the platform has 16; choose" --tensor-model-parallel-size 3 --pipeline-model-parallel-size 2
  says "--pipeline-model-parallel-size: pp=5 * tmp=2: a multiple of 10 GPUs is needed" --tensor-model-parallel-size 2 --pipeline-model-parallel-size 5
  says "--num-layers-per-virtual-pipeline-stage: chunks of 5 layers on pp=2 stages do not make the model's 24 layers; choose" --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 5
  says "--num-query-groups: 'num_key_value_heads' = 3 does not divide 'num_attention_heads' = 16 (num_key_value_heads is --num-query-groups)" --group-query-attention --num-query-groups 3
  says "--expert-model-parallel-size: ep=2, but the model has no experts; use ep=1 (ep is --expert-model-parallel-size)" --expert-model-parallel-size 2
  # the way out, too: an argument that the file may not have yet
  says "--tensor-model-parallel-size: experts with tmp=2 need sequence parallelism (sp=1)" --tensor-model-parallel-size 2 --num-experts 8 --moe-ffn-hidden-size 512
  [[ $stderr == *" (sp=1 is --sequence-parallel, tmp is --tensor-model-parallel-size)" ]]
  says "--overlap-moe-expert-parallel-comm: ep_overlap=1 hides" --overlap-moe-expert-parallel-comm
  [[ $stderr == *"use ep > 1 or ep_overlap=0 (ep_overlap=1 is --overlap-moe-expert-parallel-comm, ep is --expert-model-parallel-size)" ]]
  job
  sed -i 's/--micro-batch-size 1/--micro-batch-size 3/' "$dir/train.sh"
  refuses "$dir/train.sh:2: --micro-batch-size: dp=16 * mbs=3 = 48 does not divide" simulate --from "$dir/train.sh" --platform dgx-h100:2
  [[ $stderr == *"(mbs is --micro-batch-size, gbs is --global-batch-size)" ]]
  # what is given twice counts as it is given last, at that line, and that is said
  says "--tensor-model-parallel-size: tmp=3: a multiple of 3 GPUs is needed" --tensor-model-parallel-size 2 --tensor-model-parallel-size 3
  job --micro-batch-size 3
  refuses "$dir/train.sh:3: --micro-batch-size: dp=16 * mbs=3 = 48 does not divide" simulate --from "$dir/train.sh" --platform dgx-h100:2
  job --micro-batch-size 2 --bf16
  run -0 "$PACELINE" simulate --from "$dir/train.sh" --platform dgx-h100:2
  [[ $output == *"'micro_batch_size 2' as line 3 has it, the last of several"* && $(grep -c "the last of several" <<<"$output") -eq 1 ]]
  printf '{"train_batch_size": 60,\n"bf16": {"enabled": true}}' >"$dir/ds.json"
  refuses "ds.json:1: train_batch_size: 60 sequences in 1 step do not divide over 16 replicas; choose a multiple of 16" simulate --from "$dir/ds.json" --platform dgx-h100:2 --model llama-2-7b
}

@test "what a framework's profile says and the file asks for otherwise is said, not ignored" {
  local read=(simulate --from "$dir/train.sh" --platform dgx-h100:2)
  job --tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap --fp8-format hybrid --fp8-recipe tensorwise
  run -0 "$PACELINE" "${read[@]}"
  [[ $output == *"tp_comm_overlap as the framework's profile has it: its overlaps_tensor says it"* ]]
  [[ $output == *"fp8_recipe as the framework's profile has it, not tensorwise: its fp8_scaling (current) says it"* ]]
  [[ ${output%%assumed*} != *tp_comm* && ${output%%assumed*} != *fp8_recipe* && $output != *"not understood"* ]]
  job --fp8-format hybrid --fp8-recipe delayed --tp-comm-overlap
  run -0 "$PACELINE" "${read[@]}"
  [[ ${output%%model *} == *"fp8_recipe delayed"* && $output != *"profile has it"* && $output == *"ignored        1 setting that"* ]]
  "$PACELINE" launch --platform dgx-h100:2 --model llama-3.1-8b --gbs 64 --strategy pp=1,dp=16,tmp=1,mbs=1,zero=3 --fp8 --as torchtitan -o "$dir/rows.toml"
  printf '\n[float8]\nrecipe_name = "rowwise"\n' >>"$dir/rows.toml"
  run -0 "$PACELINE" simulate --from "$dir/rows.toml" --platform dgx-h100:2
  [[ $output == *"float8.recipe_name as the framework's profile has it, not rowwise: its fp8_scaling (rowwise) says it"* ]]
  printf 'trainer: {precision: bf16}\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 64\n  tensor_model_parallel_size: 2\n  sequence_parallel: true\n  ub_tp_comm_overlap: false\n' >"$dir/nemo.yaml"
  run "$PACELINE" simulate --from "$dir/nemo.yaml" --platform dgx-h100:2 --model gpt3-5b
  [[ $output == *"ub_tp_comm_overlap as the framework's profile has it, not false"* && ${output%%assumed*} != *ub_tp* ]]
}

@test "what cannot be said or read is refused in one line" {
  local job=(--platform "$platform" --model llama-3.1-8b --gbs 64)
  refuses "--as is missing" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1
  refuses "did you mean 'megatron'" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1 --as megatrn
  refuses "schedule=gpipe: Megatron has" launch "${job[@]}" --strategy pp=4,dp=8,tmp=1,mbs=1,schedule=gpipe --as megatron -o "$dir/x.sh"
  [ ! -e "$dir/x.sh" ]
  refuses "says data parallelism and ZeRO" launch "${job[@]}" --strategy pp=4,dp=8,tmp=1,mbs=1 --as deepspeed
  refuses "offload=states: of what lies" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1,zero=1,offload=states --as megatron
  refuses "DeepSpeed's offload_optimizer goes with" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1,offload=gradients --as deepspeed
  refuses "Megatron counts layers of" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1,recompute=selective,recompute_layers=2 --as megatron
  "$PACELINE" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1,recompute=full,recompute_layers=2 --as megatron | grep -A1 'recompute-method block' | grep -q 'num-layers 2'
  refuses "none of the models" launch --platform "$platform" --model gpt2-345m --gbs 64 --strategy pp=1,dp=32,tmp=1,mbs=1 --as torchtitan
  refuses "etp=1, ep_overlap=1: a file for torchtitan" launch --platform dgx-h100:4 --model qwen3-30b-a3b --gbs 64 --strategy pp=1,dp=16,tmp=2,sp=1,mbs=1,ep=4,ep_overlap=1 --as torchtitan
  refuses "etp=2, ep_overlap=0: a file for torchtitan" launch --platform dgx-h100:4 --model qwen3-30b-a3b --gbs 64 --strategy pp=1,dp=16,tmp=2,sp=1,mbs=1,ep=4,etp=tmp --as torchtitan
  refuses "No such file" simulate --from "$dir/none.sh" --platform "$platform"
  printf '{"train_batch_size": 64}' >"$dir/ds.json"
  refuses "does not say what is trained; name it with --model" simulate --from "$dir/ds.json" --platform "$platform"
  refuses "--platform is missing" simulate --from "$dir/ds.json"
  printf '[training]\nseq_len = "long"\n' >"$dir/t.toml"
  refuses "t.toml:2: 'training.seq_len' is 'long'" simulate --from "$dir/t.toml" --platform "$platform"
}

# counts N WORD ...: N parameters, as they are printed, has the model of a Megatron job with these words beside its own.
counts() {
  local wanted=$1
  shift
  cat >"$dir/moe.sh" <<S
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --ffn-hidden-size 8192 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --swiglu --normalization RMSNorm \\
  --disable-bias-linear --position-embedding-type rope --vocab-size 32000 --untie-embeddings-and-output-weights --bf16 $*
S
  run "$PACELINE" simulate --from "$dir/moe.sh" --platform dgx-a100:2
  [[ "$output" == *"launched, $(printf %.4g "${wanted}e-9") billion parameters"* ]] || { echo "$output"; return 1; }
}

@test "Megatron-LM: which layers hold experts, by number and by list; latent attention without experts" {
  local experts=(--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 2048)
  # attention, two norms; a dense MLP; experts and their router; embedding, head and last norm
  local layer=$((4 * 2048 * 2048 + 2 * 2048)) dense=$((3 * 2048 * 8192)) sparse=$((8 * 3 * 2048 * 2048 + 8 * 2048)) ends=$((2 * 32000 * 2048 + 2048))
  counts $((24 * layer + 24 * sparse + ends)) "${experts[@]}"
  counts $((24 * layer + 12 * dense + 12 * sparse + ends)) "${experts[@]}" --moe-layer-freq 2
  counts $((24 * layer + 19 * dense + 5 * sparse + ends)) "${experts[@]}" --moe-layer-freq 5 # 0, 5, 10, 15, 20
  counts $((24 * layer + 3 * dense + 21 * sparse + ends)) "${experts[@]}" --moe-layer-freq "'([0]*3+[1]*21)'"
  counts $((24 * layer + 16 * dense + 8 * sparse + ends)) "${experts[@]}" --moe-layer-freq "'([0,0,1]*8)'"
  counts $((24 * layer + 24 * sparse + ends)) "${experts[@]}" --moe-layer-freq "'[1]*24'"
  local frequency
  for frequency in 0 "'([1,1,0]*8)'" "'[0]*24'" "'([2]*24)'" "'[1'" often; do
    counts 0 "${experts[@]}" --moe-layer-freq "$frequency" >/dev/null || true
    refuses "moe.sh:3: 'moe_layer_freq' is" simulate --from "$dir/moe.sh" --platform dgx-a100:2
  done
  # queries by 1536, keys and values by 512, heads of 128 + 64 and 128: down, up, norms, and the output
  local latent=$((2048 * 1536 + 1536 + 1536 * 16 * 192 + 2048 * (512 + 64) + 512 + 512 * 16 * 256 + 16 * 128 * 2048 + 2 * 2048))
  counts $((24 * (latent + dense) + ends)) --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512
}

@test "Megatron-LM: arguments alone, a line each, and MODEL_ARGS of YAML, are what a script with them is" {
  local words=(--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 4 --global-batch-size 64
    --tensor-model-parallel-size 2 --vocab-size 50257 --bf16)
  echo "torchrun pretrain_gpt.py ${words[*]}" >"$dir/job.sh"
  { echo "# a job"; printf '%s\n' "${words[*]}" | sed 's/ --/\n--/g'; } >"$dir/job.args"
  { echo "ENV_VARS:"; echo "  X: 1"; echo "MODEL_ARGS:"; echo "  --fp16: false"; printf '%s\n' "${words[*]}" | sed 's/ --/\n--/g' |
    sed 's/^--bf16$/--bf16 true/; s/^\(--[a-z0-9-]*\) /  \1: /'; } >"$dir/job.yaml"
  local form
  for form in sh args yaml; do
    "$PACELINE" simulate --from "$dir/job.$form" --platform dgx-a100:2 --json | jq -S 'del(.from, .model, .platform)' >"$dir/$form"
  done
  cmp "$dir/sh" "$dir/args"
  cmp "$dir/sh" "$dir/yaml"
  cp "$dir/job.sh" "$dir/job.conf" # by no name that says what it is
  run "$PACELINE" simulate --from "$dir/job.conf" --platform dgx-a100:2
  [[ $output == *"assumed  "*"its name ends in none of .toml, .yaml, .json"* ]]
  run "$PACELINE" simulate --from "$dir/job.sh" --platform dgx-a100:2
  [[ $output != *"its name ends in none"* ]]
  sed -i "s/--seq-length 1024/--seq-length long/" "$dir/job.args"
  refuses "job.args:5: 'seq_length' is 'long'" simulate --from "$dir/job.args" --platform dgx-a100:2
}
