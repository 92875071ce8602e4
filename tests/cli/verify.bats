# `paceline verify`: a strategy computes what the model says, or the command says what differs and ends with 2.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  tiny=(--model workloads/models/tiny-gpt2.json --gbs 8 --seq 8)
}

@test "verify: equal" {
  run -0 "$PACELINE" verify "${tiny[@]}" --strategy pp=2,dp=2,tmp=2,mbs=1,zero=1
  [[ ${lines[0]} == "tiny-gpt2 on 8 devices: 2 lists, "*" collectives and "*" sends in them" ]]
  [[ ${lines[-1]} == "equal: "* ]]
}

@test "verify: penalties by distance, sinks, norms over heads and with weights for each" {
  for model in bloom falcon-rw gpt-oss cohere olmo2; do
    for strategy in pp=1,dp=2,tmp=2,mbs=1,sp=1 pp=2,dp=1,tmp=1,cp=2,mbs=1; do
      run -0 "$PACELINE" verify --model tests/unit/models/tiny-$model.json --gbs 8 --seq 8 --steps 1 --strategy $strategy
      [[ ${lines[-1]} == "equal: "* ]] || { echo "$model $strategy: $output"; false; }
    done
  done
}

@test "verify: a picture that grows, in windows and with tables of relative positions" {
  gan=tests/unit/models/tiny-transgan.json
  for strategy in pp=2,dp=2,tmp=2,mbs=1,assign=0:8:15,zero=1 pp=1,dp=2,tmp=1,mbs=1,recompute=full,zero=3 pp=1,dp=2,tmp=2,mbs=1,recompute=selective,split=3:1; do
    run -0 "$PACELINE" verify --model $gan --gbs 4 --strategy $strategy
    [[ ${lines[-1]} == "equal: "* ]] || { echo "$strategy: $output"; false; }
  done
  # into windows and back is as if nothing was: what stands behind it sees tokens by their places
  loss() {
    jq --argjson blocks "$1" '.bottom_width = 4 | .g_window_size = 2 | .blocks = $blocks' $gan >"$BATS_TEST_TMPDIR/m.json"
    "$PACELINE" verify --model "$BATS_TEST_TMPDIR/m.json" --gbs 2 --strategy pp=1,dp=1,tmp=1,mbs=2 --json | jq .loss
  }
  there=$(loss '["latent", "positions", "partition", "merge", "positions", "layer", "pixels"]')
  [[ $there == "$(loss '["latent", "positions", "copy", "copy", "positions", "layer", "pixels"]')" ]]
  [[ $there != "$(loss '["latent", "positions", "partition", "layer", "merge", "layer", "pixels"]')" ]]
}

@test "verify: fp32 and other data" {
  run -0 "$PACELINE" verify "${tiny[@]}" --fp32 --seed 9 --steps 1 --strategy pp=1,dp=1,tmp=2,mbs=2,sp=1
  [[ ${lines[-1]} == "equal: "* ]]
}

@test "verify: JSON" {
  run -0 "$PACELINE" verify "${tiny[@]}" --json --strategy pp=1,dp=2,tmp=1,mbs=1,zero=3
  [[ $(jq -r '.equal, .n_devices' <<<"$output" | tr '\n' ' ') == "true 2 " ]]
}

@test "verify: what is kept goes with its last reader, also where the backward pass is in two" {
  peak() { "$PACELINE" verify "${tiny[@]}" --json --strategy "pp=2,dp=1,tmp=1,mbs=1,schedule=$1" | jq .peak_bytes; }
  (($(peak zb-h1) <= $(peak 1f1b))) # as many passes in flight
}

@test "verify: what programs cannot say is one line" {
  run -2 --separate-stderr "$PACELINE" verify "${tiny[@]}" --gbs 3 --strategy pp=1,dp=3,cp=4,tmp=1,mbs=1,zero=1,shard=6
  [[ -z $output && $stderr == "paceline verify: shard=6 takes a part of the 4 context ranks of several replicas" ]]
}

@test "verify: replicas with unlike numbers of microbatches" {
  run -0 "$PACELINE" verify "${tiny[@]}" --strategy pp=2,dp=2,tmp=2,mbs=1,split=5:3,zero=1
  [[ ${lines[0]} == *" on 8 devices: 2 lists, "*", 5 microbatches, "* && ${lines[-1]} == "equal: "* ]]
  for schedule in zb-v dualpipe-v; do
    run -0 "$PACELINE" verify "${tiny[@]}" --gbs 12 --strategy pp=2,vpp=2,dp=2,tmp=1,mbs=1,split=8:4,schedule=$schedule
    [[ ${lines[-1]} == "equal: "* ]] || { echo "$schedule: $output"; false; }
  done
  run -0 --separate-stderr "$PACELINE" program print "${tiny[@]}" --strategy pp=2,vpp=2,dp=2,tmp=1,mbs=1,split=5:3,schedule=zb-v -o "$BATS_TEST_TMPDIR/v.plir"
  [[ $stderr == "paceline program: schedule zb-v orders 3 microbatches otherwise "* ]]
  "$PACELINE" program print "${tiny[@]}" --strategy pp=1,dp=3,tmp=1,mbs=1,split=2:4:2 -o "$BATS_TEST_TMPDIR/p.plir"
  grep -A2 '^microbatches 4$' "$BATS_TEST_TMPDIR/p.plir" | tail -2 | diff - <(printf 'microbatches 2 at dp=%d\n' 0 2)
  "$PACELINE" program torch "$BATS_TEST_TMPDIR/p.plir" | grep -qx 'FEWER = \[({"dp": 0, }, 2), ({"dp": 2, }, 2), \]'
}

