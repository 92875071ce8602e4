#!/usr/bin/env bats
# paceline search --method placement, and --allow-idle.

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

@test "--allow-idle: degrees that leave devices over, each a strategy of simulate" {
  run "$PACELINE" search "${job[@]}" --pp 3 --tmp 1 --mbs 1 --zero 0 --recompute none --schedule 1f1b
  [ "$status" -eq 2 ]
  [[ "$output" == *"no candidate is left for 16 devices"* ]]
  run "$PACELINE" search "${job[@]}" --pp 3 --tmp 1 --mbs 1 --zero 0 --recompute none --schedule 1f1b --allow-idle -o "$out"
  [ "$status" -eq 0 ]
  /usr/bin/python3 - "$out" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    assert set(f["pp"][:] * f["dp"][:]) == {3, 6, 12}, f["dp"][:]  # of the 5 dp that fit those that divide gbs
    assert all(b",idle=1," in t for t in f["strategy"][:])
PY
}
