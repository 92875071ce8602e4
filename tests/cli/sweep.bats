#!/usr/bin/env bats
# paceline sweep: what it prints, and for every bad input one line, exit status 2 and nothing written.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  folder=$BATS_TEST_TMPDIR
  out=$folder/out.h5
  platform=platforms/amp-homogeneous.xml
  model=workloads/models/gpt2-345m.json
  job=(--platform "$platform" --model "$model" --gbs 32 --pp 1,2 --tmp 1 --mbs 1 --schedule 1f1b --overlap on)
}

# message, options ...
refused() {
  local message=$1
  shift
  run "$PACELINE" sweep "$@"
  [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
  [[ "${lines[0]}" == "paceline sweep: "*"$message"* ]] || { echo "said: $output"; return 1; }
  [ "${#lines[@]}" -eq 1 ]
  [ "$(ls -A "$folder")" = "${left:-}" ] || { echo "left: $(ls -A "$folder")"; return 1; }
}

@test "counts, reasons and the best" {
  run "$PACELINE" sweep "${job[@]}" --seq 512 -o "$out"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "candidates  "* ]]
  [[ "$output" == *"dropped  "*": zero 2 and 3 are not offered with pp > 1"* ]]
  [[ "$output" == *"best  "*"tokens/s"* ]]
}

@test "ZeRO 2 and 3 with a pipeline: where they are named, as simulate has them" {
  local gpt=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024)
  "$PACELINE" sweep "${gpt[@]}" --zero 0-3 --pp 2 --tmp 2 --mbs 4 --schedule 1f1b,zb-h1 --sp off --recompute none --overlap on \
    --assign uniform -o "$out" --json >"$folder.json"
  [ "$(jq '.dropped["zero 2 and 3 shard gradients in every backward pass, which this schedule splits"]' "$folder.json")" = 2 ]
  rows=$("$PACELINE" show "$out" --json | jq -c '[.rows[] | {zero, schedule, iter_time_s, peak_mem_bytes}]')
  [ "$(jq -c '[.[] | select(.schedule == "1f1b") | .zero] | sort' <<<"$rows")" = "[0,1,2,3]" ]
  for zero in 2 3; do
    is=$("$PACELINE" simulate "${gpt[@]}" --strategy pp=2,dp=2,tmp=2,mbs=4,zero=$zero --json | jq -c '[.iter_time_s, .peak_mem_bytes]')
    [ "$is" = "$(jq -c ".[] | select(.zero == $zero) | [.iter_time_s, .peak_mem_bytes]" <<<"$rows")" ]
  done
}

@test "--schedule dualpipe: all candidates are programs, as simulate has them" {
  local gpt=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024)
  "$PACELINE" sweep "${gpt[@]}" --zero 0,1 --pp 2,4 --tmp 1 --mbs 1 --schedule 1f1b,dualpipe --recompute none --overlap on -o "$out" --json >"$folder.json"
  rows=$("$PACELINE" show "$out" --where true --json | jq -c '[.rows[] | {pp, zero, schedule, iter_time_s, peak_mem_bytes}]')
  [ "$(jq -c '[.[] | select(.schedule == "dualpipe") | [.pp, .zero]] | sort' <<<"$rows")" = "[[2,0],[2,1],[4,0],[4,1]]" ]
  for strategy in 2,4,0,dualpipe 4,2,1,dualpipe 4,2,1,1f1b; do
    IFS=, read -r pp dp zero schedule <<<"$strategy"
    is=$("$PACELINE" simulate "${gpt[@]}" --as-program --strategy pp=$pp,dp=$dp,tmp=1,mbs=1,zero=$zero,schedule=$schedule --json | jq -c '[.iter_time_s, .peak_mem_bytes]')
    [ "$is" = "$(jq -c ".[] | select(.zero == $zero and .pp == $pp and .schedule == \"$schedule\") | [.iter_time_s, .peak_mem_bytes]" <<<"$rows")" ] ||
      { echo "$strategy: $is"; return 1; }
  done
}

