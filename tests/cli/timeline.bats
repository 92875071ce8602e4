# Timelines in Perfetto's own format: read by its schema, they say what the Chrome trace of the same run says.
bats_require_minimum_version 1.5.0

setup() {
  : "${PACELINE:=$BATS_TEST_DIRNAME/../../.build/release/paceline}"
  cd "$BATS_TEST_TMPDIR"
  reader=$BATS_TEST_DIRNAME/../support/perfetto_trace.py
  gpt2=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
}

# same SIMULATE-OPTION ...: slices with names, tracks, dates, figures and depth, arrows and memory are equal in both.
same() {
  "$PACELINE" simulate "$@" --trace t.json --force >/dev/null
  "$PACELINE" simulate "$@" --trace t.pftrace --force >/dev/null
  /usr/bin/python3 "$reader" t.pftrace t.json
}

@test "--trace x.pftrace says what x.json says: schedules, windows, experts, programs, jobs side by side" {
  same "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1
  same "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1,schedule=interleaved,vpp=2
  same "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1,schedule=zb-v
  same "${gpt2[@]}" --strategy pp=4,dp=2,tmp=2,mbs=1,sp=1,recompute=full --framework megatron-core
  same "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace-microbatches 1-2
  same "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace-ops 0
  same --platform dgx-a100:2 --model qwen3-30b-a3b --gbs 8 --seq 2048 --dtype bf16 --framework megatron-core \
    --strategy pp=1,dp=4,tmp=2,cp=2,ep=4,mbs=1,sp=1,recompute=full
  same --platform hc1 --model vgg-16 --gbs 64 --strategy vgg-owt.yaml
  printf '%s\n' 'model: gpt2-345m' 'gbs: 16' 'seq: 1024' 'strategy: pp=1,dp=8,tmp=1,mbs=1' >other.yaml
  same --platform amp-p3-4 --model gpt2-345m --gbs 16 --seq 1024 --strategy pp=1,dp=8,tmp=1,mbs=1,placement=0-1:4-5:8-9:12-13 --beside other.yaml
}

