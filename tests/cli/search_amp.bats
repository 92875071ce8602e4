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

search_anneal() {
  run "$PACELINE" search --platform platforms/amp-hetero-cluster.xml "${job[@]}" --method anneal "$@"
  [ "$status" -eq 0 ]
}

@test "anneal: the same bytes again, others with another seed" {
  search_anneal --seed 3 -o "$BATS_TEST_TMPDIR/a.h5"
  search_anneal --seed 3 -o "$BATS_TEST_TMPDIR/b.h5" --threads 2
  cmp "$BATS_TEST_TMPDIR/a.h5" "$BATS_TEST_TMPDIR/b.h5"
  search_anneal --seed 4 -o "$BATS_TEST_TMPDIR/c.h5"
  /usr/bin/python3 -c 'import h5py, sys
a, b = (list(h5py.File(name)["strategy"][:]) for name in sys.argv[1:])
assert a != b' "$BATS_TEST_TMPDIR/a.h5" "$BATS_TEST_TMPDIR/c.h5"
}

@test "anneal: accepted states in the order of their estimates, some placed; the best is simulated again alike" {
  search_anneal -o "$out" --top 3
  /usr/bin/python3 - "$out" >"$BATS_TEST_TMPDIR/best" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    estimate, texts = f["estimate_s"][:], [t.decode() for t in f["strategy"][:]]
    assert len(texts) == len(set(texts)) > 10
    assert all(a <= b for a, b in zip(estimate, estimate[1:]))
    placed = [i for i, t in enumerate(texts) if "placement=" in t]
    assert placed
    print(texts[placed[0]], repr(float(f["iter_time_s"][placed[0]])))
PY
  read -r strategy time <"$BATS_TEST_TMPDIR/best"
  run "$PACELINE" simulate --platform platforms/amp-hetero-cluster.xml "${job[@]}" --strategy "$strategy" --json
  [ "$status" -eq 0 ]
  [[ "$output" == *"\"iter_time_s\": $time"* ]] || { echo "$strategy took $time: $output"; return 1; }
}

moe() {
  cat >"$BATS_TEST_TMPDIR/moe.json" <<'JSON'
{"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 8,
 "intermediate_size": 384, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1000}
JSON
  experts=(--platform platforms/hc3.xml --model "$BATS_TEST_TMPDIR/moe.json" --gbs 16 --seq 128)
}

@test "amp-dp and method amp: experts with tensor ranks, which need sequence parallelism" {
  moe
  run "$PACELINE" search "${experts[@]}" --assign amp-dp --tmp 2 --pp 2 --mbs 1,2 --zero 0
  [ "$status" -eq 0 ]
  [[ "$output" != *failed* && "$output" == *",tmp=2,"*"sp=1"* ]]
  for method in amp anneal megatron; do
    run "$PACELINE" search "${experts[@]}" --method $method --tmp 2
    [ "$status" -eq 0 ]
    [[ "$output" == *",tmp=2,"*"sp=1"* ]]
  done
}

@test "bound: a candidate that its assignment cannot express is a failed row, not the end; and so when resumed" {
  echo '{"model_type":"gpt2","n_embd":64,"n_layer":1000,"n_head":4,"n_positions":128,"vocab_size":1000}' >"$BATS_TEST_TMPDIR/long.json"
  "$PACELINE" platform make dgx-a100 --nodes 8 -o "$BATS_TEST_TMPDIR/p.xml"
  long=(--platform "$BATS_TEST_TMPDIR/p.xml" --model "$BATS_TEST_TMPDIR/long.json" --gbs 4 --seq 128 --pp 64 --mbs 4)
  long+=(--schedule gpipe --recompute none --assign amp-dp,uniform -o "$out")
  for again in "" --resume; do
    run "$PACELINE" search "${long[@]}" $again
    [ "$status" -eq 0 ]
    [[ "$output" == *"failed      1; the first: AMP's dynamic program over 1000 layers"* && "$output" == *"fit         1"* ]]
  done
}
