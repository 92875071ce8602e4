#!/usr/bin/env bats
# `paceline search --gpus`: each size is the search of that platform alone; days, money and energy follow from it; what is in time.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_TMPDIR"
  job=(--model llama-3.1-8b --gbs 64)
}

refuses() { # 'MESSAGE' WORD ...
  local message="paceline search: $1"
  shift
  run -2 --separate-stderr "$PACELINE" search "$@"
  [[ -z $output && $stderr == "$message"* && $stderr != *$'\n'* ]] || { printf 'wanted: %s\nsaid:   %s\n' "$message" "$output$stderr"; return 1; }
}

@test "sizes, bills and the answer" {
  "$PACELINE" search "${job[@]}" --platform dgx-h100 --gpus 8-32 --deadline 81d --tokens 1T --price 2 --json >sizes.json
  "$PACELINE" search "${job[@]}" --platform dgx-h100:2 --tokens 1T --price 2 --json >two.json
  run -0 "$PACELINE" search "${job[@]}" --platform dgx-h100 --gpus 8-32 --deadline 81d --tokens 1T --price 2
  [[ $output == *"cheapest      16 GPUs (2 nodes): "*" days (80 %: "*"), a cost of "* ]]
  [[ $output == *"assumed       no failure and no pause; energy of the GPUs alone"*"type          bf16, "* ]]
  [[ $(grep -c ' too late$' <<<"$output") == 1 && $(grep -c ' in time$' <<<"$output") == 2 ]]
  /usr/bin/python3 - <<'PYTHON'
import json
sizes, two = json.load(open("sizes.json")), json.load(open("two.json"))
assert [s["n_devices"] for s in sizes["sizes"]] == [8, 16, 32] and [s["n_nodes"] for s in sizes["sizes"]] == [1, 2, 4]
assert sizes["sizes"][1]["best"]["strategy"] == two["top"][0]["strategy"] and sizes["sizes"][1]["best"]["iter_time_s"] == two["top"][0]["iter_time_s"]
for name in ("training_s", "training_gpu_hours", "training_cost", "training_energy_J"):
    assert sizes["sizes"][1][name] == two[name], name
for s in sizes["sizes"]:
    assert abs(s["training_s"] * s["best"]["tokens_per_s"] / 1e12 - 1) < 1e-12
    assert abs(s["training_energy_J"] / (s["training_s"] * s["n_devices"] * 700) - 1) < 1e-12 # an H100's board: 700 W
    assert abs(s["training_cost"] / (s["training_gpu_hours"] * 2) - 1) < 1e-12
    assert s["in_time"] == (s["training_s"] <= 81 * 86400)
in_time = [s for s in sizes["sizes"] if s["in_time"]]
assert sizes["cheapest_n_devices"] == min(in_time, key=lambda s: s["training_gpu_hours"])["n_devices"]
assert sizes["fewest_n_devices"] == min(s["n_devices"] for s in in_time)
PYTHON
}

@test "a size at which nothing fits, a deadline that nothing meets, a GPU without known power" {
  run -0 "$PACELINE" search --model llama-3-70b --gbs 16 --platform dgx-h100 --gpus 8 --tokens 1T --deadline 1d
  [[ $output == *" 8      1  none fits in memory: the nearest lacks "*"answer        at none of these sizes anything fits in memory"* ]]
  run -0 "$PACELINE" search "${job[@]}" --platform dgx-h100 --gpus 8,16 --tokens 1T --deadline 1h
  [[ $output == *"answer        none of these sizes is done in 1 hours"*"fastest       16 GPUs"* ]]
  run -0 "$PACELINE" simulate --platform amp-p3-4 --model gpt2-345m --gbs 32 --strategy pp=1,dp=16,tmp=1,mbs=2 --tokens 300B
  [[ $output == *"energy           "* ]]
}

@test "what makes no sense is one line" {
  refuses "--gpus: 4 are no whole nodes of dgx-h100, which have 8 GPUs each" "${job[@]}" --platform dgx-h100 --gpus 4
  refuses "--gpus: '8-' is no list of numbers of GPUs" "${job[@]}" --platform dgx-h100 --gpus 8-
  refuses "--gpus: --platform must be a machine without its number of nodes" "${job[@]}" --platform dgx-h100:2 --gpus 8
  refuses "--gpus: 'amp-homogeneous' is no machine" "${job[@]}" --platform amp-homogeneous --gpus 16
  refuses "--gpus prints a table of sizes" "${job[@]}" --platform dgx-h100 --gpus 8 -o x.h5
  refuses "--deadline: of what? add --tokens N" "${job[@]}" --platform dgx-h100 --gpus 8 --deadline 3d
  refuses "--deadline: of what? add --gpus NUMBERS" "${job[@]}" --platform dgx-h100 --deadline 3d --tokens 1T
  refuses "--deadline: '3' is not a time" "${job[@]}" --platform dgx-h100 --gpus 8 --tokens 1T --deadline 3
  refuses "8 GPUs: --gpus: not known of programs yet, and --schedule dualpipe is simulated as one; leave it out and search each size by itself (--platform dgx-h100:1)" "${job[@]}" --platform dgx-h100 --gpus 8,16 --schedule dualpipe
  refuses "8 GPUs: --gpus: not known of programs yet, and --offload is simulated as one; " "${job[@]}" --platform dgx-h100 --gpus 8,16 --offload none,states
  [[ ! -e x.h5 ]]
}
