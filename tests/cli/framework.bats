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
