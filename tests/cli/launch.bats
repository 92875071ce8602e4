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
  [[ $stderr == *"$says"* ]]
}

# round FORM EXTENSION MODEL STRATEGY [OPTION ...]: what is written and read again is the same strategy and the same time.
round() {
  local form=$1 file=$dir/job.$2 model=$3 strategy=$4
  shift 4
  "$PACELINE" launch --platform "$platform" --model "$model" --gbs 64 --strategy "$strategy" --as "$form" -o "$file" --force
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
  refuses "--row" launch "$dir/best.h5" --as megatron --row 100000000
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
  # options are stronger than the file
  run "$PACELINE" simulate --from "$dir/train.sh" --platform "$platform" --gbs 256 --strategy pp=4,dp=8,tmp=1,mbs=4
  [[ $output == *"256 sequences"* ]]
  [[ $output == *"pp=4,dp=8"* ]]
}

@test "what cannot be said or read is refused in one line" {
  local job=(--platform "$platform" --model llama-3.1-8b --gbs 64)
  refuses "--as is missing" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1
  refuses "did you mean 'megatron'" launch "${job[@]}" --strategy pp=1,dp=32,tmp=1,mbs=1 --as megatrn
  refuses "schedule=gpipe: Megatron has" launch "${job[@]}" --strategy pp=4,dp=8,tmp=1,mbs=1,schedule=gpipe --as megatron -o "$dir/x.sh"
  [ ! -e "$dir/x.sh" ]
  refuses "says data parallelism and ZeRO" launch "${job[@]}" --strategy pp=4,dp=8,tmp=1,mbs=1 --as deepspeed
  refuses "none of the models" launch --platform "$platform" --model gpt2-345m --gbs 64 --strategy pp=1,dp=32,tmp=1,mbs=1 --as torchtitan
  refuses "No such file" simulate --from "$dir/none.sh" --platform "$platform"
  printf '{"train_batch_size": 64}' >"$dir/ds.json"
  refuses "does not say what is trained; name it with --model" simulate --from "$dir/ds.json" --platform "$platform"
  refuses "--platform is missing" simulate --from "$dir/ds.json"
  printf '[training]\nseq_len = "long"\n' >"$dir/t.toml"
  refuses "t.toml:2: 'training.seq_len' is 'long'" simulate --from "$dir/t.toml" --platform "$platform"
}
