#!/usr/bin/env bats
# Traces in the formats of other tools: Chakra, PyTorch's execution traces; and our own runs written in them.

bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_TMPDIR"
  mkdir job
}

chakra() { python3 "$BATS_TEST_DIRNAME/../support/chakra.py" "$@"; }

refused() {
  run -2 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ ${#stderr_lines[@]} -eq 1 && $stderr == *"$1"* && ! -e job.h5 ]] || { echo "$stderr"; false; }
}

# The step's time, as it was and played again, in ns.
times_of() { "$PACELINE" replay "$1" --json | jq -c '[.steps[] | .measured_s, .replayed_s] | map(. * 1e9 | round)'; }

@test "Chakra without dates: a list schedule over threads and streams" {
  chakra foreign job/trace.0.et
  chakra foreign job/trace.1.et
  echo '{"0": [0, 1]}' >job/comm_group.json
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $output == "2 ranks, 10 ops, 2 messages, 0 steps of ranks: job.h5" ]]
  [[ $stderr == *"trace.0.et: rank 0: no dates; made from dependencies and durations"* ]]
  [[ $stderr == *"1 dependencies on nodes that are not in the file, or on themselves, left out"* ]]
  [[ $stderr != *"no comm_group.json says"* ]]
  # 20 of the host, 100 and 50 and 30 of the device
  [[ $(times_of job.h5) == "[200000,200000]" ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"1 collectives, 0 transfers; unmatched: 0 collectives"* ]]
}

@test "Chakra, bad input: one line, nothing written" {
  chakra workload job/trace.0.et
  refused "no node has a duration: is a workload for a simulator"
  chakra future job/trace.0.et
  refused "is of version 7.0 of Chakra's schema; 0.x and 1.x are known"
  chakra late job/trace.0.et
  refused "node 11 takes 18446744073709551611 us, more than 30 days (a negative duration?)"
  chakra cycle job/trace.0.et
  refused "its dependencies have a cycle: 2 nodes can never start, node 11 is one"
  rm job/trace.0.et
  chakra bomb job/trace.0.et.gz
  refused "expands to more than 300 times its size"
  rm job/trace.0.et.gz
  head -c 3000 /dev/zero | tr '\0' '\377' >job/trace.0.et
  refused "a message without a length"
  : >job/trace.0.et
  refused "is empty"
  chakra foreign job/trace.0.et
  cp job/trace.0.et job/again.0.et
  refused "rank 0 is there twice"
  mv job/again.0.et job/again.et
  refused "says no rank; name it after its rank, as in trace.3.et"
  rm job/again.et
  echo '{"0": [0, 0]}' >job/comm_group.json
  refused "group '0' has rank 0 twice"
  echo '{"0": {"1": 2}}' >job/comm_group.json
  refused "is no list of groups"
}

@test "Chakra: cut files, groups that nothing says, a rank that is missing, names that no terminal should get" {
  chakra markup job/trace.1.et
  truncate -s -30 job/trace.1.et
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"rank 1: ends too early; read as far as it goes"* && $stderr == *"rank 0 of 2 is not recorded"* ]]
  [[ $stderr == *"1 messages of a group whose members no comm_group.json says; taken as all ranks"* ]]
  run -0 "$PACELINE" diagnose job.h5
  [[ $output != *$'\e'* ]]
}

# profile RANK: what the profiler of an older PyTorch says of an all-reduce: that there was one.
profile() {
  cat >"job/rank$1.json" <<JSON
{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":$1,"world_size":4},"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":150,"dur":20,"args":{"External id":77}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","pid":1,"tid":1,"ts":155,"dur":5,"args":{"correlation":9}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":190,"dur":2,"args":{"External id":78}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":218,"dur":180,"args":{"correlation":9}}]}
JSON
}

