#!/usr/bin/env bats
# paceline diagnose: the critical path, what ranks wait for, stragglers, changes; text, JSON and one HTML file.

bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  for slow in 1 1.5; do
    python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective job$slow per_host=4 jitter=0 slow=$slow
    "$PACELINE" trace import job$slow -o job$slow.h5
  done
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

@test "a slow rank is found, and what the step would take without it is what it takes without it" {
  "$PACELINE" diagnose job1.5.h5 --json >found.json
  jq -e '.ranks_alike and .ranks[0].waits_most_for == 1 and .ranks[3].waits_most_for == 1 and (.ranks[1] | has("waits_most_for") | not)' found.json
  jq -e '.changes[0].change == "rank 1 as fast as the median of the ranks"' found.json
  jq -e --slurpfile true job1.truth.json '.ranks[1].step_if_median_s / $true[0].steps_s[0] - 1 | fabs < 0.001' found.json
}

@test "ranks that do not all do the same: what they have in common is compared, and how much that is is said" {
  mkdir -p unlike
  cp job1.5/rank*.json unlike
  jq '.ops += [{id: 9999, name: "logging", stream: "other", start_ns: .ops[0].start_ns, duration_ns: 1000, step: 0}]' job1.5/rank2.json >unlike/rank2.json
  "$PACELINE" trace import unlike -o unlike.h5 --force
  "$PACELINE" diagnose unlike.h5 --json --step 0 >found.json
  jq -e '(.ranks_alike | not) and .ranks[2].compared > 0.99 and .ranks[2].compared < 1 and .ranks[1].compared == 1' found.json
  jq -e --slurpfile true job1.truth.json '.step_if_all_median_s / $true[0].steps_s[0] - 1 | fabs < 0.001' found.json
  jq -e '(.ranks[1].step_if_median_s / .step_if_all_median_s - 1 | fabs < 0.0001) and .ranks[0].step_if_median_s == .replayed_s' found.json
  run -0 "$PACELINE" diagnose unlike.h5
  [[ $output == *"all ranks"*"rank 1 alone, the rank that costs most"*"The ranks do not all do the same"*"on rank 2 100 % of its own time"* ]]
}

@test "shares of the critical path and times of a rank add up to the step" {
  "$PACELINE" diagnose job1.5.h5 --json >found.json
  jq -e '([.critical_path_s[]] | add) / .replayed_s - 1 | fabs < 1e-9' found.json
  jq -e '.replayed_s as $s | [.ranks[] | [.computes, .["exposed communication"], .["waits for a rank"], .["waits for data"],
         .["waits for the host"], .["stands still"], .["is done"]] | add / $s - 1 | fabs < 1e-9] | all' found.json
  jq -e '([.ranks[].on_critical_path] | add) / .replayed_s - 1 | fabs < 1e-9' found.json
}

@test "the report is one file that needs nothing else, names with markup do no harm" {
  mkdir -p marked
  for rank in 0 1 2 3; do sed 's/backward7/<script>alert(1)<\/script>\\u001b[31m/g' job1.5/rank$rank.json >marked/rank$rank.json; done
  "$PACELINE" trace import marked -o marked.h5 --force
  run -0 "$PACELINE" diagnose marked.h5 -o report.html --force
  [[ $output != *$'\e'* && $output == *"Critical path ("* ]]
  xmllint --noout report.html
  run -1 grep -E '<script|https?://[^w]|src=|@import' report.html
  grep -q '&lt;script&gt;' report.html
  run -2 "$PACELINE" diagnose marked.h5 -o report.html
  run -2 "$PACELINE" diagnose marked.h5 -o marked.h5 --force
}

@test "a device that ran dry while the host waited for it, apart from one whose host was late" {
  cat >sync.json <<'JSON'
{"paceline_trace": 1, "rank": 0, "host": "h", "world_size": 1, "ops": [
 {"id": 1, "name": "launch", "stream": "main", "kind": "call", "start_ns": 0, "duration_ns": 1000},
 {"id": 2, "name": "kernel", "stream": "gpu", "start_ns": 1000, "duration_ns": 100000, "launched_by": 1},
 {"id": 3, "name": "cudaStreamSynchronize", "stream": "main", "kind": "wait", "start_ns": 2000, "duration_ns": 99000, "after": [2]},
 {"id": 4, "name": "launch", "stream": "main", "kind": "call", "start_ns": 140000, "duration_ns": 1000},
 {"id": 5, "name": "kernel", "stream": "gpu", "start_ns": 141000, "duration_ns": 100000, "launched_by": 4},
 {"id": 6, "name": "launch", "stream": "main", "kind": "call", "start_ns": 300000, "duration_ns": 1000},
 {"id": 7, "name": "kernel", "stream": "gpu", "start_ns": 301000, "duration_ns": 99000, "launched_by": 6}]}
JSON
  "$PACELINE" trace import sync.json -o sync.h5
  "$PACELINE" diagnose sync.h5 --json | jq -e '.ranks[0] | [.["waits after a synchronisation"], .["waits for the host"]] | map(. * 1e9 | round) == [40000, 61000]'
  run -0 "$PACELINE" diagnose sync.h5
  [[ $output == *"for sync"* ]]
}

@test "links twice as fast are what replay makes of them, also where that lets other messages go first" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" server hub per_host=4 bytes=20000000
  "$PACELINE" trace import hub -o hub.h5
  "$PACELINE" replay hub.h5 --step 0 --scale link=2 --json >replayed.json
  "$PACELINE" diagnose hub.h5 --step 0 --json >found.json
  jq -e --slurpfile true replayed.json '.changes | map(select(.change == "links twice as fast"))[0].step_s == $true[0].what_if_s' found.json
  run -0 "$PACELINE" diagnose hub.h5 --step 0
  [[ $output == *"Links serve the message that is ready first"* ]]
}
