#!/usr/bin/env bats
# paceline search --method placement, and --allow-idle.
# Not sanitized: searches of full size; unit and property tests of placement run there.

setup() {
  job=(--platform platforms/amp-hetero-cluster.xml --model workloads/models/gpt2-345m.json --gbs 32)
  out=$BATS_TEST_TMPDIR/out.h5
}

@test "placement: far better than the best of all orders; the same bytes for any threads; simulated again alike" {
  "$PACELINE" search "${job[@]}" --method placement --budget 700 --threads 1 -o "$out" --quiet
  "$PACELINE" search "${job[@]}" --method placement --budget 700 --threads 3 -o "$BATS_TEST_TMPDIR/b.h5" --quiet
  cmp "$out" "$BATS_TEST_TMPDIR/b.h5"
  "$PACELINE" search "${job[@]}" --method exhaustive --assign uniform,balanced,optimal --mbs 1,2,4 --quiet -o "$BATS_TEST_TMPDIR/all.h5"
  /usr/bin/python3 - "$out" "$BATS_TEST_TMPDIR/all.h5" >"$BATS_TEST_TMPDIR/best" <<'PY'
import h5py, numpy, sys
with h5py.File(sys.argv[1]) as placed, h5py.File(sys.argv[2]) as orders:
    time, texts = placed["iter_time_s"][:], [t.decode() for t in placed["strategy"][:]]
    best = int(numpy.argmin(time))
    assert time[best] < 0.72 * orders["iter_time_s"][:].min(), (time[best], orders["iter_time_s"][:].min())
    assert "placement=" in texts[best]
    print(texts[best], repr(float(time[best])))
PY
  read -r strategy time <"$BATS_TEST_TMPDIR/best"
  for option in "" --no-fold; do
    run "$PACELINE" simulate "${job[@]}" --strategy "$strategy" --json $option
    [ "$status" -eq 0 ]
    [[ "$output" == *"\"iter_time_s\": $time,"* || "$output" == *"\"iter_time_s\":$time,"* ]]
  done
}

@test "placement: unlike replicas get unlike numbers of microbatches" {
  run "$PACELINE" search "${job[@]}" --method placement --pp 1 --budget 100
  [ "$status" -eq 0 ]
  [[ "$output" == *",split="* ]]
}

# An order says how a placement is written down: the second of the same devices is no other strategy.
@test "placement: devices that two orders write differently are simulated once" {
  "$PACELINE" search "${job[@]}" --method placement --order tdp,tpd --budget 200 --quiet -o "$out"
  "$PACELINE" show "$out" --csv --where true --columns strategy | sed 1d >"$BATS_TEST_TMPDIR/both"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/both")" -eq 200 ]
  [ "$(grep -c 'order=tdp.*placement=' "$BATS_TEST_TMPDIR/both")" -ge 50 ]
  ! grep -q 'order=tpd.*placement=' "$BATS_TEST_TMPDIR/both"
}

@test "placement: without a limit not worse than every candidate in its order" {
  few=(--pp 2 --tmp 2 --mbs 2 --schedule 1f1b,interleaved --recompute none --zero 0 --allow-idle --quiet)
  "$PACELINE" search "${job[@]}" --method placement "${few[@]}" -o "$out"
  "$PACELINE" search "${job[@]}" --method exhaustive "${few[@]}" -o "$BATS_TEST_TMPDIR/all.h5"
  /usr/bin/python3 - "$out" "$BATS_TEST_TMPDIR/all.h5" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as placed, h5py.File(sys.argv[2]) as orders:
    assert placed["iter_time_s"][:].min() <= orders["iter_time_s"][:].min()
PY
}

@test "bound on unlike devices: not worse than placement, and it says what its proof holds for" {
  "$PACELINE" search "${job[@]}" --json -o "$out" >"$BATS_TEST_TMPDIR/bound.json"
  "$PACELINE" search "${job[@]}" --method placement --budget 200 --json >"$BATS_TEST_TMPDIR/placement.json"
  "$PACELINE" search "${job[@]}" --order tdp --json >"$BATS_TEST_TMPDIR/order.json"
  /usr/bin/python3 - "$BATS_TEST_TMPDIR" "$out" <<'PY'
import h5py, json, sys
bound, placed, order = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("bound", "placement", "order"))
best, rows = bound["top"][0]["iter_time_s"], bound["rows"]
assert best <= placed["top"][0]["iter_time_s"] and best < 0.6 * order["top"][0]["iter_time_s"], best
assert rows <= 200 and bound["ended"] == "complete" and bound["placements"] > 1000 and bound["gap"] == 0
assert 0 < bound["bound_anywhere_s"] < best and order["bound_anywhere_s"] is None and order["placements"] == 0
assert bound["space"].startswith("order=tdp, assign=uniform,balanced, cp=1, mbs=1-8, vpp=2-4, schedule=gpipe,1f1b,"), bound["space"]
with h5py.File(sys.argv[2]) as f:
    space = f.attrs["space"]
    assert (space.decode() if isinstance(space, bytes) else space) == bound["space"]
    assert (f["bound_s"][:] <= f["iter_time_s"][:]).all() and f["iter_time_s"][:].min() == best
