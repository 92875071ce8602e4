#!/usr/bin/env bats
# --framework: what it changes, what is stronger, what the results say, what is refused.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  job=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --seq 512)
  strategy=(--strategy pp=1,dp=16,tmp=1,mbs=1)
  own=$BATS_TEST_TMPDIR/own.json
  echo '{"name": "own", "communication": {"overlaps_gradients": false}, "host": {"launch": "1ms"}}' > "$own"
}

# column: of the JSON of `simulate` with the other words
column() {
  local name=$1
  shift
  "$PACELINE" simulate "${job[@]}" --json "$@" | sed -n "s/^  \"$name\": \"\\?\\([^\",]*\\).*/\\1/p" | head -1
}

@test "its name is printed, and ideal is the default" {
  run "$PACELINE" simulate "${job[@]}" "${strategy[@]}" --framework megatron-core
  [ "$status" -eq 0 ]
  [[ "$output" == *"framework        megatron-core"* ]]
  [ "$(column framework "${strategy[@]}")" = ideal ]
  [ "$(column framework "${strategy[@]}" --framework nanotron)" = nanotron ]
}

@test "--framework ideal changes nothing" {
  diff <("$PACELINE" simulate "${job[@]}" "${strategy[@]}" --json) \
    <("$PACELINE" simulate "${job[@]}" "${strategy[@]}" --json --framework ideal)
}

@test "a file; what the strategy says is stronger" {
  [ "$(column overlap "${strategy[@]}" --framework "$own")" = 0 ]
  [ "$(column overlap --strategy pp=1,dp=16,tmp=1,mbs=1,overlap=1 --framework "$own")" = 1 ]
  [ "$(column overlap "${strategy[@]}")" = 1 ]
}

@test "what the command line says is stronger" {
  strategy=(--strategy pp=1,dp=16,tmp=1,mbs=2,zero=1)
  unfused=$(column peak_mem_bytes "${strategy[@]}" --framework megatron-lm-2021)
  flash=$(column peak_mem_bytes "${strategy[@]}" --framework megatron-lm-2021 --attention flash)
  [ "${unfused%%.*}" -gt "${flash%%.*}" ]
}

@test "a late host shows in explain" {
  run "$PACELINE" explain "${job[@]}" "${strategy[@]}" --framework "$own"
  [ "$status" -eq 0 ]
  [[ "$output" == *"host      host"* ]]
}

@test "sweep: the profile's overlap only, its name and digest in the file, no resuming with another" {
  out=$BATS_TEST_TMPDIR/out.h5
  space=(--pp 1 --tmp 1 --mbs 1 --zero 0 --recompute none --schedule 1f1b --assign uniform)
  run "$PACELINE" sweep "${job[@]}" "${space[@]}" --framework "$own" -o "$out"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" =~ ^candidates\ +1$ ]]
  sed 's/"own"/"other"/' "$own" > "$BATS_TEST_TMPDIR/other.json"
  run "$PACELINE" sweep "${job[@]}" "${space[@]}" --framework "$BATS_TEST_TMPDIR/other.json" -o "$out" --resume
  [ "$status" -eq 2 ]
  [[ "$output" == *"framework is not the one of this run (own there, other here)"* ]]
}

