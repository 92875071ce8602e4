#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# paceline explain: the parts of an iteration add up to it to the last bit, however the job is simulated; what is fused is told as if
# it were not; every figure stands where the columns say; one message and exit status 2 for what is wrong.

platform=platforms/amp-homogeneous.xml
model=workloads/models/gpt2-345m.json

setup() {
  dir=$(mktemp -d)
}

teardown() {
  rm -rf "$dir"
}

# explain <name> <strategy> [option...]: $dir/<name>.json
explain() {
  local name=$1 strategy=$2
  shift 2
  "$PACELINE" explain --platform "$platform" --model "$model" --gbs 32 --strategy "$strategy" --stage all --json "$@" >"$dir/$name.json"
}

simulate() {
  local name=$1 strategy=$2
  shift 2
  "$PACELINE" simulate --platform "$platform" --model "$model" --gbs 32 --strategy "$strategy" --json "$@" >"$dir/$name.json"
}

# python <code>: with load(name); Debian's own python.
python() {
  /usr/bin/python3 - "$dir" <<<"import json, sys
def load(name): return json.load(open(sys.argv[1] + '/' + name + '.json'))
CATEGORIES = 'compute_s tensor_comm_s pipeline_comm_s data_comm_s bubble_s'.split()
$1"
}

# Sums of doubles are exact here: they are multiples of 2^-40 s.
adds_up() {
  python "
e, s = load('$1'), load('$2')
for stage in e['stages']:
    whole = stage['iter_time_s']
    assert whole == e['iter_time_s'] == s['iter_time_s'] and e['run_digest'] == s['run_digest']
    assert sum(stage[c] for c in CATEGORIES) == whole
    assert sum(kind['time_s'] for kind in stage['kinds']) == whole
    assert sum(op['time_s'] for op in stage['computing']) == stage['compute_s']
    assert sum(op['exposed_s'] for op in stage['communication']) + stage['compute_s'] + stage['bubble_s'] == whole
    for op in stage['communication']:
        if op['calls'] > 0:
            assert 0 <= op['hidden_s'] <= op['run_s'], op
    for op in stage['computing']:
        assert op['time_s'] >= op['alone_s'] and abs(op['calls'] * op['each_s'] - op['alone_s']) <= op['calls'] * 2**-40, op
"
}

refuses() {
  local says=$1
  shift
  local status=0
  "$PACELINE" explain "$@" >"$dir/out" 2>"$dir/err" || status=$?
  if [ "$status" -ne 2 ] || [ "$(wc -l <"$dir/err")" -ne 1 ] || [ -s "$dir/out" ] || ! grep -qF -- "$says" "$dir/err"; then
    echo "explain $*: status $status, wanted '$says':"
    cat "$dir/err"
    return 1
  fi
}

@test "the parts add up to the iteration, to the last bit, and to what simulate says" {
  for strategy in pp=4,dp=4,tmp=1,mbs=1 pp=2,dp=2,tmp=4,mbs=2,vpp=2 pp=2,dp=4,tmp=2,mbs=1,order=pdt pp=1,dp=16,tmp=1,mbs=1,zero=3,overlap=0; do
    for options in "" "--no-fold" "--network analytic" "--streams ready" "--collectives chunked"; do
      # shellcheck disable=SC2086
      explain explained "$strategy" $options
      # shellcheck disable=SC2086
      simulate simulated "$strategy" $options
      adds_up explained simulated || { echo "$strategy $options"; return 1; }
    done
  done
}

@test "on unlike devices too" {
  platform=platforms/amp-hetero-cluster.xml
  explain explained pp=4,dp=1,tmp=4,mbs=4
  simulate simulated pp=4,dp=1,tmp=4,mbs=4
  adds_up explained simulated
  python "
e = load('explained')
assert len({stage['device_type'] for stage in e['stages']}) == 2
assert abs(sum(s['compute_s'] for s in e['stages']) / 4 - e['compute_s']) < 1e-9"
}