@test "the MFU of rows that are programs is simulate's, of the strategy in words and of its program" {
  local llama=(--platform dgx-h100:1 --model llama-3.1-8b --gbs 16)
  for length in "--seq 2048" "--seq 8192" "--seq 2048 --fp8"; do
    "$PACELINE" sweep "${llama[@]}" $length --pp 4 --dp 2 --tmp 1 --mbs 1 --schedule 1f1b,dualpipe --sp off --zero 0 --recompute none --overlap on --assign uniform -o "$out" --force >/dev/null
    "$PACELINE" show "$out" --where true --json >"$folder/rows.json"
    row=$(jq '.rows[] | select(.schedule == "1f1b") | .mfu * .iter_time_s' "$folder/rows.json")
    words=$("$PACELINE" simulate "${llama[@]}" $length --strategy pp=4,dp=2,tmp=1,mbs=1 --json | jq '.mfu * .iter_time_s')
    jq -en "$row / $words - 1 | fabs < 1e-9" || { echo "$length: $row, $words"; return 1; }
    is=$("$PACELINE" simulate "${llama[@]}" $length --as-program --strategy pp=4,dp=2,tmp=1,mbs=1,schedule=dualpipe --json | jq .mfu)
    [ "$is" = "$(jq '.rows[] | select(.schedule == "dualpipe") | .mfu' "$folder/rows.json")" ]
  done
  local gpt=(--platform amp-homogeneous --model gpt2-345m --gbs 16 --framework megatron-core --strategy pp=2,dp=4,tmp=2,mbs=1) # holds 50304 words of 50257
  words=$("$PACELINE" simulate "${gpt[@]}" --json | jq '.mfu * .iter_time_s')
  program=$("$PACELINE" simulate "${gpt[@]}" --as-program --json | jq '.mfu * .iter_time_s')
  jq -en "$program / $words - 1 | fabs < 1e-9" || { echo "$program, $words"; return 1; }
}

