#!/usr/bin/env bats
# Traces of real jobs: import and check.

bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_TMPDIR"
  mkdir job
}

# kineto RANK SHIFT_US [KIND [ELEMENTS]]: a rank that computes and all-reduces; its clock is SHIFT_US ahead.
kineto() {
  cat >"job/rank$1.json" <<JSON
{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":$1,"world_size":2},"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":$((100 + $2)),"dur":900},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":$((110 + $2)),"dur":5,"args":{"correlation":7}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":1,"tid":1,"ts":$((151 + $2)),"dur":1,"args":{"correlation":8}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":$((150 + $2)),"dur":20,"args":{"Collective name":"${3:-allreduce}","In msg nelems":${4:-1024},"Out msg nelems":${4:-1024},"dtype":"Float","Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]"}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","pid":1,"tid":1,"ts":$((155 + $2)),"dur":5,"args":{"correlation":9}},
{"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":1,"tid":1,"ts":$((170 + $2)),"dur":230,"args":{"correlation":10}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":$((116 + $2)).125,"dur":100.5,"args":{"correlation":7}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_${3:-AllReduce}","pid":0,"tid":20,"ts":$((218 + $2)),"dur":180,"args":{"correlation":9}}
],"baseTimeNanoseconds":1711964646000000000}
JSON
}

@test "two ranks are imported, matched and their clocks aligned" {
  kineto 0 0
  kineto 1 5000
  run -0 "$PACELINE" trace import job -o job.h5
  [[ $output == "2 ranks, 12 ops, 2 messages, 2 steps of ranks: job.h5" ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"1 collectives, 0 transfers; unmatched: 0 collectives, 0 transfers"* ]]
  [[ $output == *"1 step on all ranks: mean 290 us"* ]]
  [[ $output == *"host of rank 1 "*" -5000.000 "* ]]
  "$PACELINE" trace check job.h5 --json | jq -e '.collectives == 1 and .clocks[1].offset_ns == -5e6 and .steps_s == [0.00029]'
}

@test "ranks of one host share a clock" {
  kineto 0 0
  kineto 1 5000
  "$PACELINE" trace import job -o job.h5 --ranks-per-host 2
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"host0 "*"reference"* && $output != *"host of rank"* ]]
}

@test "gzip files, cut ones and arrays that were never closed are read as far as they go" {
  kineto 0 0
  head -n 8 job/rank0.json | gzip >job/rank0.json.gz
  rm job/rank0.json
  run -0 --separate-stderr "$PACELINE" trace import job -o a.h5
  [[ $stderr == *"rank 0: the JSON is never closed; read as far as it goes"* ]]
  kineto 1 0
  gzip -c job/rank1.json | head -c 400 >job/rank1.json.gz
  rm job/rank1.json
  run -0 --separate-stderr "$PACELINE" trace import job -o b.h5
  [[ $stderr == *"rank 1: the gzip file ends too early; read as far as it goes"* ]]
}

@test "what is missing is said, a line each" {
  kineto 1 0
  sed -i 's/"dur":100.5/"dur":-3/; s/"world_size":2/"world_size":4/' job/rank1.json
  echo '{"a": 1}' >job/config.json
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"rank 0 of 4 is not recorded"* && $stderr == *"ranks 2 to 3 of 4 are not recorded"* ]]
  [[ $stderr == *"1 events with negative durations, taken as 0"* && $stderr == *"config.json: is no trace; left out"* ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"with members that were not recorded: 1"* && $output == *"rank 0 of 4 is not recorded"* ]]
}

@test "where the ranks part is said" {
  kineto 0 0
  kineto 1 0 allgather
  "$PACELINE" trace import job -o job.h5
  run -2 --separate-stderr "$PACELINE" trace check job.h5
  [[ $stderr == *"the ranks part at collective 0 of group '0' of step 3: rank 0 does all-reduce of 4 KiB, rank 1 all-gather of 4 KiB"* ]]
}

