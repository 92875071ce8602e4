#!/usr/bin/env bats
# paceline model: what it prints, and one message and exit status 2 for what is wrong.

model=workloads/models/gpt2-345m.json

@test "show prints dimensions, the exact parameter count and a row per kind of block" {
  run "$PACELINE" model show "$model"
  [ "$status" -eq 0 ]
  [[ "$output" == *"layers 24 in 30 blocks"* ]]
  [[ "$output" == *"parameters 354823168"* ]]
  for block in embedding identity layer final_norm head loss; do [[ "$output" == *$'\n'"$block "* ]]; done
}

@test "--json is JSON with the same figures" {
  run "$PACELINE" model show "$model" --json --tmp 4 --sp --attention unfused --seq 1024 --mbs 2 --dtype fp16
  [ "$status" -eq 0 ]
  # s b h/t (34 + 5 a s/h), Korthikanti et al. 2022
  echo "$output" | /usr/bin/python3 -c '
import json, sys
model = json.load(sys.stdin)
assert model["parameters"] == 354823168 and model["n_blocks"] == 30
assert model["blocks"]["layer"]["saved_bytes"] == 1024 * 2 * 1024 * 34 / 4 + 5 * 16 * 1024 * 1024 * 2 / 4
assert "forward" not in model["blocks"]["layer"]'
}

@test "--ops lists forward and backward with shapes" {
  run "$PACELINE" model show "$model" --ops --tmp 2 --mbs 1 --seq 512
  [ "$status" -eq 0 ]
  [[ "$output" == *"qkv "*"1x[512,1536,1024]"* ]]
  [[ "$output" == *"qkv_dgrad "*"1x[512,1024,1536]"* ]]
  [[ "$output" == *"qkv_wgrad "*"1x[1024,1536,512]"* ]]
  [[ "$output" == *"mlp_down_all_reduce"*"all_reduce 1 MiB"* ]]
  # every kind of tensor under its own prefix
  for tensor in " norm1[" " w:qkv[" " d:qkv[" " dw:qkv[" " m:mlp_residual["; do [[ "$output" == *"$tensor"* ]]; done
  run "$PACELINE" model show "$model" --ops --json
  echo "$output" | /usr/bin/python3 -c 'import json, sys; assert json.load(sys.stdin)["blocks"]["layer"]["backward"]'
}

