#!/usr/bin/env bats
# Schedules beyond 1F1B from the command line: simulated, traced, swept, and listed in a file.

bats_require_minimum_version 1.5.0

setup() {
  dir=$(mktemp -d)
  job=(--platform platforms/dgx-a100.xml --model workloads/models/gpt2-345m.json --gbs 16)
}

teardown() {
  rm -rf "$dir"
}

# Seconds that an iteration takes under the schedule.
time_of() {
  "$PACELINE" simulate "${job[@]}" --strategy "pp=8,dp=1,tmp=1,mbs=1,schedule=$1" --json |
    /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["iter_time_s"])'
}

@test "halves of backward passes fill the bubbles of 1F1B" {
  /usr/bin/python3 - "$(time_of 1f1b)" "$(time_of zb-h1)" "$(time_of zb-v)" <<'EOF'
import sys
one, h1, v = map(float, sys.argv[1:])
assert h1 < one and v < h1, (one, h1, v)
EOF
}

@test "the trace shows the halves where the schedule has them" {
  job=(--platform platforms/dgx-a100.xml --model workloads/models/gpt2-345m.json --gbs 8)
  "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=2,tmp=1,mbs=1,schedule=zb-h1 --trace "$dir/t.json" >/dev/null
  /usr/bin/python3 - "$dir/t.json" <<'EOF'
import json, sys
letters = {"forward": "F", "backward for inputs": "B", "backward for weights": "W"}
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "pass" and e["name"] in letters]
wanted = ["F0 F1 F2 F3 B0 W0 B1 W1 B2 W2 B3 W3", "F0 F1 F2 B0 F3 B1 W0 B2 W1 B3 W2 W3",
          "F0 F1 B0 F2 B1 F3 B2 W0 B3 W1 W2 W3", "F0 B0 F1 B1 F2 B2 F3 B3 W0 W1 W2 W3"]
for stage, passes in enumerate(wanted):
    own = sorted((e["ts"], letters[e["name"]] + str(e["args"]["microbatch"])) for e in events if e["pid"] == stage + 1)
    steps = [name for i, (_, name) in enumerate(own) if i == 0 or own[i - 1][1] != name]  # reductions cut the last pass
    assert " ".join(steps) == passes, (stage, steps)
EOF
}

@test "a listed schedule is the schedule that it lists" {
  printf '# FIFO\n0: F0.0 F0.1 BW0.0 BW0.1\n1: F0.0 F0.1 BW0.0 BW0.1\n' >"$dir/fifo"
  job=(--platform platforms/dgx-a100.xml --model workloads/models/gpt2-345m.json --gbs 8)
  for schedule in fifo "@$dir/fifo"; do
    "$PACELINE" simulate "${job[@]}" --strategy "pp=2,dp=4,tmp=1,mbs=1,schedule=$schedule" | grep -v "^strategy" >>"$dir/out"
  done
  [ "$(wc -l <"$dir/out")" -gt 20 ]
  [ "$(head -n $(($(wc -l <"$dir/out") / 2)) "$dir/out")" = "$(tail -n $(($(wc -l <"$dir/out") / 2)) "$dir/out")" ]
}

# refuses MESSAGE STRATEGY: exit status 2, one line.
refuses() {
  run --separate-stderr "$PACELINE" simulate "${job[@]}" --strategy "$2"
  [ "$status" -eq 2 ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ] && [[ "$stderr" == *"$1"* ]] ||
    { echo "$status: $stderr"; false; }
}

@test "every recipe and method knows chunks in a V" {
  for assign in balanced optimal amp-dp; do
    run -0 "$PACELINE" simulate "${job[@]}" --strategy "pp=4,dp=2,tmp=1,mbs=1,schedule=zb-v,assign=$assign"
  done
  for method in anneal amp placement; do
    run -0 "$PACELINE" search "${job[@]}" --pp 4 --tmp 1 --mbs 1 --recompute none --zero 0 --schedule zb-v --method "$method" --budget 20 --top 1
    [[ $output == *schedule=zb-v* ]]
  done
}