@test "and when SimGrid plays it" {
  platform=platforms/hc3.xml model=workloads/models/gpt2-117m.json
  explain explained pp=2,dp=2,tmp=4,mbs=4 --network simgrid --seq 256 --dtype fp32
  simulate simulated pp=2,dp=2,tmp=4,mbs=4 --network simgrid --seq 256 --dtype fp32
  adds_up explained simulated
}

@test "what is fused or folded is told as if it were not" {
  for strategy in pp=4,dp=4,tmp=1,mbs=1 pp=2,dp=2,tmp=4,mbs=2 pp=1,dp=8,tmp=2,mbs=1,zero=2; do
    explain fused "$strategy"
    explain unfused "$strategy" --no-fuse
    explain unfolded "$strategy" --no-fold
    python "
def rows(name):
    found = []
    for stage in load(name)['stages']:
        found += [(stage['stage'], op['op'], op['pass'], op['calls'], op['time_s'], op['alone_s']) for op in stage['computing']]
        found += [(stage['stage'], op['op'], op['stage'], op.get('size_bytes', -1), op['calls'], op.get('run_s', -1), op['exposed_s'])
                  for op in stage['communication']]
    return sorted(found, key=repr)
assert rows('fused') == rows('unfused') == rows('unfolded') and len(rows('fused')) > 30" || { echo "$strategy"; return 1; }
  done
}

@test "calls, shapes, FLOPs and bytes are those of the model and the strategy" {
  explain explained pp=2,dp=4,tmp=2,mbs=1
  python "
e = load('explained')
last = e['stages'][1]
ops = {(op['op'], op['pass']): op for op in last['computing']}
qkv = ops['qkv', 'forward']
# 12 layers, 8 microbatches of a sequence of 1024, 3 * 1024 / 2 outputs
assert (qkv['calls'], qkv['batch'], qkv['m'], qkv['n'], qkv['k']) == (96, 1, 1024, 1536, 1024), qkv
assert qkv['flops'] == 2 * 1024 * 1536 * 1024 and qkv['kind'] == 'gemm' and qkv['block'] == 'layer' and qkv['dtype'] == 'fp16'
assert qkv['bytes'] >= 2 * (1024 * 1024 + 1024 * 1536 + 1024 * 1536)
assert {op['bound'] for op in last['computing']} <= {'compute', 'memory', 'launch'}
assert ops['optimizer', 'optimizer']['calls'] == 1 and ops['optimizer', 'optimizer']['block'] is None
norm = [op for op in last['computing'] if op['kind'] == 'norm'][0]
assert norm['rows'] == 1024 and norm['width'] == 1024
roles = {op['role'] for op in last['communication']}
assert roles >= {'tensor', 'data', 'pipeline', 'embedding'}, roles
for op in last['communication']:
    if op['calls'] == 0: continue
    if op['role'] == 'pipeline':
        assert (op['kind'], op['algorithm'], op['group_size'], op['calls'], op['size_bytes']) == ('send', 'direct', 2, 8, 1024 * 1024), op
        assert (op['stage'], op['to_stage']) in ((0, 1), (1, 0))
    if op['role'] == 'tensor': assert op['group_size'] == 2 and op['group_nodes'] == 1 and op['hidden_s'] == 0, op
    if op['role'] == 'data': assert op['group_size'] == 4 and op['kind'] == 'all_reduce', op
    assert op['link'] and op['link_capacity_Bps'] > 0 and op['bound'] in ('link', 'latency', 'cap')
    assert op['run_s'] >= op['alone_s'] - op['calls'] * 2**-39, op
kinds = {kind['kind']: kind for kind in last['kinds']}
assert kinds['gemm']['flops'] == sum(op['calls'] * op['flops'] for op in last['computing'] if op['kind'] == 'gemm')
assert kinds['gemm']['time_s'] == sum(op['time_s'] for op in last['computing'] if op['kind'] == 'gemm')"
}