@test "every model that ships can be shown" {
  for file in workloads/models/*.json; do "$PACELINE" model show "$file" >/dev/null; done
}

refused() { # MESSAGE ARGUMENT...
  local message=$1
  shift
  run --separate-stderr "$PACELINE" model "$@"
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  [[ "$stderr" == "paceline model: "*"$message"* ]]
}

@test "bad input: one message, exit status 2, nothing on standard output" {
  bats_require_minimum_version 1.5.0
  refused "show FILE"
  refused "needs a file" show
  refused "not an action" list "$model"
  refused "one argument too many" show "$model" "$model"
  refused "is not an option" show --bogus "$model"
  refused "nosuch.json" show nosuch.json
  refused "--tmp" show "$model" --tmp x
  refused "16 attention heads" show "$model" --tmp 3
  refused "1024 learned positions" show "$model" --seq 2048
  refused "--recompute 'some'" show "$model" --recompute some
  refused "--attention 'none'" show "$model" --attention none
  refused "--dtype 'int4'" show "$model" --dtype int4
  refused "fp8" show "$model" --dtype fp8
  printf '{"model_type": "bart"}' >"$BATS_TEST_TMPDIR/t5.json"
  refused "t5.json:1:" show "$BATS_TEST_TMPDIR/t5.json"
  refused "(an encoder with a decoder) is not supported; the nearest that is seems to be t5, of gpt2" show "$BATS_TEST_TMPDIR/t5.json"
  sed 's/"gpt2-345m"/"a\\nb"/' "$model" >"$BATS_TEST_TMPDIR/name.json"
  refused "'name' has characters that cannot be printed" show "$BATS_TEST_TMPDIR/name.json"
  python3 -c "
import json
m = json.load(open('workloads/models/vgg-16.json'))
m['blocks'][1] = ', '.join(['(|)'] * 32)
json.dump(m, open('$BATS_TEST_TMPDIR/bars.json', 'w'), indent=1)
m = json.load(open('workloads/models/mixtral-8x7b.json'))
m.update(hidden_size=1 << 22, intermediate_size=1 << 22, num_local_experts=65536)
json.dump(m, open('$BATS_TEST_TMPDIR/huge.json', 'w'))"
  refused "bars.json:12:3: 'blocks'" show "$BATS_TEST_TMPDIR/bars.json"
  refused "more than 1048576 channels" show "$BATS_TEST_TMPDIR/bars.json"
  refused "huge.json:1:1: the dimensions make a block of 3.46e+18 parameters" show "$BATS_TEST_TMPDIR/huge.json"
  refused "dgx-1v.xml:1:1: not valid JSON here" show platforms/dgx-1v.xml
}

@test "a full disk is an error" {
  run bash -c '"$PACELINE" model show workloads/models/gpt2-345m.json >/dev/full'
  [ "$status" -eq 1 ]
  [[ "$output" == *"cannot write"* ]]
}

@test "a convolutional network: its pictures, blocks and parameters" {
  run "$PACELINE" model show workloads/models/resnet-50.json --mbs 2
  [ "$status" -eq 0 ]
  [[ "$output" == *"19 blocks on pictures of 3 x 224 x 224"*"parameters 25557032"*"chain@0 "*"mean@18 "* ]]
  [[ "$output" != *heads* ]]
  run "$PACELINE" simulate --platform platforms/dgx-1v.xml --model workloads/models/resnet-50.json --gbs 256 --strategy pp=2,dp=4,tmp=1,mbs=32 --dtype fp16
  [ "$status" -eq 0 ]
  run "$PACELINE" simulate --platform platforms/dgx-1v.xml --model workloads/models/resnet-50.json --gbs 256 --strategy pp=1,dp=4,tmp=2,mbs=32 --dtype fp16
  [ "$status" -eq 2 ]
  [[ "$output" == "paceline simulate: resnet-50: "*"tmp=1"* ]]
}

@test "loads of experts come from a file beside the model's, and change its digest" {
  jq '.name = "loaded" | .expert_load = "loads.txt"' workloads/models/tiny-mixtral.json >"$BATS_TEST_TMPDIR/loaded.json"
  jq '.name = "loaded" | .expert_load = [3, 1, 1, 1]' workloads/models/tiny-mixtral.json >"$BATS_TEST_TMPDIR/listed.json"
  [ "$(jq .num_local_experts workloads/models/tiny-mixtral.json)" = 4 ]
  of() { "$PACELINE" simulate --platform dgx-a100 --model "$BATS_TEST_TMPDIR/$1.json" --gbs 16 --seq 16 --strategy pp=1,dp=4,tmp=1,mbs=1,ep=4,idle=1 --json; }
  printf '# tokens of each\n3 1\n1, 1\n' >"$BATS_TEST_TMPDIR/loads.txt"
  [ "$(of loaded | jq .iter_time_s)" = "$(of listed | jq .iter_time_s)" ]
  first=$(of loaded | jq .model_digest)
  for layer in 0 1; do printf '2 1 1 0 # of layer %s\n' "$layer"; done >"$BATS_TEST_TMPDIR/loads.txt"
  [ "$(of loaded | jq .model_digest)" != "$first" ]
  printf '3 1\n1 one\n' >"$BATS_TEST_TMPDIR/loads.txt"
  run of loaded
  [ "$status" -eq 2 ] && [[ $output == *"loads.txt:2:3: 'one' is no number of tokens"* ]]
  printf '3 1 1\n' >"$BATS_TEST_TMPDIR/loads.txt"
  run of loaded
  [ "$status" -eq 2 ] && [[ $output == *"loaded.json:"*"'expert_load': "*"loads.txt has 3 numbers, and the model 4 experts"* ]]
  rm "$BATS_TEST_TMPDIR/loads.txt"
  run of loaded
  [ "$status" -eq 2 ] && [[ $output == *"loaded.json:"*"'expert_load': "*"loads.txt: cannot open"* ]]
}
