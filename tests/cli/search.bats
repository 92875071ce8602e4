#!/usr/bin/env bats
# paceline search: what it prints, what it finds, and for every bad input one line, exit status 2 and nothing written.

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  folder=$BATS_TEST_TMPDIR
  out=$folder/out.h5
  platform=platforms/amp-homogeneous.xml
  model=workloads/models/gpt2-345m.json
  job=(--platform "$platform" --model "$model" --gbs 32 --pp 1,2,4 --tmp 1,2 --mbs 1,2)
}

# message, options ...
refused() {
  local message=$1
  shift
  run "$PACELINE" search "$@"
  [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
  [[ "${lines[0]}" == "paceline search: "*"$message"* ]] || { echo "said: $output"; return 1; }
  [ "${#lines[@]}" -eq 1 ]
  [ "$(ls -A "$folder")" = "${left:-}" ] || { echo "left: $(ls -A "$folder")"; return 1; }
}

# The named number of a summary: top level of the JSON on standard input.
field() { /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

@test "finds the best and says how" {
  run "$PACELINE" search "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "method        bound" ]]
  [[ "$output" == *"candidates    "*"  dropped  "*"  bounded  "*" away"*"simulated  "* ]]
  [[ "$output" == *"best          "*"tokens/s"*"pp="[124]",dp="*",tmp=1,mbs=1,"*"nothing that was not simulated is faster than the best"* ]]
  [ -z "$(ls -A "$folder")" ]
}

@test "a method without programs says what is one" {
  refused "method bound knows no programs, and --schedule dualpipe is simulated as one; exhaustive (the default then)" "${job[@]}" --method bound --schedule 1f1b,dualpipe
  refused "method amp knows no programs, and --offload is simulated as one" "${job[@]}" --compare random,amp --offload none,states
}

@test "of how many strategies one was simulated, with a decimal where there is one" {
  run "$PACELINE" search "${job[@]}" --method random --budget 16
  candidates=$(sed -nE 's/^candidates +([0-9]+)$/\1/p' <<<"$output")
  [ $((candidates % 16)) -eq 0 ] && [ $((candidates % 7)) -ne 0 ]
  [[ "$output" == *"simulated     16 in "*" (1 of $((candidates / 16)))"* ]]
  run "$PACELINE" search "${job[@]}" --method random --budget 7
  [[ "$output" == *"simulated     7 in "*" (1 of $((candidates / 7))."[1-9]")"* ]]
}

@test "bound finds what exhaustive finds, the five best as well" {
  for method in bound exhaustive; do
    "$PACELINE" search "${job[@]}" --method $method --top 5 --json > "$folder/$method.json"
  done
  /usr/bin/python3 - "$folder" <<'PYTHON'
import json, sys
bound, every = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("bound", "exhaustive"))
assert [row["iter_time_s"] for row in bound["top"]] == [row["iter_time_s"] for row in every["top"]]
assert len(bound["top"]) == 5 and bound["gap"] == 0 and bound["rows"] < every["rows"] == every["candidates"]
assert bound["candidates"] == bound["rows"] + bound["bounded_away"] + bound["memory_away"]
PYTHON
}

@test "--json: names as in the file, exact numbers, null for what is not known" {
  run "$PACELINE" search "${job[@]}" --method random --budget 20 --json
  [ "$status" -eq 0 ]
  echo "$output" | /usr/bin/python3 -c '
import json, sys
s = json.load(sys.stdin)
assert s["method"] == "random" and s["ended"] == "budget" and s["file"] is None
assert s["rows"] == 20 == s["fit"] + s["out_of_memory"] + s["failed"] == s["simulated_now"]
assert s["bound_s"] is None and s["gap"] is None
best = s["top"][0]
assert best["method"] == "random" and 1 <= best["found"] <= 20 and best["strategy"].startswith("pp=")
assert best["pp"] * best["dp"] * best["tmp"] == 16 and best["iter_time_s"] > 0'
}

@test "what it names can be simulated, with the same result" {
  "$PACELINE" search "${job[@]}" --json > "$folder/summary.json"
  /usr/bin/python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["top"][0]["strategy"])' "$folder/summary.json" > "$folder/strategy"
  "$PACELINE" simulate --platform "$platform" --model "$model" --gbs 32 --strategy "$(cat "$folder/strategy")" --json > "$folder/simulated.json"
  /usr/bin/python3 -c '
import json, sys
found, again = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("summary", "simulated"))
assert found["top"][0]["run_digest"] in json.dumps(again)' "$folder"
}