@test "verify: experts that exchange tokens beside the other pass" {
  jq '.num_hidden_layers = 4' workloads/models/tiny-mixtral.json >"$BATS_TEST_TMPDIR/four.json"
  moe=(--model "$BATS_TEST_TMPDIR/four.json" --gbs 8)
  for degrees in pp=1,dp=2 pp=2,vpp=2,dp=2 pp=2,vpp=2,dp=1,tmp=2,sp=1; do
    run -0 "$PACELINE" verify "${moe[@]}" --strategy "$degrees,mbs=1,ep=2,ep_overlap=1"
    [[ ${lines[-1]} == "equal: "* ]] || { echo "$degrees: $output"; false; }
  done
  # and gradients of weights, or shared experts, behind the exchange: what is launched
  jq '.num_hidden_layers = 4' workloads/models/tiny-deepseek.json >"$BATS_TEST_TMPDIR/shared.json"
  for degrees in pp=1,dp=2,ep_overlap=delayed pp=2,vpp=2,dp=2,ep_overlap=delayed pp=1,dp=2,ep_overlap=shared pp=2,dp=1,tmp=2,sp=1,ep_overlap=shared; do
    run -0 "$PACELINE" verify --model "$BATS_TEST_TMPDIR/shared.json" --gbs 8 --strategy "$degrees,mbs=1,ep=2" --framework nemo
    [[ ${lines[-1]} == "equal: "* ]] || { echo "$degrees: $output"; false; }
  done
  job=(--model "$BATS_TEST_TMPDIR/shared.json" --gbs 8 --framework nemo --level kernels --strategy pp=1,dp=2,tmp=1,mbs=1,ep=2)
  ! diff -q <("$PACELINE" program print "${job[@]}") <("$PACELINE" program print "${job[@]},ep_overlap=shared")
  "$PACELINE" program print "${moe[@]}" --strategy pp=1,dp=2,tmp=1,mbs=1,ep=2,ep_overlap=1 | grep -q "steps F0.0 F0.1+B0.0 F0.2+B0.1 F0.3+B0.2 B0.3"
}

@test "verify: orders and placements say where the devices of a program are" {
  for where in order=dtp order=ptd placement=5:4:7:6:0-3; do
    run -0 "$PACELINE" verify "${tiny[@]}" --strategy "pp=2,dp=2,tmp=2,mbs=1,$where"
    [[ $output == *"equal: "* ]]
  done
  "$PACELINE" program print "${tiny[@]}" --strategy pp=2,dp=2,tmp=2,mbs=1,order=dtp | grep -qx 'devices 0, 2, 1, 3, 4, 6, 5, 7'
  ! "$PACELINE" program print "${tiny[@]}" --strategy pp=2,dp=2,tmp=2,mbs=1,order=tdp | grep -q '^devices'
}

@test "verify: bad input is one line" {
  run -2 --separate-stderr "$PACELINE" verify "${tiny[@]}"
  [[ $stderr == "paceline verify: --strategy is missing"* ]]
  run -2 --separate-stderr "$PACELINE" verify --model workloads/models/gpt3-175b.json --gbs 8 --strategy pp=1,dp=1,tmp=1,mbs=1
  [[ $stderr == *"has 17"*" parameters: programs are run in full"* ]]
  run -2 --separate-stderr "$PACELINE" verify "${tiny[@]}" --strategy pp=1,dp=3,tmp=1,mbs=1
  [[ -z $output && ${#stderr_lines[@]} -eq 1 ]]
}

@test "a tree is verified as it is laid out for a platform" {
  run "$PACELINE" verify --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-context-ring.yaml --platform dgx-1v
  [ "$status" -eq 0 ]
  [[ $output == *"equal: relative to the largest element"* ]]
  on_platform=$(sed -n 1p <<<"$output")
  run "$PACELINE" verify --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-context-ring.yaml
  [ "$(sed -n 1p <<<"$output")" != "$on_platform" ] # other collectives
  run "$PACELINE" verify --model tiny-gpt2 --gbs 8 --strategy pp=1,dp=2,tmp=1,mbs=1 --platform dgx-1v
  [ "$status" -eq 2 ]
  [[ $output == *"--platform: tuples are laid out alike wherever they run"* ]]
}