@test "what cannot be read: one line, exit status 2" {
  echo '{"name": "own", "host": {"launch": "soon"}}' > "$own"
  run "$PACELINE" simulate "${job[@]}" "${strategy[@]}" --framework "$own"
  [ "$status" -eq 2 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" == "paceline simulate: $own:1:"*"launch"* ]]
  run "$PACELINE" simulate "${job[@]}" "${strategy[@]}" --framework no-such
  [ "$status" -eq 2 ]
  [[ "$output" == *"'no-such' is not among ideal, "* ]]
  run "$PACELINE" sweep "${job[@]}" --framework /no/such.json -o "$BATS_TEST_TMPDIR/none.h5"
  [ "$status" -eq 2 ]
  [ ! -e "$BATS_TEST_TMPDIR/none.h5" ]
}

@test "sweep and search leave out what a framework does not offer, and say what it has; --any-strategy keeps it" {
  small=(--platform dgx-h100 --model llama-3.1-8b --gbs 64 --mbs 1)
  run "$PACELINE" search "${small[@]}" --framework megatron-core
  [ "$status" -eq 0 ]
  [[ "$output" == *"dropped     "*": megatron-core has zero 0, 1; with a pipeline 0, 1"* ]]
  [[ "$output" == *": megatron-core has the schedules 1f1b, interleaved"* && "$output" == *"overlap=on, of what the framework offers"* ]]
  [[ "$output" != *zero=[23]* ]]
  run "$PACELINE" search "${small[@]}" --framework megatron-core --any-strategy
  [ "$status" -eq 0 ]
  [[ "$output" == *zero=[23]* && "$output" != *"megatron-core has"* && "$output" != *"offers"* ]]
  run "$PACELINE" search "${small[@]}" --framework torch-fsdp
  [[ "$output" == *": torch-fsdp has of pp, tmp, cp and ep: none"* && "$output" == *"best "*"pp=1,dp=8,tmp=1"* ]]
  run "$PACELINE" search "${small[@]}" --framework megatron-core --zero 3 --dp 8
  [ "$status" -eq 2 ]
  [[ "$output" == *"no candidate is left for 8 devices: megatron-core has zero 0, 1"*"loosen the restrictions (--any-strategy) or change --gbs" ]]
  "$PACELINE" sweep "${small[@]}" --framework megatron-core -o "$BATS_TEST_TMPDIR/offered.h5" --quiet
  [ "$("$PACELINE" show "$BATS_TEST_TMPDIR/offered.h5" --where "zero>1 or schedule=='gpipe'" --json | jq .matching)" -eq 0 ]
  # A profile that does not say offers everything; what it says is checked.
  [ "$("$PACELINE" search "${small[@]}" --framework internevo | grep -c ' has ')" -eq 0 ]
  echo '{"name": "own", "offers": {"degrees": ["pp"], "schedules": ["1f1b"], "recompute": ["none"], "sp": [], "zero": [0, 4], "zero_with_pp": [0]}}' >"$own"
  run "$PACELINE" search "${small[@]}" --framework "$own"
  [[ "$status" -eq 2 && "$output" == *"own.json:1:"*"offers.zero: 4 is no ZeRO stage (0 to 3)" ]]
  echo '{"name": "own", "offers": {"degree": ["pp"]}}' >"$own"
  run "$PACELINE" search "${small[@]}" --framework "$own"
  [[ "$status" -eq 2 && "$output" == *"unknown key 'offers.degree'; did you mean 'degrees'?" ]]
  # Words of the shipped profiles are words that there are.
  for profile in workloads/frameworks/*.json; do
    jq -e '.offers == null or ((.offers.schedules - ["gpipe", "fifo", "1f1b", "interleaved", "breadth-first", "zb-h1", "zb-h2", "zb-v", "dualpipe-v"] == [])
      and (.offers.recompute - ["none", "selective", "full", "alternate"] == []) and (.offers.sp - ["off", "on"] == []) and (.offers.degrees - ["pp", "tmp", "cp", "ep"] == [])
      and .provenance.offers != null)' "$profile" >/dev/null || { echo "$profile"; return 1; }
  done
}

@test "an optimizer in the backward pass: searches leave out what it cannot do, and the rest is simulated" {
  jq '.name = "early" | .state.gradients = "consumed" | .state.optimizer = "fused_8bit" | .kernels.loss = "chunked"' workloads/frameworks/torchtune.json >"$own"
  small=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --seq 512 --framework "$own")
  run "$PACELINE" search "${small[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"early steps in the backward pass: one microbatch, and dp=1 or zero 2 and 3"* ]]
  "$PACELINE" sweep "${small[@]}" --pp 1,2 -o "$BATS_TEST_TMPDIR/early.h5" --quiet
  "$PACELINE" show "$BATS_TEST_TMPDIR/early.h5" --where true --top 100000 --json |
    jq -e '(.rows | length) > 10 and all(.rows[]; .dp * .mbs == 32 and (.dp == 1 or .zero >= 2) and .iter_time_s > 0)'
  run "$PACELINE" simulate "${small[@]}" --strategy pp=1,dp=16,tmp=1,mbs=1,zero=3
  [[ "$status" -eq 2 && "$output" == *"needs one microbatch per step; here are 2"* ]]
}

@test "of attention ideal has the fastest that the GPU has figures for" {
  job=(--model llama-3.1-8b --gbs 64 --strategy pp=2,dp=4,tmp=1,mbs=1 --json)
  takes() { "$PACELINE" simulate --platform "$1" "${job[@]}" "${@:2}" | jq .iter_time_s; }
  for platform in dgx-h100 dgx-a100 dgx-b200:1; do
    ideal=$(takes $platform)
    for kernel in any flash1 flash2 flash3 cudnn fastest; do
      printf '{"name": "one", "kernels": {"attention_kernel": "%s"}}' $kernel >"$BATS_TEST_TMPDIR/f.json"
      is=$(takes $platform --framework "$BATS_TEST_TMPDIR/f.json")
      python3 -c 'import sys; assert float(sys.argv[1]) <= float(sys.argv[2]), sys.argv' "$ideal" "$is" $platform $kernel
      [ $kernel != fastest ] || [ "$is" = "$ideal" ]
      # Hopper's first figures are FlashAttention 2's
      [ $platform/$kernel != dgx-h100/any ] || python3 -c 'import sys; assert float(sys.argv[2]) > 1.05 * float(sys.argv[1])' "$ideal" "$is"
    done
  done
  python3 -c 'import sys; assert float(sys.argv[1]) <= float(sys.argv[2])' "$(takes dgx-h100)" "$(takes dgx-h100 --framework megatron-core)"
}

@test "what collectives take of the multiprocessors from products beside them is said" {
  jq '.communication.overlaps_tensor_backward = true | .communication.overlaps_tensor = false' workloads/frameworks/megatron-core.json >"$BATS_TEST_TMPDIR/beside.json"
  jq '.communication.overlaps_tensor = true' "$BATS_TEST_TMPDIR/beside.json" >"$BATS_TEST_TMPDIR/userbuffers.json"
  jq '.communication.overlaps_tensor_backward = false' "$BATS_TEST_TMPDIR/beside.json" >"$BATS_TEST_TMPDIR/apart.json"
  said() {
    "$PACELINE" "$1" --platform "$2" --model llama-3-8b --gbs 8 --strategy "$3" --dtype "${5:-bf16}" --framework "$BATS_TEST_TMPDIR/$4.json" |
      sed -n 's/^collectives take *//p'
  }
  [[ $(said simulate dgx-a100 pp=1,dp=2,tmp=4,mbs=1,sp=1 beside) == "24 of 108 multiprocessors (A100-SXM4-80GB) from products beside them" ]]
  [[ $(said explain dgx-1v pp=1,dp=2,tmp=4,mbs=1 beside fp16) == "12 of 80 multiprocessors"* ]]
  [[ $(said simulate dgx-h100 pp=1,dp=2,tmp=4,mbs=1 userbuffers) == "24 of 132 multiprocessors"*"a second round of thread blocks" ]]
  [[ -z $(said simulate dgx-h100 pp=1,dp=2,tmp=4,mbs=1,sp=1 userbuffers) ]]
  [[ -z $(said simulate dgx-h100 pp=1,dp=2,tmp=4,mbs=1,sp=1 apart) ]]
  [[ -z $(said simulate dgx-h100 pp=1,dp=8,tmp=1,mbs=1 beside) ]]
}