@test "what is wrong with a schedule is one line" {
  printf '0: F0.0 F0.1 B0.0 BW0.1\n1: F0.0 F0.1 BW0.0 BW0.1\n' >"$dir/half"
  printf '0: F0.0 BW0.0\n1: F0.0 BW0.0\n' >"$dir/one"
  job=(--platform platforms/dgx-a100.xml --model workloads/models/gpt2-345m.json --gbs 8)
  refuses "$dir/half:1:19: stage 0 ends here without W0.0" "pp=2,dp=4,tmp=1,mbs=1,schedule=@$dir/half"
  refuses "$dir/one lists 1 microbatches, but gbs / (dp * mbs) gives 2" "pp=2,dp=4,tmp=1,mbs=1,schedule=@$dir/one"
  refuses "$dir/one lists 2 stages of 1 chunks, but the strategy has pp=4, vpp=1" "pp=4,dp=2,tmp=1,mbs=1,schedule=@$dir/one"
  refuses "$dir/none" "pp=2,dp=4,tmp=1,mbs=1,schedule=@$dir/none"
  refuses "schedule=zb-h1 needs pp >= 2" pp=1,dp=8,tmp=1,mbs=1,schedule=zb-h1
  refuses "schedule=zb-v has two chunks per stage: vpp=2, not vpp=3" pp=2,dp=4,tmp=1,mbs=1,schedule=zb-v,vpp=3
  refuses "schedule=dualpipe-v needs at least 2 * pp = 4 microbatches" pp=2,dp=4,tmp=1,mbs=1,schedule=dualpipe-v
  refuses "schedule=zb is unknown; choose one of gpipe, 1f1b, interleaved, fifo" pp=2,dp=4,tmp=1,mbs=1,schedule=zb
}

@test "spaces have the other schedules when they are asked for" {
  sweep() {
    "$PACELINE" sweep "${job[@]}" --pp 2,4 --tmp 2 --mbs 1 --vpp 2 --recompute none --sp off --zero 0 --overlap on \
      --assign uniform "$@"
  }
  sweep -o "$dir/three.h5" >"$dir/three"
  sweep --schedule gpipe,1f1b,interleaved -o "$dir/same.h5" >/dev/null
  sweep --schedule fifo,breadth-first,zb-h1,zb-h2,zb-v,dualpipe-v -o "$dir/six.h5" >"$dir/six"
  [ "$("$PACELINE" show "$dir/three.h5" --csv)" = "$("$PACELINE" show "$dir/same.h5" --csv)" ]
  [ "$("$PACELINE" show "$dir/six.h5" --csv --top 100 --where "schedule=='zb-v'" | grep -c zb-v)" -eq 2 ]
  for schedule in fifo breadth-first zb-h1 zb-h2 zb-v; do
    "$PACELINE" show "$dir/six.h5" --where "schedule=='$schedule'" | grep -q "$schedule"
  done
}

@test "DeepSeek's own recomputation beside DualPipe is a tree: less is held, and nothing else is computed" {
  tree=workloads/strategies/deepseek-dualpipe.yaml
  run "$PACELINE" verify --model tiny-deepseek --gbs 8 --strategy $tree
  [ "$status" -eq 0 ] && [[ ${lines[-1]} == "equal: "* ]]
  # as its first lines say, on 2,048 devices
  sed -e 's/dp: 2}/dp: 2, ep: 64}/; s/stages: 2/stages: 16/; s/microbatches: 4/microbatches: 120/; s/{b|x: dp}/{b: dp, b|x: ep}/' $tree >"$BATS_TEST_TMPDIR/made.yaml"
  sed '/^children/,$d' "$BATS_TEST_TMPDIR/made.yaml" >"$BATS_TEST_TMPDIR/kept.yaml"
  for which in made kept; do
    "$PACELINE" simulate --platform hgx-h800:256 --model deepseek-v3 --gbs 15360 --seq 4096 --fp8 --framework nemo --strategy "$BATS_TEST_TMPDIR/$which.yaml" --json >"$BATS_TEST_TMPDIR/$which"
  done
  jq -se '.[0].peak_mem_bytes < 0.7 * .[1].peak_mem_bytes and .[0].iter_time_s > .[1].iter_time_s and .[0].iter_time_s < 1.1 * .[1].iter_time_s' "$BATS_TEST_TMPDIR/made" "$BATS_TEST_TMPDIR/kept"
}