@test "two jobs of one size: a line per rank, at import, in check, replay and diagnose; a step that a rank lacks is none" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective one ranks=4
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" ring other ranks=4
  mkdir -p mixed
  cp one/rank[012].json mixed && cp other/rank3.json mixed
  run -0 --separate-stderr "$PACELINE" trace import mixed -o mixed.h5
  [[ $stderr == *"rank 3 lacks 16 collectives that other ranks did with it, the first being all-reduce 'grad0' of rank 0 of step 0: were they recorded over the same steps of one job?"* ]]
  [[ $stderr == *"rank 0 lacks 96 ends of transfers"*"rank 2 lacks 96 ends of transfers"* && $stderr != *"rank 1 lacks"* ]]
  run -0 "$PACELINE" trace check mixed.h5
  [[ $output == *"rank 3 lacks 16 collectives"* ]]
  for command in replay diagnose; do
    run -0 "$PACELINE" "$command" mixed.h5
    [[ $output == *"3 ranks lack messages that others did with them: what is left of these takes its recorded time"* ]]
  done
  jq '(.steps | map(.number) | min) as $first | .steps |= map(select(.number != $first)) | .ops |= map(select(.step != $first)) |
      (.ops | map(.id)) as $ids | .ops |= map(.after -= (.after - $ids))' one/rank3.json >cut.json
  mv cut.json one/rank3.json
  run -0 --separate-stderr "$PACELINE" trace import one -o one.h5
  [[ ${#stderr_lines[@]} -eq 2 && $stderr == *"rank 3 lacks step 0, which other ranks recorded; left out of replay"* ]]
}

@test "two jobs, two files of one rank, no trace, unknown versions and damage: one line, nothing written" {
  refused() {
    run -2 --separate-stderr "$PACELINE" trace import job -o job.h5
    [[ ${#stderr_lines[@]} -eq 1 && $stderr == *"$1"* && ! -e job.h5 ]] || { echo "$stderr"; false; }
  }
  refused "job: no trace in it"
  kineto 0 0
  cp job/rank0.json job/again.json
  refused "rank 0 is there twice, in job/again.json and job/rank0.json"
  kineto 1 0
  rm job/again.json
  sed -i 's/"world_size":2/"world_size":8/' job/rank1.json
  refused "two jobs in one folder"
  kineto 1 0
  sed -i 's/"schemaVersion":1/"schemaVersion":9/' job/rank1.json
  refused "job/rank1.json: schemaVersion 9 is not known"
  kineto 1 0
  sed -i '5s/"ph"/ph/' job/rank1.json
  refused "job/rank1.json:5: is no JSON: invalid char"
  kineto 1 0
  sed -i 's/"ts":116.125/"ts":"now"/; s/"ts":110/"ts":1e400/' job/rank1.json
  refused "which is no time in microseconds"
  { echo '{"traceEvents":['; yes '{"ph":"M"},' | head -n 10000000; } | gzip >job/rank1.json
  refused "expands to more than 300 times its size"
}

@test "names with markup and control characters reach no terminal" {
  kineto 0 0
  sed -i 's/"gemm"/"<script>\\u001b[31m"/; s/"Process Group Name":"0"/"Process Group Name":"\\u001b]0;x"/' job/rank0.json
  kineto 1 0 allgather
  sed -i 's/"Process Group Name":"0"/"Process Group Name":"\\u001b]0;x"/' job/rank1.json
  "$PACELINE" trace import job -o job.h5
  run -2 "$PACELINE" trace check job.h5
  [[ $output != *$'\e'* ]]
}

@test "a damaged job file is one line" {
  kineto 0 0
  "$PACELINE" trace import job -o job.h5 2>/dev/null
  run -2 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"job.h5"*"--force replaces it"* ]]
  head -c 3000 job.h5 >cut.h5
  run -2 --separate-stderr "$PACELINE" trace check cut.h5
  [[ ${#stderr_lines[@]} -eq 1 ]]
  echo no >no.h5
  run -2 --separate-stderr "$PACELINE" trace check no.h5
  [[ $stderr == *"no.h5: is no job file (HDF5)"* ]]
}

@test "ops averaged over the steps, with their spread" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective job ranks=2 layers=2 steps=3 jitter=0
  "$PACELINE" trace import job -o job.h5
  run -0 "$PACELINE" trace check job.h5 --ops 2
  [[ $output == *"Ops that took most time, averaged over 3 steps (7 kinds of ops; +-: standard deviation of the steps):"* ]]
  "$PACELINE" trace check job.h5 --ops 20 --json | jq -e '.op_times | map(select(.name == "backward1")) | .[0] |
    .steps == 3 and .per_step == 2 and (.mean_s - 0.0009 | fabs) < 1e-9 and .deviation_s < 1e-9'
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective noisy ranks=2 layers=2 steps=3 jitter=0.1
  "$PACELINE" trace import noisy -o noisy.h5
  "$PACELINE" trace check noisy.h5 --ops 20 --json | jq -e '.op_times | map(select(.name == "backward1")) | .[0] |
    (.deviation_s / .mean_s) | . > 0.005 and . < 0.1'
}

@test "a rank from whose trace collectives were left out: its clock is left as recorded, and check says why" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective thinned ranks=2 layers=12 steps=1
  # the first rank lacks every third collective, the second others: the n-th of one is not the n-th of the other
  for rank in 0 1; do
    jq --argjson r $rank '.ops |= [to_entries[] | select(.value.kind != "collective" or .key % 3 != $r) | .value | del(.after)]' \
      thinned/rank$rank.json >thinned.tmp && mv thinned.tmp thinned/rank$rank.json
    jq '.ops |= map(if .kind == "collective" then .bytes = 1 else . end)' thinned/rank$rank.json >thinned.tmp && mv thinned.tmp thinned/rank$rank.json
  done
  "$PACELINE" trace import thinned -o thinned.h5
  run -0 "$PACELINE" trace check thinned.h5
  [[ $output == *"its messages contradict each other"*"left as recorded"* ]]
  "$PACELINE" trace check thinned.h5 --json | jq -e '.clocks[1] | .contradicted and .offset_ns == 0 and .drift_ppm == 0'
}

@test "other JSON and empty files in a job's folder are left out, a line each" {
  mkdir -p littered
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective littered ranks=2 steps=1
  echo '[{"name": "of another tool"}]' >littered/details.json
  : >littered/rank2.json
  run -0 --separate-stderr "$PACELINE" trace import littered -o littered.h5
  [[ $output == "2 ranks, "* && $stderr == *"littered/details.json: none of its events has a duration; left out"* ]]
  [[ $stderr == *"littered/rank2.json: is no trace; left out"* ]]
  run -2 "$PACELINE" trace import littered/details.json -o alone.h5
  [[ $output == *"none of its events has a duration: nothing was recorded"* && ! -e alone.h5 ]]
}
