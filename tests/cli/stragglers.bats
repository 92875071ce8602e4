# `paceline simulate|explain --slow, --jitter`: devices that compute slower than they should.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  job=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy pp=2,dp=2,tmp=2,mbs=2)
}

json() { "$PACELINE" simulate "${job[@]}" "$@" --json; }

@test "--slow: the run has the factors, and each entry its price" {
  run -0 "$PACELINE" simulate "${job[@]}" --slow 'n0g3=1.2,n0g5=1.1'
  [[ $output == *"stragglers (factors of what computing takes; one graph, played again)"* ]]
  [[ $output == *"with these"*"%"*"without n0g3 "*"costs"*"(x1.2 on 1 device)"*"without n0g5"* ]]
  base=$(json | jq .iter_time_s)
  json --slow 'n0g3=1.2,n0g5=1.1' | jq -e --argjson base "$base" '.stragglers.undisturbed_s == $base and .stragglers.slowed_s == .iter_time_s
    and .iter_time_s > $base and (.stragglers.slow | length) == 2'
  json --slow 'n0g3=1.2' | jq -e --argjson base "$base" '.stragglers.slow[0].without_s == $base'
}

@test "--slow: folded and unfolded, fused and unfused are one" {
  small=$(json --slow 'n0g3=1.2')
  json --slow 'n0g3=1.2' --no-fold --no-fuse --no-leap | jq -e --argjson small "$small" \
    '.iter_time_s == $small.iter_time_s and .stragglers == $small.stragglers and .n_tasks > $small.n_tasks'
}

@test "--slow: a node, a pattern, the last entry decides" {
  node=$(json --slow 'n0=1.5' | jq .iter_time_s)
  [ "$(json --slow '*g*=1.5' | jq .iter_time_s)" = "$node" ]
  [ "$(json --slow 'n0=1.1,n0g?=1.5' | jq -c '[.iter_time_s, .stragglers.slow[0].n_devices]')" = "[$node,0]" ]
}

@test "--slow x2 on everything doubles what computing takes" {
  job=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy pp=2,dp=1,tmp=1,mbs=2,idle=1)
  base=$(json | jq .compute_s)
  json --slow 'n0=2' | jq -e --argjson base "$base" '(.compute_s / $base - 2) | fabs < 1e-12'
}

@test "--jitter: the same draws whatever the graph, others with another seed, none at sigma 0" {
  first=$(json --jitter 5,0.05 --draws 8 | jq -S .stragglers)
  [ "$(json --jitter 5,0.05 --draws 8 --no-leap --no-fuse | jq -S .stragglers)" = "$first" ]
  jq -e '.jitter | .n_draws == 8 and (.draws | length) == 8 and .iter_time_s.least <= .iter_time_s.p5 and .iter_time_s.p5 <= .iter_time_s.p50
    and .iter_time_s.p50 <= .iter_time_s.p95 and .iter_time_s.p95 <= .iter_time_s.most' <<<"$first"
  [ "$(json --jitter 5,0.05 --draws 3 | jq -Sc '.stragglers.jitter.draws')" = "$(jq -Sc '.jitter.draws[:3]' <<<"$first")" ]
  [ "$(json --jitter 6,0.05 --draws 8 | jq -S .stragglers)" != "$first" ]
  json --jitter 5,0 --draws 2 | jq -e '.stragglers | .jitter.iter_time_s.most == .undisturbed_s'
  run -0 "$PACELINE" simulate "${job[@]}" --jitter 5,0.05 --draws 8
  [[ $output == *"every device differs, so nothing is folded"*"iteration"*"p95"*"slowest device costs"* ]]
}

@test "explain, programs, trees and the other networks know stragglers" {
  slow=$(json --slow n0g3=1.2 | jq .iter_time_s)
  run -0 "$PACELINE" explain "${job[@]}" --slow n0g3=1.2 --json
  [ "$(jq .iter_time_s <<<"$output")" = "$slow" ]
  run -0 "$PACELINE" explain "${job[@]}" --slow n0g3=1.2
  [[ $output == *"without n0g3"* ]]
  json --slow n0g3=1.2 --jitter 1,0.02 --draws 2 --network analytic | jq -e '.stragglers.slow[0].cost_s > 0'
  "$PACELINE" simulate --platform dgx-a100 --model workloads/models/tiny-llama.json --gbs 4 --seq 8 --strategy pp=2,dp=1,tmp=1,mbs=2,idle=1 \
    --network simgrid --slow n0g0=1.2 --json | jq -e '.stragglers.slow[0].cost_s > 0'
  "$PACELINE" program print --model workloads/models/tiny-llama.json --gbs 8 --seq 8 --strategy pp=2,dp=2,tmp=2,mbs=1 -o "$BATS_TEST_TMPDIR/p.plir"
  run -0 "$PACELINE" simulate --platform dgx-a100 --program "$BATS_TEST_TMPDIR/p.plir" --slow n0g3=1.2 --jitter 1,0.02 --draws 4 --json
  jq -e '.stragglers.slow[0].cost_s > 0 and .iter_time_s == .stragglers.slowed_s and (.stragglers.jitter.draws | length) == 4' <<<"$output"
}

@test "bad input: one line, status 2" {
  refuses() {
    run -2 "$PACELINE" simulate "${job[@]}" "${@:2}"
    [ "${#lines[@]}" = 1 ] && [[ $output == *"$1"* ]]
  }
  refuses "is 'n0g33'" --slow n0g33=1.2
  refuses "did you mean 'n0g3'?" --slow n0g33=1.2
  refuses "is no DEVICE=FACTOR" --slow n0g3
  refuses "is no DEVICE=FACTOR" --slow =2
  refuses "is no DEVICE=FACTOR" --slow n0g3=1.2,
  refuses "a factor of what computing takes" --slow n0g3=0
  refuses "--slow" --slow n0g3=-1
  refuses "--slow" --slow n0g3=fast
  refuses "is no SEED,SIGMA" --jitter 5
  refuses "sigma" --jitter 5,2
  refuses "the seed" --jitter -5,0.1
  refuses "--draws" --jitter 5,0.1 --draws 0
  refuses "Add --jitter" --draws 5
  refuses "leave out --jitter" --slow n0g3=1.2 --vary nodes=1
  job=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy pp=1,dp=2,tmp=2,mbs=2,idle=1)
  refuses "takes no part" --slow n0g7=1.2
}
