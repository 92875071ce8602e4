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
