#!/usr/bin/env bats
# Messages that list what there is list all of it.

setup() {
  export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  dir=$BATS_TEST_TMPDIR
}

@test "kinds of models: every family of the table" {
  echo '{"model_type": "rwkv"}' >"$dir/m.json"
  run "$PACELINE" model show "$dir/m.json"
  [ "$status" -eq 2 ]
  for family in $(sed -n 's/^ *{\.type = "\([a-z0-9_]*\)".*/\1/p' workloads/import/model_families.c) transgan cnn mlp; do
    [[ "$output" =~ [\ ,]"$family"(,|$|\ ) ]] || { echo "$family is not in: $output"; return 1; }
  done
  [[ "$output" == *"deepseek_v3"* ]]
}

@test "frameworks: each with what its profile says of itself" {
  run "$PACELINE" list frameworks
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq $(($(ls workloads/frameworks/*.json | wc -l) + 1)) ]
  [[ "${lines[0]}" == "ideal "* ]]
  for file in workloads/frameworks/*.json; do
    grep -qxF "$(printf '%-25s %s' "$(basename "$file" .json)" "$(jq -r .about "$file")")" <<<"$output" || { echo "$file is not in: $output"; return 1; }
  done
}

@test "machines and devices of platform make" {
  run "$PACELINE" platform make nothing
  [ "$status" -eq 2 ]
  for kind in $("$PACELINE" platform make --list | cut -d' ' -f1); do
    [[ "$output" == *"$kind"* ]] || { echo "$kind is not in: $output"; return 1; }
  done
  run "$PACELINE" platform make dgx-a100 --device nothing
  [ "$status" -eq 2 ]
  [[ "$output" == *"known are "* && "$output" != *" more" ]]
}

@test "methods of search, and options that begin alike" {
  run "$PACELINE" search --method nothing
  for method in amp anneal bound exhaustive megatron placement random; do [[ "$output" == *"$method"* ]]; done
  run "$PACELINE" search --m x
  [ "$status" -eq 2 ]
  for option in model mbs method must-fit; do [[ "$output" == *"--$option"* ]] || { echo "$output"; return 1; }; done
}