@test "a budget, a gap, a seed" {
  [ "$("$PACELINE" search "${job[@]}" --budget 7 --json | field rows)" -eq 7 ]
  [ "$("$PACELINE" search "${job[@]}" --budget 1h --json | field ended)" = complete ]
  [ "$("$PACELINE" search "${job[@]}" --gap 50% --json | field ended)" = gap ]
  [ "$("$PACELINE" search "${job[@]}" --gap 50% --json | field rows)" -lt "$("$PACELINE" search "${job[@]}" --method exhaustive --json | field rows)" ]
  for seed in 1 1 2; do
    "$PACELINE" search "${job[@]}" --method random --budget 10 --seed $seed --quiet --force -o "$folder/$seed.h5"
    "$PACELINE" show "$folder/$seed.h5" --columns strategy --csv --where true > "$folder/$seed.$RANDOM.csv"
  done
  [ "$(cat "$folder"/1.*.csv | sort | uniq -u | wc -l)" -eq 0 ]
  [ "$(cat "$folder"/2.*.csv "$folder"/1.*.csv | sort | uniq -u | wc -l)" -gt 0 ]
}

@test "megatron: powers of two, tensor groups inside a node, the least of tmp * pp that fits" {
  "$PACELINE" search --platform platforms/dgx-a100-16.xml --model workloads/models/gpt3-175b.json --gbs 1536 --seq 2048 --mbs 1-3 \
    --method megatron --quiet -o "$out"
  "$PACELINE" show "$out" --where true --columns pp,dp,tmp,mbs,fits,recompute --csv | tail -n +2 > "$folder/rows"
  /usr/bin/python3 - "$folder/rows" <<'PYTHON'
import sys
rows = [line.strip().split(",") for line in open(sys.argv[1])]
steps = {}
for pp, dp, tmp, mbs, fits, recompute in rows:
    for n in (pp, dp, tmp, mbs):
        assert int(n) & (int(n) - 1) == 0
    assert int(tmp) <= 8
    step = (["none", "selective", "full"].index(recompute), int(pp) * int(tmp))
    steps.setdefault(mbs, {}).setdefault(step, []).append(fits == "1")
assert sorted(steps) == ["1", "2"]
for ladder in steps.values():  # something fits on the last step, nothing before it
    assert [any(ladder[step]) for step in sorted(ladder)] == [False] * (len(ladder) - 1) + [True]
PYTHON
}

@test "the file: columns of searches, order of discovery, resumed to the same bytes" {
  "$PACELINE" search "${job[@]}" --quiet -o "$out"
  run "$PACELINE" show "$out" --sort found --top 1 --where true --columns found,method,candidate,status --csv
  [ "${lines[1]}" = "1,bound,0,done" ]
  [ "$("$PACELINE" show "$out" --where 'bound_s > iter_time_s' --csv 2>/dev/null | tail -n +2 | wc -l)" -eq 0 ]
  "$PACELINE" search "${job[@]}" --quiet -o "$folder/cut.h5" --budget 40
  "$PACELINE" search "${job[@]}" --quiet -o "$folder/cut.h5" --resume
  cmp "$out" "$folder/cut.h5"
  left=$'cut.h5\nout.h5'
  refused "exists; --resume goes on with it, --force replaces it" "${job[@]}" -o "$out"
  refused "search_method is not the one of this run" "${job[@]}" -o "$out" --resume --method random
  refused "gbs is not the one of this run" "${job[@]}" -o "$out" --resume --gbs 64
  refused "is of another strategy than this search proposes" "${job[@]}" -o "$out" --resume --mbs 2
  cp "$out" "$folder/other.h5"
  /usr/bin/python3 -c 'import h5py, sys; h5py.File(sys.argv[1], "r+").attrs["paceline_build"] = "0123456789abcdef"' "$folder/other.h5"
  left=$'cut.h5\nother.h5\nout.h5'
  refused "from another build of paceline (0123456789abcdef there, " "${job[@]}" -o "$folder/other.h5" --resume
  "$PACELINE" sweep "${job[@]}" --mbs 1 --quiet --force -o "$folder/cut.h5"
  run "$PACELINE" show "$folder/cut.h5" --columns found
  [ "$status" -eq 2 ]
  [[ "$output" == *"it comes with paceline search"* ]]
}