# execution RANK [SCHEMA]: the execution trace of the same run, which says of whom and how much.
execution() {
  cat >"job/et_$1.json" <<JSON
{"schema": "${2:-1.1.0-chakra.0.0.4}", "pid": 1, "nodes": [
{"id": 9, "name": "record_param_comms", "ctrl_deps": 2, "inputs": {"values": [33, ["", ""], 0, "wait"], "shapes": [], "types": ["Int"]},
 "attrs": [{"name": "rf_id", "type": "uint64", "value": 41}, {"name": "collective_name", "type": "string", "value": "wait"}]},
{"id": 7, "name": "record_param_comms", "ctrl_deps": 2, "inputs": {"values": [[[1, 2, 0, 53120, 4, "cuda:1"]], 33, ["3", "dp"], 0, "allreduce"], "shapes": [], "types": ["GenericList[Tensor(float)]"]},
 "attrs": [{"name": "rf_id", "type": "uint64", "value": 40}, {"name": "collective_name", "type": "string", "value": "allreduce"}, {"name": "dtype", "type": "string", "value": "Float"},
 {"name": "in_msg_nelems", "type": "uint64", "value": 53120}, {"name": "pg_name", "type": "string", "value": "3"}, {"name": "pg_size", "type": "uint64", "value": 2},
 {"name": "global_rank_start", "type": "uint64", "value": 1}, {"name": "global_rank_stride", "type": "uint64", "value": 2}]}]}
JSON
}

@test "an execution trace completes the messages of the profile of its rank" {
  profile 1 && profile 3
  execution 1 && execution 3
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"job/et_1.json: joined with job/rank1.json: 1 messages completed"* ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"1 collectives, 0 transfers; unmatched: 0 collectives"* && $output != *"that were not recorded: 1"* ]]
  /usr/bin/python3 - job.h5 <<'PY'
import sys, h5py
job = h5py.File(sys.argv[1])
assert [int(m["size_bytes"]) for m in job["messages"]] == [4 * 53120] * 2
assert [int(r[0]) for r in job["members"]] == [1, 3]
PY
}

@test "execution traces: of another run, of an unknown schema, without a profile" {
  profile 1
  execution 1
  sed -i '/"External id":78/d' job/rank1.json
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"has 2 messages where job/rank1.json has 1: not of the same steps, or cut off; not joined"* ]]
  rm job.h5
  execution 1 2.0
  refused "is an execution trace of schema '2.0'; 1.x are known"
  execution 1
  mv job/et_1.json job/et_2.json
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"et_2.json: is an execution trace, which has no times, and no profile is of its rank; left out"* ]]
  rm job.h5 job/rank1.json
  refused "only execution traces, which have no times"
}

simulate() {
  "$PACELINE" simulate --platform dgx-a100 --model gpt2-345m --gbs 4 --seq 256 --strategy pp=2,dp=2,tmp=2,mbs=1,zero=1 "$@"
}

@test "a simulated run as Chakra, Kineto and Perfetto: imported and played again it takes the same time" {
  ns=$(simulate --json | jq '.iter_time_s * 1e9 | round')
  for format in chakra kineto perfetto; do
    run -0 simulate --trace out.$format --trace-format $format
    [[ $output == *"out.$format (8 ranks, $format)"* ]]
    "$PACELINE" trace import out.$format -o $format.h5 2>/dev/null
    run -0 times_of $format.h5
    jq -e --argjson ns "$ns" 'all(. - $ns | fabs <= 1)' <<<"$output"
    run -0 "$PACELINE" trace check $format.h5
    [[ $output == *"unmatched: 0 collectives, 0 transfers"* ]]
  done
  # What if: only Chakra has the dependencies whole; both must feel twice as fast computing.
  "$PACELINE" replay chakra.h5 --scale 'op:*=0.5' --json | jq -e '.steps[0] | .what_if_s < 0.9 * .replayed_s'
  # Perfetto has them as Chakra has: every what-if is the same.
  for scale in 'op:*=0.5' link=2; do
    for format in chakra perfetto; do
      "$PACELINE" replay $format.h5 --scale "$scale" --json | jq '.steps[0].what_if_s' >what.$format
    done
    cmp what.chakra what.perfetto
  done
}

