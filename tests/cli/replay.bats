#!/usr/bin/env bats
# paceline replay: recorded steps as they were and as they would be.

bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective job per_host=4
  "$PACELINE" trace import job -o job.h5
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

@test "each step and their mean, as they were" {
  run -0 "$PACELINE" replay job.h5
  [[ ${lines[0]} =~ step\ +measured\ +replayed\ +drift ]]
  [[ ${lines[1]} =~ ^\ +0\ .*\ (-|\+)0\.00$ && ${lines[3]} == *mean* && ${lines[4]} == "standard deviation over the steps:"* ]]
}

@test "what if: ops, links, the host; what is not there is said" {
  run -0 "$PACELINE" replay job.h5 --scale 'op:*ward*=0.5' --scale link=2 --scale host=0.5
  [[ $output == *"--scale op:*ward* changed 128 tasks"* && $output == *"--scale link changed 16 tasks"* ]]
  [[ $output == *"--scale host changed 0 tasks: nothing in the job is that"* ]]
  "$PACELINE" replay job.h5 --scale 'op:*ward*=0.5' --step 1 --json |
    jq -e '(.steps | length) == 1 and .steps[0].number == 1 and .what_if_s < 0.8 * .replayed_s'
}

@test "the replayed step as a Chrome trace" {
  "$PACELINE" replay job.h5 --step 0 --trace out.json
  jq -e '[.traceEvents[] | select(.ph == "X")] | length == 100' out.json
  run -2 "$PACELINE" replay job.h5 --trace out.json
  [[ $output == *"out.json"*"--force"* ]]
}

@test "wrong words are one line" {
  refused() {
    run -2 --separate-stderr "$PACELINE" replay "${@:2}"
    [[ ${#stderr_lines[@]} -eq 1 && $stderr == *"$1"* ]] || { echo "$stderr"; false; }
  }
  refused "which job file" --json
  refused "is no op:PATTERN=F, link=F or host=F" job.h5 --scale fast
  refused "is no op:PATTERN, link or host" job.h5 --scale gpu=2
  refused "is not a non-negative number" job.h5 --scale link=-1
  refused "has no step 7 on all ranks; it has 0 to 1" job.h5 --step 7
  refused "No such file" no.h5
}
