# `paceline simulate --beside JOB.yaml`: jobs beside each other on one fabric.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  other=$BATS_TEST_TMPDIR/other.yaml
  job=(--platform amp-p3-4 --model gpt2-345m --gbs 16 --seq 1024)
  half=pp=1,dp=8,tmp=1,mbs=1,placement=0-1:4-5:8-9:12-13
}

# write DEVICES [LINE...]
write() {
  printf '%s\n' 'model: gpt2-345m' 'gbs: 16' 'seq: 1024' "$@" >"$other"
}

json() { "$PACELINE" simulate "${job[@]}" "$@" --json; }

@test "two equal jobs on shared NICs are equally slow, and slower than alone" {
  write 'strategy: pp=1,dp=8,tmp=1,mbs=1'
  run -0 "$PACELINE" simulate "${job[@]}" --strategy "$half" --beside "$other"
  [[ $output == *"jobs beside each other"*"gpt2-345m"*"other.yaml"* ]]
  json --strategy "$half" --beside "$other" | jq -e '.beside.jobs | length == 2 and .[0].beside_s == .[1].beside_s
    and all(.beside_s > 1.2 * .alone_s)'
}

@test "jobs that share no link, and all on the analytic network, take what they take alone, to the bit" {
  write 'strategy: pp=2,dp=2,tmp=2,mbs=1' 'devices: [n2, n3]' 'iterations: 2' 'offset: 3ms'
  json --strategy pp=1,dp=8,tmp=1,mbs=1 --beside "$other" | jq -e '. as $all | .beside.jobs
    | .[0].beside_s == $all.iter_time_s and .[0].alone_s == $all.iter_time_s and .[1].beside_s == .[1].alone_s and .[1].n_iterations == 2'
  write 'strategy: pp=1,dp=8,tmp=1,mbs=1'
  json --strategy "$half" --beside "$other" --network analytic | jq -e '.beside.jobs | all(.beside_s == .alone_s)'
}

@test "an offset behind the end of the first job disturbs nobody" {
  write 'strategy: pp=1,dp=8,tmp=1,mbs=1' 'offset: 100s'
  json --strategy "$half" --beside "$other" | jq -e '.beside | .jobs[0].beside_s == .jobs[0].alone_s and .jobs[1].beside_s == .jobs[1].alone_s
    and .jobs[1].begin_s == 100 and .makespan_s == .jobs[1].end_s'
}

@test "--trace: jobs and devices are processes; chunked, ready and SimGrid's network play neighbours too" {
  write 'name: noise' 'strategy: pp=1,dp=2,tmp=1,mbs=8' 'devices: [n0g1, n1g1]'
  run -0 "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=2,tmp=1,mbs=8,placement=0:4 --beside "$other" --trace "$BATS_TEST_TMPDIR/t.json"
  names=$(jq -c '[.traceEvents[] | select(.name == "process_name") | .args.name]' "$BATS_TEST_TMPDIR/t.json")
  [ "$names" = '["gpt2-345m: n0g0","gpt2-345m: n1g0","noise: n0g1","noise: n1g1"]' ]
  for way in "--collectives chunked" "--streams ready" "--network simgrid"; do
    # shellcheck disable=SC2086
    json --strategy pp=1,dp=2,tmp=1,mbs=8,placement=0:4 --beside "$other" $way | jq -e '.beside.jobs | all(.beside_s > .alone_s)'
  done
}

@test "bad input: file, line and column" {
  refuses() {
    run -2 "$PACELINE" simulate "${job[@]}" --strategy "$half" --beside "$other"
    [ "${#lines[@]}" = 1 ] && [[ $output == *"$1"* ]]
  }
  write 'strategy: pp=1,dp=4,tmp=1,mbs=1' 'devices: [n0g2, n0g3, n1g0, n1g2]'
  refuses "other.yaml:5:23: device 'n1g0' belongs to the job of the command line already"
  write 'strategy: pp=1,dp=4,tmp=1,mbs=1' 'devices: n0g2'
  refuses "other.yaml:5:10: the strategy needs 4 devices, and 'devices' names 1"
  write 'strategy: pp=1,dp=16,tmp=1,mbs=1'
  refuses "the strategy needs 16 devices, and free are 8"
  write 'strategy: pp=1,dp=4,tmp=1,mbs=1' 'devices: n9'
  refuses "other.yaml:5:10: no device and no node of amp-p3-4 is 'n9'"
  write 'strategy: pp=1,dp=4,tmp=1,mbs=1' 'device: n0'
  refuses "other.yaml:5:1: 'device' is no key of a job"
  write 'strategy: pp=1,dp=4,tmp=3,mbs=1'
  refuses "the strategy needs 12 devices"
  write 'strategy: pp=1,dp=4,tmp=1,mbs=3'
  refuses "--beside $other"
  write 'strategy: pp=1,dp=4,tmp=1,mbs=1' 'offset: soon'
  refuses "other.yaml:5:9: offset"
  write 'strategy: pp=1,dp=4,tmp=1,mbs=1'
  run -2 "$PACELINE" simulate "${job[@]}" --strategy "$half" --beside "$other" --slow n0g0=2
  [[ $output == *"--beside: leave out"* ]]
  run -2 "$PACELINE" simulate "${job[@]}" --strategy "$half" --beside "$BATS_TEST_TMPDIR/none.yaml"
  [ "${#lines[@]}" = 1 ]
}