@test "contention shows in the run, not alone" {
  # Two tensor groups' worth of replicas send through one NIC; without contention they do not feel each other.
  explain shared pp=2,dp=4,tmp=2,mbs=1 --collective-profile ideal
  explain apart pp=2,dp=4,tmp=2,mbs=1 --collective-profile ideal --network analytic
  explain apart_unfolded pp=2,dp=4,tmp=2,mbs=1 --collective-profile ideal --network analytic --no-fold
  python "
def send(name): return [op for op in load(name)['stages'][1]['communication'] if op['role'] == 'pipeline' and op['stage'] == 1][0]
assert send('shared')['run_s'] > 1.5 * send('shared')['alone_s'], send('shared')
assert send('shared')['slowed_by'] == 'contention' and send('apart')['slowed_by'] is None
assert send('apart')['run_s'] == send('apart')['alone_s'] == send('shared')['alone_s']
assert load('apart')['iter_time_s'] == load('apart_unfolded')['iter_time_s'] < load('shared')['iter_time_s']"
}

@test "the overlap factor stretches what computes beside gradients" {
  explain beside pp=1,dp=16,tmp=1,mbs=1
  explain after pp=1,dp=16,tmp=1,mbs=1,overlap=0
  python "
def gemm(name): return [kind for kind in load(name)['stages'][0]['kinds'] if kind['kind'] == 'gemm'][0]
assert gemm('beside')['time_s'] > gemm('beside')['alone_s'] and gemm('after')['time_s'] == gemm('after')['alone_s'] == gemm('beside')['alone_s']
def slowed(name): return {op['slowed_by'] for op in load(name)['stages'][0]['communication'] if op['role'] == 'data'}
assert slowed('beside') == {'overlap', None} and slowed('after') == {None}, (slowed('beside'), slowed('after'))
def data(name): return load(name)['stages'][0]['kinds'][-2]
assert data('beside')['kind'] == 'data communication' and data('beside')['hidden_s'] > 0 == data('after')['hidden_s']"
}

@test "what a framework adds is told and adds up: a late host, copies behind gathers" {
  explain host pp=2,dp=4,tmp=2,mbs=1 --framework nanotron --seq 64
  simulate simulated pp=2,dp=4,tmp=2,mbs=1 --framework nanotron --seq 64
  adds_up host simulated
  platform=platforms/dgx-a100.xml
  explain copies pp=1,dp=8,tmp=1,mbs=1,zero=3 --framework deepspeed-zero3-2021
  python "
stage = load('host')['stages'][0]
assert [kind for kind in stage['kinds'] if kind['kind'] == 'host' and kind['time_s'] > 0.1 * stage['iter_time_s']]
assert [op for op in stage['computing'] if op['kind'] == 'host' and op['bound'] == 'launch']
stage = load('copies')['stages'][0]
copies = sum(op['time_s'] for op in stage['computing'] if op['kind'] == 'copy')
assert copies > 0 and sum(op['exposed_s'] for op in stage['communication'] if op['role'] == 'data') + copies == stage['data_comm_s']
assert sum(stage[c] for c in CATEGORIES) == stage['iter_time_s'] == sum(kind['time_s'] for kind in stage['kinds'])"
}

@test "the busiest stage is told without being asked for; tables are cut at --top and say so" {
  run "$PACELINE" explain --platform "$platform" --model "$model" --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1 --top 3
  [ "$status" -eq 0 ]
  [[ "$output" == *"stage 3 of 4 (the busiest)"* && "$output" == *"more (--top 0 shows all)"* && "$output" != *"stage 0 of 4"* ]]
  run "$PACELINE" explain --platform "$platform" --model "$model" --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1 --top 0 --stage all
  for stage in 0 1 2 3; do [[ "$output" == *"stage $stage of 4"* ]]; done
  [[ "$output" != *"more (--top"* && "$output" == *roofline* && "$output" == *exposed* && "$output" == *bubble* ]]
}

@test "a table entry of the profile is named as the source" {
  mkdir "$dir/devices"
  sed 's/T4/TX/g' platforms/devices/T4.json | /usr/bin/python3 -c "
import json, sys
profile = json.load(sys.stdin)
profile['ops'] = [{'kind': 'gemm', 'dtype': 'fp16', 'pass': 'forward', 'dims': [1, 1024, 3072, 1024], 'time': '1ms'}]
json.dump(profile, sys.stdout)" >"$dir/devices/TX.json" || skip
  sed 's/value="T4"/value="TX"/' "$platform" >"$dir/platform.xml"
  sed -i "s#</config>#&#" "$dir/platform.xml"
  platform=$dir/platform.xml
  explain explained pp=4,dp=4,tmp=1,mbs=1 || { ls "$dir"; false; }
  python "
ops = {(op['op'], op['pass']): op for op in load('explained')['stages'][1]['computing']}
assert ops['qkv', 'forward']['source'] == 'table' and abs(ops['qkv', 'forward']['each_s'] - 0.001) < 1e-12
assert ops['mlp_up', 'forward']['source'] != 'table'"
}