PY
  run "$PACELINE" search "${job[@]}" --pp 8 --tmp 2 --mbs 1 --recompute none --schedule gpipe
  [[ "$output" == *"best, of "*" strategies"*"in the order given, order=tdp, assign=uniform,balanced, pp=8, tmp=2, "*"and of all "*" placements that were ranked"*"beyond "* ]]
  run "$PACELINE" search "${job[@]}" --pp 8 --tmp 2 --mbs 1 --recompute none --schedule gpipe --order tdp
  [[ "$output" == *"in the order given, order=tdp, "* && "$output" != *"placements"* ]]
}

# 960 pools of one device under 80 stages: as deep as a walk over them gets.
@test "placement: 480 + 480 nodes under 80 stages" {
  "$PACELINE" platform make dgx-a100 --nodes 960 --gpus-per-node 1 -o "$BATS_TEST_TMPDIR/like.xml"
  sed -E '/<host id="n(4[89]|[5-9][0-9])[0-9]g0"/s/A100-SXM4-80GB/A100-SXM4-40GB/' "$BATS_TEST_TMPDIR/like.xml" >"$BATS_TEST_TMPDIR/mixed.xml"
  [ "$(grep -c 'value="A100-SXM4-40GB"' "$BATS_TEST_TMPDIR/mixed.xml")" -eq 480 ]
  echo '{"model_type":"gpt2","n_embd":256,"n_layer":80,"n_head":4,"n_positions":128,"vocab_size":1000}' >"$BATS_TEST_TMPDIR/m.json"
  run "$PACELINE" search --platform "$BATS_TEST_TMPDIR/mixed.xml" --model "$BATS_TEST_TMPDIR/m.json" --gbs 12 --pp 80 --tmp 1 \
    --mbs 1 --zero 0 --recompute none --schedule 1f1b --overlap on --method placement --budget 1
  [ "$status" -eq 0 ]
  [[ "$output" == *"simulated     1 in"*"pp=80,dp=12,"* ]]
}

@test "--allow-idle: degrees that leave devices over, each a strategy of simulate" {
  run "$PACELINE" search "${job[@]}" --pp 3 --tmp 1 --mbs 1 --zero 0 --recompute none --schedule 1f1b
  [ "$status" -eq 2 ]
  [[ "$output" == *"no candidate is left for 16 devices"* ]]
  run "$PACELINE" search "${job[@]}" --pp 3 --tmp 1 --mbs 1 --zero 0 --recompute none --schedule 1f1b --allow-idle --order tdp -o "$out"
  [ "$status" -eq 0 ]
  /usr/bin/python3 - "$out" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    assert set(f["pp"][:] * f["dp"][:]) == {3, 6, 12}, f["dp"][:]  # of the 5 dp that fit those that divide gbs
    assert all(b",idle=1," in t for t in f["strategy"][:])
PY
}

# Unlike nodes in turns: a placement in which each kind stands together names every device.
@test "strategies longer than their column: told apart, printed whole, run again alike, resumed" {
  "$PACELINE" platform make dgx-a100 --nodes 480 --gpus-per-node 1 -o "$BATS_TEST_TMPDIR/like.xml"
  sed -E '/<host id="n[0-9]*[13579]g0"/s/A100-SXM4-80GB/V100-SXM2-32GB/' "$BATS_TEST_TMPDIR/like.xml" >"$BATS_TEST_TMPDIR/turns.xml"
  echo '{"model_type":"gpt2","n_embd":512,"n_layer":20,"n_head":8,"n_positions":256,"vocab_size":1000}' >"$BATS_TEST_TMPDIR/m.json"
  turns=(--platform "$BATS_TEST_TMPDIR/turns.xml" --model "$BATS_TEST_TMPDIR/m.json" --gbs 480)
  few=(--pp 20 --tmp 1 --mbs 1 --zero 0 --recompute none --schedule 1f1b --overlap on --method placement)
  "$PACELINE" search "${turns[@]}" "${few[@]}" --budget 20 --top 20 --json -o "$out" >"$BATS_TEST_TMPDIR/top.json"
  "$PACELINE" search "${turns[@]}" "${few[@]}" --budget 30 --quiet -o "$out" --resume
  /usr/bin/python3 - "$BATS_TEST_TMPDIR/top.json" "$out" >"$BATS_TEST_TMPDIR/longest" <<'PY'
import h5py, json, sys
top = json.load(open(sys.argv[1]))["top"]
with h5py.File(sys.argv[2]) as f:
    column = [text.decode() for text in f["strategy"][:]]
assert len(column) == 30 == len(set(column)) and len({row["strategy"] for row in top}) == 20
row = max(top, key=lambda row: len(row["strategy"]))
assert len(row["strategy"]) > 1024 and any("..." in text for text in column)
print(row["strategy"], repr(row["iter_time_s"]))
PY
  read -r strategy time <"$BATS_TEST_TMPDIR/longest"
  run "$PACELINE" simulate "${turns[@]}" --strategy "$strategy" --json
  [ "$status" -eq 0 ]
  [[ "$output" == *"\"iter_time_s\": $time,"* ]]
}
