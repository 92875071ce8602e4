#!/usr/bin/env bats
# paceline optimize: plans for recorded steps, and what it refuses.

bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  make() { python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" "$2" "$1" per_host=9 "${@:3}" && "$PACELINE" trace import "$1" -o "$1.h5"; }
  make job collective layers=24 bytes=10000 compute=0.01
  make stages pipeline
  make same collective layers=1
  printf 'ops,time_s\n(launch),4e-6\nbackward3+backward2,1e-6\n' >costs.csv
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

@test "a plan: what it says, what is in it, and that its parts add up" {
  run -0 "$PACELINE" optimize job.h5 --passes tensor-fusion,tensor-partition -o plan.json --force
  [[ ${lines[0]} == "step "*" now, "*" with the plan (-"*"%)" && $output == *"HOROVOD_FUSION_THRESHOLD"* && $output == *"written to plan.json" ]]
  jq -e '.paceline_plan == 1 and .after_s < 0.95 * .before_s and .before_s == .replayed_s' plan.json
  jq -e '[.buckets[].tensors[].name] == [range(24) | "grad\(.)"]' plan.json
  jq -e 'all(.buckets[]; .bytes == ([.tensors[].bytes] | add) and .piece_bytes * .pieces >= .bytes)' plan.json
  jq -e '.frameworks.torch_ddp.step_s >= .after_s and (.frameworks.horovod.groups | length) == (.buckets | length)' plan.json
  # it is as good for the other step, whose times are its own
  jq -e '(.steps | length) == 2 and all(.steps[]; .is_alike and .after_s < 0.95 * .before_s)' plan.json
  [[ $output == *"in 2 of 2 steps, each with its own times"* ]]
  # the steps of the search lead from the one time to the other
  jq -e '.search as {$steps} | $steps[0].before_s == .before_s and $steps[-1].after_s == .after_s and
    all(range(1; $steps | length); $steps[. - 1].after_s == $steps[.].before_s and $steps[.].after_s < $steps[.].before_s)' plan.json
}

@test "fused ops, by a launch or by what a file says of them" {
  "$PACELINE" optimize job.h5 --passes op-fusion --op-cost costs.csv --json >plan.json
  jq -e '.after_s < .before_s and (.fused_ops | length) > 0 and all(.fused_ops[]; .ranks == [0, 1, 2, 3])' plan.json
  "$PACELINE" optimize job.h5 --passes op-fusion --op-cost costs.csv --fuse 'forward*' --json >forward.json
  jq -e '(.fused_ops | length) > 0 and all(.fused_ops[].ops[]; startswith("forward"))' forward.json
  { echo ops,time_s; echo "(launch),4e-6"; jq -r '"\(.fused_ops[0].ops | join("+")),1e-6"' plan.json; } >given.csv
  "$PACELINE" optimize job.h5 --passes op-fusion --op-cost given.csv --json >given.json
  jq -es '.[1].after_s < .[0].after_s' plan.json given.json
  run -2 "$PACELINE" optimize job.h5 --passes op-fusion
  [[ $output == *"op-fusion: the trace has no lags"*"--op-cost"* ]]
}

@test "annealing: the same bytes for any number of threads, others for another seed, never worse than the walk" {
  anneal() { "$PACELINE" optimize job.h5 --passes op-fusion,tensor-fusion,tensor-partition --op-cost costs.csv --method anneal --tries 200 --json "$@"; }
  anneal --threads 1 >one.json
  anneal --threads 5 >five.json
  cmp one.json five.json
  anneal --threads 2 --seed 2 >other.json
  ! cmp -s one.json other.json
  "$PACELINE" optimize job.h5 --passes op-fusion,tensor-fusion,tensor-partition --op-cost costs.csv --json >walk.json
  jq -es '.[0].after_s <= .[1].after_s' one.json walk.json
}

@test "what cannot be is one line, and nothing is written" {
  refused() {
    run -2 --separate-stderr "$PACELINE" optimize "${@:2}"
    [[ -z $output && ${#stderr_lines[@]} -eq 1 && $stderr == *"$1"* ]] || { echo "$output$stderr"; false; }
    [[ ! -e no.json ]]
  }
  refused "which job file" --json
  refused "'tensor-fusoin' is none of op-fusion, tensor-fusion, tensor-partition, recompute, accumulate, mixed-precision; did you mean 'tensor-fusion'?" job.h5 --passes tensor-fusoin -o no.json
  refused "'tensor-fusion' is there twice" job.h5 --passes tensor-fusion,tensor-fusion
  refused "the step has no communication of gradients" stages.h5 -o no.json
  refused "sizes are unknown or all the same" same.h5 -o no.json
  refused "mixed-precision: the trace does not say" job.h5 --passes mixed-precision
  refused "'A1000' is neither a file nor a device that comes with Paceline" job.h5 --passes mixed-precision --device A1000
  refused "recompute: needs --memory-budget" job.h5 --passes recompute
  refused "accumulate: the trace has no sizes of activations" job.h5 --passes accumulate --memory-budget 1GB
  refused "accumulate: the step has no communication of gradients" stages.h5 --passes accumulate --memory-budget 1GB
  printf 'ops,activation_bytes,read_by\nforward1,2e6,backward99\n' >memory.csv
  refused "'forward1' is read by 'backward99', which the step does nowhere" job.h5 --passes recompute --memory-budget 1GB --op-cost memory.csv
  printf 'ops,activation_bytes,read_by\nforward1,2e6,backward1\n' >memory.csv
  refused "the step holds 3.74 MiB, of which 1 MiB fit" job.h5 --passes recompute,accumulate --memory-budget 1MiB --op-cost memory.csv
  refused "'fast' is neither walk nor anneal" job.h5 --method fast
  refused "no_such_folder" job.h5 -o no_such_folder/plan.json
  refused "has no step 7" job.h5 --step 7 -o no.json
  touch there.json
  refused "--force" job.h5 -o there.json
  printf 'ops,time\na,1\n' >bad.csv
  refused "column 'time' is none of ops, time_s" job.h5 --op-cost bad.csv
  printf 'ops,time_s\n(lunch),1\n' >bad.csv
  refused "bad.csv:2: '(lunch)' is neither (launch) nor (message)" job.h5 --op-cost bad.csv
  printf 'ops,time_s\na+b,fast\n' >bad.csv
  refused "bad.csv:2: column 'time_s': 'fast' is not a number" job.h5 --op-cost bad.csv
}

# activations of the forward ops: 2 MB each, 24 of them on a rank
activations() {
  echo "ops,time_s,activation_bytes,read_by"
  echo "(launch),0,,"
  for k in $(seq 0 23); do echo "forward$k,,2000000,backward$k"; done
}

@test "memory: nothing where it fits, else the faster of those that do" {
  activations >memory.csv
  optimize() { "$PACELINE" optimize job.h5 --passes "$1" --memory-budget "$2" --op-cost memory.csv --json; }
  # 24 gradients of 10 to 30 kB, 480,000 bytes in all, held four times: 1.92 MB; and 48 MB of activations
  optimize recompute,accumulate 50MB >fits.json
  jq -e '.memory.taken == "none needed" and .memory.before_bytes == 49920000 and .after_s == .before_s' fits.json
  optimize accumulate 20MB >batches.json
  jq -e '.memory | .taken == "accumulate" and .batches == 3 and .after_bytes == 17920000 and .after_s > .before_s' batches.json
  optimize recompute 20MB >again.json
  jq -e '.memory | .taken == "recompute" and (.computed_again | length) == 24 - .segments and .after_bytes <= 20e6 and .after_s > .before_s' again.json
  optimize recompute,accumulate 20MB >both.json
  jq -es '.[2].memory.after_s == ([.[0, 1].memory.after_s] | min)' batches.json again.json both.json
  # buckets are looked for in the step of several batches
  optimize accumulate,tensor-fusion 20MB >buckets.json
  jq -es '.[1].after_s < .[0].after_s and .[1].before_s == .[0].before_s' batches.json buckets.json
}

@test "half precision: by op as a file says, or by a device's peaks" {
  printf 'ops,half_time_s\nforward3,1e-7\nforward4,1\n' >half.csv
  "$PACELINE" optimize job.h5 --passes mixed-precision --op-cost half.csv --json >half.json
  jq -e '.half_precision_ops == ["forward3"] and .after_s < .before_s' half.json
  "$PACELINE" optimize job.h5 --passes mixed-precision --device A100-SXM4-80GB --json >device.json
  jq -e '(.half_precision_ops | length) == 49 and .after_s < .before_s and any(.assumptions[]; contains("peaks"))' device.json
}

@test "a pass of one's own: taken where it pays, refused where it is of another version or says what cannot be" {
  cp "$BATS_TEST_DIRNAME/../../search/optimize/pass_interface.h" .
  object() { # NAME VERSION CHANGE
    printf '%s\n' '#include "pass_interface.h"' \
      'static uint32_t propose(const paceline_view *view, uint32_t round, paceline_change *changes, uint32_t most) {' \
      '  if (round + 1 >= view->n_tensors || most < 1) return 0;' "  changes[0] = (paceline_change)$3;" '  return 1;' '}' \
      "const paceline_pass_interface paceline_pass = {$2, \"$1\", \"made by a test\", propose};" >"$1.c"
    cc -Wall -Werror -shared -fPIC -o "$1.so" "$1.c"
  }
  object pairs PACELINE_PASS_VERSION '{PACELINE_JOIN_TENSOR, round + 1, round % 2 == 0}'
  object old 0 '{PACELINE_JOIN_TENSOR, 1, 1}'
  object far PACELINE_PASS_VERSION '{PACELINE_JOIN_TENSOR, 99, 1}'
  object odd PACELINE_PASS_VERSION '{7, 0, 1}'
  "$PACELINE" optimize job.h5 --passes tensor-partition --pass ./pairs.so --json >own.json
  jq -e '.after_s < .before_s and any(.search.steps[]; .change == "pass" and .why == "pairs") and ([.buckets[].tensors | length] | max) == 2' own.json
  echo 'int nothing;' >nothing.c && cc -shared -o nothing.so nothing.c
  wrong() {
    run -2 --separate-stderr "$PACELINE" optimize job.h5 --pass "$1" -o no.json
    [[ -z $output && ${#stderr_lines[@]} -eq 1 && $stderr == *"--pass $1: $2"* && ! -e no.json ]] || { echo "$output$stderr"; false; }
  }
  wrong old.so "is of version 0 of the interface, this is version 1: compile it anew"
  wrong nothing.so "has no symbol 'paceline_pass'"
  wrong no.so "No such file"
  wrong job.h5 "is no shared object"
  wrong far.so "proposes to join tensor 99 (value 1), which cannot be; there are 24 of them"
  wrong odd.so "proposes a change of kind 7, which there is not"
}

# A rank with GPU: six forward kernels, six backward ones, gradients of 6 MB all-reduced behind them; each forward kernel
# keeps 64 MB for the backward one, the second also has 256 MB of its own that are gone before the third begins.
recorded() {
  python3 - "$1" "$2" <<'PY'
import json, sys
addresses = sys.argv[2] == "addresses"
events, at, correlation = [], 1000.0, 0
def event(category, name, ts, dur, tid, **args):
    events.append(dict(ph="X", cat=category, name=name, pid=0 if category == "kernel" else 1, tid=tid, ts=ts, dur=dur, args=args))
def memory(ts, address, megabytes):
    args = dict({"Device Type": 1, "Device Id": 0, "Bytes": megabytes * 1000000}, **({"Addr": address} if addresses else {}))
    events.append(dict(ph="i", cat="cpu_instant_event", s="t", name="[memory]", pid=1, tid=7, ts=ts, args=args))
gpu = at
def launch(name, dur, **args):
    global at, gpu, correlation
    correlation += 1
    event("cuda_runtime", "cudaLaunchKernel", at, 3, 7, correlation=correlation)
    gpu = max(gpu, at + 5) + 1
    event("kernel", name, gpu, dur, 3, correlation=correlation, stream=3, **args)
    gpu += dur
    at += 10
for k in range(6):
    memory(at - 2, 1000 + k, 64)
    if k == 1:
        memory(at - 1, 2000, 256)
    launch(f"forward{k}", 100)
    if k == 1:
        memory(at - 1, 2000, -256)
for k in reversed(range(6)):
    launch(f"backward{k}", 200)
    memory(at - 1, 1000 + k, -64)
for k in range(3):
    launch(f"ncclKernel_AllReduce{k}", 50 + 10 * k, **{"Collective name": "allreduce", "In msg nelems": 250000 * (k + 1), "dtype": "Float",
           "Group size": 1, "Process Group Ranks": "[0]"})
event("cpu_op", "aten::x", 990, 5, 7)
json.dump(dict(schemaVersion=1, distributedInfo=dict(rank=0, world_size=1), traceEvents=events), open(sys.argv[1], "w"))
PY
}

@test "activations come from the trace, where the profiler recorded the allocator" {
  recorded memory.json addresses
  "$PACELINE" trace import memory.json -o memory.h5
  optimize() { "$PACELINE" optimize memory.h5 --passes recompute --memory-budget "$1" --state-copies 1 --op-cost few.csv --json; }
  printf 'ops,time_s\n(launch),0.000001\n' >few.csv
  # All six at once when the backward pass begins. The 256 MB are one kernel's own.
  optimize 1GB | jq -e '.memory | .taken == "none needed" and .before_bytes - .state_bytes == 384e6'
  optimize 300MB | jq -e '.memory | .taken == "recompute" and .after_bytes < 300e6 and .computed_again == ["forward0", "forward2", "forward4"]'
  optimize 300MB | jq -e '.assumptions | map(select(contains("memory events"))) | length == 1'
  recorded nowhere.json no-addresses
  run -0 --separate-stderr "$PACELINE" trace import nowhere.json -o nowhere.h5
  [[ $stderr == *"14 events of the allocator without an address, left out"* ]]
  run -2 "$PACELINE" optimize nowhere.h5 --passes recompute --memory-budget 1GB
  [[ $output == *"record it with profile_memory=True"* ]]
}
