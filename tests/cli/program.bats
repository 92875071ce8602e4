#!/usr/bin/env bats
# paceline program: programs are checked and printed; what is wrong is shown with its line and a caret.

bats_require_minimum_version 1.5.0
example=workloads/programs/mlp-2-stages.plir

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
}

@test "check: every program that ships is in order, and counted" {
  for file in workloads/programs/*.plir; do "$PACELINE" program check "$file"; done
  run -0 "$PACELINE" program check "$example"
  [ "$output" = "$example: a distributed program in order: 6 functions of 40 ops, 2 classes on 4 devices, 8 steps" ]
}

@test "print: canonical text, which prints itself; reasons stay" {
  "$PACELINE" program print "$example" >"$BATS_TEST_TMPDIR/once.plir"
  grep -q '  # each replica has the term of its sequences$' "$BATS_TEST_TMPDIR/once.plir"
  "$PACELINE" program print "$BATS_TEST_TMPDIR/once.plir" -o "$BATS_TEST_TMPDIR/twice.plir"
  cmp "$BATS_TEST_TMPDIR/once.plir" "$BATS_TEST_TMPDIR/twice.plir"
  run -2 --separate-stderr "$PACELINE" program print "$example" -o "$BATS_TEST_TMPDIR/twice.plir"
  [[ $stderr == *"twice.plir"*"--force"* ]]
  "$PACELINE" program print "$example" -o "$BATS_TEST_TMPDIR/twice.plir" --force
  run -2 --separate-stderr "$PACELINE" program print "$BATS_TEST_TMPDIR/twice.plir" -o "$BATS_TEST_TMPDIR/twice.plir" --force
}

# An edit of the example, and what check says of it.
refused() { # FROM TO MESSAGE LINE CARET
  sed "s|$1|$2|" "$example" >"$BATS_TEST_TMPDIR/wrong.plir"
  ! cmp -s "$example" "$BATS_TEST_TMPDIR/wrong.plir"
  cd "$BATS_TEST_TMPDIR"
  run -2 --separate-stderr "$PACELINE" program check wrong.plir
  [ -z "$output" ]
  wanted="paceline program: wrong.plir:$3"$'\n'"$4"$'\n'"$5"
  [ "$stderr" = "$wanted" ] || { echo "$stderr"; echo "wanted"; echo "$wanted"; return 1; }
}

@test "a word that is no op" {
  refused 'relu(%a)' 'rleu(%a)' "15:8: 'rleu' is not an op; did you mean 'relu'?" \
    '   15 |   %y = rleu(%a) : fp32[b=8/dp, f=64]' \
    '      |        ^'
}

@test "a layout that does not follow" {
  refused '%sum = all_reduce(%g) {over=dp} : fp32\[h=16, f=64\]' '%sum = scale(%g) {by=1} : fp32[h=16, f=64]' \
    "32:10: operand 1 of scale is a partial sum along axis dp, where the others need it to be the same" \
    '   32 |   %sum = scale(%g) {by=1} : fp32[h=16, f=64]' \
    '      |          ^'
}

@test "lists that wait for each other" {
  sed 's|steps F0.0 F0.1 B0.0 B0.1|steps F0.0 B0.0 F0.1 B0.1|;s|steps F1.0 B1.0 F1.1 B1.1|steps F1.1 B1.1 F1.0 B1.0|' \
    "$example" >"$BATS_TEST_TMPDIR/wrong.plir"
  run -2 --separate-stderr "$PACELINE" program check "$BATS_TEST_TMPDIR/wrong.plir"
  [[ ${stderr_lines[0]} == *"wrong.plir:22:9: deadlock: B0.0 of class first waits in line 22 for receive \"dy\" from class second, and F1.1 of class second waits in line 40 for receive \"y\": another order of their steps is needed" ]]
  [[ ${stderr_lines[1]} == "   22 |   %dy = receive() {from=second, tag=\"dy\"} : fp32[b=8/dp, f=64]" ]]
}

@test "programs of a job, at every level: printed, they read as they are" {
  job="--model tiny-llama --gbs 8 --seq 8"
  for level in "--level model" "--level training" "" "--strategy pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1 --platform dgx-h100:1" \
    "--strategy pp=2,dp=1,tmp=2,mbs=1 --level training"; do
    "$PACELINE" program print $job $level -o "$BATS_TEST_TMPDIR/once.plir" --force
    "$PACELINE" program print "$BATS_TEST_TMPDIR/once.plir" | cmp - "$BATS_TEST_TMPDIR/once.plir"
    run -0 "$PACELINE" program check $job $level
    counts=${output#tiny-llama: }
    run -0 "$PACELINE" program check "$BATS_TEST_TMPDIR/once.plir"
    [ "$output" = "$BATS_TEST_TMPDIR/once.plir: $counts" ]
  done
  refuses() {
    message=$1
    shift
    run -2 --separate-stderr "$PACELINE" program check "$@"
    [[ -z $output && $stderr == "paceline program: "*"$message"* ]] || { echo "$stderr"; return 1; }
  }
  refuses "--gbs is missing" --model tiny-llama
  refuses "--strategy is missing" $job --level distributed
  refuses "--level: 'trainign' is unknown; choose one of model, training, distributed, kernels; did you mean 'training'?" $job --level trainign
  refuses "pp=16777216 * dp=16777216 * tmp=16777216 * cp=16777216 = 79228162514264337593543950336 ranks are too many; at most 16777216" $job --strategy pp=16777216,tmp=16777216,cp=16777216,dp=16777216,mbs=1
  refuses "--strategy stands beside the file $example" "$example" --strategy pp=2
  refuses "--gbs stands beside the file $example" "$example" --gbs 2
  refuses "--platform without --strategy" $job --platform dgx-h100:1
  refuses "assign=balanced needs a platform's devices" $job --strategy pp=2,dp=1,tmp=1,mbs=1,assign=balanced
  refuses "nosuch" --model nosuch --gbs 8
}

@test "kernels: of a job, of a tree, of a file; printed, they read as they are, and are the program" {
  k=$BATS_TEST_TMPDIR/k.plir
  job="--model tiny-llama --gbs 8 --seq 8 --strategy pp=2,dp=2,tmp=2,mbs=1,sp=1 --dtype bf16"
  for what in "$job" "$job --framework torch-fsdp" "--model tiny-gpt2 --gbs 16 --seq 8 --strategy gpt-zero1-pipeline.yaml"; do
    "$PACELINE" program print $what --level kernels -o "$k" --force
    "$PACELINE" program print "$k" | cmp - "$k"
    run -0 "$PACELINE" program check "$k"
    [[ $output == "$k: a kernels program in order: "* ]]
  done
  "$PACELINE" program print $job -o "$BATS_TEST_TMPDIR/p.plir"
  "$PACELINE" program print "$BATS_TEST_TMPDIR/p.plir" --level kernels --framework torch-fsdp -o "$k" --force
  grep -q '= kernel @layer.active.2(' "$k" && return 1 # PyTorch's ops are not fused
  "$PACELINE" program print "$BATS_TEST_TMPDIR/p.plir" --level kernels -o "$k" --force
  grep -q '= kernel @layer.active.2(' "$k"
  run -2 --separate-stderr "$PACELINE" program print "$example" --strategy pp=2 --level kernels
  "$PACELINE" program print --model tiny-llama --gbs 8 --seq 8 --level training -o "$BATS_TEST_TMPDIR/t.plir"
  run -2 --separate-stderr "$PACELINE" program print "$BATS_TEST_TMPDIR/t.plir" --level kernels
  [[ $stderr == *"is of level training: kernels are made of level distributed" ]]
}

@test "a vocabulary that tensor ranks cannot share is said, and a framework pads it" {
  job="--model gpt2-345m --gbs 8 --seq 8 --strategy pp=1,dp=1,tmp=2,mbs=8"
  run -0 --separate-stderr "$PACELINE" program print $job -o "$BATS_TEST_TMPDIR/whole.plir"
  [[ $stderr == *"vocabulary of 50257 does not divide by tmp=2"*"50432"* ]]
  grep -q 'param "embedding.table"() : fp16\[v=50257, h=1024\]\|param "table"() : fp16\[v=50257, h=1024\]' "$BATS_TEST_TMPDIR/whole.plir"
  run -0 --separate-stderr "$PACELINE" program print $job --framework ideal -o "$BATS_TEST_TMPDIR/cut.plir"
  [ -z "$stderr" ]
  grep -q 'v=50432/tp' "$BATS_TEST_TMPDIR/cut.plir"
  run ! grep -q 'v=50257' "$BATS_TEST_TMPDIR/cut.plir"
}

@test "rotary positions are in steps where the framework has no kernel for them" {
  job="--model tiny-llama --gbs 8 --seq 8 --strategy pp=1,dp=2,tmp=1,mbs=2 --level kernels"
  steps() { "$PACELINE" program print $job --framework "$1" | grep -c '# rotary positions in steps$' || true; }
  [ "$(steps megatron-core)" = 0 ]
  [ "$(steps torch-fsdp)" = 16 ] # queries and keys, three each forward and five backward
  run -0 "$PACELINE" verify --model tiny-llama --gbs 8 --seq 8 --strategy pp=1,dp=2,tmp=1,mbs=2 --framework torch-fsdp
  [[ ${lines[-1]} == "equal: "* ]]
}

@test "a batch norm is one kernel with its ReLU, and with the addition between them, where the framework has it so" {
  cat >"$BATS_TEST_TMPDIR/net.json" <<'END'
{"model_type": "cnn", "name": "tiny-resnet", "image": [3, 16, 16], "norm": "batch",
 "blocks": ["conv 4 3x3/2, max 3/2", "[conv 4 1x1, conv 4 3x3, conv 8 1x1]*2", "[conv 4 1x1, conv 4 3x3/2, conv 16 1x1]",
            "(conv 2 1x1 | average 3, conv 3 1x1)", "mean, linear 8"]}
END
  sed 's/"kernels": {/"kernels": {"fused_batch_norm": true,/' workloads/frameworks/torch-ddp.json >"$BATS_TEST_TMPDIR/fused.json"
  job="--model $BATS_TEST_TMPDIR/net.json --gbs 8 --strategy pp=1,dp=2,tmp=1,mbs=2"
  for recompute in none full; do
    run -0 "$PACELINE" verify $job,recompute=$recompute --framework "$BATS_TEST_TMPDIR/fused.json"
    [[ $output == *$'\nequal: '* ]]
  done
  kernels() { "$PACELINE" program print $job --level kernels --framework "$@"; }
  kernels "$BATS_TEST_TMPDIR/fused.json" -o "$BATS_TEST_TMPDIR/net.plir"
  run -0 "$PACELINE" program check "$BATS_TEST_TMPDIR/net.plir"
  # 12 norms with a ReLU, 3 of them behind an addition; the two of shortcuts with a convolution stand by themselves
  [ "$(grep -c '= signs(' "$BATS_TEST_TMPDIR/net.plir")" = 12 ]
  [ "$(grep -c '= relu_backward(%.*signs' "$BATS_TEST_TMPDIR/net.plir")" = 12 ]
  [ "$(grep -c '^  keep "relu[.0-9]*"' "$BATS_TEST_TMPDIR/net.plir")" = 7 ] # the others are read by nobody else
  [ "$(kernels torch-ddp | grep -c 'signs')" = 0 ]
  # of tuples' programs too, a bit an element
  run -0 "$PACELINE" simulate --platform dgx-1v:1 --model "$BATS_TEST_TMPDIR/net.json" --gbs 16 --strategy pp=1,dp=8,tmp=1,mbs=2 --framework "$BATS_TEST_TMPDIR/fused.json" --print-program
  [[ $output == *":bit["* && $output != *":u8["* ]]
  [ "$(kernels "$BATS_TEST_TMPDIR/fused.json" --dtype fp32 | grep -c 'signs')" = 0 ]
  job="--platform dgx-1v --model resnet-50 --gbs 256 --strategy pp=1,dp=8,tmp=1,mbs=32 --dtype fp16 --json"
  time_of() { "$PACELINE" simulate $job "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["iter_time_s"])'; }
  python3 -c 'import sys; a, b, apart = map(float, sys.argv[1:]); sys.exit(abs(a / b - 1) > 0.002 or not a < 0.9 * apart)' \
    "$(time_of --framework "$BATS_TEST_TMPDIR/fused.json")" "$(time_of --framework "$BATS_TEST_TMPDIR/fused.json" --as-program)" \
    "$(time_of --framework torch-ddp)"
}

@test "the optimizer is the framework's, and so is attention" {
  job="--model tiny-gpt2 --gbs 8 --seq 8 --strategy pp=1,dp=2,tmp=1,mbs=2 --framework distir"
  run -0 "$PACELINE" program print $job -o "$BATS_TEST_TMPDIR/sgd.plir"
  grep -q '= sgd(' "$BATS_TEST_TMPDIR/sgd.plir"
  run ! grep -q 'adam(\|state "' "$BATS_TEST_TMPDIR/sgd.plir"
  grep -q '= mask(.*{causal=1}' "$BATS_TEST_TMPDIR/sgd.plir"
  run ! grep -q '= attention(' "$BATS_TEST_TMPDIR/sgd.plir"
  run -0 "$PACELINE" verify $job
  [[ $output == *"equal: "* ]]
  run -0 "$PACELINE" simulate --program "$BATS_TEST_TMPDIR/sgd.plir" --platform hc1 --framework distir
  [[ $output != *"attention        one fused"* ]]
  "$PACELINE" program print ${job/--framework distir/} -o "$BATS_TEST_TMPDIR/fused.plir"
  run -0 "$PACELINE" simulate --program "$BATS_TEST_TMPDIR/fused.plir" --platform hc1 --framework distir
  [[ $output == *"attention        one fused kernel, as the program says, which framework distir's is not"* ]]
  run -0 "$PACELINE" simulate --program "$BATS_TEST_TMPDIR/fused.plir" --platform hc1
  [[ $output != *"attention        one fused"* ]]
}

@test "bad input: one message, exit status 2, nothing on standard output" {
  for arguments in "" "check" "print" "chekc $example" "check $example $example" "check nosuch.plir" "check --bogus $example" \
    "check . " "check $example -o x" "check README.md"; do
    run -2 --separate-stderr "$PACELINE" program $arguments
    [ -z "$output" ]
    [[ $stderr == "paceline program: "* ]]
  done
  [ ! -e x ]
  run -2 --separate-stderr "$PACELINE" program chekc "$example"
  [[ $stderr == *"'chekc' is not an action; there are: check, print, torch; did you mean 'check'?" ]]
}
