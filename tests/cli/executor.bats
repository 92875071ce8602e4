# `paceline simulate --executor`: Proteus's rules beside the engine's.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  gpt=(--platform hc2 --model gpt2-117m --gbs 64 --seq 1024 --dtype fp32 --strategy)
}

json() { "$PACELINE" simulate "${gpt[@]}" "$@" --json; }

@test "one GPU has nothing to share and nothing to overlap: both agree to the bit" {
  one=$(json pp=1,dp=1,tmp=1,mbs=8,idle=1 | jq -c '[.iter_time_s, .compute_s, .peak_mem_bytes]')
  [ "$(json pp=1,dp=1,tmp=1,mbs=8,idle=1 --executor proteus | jq -c '[.iter_time_s, .compute_s, .peak_mem_bytes]')" = "$one" ]
}

@test "sharing and overlap each take time, and the parts add up" {
  hybrid=pp=2,dp=2,tmp=4,mbs=8,idle=1
  plain=$(json $hybrid --executor proteus-plain | jq .iter_time_s)
  json $hybrid --executor proteus-sharing | jq -e --argjson plain "$plain" '.iter_time_s > 1.02 * $plain'
  json $hybrid --executor proteus | jq -e --argjson plain "$plain" '.iter_time_s > 1.02 * $plain
    and ((.compute_s + .tensor_comm_s + .pipeline_comm_s + .data_comm_s + .bubble_s) / .iter_time_s - 1 | fabs < 1e-9)'
  gpt=(--platform hc1 --model vgg-19 --gbs 256 --dtype fp32 --strategy)
  plain=$(json pp=1,dp=8,tmp=1,mbs=32 --executor proteus-plain | jq .iter_time_s)
  json pp=1,dp=8,tmp=1,mbs=32 --executor proteus-overlap | jq -e --argjson plain "$plain" '.iter_time_s > 1.02 * $plain'
}

@test "trees, stragglers, neighbours and timelines are played too" {
  "$PACELINE" program print --model workloads/models/tiny-llama.json --gbs 8 --seq 8 --strategy pp=2,dp=2,tmp=2,mbs=1 -o "$BATS_TEST_TMPDIR/p.plir"
  "$PACELINE" simulate --platform dgx-a100 --program "$BATS_TEST_TMPDIR/p.plir" --executor proteus --json | jq -e '.iter_time_s > 0'
  json pp=1,dp=8,tmp=2,mbs=4,idle=1 --executor proteus --slow n0g1=1.3 | jq -e '.stragglers.slow[0].cost_s > 0'
  run -0 "$PACELINE" simulate "${gpt[@]}" pp=1,dp=8,tmp=2,mbs=4,idle=1 --executor proteus --trace "$BATS_TEST_TMPDIR/t.json"
  jq -e '.traceEvents | length > 100' "$BATS_TEST_TMPDIR/t.json"
}

@test "bad input: one line, status 2" {
  run -2 "$PACELINE" simulate "${gpt[@]}" pp=1,dp=32,tmp=1,mbs=2 --executor proteos
  [[ $output == *"'proteos' is unknown; choose one of engine, proteus,"*"did you mean 'proteus'?" ]]
  run -2 "$PACELINE" simulate "${gpt[@]}" pp=1,dp=32,tmp=1,mbs=2 --executor proteus --network simgrid
  [[ $output == *"leave out --collectives chunked"* ]]
}

@test "a pipeline's messages in a strategy tree take their time under Proteus's rules too" {
  printf 'partition: {b: 4}\nschedule: {microbatches: 4}\npipeline: {stages: 2}\n' >"$BATS_TEST_TMPDIR/p.yaml"
  times() { "$PACELINE" simulate --platform dgx-1v --model gpt2-117m --gbs 16 --seq 128 --strategy "$BATS_TEST_TMPDIR/p.yaml" --json "$@"; }
  times >"$BATS_TEST_TMPDIR/engine.json"
  times --executor proteus >"$BATS_TEST_TMPDIR/proteus.json"
  python3 - "$BATS_TEST_TMPDIR" <<'END'
import json, sys
a, b = (json.load(open(f"{sys.argv[1]}/{n}.json"))["iter_time_s"] for n in ("engine", "proteus"))
assert 0.7 < b / a < 1.3, (a, b)
END
}
