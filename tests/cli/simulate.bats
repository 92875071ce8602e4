#!/usr/bin/env bats
# paceline simulate: what it prints, the timeline it writes, and one message and exit status 2 for what is wrong.
bats_require_minimum_version 1.5.0

platform=platforms/amp-homogeneous.xml
model=workloads/models/gpt2-345m.json
strategy=pp=4,dp=4,tmp=1,mbs=1,assign=0:9:15:21:30

setup() {
  dir=$(mktemp -d)
}

teardown() {
  rm -rf "$dir"
}

simulate() {
  run "$PACELINE" simulate --platform "$platform" --model "$model" --gbs 32 --strategy "$strategy" "$@"
}

# python <code>: reads $dir/out as `text`; Debian's own python.
python() {
  /usr/bin/python3 - "$dir" <<<"import json, sys
dir = sys.argv[1]
$1"
}

# Exit status 2, one line on stderr that contains $1, nothing on stdout, no file left in $dir.
refuses() {
  local says=$1
  shift
  rm -rf "$dir"/* "$dir.out" "$dir.err"
  local status=0
  "$PACELINE" simulate "$@" >"$dir.out" 2>"$dir.err" || status=$?
  local lines out left
  lines=$(wc -l <"$dir.err")
  out=$(wc -c <"$dir.out")
  left=$(ls -A "$dir")
  if [ "$status" -ne 2 ] || [ "$lines" -ne 1 ] || [ "$out" -ne 0 ] || [ -n "$left" ] || ! grep -qF -- "$says" "$dir.err"; then
    echo "simulate $*: status $status, $lines lines, $out bytes printed, left '$left', wanted '$says':"
    cat "$dir.err"
    rm -f "$dir.out" "$dir.err"
    return 1
  fi
  rm -f "$dir.out" "$dir.err"
}

@test "prints time, throughput, MFU, a breakdown, memory per stage and the busiest link" {
  simulate
  [ "$status" -eq 0 ]
  for words in "iteration time" throughput MFU compute "tensor communication" "pipeline communication" \
    "data communication" bubble parameters gradients optimizer activations buffers "busiest link" \
    "4 device classes for 16 devices"; do
    [[ "$output" == *"$words"* ]] || { echo "no '$words' in: $output"; return 1; }
  done
  [[ "$output" == *"assign=0:9:15:21:30"* ]]
}

@test "the example of --help runs as it stands" {
  command=$("$PACELINE" simulate --help | sed -n '/^Example:/,$p' | grep -A3 'paceline simulate' | tr '\\\n' '  ' |
    sed 's/.*paceline simulate\(.*recompute=full\).*/\1/')
  [ -n "$command" ]
  # shellcheck disable=SC2086
  run "$PACELINE" simulate $command
  [ "$status" -eq 0 ]
}

@test "--json has the columns of the result row, in order, with numbers as numbers, and adds up" {
  simulate --json
  [ "$status" -eq 0 ]
  echo "$output" >"$dir/out"
  sed -n '/define PL_RESULT_COLUMNS/,/^$/p' core/graph/result.h |
    sed -n 's/^ *X(\([a-z0-9]*\), \([a-z0-9_]*\),.*/\1 \2/p' >"$dir/columns"
  python '
row = json.load(open(dir + "/out"))
columns = [line.split() for line in open(dir + "/columns")]
assert len(columns) > 30
names = [name for kind, name in columns] + ["status"]
assert [key for key in row if key in names] == names, [key for key in row]
for kind, name in columns:
    if kind in ("i32", "i64"): assert type(row[name]) is int, name
    if kind == "f64": assert isinstance(row[name], (int, float)), name
    if kind.startswith("text") or kind == "u64": assert type(row[name]) is str, name
assert (row["pp"], row["dp"], row["tmp"], row["mbs"], row["n_microbatches"]) == (4, 4, 1, 1, 8)
assert row["assign"] == "0:9:15:21:30" and row["schedule"] == "1f1b" and row["status"] == "done" and row["fits"] == 1
parts = sum(row[n] for n in ("compute_s", "tensor_comm_s", "pipeline_comm_s", "data_comm_s", "context_comm_s", "expert_comm_s", "bubble_s"))
assert abs(parts - row["iter_time_s"]) < 1e-9 * row["iter_time_s"]
assert abs(row["samples_per_s"] * row["iter_time_s"] - 32) < 1e-9
assert abs(row["tokens_per_s"] - 1024 * row["samples_per_s"]) < 1e-6
assert len(row["stages"]) == 4
for stage in row["stages"]:
    kinds = sum(stage["mem_%s_bytes" % k] for k in ("parameters", "gradients", "optimizer", "activations", "buffers"))
    assert abs(kinds - stage["peak_mem_bytes"]) <= 1
worst = row["stages"][row["peak_stage"]]
assert all(worst[key] == row[key] for key in worst if key.endswith("_bytes"))
for stage in row["stages"]: # of its busiest device: in ticks, which doubles hold exactly
    assert sum(stage[n] for n in ("compute_s", "tensor_comm_s", "pipeline_comm_s", "data_comm_s", "context_comm_s", "expert_comm_s", "bubble_s")) == row["iter_time_s"]
'
}

