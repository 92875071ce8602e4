#!/usr/bin/env bats
# Strategy trees on the command line: what is shown, and what is said of trees that are wrong: one line, with the place, what would do,
# and the line with a caret.

setup() {
  tree=$BATS_TEST_TMPDIR/t.yaml
}

# refused TEXT...: the tree on standard input is refused on tiny-gpt2 with status 2, and every TEXT is said.
refused() {
  cat >"$tree"
  run "$PACELINE" strategy check "$tree" --model tiny-gpt2 --seq 16 --gbs 8
  echo "$output"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "paceline strategy: $tree:"[0-9]*:[0-9]*": "* ]]
  [[ ${lines[1]} == *" | "* && ${lines[2]} == *" | "*"^" && ${#lines[@]} -eq 3 ]]
  for text; do
    [[ ${lines[0]} == *"$text"* ]] || { echo "not said: $text"; return 1; }
  done
}

@test "a shipped tree is shown with stages, leaves, origins and collectives" {
  run "$PACELINE" strategy show --model tiny-gpt2 --seq 16 --strategy workloads/strategies/gpt-degrees-by-layer.yaml
  [ "$status" -eq 0 ]
  [[ $output == *"mesh      dp=2, dp.2=2, tp=2"* ]]
  [[ $output == *"stage 0   devices 0-7: embedding ... loss"* ]]
  [[ $output == *"gpt-degrees-by-layer.yaml:5:"* ]]
  [[ $output == *"mlp.up "*"explicit"* && $output == *"active "*"inferred from %mlp.up"* ]]
  [[ $output == *"+ all_reduce over tp of %attention.out, "*"read by %attention.out.2"* ]]
  [[ $output == *"@layer_2: h.1"* && $output == *"@layer_2.backward: h.1"* ]]
}

@test "every shipped tree is in order" {
  for file in workloads/strategies/*.yaml; do
    "$PACELINE" strategy check "$file"
    [ "$(grep -vc '^ *#' "$file")" -lt 20 ]
  done
}

@test "every shipped tree is shown with a batch that it divides, by its name with the ending or without" {
  for file in workloads/strategies/*.yaml; do
    model=tiny-gpt2 name=$(basename "$file" .yaml)
    case $name in
      deepseek*) model=tiny-deepseek ;; dlrm*) model=tiny-dlrm ;; llama*) model=tiny-llama ;;
      mixtral*) model=tiny-mixtral ;; vgg*) model=tiny-vgg ;;
    esac
    "$PACELINE" strategy show --model "$model" --strategy "$name" >"$tree"
    grep -q "^strategy *$name\$" "$tree"
    grep -q "assumed; --gbs says it" "$tree"
  done
  diff <("$PACELINE" simulate --platform dgx-a100 --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-dualpipe --json | sed 's/gpt-dualpipe.yaml/gpt-dualpipe/') \
    <("$PACELINE" simulate --platform dgx-a100 --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-dualpipe.yaml --json | sed 's/gpt-dualpipe.yaml/gpt-dualpipe/')
  run "$PACELINE" simulate --platform dgx-a100 --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-dualpip
  [ "$status" -eq 2 ]
  [[ $output == *"'gpt-dualpip' is not key=value"*"nor a strategy tree ('paceline list strategies' lists"* ]]
}

@test "check without a model says what it did not look at, and looks at the batch" {
  printf 'schedule: {microbatches: 3}\npartition: {b: 2}\n' >"$tree"
  run "$PACELINE" strategy check "$tree"
  [ "$status" -eq 0 ] && [[ $output == *": a strategy tree in order: 1 node (whether a model's ops fit it: add --model)" ]]
  run "$PACELINE" strategy check "$tree" --gbs 8
  [ "$status" -eq 2 ] && [[ ${lines[0]} == *"t.yaml:1:26: 3 microbatches do not divide a batch of 8; 2 and 4 do" ]]
  run "$PACELINE" strategy check "$tree" --gbs 9
  [ "$status" -eq 0 ]
  run "$PACELINE" strategy check "$tree" --platform dgx-a100
  [ "$status" -eq 2 ] && [[ ${lines[0]} == *"--platform dgx-a100: a tree lies there as a model has it; add --model" ]]
}

@test "check says what a tuple is, and where an empty file is empty" {
  run "$PACELINE" strategy check pp=2,dp=4
  [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ]
  [[ $output == "paceline strategy: 'pp=2,dp=4' is a tuple, and check reads a file (.yaml); 'paceline strategy show --model M --gbs N --strategy pp=2,dp=4' prints the tree that it fills" ]]
  run "$PACELINE" strategy show --model tiny-gpt2 --seq 16 --gbs 8 --strategy pp=2,dp=4
  [ "$status" -eq 0 ] && [[ $output == *"stage 1 "* ]]
  run "$PACELINE" strategy check gpt-megatron3d.yaml
  [ "$status" -eq 2 ] && [ "$output" = "paceline strategy: 'gpt-megatron3d.yaml' is neither a file nor a strategy tree that comes with Paceline; did you mean gpt-megatron-3d.yaml? 'paceline list strategies' lists all" ]
  printf '# nothing yet\n' >"$tree"
  run "$PACELINE" strategy check "$tree"
  [ "$status" -eq 2 ] && [ "${lines[0]}" = "paceline strategy: $tree:1:1: the document is empty" ]
}

@test "a file that holds a tuple, and no name at all, are said to be that" {
  for file in "$BATS_TEST_TMPDIR/tuple.txt" "$tree"; do
    echo "pp=4,dp=4,tmp=1,mbs=1" >"$file"
    run "$PACELINE" strategy check "$file"
    [ "$status" -eq 2 ]
    [ "$output" = "paceline strategy: $file:1: a tuple, and a tree is read from files (YAML); tuples are given as they are: --strategy pp=4,dp=4,tmp=1,mbs=1" ]
  done
  local job=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
  run "$PACELINE" simulate "${job[@]}" --strategy "$tree"
  [ "$status" -eq 2 ]
  [ "$output" = "paceline simulate: $tree:1: a tuple, and a tree is read from files (YAML); tuples are given as they are: --strategy pp=4,dp=4,tmp=1,mbs=1" ]
  run "$PACELINE" simulate "${job[@]}" --strategy "$BATS_TEST_TMPDIR/tuple.txt"
  [ "$status" -eq 2 ]
  [ "$output" = "paceline simulate: strategy: '$BATS_TEST_TMPDIR/tuple.txt' is a file; of files trees are read (.yaml), and a tuple is given as it is (e.g. pp=4,dp=4,tmp=1,mbs=1)" ]
  echo "pp: 4, dp=4" >"$tree" # no tuple
  run "$PACELINE" strategy check "$tree"
  [ "$status" -eq 2 ]
  [[ "$output" != *"a tuple"* ]]
  run "$PACELINE" strategy check ""
  [ "$status" -eq 2 ]
  [ "$output" = "paceline strategy: the name of a strategy tree (a file, .yaml) is empty; 'paceline list strategies' names those that are there" ]
  run "$PACELINE" strategy choose ""
  [ "$status" -eq 2 ]
  [ "$output" = "paceline strategy: the name of a strategy space (a YAML file: .yaml, .yml) is empty" ]
}

@test "on a platform conversions are the fastest there, each with its time and the next best" {
  show() { "$PACELINE" strategy show --model gpt2-345m --seq 1024 --gbs 16 --strategy gpt-context-ring.yaml "$@"; }
  run show
  [[ $output == *"layouts   by bytes on the wire; with --platform"* ]]
  [[ $output != *" us, against "* ]]
  run show --platform dgx-1v
  [ "$status" -eq 0 ]
  [[ $output == *"layouts   each conversion the fastest on this platform"* ]]
  [[ $output =~ "+ "[a-z_]+" over "[^\;]*"; "[^:]*": "[0-9.]+" "[mu]"s, against "[a-z_]+" over "[^\;]*" "[0-9.]+" "[mu]"s" ]]
}

@test "a platform that is too small is said before anything is laid out" {
  run "$PACELINE" strategy show --model tiny-gpt2 --seq 16 --strategy gpt-degrees-by-stage.yaml --platform dgx-1v
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *"gpt-degrees-by-stage.yaml:8:14: device 8 is missing: the platform has 8, 0 to 7"* ]]
}

@test "a tuple is shown as the tree that it fills" {
  run "$PACELINE" strategy show --model tiny-gpt2 --seq 16 --gbs 8 --strategy pp=2,dp=2,tmp=2,mbs=1
  [ "$status" -eq 0 ]
  [[ $output == *"mesh      pp=2, dp=2, tp=2"* && $output == *"stage 1   devices 4-7: h.2 ... loss"* ]]
  [[ $output == *"layouts   as frameworks have them"* ]]
}

@test "unknown keys, patterns, dimensions, axes and ops have near misses" {
  refused "'partitoin' is no key" "did you mean 'partition'" <<<'partitoin: {b: 2}'
  refused "'hh.1' matches nothing" "embedding" <<<$'partition: {b: 2}\nchildren:\n  - {match: hh.1, partition: {b: 4}}'
  refused "'h.*.mpl' matches nothing" "there are h.*.norm1, " "did you mean 'h.*.mlp'" <<<$'partition: {b: 2}\nchildren:\n  - {match: h.*.mpl, partition: {b: 4}}'
  refused "'h.0.mlp.uq' matches nothing" "did you mean 'h.0.mlp.up'" <<<$'partition: {b: 2}\nchildren:\n  - {match: h.0.mlp.uq, partition: {b: 4}}'
  refused "no dimension 'ff'" "there are" <<<'partition: {ff: 2}'
  refused "'dat' is no axis" "did you mean 'data'" <<<$'mesh: {data: 2, tp: 2}\npartition: {b: dat}'
  refused "axis dp stands twice in this list" <<<$'mesh: {dp: 2}\npartition: {b: [dp, dp]}'
  refused "devices '0-99999999' is neither a number below 16777216 nor a rising range" <<<$'children:\n  - {match: h.*, devices: 0-99999999}'
  refused "no op of 'h.*' is convolution; they are " "product" "attention" <<<$'partition: {b: 2}\nchildren:\n  - {match: h.*, ops: convolution, partition: {b: 4}}'
  refused "'prodct' is not an op" "did you mean 'product'" <<<$'partition: {b: 2}\nchildren:\n  - {match: h.*, ops: prodct, partition: {b: 4}}'
  refused "'bb' is no dimension that the partition cuts" <<<$'partition: {b: 2}\nmemory: {states: bb}'
}

@test "a space of trees is no tree, and said to be one, at its first choice" {
  refused "$tree:1:16: a choice: 'paceline sweep' and 'search' take such a file by --strategy-space" "strategy choose" <<<$'partition: {b: {choose: [1, 2]}}'
  refused "$tree:2:26: a choice" <<<$'partition: {b: 2}\nschedule: {microbatches: {choose: [1, 2]}}'
}

@test "degrees that do not divide, and devices that are not there" {
  refused "3 parts do not divide f = 128 of h.0.mlp.up" "1, 2, 4, 8" <<<$'partition: {}\nchildren:\n  - {match: h.*.mlp, partition: {f: 3}}\ndevices: 0-5'
  refused "16 parts do not divide b = 8" <<<'partition: {b: 16}'
  refused "a stage has 4 devices: they cannot be cut into 8" <<<$'devices: 0-3\npartition: {b: 8}'
  refused "is on stage 1, which has 2 devices: they cannot be cut into 4" <<<$'partition: {b: 4}\nchildren:\n  - {match: [embedding, h.0-1], devices: 0-3}\n  - {match: [h.2-3, loss], devices: 4-5}'
  printf 'devices: 0-15\npartition: {b: 16}\n' >"$tree"
  run "$PACELINE" simulate --platform hc1 --model gpt2-117m --gbs 32 --seq 64 --strategy "$tree"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *":1:10: device 8 is missing: the platform has 8, 0 to 7" ]]
}

@test "what may lie in the memory of the host, and platforms that have none" {
  refused "parameters stay on the devices: host is for states" <<<$'partition: {b: 2}\nmemory: {parameters: host}'
  sed 's/<prop id="cpu"/<prop id="other"/' platforms/dgx-1v.xml >"$BATS_TEST_TMPDIR/p.xml"
  cp -r platforms/devices "$BATS_TEST_TMPDIR/"
  run "$PACELINE" simulate --platform "$BATS_TEST_TMPDIR/p.xml" --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-offload-optimizer.yaml
  echo "$output"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *"p.xml: GPU 'n0g0' "*"has no way to the memory of its host; add a CPU socket"* ]]
  run "$PACELINE" simulate --platform dgx-1v --model tiny-gpt2 --gbs 16 --seq 16 --strategy gpt-offload-optimizer.yaml
  [ "$status" -eq 0 ]
  [[ $output == *"offloading       "*" a device and iteration"* && $output == *"host's update    257 ms"* ]]
}

@test "conflicts name both places" {
  refused "t.yaml:3:31" "of h.1 is said here and otherwise at" <<<$'partition: {b: 2}\nchildren:\n  - {match: h.0-1, partition: {b: 4}}\n  - {match: h.1-2, partition: {b: 8}}'
  refused "first 3 here and into the first 2 at" "no axes say both" <<<$'partition: {b: 2, f: 3}\nchildren:\n  - {match: h.1, partition: {g: 3, b: 2}}'
  refused "embedding.table is read by head" "by embedding, partitioned at" <<<$'partition: {b: 2, v: 2}\nchildren:\n  - {match: head, partition: {b: 4}}'
}

@test "too few microbatches, too few layers, schedules that wait for ever" {
  refused "16 microbatches of a batch of 8" <<<$'schedule: {microbatches: 16}\npartition: {b: 1}'
  refused "3 microbatches do not divide a batch of 8; 2 and 4 do" <<<$'schedule: {microbatches: 3}\npartition: {b: 1}'
  refused "1 microbatch: interleaved needs a multiple of the 2 stages" <<<$'pipeline: {stages: 2, chunks: 2}\npartition: {b: 2}'
  refused "8 stages of 1 chunk need 8 layers; tiny-gpt2 has 4" <<<$'pipeline: {stages: 8}\npartition: {b: 1}'
  refused "would wait for the rest for ever" <<<$'pipeline: {stages: 2}\nschedule: {microbatches: 4}\npartition: {b: 1}\nchildren:\n  - {match: h.3, schedule: {max_ongoing: 4}}'
}

@test "includes: what is said beside them wins, a file that includes itself is refused" {
  printf 'schedule: {microbatches: 2}\npartition: {b: 2}\nchildren:\n  - {match: h.1, partition: {b: 4}}\n' >"$BATS_TEST_TMPDIR/base.yaml"
  printf 'include: base.yaml\npartition: {b: 1, v|g|r|f: 2}\nchildren:\n  - {match: h.1, partition: {g|r|f: 4}}\n' >"$tree"
  run "$PACELINE" strategy show "$tree" --model tiny-gpt2 --seq 16 --gbs 8
  [ "$status" -eq 0 ]
  [[ $output == *"2 microbatches"* && $output == *"t.yaml:4:29"* && $output != *"base.yaml:4"* ]]
  printf 'include: t.yaml\n' >"$BATS_TEST_TMPDIR/other.yaml"
  printf 'include: other.yaml\n' >"$tree"
  run "$PACELINE" strategy check "$tree"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *"other.yaml:1:10: "*"t.yaml includes itself, by way of "* && ${lines[2]} == *"^" ]]
  printf '\ninclude: [nowhere.yaml]\n' >"$tree"
  run "$PACELINE" strategy check "$tree"
  [ "$status" -eq 2 ] && [[ ${lines[0]} == *"t.yaml:2:11: include: "*"nowhere.yaml: cannot open: "* && ${lines[2]} == *"^" ]]
}

@test "head and loss in four pieces: of 4 sequences of logits in fp32 three quarters are not held, and no time is gained" {
  job="--platform dgx-a100 --model gpt2-345m --gbs 16 --seq 1024 --json"
  sed 's/microbatches: 4, recompute/recompute/' workloads/strategies/gpt-loss-in-pieces.yaml >"$tree"
  "$PACELINE" simulate $job --strategy "$tree" >"$BATS_TEST_TMPDIR/whole.json"
  "$PACELINE" simulate $job --strategy gpt-loss-in-pieces.yaml >"$BATS_TEST_TMPDIR/pieces.json"
  run jq -n --slurpfile a "$BATS_TEST_TMPDIR/whole.json" --slurpfile b "$BATS_TEST_TMPDIR/pieces.json" \
    '[($a[0].peak_mem_bytes - $b[0].peak_mem_bytes) / (0.75 * 4 * 1024 * 50257 * 4), $b[0].iter_time_s / $a[0].iter_time_s]
     | .[0] >= 1 and .[0] < 1.01 and .[1] >= 1 and .[1] < 1.02'
  echo "$output"
  [ "$output" = true ]
  run "$PACELINE" strategy show --model tiny-gpt2 --seq 16 --gbs 16 --strategy gpt-microbatches-by-layer.yaml
  [[ $output == *"@layer_2: h.1, h.2; recompute full; 4 times a microbatch, each on one part of its samples"* ]]
}

@test "what runs where nobody said, and ranges beyond the last layer, are said" {
  cat >"$tree" <<<$'partition: {b: 2}\nchildren:\n  - {match: h.0-1, devices: 0-1}\n  - {match: h.2-20, devices: 2-3}'
  run "$PACELINE" strategy check "$tree" --model tiny-gpt2 --seq 16 --gbs 8
  [ "$status" -eq 0 ]
  [[ ${lines[1]} == "pattern   'h.2-20' ($tree:4:13) reaches beyond h.3, the last that there is" ]]
  [[ ${lines[2]} == "placed    embedding on devices 0-1, as what it is joined to; no node gives it any" ]]
  [[ ${lines[3]} == "placed    final_norm ... loss on devices 2-3, as what they are joined to; no node gives them any" ]]
  run "$PACELINE" strategy check gpt-max-ongoing.yaml --model tiny-gpt2 --seq 16 --gbs 8
  [ "${#lines[@]}" -eq 1 ]
}

@test "modules of multi-token prediction on another stage than the head are refused, and tuples say that they leave them out" {
  cat >"$tree" <<<$'partition: {b: 2}\nchildren:\n  - {match: [embedding, h.*, final_norm, head, loss], devices: 0-1}\n  - {match: [mtp.*, mtp*], devices: 2-3}'
  run "$PACELINE" verify --model tiny-deepseek --seq 8 --gbs 8 --strategy "$tree"
  [ "$status" -eq 2 ]
  [[ $output == *"mtp0_head, on stage 1, reads head.weight of head, on stage 0: put both on one stage"* ]]
  run "$PACELINE" simulate --platform dgx-1v --model tiny-deepseek --seq 8 --gbs 16 --strategy pp=1,dp=8,tmp=1,mbs=1
  [[ $output == *"multi-token"*"2 modules of 13240 parameters; programs and strategy trees have them, tuples leave them out"* ]] || { echo "$output"; false; }
}

@test "devices that no node gives anything stay idle, are said, and change nothing but where ops run" {
  local job=(--model tiny-gpt2 --seq 16 --gbs 8)
  stages() { # FIRST SECOND: a tree with two stages on these devices
    printf 'mesh: {dp: 2, tp: 2}\nschedule: {microbatches: 2, kind: 1f1b}\npartition: {b: dp, v|g|r|f: tp}\nchildren:\n'
    printf '  - {match: embedding, devices: %s}\n  - {match: h.0-1, devices: %s}\n  - {match: h.2-3, devices: %s}\n' "$1" "$1" "$2"
  }
  stages 0-3 4-7 >"$tree"
  "$PACELINE" simulate --platform dgx-a100:2 "${job[@]}" --strategy "$tree" --json | jq -S 'del(.strategy)' >"$BATS_TEST_TMPDIR/dense"
  stages 8-11 12-15 >"$tree" # the other machine, whole
  run "$PACELINE" simulate --platform dgx-a100:2 "${job[@]}" --strategy "$tree"
  [[ $output == *"idle      devices 0-7: 8 of the devices 0 to 15, which no node gives anything"* ]]
  for key in iter_time_s peak_mem_bytes n_tasks; do
    "$PACELINE" simulate --platform dgx-a100:2 "${job[@]}" --strategy "$tree" --json | jq ".$key" | cmp - <(jq ".$key" "$BATS_TEST_TMPDIR/dense")
  done
  stages "[1, 0, 3-4]" "[9, 12-14]" >"$tree" # of both
  run "$PACELINE" strategy show "${job[@]}" --strategy "$tree"
  [[ $output == *"idle      devices 2, 5-8, 10-11: 7 of the devices 0 to 14, "* ]]
  "$PACELINE" verify "${job[@]}" --strategy "$tree"
  "$PACELINE" program print --platform dgx-a100:2 "${job[@]}" --strategy "$tree" -o "$BATS_TEST_TMPDIR/p.plir"
  "$PACELINE" simulate --program "$BATS_TEST_TMPDIR/p.plir" --platform dgx-a100:2
  run "$PACELINE" simulate --platform dgx-a100:1 "${job[@]}" --strategy "$tree"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *"t.yaml:7:"*": device 9 is missing: the platform has 8, 0 to 7" ]]
  stages "[0, 1, 2, 3]" "[3, 9-11]" | refused "devices 3, 9-11 and 0, 1, 2, 3 (" "share some: stages are on the same devices or on others"
}