@test "a replayed step as Chakra, Kineto and Perfetto, and again: the times stay" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" pipeline job clocks=5000
  "$PACELINE" trace import job -o job.h5
  before=$("$PACELINE" replay job.h5 --step 0 --json | jq '.steps[0].replayed_s * 1e9 | round')
  for format in chakra kineto perfetto; do
    "$PACELINE" replay job.h5 --step 0 --trace $format --trace-format $format >/dev/null
    "$PACELINE" trace import $format -o $format.h5 2>/dev/null
    run -0 times_of $format.h5
    jq -e --argjson ns "$before" 'all(. - $ns | fabs <= 1)' <<<"$output"
  done
  # links half as fast, on what was exported: as on the job itself
  "$PACELINE" replay job.h5 --step 0 --scale link=0.5 --json | jq '.steps[0].what_if_s' >a
  "$PACELINE" replay chakra.h5 --scale link=0.5 --json | jq '.steps[0].what_if_s' >b
  jq -es '(.[0] / .[1] - 1) | fabs < 1e-6' a b
  "$PACELINE" replay perfetto.h5 --scale link=0.5 --json | jq '.steps[0].what_if_s' >c
  jq -es '(.[0] / .[1] - 1) | fabs < 1e-6' a c
}

readers() { python3 "$BATS_TEST_DIRNAME/../support/other_readers.py" "$@"; }

@test "what ASTRA-sim and HolisticTraceAnalysis ask of the files that are for them" {
  # Groups of some ranks and of all, messages with tags and without, a barrier, a reduce, sizes that nobody knows.
  simulate --trace one.chakra --trace-format chakra >/dev/null
  simulate --trace one.kineto --trace-format kineto >/dev/null
  for rank in 0 1; do
    cat >"job/rank$rank.json" <<JSON
{"paceline_trace": 1, "rank": $rank, "world_size": 2, "groups": {"all": [0, 1]}, "steps": [{"number": 0, "start_ns": 0, "duration_ns": 900}], "ops": [
{"name": "a", "stream": "gpu", "start_ns": 0, "duration_ns": 100},
{"name": "b", "stream": "net", "kind": "collective", "collective": "barrier", "group": "all", "start_ns": 100, "duration_ns": 100, "after": [0]},
{"name": "c", "stream": "net", "kind": "collective", "collective": "reduce", "group": "all", "bytes": 64, "start_ns": 200, "duration_ns": 100},
{"name": "d", "stream": "net", "kind": "collective", "collective": "all-reduce", "group": "all", "start_ns": 300, "duration_ns": 100},
{"name": "e", "stream": "p2p", "kind": "$([[ $rank == 0 ]] && echo send || echo receive)", "peer": $((1 - rank)), "start_ns": 400, "duration_ns": 100, "after": [3]}]}
JSON
  done
  "$PACELINE" trace import job -o two.h5
  for format in chakra kineto; do
    "$PACELINE" replay two.h5 --trace two.$format --trace-format $format >/dev/null
  done
  for run in one two; do
    readers astra-sim $run.chakra
    readers hta $run.kineto
  done
  # What is called otherwise for their sake comes back as it was.
  "$PACELINE" trace import two.chakra -o again.h5
  /usr/bin/python3 - two.h5 again.h5 <<'PY'
import sys, h5py
def said(path):
    job = h5py.File(path)
    return sorted((int(m["kind"]), int(m["size_bytes"]), int(m["tag"]) == 2**32 - 1) for m in job["messages"])
assert said(sys.argv[1]) == said(sys.argv[2]), (said(sys.argv[1]), said(sys.argv[2]))
PY
}

