#!/usr/bin/env bats
# What is beyond what can be said: no time is printed or stored as one.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  giant=$BATS_TEST_TMPDIR/giant.json
  cat > "$giant" <<'EOF'
{"model_type": "llama", "num_hidden_layers": 20, "hidden_size": 4194304, "num_attention_heads": 32768, "intermediate_size": 4194304,
 "max_position_embeddings": 4096, "vocab_size": 128256}
EOF
  job=(--platform platforms/hc1.xml --model "$giant" --gbs 8 --dtype fp32)
}

@test "more than 48 days: refused on every network" {
  for way in "" "--network analytic" "--network simgrid" "--collectives chunked" "--no-fuse --no-fold" "--streams ready"; do
    run "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=8,tmp=1,mbs=1 $way
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *"more than 48 days"* ]] || { echo "$way: $output"; return 1; }
  done
}

@test "candidates that take more than 48 days have failed, with the reason, and none is best" {
  run "$PACELINE" sweep "${job[@]}" --pp 1 --tmp 8,4 --mbs 1 -o "$BATS_TEST_TMPDIR/out.h5"
  [ "$status" -eq 2 ]
  [[ "$output" == *"  fit         0"*"first failure, candidate 0: the run takes more than 48 days"*"none could be simulated"* ]] || { echo "$output"; return 1; }
  run "$PACELINE" search "${job[@]}" --method exhaustive --pp 1 --tmp 8 --mbs 1
  [[ "$output" == *"fit         0"*"more than 48 days"*"none could be simulated"* ]] || { echo "$output"; return 1; }
}