@test "the same command gives the same bytes; --digest is the digest of --json" {
  simulate --digest
  [ "$status" -eq 0 ]
  first=$output
  simulate --digest
  [ "$output" = "$first" ]
  digest=$(sed -n 's/^run digest  *//p' <<<"$first")
  [ ${#digest} -eq 16 ]
  simulate --json
  [[ "$output" == *"\"run_digest\": \"$digest\""* ]]
}

@test "without folding and fusing the row is the same, but for classes, tasks and the digest of the run" {
  simulate --json
  grep -vE 'n_classes|n_tasks|run_digest|n_transfer_classes|n_events|bottleneck' <<<"$output" >"$dir/folded"
  simulate --json --no-fold --no-fuse
  [ "$status" -eq 0 ]
  [[ "$output" == *'"n_classes": 16'* ]]
  grep -vE 'n_classes|n_tasks|run_digest|n_transfer_classes|n_events|bottleneck' <<<"$output" >"$dir/whole"
  diff "$dir/folded" "$dir/whole"
}

@test "every network, sharing, form, algorithm and stream policy runs" {
  for options in "--network analytic" "--network simgrid" "--network simgrid --sharing rtt" "--sharing rtt" \
    "--collectives chunked" "--algorithm ring" "--algorithm tree" "--algorithm hierarchical" "--algorithm direct" \
    "--streams ready" "--attention unfused" "--dtype fp32" "--bucket-bytes 1MB" "--pipeline-sends whole" "--no-fold" "--no-fuse"; do
    # shellcheck disable=SC2086
    simulate $options
    [ "$status" -eq 0 ] || { echo "$options: $output"; return 1; }
  done
}

@test "--print-program prints one op list per stage" {
  simulate --print-program
  [ "$status" -eq 0 ]
  for words in "program gpt2-345m" "stage 0: 4 devices" "stage 3: 4 devices" "blocks 9 to 14" "send 2 MiB to stage 1" \
    "gemm[" "all_reduce[data]" optimizer "iteration time"; do
    [[ "$output" == *"$words"* ]] || { echo "no '$words'"; return 1; }
  done
  refuses "leave out --json" --platform $platform --model $model --gbs 32 --strategy $strategy --print-program --json
}

@test "out of memory is a result, not an error" {
  run "$PACELINE" simulate --platform platforms/dgx-1v.xml --model workloads/models/gpt3-175b.json --gbs 8 --seq 2048 \
    --strategy pp=8,dp=1,tmp=1,mbs=1 --json
  [ "$status" -eq 0 ]
  [[ "$output" == *'"fits": 0'* && "$output" == *'"status": "oom"'* ]]
  run "$PACELINE" simulate --platform platforms/dgx-1v.xml --model workloads/models/gpt3-175b.json --gbs 8 --seq 2048 \
    --strategy pp=8,dp=1,tmp=1,mbs=1
  [[ "$output" == *"OUT OF MEMORY"* ]]
}

# The rules of the trace event format: every X event has a duration that is not negative, a process and a thread that
# metadata names, and on one thread two events are nested or apart. Perfetto drops what breaks them.
@test "--trace is a Chrome trace: named processes and threads, durations, nothing half overlapping" {
  for options in "" "--no-fold --no-fuse" "--network simgrid" "--streams ready"; do
    # shellcheck disable=SC2086
    simulate --trace "$dir/out.json" --force $options --json
    [ "$status" -eq 0 ] || { echo "$options: $output"; return 1; }
    echo "$output" >"$dir/out"
    python '
trace = json.load(open(dir + "/out.json"))
row = json.load(open(dir + "/out"))
events = trace["traceEvents"] if isinstance(trace, dict) else trace
processes, threads, tracks = {}, {}, {}
for event in events:
    assert event["ph"] in ("X", "M", "C", "s", "f"), event
    if event["ph"] == "M":
        if event["name"] == "process_name": processes[event["pid"]] = event["args"]["name"]
        if event["name"] == "thread_name": threads[event["pid"], event["tid"]] = event["args"]["name"]
    if event["ph"] == "X":
        assert event["name"] and event["dur"] >= 0 and event["ts"] >= 0, event
        tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -event["dur"]))
assert len(processes) == row["n_classes"] and all(processes.values())
assert set(tracks) <= set(threads)
end = 0
for track, spans in tracks.items():
    open_until = []
    for start, minus in sorted(spans):
        while open_until and open_until[-1] <= start + 1e-6: open_until.pop()
        assert not open_until or start - minus <= open_until[-1] + 1e-6, (track, start, minus)
        open_until.append(start - minus)
        end = max(end, start - minus)
assert abs(end - row["iter_time_s"] * 1e6) < 1e-3 * end, (end, row["iter_time_s"])
assert len(tracks) > 4
'
  done
}