@test "Perfetto's file: packed, cut off, edited, of another version; what Perfetto draws by" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" pipeline seen clocks=5000
  "$PACELINE" trace import seen -o seen.h5
  "$PACELINE" replay seen.h5 --step 0 --trace out.json.gz --trace-format perfetto
  "$PACELINE" trace import out.json.gz -o first.h5
  "$PACELINE" replay first.h5 --trace again.json --trace-format perfetto
  "$PACELINE" trace import again.json -o second.h5
  [[ $(times_of first.h5) == "$(times_of second.h5)" ]]
  # slices with a place and dates, arrows in pairs that begin within a slice and end where one begins
  zcat out.json.gz | jq -e '.traceEvents as $all | [$all[] | select(.ph == "X")] as $slices
    | ([$slices[] | {"\(.pid) \(.tid) \(.ts)": 1}] | add) as $starts
    | [$all[] | select(.ph == "s")] as $tails | [$all[] | select(.ph == "f")] as $heads
    | ($tails | length > 0) and ($tails | map(.id)) == ($heads | map(.id)) and all($heads[]; .bp == "e" and $starts["\(.pid) \(.tid) \(.ts)"] == 1)
      and all($tails[]; . as $t | any($slices[]; .pid == $t.pid and .tid == $t.tid and .ts <= $t.ts and ($t.ts <= .ts + .dur)))
      and all($slices[]; .dur >= 0) and ([$all[] | select(.name == "process_name")] | length) > 1'
  mv again.json job/again.json
  cp job/again.json whole.json
  truncate -s $(($(stat -c %s whole.json) * 3 / 5)) job/again.json
  run -0 --separate-stderr "$PACELINE" trace import job -o cut.h5
  [[ $stderr == *"again.json: ends too early; read as far as it goes"* ]]
  sed 's/"paceline_perfetto":1/"paceline_perfetto":2/' whole.json >job/again.json
  refused "paceline_perfetto is '2'; 1 is known"
  sed 's/"cat":"step"/"cat":"stop"/' whole.json >job/again.json
  refused "an event is of no kind of op: 'step 0'"
  sed 's/"id":7,/"id":8,/' whole.json >job/again.json
  refused "two ops have id 8"
  sed 's/"kind":"device"/"kind":"magic"/' whole.json >job/again.json
  refused "a thread is neither of host, device nor network: 'magic'"
  sed 's/"peer":[0-9]*,//g' whole.json >job/again.json
  refused "a message does not say its other end ('peer')"
  sed 's/"message":"send"/"message":"all-reduce"/g' whole.json >job/again.json
  refused "an op that communicates does not say what: 'all-reduce'"
  jq -c '.traceEvents |= map(select(.name != "process_name"))' whole.json >job/again.json
  refused "no process_name stands in front of thread"
  jq -c '.traceEvents = []' whole.json >job/again.json
  refused "no rank in it: nothing was recorded"
}

@test "--trace-format timeline, the default, is for looking at: import says so, and what comes back" {
  python3 "$BATS_TEST_DIRNAME/../support/synthetic_job.py" collective seen
  "$PACELINE" trace import seen -o seen.h5
  "$PACELINE" replay seen.h5 --trace seen.json --trace-format timeline
  run -2 "$PACELINE" trace import seen.json -o again.h5
  [[ $output == *"none of its events is one of PyTorch's profiler. Is it a timeline, for looking at?"*"--trace-format perfetto, chakra or kineto"* && ! -e again.h5 ]]
}

@test "--trace-format: wrong words and places" {
  run -2 simulate --trace out --trace-format nsys
  [[ $output == *"'nsys' is none of timeline, perfetto, chakra and kineto"* ]]
  run -2 simulate --trace-format chakra
  [[ $output == *"--trace-format: of what? Add --trace FILE or FOLDER"* ]]
  run -2 simulate --trace-format chakra --trace out --collectives chunked
  [[ $output == *"leave out --collectives chunked"* ]]
  mkdir out && : >out/mine
  run -2 simulate --trace-format chakra --trace out
  [[ $output == *"out is not empty; --force replaces"* && $(ls out) == mine ]]
  run -2 simulate --trace-format kineto --trace out/mine
  [[ $output == *"out/mine is a file; traces of ranks need a folder"* ]]
}

nsys() { python3 "$BATS_TEST_DIRNAME/../support/nsys.py" "$@"; }