@test "--quiet says nothing; without --progress stderr stays empty" {
  run "$PACELINE" sweep "${job[@]}" -o "$out" --quiet
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "--json prints the names of the columns" {
  run "$PACELINE" sweep "${job[@]}" -o "$out" --json
  echo "$output" | /usr/bin/python3 -c '
import json, sys
s = json.load(sys.stdin)
assert s["candidates"] == s["fit"] + s["out_of_memory"] + s["failed"]
assert s["best"]["pp"] * s["best"]["dp"] * s["best"]["tmp"] == 16 and s["best"]["iter_time_s"] > 0'
}

@test "--skip-oom: what fits as without it, what does not with its memory and no times" {
  local wide=(--platform platforms/dgx-a100-16.xml --model workloads/models/gpt3-175b.json --gbs 128 --seq 2048 --pp 4,8 --mbs 1,2
    --schedule gpipe,1f1b,interleaved --vpp 3 --overlap on)
  "$PACELINE" sweep "${wide[@]}" -o "$out" --quiet
  run "$PACELINE" sweep "${wide[@]}" --skip-oom -o "$folder/skipped.h5"
  [ "$status" -eq 0 ]
  [[ "$output" == *", not run (--skip-oom): memory, no times"* ]]
  /usr/bin/python3 - "$out" "$folder/skipped.h5" << 'END'
import sys, h5py
whole, skipped = (h5py.File(path) for path in sys.argv[1:])
played = {"iter_time_s", "iter_time_low_s", "iter_time_high_s", "samples_per_s", "tokens_per_s", "mfu", "bubble_s", "compute_s", "data_comm_s",
          "tensor_comm_s", "pipeline_comm_s", "context_comm_s", "expert_comm_s", "n_tasks", "run_digest"}
fits = whole["fits"][:] == 1
assert 0 < fits.sum() < len(fits), fits.sum()
for name in whole:
    a, b = whole[name][:], skipped[name][:]
    assert (a[fits] == b[fits]).all(), name
    same = a[~fits] == b[~fits]
    assert not same.any() if name in played else same.all(), name
    if name in played:
        assert (b[~fits] == 0).all() if name in ("n_tasks", "run_digest") else (b[~fits] != b[~fits]).all(), name
END
  left=$'out.h5\nskipped.h5'
  refused "cannot be resumed: skip_oom is not the one of this run (1 there, 0 here)" "${wide[@]}" -o "$folder/skipped.h5" --resume
  run "$PACELINE" show "$folder/skipped.h5" --where "status == 'oom'" --top 1 --csv
  [ "$status" -eq 0 ]
  [[ "${lines[1]}" == *",oom"* ]]
}

@test "only rank 0 speaks, and mpirun leaves with its status" {
  run mpirun -n 2 "$PACELINE" sweep "${job[@]}" --pp x -o "$out"
  [ "$status" -eq 2 ]
  [ "$(grep -c "paceline sweep:" <<< "$output")" -eq 1 ]
  run mpirun -n 2 "$PACELINE" sweep "${job[@]}" --model nowhere.json -o "$out"
  [ "$status" -eq 2 ]
  [ "$(grep -c "paceline sweep:" <<< "$output")" -eq 1 ]
  [ -z "$(ls -A "$folder")" ]
  run mpirun -n 2 "$PACELINE" sweep "${job[@]}" -o "$out"
  [ "$(grep -c "^candidates" <<< "$output")" -eq 1 ]
}

@test "--help" {
  run "$PACELINE" sweep --help
  [ "$status" -eq 0 ]
  [[ "$output" == *"--resume"* && "$output" == *"--recompute"* && "$output" == *"--platform"* ]]
  run mpirun -n 2 "$PACELINE" sweep --help # printed by one rank, and no rank fails
  [ "$status" -eq 0 ]
  [ "$(grep -c "^Usage:" <<< "$output")" -eq 1 ]
}

@test "options that are wrong" {
  refused "--gbs" "${job[@]}" --gbs many -o "$out"
  refused "--gbs" "${job[@]}" --gbs -4 -o "$out"
  refused "--seq" "${job[@]}" --seq 1e3 -o "$out"
  refused "--threads" "${job[@]}" --threads 0 -o "$out"
  refused "--pp: 'two' is not a list of integers" "${job[@]}" --pp two -o "$out"
  refused "--tmp: '8-1' has a range that runs backwards" "${job[@]}" --tmp 8-1 -o "$out"
  refused "--zero: '4' must stay within 0 to 3" "${job[@]}" --zero 4 -o "$out"
  refused "of other schedules vpp is 1 anyway): '1,2' must stay within 2 to" "${job[@]}" --vpp 1,2 -o "$out"
  refused "--schedule: '2f2b' is not a list of gpipe, 1f1b, interleaved, fifo, breadth-first, zb-h1, zb-h2, zb-v, dualpipe-v" "${job[@]}" --schedule 2f2b -o "$out"
  refused "--features: not known of programs yet" "${job[@]}" --schedule 1f1b,dualpipe --features -o "$out"
  refused "dualpipe: an odd number of stages or microbatches, or fewer of these than 2 * pp" "${job[@]}" --schedule dualpipe --pp 4 --mbs 8 -o "$out"
  refused "--recompute: 'some' is not" "${job[@]}" --recompute some -o "$out"
  refused "--assign: 'uniform,' is not a list of uniform, balanced" "${job[@]}" --assign uniform, -o "$out"
  refused "--sp: 'maybe' is not on, off or both" "${job[@]}" --sp maybe -o "$out"
  refused "--order: 'tdd' is not a list of permutations" "${job[@]}" --order tdd -o "$out"
  refused "--dtype: 'fp12' is unknown" "${job[@]}" --dtype fp12 -o "$out"
  refused "--network: 'carrier-pigeon' is unknown" "${job[@]}" --network carrier-pigeon -o "$out"
  refused "runs one strategy at a time" "${job[@]}" --network simgrid -o "$out"
  refused "-o FILE is missing" "${job[@]}"
  refused "exclude each other" "${job[@]}" --force --resume -o "$out"
  refused "is not an option" "${job[@]}" --fast -o "$out"
  refused "one argument too many" "${job[@]}" -o "$out" more
  refused "--platform is missing: a file, or a name" --model "$model" --gbs 32 -o "$out"
  refused "--gbs N is missing" --model "$model" --platform "$platform" -o "$out"
}

@test "inputs that are wrong" {
  refused "nowhere.xml" "${job[@]}" --platform nowhere.xml -o "$out"
  refused "nowhere.json" "${job[@]}" --model nowhere.json -o "$out"
  refused "README.md" "${job[@]}" --model README.md -o "$out"
  refused "cannot be created there: No such file or directory" "${job[@]}" -o "$folder/no/such/out.h5"
  refused "exists and is not a regular file" "${job[@]}" -o "$folder"
  refused "no candidate is left for 16 devices" "${job[@]}" --pp 3 -o "$out"
  refused "tmp does not divide 16 heads" --platform platforms/dgx-a100-16.xml --model "$model" --gbs 64 --tmp 32 -o "$out"
}

@test "a file that exists needs --force or --resume" {
  "$PACELINE" sweep "${job[@]}" -o "$out" --quiet
  cp "$out" "$folder/copy.h5"
  left=$'copy.h5\nout.h5'
  refused "exists; --resume goes on with it, --force replaces it" "${job[@]}" -o "$out"
  cmp "$out" "$folder/copy.h5"
  echo text > "$folder/copy.h5"
  "$PACELINE" sweep "${job[@]}" -o "$folder/copy.h5" --quiet --force
  cmp "$out" "$folder/copy.h5"
  for short in "-f -o $folder/copy.h5" "-fo $folder/copy.h5" "-fo$folder/copy.h5"; do # nothing of it is recorded
    echo text >"$folder/copy.h5"
    # shellcheck disable=SC2086
    "$PACELINE" sweep "${job[@]}" $short --quiet
    cmp "$out" "$folder/copy.h5"
  done
  run "$PACELINE" sweep "${job[@]}" -o "$out" --resume --json
  [[ "$output" == *'"simulated_now": 0,'* ]]
  cmp "$out" "$folder/copy.h5"
}

@test "--resume refuses another run's file and says what differs" {
  "$PACELINE" sweep "${job[@]}" -o "$out" --quiet
  cp "$out" "$folder/copy.h5"
  left=$'copy.h5\nout.h5'
  refused "cannot be resumed: platform_digest is not the one of this run" "${job[@]}" --platform platforms/amp-p3-4.xml -o "$out" --resume
  refused "cannot be resumed: model_digest" "${job[@]}" --model workloads/models/gpt2-1.5b.json -o "$out" --resume
  refused "cannot be resumed: gbs is not the one of this run (32 there, 64 here)" "${job[@]}" --gbs 64 -o "$out" --resume
  refused "cannot be resumed: seq" "${job[@]}" --seq 512 -o "$out" --resume
  refused "cannot be resumed: network" "${job[@]}" --network analytic -o "$out" --resume
  refused "cannot be resumed: space_digest" "${job[@]}" --overlap both -o "$out" --resume
  cmp "$out" "$folder/copy.h5"
}

@test "an input is not overwritten, not even with --force or under another name" {
  cp workloads/models/gpt2-345m.json "$folder/model.json"
  ln "$folder/model.json" "$folder/other.json"
  left=$'model.json\nother.json'
  refused "is an input of this command" "${job[@]}" --model "$folder/model.json" -o "$folder/other.json" --force
  cmp workloads/models/gpt2-345m.json "$folder/model.json"
}

@test "--resume refuses what is not ours" {
  "$PACELINE" sweep "${job[@]}" -o "$out" --quiet
  left=out.h5
  head -c 20000 "$out" > "$folder/cut" && mv "$folder/cut" "$out"
  refused "is damaged or truncated HDF5" "${job[@]}" -o "$out" --resume
  echo "not HDF5" > "$out"
  refused "is not an HDF5 file" "${job[@]}" -o "$out" --resume
  /usr/bin/python3 -c 'import h5py, sys; h5py.File(sys.argv[1], "w")["x"] = [1]' "$out"
  refused "is HDF5, but not a results file of paceline sweep" "${job[@]}" -o "$out" --resume
}

@test "--resume without a file starts one" {
  "$PACELINE" sweep "${job[@]}" -o "$out" --quiet --resume
  "$PACELINE" sweep "${job[@]}" -o "$folder/plain.h5" --quiet
  cmp "$out" "$folder/plain.h5"
}

@test "the bytes do not depend on the moment or on options that change no row" {
  "$PACELINE" sweep "${job[@]}" -o "$out" --quiet
  sleep 1.1
  "$PACELINE" sweep --thr 2 "${job[@]}" --progress --json --output="$folder/other.h5"
  cmp "$out" "$folder/other.h5"
}

@test "--assign optimal,amp-dp: a candidate of its own for each, the best of them no slower than the balanced one" {
  run "$PACELINE" sweep --platform platforms/amp-hetero-cluster.xml --model workloads/models/gpt2-345m.json --gbs 32 \
    --pp 4 --tmp 1 --mbs 1 --schedule 1f1b --recompute none --zero 0 --overlap on \
    --assign uniform,balanced,optimal,amp-dp -o "$out"
  [ "$status" -eq 0 ]
  run "$PACELINE" show "$out" --top 9 --columns assign,iter_time_s
  [ "$status" -eq 0 ]
  [ "$(grep -c '0:.*:24' <<<"$output")" -eq 4 ]
}

@test "the recorded command is one that a shell takes back, whatever the file is called" {
  cp "$model" "$folder/it's \$HOME.json"
  "$PACELINE" sweep "${job[@]}" --model "$folder/it's \$HOME.json" -o "$out" --quiet
  command=$(/usr/bin/python3 -c 'import h5py, sys; print(h5py.File(sys.argv[1]).attrs["command"])' "$out" 2>/dev/null ||
    "$PACELINE" show "$out" | sed -n 's/^command *//p')
  [[ "$command" == "paceline sweep "*"it'\\''s"* ]]
  paceline() { "$PACELINE" "$@"; }
  eval "$command -o '$folder/again.h5' --quiet"
  cmp "$out" "$folder/again.h5"
}
