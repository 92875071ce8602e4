#!/usr/bin/env bats
# --op-profile: what simulate and explain make of measured layers, what is refused.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  job=(--platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32)
  layers=validation/calibration/amp_layer_times.csv
  strategy=(--strategy pp=4,dp=4,tmp=1,mbs=1)
}

@test "simulate and explain name the profile" {
  run "$PACELINE" simulate "${job[@]}" "${strategy[@]}" --op-profile "$layers"
  [ "$status" -eq 0 ]
  [[ "$output" == *"op profile       $layers"* ]]
  run "$PACELINE" simulate "${job[@]}" "${strategy[@]}" --op-profile "$layers" --json
  [[ "$output" == *"\"op_profile\": \"$layers\""* ]]
}

@test "explain names the source of each op: measured in the forward pass, scaled behind it" {
  run "$PACELINE" explain "${job[@]}" "${strategy[@]}" --op-profile "$layers" --stage 1 --top 0
  [ "$status" -eq 0 ]
  [[ "$(grep "^  forward   mlp_down " <<< "$output")" == *"measured layer" ]]
  [[ "$(grep "^  backward  mlp_down_dgrad" <<< "$output")" == *"scaled layer" ]]
  run "$PACELINE" explain "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=2 --op-profile "$layers" --stage 1 --top 0
  [[ "$(grep "^  forward   mlp_down " <<< "$output")" == *"scaled layer" ]]
}

@test "the forward pass of measured layers takes what was measured" {
  # 24 layers of 5.47 ms in the mean, 2 microbatches
  ms=$("$PACELINE" explain "${job[@]}" --strategy pp=1,dp=16,tmp=1,mbs=1 --op-profile "$layers" --json |
    /usr/bin/python3 -c '
import csv, json, sys
ops = json.load(sys.stdin)["stages"][0]["computing"]
measured = [o for o in ops if o["block"] == "layer" and o["pass"] == "forward"]
assert all(o["source"] == "measured layer" for o in measured)
rows = [float(r["time_s"]) for r in csv.DictReader(open(sys.argv[1]))
        if r["device"] == "T4" and r["block"] == "layer" and r["tmp"] == "1"]
print(round(1e6 * sum(o["alone_s"] for o in measured) / 2 / sum(rows), 0))' "$layers")
  [ "$ms" = 1000000.0 ]
}

@test "layers of unlike width take what each was measured to take" {
  # Stage 0: 9 of width 1024, stage 2: 4 of width 16, 16 microbatches
  "$PACELINE" explain --platform platforms/amp-p3-4.xml --model workloads/models/transgan-amp.json --gbs 64 --op-profile "$layers" \
    --strategy pp=4,dp=4,tmp=1,mbs=1,assign=0:12:44:48:56 --stage all --json | /usr/bin/python3 -c '
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
stages = json.load(sys.stdin)["stages"]
for stage, count, width in ((stages[0], 9, "1024"), (stages[2], 4, "16")):
    times = [float(r["time_s"]) for r in rows if r["hidden"] == width and r["n_heads"] == "4" and r["tmp"] == "1"]
    assert len(times) == 12
    ops = [o for o in stage["computing"] if o["block"] == "layer" and o["pass"] == "forward"]
    assert all(o["source"] == "measured layer" for o in ops)
    got = sum(o["alone_s"] for o in ops) / 16 / count
    assert abs(got - sum(times) / 12) < 1e-6 * got, (width, got)' "$layers"
}

@test "a sweep keeps the profile among what was asked for" {
  run "$PACELINE" sweep "${job[@]}" --pp 4 --tmp 1 --mbs 1 --op-profile "$layers" -o "$BATS_TEST_TMPDIR/s.h5"
  [ "$status" -eq 0 ]
  run h5dump -a op_profile "$BATS_TEST_TMPDIR/s.h5"
  [[ "$output" == *"$layers"* ]]
  run "$PACELINE" sweep "${job[@]}" --pp 4 --tmp 1 --mbs 1 -o "$BATS_TEST_TMPDIR/s.h5" --resume
  [ "$status" -eq 2 ]
}

@test "a profile of other models is refused, and a file that is none" {
  run "$PACELINE" simulate --platform platforms/amp-homogeneous.xml --model workloads/models/bert-large.json --gbs 32 \
    "${strategy[@]}" --op-profile "$layers"
  [ "$status" -eq 2 ]
  [[ "$output" == *"no row is of a block of"* ]]
  [ "${#lines[@]}" -eq 1 ]
  echo "device,block" > "$BATS_TEST_TMPDIR/p.csv"
  run "$PACELINE" explain "${job[@]}" "${strategy[@]}" --op-profile "$BATS_TEST_TMPDIR/p.csv"
  [ "$status" -eq 2 ]
  [[ "$output" == *"column 'pass' is missing"* ]]
}

@test "validate takes it for the rows that it is of, and never writes over it" {
  run "$PACELINE" validate validation/measured/amp_homogeneous.csv validation/measured/cudnn_llama32_1b.csv \
    --op-profile "$layers"
  [ "$status" -eq 0 ]
  cp "$layers" "$BATS_TEST_TMPDIR/p.csv"
  run "$PACELINE" validate validation/measured/amp_homogeneous.csv --op-profile "$BATS_TEST_TMPDIR/p.csv" \
    --csv "$BATS_TEST_TMPDIR/p.csv" --force
  [ "$status" -eq 2 ]
  cmp "$layers" "$BATS_TEST_TMPDIR/p.csv"
  run "$PACELINE" validate validation/measured/amp_homogeneous.csv --network simgrid
  [ "$status" -eq 2 ]
  [[ "$output" == *"neither flow nor analytic"* ]]
}