@test "nsys: processes of a host are ranks by their device; launches, waits and steps as in a profile" {
  nsys job/report.sqlite processes=2
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $output == "2 ranks, 18 ops, 2 messages, 2 steps of ranks: job.h5" ]]
  [[ $stderr == *"2 processes; taken as ranks 0 to 1 in the order of their devices"* ]]
  [[ $stderr == *"nsys says neither sizes nor groups of messages"* ]]
  [[ $(times_of job.h5) == "[351600,351600]" ]]
  # the all-reduce waits for the first product, the second product for the all-reduce
  "$PACELINE" replay job.h5 --scale 'op:sgemm=0' --json | jq -e '.steps[0].what_if_s * 1e9 | round < 260000'
  rm job/report.sqlite
  nsys job/rank0.sqlite
  nsys job/rank1.sqlite
  run -0 "$PACELINE" trace import job -o two.h5
  [[ $output == *"2 ranks, 18 ops, 2 messages"* ]]
}

@test "nsys, bad input: one line, nothing written, nothing executed" {
  nsys job/report.sqlite kind=view
  refused "has no kernels of nsys: is it an export of nsys"
  nsys job/report.sqlite kind=empty
  refused "no kernel was recorded"
  nsys job/report.sqlite kind=strange
  refused "'sgemm' starts at 4611686018427387904 ns: out of range"
  nsys job/report.sqlite
  truncate -s 2500 job/report.sqlite
  refused "job/report.sqlite:"
  echo no >job/report.sqlite
  refused "is no SQLite database"
  mv job/report.sqlite job/report.nsys-rep
  refused "nsys export --type sqlite makes a file of it"
  rm job/report.nsys-rep
  nsys job/a.sqlite
  nsys job/b.sqlite
  refused "says no rank; name it after its rank, as in rank3.sqlite"
  rm job/*
  nsys job/report.sqlite kind=text
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr == *"1 events without start or duration, left out"* ]]
}

dpro() { python3 "$BATS_TEST_DIRNAME/../support/dpro.py" "$@"; }

@test "dPRO's folders: computing, negotiation, chunks around the ring, update" {
  dpro job
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $output == "2 ranks, 48 ops, 24 messages, 4 steps of ranks: job.h5" ]]
  [[ $stderr == *"host1/1: rank 1: sizes of messages are not recorded"* && $stderr != *"by the order of the folders"* ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"4 collectives, 8 transfers; unmatched: 0 collectives, 0 transfers"* && $output == *"host1 "* ]]
  [[ $(times_of job.h5) == "[760000,760000,760000,760000]" ]]
  # Without the slower backward op of rank 1 the negotiation ends 50 us sooner, and all behind it.
  "$PACELINE" replay job.h5 --scale 'op:grad1=0.8' --json | jq -e '.steps[0].what_if_s * 1e9 | round == 710000'
  # Faster links shorten the two chunk steps only.
  "$PACELINE" replay job.h5 --scale link=2 --json | jq -e '.steps[0].what_if_s * 1e9 | round == 660000'
}

@test "dPRO's folders: chunks along a tree, whose messages do not say whose they are" {
  dpro job tree=1
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $stderr != *"has no other end"* && $stderr != *"all-reduces are taken whole"* ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"4 collectives, 16 transfers; unmatched: 0 collectives, 0 transfers"* ]]
  [[ $(times_of job.h5) == "[760000,760000,760000,760000]" ]]
  # Both chunks reach the root in half of 100 us; what it waited behind them before it copied out stays.
  "$PACELINE" replay job.h5 --scale link=2 --json | jq -e '.steps[0].what_if_s * 1e9 | round == 710000'
  # A later backward op of a leaf holds the root back, and by that the other leaf.
  "$PACELINE" replay job.h5 --scale 'op:grad1=0.8' --json | jq -e '.steps[0].what_if_s * 1e9 | round == 710000'
  # Another number of chunks than the tree has connections: nobody knows whose they are.
  jq '.traceEvents? // . | del(first(.[] | select(.name? == "Comm.<<12>>0+1.SEND")))' job/host0/0/comm_detail.json >cut.json
  mv cut.json job/host0/0/comm_detail.json
  run -0 --separate-stderr "$PACELINE" trace import job -o cut.h5
  [[ $stderr == *"host0/0: rank 0: nccl_rank_graph.json names no ring or tree that its chunks fit"* ]]
}

@test "dPRO's folders with BytePS: pushes, sums on the server, pulls; its clock comes back" {
  dpro job server=1 ahead=-300000
  run -0 --separate-stderr "$PACELINE" trace import job -o job.h5
  [[ $output == "3 ranks, 92 ops, 64 messages, 6 steps of ranks: job.h5" && $stderr == *"server_0 is rank 2"* ]]
  run -0 "$PACELINE" trace check job.h5
  [[ $output == *"0 collectives, 32 transfers; unmatched: 0 collectives, 0 transfers"*"0 of 32 messages arrive before they were sent"* ]]
  "$PACELINE" trace check job.h5 --json | jq -e '.clocks[2] | .host == "server_0" and (.offset_ns | round == 300000000)'
  [[ $(times_of job.h5) == "[970000,970000,970000,970000]" ]]
  # All wait for the second worker's gradients, the first of which would be ready 30 us sooner.
  "$PACELINE" replay job.h5 --step 0 --scale 'op:grad1=0.8' --json | jq -e '.what_if_s * 1e9 | round == 940000'
  # The last sum and copy are on the way of everything behind them.
  "$PACELINE" replay job.h5 --step 0 --scale 'op:*COPY_MERGED=2' --scale 'op:*SUM=2' --json | jq -e '.what_if_s * 1e9 | round > 970000'
  "$PACELINE" diagnose job.h5 --json | jq -e '[.changes[] | .change] | index("links twice as fast") != null'
  # Without the servers' own timeline the sums are pauses.
  rm job/server_timeline.json
  truncate -s -60 job/comm_timeline.json
  run -0 --separate-stderr "$PACELINE" trace import job -o part.h5
  [[ $stderr == *"what servers did with what they got is not known"*"end too early; read as far as they go"*"begins without an end"* ]]
  run -0 "$PACELINE" replay part.h5
}

@test "dPRO's folders with BytePS, bad input: one line, nothing written" {
  dpro job server=1
  sed 's/worker_0/walker_0/g; s/worker_1/walker_1/g' job/comm_timeline.json >other && mv other job/comm_timeline.json
  refused "job/comm_timeline.json: no push or pull in it"
  rm -r job/host0 job/host1
  refused "BytePS' timeline alone; the workers' folders beside it"
  dpro job server=1
  mkdir job/again && cp job/comm_timeline.json job/again/
  refused "comm_timeline.json is in more than one folder"
}

@test "dPRO's folders: without rings or chunks all-reduces are whole; damage is said" {
  dpro job rings=0
  run -0 --separate-stderr "$PACELINE" trace import job -o a.h5
  [[ $stderr == *"nccl_rank_graph.json names no ring or tree that its chunks fit"* && $output == "2 ranks, 36 ops, 12 messages, 4 steps of ranks: a.h5" ]]
  rm -r job
  dpro job chunks=0
  run -0 --separate-stderr "$PACELINE" trace import job -o b.h5
  [[ $stderr == *"host0/0: rank 0: has no comm_detail.json"* && $output == "2 ranks, 36 ops, 12 messages, 4 steps of ranks: b.h5" ]]
  [[ $(times_of b.h5) == "[760000,760000,760000,760000]" ]]
  truncate -s -330 job/host0/0/comm.json
  mv job/host1/1 job/host1/0
  run -0 --separate-stderr "$PACELINE" trace import job -o c.h5
  [[ $stderr == *"a file ends too early; read as far as it goes"* && $stderr == *"host1/0: taken as rank 1, by the order of the folders"* ]]
  [[ $stderr == *"events without a date, an end or a beginning, left out"* ]]
  sed -i 's/"ts": 1460.5/"ts": "soon"/' job/host1/0/comm.json
  refused "'ts' of an event is 'soon', which is no time in microseconds"
  echo '{}' >job/host1/0/comm.json
  echo '{"traceEvents": []}' | gzip >job/host1/0/trace.json.gz
  refused "no op of a GPU (process '/device:GPU', thread 'TensorFlow Ops') and no message in it"
}