@test "--trace of a program: a process stands for devices that are alike, with all that --no-fold shows of each" {
  cat >compare.py <<'E'
import json, re, sys
def read(path):
    events = json.load(open(path))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    found = {name: [] for name in names.values()}
    for e in events:
        if e["ph"] == "X": found[names[e["pid"]]].append((e["ts"], e["dur"], threads[e["pid"], e["tid"]], e["name"]))
    return found
folded, whole = read(sys.argv[1]), read(sys.argv[2])
assert len(folded) < len(whole), (len(folded), len(whole))
assert sum(int(re.search(r"stands for (\d+) devices", name).group(1)) for name in folded) == len(whole)
for name, events in folded.items():
    one = re.sub(r" \(.*", "", name)
    assert events and sorted(events) == sorted(whole[one]), name
E
  for strategy in pp=2,tmp=2,dp=2,sp=1,mbs=1,zero=1 pp=2,tmp=1,dp=4,mbs=1,schedule=dualpipe pp=1,tmp=1,dp=8,mbs=1,zero=3; do
    for fold in '' --no-fold; do
      "$PACELINE" simulate --as-program --platform dgx-a100 --model gpt2-345m --gbs 32 --strategy $strategy --trace t$fold.json --force $fold >/dev/null
    done
    /usr/bin/python3 compare.py t.json t--no-fold.json
  done
  job=(--as-program --platform dgx-a100 --model gpt2-345m --gbs 32 --strategy pp=2,tmp=2,dp=2,sp=1,mbs=1)
  # As traces of tuples: work of ops, layers, sends with those who send and receive, arrows to the passes that wait.
  cat >full.py <<'E'
import json, sys
from collections import Counter
def read(path):
    trace = json.load(open(path))
    events = trace["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    blocks = {e["name"] for e in slices if e["cat"] == "block"}
    flops = sum(e["args"].get("flops", 0) for e in slices if e["args"]["category"] == "forward")
    sends = Counter((e["pid"], e["args"]["bytes"], len(e["args"]["peers"])) for e in slices if e["cat"] == "pipeline")
    return blocks, flops, sends, sum(e["ph"] == "f" for e in events), {k: v for k, v in trace["otherData"].items() if k != "command"}
program, of_tuple = read(sys.argv[1]), read(sys.argv[2])
assert program[0] >= {"embedding", "loss"} | {f"layer {i}" for i in range(24)}, program[0]
assert of_tuple[0] - program[0] <= {"head"}, of_tuple[0] - program[0]  # of one op, with the embedding's table
assert abs(program[1] / of_tuple[1] - 1) < 0.01, (program[1], of_tuple[1])
# Passes enclose their layers, which are as long as the tuple's to some per cent. (It cuts the last pass where buckets are full.)
def spans(path, kind):
    found = {}
    for e in json.load(open(path))["traceEvents"]:
        if e["ph"] == "X" and e["cat"] == kind and e["args"].get("microbatch", 15) < 15:
            found.setdefault((e["pid"], e["name"] if kind == "block" else ""), []).append((e["ts"], e["dur"]))
    return found
passes, layers = ([spans(path, kind) for path in sys.argv[1:3]] for kind in ("pass", "block"))
assert {pid: len(all_of) for pid, all_of in passes[0].items()} == {pid: len(all_of) for pid, all_of in passes[1].items()} != {}, passes
for key, of_program in layers[0].items():
    assert all(any(ts <= at and at + long <= ts + dur + 1e-6 for ts, dur in passes[0][key[0], ""]) for at, long in of_program), key
    if not key[1].startswith("layer"): continue
    a, b = (sum(dur for _, dur in of[key]) for of in layers)
    assert len(of_program) == len(layers[1][key]) and abs(a / b - 1) < 0.05, (key, a, b)
assert program[2:] == of_tuple[2:] and sum(program[2].values()) == 2 * program[3] == 2 * 2 * 16, (program[2:], of_tuple[2:])
E
  "$PACELINE" simulate "${job[@]}" --trace p.json >/dev/null
  "$PACELINE" simulate "${job[@]:1}" --trace q.json >/dev/null
  /usr/bin/python3 full.py p.json q.json
  same "${job[@]}" --trace-microbatches 1-2
  "$PACELINE" simulate "${job[@]}" --trace all.json >/dev/null
  [ "$(stat -c %s t.json)" -lt $(($(stat -c %s all.json) / 3)) ]
  run -2 --separate-stderr "$PACELINE" simulate "${job[@]}" --trace t.json --force --trace-microbatches 16
  [ "$stderr" = "paceline simulate: --trace-microbatches 16: there are microbatches 0 to 15" ]
}

@test "--trace of a program: a counter follows what the steps of each list hold" {
  cat >counters.py <<'E'
import json, re, sys
trace, report = json.load(open(sys.argv[1]))["traceEvents"], json.load(open(sys.argv[2]))
lists = {l["list"]: l for l in report["lists"]}
names = {e["pid"]: e["args"]["name"] for e in trace if e["ph"] == "M" and e["name"] == "process_name"}
assert len(names) == int(sys.argv[3]), names
held = {pid: [] for pid in names}
for e in trace:
    if e["ph"] == "C": held[e["pid"]].append((e["ts"], e["args"]["GiB"]))
under_way = {pid: {} for pid in names}  # per microbatch: its first op forward and its last one backward
for e in trace:
    a = e.get("args", {})
    if e["ph"] != "X" or a.get("category") not in ("forward", "backward") or "microbatch" not in a: continue
    begin, end = under_way[e["pid"]].get(a["microbatch"], (e["ts"], 0))
    under_way[e["pid"]][a["microbatch"]] = (min(begin, e["ts"]), max(end, e["ts"] + e["dur"]))
for pid, name in names.items():
    of = lists[re.search(r": (\S+)", name).group(1)]
    stays = (of["mem_parameters_bytes"] + of["mem_gradients_bytes"] + of["mem_optimizer_bytes"]) / 2**30
    most = max(held[pid], key=lambda at: at[1])
    assert abs(most[1] - of["peak_mem_bytes"] / 2**30) < 0.0011, (name, most, of)
    assert abs(held[pid][-1][1] - stays) < 0.0011 and most[1] > 1.02 * stays, (name, held[pid][-1], stays)
    count = lambda t: sum(begin <= t < end - 1e-5 for begin, end in under_way[pid].values())
    if sys.argv[4] != "one": continue  # passes of several chunks: a microbatch holds now more, now less
    passes_end = max(end for _, end in under_way[pid].values())  # the optimizer may hold more
    most = max((at for at in held[pid] if at[0] < passes_end), key=lambda at: at[1])
    assert count(most[0]) == max(count(begin) for begin, _ in under_way[pid].values()), (name, most)
E
  of() { # PROCESSES CHUNKS-OF-A-LIST SIMULATE-OPTION ...
    "$PACELINE" simulate "${@:3}" --trace t.json --json --force >report.json
    /usr/bin/python3 counters.py t.json report.json "$1" "$2"
    same "${@:3}"
  }
  gpt2=(--platform dgx-a100 --model gpt2-345m --gbs 32)
  of 2 one "${gpt2[@]}" --as-program --strategy pp=2,tmp=2,dp=2,sp=1,mbs=1
  of 8 one "${gpt2[@]}" --as-program --strategy pp=2,tmp=2,dp=2,sp=1,mbs=1 --no-fold
  of 4 one "${gpt2[@]}" --as-program --strategy pp=4,tmp=1,dp=2,mbs=1,schedule=zb-h1
  of 4 two "${gpt2[@]}" --as-program --strategy pp=4,tmp=1,dp=2,mbs=1,schedule=interleaved,vpp=2
  # Steps that run beside each other.
  of 2 two --platform dgx-h100 --model qwen3-30b-a3b --gbs 16 --seq 1024 --as-program --strategy pp=2,dp=4,tmp=1,ep=4,mbs=1,schedule=dualpipe-v
  # Of some microbatches it is what it is of all.
  "$PACELINE" simulate "${gpt2[@]}" --as-program --strategy pp=2,tmp=1,dp=4,mbs=1 --trace all.json >/dev/null
  "$PACELINE" simulate "${gpt2[@]}" --as-program --strategy pp=2,tmp=1,dp=4,mbs=1 --trace some.json --trace-microbatches 2-3 >/dev/null
  for t in all some; do jq -c '.traceEvents[] | select(.ph == "C")' $t.json | sort >$t; done
  [ -s some ] && [ -z "$(comm -23 some all)" ] && [ "$(wc -l <some)" -lt "$(wc -l <all)" ]
}

@test "--trace x.pftrace.gz: packed it is the same file, and microbatches that repeat others cost next to nothing" {
  for n in 32 256; do
    "$PACELINE" simulate --platform amp-homogeneous --model gpt2-345m --gbs $n --strategy pp=4,dp=4,tmp=1,mbs=1 --trace $n.pftrace.gz >said
    "$PACELINE" simulate --platform amp-homogeneous --model gpt2-345m --gbs $n --strategy pp=4,dp=4,tmp=1,mbs=1 --trace $n.json.gz >/dev/null
    grep -qx "timeline         $n.pftrace.gz (open it in https://ui.perfetto.dev)" said
  done
  "$PACELINE" simulate --platform amp-homogeneous --model gpt2-345m --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1 --trace 32.perfetto-trace >/dev/null
  zcat 32.json.gz >32.json
  /usr/bin/python3 "$reader" 32.perfetto-trace 32.json
  few=$(stat -c %s 32.pftrace.gz) many=$(stat -c %s 256.pftrace.gz) json=$(stat -c %s 256.json.gz)
  echo "$few $many $json"
  ((many < 4 * few && json > 12 * many)) # of 8 times as many microbatches
}

@test "--trace x.pftrace: a full disk and a file that is there" {
  run "$PACELINE" simulate "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace t.pftrace
  [ "$status" -eq 0 ]
  run "$PACELINE" simulate "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace t.pftrace
  [[ $status == 2 && $output == *"t.pftrace"* && $output == *"--force"* ]]
  ln -s /dev/full full.pftrace
  run "$PACELINE" simulate "${gpt2[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace full.pftrace --force
  [[ $status == 1 && $output == *"full.pftrace"* ]]
}
