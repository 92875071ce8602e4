#!/usr/bin/env bats
# ONNX files on the command line: what reads them, and how files that are wrong are refused.

setup_file() {
  export FILES="$BATS_FILE_TMPDIR"
  /usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null || skip "python3 has no onnx (Debian: python3-onnx)"
  /usr/bin/python3 tests/support/onnx_files.py "$FILES"
}

# refused FILE PATTERN: one line, exit status 2.
refused() {
  run "$PACELINE" program print --model "$FILES/$1.onnx" --gbs 4 --level model
  [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] && [[ $output == *"$1.onnx"*$2* ]] || { echo "$1: $status: $output"; return 1; }
}

@test "good files print, check, verify, show and simulate" {
  "$PACELINE" program print --model "$FILES/good.onnx" --gbs 4 --level training -o "$BATS_TEST_TMPDIR/p.plir"
  "$PACELINE" program check "$BATS_TEST_TMPDIR/p.plir"
  run "$PACELINE" verify --model "$FILES/good.onnx" --gbs 4 --strategy pp=2,dp=2,tmp=1,mbs=1 --weights
  [ "$status" -eq 0 ] && [[ $output == *equal* ]]
  run "$PACELINE" model show "$FILES/good.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"parameters 48"* && $output == *"cross entropy over the last dimension of 'y', assumed"* ]]
  run "$PACELINE" simulate --platform dgx-1v --model "$FILES/good.onnx" --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8 --json
  [ "$status" -eq 0 ] && [ "$(jq -r .n_devices <<<"$output")" -eq 8 ] && [ "$(jq .iter_time_s <<<"$output")" != 0 ]
}

@test "inference is the forward pass alone" {
  both=$("$PACELINE" simulate --platform dgx-1v --model "$FILES/good.onnx" --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8 --json)
  forward=$("$PACELINE" simulate --platform dgx-1v --model "$FILES/good.onnx" --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8 --json --inference)
  [ "$(jq .backward_s <<<"$forward")" = 0 ] && [ "$(jq .n_collectives <<<"$forward")" = 0 ]
  [ "$(jq -n "$(jq .forward_s <<<"$forward") >= $(jq .forward_s <<<"$both")")" = true ] # nothing is fused
  kernels=$("$PACELINE" simulate --platform dgx-1v --model "$FILES/good.onnx" --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8 --json --inference --framework ideal)
  [ "$(jq .forward_s <<<"$kernels")" = "$(jq .forward_s <<<"$both")" ] # as training launches it
  [ "$(jq .n_kernels <<<"$forward")" -gt "$(jq .n_kernels <<<"$kernels")" ] # op by op
}

@test "a file that is broken, or of another version" {
  refused cut "broken or cut off"
  refused text "not an ONNX"
  refused empty "no ONNX model"
  refused opset "operator set 99"
  refused ir "IR version 99"
  run "$PACELINE" model show "$FILES/none.onnx"
  [ "$status" -eq 2 ] && [[ $output == *"cannot open"* ]]
}

@test "an op that is not known is named, with its node and how many are understood" {
  refused unknown "node 'my/det': op Det is not known; 4 of the 5 nodes are understood"
  refused domain "com.example.Foo is not known; 3 of the 4"
  refused unused_unknown "NonZero is not known"
}

@test "a graph that makes no sense" {
  refused cycle "a cycle"
  refused nowhere "reads 'nowhere', which is no input"
  refused shapes "matrices that do not fit"
}

@test "one sample that the file says is any number of them, which is said" {
  run "$PACELINE" model show "$FILES/one.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"inputs     any number of samples; the file says 1, taken for any number, assumed"* ]]
  job=(--platform dgx-1v --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8)
  run "$PACELINE" simulate "${job[@]}" --model "$FILES/one.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"samples          any number of them, assumed: the file was exported for 1"* ]]
  one=$("$PACELINE" simulate "${job[@]}" --model "$FILES/one.onnx" --json | jq -c '[.iter_time_s, .peak_mem_bytes, .n_kernels]')
  [ "$one" = "$("$PACELINE" simulate "${job[@]}" --model "$FILES/good.onnx" --json | jq -c '[.iter_time_s, .peak_mem_bytes, .n_kernels]')" ]
  run "$PACELINE" search --platform dgx-1v --gbs 8 --mbs 1 --model "$FILES/one.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"any number of them, assumed"* ]]
  run "$PACELINE" simulate "${job[@]}" --model "$FILES/good.onnx"
  [[ $output != *"exported for"* ]]
}

