#!/usr/bin/env bats
# paceline search --method amp: AMP's candidates in AMP's order.

setup() {
  job=(--model workloads/models/gpt2-345m.json --gbs 32)
  out=$BATS_TEST_TMPDIR/out.h5
}

# The 53 of its experiment on 16 GPUs in nodes of 4: powers of two, as those are all that divides.
@test "amp: its 53 candidates, in the order of its estimates" {
  run "$PACELINE" search --platform platforms/amp-homogeneous.xml "${job[@]}" --method amp -o "$out"
  [ "$status" -eq 0 ]
  [[ "$output" == *"candidates    53"* ]]
  [[ "$output" == *"simulated     53 "* ]]
  /usr/bin/python3 - "$out" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    estimate = f["estimate_s"][:]  # rows are in the order of discovery
    assert len(estimate) == 53 and (estimate > 0).all()
    assert all(a <= b for a, b in zip(estimate, estimate[1:])), estimate
    tried = set(zip(f["pp"][:], f["dp"][:], f["tmp"][:], f["mbs"][:]))
    assert tried == {(16 // d // t, d, t, m) for t in (1, 2, 4) for d in (1, 2, 4, 8, 16) if 16 % (d * t) == 0
                     for m in (1, 2, 4, 8, 16, 32) if 32 % (d * m) == 0}
PY
}

@test "amp: what the user says about a dimension holds" {
  run "$PACELINE" search --platform platforms/amp-homogeneous.xml "${job[@]}" --method amp --tmp 8 --mbs 1,2
  [ "$status" -eq 0 ]
  [[ "$output" == *"candidates    4"* ]]
  [[ "$output" == *"tmp=8"* ]]
}
