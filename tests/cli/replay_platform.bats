#!/usr/bin/env bats
# paceline replay --platform: recorded jobs on the network of another cluster.

bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_TMPDIR"
}

dpro() { python3 "$BATS_TEST_DIRNAME/../support/dpro.py" "$@"; }

# The same node with a third of the NVLink.
slower() { sed 's/bandwidth="300GBps"/bandwidth="100GBps"/' "$BATS_TEST_DIRNAME/../../platforms/dgx-a100.xml" >slower.xml; }

@test "--platform: a run recorded on one network takes on another what it takes when simulated there" {
  slower
  strategy=(--model gpt2-345m --gbs 8 --seq 256 --strategy pp=2,dp=2,tmp=2,mbs=1,zero=1,overlap=0 --collective-profile ideal)
  "$PACELINE" simulate --platform dgx-a100 "${strategy[@]}" --trace fast --trace-format chakra >/dev/null
  "$PACELINE" trace import fast -o fast.h5
  for platform in dgx-a100 slower.xml; do
    "$PACELINE" simulate --platform $platform "${strategy[@]}" --json | jq .iter_time_s >simulated
    "$PACELINE" replay fast.h5 --platform $platform --collective-profile ideal --json | jq .what_if_s >replayed
    jq -es '(.[0] / .[1] - 1) | fabs < 1e-6' simulated replayed || { cat simulated replayed; false; }
  done
  run -0 "$PACELINE" replay fast.h5 --platform slower.xml
  [[ $output == *"--platform slower.xml: "*" messages timed by its network; computing as recorded"* ]]
}

@test "--platform: steps behind the first, which begin while the one before still goes on, are what they truly would be" {
  sed 's/bandwidth="300GBps"/bandwidth="300000GBps"/; s/bandwidth="300GB/bandwidth="300000GB/' "$BATS_TEST_DIRNAME/../../platforms/dgx-a100.xml" >fastest.xml
  for link in 1 100000; do
    python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" pipeline pipe$link bytes=67108864 steps=3 per_host=4 link=$link
  done
  "$PACELINE" trace import pipe1 -o pipe.h5
  "$PACELINE" replay pipe.h5 --platform fastest.xml --collective-profile ideal --json >replayed.json
  jq -e --slurpfile true pipe100000.truth.json '[[.steps[].what_if_s], $true[0].steps_s] | transpose | all(.[0] / .[1] - 1 | fabs < 0.005)' replayed.json ||
    { jq -c '[.steps[].what_if_s]' replayed.json; jq -c .steps_s pipe100000.truth.json; false; }
  jq -e '[.steps[].messages_timed] | all(. == 96)' replayed.json
}

@test "--platform: other numbers of ranks, and what is refused" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective job
  "$PACELINE" trace import job -o job.h5
  # A ring of 8 takes 2 * 7/8 of the bytes over each wire, one of 4 takes 2 * 3/4: the same computing, 7/6 of the data.
  for n in 4 8; do
    "$PACELINE" replay job.h5 --platform dgx-a100 --collective-profile ideal --ranks $n --json | jq -e '.steps[0].messages_as_recorded == 0' >/dev/null
    "$PACELINE" replay job.h5 --platform dgx-a100 --collective-profile ideal --ranks $n --scale 'op:*ward*=0' --scale 'op:update=0' --json | jq .what_if_s >$n
  done
  jq -es '(.[1] / .[0]) | . > 1.1 and . < 1.3' 4 8 || { cat 4 8; false; }
  refuse() {
    run -2 --separate-stderr "$PACELINE" replay "${@:2}"
    [[ ${#stderr_lines[@]} -eq 1 && $stderr == *"$1"* ]] || { echo "$stderr"; false; }
  }
  refuse "dgx-a100 has 8 devices; the job has a rank 8" job.h5 --platform dgx-a100 --ranks 16
  refuse "are of --platform" job.h5 --ranks 16
  refuse "leave one of them out" job.h5 --platform dgx-a100 --scale link=2
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" pipeline pipe
  "$PACELINE" trace import pipe -o pipe.h5
  refuse "the job sends messages from rank to rank, and no recording says how 8 ranks would" pipe.h5 --platform dgx-a100 --ranks 8
  "$PACELINE" replay pipe.h5 --platform dgx-a100 >/dev/null
  dpro tf
  "$PACELINE" trace import tf -o tf.h5 2>/dev/null
  run -0 "$PACELINE" replay tf.h5 --platform dgx-a100
  [[ $output == *"0 messages timed by its network, 12 of unknown size or kind as recorded"* ]]
}
