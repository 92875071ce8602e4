#!/usr/bin/env bats
# What the command line leaves open: type, products and sequence length come from the model's file or are assumed, in every
# command alike, and the output says which.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  dir=$BATS_TEST_TMPDIR
  platform=platforms/dgx-h100.xml
  strategy=pp=1,dp=8,tmp=1,mbs=1
}

# model NAME [KEY: VALUE, ...]: Llama 3.2 1B with these keys as well
model() {
  cat >"$dir/$1.json" <<EOF
{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 16,
 "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": true${2:+, $2}}
EOF
}

# says TEXT ... -- ARGUMENTS: simulate prints each text
says() {
  local texts=()
  while [ "$1" != -- ]; do texts+=("$1") && shift; done
  run "$PACELINE" simulate --platform "$platform" --gbs 8 --strategy "$strategy" "${@:2}"
  [ "$status" -eq 0 ] || { echo "$output"; return 1; }
  for text in "${texts[@]}"; do [[ "$output" == *"$text"* ]] || { echo "wanted: $text"; echo "$output"; return 1; }; done
}

# refuses TEXT ARGUMENTS
refuses() {
  run "$PACELINE" simulate --platform "$platform" --gbs 8 --strategy "$strategy" "${@:2}"
  [ "$status" -eq 2 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" == *"$1"* ]] || { echo "wanted: $1"; echo "$output"; return 1; }
}

@test "the type is the model's, whatever the key and the spelling" {
  for said in '"torch_dtype": "bfloat16"' '"dtype": "bfloat16"' '"torch_dtype": "torch.bfloat16"' '"torch_dtype": "auto", "dtype": "bf16"'; do
    model own "$said, \"max_position_embeddings\": 2048"
    says "per iteration, bf16" "type             bf16, the " -- --model "$dir/own.json"
  done
  model own '"torch_dtype": "float32", "max_position_embeddings": 2048'
  says "per iteration, fp32" -- --model "$dir/own.json"
  model own '"max_position_embeddings": 2048'
  says "type             fp16, assumed: the model's file names none" -- --model "$dir/own.json"
}

@test "--dtype is stronger, in any spelling, and the output says so" {
  model own '"torch_dtype": "bfloat16", "max_position_embeddings": 2048'
  for name in fp16 float16 half FP16; do
    says "type             fp16, as asked for; the model's torch_dtype is bfloat16" -- --model "$dir/own.json" --dtype "$name"
  done
  says "per iteration, fp32" -- --model "$dir/own.json" --dtype float32
  run "$PACELINE" simulate --platform "$platform" --gbs 8 --strategy "$strategy" --model "$dir/own.json" --dtype bfloat16 --seq 512
  [[ "$output" != *"type  "* && "$output" != *"assumed"* ]]
}

@test "types that nothing is trained in, or that a GPU lacks, are refused with the way out" {
  model own '"torch_dtype": "float64", "max_position_embeddings": 2048'
  refuses "torch_dtype is 'float64', which nothing is trained in here; name the type with --dtype" --model "$dir/own.json"
  model own '"torch_dtype": "bfloat16", "dtype": "float16", "max_position_embeddings": 2048'
  refuses "'torch_dtype' is 'bfloat16', but 'dtype' is 'float16': leave one out" --model "$dir/own.json"
  model own '"torch_dtype": "bfloat16", "max_position_embeddings": 2048'
  platform=platforms/hc1.xml
  refuses "torch_dtype bf16 of the model: TitanXp does not compute in it; what every GPU here does, for --dtype: fp32, fp16" --model "$dir/own.json"
}

@test "--fp8: how much of the work is in it is said, and the MFU counts each type at its own peak" {
  # Llama 3 8B: weights of a layer 2 (2 h h + 2 h 1024 + 3 h f) a token, attention 4 s h, the head 2 h v.
  platform=platforms/dgx-h100.xml strategy=pp=1,dp=8,tmp=1,mbs=1,zero=3
  local llama=(--model workloads/models/llama-3-8b.json --seq 4096)
  says "bf16 with fp8 products" "% of the products' work: layers' weights (" "stay bf16); the MFU counts each" -- "${llama[@]}" --fp8
  says "bf16 with no fp8 products" "none of the products: it is for the weights of Transformers' layers" -- --model workloads/models/mlp-1b.json --dtype bf16 --fp8
  says "bf16 with no fp8 products" -- --model workloads/models/dlrm-516m.json --dtype bf16 --fp8 --strategy workloads/strategies/dlrm-rows.yaml
  for how in "" --as-program; do
    # shellcheck disable=SC2086
    "$PACELINE" simulate --platform "$platform" --gbs 8 --strategy "$strategy" "${llama[@]}" --fp8 --json $how >"$dir/narrow.json"
    /usr/bin/python3 - "$dir/narrow.json" <<'E'
import json, sys
row = json.load(open(sys.argv[1]))
h, f, v, s, layers = 4096, 14336, 128256, 4096, 32
weights, others = layers * 2 * (2 * h * h + 2 * h * 1024 + 3 * h * f), layers * 4 * s * h + 2 * h * v
share = weights / (weights + others)
assert abs(row["narrow_share"] - share) < 1e-9, (row["narrow_share"], share)
ideal_s = 3 * s * (weights / 1979e12 + others / 989e12)  # a sequence a GPU
assert abs(row["mfu"] * row["iter_time_s"] / ideal_s - 1) < 1e-9, (row["mfu"], ideal_s / row["iter_time_s"])
E
  done
}

@test "quantization_config is used or refused, never passed over" {
  local most='"torch_dtype": "bfloat16", "max_position_embeddings": 2048'
  model own "$most, \"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e4m3\"}"
  says "bf16 with fp8 products" "products         in fp8, as the model's quantization_config says" -- --model "$dir/own.json"
  says "per iteration, bf16" "products         the model's quantization_config (fp8) is left out" -- --model "$dir/own.json" --dtype bf16
  platform=platforms/dgx-a100.xml refuses "asks for products in fp8, in which A100-SXM4-80GB does not compute" --model "$dir/own.json"
  for method in awq gptq bitsandbytes mxfp4; do
    model own "$most, \"quantization_config\": {\"quant_method\": \"$method\"}"
    refuses "weights kept by '$method' are for inference and not trained; name what is trained in with --dtype" --model "$dir/own.json"
    says "quantization_config ($method) is left out" -- --model "$dir/own.json" --dtype bf16
  done
  model own "$most, \"quantization_config\": {\"load_in_4bit\": true}"
  refuses "weights kept by 'unnamed'" --model "$dir/own.json"
  model own "$most, \"quantization_config\": null"
  says "per iteration, bf16" -- --model "$dir/own.json"
  model own "$most, \"quantization_config\": 4"
  refuses "'quantization_config' must be an object" --model "$dir/own.json"
}

@test "sequences: the positions before they were stretched, at most 8192" {
  model own '"max_position_embeddings": 131072, "rope_scaling": {"original_max_position_embeddings": 4096}'
  says "sequence         4096 tokens, assumed: the model's 4096 positions before they were stretched" -- --model "$dir/own.json"
  model own '"max_position_embeddings": 131072'
  says "sequence         8192 tokens, assumed: the model has 131072 positions" -- --model "$dir/own.json"
  model own '"max_position_embeddings": 2048, "rope_parameters": {"rope_type": "default"}'
  says "sequence         2048 tokens, assumed: all positions of the model" -- --model "$dir/own.json"
  model own
  refuses "--seq N is missing" --model "$dir/own.json"
  model own '"max_position_embeddings": 131072, "rope_scaling": {"original_max_position_embeddings": 0}'
  refuses "original_max_position_embeddings" --model "$dir/own.json"
}

@test "every command has the same defaults and says so" {
  model own '"torch_dtype": "bfloat16", "max_position_embeddings": 131072'
  local job=(--platform "$platform" --model "$dir/own.json" --gbs 8) small=(--pp 1 --tmp 1 --mbs 1 --zero 1 --recompute full --overlap on)
  "$PACELINE" simulate "${job[@]}" --strategy "$strategy" >"$dir/simulate"
  "$PACELINE" explain "${job[@]}" --strategy "$strategy" >"$dir/explain"
  "$PACELINE" model show "$dir/own.json" >"$dir/show"
  "$PACELINE" sweep "${job[@]}" "${small[@]}" -o "$dir/o.h5" >"$dir/sweep"
  "$PACELINE" search "${job[@]}" "${small[@]}" >"$dir/search"
  for command in simulate explain show sweep search; do
    grep -q "^type  *bf16, the torch_dtype of the model$" "$dir/$command" || { echo "$command"; cat "$dir/$command"; return 1; }
    grep -q "^sequence  *8192 tokens, assumed: the model has 131072 positions" "$dir/$command" || { echo "$command"; cat "$dir/$command"; return 1; }
  done
  for command in simulate explain; do
    "$PACELINE" "$command" "${job[@]}" --strategy "$strategy" --json | grep -q '"dtype_from": "model"'
  done
  "$PACELINE" model show "$dir/own.json" --json | grep -q '"seq_from": "assumed"'
}

@test "model show: recompute=alternate is among what it takes" {
  run "$PACELINE" model show workloads/models/llama-2-7b.json --recompute alternate
  [ "$status" -eq 0 ]
  run "$PACELINE" model show workloads/models/llama-2-7b.json --dtype fp8
  [ "$status" -eq 2 ]
}

@test "degrees that are left out are 1, dp takes the GPUs that are left, and which those are is said" {
  job=(--platform dgx-a100 --model gpt2-345m --gbs 96 --seq 1024)
  run "$PACELINE" simulate "${job[@]}" --strategy dp=8,mbs=12
  [ "$status" -eq 0 ] && [[ $output == *$'\n'"assumed          pp=1, tmp=1: not given"$'\n'* ]]
  short=$("$PACELINE" simulate "${job[@]}" --strategy tmp=2,mbs=12 --json)
  [ "$(jq -c '[.strategy_assumed, .pp, .dp, .tmp]' <<<"$short")" = '["pp=1, dp=4",1,4,2]' ]
  whole=$("$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=4,tmp=2,mbs=12 --json)
  [ "$(jq -c 'del(.strategy_assumed)' <<<"$short")" = "$(jq -c . <<<"$whole")" ] # nothing is said of what is given
  [[ $("$PACELINE" simulate "${job[@]}" --strategy mbs=12,offload=states) == *$'\n'"assumed          pp=1, tmp=1, dp=8: not given"$'\n'* ]]
  run "$PACELINE" simulate "${job[@]}" --strategy pp=3,mbs=12
  [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] && [[ $output == *"pp * cp * tmp = 3 does not divide 8 devices; with idle=1 2 of them are left over" ]]
  run "$PACELINE" simulate "${job[@]}" --strategy dp=8
  [ "$status" -eq 2 ] && [[ $output == *"mbs is missing, the sequences of a microbatch"* ]]
  [[ $("$PACELINE" verify --model tiny-gpt2 --gbs 4 --seq 8 --strategy tmp=2,mbs=2) == *"assumed    pp=1, dp=1: not given"*equal* ]]
}