@test "shapes that stay open, or are of one size" {
  refused open "has 1 tokens, and"  || refused open "(width)"
  refused fixed "has 3 samples, and the job has 4"
  refused stuck "node 'squeeze'"*"exported for one sample, and the job has 4"*dynamic_axes
  "$PACELINE" program print --model "$FILES/stuck.onnx" --gbs 1 --level model -o "$BATS_TEST_TMPDIR/stuck.plir"
}

@test "a length that the file does not take is told of first, whatever the strategy" {
  /usr/bin/python3 - "$FILES" <<'PYTHON'
import sys
import onnx
from onnx import TensorProto, helper
made = helper.make_graph([helper.make_node("Gather", ["table", "ids"], ["h"], "look"), helper.make_node("MatMul", ["h", "w"], ["y"], "out")], "g",
                         [helper.make_tensor_value_info("ids", TensorProto.INT64, [3, 10])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 10, 5])],
                         [helper.make_tensor("table", TensorProto.FLOAT, [7, 4], [0.5] * 28), helper.make_tensor("w", TensorProto.FLOAT, [4, 5], [0.1] * 20)])
onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), sys.argv[1] + "/words.onnx")
PYTHON
  for command in "simulate --platform dgx-1v --strategy pp=1,dp=8,tmp=1,mbs=1" "search --platform dgx-1v" "program print" "verify --strategy pp=1,dp=2,tmp=1,mbs=1"; do
    # shellcheck disable=SC2086
    run "$PACELINE" $command --model "$FILES/words.onnx" --gbs 24 --seq 20
    [ "$status" -eq 2 ] && [[ ${lines[-1]} == "paceline ${command%% *}: --seq 20: $FILES/words.onnx was exported for 10 tokens only; leave --seq out, or export it with dynamic_axes" ]] || { echo "$command: $output"; return 1; }
    # shellcheck disable=SC2086
    run "$PACELINE" $command --model "$FILES/good.onnx" --gbs 24 --seq 20
    [ "$status" -eq 2 ] && [[ ${lines[-1]} == "paceline ${command%% *}: --seq 20: the inputs of $FILES/good.onnx have no tokens; leave --seq out" ]] || { echo "$command: $output"; return 1; }
  done
  "$PACELINE" simulate --platform dgx-1v --strategy pp=1,dp=1,tmp=1,mbs=3,idle=1 --model "$FILES/words.onnx" --gbs 24 --seq 10 >/dev/null
}

@test "softmax as operator sets before 13 have it, over one axis of several" {
  "$PACELINE" verify --model "$FILES/points.onnx" --gbs 4 --strategy pp=1,dp=2,tmp=1,mbs=1
}

@test "a decoder's cache of keys and values is empty, which is said" {
  run "$PACELINE" model show "$FILES/past.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"cache      of keys and values: empty; attention_mask hides nothing, position_ids count from 0, assumed"* ]]
  run "$PACELINE" simulate --platform dgx-1v --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8 --model "$FILES/past.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"cache            of keys and values: empty"* ]]
  "$PACELINE" verify --model "$FILES/past.onnx" --gbs 4 --strategy pp=1,dp=2,tmp=1,mbs=1
}

@test "rows without a number are none, and a decoder merged of two is told how to be exported" {
  "$PACELINE" verify --model "$FILES/nan.onnx" --gbs 4 --strategy pp=1,dp=2,tmp=1,mbs=1
  refused merged "node 'branch': op If is not known; 3 of the 4 nodes are understood; a decoder that was merged"
}

@test "a constant that is added to scores is a mask only if it hides or does nothing" {
  "$PACELINE" program print --model "$FILES/causal.onnx" --gbs 4 --seq 8 --level model | grep -q ' attention(.*causal'
  run "$PACELINE" program print --model "$FILES/distance.onnx" --gbs 4 --seq 8 --level model
  [ "$status" -eq 0 ] && [[ $output == *" softmax("* && $output != *" attention("* ]]
}

@test "transposed convolutions, norms of each sample and gates: one op each, equal however they are divided" {
  run "$PACELINE" program print --model "$FILES/larger.onnx" --gbs 8 --level training
  [ "$status" -eq 0 ]
  for row in convolution_backward_data batch_norm hard_swish hard_sigmoid sigmoid hard_swish_backward hard_sigmoid_backward sigmoid_backward convolution; do
    [[ $output == *" = $row("* || $output == *" = $row "* ]] || { echo "no $row"; echo "$output"; return 1; }
  done
  [[ $output != *" exp("* && $output != *" reciprocal("* ]]
  for strategy in pp=1,dp=4,tmp=1,mbs=1 pp=1,dp=2,tmp=2,mbs=2 pp=1,dp=2,tmp=1,mbs=2,zero=3; do
    run "$PACELINE" verify --model "$FILES/larger.onnx" --gbs 8 --strategy $strategy
    [ "$status" -eq 0 ] && [[ $output == *"equal: "*"at most 1e-10"* && $output != *"batch norms"* ]] || { echo "$strategy: $output"; return 1; }
  done
  "$PACELINE" simulate --platform dgx-1v --model "$FILES/larger.onnx" --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=8 >/dev/null
  refused auto "node 'larger' (ConvTranspose): auto_pad and output_shape are not read; export it with pads and output_padding"
  refused huge "node 'larger' (ConvTranspose): pads or output_padding are out of range"
}

