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