@test "nothing fits: by how much, and what would do" {
  run "$PACELINE" search --platform platforms/dgx-a100.xml --model workloads/models/gpt3-175b.json --gbs 64 --seq 2048
  [ "$status" -eq 2 ]
  [[ "$output" == *"strategies fits in memory: the nearest lacks "*"GiB, as stage "*"64 such devices would do, with pp="* ]]
  run "$PACELINE" search --platform platforms/dgx-a100-16.xml --model workloads/models/gpt3-175b.json --gbs 256 --seq 2048 --tmp 8 --zero 0 --recompute none \
    --pp 4 --mbs 8
  [ "$status" -eq 2 ]
  [[ "$output" == *"with all of --"*" would fit"* ]]
}

@test "options and inputs that are wrong" {
  refused "--method: 'fastest' is unknown; one of amp, anneal, bound" "${job[@]}" --method fastest
  refused "--budget: '0' is neither a number of simulations (500) nor a time (10s, 5m, 2h)" "${job[@]}" --budget 0
  refused "--budget: '10x' is neither" "${job[@]}" --budget 10x
  refused "--budget: '2.5' is neither" "${job[@]}" --budget 2.5
  refused "--gap: '-1%' is not a share above 0" "${job[@]}" --gap -1%
  refused "--gap: '1%%' is not a share above 0" "${job[@]}" --gap 1%%
  refused "--top" "${job[@]}" --top 0
  refused "--seed" "${job[@]}" --seed -1
  refused "--resume needs -o FILE" "${job[@]}" --resume
  refused "--force needs -o FILE" "${job[@]}" --force
  refused "exclude each other" "${job[@]}" --force --resume -o "$out"
  refused "exclude each other" "${job[@]}" --quiet --json
  refused "runs one strategy at a time" "${job[@]}" --network simgrid
  refused "--pp: 'two' is not a list of integers" "${job[@]}" --pp two -o "$out"
  refused "--gbs N is missing" --platform "$platform" --model "$model"
  refused "nowhere.xml" "${job[@]}" --platform nowhere.xml -o "$out"
  refused "cannot be created there: No such file or directory" "${job[@]}" -o "$folder/no/such/out.h5"
  refused "no candidate is left for 16 devices" "${job[@]}" --pp 3 -o "$out"
  refused "no candidate follows Megatron's heuristics" "${job[@]}" --pp 1 --tmp 2 --mbs 3 --gbs 48 --method megatron -o "$out"
}

@test "only rank 0 speaks, and mpirun leaves with its status" {
  run mpirun -n 2 "$PACELINE" search "${job[@]}" --model nowhere.json -o "$out"
  [ "$status" -eq 2 ]
  [ "$(grep -c "paceline search:" <<< "$output")" -eq 1 ]
  run mpirun -n 2 "$PACELINE" search "${job[@]}"
  [ "$status" -eq 0 ]
  [ "$(grep -c "^best" <<< "$output")" -eq 1 ]
}

# Open MPI cannot start with a component that is not there.
@test "a process that no launcher started does without MPI" {
  OMPI_MCA_pml=none_such run "$PACELINE" search "${job[@]}" --quiet -o "$out"
  [ "$status" -eq 0 ] && [ -z "$output" ]
  OMPI_MCA_pml=none_such run "$PACELINE" search "${job[@]}" --quiet -o "$out" --resume
  [ "$status" -eq 0 ] && [ -z "$output" ]
  OMPI_MCA_pml=none_such run mpirun -n 1 "$PACELINE" search "${job[@]}"
  [ "$status" -ne 0 ]
}

@test "--help names the methods" {
  run "$PACELINE" search --help
  [ "$status" -eq 0 ]
  for word in --method --budget --gap --top --seed --resume --recompute --platform "  bound  " "  exhaustive  " "  megatron  " "  random  "; do
    [[ "$output" == *"$word"* ]]
  done
}

@test "of models that know no tokens throughput is samples/s" {
  local pictures=(--platform dgx-1v --model vgg-16 --gbs 64)
  run "$PACELINE" search "${pictures[@]}" --pp 1 --tmp 1 --mbs 8
  [[ "$output" == *"best "*" samples/s, MFU "* && "$output" != *"tokens"* ]]
  run "$PACELINE" simulate "${pictures[@]}" --strategy pp=1,dp=8,tmp=1,mbs=8
  [[ "$output" == *" 64 samples per iteration"* && "$output" == *"throughput "*" samples/s"* && "$output" != *"tokens"* ]]
  run "$PACELINE" compare "${pictures[@]}" pp=1,dp=8,tmp=1,mbs=8 pp=1,dp=8,tmp=1,mbs=4
  [[ "$output" == *"throughput "*" samples/s"* && "$output" != *"tokens/s"* ]]
}
