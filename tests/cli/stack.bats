# Models of several kinds of layers: shown, simulated, explained, swept, searched and verified.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  models=tests/unit/models
}

@test "each computes what the sequential program computes" {
  for model in tiny-vit tiny-mamba2 tiny-bamba tiny-nemotron-h tiny-falcon-h1 tiny-t5; do
    for strategy in pp=2,dp=2,tmp=2,mbs=1 pp=2,dp=1,tmp=2,mbs=2,sp=1,zero=1 pp=1,dp=2,tmp=4,mbs=1,zero=3 \
      pp=2,dp=1,tmp=1,mbs=2,schedule=zb-h1 pp=1,dp=1,tmp=1,mbs=2,cp=2,recompute=full; do
      seq=(--seq 16)
      [[ $model == tiny-vit ]] && seq=()
      run -0 "$PACELINE" verify --model $models/$model.json --gbs 8 "${seq[@]}" --steps 1 --strategy $strategy
      [[ ${lines[-1]} == "equal: "* ]]
    done
  done
}

@test "linear attention and experts too, experts spread over devices" {
  for strategy in pp=2,dp=2,tmp=2,mbs=1,sp=1 pp=1,dp=2,tmp=1,mbs=1,ep=2 pp=1,dp=2,tmp=2,mbs=1,sp=1,zero=3 pp=2,dp=1,tmp=1,mbs=2,schedule=zb-h1; do
    run -0 "$PACELINE" verify --model $models/tiny-qwen3-next.json --gbs 8 --seq 16 --steps 1 --strategy $strategy
    [[ ${lines[-1]} == "equal: "* ]]
  done
  # Of 4 experts a token goes to 2: half of the rows are computed, exchanged and held.
  run -0 --separate-stderr "$PACELINE" simulate --platform dgx-1v --model $models/tiny-qwen3-next.json --gbs 16 --seq 64 --strategy pp=1,dp=8,tmp=1,mbs=2,ep=2
  [[ $output == *"expert communication"* ]]
  [[ $output == *"kernels          assumed: a scan"*"tokens are evenly spread over the experts"* ]]
}

@test "a model without a stack of layers sends to the strategy trees" {
  local job=(--platform dgx-1v --model dlrm-516m --gbs 64) says="dlrm-516m has no stack of layers that pp, dp and tmp could cut: name a strategy tree"
  run -2 "$PACELINE" search "${job[@]}"
  [[ $output == *"$says"* ]]
  run -2 "$PACELINE" sweep "${job[@]}" -o "$BATS_TEST_TMPDIR/dlrm.h5"
  [[ $output == *"$says"* ]]
  run -2 "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=8,tmp=1,mbs=8
  [[ $output == *"$says"* ]]
}

@test "model show says layers, state and what is assumed of their kernels" {
  run -0 "$PACELINE" model show $models/tiny-bamba.json
  [[ $output == *"layers     2 of attention and MLP, 2 of state space and MLP"* ]]
  [[ $output == *"8 heads of 4 in 1 groups, 6 states each, chunks of 4"* ]]
  [[ $output == *"kernels    assumed: a scan is the batched products of its chunks"* ]]
  run -0 "$PACELINE" model show $models/tiny-vit.json
  [[ $output == *"15 of 2x2 points and 3 channels, and the class: 16 tokens; 8 classes"* ]]
  run -2 "$PACELINE" model show $models/tiny-vit.json --seq 17
  [[ $output == *"a picture is 16 tokens"* ]]
}

@test "simulate, explain, sweep and search take them" {
  run -0 "$PACELINE" simulate --platform dgx-1v --model $models/tiny-mamba2.json --gbs 16 --seq 16 --strategy pp=2,dp=2,tmp=2,mbs=2
  [[ $output == *"kernels          assumed: a scan"* ]]
  run -0 "$PACELINE" explain --platform dgx-1v --model $models/tiny-mamba2.json --gbs 16 --seq 16 --strategy pp=1,dp=8,tmp=1,mbs=2 --top 0
  [[ $output == *"h.*.scan"* ]]
  run -0 "$PACELINE" search --platform dgx-1v --model $models/tiny-vit.json --gbs 16 --pp 1 --zero 0 --recompute none
  [[ $output == *"best "* ]]
  run -0 "$PACELINE" sweep --platform dgx-1v --model $models/tiny-mamba2.json --gbs 16 --seq 16 --pp 1 --tmp 2 --zero 0,1 -o "$BATS_TEST_TMPDIR/a.h5"
  run -0 "$PACELINE" show "$BATS_TEST_TMPDIR/a.h5" --csv --columns iter_time_s,fits
  [[ ${#lines[@]} -gt 2 ]]
}

@test "fp8's share and the MFU are said wherever one is simulated, and are the same" {
  local job=(--platform dgx-h100:1 --model bamba-9b --fp8 --gbs 16 --seq 2048)
  run -0 "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=4,tmp=2,mbs=1,zero=3
  [[ $output == *"MFU  "*" %"* && $output =~ $'\n'"fp8 "\ +"92.8 % of the products' work" ]]
  said=$("$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=4,tmp=2,mbs=1,zero=3 --json | jq -c '[.mfu, .iter_time_s]')
  run -0 "$PACELINE" sweep "${job[@]}" --pp 1 --dp 4 --tmp 2 --mbs 1 --zero 3 --sp off --recompute none -o "$BATS_TEST_TMPDIR/a.h5"
  [[ $output =~ $'\n'"fp8 "\ +"92.8 % of the products' work" ]]
  [ "$("$PACELINE" show "$BATS_TEST_TMPDIR/a.h5" --json | jq -c '.rows[0] | [.mfu, .iter_time_s]')" = "$said" ]
  run -0 "$PACELINE" search "${job[@]}" --pp 1 --dp 4 --tmp 2 --mbs 1 --zero 3 --sp off --recompute none
  [[ $output =~ $'\n'"fp8 "\ +"92.8 % of the products' work" ]]
  # An MLP has layers, none of which is a Transformer's.
  run -0 "$PACELINE" simulate --platform dgx-h100:1 --model mlp-1b --fp8 --gbs 1024 --strategy pp=1,dp=8,tmp=1,mbs=16
  [[ $output == *"none of the products: it is for the weights of Transformers' layers, of which this model has none; all is fp16"* ]]
}