@test "programs: what is folded is told as if it were not; calls, work and waits of every device add up" {
  platform=platforms/dgx-a100.xml
  for strategy in pp=2,dp=2,tmp=2,mbs=2,sp=1,zero=1 pp=2,dp=4,tmp=1,mbs=2,schedule=dualpipe pp=1,dp=8,tmp=1,mbs=2,zero=3 \
    workloads/strategies/gpt-megatron-3d.yaml workloads/strategies/gpt-zero2-pipeline.yaml; do
    explain folded $strategy --as-program --framework megatron-core --seq 1024
    explain whole $strategy --as-program --framework megatron-core --seq 1024 --no-fold
    cmp "$dir/folded.json" "$dir/whole.json"
    for fold in '' --no-fold; do
      explain slow$fold $strategy --as-program --framework megatron-core --seq 1024 --slow n0g1=1.3,n0g6=1.1 $fold
    done
    cmp "$dir/slow.json" "$dir/slow--no-fold.json"
    simulate simulated $strategy --as-program --framework megatron-core --seq 1024
    python "
e, s = load('folded'), load('simulated')
assert e['iter_time_s'] == s['iter_time_s'] and len(e['lists']) == len(s['lists'])
for l in e['lists']:
    parts = sum(p['time_s'] for p in l['computing']) + sum(p['exposed_s'] for p in l['communication'])
    assert parts + l['idle_s'] == e['iter_time_s'], l['name']
    for p in l['communication']:
        if not p['calls']: # what another stage reduces, which its device waits for
            assert p['role'] == 'data' and p['exposed_s'] > 0 and 'kind' not in p, p
            continue
        assert p['calls'] > 0 and p['size_bytes'] > 0 and p['hidden_s'] >= 0, p
        if p['role'] == 'pipeline': assert (p['kind'], p['group_size'], p['algorithm']) == ('send', 2, 'direct'), p
        if 'kind' not in p: continue # a copy between a device and its host
        assert p['link'] and p['link_capacity_Bps'] > 0 and 0 < p['alone_s'] <= p['run_s'] * (1 + 1e-9) + p['calls'] * 2**-39, p
        assert p['bound'] == ('latency' if 2 * p['latency_s'] > p['each_s'] else p['bound']), p
        assert (p['slowed_by'] is None) == (p['run_s'] <= p['alone_s'] + p['calls'] * 2**-40), p
    for p in l['computing']:
        if p['op'] == 'logits' and p['pass'] == 'forward':
            assert p['flops'] >= 2 * 1024 * 1024 * 50257 / 2 and p['bound'] == 'compute' and p['source'], p
def host(name): return [sum(p['time_s'] for p in l['computing'] if p['pass'] == 'host') for l in load(name)['lists']]
assert all(abs(b - a) <= 0.01 * a for a, b in zip(host('folded'), host('slow'))), (host('folded'), host('slow')) # but for overlap
assert any(p['op'] == 'logits' for l in e['lists'] for p in l['computing'])
assert len(e['lists']) == 1 or any(p['role'] == 'pipeline' and p['calls'] > 1 for l in e['lists'] for p in l['communication'])" ||
      { echo "$strategy"; return 1; }
  done
}