@test "--trace-microbatches: what is no window of the timeline is refused" {
  for window in x 3-1 -1-2 1-2x ""; do
    refuses "--trace-microbatches: '$window' is neither a microbatch (3) nor a range (0-3)" --platform $platform --model $model --gbs 32 --strategy $strategy \
      --trace "$dir/out.json" --trace-microbatches="$window"
  done
  refuses "there are microbatches 0 to " --platform $platform --model $model --gbs 32 --strategy $strategy --trace "$dir/out.json" --trace-microbatches 1000
  refuses "add --trace FILE" --platform $platform --model $model --gbs 32 --strategy $strategy --trace-microbatches 0
}

@test "--trace refuses to overwrite without --force, and leaves the old file alone" {
  echo old >"$dir/out.json"
  run "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy --trace "$dir/out.json"
  [ "$status" -eq 2 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" == *"$dir/out.json exists; --force replaces it"* ]]
  [ "$(cat "$dir/out.json")" = old ]
  simulate --trace "$dir/out.json" --force
  [ "$status" -eq 0 ]
  [ "$(head -c 1 "$dir/out.json")" = "{" ]
  [ "$(ls "$dir")" = out.json ]
  ln -s nowhere "$dir/link.json" # a link counts as a file that is there
  run "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy --trace "$dir/link.json"
  [ "$status" -eq 2 ]
}

@test "--trace to a pipe or a device writes to it and leaves it where it is" {
  mkfifo "$dir/pipe"
  head -c 1 "$dir/pipe" >"$dir/first" &
  simulate --trace "$dir/pipe" --force
  wait
  [ -p "$dir/pipe" ]
  [ "$(cat "$dir/first")" = "{" ]
  simulate --trace /dev/null --force
  [ "$status" -eq 0 ]
  [ -c /dev/null ]
}

@test "a full disk is an error with one message and no half file" {
  status=0
  "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy >/dev/full 2>"$dir/err" || status=$?
  [ "$status" -eq 1 ]
  [ "$(wc -l <"$dir/err")" -eq 1 ]
  grep -q "No space left" "$dir/err"
  run "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy --trace /dev/full
  [ "$status" -eq 1 ]
  [[ "$output" == *"cannot write /dev/full: No space left on device"* ]]
  mkdir "$dir/small"
  mount -t tmpfs -o size=8k tmpfs "$dir/small" 2>/dev/null || skip "cannot mount a small file system here"
  run "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy --trace "$dir/small/out.json"
  left=$(ls -A "$dir/small")
  umount "$dir/small"
  [ "$status" -eq 1 ]
  [[ "$output" == *"No space left on device"* ]]
  [ -z "$left" ]
}

@test "missing and non-numeric options: one line, status 2, nothing written" {
  refuses "--platform is missing: a file, or a name" --model $model --gbs 32 --strategy $strategy
  refuses "--model is missing: a config.json, or a name" --platform $platform --gbs 32 --strategy $strategy
  refuses "--gbs N is missing" --platform $platform --model $model --strategy $strategy
  refuses "--strategy is missing" --platform $platform --model $model --gbs 32
  for option in gbs seq; do
    for value in x "" 0 -1 1.5 1e3 99999999999999999999 "32 " 0x20; do
      refuses "--$option" --platform $platform --model $model --gbs 32 --strategy $strategy "--$option" "$value" \
        --trace "$dir/out.json"
    done
  done
  refuses "--bucket-bytes" --platform $platform --model $model --gbs 32 --strategy $strategy --bucket-bytes lots
  for option in network sharing collectives algorithm streams attention dtype pipeline-sends; do
    refuses "--$option: 'nonsense' is unknown" --platform $platform --model $model --gbs 32 --strategy $strategy \
      "--$option" nonsense --trace "$dir/out.json"
  done
  for dtype in bf16 tf32; do # on T4
    refuses "--dtype $dtype: T4 does not compute in it; what every GPU here does: fp32, fp16" --platform $platform --model $model \
      --gbs 32 --strategy $strategy --dtype $dtype
  done
  refuses "--fp8: A100-SXM4-80GB does not compute in it" --platform platforms/dgx-a100.xml \
    --model workloads/models/gpt2-345m.json --gbs 8 --fp8 --strategy pp=1,dp=8,tmp=1,mbs=1
  refuses "--dtype: 'fp8' is not supported for training; choose one of fp32, tf32, fp16, bf16" --platform platforms/dgx-h100.xml \
    --model $model --gbs 32 --strategy pp=1,dp=8,tmp=1,mbs=1 --dtype fp8
  refuses "exceeds the model's 1024 learned positions" --platform $platform --model $model --gbs 32 --strategy $strategy \
    --seq 2048
}

@test "a trace does not overwrite an input, not even with --force" {
  cp $model "$dir/model.json"
  run "$PACELINE" simulate --platform $platform --model "$dir/model.json" --gbs 32 --strategy $strategy --trace "$dir/model.json" --force
  [ "$status" -eq 2 ]
  [[ "$output" == *"is an input of this command"* ]]
  cmp $model "$dir/model.json"
}

@test "unknown options and stray words are status 2" {
  simulate --nonsense
  [ "$status" -eq 2 ]
  simulate stray
  [ "$status" -eq 2 ]
  simulate --gbs
  [ "$status" -eq 2 ]
}

@test "ep_overlap is said as results, spaces and strategies say it" {
  digest() { "$PACELINE" simulate --platform dgx-h100:2 --model mixtral-8x7b --gbs 64 --json --strategy "pp=1,dp=16,tmp=1,mbs=1,ep=8,ep_overlap=$1" | jq -r .run_digest; }
  [ "$(digest on)" = "$(digest 1)" ]
  [ "$(digest off)" = "$(digest 0)" ]
  [ "$(digest 2)" = "$(digest delayed)" ]
  [ "$(digest on)" != "$(digest off)" ]
}

@test "strategies that do not hold: one line, status 2, nothing written" {
  bad() {
    refuses "$1" --platform $platform --model $model --gbs 32 --strategy "$2" --trace "$dir/out.json"
  }
  bad "= 15, but the platform has 16 devices" pp=5,dp=3,tmp=1,mbs=1
  bad "9 comes after 15" pp=4,dp=4,tmp=1,mbs=1,assign=0:15:9:21:30
  bad "ends at 31" pp=4,dp=4,tmp=1,mbs=1,assign=0:9:15:21:31
  bad "dp=4 * mbs=3 = 12 does not divide the global batch of 32 sequences; choose mbs" pp=4,dp=4,tmp=1,mbs=3
  bad "dp=3 does not divide the global batch of 32 sequences; choose a dp that does or another --gbs, or say with split=" pp=4,dp=3,tmp=1,mbs=1,idle=1
  bad "unknown key 'stages'" stages=4,dp=4,tmp=1,mbs=1
  bad "mbs is missing" pp=4,dp=4,tmp=1
  bad "mbs" pp=4,dp=4,tmp=1,mbs=one
  bad "not key=value" ""
  bad "zero=3" pp=4,dp=4,tmp=1,mbs=1,zero=3,schedule=zb-h1
  bad "needs tmp > 1" pp=4,dp=4,tmp=1,mbs=1,sp=1
  bad "ep=1 exchanges none; use ep > 1 or ep_overlap=0" pp=1,dp=16,tmp=1,mbs=1,ep_overlap=1
  bad "ep_overlap='4': 0, 1 (a pass beside another), delayed" pp=1,dp=16,tmp=1,mbs=1,ep_overlap=4
}

@test "memory of more bytes than integers count is refused before anything is added up" {
  job="--platform dgx-h100 --model llama-2-7b --gbs 524288 --framework deepspeed --attention unfused"
  run -2 "$PACELINE" simulate $job --seq 1048576 --strategy pp=1,dp=8,mbs=65536
  [[ ${#lines[@]} == 1 && $output == *"llama-2-7b: mbs=65536, seq=1048576: a pass of a block takes "*" bytes with its whole attention matrix, more than can be counted; use fewer sequences or shorter ones" ]]
  run -0 "$PACELINE" simulate --platform dgx-h100 --model llama-2-7b --gbs 8 --framework deepspeed --attention unfused --seq 65536 --strategy pp=1,dp=8,mbs=1
  [[ $output == *"memory           DOES NOT FIT"* ]] # what only does not fit is simulated
}

# Every stage of this one has gradients of 70 different sizes; the assignment is longer than its column, and says so.
@test "many uneven chunks: no limit on the sizes of a communicator, a cut assignment is marked" {
  python '
sizes = [size for size in range(1, 71) for stage in range(2)]
assign = [sum(sizes[:i]) for i in range(141)]
json.dump({"model_type": "gpt2", "n_embd": 64, "n_layer": assign[-1], "n_head": 8, "n_positions": 128, "vocab_size": 1000},
          open(dir + "/deep.json", "w"))
open(dir + "/strategy", "w").write("pp=2,dp=4,tmp=1,mbs=1,vpp=70,assign=" + ":".join(map(str, assign)))
'
  run "$PACELINE" simulate --platform platforms/hc1.xml --model "$dir/deep.json" --gbs 8 --dtype fp32 --bucket-bytes 1TB \
    --strategy "$(cat "$dir/strategy")" --json
  [ "$status" -eq 0 ]
  [[ "$output" == *'"assign": "0:1:2:4:6:9:12:'*'..."'* ]]
}

@test "broken models and platforms: file and line, one line, status 2, nothing written" {
  files=$(mktemp -d)
  bad() { # message, platform, model
    refuses "$1" --platform "$2" --model "$3" --gbs 32 --strategy $strategy --trace "$dir/out.json"
  }
  bad nope.xml nope.xml $model
  bad nope.json $platform nope.json
  echo '{"model_type": "gpt2", "n_embd": 1024' >"$files/cut.json"
  bad "$files/cut.json:" $platform "$files/cut.json"
  echo '{"model_type": "gpt2", "n_embd": 1024, "n_head": 16, "n_positions": 1024, "vocab_size": 50257}' >"$files/key.json"
  bad "n_layer" $platform "$files/key.json"
  echo '{"model_type": "mamba"}' >"$files/arch.json"
  bad "mamba" $platform "$files/arch.json"
  sed 's/<host /<hots /' $platform >"$files/broken.xml"
  bad "$files/broken.xml:" "$files/broken.xml" $model
  head -c 400 $platform >"$files/short.xml"
  bad "$files/short.xml" "$files/short.xml" $model
  sed '0,/value="T4"/s//value="T9"/' $platform >"$files/device.xml"
  bad "T9" "$files/device.xml" $model
  bad "$dir" "$dir" $model
  rm -rf "$files"
}

@test "a collective profile: the default, one's own, none" {
  cp "$platform" "$dir/p.xml"
  mkdir "$dir/collectives"
  sed 's/"launch_us": [0-9.]*/"launch_us": 5000/' platforms/collectives/nccl.json >"$dir/slow.json"
  time_of() { simulate "$@" --json | jq .iter_time_s; }
  simulate() { "$PACELINE" simulate --platform "$platform" --model "$model" --gbs 32 --strategy pp=1,dp=4,tmp=4,mbs=2 "$@"; }
  local shipped ideal slow beside
  shipped=$(time_of)
  [ "$shipped" = "$(time_of --collective-profile platforms/collectives/nccl.json)" ]
  ideal=$(time_of --collective-profile ideal)
  slow=$(time_of --collective-profile "$dir/slow.json")
  jq -e -n "$ideal < $shipped and $shipped < $slow"
  cp "$dir/slow.json" "$dir/collectives/nccl.json" # beside the platform: taken by itself
  PACELINE_DEVICES=$PWD/platforms/devices platform=$dir/p.xml beside=$(PACELINE_DEVICES=$PWD/platforms/devices platform=$dir/p.xml time_of)
  [ "$beside" = "$slow" ]
  [ "$(time_of --collectives chunked)" = "$(time_of --collectives chunked --collective-profile ideal)" ]
}

@test "a collective profile that is wrong" {
  local rest=(--platform "$platform" --model "$model" --gbs 32 --strategy "$strategy")
  refuses "nosuch.json" "${rest[@]}" --collective-profile nosuch.json
  refuses "--collective-profile own.json: chunked collectives, which --network simgrid plays too, are always ideal; leave it out" \
    "${rest[@]}" --collective-profile own.json --network simgrid
  sed 's/"rate": 0\.[0-9]*/"rate": 1.2/' platforms/collectives/nccl.json >"$BATS_TEST_TMPDIR/rate.json"
  local line
  line=$(grep -n '"rate": 1.2' "$BATS_TEST_TMPDIR/rate.json" | head -1 | cut -d: -f1)
  refuses "rate.json:$line:" "${rest[@]}" --collective-profile "$BATS_TEST_TMPDIR/rate.json"
  refuses ": rate is 1.2: it must be from 1e-06 to 1" "${rest[@]}" --collective-profile "$BATS_TEST_TMPDIR/rate.json"
}

@test "context and expert parallelism: in the program, the breakdown and the row" {
  local job=(--platform platforms/dgx-h100.xml --model workloads/models/mixtral-8x7b.json --gbs 16 --seq 4096 --dtype bf16)
  run "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=2,tmp=2,cp=2,ep=8,mbs=1,sp=1,zero=1 --print-program
  [ "$status" -eq 0 ]
  [[ $output == *"all_gather[context] 8 MiB begins("* ]]
  [[ $output == *"# attention_last, awaits the exchange"* ]]
  [[ $output == *"all_to_all[expert] 16 MiB("* ]]
  [[ $output == *"context communication "* && $output == *"expert communication "* ]]
  [[ $output == *"start reducing gradients: reduce_scatter[data]"* ]]
  [[ $output != *"expert_data"* ]] # no two ranks hold the same experts
  run "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=2,tmp=2,cp=2,ep=4,mbs=1,sp=1,zero=1 --print-program
  [[ $output == *"start reducing gradients: reduce_scatter[expert_data]"* ]]
  "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=2,tmp=2,cp=2,cp_comm=gather,ep=8,mbs=1,sp=1 --fp8 --json >"$dir/out"
  python '
row = json.load(open(dir + "/out"))
assert (row["cp"], row["ep"], row["dp"], row["fp8"]) == (2, 8, 2, True)
assert row["context_comm_s"] > 0 and row["expert_comm_s"] > 0
'
  refuses "pp=1 * dp=1 * tmp=2 * cp=2 = 4, but the platform has 8" "${job[@]}" --strategy pp=1,dp=1,tmp=2,cp=2,mbs=1,sp=1
  refuses "ep=3 does not divide the dp * cp * tmp = 8 ranks" "${job[@]}" --strategy pp=1,dp=8,tmp=1,ep=3,mbs=1
  refuses "need sequence parallelism (sp=1)" "${job[@]}" --strategy pp=1,dp=4,tmp=2,mbs=1
  refuses "cp=8 cuts a sequence into 16 chunks" --platform platforms/dgx-h100.xml --model workloads/models/llama-3-8b.json --gbs 16 --seq 1000 --strategy pp=1,dp=1,tmp=1,cp=8,mbs=1
  refuses "has no experts" --platform platforms/dgx-h100.xml --model workloads/models/llama-3-8b.json --gbs 16 --strategy pp=1,dp=8,tmp=1,ep=2,mbs=1
  refuses "--fp8: A100-SXM4-80GB does not compute in it" --platform platforms/dgx-a100.xml --model workloads/models/llama-3-8b.json --gbs 16 --fp8 --strategy pp=1,dp=8,tmp=1,mbs=1
}

@test "--vary tabulates variations, each the same run as on a platform file written that way" {
  "$PACELINE" platform make g4dn.12xlarge --nodes 4 --nic-rate 100Gbps -o "$dir/fast.xml"
  cp -r platforms/collectives platforms/devices "$dir"
  simulate --vary link:nic+fabric.bandwidth=25Gbps,x2
  [ "$status" -eq 0 ]
  [ "$(grep -c '^link:nic+fabric.bandwidth=' <<<"$output")" -eq 2 ]
  [[ "$output" == *"as it is"*1.000* ]]
  simulate --vary link:nic+fabric.bandwidth=25Gbps,x2 --json
  printf '%s' "$output" >"$dir/out"
  platform=$dir/fast.xml simulate --json
  printf '%s' "$output" >"$dir/fast"
  python "
out, fast = json.load(open(dir + '/out')), json.load(open(dir + '/fast'))
slow, double = out['variations']
assert double['variation'] == {'link:nic+fabric.bandwidth': 'x2'}, double
for name in ('iter_time_s', 'run_digest', 'peak_mem_bytes'):
    assert double[name] == fast[name], (name, double[name], fast[name])
assert slow['iter_time_s'] > out['iter_time_s'] > double['iter_time_s']
assert slow['ratio_to_base'] == slow['iter_time_s'] / out['iter_time_s']
assert len({out['platform_digest'], slow['platform_digest'], double['platform_digest']}) == 3"
}

@test "--vary: a dp that is left out takes the devices of every variation" {
  left_out=pp=4,tmp=1,mbs=1
  run -0 "$PACELINE" simulate --platform "$platform" --model "$model" --gbs 32 --strategy $left_out --vary nodes=2,4 --json
  printf '%s' "$output" >"$dir/out"
  python "
out = json.load(open(dir + '/out'))
assert out['dp'] == 4, out['dp']
two, four = out['variations']
assert two['iter_time_s'] > four['iter_time_s'] == out['iter_time_s'], (two, four)"
}

@test "--vary: what cannot be varied is one message" {
  local job=(--platform "$platform" --model "$model" --gbs 32 --strategy "$strategy")
  refuses "no link of the kind 'nvlink'; its kinds are: pcie, cpu, nic, fabric" "${job[@]}" --vary link:nvlink.bandwidth=x2
  refuses "'100' has no unit" "${job[@]}" --vary link:nic.bandwidth=100
  refuses "--vary nodes=2: " "${job[@]}" --vary nodes=2
  refuses "leave out --trace" "${job[@]}" --vary nodes=4 --trace "$dir/t.json"
  refuses "use --network flow" "${job[@]}" --vary nodes=4 --network simgrid --no-fold
}

@test "assign=optimal and assign=amp-dp print the boundaries that they found, which give the same run again" {
  for recipe in optimal amp-dp; do
    strategy=pp=4,dp=4,tmp=1,mbs=1,assign=$recipe
    simulate
    [ "$status" -eq 0 ]
    found=$(grep -o 'assign=[0-9:]*' <<<"$output")
    [[ $found =~ ^assign=0(:[0-9]+){3}:24$ ]]
    time=$(grep 'iteration time' <<<"$output")
    strategy=pp=4,dp=4,tmp=1,mbs=1,$found
    simulate
    [ "$time" = "$(grep 'iteration time' <<<"$output")" ]
  done
}

@test "a trace of experts, context and a late host: every event has a name, a category and a colour" {
  "$PACELINE" platform make dgx-a100 --nodes 2 -o "$dir/two.xml"
  run "$PACELINE" simulate --platform "$dir/two.xml" --model workloads/models/qwen3-30b-a3b.json --gbs 8 --seq 2048 \
    --dtype bf16 --framework megatron-core --strategy pp=1,dp=4,tmp=2,cp=2,ep=4,mbs=1,sp=1,recompute=full --trace "$dir/t.json"
  [ "$status" -eq 0 ]
  ! grep -q '(null)' "$dir/t.json"
  for category in host expert context; do grep -q "\"cat\":\"$category\"" "$dir/t.json"; done
  rm "$dir/t.json" "$dir/two.xml"
}

@test "assign=filled cuts a network without transformer layers by their number" {
  run "$PACELINE" simulate --platform platforms/hc1.xml --model workloads/models/vgg-16.json --gbs 64 --dtype fp32 \
    --strategy pp=2,dp=4,tmp=1,mbs=2,assign=filled
  [[ $status == 0 && $output == *"assign=0:8:17"* && $output == *"iteration time   259.4 ms"* ]]
}

@test "a cycle of many microbatches is found, and what does not go into it is played" {
  job=(--platform platforms/dgx-a100-16.xml --model workloads/models/gpt3-175b.json --seq 2048 --json
    --strategy pp=7,dp=2,tmp=8,mbs=1,assign=balanced,idle=1)
  for gbs in 120 362 722; do # 60, 181 and 361 microbatches
    run "$PACELINE" simulate "${job[@]}" --gbs "$gbs"
    played=$(sed -n 's/.*"n_played_microbatches": //p' <<<"$output")
    [ "${played%,}" -gt 20 ] && [ "${played%,}" -lt 60 ]
    grep -vE 'n_tasks|run_digest|n_played' <<<"$output" >"$dir/leapt"
    run "$PACELINE" simulate "${job[@]}" --gbs "$gbs" --no-leap
    [ "$status" -eq 0 ]
    grep -vE 'n_tasks|run_digest|n_played' <<<"$output" >"$dir/played"
    diff "$dir/leapt" "$dir/played"
  done
}

@test "a run that is shorter than its cycle, and one that does not settle, are played whole" {
  # The cycle of 20 microbatches above, with 20 and 25 of them; and 64 unlike stages, which drift apart for longer than 192.
  job=(--platform platforms/dgx-a100-16.xml --model workloads/models/gpt3-175b.json --seq 2048 --json --strategy)
  for gbs in 40 50; do
    run "$PACELINE" simulate "${job[@]}" pp=7,dp=2,tmp=8,mbs=1,assign=balanced,idle=1 --gbs "$gbs"
    grep -qE "\"n_played_microbatches\": $((gbs / 2)),?\$" <<<"$output"
  done
  run "$PACELINE" simulate "${job[@]}" pp=64,dp=2,tmp=1,mbs=4,recompute=full --gbs 1536
  grep -qE '"n_played_microbatches": 192,?$' <<<"$output"
}

@test "leaping over microbatches changes nothing but what says what was played" {
  for strategy in pp=4,dp=4,tmp=1,mbs=1 pp=2,dp=4,tmp=2,mbs=1,schedule=interleaved,vpp=2; do
    job=(--platform "$platform" --model "$model" --gbs 512 --strategy "$strategy")
    run "$PACELINE" simulate "${job[@]}" --json
    [ "$status" -eq 0 ]
    played=$(sed -n 's/.*"n_played_microbatches": //p' <<<"$output")
    [ "$played" -lt 64 ]
    grep -vE 'n_tasks|run_digest|n_played' <<<"$output" >"$dir/leapt"
    run "$PACELINE" simulate "${job[@]}" --json --no-leap
    [[ "$output" == *'"n_played_microbatches": 128'* ]]
    grep -vE 'n_tasks|run_digest|n_played' <<<"$output" >"$dir/played"
    diff "$dir/leapt" "$dir/played"
  done
}

@test "replicas of different speeds leap each by itself" {
  job=(--platform platforms/amp-hetero-cluster.xml --model workloads/models/gpt2-345m.json --seq 1024 --gbs 500 --json
    --strategy pp=4,dp=2,tmp=2,mbs=1,split=260:240)
  run "$PACELINE" simulate "${job[@]}"
  played=$(sed -n 's/.*"n_played_microbatches": //p' <<<"$output")
  [ "$played" -lt 60 ]
  grep -vE 'n_tasks|run_digest|n_played' <<<"$output" >"$dir/leapt"
  run "$PACELINE" simulate "${job[@]}" --no-leap
  grep -vE 'n_tasks|run_digest|n_played' <<<"$output" >"$dir/played"
  diff "$dir/leapt" "$dir/played"
}

@test "the entries of the collective profile are said, and a variation keeps them: faster links are not slower" {
  job=(--platform platforms/dgx-a100-16.xml --model workloads/models/gpt2-1.5b.json --gbs 128 --strategy pp=1,dp=128,tmp=1,mbs=1)
  run "$PACELINE" simulate "${job[@]}"
  [[ $status == 0 && $output == *"collectives as   data nvswitch-nvlink3 + infiniband-hdr"* ]]
  run "$PACELINE" simulate "${job[@]}" --vary link:nic+fabric.bandwidth=250Gbps,300Gbps,800Gbps
  [[ $status == 0 && $output == *"collectives as   data nvswitch-nvlink3 + infiniband-hdr, in every variation"* ]]
  [ "$(grep -c '^link:.* 140.1 ms' <<<"$output")" -eq 3 ]
  run "$PACELINE" simulate "${job[@]}" --json
  grep -A4 '"collective_entries"' <<<"$output" | grep -q '"between": "infiniband-hdr"'
}

@test "--sensitivity says how far the time moves when bandwidths change by nothing" {
  strategy=pp=4,dp=4,tmp=1,mbs=1
  simulate --sensitivity
  [[ $status == 0 && $output == *"sensitivity      "*" %, with all bandwidths changed by up to 1 part in 10^9 (8 runs)"* ]]
  simulate --sensitivity --json
  printf '%s' "$output" >"$dir/out"
  python "
out = json.load(open(dir + '/out'))
own = out['sensitivity']
assert own['n_runs'] == 8 and own['iter_time_low_s'] <= out['iter_time_s'] <= own['iter_time_high_s'], own
assert own['iter_time_high_s'] / own['iter_time_low_s'] < 1 + 1e-7, own"
  simulate --sensitivity --vary nodes=4
  [[ $status == 2 && $output == *"--sensitivity is of one run; leave out --vary"* ]]
}

@test "a limit of power acts on what tensor cores sustain" {
  local job=(--platform dgx-h100 --model llama-3-8b --gbs 64 --strategy pp=1,dp=8,tmp=1,mbs=1,zero=3,recompute=selective)
  run -0 "$PACELINE" simulate "${job[@]}" --vary device:H100-SXM5-80GB.power=500W,700W --json
  [ "$(jq -r '[.variations[].iter_time_s] | (.[0] / .[1]) > 1.1' <<<"$output")" = true ] || { jq -c . <<<"$output"; return 1; }
  [ "$(jq -r '.variations[1].iter_time_s' <<<"$output")" = "$("$PACELINE" simulate "${job[@]}" --json | jq .iter_time_s)" ]
  run "$PACELINE" simulate "${job[@]}" --vary device:*.power=50W
  [ "$status" -eq 2 ] && [[ $output == *"50 W are no limit of H100-SXM5-80GB, whose own is 700 W"* ]]
  run "$PACELINE" simulate --platform hc2 --model gpt2-345m --gbs 64 --strategy pp=1,dp=32,tmp=1,mbs=1 --vary device:*.power=200W
  [ "$status" -eq 2 ] && [[ $output == *"has no 'power' of its own"* ]]
}

@test "--trace-ops: passes, layers and transfers of all microbatches, ops of some" {
  "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy --trace "$BATS_TEST_TMPDIR/all.json" >/dev/null
  "$PACELINE" simulate --platform $platform --model $model --gbs 32 --strategy $strategy --trace "$BATS_TEST_TMPDIR/some.json" --trace-ops 1-2 >/dev/null
  /usr/bin/python3 - "$BATS_TEST_TMPDIR" <<'PYTHON'
import json, sys
def events(name):
    return [json.dumps(e) for e in json.load(open(f"{sys.argv[1]}/{name}.json"))["traceEvents"]]
whole, some = events("all"), events("some")
def is_left_out(text):
    e = json.loads(text)
    is_op = e["ph"] == "X" and e["cat"] not in ("pass", "block") and e["tid"] == 1
    return is_op and e["args"].get("microbatch", 1) not in (1, 2)
assert [e for e in whole if e not in set(some)] and all(is_left_out(e) for e in whole if e not in set(some))
kept = set(some)
assert all(e in kept for e in whole if not is_left_out(e)) and kept <= set(whole)
PYTHON
  refuses "--trace-ops: '2-1' is neither a microbatch (3) nor a range (0-3)" --platform $platform --model $model --gbs 32 --strategy $strategy \
    --trace "$dir/out2.json" --trace-ops=2-1
}
