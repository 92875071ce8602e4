#!/usr/bin/env bats
# paceline search --compare and --vary: every cell is the search that its method makes alone, on the platform that the
# variation stands for; one message and exit status 2 for what is wrong.

job=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --budget 12 --mbs 1,2)

setup() {
  dir=$(mktemp -d)
}

teardown() {
  rm -rf "$dir"
}

python() {
  /usr/bin/python3 - "$dir" <<<"import json, sys
dir = sys.argv[1]
load = lambda name: json.load(open(dir + '/' + name))
$1"
}

refuses() {
  local says=$1
  shift
  local status=0
  "$PACELINE" search "$@" >"$dir/out" 2>"$dir/err" || status=$?
  if [ "$status" -ne 2 ] || [ "$(wc -l <"$dir/err")" -ne 1 ] || [ -s "$dir/out" ] || ! grep -qF -- "$says" "$dir/err"; then
    echo "search $*: status $status, wanted '$says':"
    cat "$dir/err"
    return 1
  fi
}

@test "--compare: every row is what the method finds alone" {
  "$PACELINE" search "${job[@]}" --compare megatron,random,exhaustive --json >"$dir/table"
  for method in megatron random exhaustive; do
    "$PACELINE" search "${job[@]}" --method "$method" --top 10 --json >"$dir/$method"
  done
  python "
searches = load('table')['searches']
assert [s['method'] for s in searches] == ['megatron', 'random', 'exhaustive']
best = min(s['best']['iter_time_s'] for s in searches)
for s in searches:
    alone = load(s['method'])
    assert s['best'] == alone['top'][0], s['method']
    assert s['simulated'] == alone['rows'] and s['candidates'] == alone['candidates'] and s['ended'] == alone['ended']
    times = [row['iter_time_s'] for row in alone['top']]
    assert s['mean_of'] == len(times) and abs(s['mean_iter_time_s'] - sum(times) / len(times)) < 1e-12
    assert s['ratio_to_best'] == s['best']['iter_time_s'] / best
assert searches[1]['best']['strategy'] != searches[2]['best']['strategy']"
}

@test "--vary: every row is the search on a platform file written that way" {
  "$PACELINE" platform make g4dn.12xlarge --nodes 4 --nic-rate 25Gbps -o "$dir/slow.xml"
  cp -r platforms/collectives platforms/devices "$dir"
  "$PACELINE" search "${job[@]}" --method random --vary link:nic+fabric.bandwidth=x0.5,50Gbps --json >"$dir/table"
  "$PACELINE" search "${job[@]}" --platform "$dir/slow.xml" --method random --json >"$dir/slow"
  python "
base, slow, same = load('table')['searches']
assert base['variation'] == {} and slow['variation'] == {'link:nic+fabric.bandwidth': 'x0.5'}
assert slow['best'] == load('slow')['top'][0]
assert same['ratio_to_base'] == 1 and same['best'] == base['best']
assert slow['ratio_to_base'] > 1 and slow['platform_digest'] != base['platform_digest']"
}

@test "--vary and --compare make a grid; text and JSON agree; the same for any number of threads" {
  local table=(--compare megatron,random --vary device:T4=V100-SXM2-16GB,T4 --vary nodes=2,4)
  "$PACELINE" search "${job[@]}" "${table[@]}" --threads 1 --json >"$dir/one"
  "$PACELINE" search "${job[@]}" "${table[@]}" --threads 3 --json | cmp - "$dir/one"
  "$PACELINE" search "${job[@]}" "${table[@]}" >"$dir/text"
  [ "$(wc -l <"$dir/text")" -eq 13 ]
  python "
searches = load('one')['searches']
assert len(searches) == 10
assert searches[3]['variation'] == {'device:T4': 'V100-SXM2-16GB', 'nodes': '2'} and searches[3]['method'] == 'random'
lines = open(dir + '/text').read().splitlines()[1:]
for line, s in zip(lines, searches):
    assert line.endswith(s['best']['strategy']) and ' %d ' % s['simulated'] in line and s['method'] in line"
}

@test "a search of which nothing fits is a row that says so" {
  run "$PACELINE" search "${job[@]}" --method random --vary device:T4.memory=1300MiB
  [ "$status" -eq 0 ]
  [[ "${lines[2]}" == *"device:T4.memory=1300MiB"*"none fits in memory" ]]
}

@test "what cannot be compared or varied is one message" {
  refuses "--compare: 'amq' is unknown; some of amp," "${job[@]}" --compare amp,amq
  refuses "--compare: '' is unknown" "${job[@]}" --compare amp,
  refuses "--compare: 'amp' is there twice" "${job[@]}" --compare amp,amp
  refuses "--compare names the methods" "${job[@]}" --compare amp --method amp
  refuses "has no results file; leave it out" "${job[@]}" --compare amp -o "$dir/a.h5"
  refuses "has no results file; leave it out" "${job[@]}" --vary nodes=2 -o "$dir/a.h5"
  refuses "no link of the kind 'nvlink'" "${job[@]}" --vary link:nvlink.bandwidth=x2
  refuses "'100' has no unit" "${job[@]}" --vary link:nic.bandwidth=100
  refuses "search: --vary device:V100.memory: platforms/amp-homogeneous.xml has no device" "${job[@]}" --vary device:V100.memory=x2
  refuses "--vary device:*=P100, method random: --dtype bf16: P100 does not" --platform platforms/dgx-a100.xml \
    --model workloads/models/gpt2-345m.json --gbs 32 --budget 2 --dtype bf16 --method random --vary 'device:*=P100'
  [ ! -e "$dir/a.h5" ]
}