@test "--program: kernels that are called alike and take as long are told apart by what they do" {
  cat >"$dir/alike.plir" <<'END'
plir 1 distributed "two"
mesh pp=2
microbatches 1
func @first() {
  %i = constant() {value=1.0} : bf16[b=8, s=4096, h=4096]
  %at = input "at"() {below=4096} : i32[s=4096]
  %y = rotary(%i, %at) {over=h}
  send(%y) {to=stage1, tag="y"}
}
func @second() {
  %z = receive() {from=stage0, tag="y"} : bf16[b=8, s=4096, h=4096]
  %at = input "at"() {below=4096} : i32[s=4096]
  %y = rotary(%z, %at) {over=h, share=0.5}
}
class stage0 at pp=0 {
  chunk 0 forward @first
  steps F0.0
}
class stage1 at pp=1 {
  chunk 1 forward @second
  steps F1.0
}
END
  run -0 "$PACELINE" explain --platform dgx-a100 --program "$dir/alike.plir" --stage all
  [[ $output == *"forward   y  "*" 403 M  512 MiB "*"forward   y  "*" 201 M  512 MiB "* ]]
}

@test "waiting is counted alike of tuples and of their programs, also where a table is on two stages" {
  both() { # JOB ...: idle of each stage, as tuple and as program, and the busiest of each
    "$PACELINE" explain "$@" --framework megatron-core --stage all --json >"$dir/tuple.json"
    "$PACELINE" explain "$@" --framework megatron-core --stage all --json --as-program >"$dir/program.json"
  }
  both --platform dgx-a100:2 --model llama-2-13b --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1
  jq -s -e '.[0] as $t | .[1] as $p | [$t.stages[].bubble_s] as $a | [$p.lists[].idle_s] as $b
    | ([range(4) | ($a[.] - $b[.]) / $t.iter_time_s | fabs] | max < 0.005)
      and ($a | index(min)) == 3 and ($b | index(min)) == 3' "$dir/tuple.json" "$dir/program.json"
  # GPT-3's table is on two stages: the last one waits for what the first one reduces, of both.
  both --platform dgx-a100:16 --model gpt3-175b --gbs 64 --strategy pp=8,dp=2,tmp=8,mbs=1,sp=1
  jq -s -e '.[0] as $t | .[1] as $p | [$t.stages[].bubble_s] as $a | [$p.lists[].idle_s] as $b
    | ($a | index(min)) == 7 and ($b | index(min)) == 7 and ([range(8) | ($a[.] - $b[.]) / $t.iter_time_s | fabs] | max < 0.02)' \
    "$dir/tuple.json" "$dir/program.json"
}

@test "--program: a program as it is written, with a caret where it is wrong" {
  "$PACELINE" simulate --program workloads/programs/mlp-2-stages.plir --platform dgx-a100 --json >"$dir/simulated.json"
  "$PACELINE" explain --program workloads/programs/mlp-2-stages.plir --platform dgx-a100 --stage all --json >"$dir/explained.json"
  python "
e, s = load('explained'), load('simulated')
assert e['iter_time_s'] == s['iter_time_s'] and [l['name'] for l in e['lists']] == ['first', 'second']
sends = {p['op']: p for p in e['lists'][1]['communication'] if p['role'] == 'pipeline'}
assert {name: (p['calls'], p['size_bytes']) for name, p in sends.items()} == {'y': (2, 1024), 'dy': (2, 1024)}, sends"
  sed 's/{over=f}/{over=q}/' workloads/programs/mlp-2-stages.plir >"$dir/bad.plir"
  run -2 --separate-stderr "$PACELINE" explain --program "$dir/bad.plir" --platform dgx-a100
  [[ "$stderr" == *"bad.plir:42:8: over=q of product"*"^"* ]]
  refuses "leave out --strategy" --program workloads/programs/mlp-2-stages.plir --platform dgx-a100 --strategy pp=1,dp=1,tmp=1,mbs=1
  refuses "leave out --model, --gbs and --seq" --program workloads/programs/mlp-2-stages.plir --platform dgx-a100 --gbs 8
}