@test "a neighbour may be a strategy tree, and contends as the tuple that says the same" {
  printf 'partition: {b: 8}\n' >"$BATS_TEST_TMPDIR/d.yaml"
  for strategy in "$BATS_TEST_TMPDIR/d.yaml" pp=1,dp=8,tmp=1,mbs=2; do
    write "strategy: $strategy"
    json --strategy "$half" --beside "$other" >"$BATS_TEST_TMPDIR/$((++n)).json"
  done
  jq -e -s '[.[].beside.jobs[1]] as [$tree, $tuple] | $tree.n_devices == 8 and ($tree.strategy | endswith("d.yaml"))
    and $tree.beside_s > 1.1 * $tree.alone_s
    and ($tree.beside_s / $tree.alone_s) / ($tuple.beside_s / $tuple.alone_s) > 0.9
    and ($tree.beside_s / $tree.alone_s) / ($tuple.beside_s / $tuple.alone_s) < 1.1' "$BATS_TEST_TMPDIR"/[12].json
  printf 'partition: {b: 9}\n' >"$BATS_TEST_TMPDIR/d.yaml"
  write "strategy: $BATS_TEST_TMPDIR/d.yaml"
  run -2 "$PACELINE" simulate "${job[@]}" --strategy "$half" --beside "$other"
  [[ $output == *"--beside $other: $BATS_TEST_TMPDIR/d.yaml:1:"*"do not divide b = 16"* ]]
}

@test "the job of the command line may be a strategy tree, and loses what the tuple that says the same loses" {
  printf 'partition: {b: 6}\n' >"$BATS_TEST_TMPDIR/d.yaml"
  write 'strategy: pp=1,dp=6,tmp=1,mbs=1'
  sed -i 's/gbs: 16/gbs: 12/' "$other"
  job=(--platform amp-p3-4 --model gpt2-345m --gbs 12 --seq 1024)
  run -0 "$PACELINE" simulate "${job[@]}" --strategy "$BATS_TEST_TMPDIR/d.yaml" --beside "$other" --trace "$BATS_TEST_TMPDIR/t.json"
  [[ $output == *"memory at the peak"*"jobs beside each other"*"gpt2-345m "*"other.yaml "* ]]
  jq -e '[.traceEvents[] | select(.name == "process_name") | .args.name] | .[0] == "gpt2-345m: n0g0" and .[11] == "other.yaml: n2g3"' "$BATS_TEST_TMPDIR/t.json"
  for strategy in "$BATS_TEST_TMPDIR/d.yaml" pp=1,dp=6,tmp=1,mbs=2,idle=1; do
    json --strategy "$strategy" --beside "$other" >"$BATS_TEST_TMPDIR/$((++n)).json"
  done
  jq -e -s '. as $all | [.[].beside.jobs[0]] as [$tree, $tuple] | $tree.alone_s == $all[0].iter_time_s and $tree.beside_s > 1.1 * $tree.alone_s
    and ($tree.beside_s / $tree.alone_s) / ($tuple.beside_s / $tuple.alone_s) > 0.98
    and ($tree.beside_s / $tree.alone_s) / ($tuple.beside_s / $tuple.alone_s) < 1.02' "$BATS_TEST_TMPDIR"/[12].json
  write 'strategy: pp=1,dp=12,tmp=1,mbs=1'
  run -2 "$PACELINE" simulate "${job[@]}" --strategy "$BATS_TEST_TMPDIR/d.yaml" --beside "$other"
  [[ $output == *"other.yaml:4:11: the strategy needs 12 devices, and free are 10"* ]]
  run -2 "$PACELINE" simulate "${job[@]}" --strategy "$BATS_TEST_TMPDIR/d.yaml" --beside "$other" --jitter 1,0.1
  [[ $output == *"--beside: leave out"* ]]
}
