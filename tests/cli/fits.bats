#!/usr/bin/env bats
# Whether a strategy fits in memory stands in front of its time, with what is lacking and what would do; --must-fit makes it
# the exit status.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  dir=$BATS_TEST_TMPDIR
  job=(--platform platforms/dgx-h100.xml --model workloads/models/llama-2-7b.json --gbs 8 --seq 4096 --dtype bf16)
  large=pp=1,dp=8,tmp=1,mbs=1
}

@test "simulate and explain: the verdict comes before the time, and what is named fits" {
  for command in simulate explain; do
    run "$PACELINE" "$command" "${job[@]}" --strategy "$large"
    [ "$status" -eq 0 ]
    [[ "$output" =~ "memory           DOES NOT FIT: stage 0 needs "[0-9.]+" GiB of "[0-9.]+" GiB, "[0-9.]+" GiB are lacking; 1 of 1 stages lack some" ]]
    [[ "$output" =~ nearest\ fit\ \ \ \ \ \ zero=[1-3].*:\ (pp=1,[^$'\n']*) ]] || { echo "$output"; return 1; }
    named=${BASH_REMATCH[1]}
    before=${output%%iteration time*}
    [[ "$before" == *"DOES NOT FIT"*"nearest fit"* ]]
    [[ "$output" =~ iteration\ time[^$'\n']*,\ if\ memory\ sufficed ]]
    run "$PACELINE" "$command" "${job[@]}" --strategy "$named" --must-fit
    [ "$status" -eq 0 ]
    [[ "$output" =~ "memory           fits: "[0-9.]+" GiB of "[0-9.]+" GiB at the fullest, stage 0" ]]
    [[ "$output" != *"if memory sufficed"* && "$output" != *"OUT OF MEMORY"* ]]
  done
}

@test "JSON has the shortfall and the nearest strategy, or neither" {
  for command in simulate explain; do
    "$PACELINE" "$command" "${job[@]}" --strategy "$large" --json >"$dir/no"
    "$PACELINE" "$command" "${job[@]}" --strategy "$large,zero=3" --json >"$dir/yes"
    /usr/bin/python3 - "$dir" <<'EOF'
import json, sys
no, yes = (json.load(open(f'{sys.argv[1]}/{name}')) for name in ('no', 'yes'))
assert no['fits'] == 0 and no['shortfall_bytes'] == no['peak_mem_bytes'] - no['mem_capacity_bytes'] > 0
assert no['nearest_fit'].startswith('pp=1,dp=8')
assert yes['fits'] == 1 and 'shortfall_bytes' not in yes and 'nearest_fit' not in yes
EOF
  done
}

@test "--must-fit: the result all the same, one line on standard error, exit status 3" {
  for command in simulate explain; do
    "$PACELINE" "$command" "${job[@]}" --strategy "$large" >"$dir/without"
    status=0
    "$PACELINE" "$command" "${job[@]}" --strategy "$large" --must-fit >"$dir/with" 2>"$dir/error" || status=$?
    [ "$status" -eq 3 ]
    cmp "$dir/without" "$dir/with"
    [ "$(wc -l <"$dir/error")" -eq 1 ]
    grep -q "paceline $command: --must-fit: stage 0 lacks .* of memory" "$dir/error"
  done
}

@test "--must-fit of a sweep and of a search: 3 where nothing fits, else 0, and the same file" {
  local none=(--pp 1 --tmp 1 --mbs 1 --zero 0 --recompute none --overlap on) some=(--pp 1 --tmp 1 --mbs 1 --zero 0,3 --recompute none --overlap on)
  run "$PACELINE" sweep "${job[@]}" "${none[@]}" --must-fit -o "$dir/none.h5" --quiet
  [ "$status" -eq 3 ]
  [[ "$output" == "paceline sweep: --must-fit: none of 1 strategies fits in memory" ]]
  run "$PACELINE" sweep "${job[@]}" "${some[@]}" --must-fit -o "$dir/some.h5"
  [ "$status" -eq 0 ]
  "$PACELINE" sweep "${job[@]}" "${some[@]}" -o "$dir/plain.h5" --quiet
  cmp "$dir/some.h5" "$dir/plain.h5"
  run "$PACELINE" search "${job[@]}" "${none[@]}" --must-fit
  [ "$status" -eq 3 ]
  run "$PACELINE" search "${job[@]}" "${some[@]}" --must-fit
  [ "$status" -eq 0 ]
  run "$PACELINE" search "${job[@]}" --must-fit --compare bound,random
  [ "$status" -eq 2 ]
}

@test "where nothing on these GPUs would do, the output says so" {
  run "$PACELINE" simulate --platform platforms/dgx-a100.xml --model workloads/models/gpt3-175b.json --gbs 8 --seq 2048 --strategy pp=1,dp=1,tmp=8,mbs=1
  [ "$status" -eq 0 ]
  [[ "$output" == *"DOES NOT FIT"*"nearest fit      none was found on these GPUs"* ]]
}

@test "--allocator: what it holds beyond the tensors, as the framework has it or as asked; sweeps count tensors" {
  held() { "$PACELINE" simulate "${job[@]}" --framework deepspeed-zero3 --strategy pp=1,dp=8,tmp=1,mbs=1,zero=3 "$@" --json | jq .reserved_mem_bytes; }
  [ "$(held)" = "$(held --allocator caching)" ]
  [ "$(held --allocator exact)" != "$(held --allocator caching)" ]
  [ "$(held --allocator expandable)" != "$(held --allocator caching)" ]
  of_sweep() {
    "$PACELINE" sweep "${job[@]}" --framework deepspeed-zero3 --pp 1 --tmp 1 --mbs 1 --zero 3 --recompute none "$@" -o "$dir/s.h5" --force --quiet
    "$PACELINE" show "$dir/s.h5" --csv --columns reserved_mem_bytes
  }
  [ "$(of_sweep)" = "$(of_sweep --allocator exact)" ]
  [ "$(of_sweep)" != "$(of_sweep --allocator caching)" ]
  for command in "sweep -o $dir/t.h5 --force" search; do
    told() { "$PACELINE" $command "${job[@]}" --pp 1 --tmp 1 --mbs 1 --zero 3 --recompute none "$@" | grep -c '^memory        of tensors and what deepspeed-zero3 adds; simulate replays its allocator, as --allocator caching does here$' || true; }
    [ "$(told --framework deepspeed-zero3)" = 1 ]
    [ "$(told --framework deepspeed-zero3 --allocator exact)$(told --framework ideal)" = 00 ]
  done
  run "$PACELINE" simulate "${job[@]}" --strategy "$large" --as-program --allocator caching
  [ "$status" -eq 2 ]
  [[ "$output" == "paceline simulate: --allocator caching: of "*" tensors are counted, no allocator is replayed"* ]]
  run "$PACELINE" simulate "${job[@]}" --strategy "$large" --allocator buddy
  [ "$status" -eq 2 ]
  [[ "$output" == *"--allocator: 'buddy' is unknown; choose one of exact, caching, expandable"* ]]
}