@test "scales and shifts of two norms of groups that a file has once, and copies, are weights of their own" {
  run "$PACELINE" model show "$FILES/grouped.onnx"
  [ "$status" -eq 0 ] && [[ $output == *"parameters 48"* ]] || { echo "$output"; return 1; } # 2 (16 + 4 + 4)
  run "$PACELINE" verify --model "$FILES/grouped.onnx" --gbs 8 --strategy pp=1,dp=2,tmp=1,mbs=2
  [ "$status" -eq 0 ] && [[ $output == *"equal: "*"at most 1e-10"* ]] || { echo "$output"; return 1; }
}

@test "pictures made larger by their nearest points, whole numbers of times; slopes that are trained" {
  for strategy in pp=1,dp=4,tmp=1,mbs=1 pp=1,dp=2,tmp=2,mbs=2; do
    run "$PACELINE" verify --model "$FILES/nearest.onnx" --gbs 8 --strategy $strategy
    [ "$status" -eq 0 ] && [[ $output == *"equal: "*"at most 1e-10"* ]] || { echo "$strategy: $output"; return 1; }
  done
  "$PACELINE" program print --model "$FILES/nearest.onnx" --gbs 4 --level model | grep -q ' softplus('
  refused between "node 'larger' (Resize): dimension 3 gets 1.5 times as large: only whole numbers of the nearest are read"
  refused rounded "node 'larger' (Resize): dimension 3 gets 3 times as large: only whole numbers of the nearest are read"
  refused halves "node 'larger' (Resize): dimension 3 gets 3 times as large: only whole numbers of the nearest are read"
  refused linear "node 'larger' (Resize): mode 'linear' is not read: only nearest is"
}

@test "rows of a weight by a list that the file has; recurrent layers are refused with what to do" {
  "$PACELINE" program print --model "$FILES/list.onnx" --gbs 8 --level model | grep -q 'input "list.0"'
  for strategy in pp=1,dp=4,tmp=1,mbs=1 pp=1,dp=2,tmp=2,mbs=2; do
    run "$PACELINE" verify --model "$FILES/list.onnx" --gbs 8 --strategy $strategy
    [ "$status" -eq 0 ] && [[ $output == *"equal: "*"at most 1e-10"* ]] || { echo "$strategy: $output"; return 1; }
  done
  refused beyond "node 'rows' (Gather): picks places that are not there"
  refused recurrent "node 'cell': op LSTM is not known; 3 of the 4 nodes are understood; of recurrent layers every token waits for the one before"
}

@test "pads and bounds that cannot be are refused" {
  refused reflect "node 'pad' (Pad): mode 'reflect' is not read"
  refused crop "node 'pad' (Pad): a pad is less than nothing"
  refused odd "node 'pad' (Pad): pads are missing, follow from data, or are not two for each dimension"
}

@test "weights in other files are not read unless they are asked for" {
  for file in external lost; do
    "$PACELINE" program print --model "$FILES/$file.onnx" --gbs 4 --level model | grep -q 'param "w"'
    "$PACELINE" verify --model "$FILES/$file.onnx" --gbs 4 --strategy pp=1,dp=2,tmp=1,mbs=1
  done
  "$PACELINE" verify --model "$FILES/external.onnx" --gbs 4 --strategy pp=1,dp=2,tmp=1,mbs=1 --weights
  run "$PACELINE" verify --model "$FILES/lost.onnx" --gbs 4 --strategy pp=1,dp=2,tmp=1,mbs=1 --weights
  [ "$status" -eq 2 ] && [[ $output == *"lost.bin, which cannot be opened"* ]]
}

@test "ten million nodes are refused in bounded memory" {
  case $PACELINE in */asan/* | */tsan/*) skip "a sanitizer maps more memory than that" ;; esac
  run bash -c "ulimit -v 1500000; '$PACELINE' model show '$FILES/many.onnx'"
  [ "$status" -eq 2 ] && [[ $output == *"10000000 nodes"* ]] || { echo "$status $output"; return 1; }
  rm "$FILES/many.onnx"
}