@test "DualPipe's pairs hide what experts exchange, as do pairs that somebody joins by hand" {
  moe=(--platform dgx-h100:2 --model mixtral-8x7b --gbs 64 --seq 4096)
  "$PACELINE" program print "${moe[@]}" --strategy pp=2,dp=8,ep=8,mbs=1,recompute=full,schedule=dualpipe --framework ideal -o "$BATS_TEST_TMPDIR/pairs.plir"
  # the same with steps one after the other
  sed '/^  steps/,/^  update/ s/+/ /g' "$BATS_TEST_TMPDIR/pairs.plir" >"$BATS_TEST_TMPDIR/turns.plir"
  pairs=$("$PACELINE" simulate --program "$BATS_TEST_TMPDIR/pairs.plir" --platform dgx-h100:2 --json | jq .iter_time_s)
  turns=$("$PACELINE" simulate --program "$BATS_TEST_TMPDIR/turns.plir" --platform dgx-h100:2 --json | jq .iter_time_s)
  jq -ne "$pairs < $turns and $pairs > 0.7 * $turns"
  [ "$pairs" = "$("$PACELINE" simulate --program "$BATS_TEST_TMPDIR/pairs.plir" --platform dgx-h100:2 --no-leap --no-fold --json | jq .iter_time_s)" ]
  # one stage, and pairs by hand
  "$PACELINE" program print "${moe[@]}" --gbs 32 --strategy pp=1,dp=16,ep=8,mbs=1 --framework ideal -o "$BATS_TEST_TMPDIR/one.plir"
  grep -q '^  steps F0.0 B0.0 F0.1 B0.1$' "$BATS_TEST_TMPDIR/one.plir"
  sed 's/^  steps F0.0 B0.0 F0.1 B0.1$/  steps F0.0 F0.1+B0.0 B0.1/' "$BATS_TEST_TMPDIR/one.plir" >"$BATS_TEST_TMPDIR/hand.plir"
  before=$("$PACELINE" simulate --program "$BATS_TEST_TMPDIR/one.plir" --platform dgx-h100:2 --json | jq .iter_time_s)
  jq -ne "$("$PACELINE" simulate --program "$BATS_TEST_TMPDIR/hand.plir" --platform dgx-h100:2 --json | jq .iter_time_s) < $before"
  sed 's/ F0.1+B0.0 / F0.1+ /' "$BATS_TEST_TMPDIR/hand.plir" >"$BATS_TEST_TMPDIR/wrong.plir"
  sed -i 's/F0.1+ B0.1/F0.1+/' "$BATS_TEST_TMPDIR/wrong.plir"
  run "$PACELINE" program check "$BATS_TEST_TMPDIR/wrong.plir"
  [ "$status" -eq 2 ] && [[ $output == *"a step that runs beside the one in front of '+'"* ]]
}

@test "DualPipe with two copies of the weights: each stage has two parts of the model, and what a tuple says a tree says too" {
  gpt=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024)
  held() { "$PACELINE" simulate "${gpt[@]}" --strategy "$1" --as-program --json | jq -c "[.lists[] | $2]"; }
  what='.mem_parameters_bytes, .mem_gradients_bytes, .mem_optimizer_bytes'
  # on two stages both have the whole model; its table, which embedding and head read, once
  whole=$(held pp=1,dp=1,mbs=1,idle=1 "[$what]" | jq -c '.[0]')
  [ "$(held pp=2,dp=1,mbs=1,idle=1,schedule=dualpipe "[$what]")" = "[$whole,$whole]" ]
  run "$PACELINE" simulate "${gpt[@]}" --strategy pp=3,dp=1,mbs=1,schedule=dualpipe,idle=1
  [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] && [[ $output == *"pp is even, and gbs / (dp * mbs) an even number of at least 2 * pp = 6"*"here pp=3 and 32" ]]
  run "$PACELINE" simulate "${gpt[@]}" --strategy pp=4,dp=2,mbs=4,schedule=dualpipe
  [ "$status" -eq 2 ] && [[ $output == *"at least 2 * pp = 8"*"here pp=4 and 4" ]]
  tuple=$("$PACELINE" simulate "${gpt[@]}" --strategy pp=4,dp=2,mbs=2,zero=1,schedule=dualpipe --json | jq -c '[.iter_time_s, .peak_mem_bytes]')
  [ "$tuple" = "$("$PACELINE" simulate "${gpt[@]}" --strategy gpt-dualpipe.yaml --json | jq -c '[.iter_time_s, .peak_mem_bytes]')" ]
  "$PACELINE" program print "${gpt[@]}" --strategy pp=4,dp=2,mbs=2,schedule=dualpipe -o "$BATS_TEST_TMPDIR/d.plir"
  run "$PACELINE" program check "$BATS_TEST_TMPDIR/d.plir"
  [ "$status" -eq 0 ]
  grep -q '^  steps .*F0[.][0-9]*+B[0-9]*[.]' "$BATS_TEST_TMPDIR/d.plir"
  sed 's/ microbatches 4 to 7//' "$BATS_TEST_TMPDIR/d.plir" >"$BATS_TEST_TMPDIR/e.plir"
  run "$PACELINE" program check "$BATS_TEST_TMPDIR/e.plir"
  [ "$status" -eq 2 ] && [[ $output == *"class stage0 lacks step F7.0"* ]]
}