@test "bad input: one line, exit status 2" {
  job=(--platform "$platform" --model "$model" --gbs 32)
  good=pp=4,dp=4,tmp=1,mbs=1
  refuses "--strategy is missing" "${job[@]}"
  refuses "--stage: 4 is out of range: pp=4 has stages 0 to 3" "${job[@]}" --strategy $good --stage 4
  refuses "--stage" "${job[@]}" --strategy $good --stage last
  refuses "--stage: -1 is out of range" "${job[@]}" --strategy $good --stage=-1
  refuses "--top" "${job[@]}" --strategy $good --top many
  refuses "--top: -3 is out of range" "${job[@]}" --strategy $good --top=-3
  refuses "--platform is missing: a file, or a name" --model "$model" --gbs 32 --strategy $good
  refuses "pp=4 * dp=4 * tmp=2 = 32" "${job[@]}" --strategy pp=4,dp=4,tmp=2,mbs=1
  refuses "there.json" --platform "$platform" --model "$dir/there.json" --gbs 32 --strategy $good
  refuses "is one argument too many" "${job[@]}" --strategy $good more
  refuses "--trace" "${job[@]}" --strategy $good --trace x
}

@test "explain: of a program kinds and shapes as of its tuple" {
  local job=(--model llama-3-8b --framework torchtitan --platform dgx-h100:1 --gbs 16 --seq 4096 --strategy pp=1,dp=8,tmp=1,mbs=1,zero=3)
  kinds() { "$PACELINE" explain "${job[@]}" "$@" --top 0 | awk '$1 == "gemm" || $1 == "attention" || $1 == "norm" {print $1, $2, $3, $4, $6, $7}'; }
  kinds >"$BATS_TEST_TMPDIR/tuple"
  kinds --as-program >"$BATS_TEST_TMPDIR/program"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/tuple")" -ge 3 ]
  head -2 "$BATS_TEST_TMPDIR/tuple" | diff - <(head -2 "$BATS_TEST_TMPDIR/program")
  "$PACELINE" explain "${job[@]}" --json --top 0 >"$BATS_TEST_TMPDIR/tuple.json"
  "$PACELINE" explain "${job[@]}" --json --top 0 --as-program >"$BATS_TEST_TMPDIR/program.json"
  shapes='select(.kind == "gemm") | "\(.batch)x\(.m)x\(.n)x\(.k) \(.dtype) \(.calls)"'
  jq -r "[.. | objects | select(has(\"kind\") and has(\"k\"))] | .[] | $shapes" "$BATS_TEST_TMPDIR/tuple.json" | sort >"$BATS_TEST_TMPDIR/a"
  jq -r ".lists[0].computing[] | $shapes" "$BATS_TEST_TMPDIR/program.json" | sort >"$BATS_TEST_TMPDIR/b"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/a")" -ge 10 ]
  diff "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
  # The parts of the data group's copies are no work that is made again.
  run -0 "$PACELINE" explain "${job[@]}" --as-program
  [[ "$output" != *"made again"* ]]
}

@test "explain: of a program which way its communication goes as of its tuple, and the same tables" {
  local job=(--model llama-3-8b --framework megatron-core --platform dgx-h100:2 --gbs 16 --seq 4096 --strategy pp=2,dp=2,tmp=4,mbs=1,sp=1,zero=1)
  "$PACELINE" explain "${job[@]}" --stage 1 --json >"$BATS_TEST_TMPDIR/tuple.json"
  "$PACELINE" explain "${job[@]}" --stage 1 --json --as-program >"$BATS_TEST_TMPDIR/program.json"
  ways() { jq -c "[$1.communication[] | select(.role == \"tensor\" and .calls > 8)
    | [.kind, .algorithm, .group_size, .group_nodes, .size_bytes, .each_s, .latency_s, .bound, .link_capacity_Bps]] | unique" "$2"; }
  [ "$(ways '.stages[0]' "$BATS_TEST_TMPDIR/tuple.json")" = "$(ways '.lists[0]' "$BATS_TEST_TMPDIR/program.json")" ]
  [ "$(ways '.lists[0]' "$BATS_TEST_TMPDIR/program.json" | jq length)" -ge 2 ]
  jq -e '.lists[0].communication | map(.op) | index("gather parameters") and index("reduce gradients") and index("norm1_all_gather")' \
    "$BATS_TEST_TMPDIR/program.json"
  heads() { "$PACELINE" explain "${job[@]}" "$@" | awk '/^  where the time goes  *calls|^  computing |^  role / {$1 = $1; print}'; }
  [ "$(heads | wc -l)" -eq 4 ]
  [ "$(heads)" = "$(heads --as-program)" ]
}
