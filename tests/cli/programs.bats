#!/usr/bin/env bats
# What is simulated as programs, in sweeps and searches: ONNX files, and strategy spaces (trees with choices).

bats_require_minimum_version 1.5.0

setup_file() {
  export FILES="$BATS_FILE_TMPDIR"
  /usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null && /usr/bin/python3 tests/support/onnx_files.py "$FILES" && rm -f "$FILES/many.onnx"
  true
}

setup() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  folder=$BATS_TEST_TMPDIR
  out=$folder/out.h5
  space=workloads/strategies/spaces/vgg.yaml
  vgg=(--platform dgx-1v --model vgg-16 --gbs 32 --strategy-space "$space")
}

has_onnx() {
  [ -e "$FILES/good.onnx" ] || skip "python3 has no onnx (Debian: python3-onnx)"
}

# refused MESSAGE COMMAND OPTIONS...: one line, exit status 2, and no file.
refused() {
  local message=$1
  shift
  run "$PACELINE" "$@"
  [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
  [[ "${lines[0]}" == "paceline $1: "*"$message"* && "${#lines[@]}" -eq 1 ]] || { echo "said: $output"; return 1; }
  [ ! -e "$out" ]
}

@test "an ONNX file sweeps: rows are what simulate says, the same bytes for any ranks and threads" {
  has_onnx
  job=(--platform dgx-1v --model "$FILES/good.onnx" --gbs 32 --mbs 1,4)
  run "$PACELINE" sweep "${job[@]}" -o "$out" --threads 1
  [ "$status" -eq 0 ] && [[ $output == *", peak "* && $output == *"failed      0"* ]]
  "$PACELINE" sweep "${job[@]}" -o "$folder/threads.h5" --threads 3 --quiet
  mpirun -n 2 "$PACELINE" sweep "${job[@]}" -o "$folder/ranks.h5" --quiet
  cmp "$out" "$folder/threads.h5"
  cmp "$out" "$folder/ranks.h5"
  row=$("$PACELINE" show "$out" --json --where "pp == 1 and dp == 8 and mbs == 4 and recompute == 'none' and zero == 1")
  [ "$(jq '.rows | length' <<<"$row")" -eq 1 ] && [ "$(jq '.rows[0].fits' <<<"$row")" -eq 1 ] && [ "$(jq -c .rows[0].peak_stage <<<"$row")" = 0 ]
  one=$("$PACELINE" simulate --platform dgx-1v --model "$FILES/good.onnx" --gbs 32 --strategy pp=1,dp=8,tmp=1,mbs=4,zero=1 --json)
  [ "$(jq .rows[0].run_digest <<<"$row")" = "$(jq .run_digest <<<"$one")" ] && [ "$(jq .rows[0].iter_time_s <<<"$row")" = "$(jq .iter_time_s <<<"$one")" ]
  for end in low high; do
    [ "$(jq ".rows[0].iter_time_${end}_s" <<<"$row")" = "$(jq ".iter_time_${end}_s" <<<"$one")" ]
  done
  [ "$(jq '.iter_time_low_s < .iter_time_s and .iter_time_s < .iter_time_high_s' <<<"$one")" = true ]
  [ "$(jq .rows[0].peak_mem_bytes <<<"$row")" = "$(jq .peak_mem_bytes <<<"$one")" ] && [ "$(jq .rows[0].mem_capacity_bytes <<<"$row")" = "$(jq .mem_capacity_bytes <<<"$one")" ]
}

@test "what does not fit is told from what does, and no search takes it" {
  gpt=(--platform dgx-1v --model gpt3-5b --gbs 64 --strategy-space workloads/strategies/spaces/gpt-3d.yaml)
  run "$PACELINE" sweep "${gpt[@]}" -o "$out"
  [ "$status" -eq 0 ] && [[ $output == *"out of mem. "[1-9]* && $output != *"fit         0"* ]]
  rows=$("$PACELINE" show "$out" --json --where true --top 99)
  [ "$(jq '[.rows[] | (.fits == 1) == (.peak_mem_bytes <= .mem_capacity_bytes) and (.fits == 1) == (.status == "done")] | all' <<<"$rows")" = true ]
  [ "$(jq '[.rows[] | (.mem_parameters_bytes + .mem_gradients_bytes + .mem_optimizer_bytes + .mem_activations_bytes + .mem_buffers_bytes - .peak_mem_bytes) | fabs < 8] | all' <<<"$rows")" = true ]
  best=$(jq '[.rows[] | select(.fits == 1) | .iter_time_s] | min' <<<"$rows")
  [ "$(jq -n "$best > $(jq '[.rows[].iter_time_s] | min' <<<"$rows")")" = true ] # the fastest of all does not fit
  [ "$("$PACELINE" search "${gpt[@]}" --json | jq '.top[0].iter_time_s')" = "$best" ]
  run "$PACELINE" search "${gpt[@]/gpt3-5b/gpt3-175b}" --must-fit
  [ "$status" -eq 3 ] && [[ ${lines[-1]} == *"none of 48 strategies fits in memory: the nearest lacks "*"; use more devices"* ]]
}

@test "what lies in the host is searched: without, everything has to be made again" {
  gpt=(--platform dgx-1v --model gpt3-5b --gbs 64 --strategy-space workloads/strategies/spaces/gpt-offload.yaml)
  run "$PACELINE" search "${gpt[@]}" --must-fit
  [ "$status" -eq 0 ] && [[ $output == *"out of mem. 4"* && $output == *"host=states,microbatches=4,recompute=none"* ]]
  "$PACELINE" sweep "${gpt[@]}" -o "$out" >/dev/null
  run "$PACELINE" simulate --from "$out:1"
  [ "$status" -eq 2 ] && [[ $output == *"row 1 is of a tree; 'paceline strategy choose workloads/strategies/spaces/gpt-offload.yaml --take host="*" -o row.yaml' writes it, and --strategy row.yaml takes it" ]]
  [ "$("$PACELINE" show "$out" --where "fits == 1 and choice_host == 'nothing'" --columns choice_recompute --csv | tail -n +2 | sort -u)" = full ]
}

@test "tuples that put something into the host are a dimension: rows, strategies, launch files and resumption have the word" {
  gpt=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024)
  few=(--pp 1 --tmp 1 --dp 8 --mbs 4 --zero 1,2 --recompute none --offload none,states,gradients)
  run "$PACELINE" sweep "${gpt[@]}" "${few[@]}" -o "$out"
  [ "$status" -eq 0 ] && [[ $output == *"simulated     6 "* ]]
  [ "$("$PACELINE" show "$out" --columns choice_offload --csv | tail -n +2 | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = " 2 gradients; 2 none; 2 states;" ]
  row=$("$PACELINE" show "$out" --where "choice_offload == 'gradients' and zero == 2" --json | jq -r '.rows[0].run_digest')
  [ "$row" = "$("$PACELINE" simulate "${gpt[@]}" --strategy pp=1,dp=8,tmp=1,mbs=4,zero=2,offload=gradients --json | jq -r .run_digest)" ]
  for row in 0 1 2 3 4 5; do # each again as it was, those too that put nothing there, which were programs as well
    "$PACELINE" simulate --from "$out:$row" --json >"$folder/again.json"
    "$PACELINE" show "$out" --where "candidate == $row" --json | jq '.rows[0]' >"$folder/row.json"
    for what in run_digest iter_time_s peak_mem_bytes; do
      [ "$(jq ".$what" "$folder/again.json")" = "$(jq ".$what" "$folder/row.json")" ]
    done
  done
  best=$("$PACELINE" show "$out" --top 1 --json | jq .rows[0].iter_time_s)
  [ "$("$PACELINE" simulate --from="$out" --json | jq .iter_time_s)" = "$best" ]
  [ "$("$PACELINE" explain --from "$out:4" --json | jq .iter_time_s)" = "$("$PACELINE" show "$out" --where "candidate == 4" --json | jq .rows[0].iter_time_s)" ]
  run "$PACELINE" simulate --from "$out:6"
  [ "$status" -eq 2 ] && [[ $output == "paceline simulate: $out: row: 6 is out of range: 0 to 5" ]]
  run "$PACELINE" simulate --from "$out:-1"
  [ "$status" -eq 2 ] && [[ $output == "paceline simulate: $out: '-1' is no row; :N is row N, from 0 on" ]]
  run "$PACELINE" explain --from train.sh
  [ "$status" -eq 2 ] && [[ $output == "paceline explain: train.sh: cannot open: No such file or directory" ]]
  cp "$out" "$folder/whole.h5"
  "$PACELINE" sweep "${gpt[@]}" "${few[@]}" -o "$out" --resume >/dev/null
  cmp "$out" "$folder/whole.h5"
  "$PACELINE" launch "$out" --as deepspeed --row 5 -o "$folder/ds.json"
  [ "$(jq -c '[.zero_optimization.stage, .zero_optimization.offload_optimizer.device]' "$folder/ds.json")" = '[2,"cpu"]' ]
  run "$PACELINE" launch "$out" --as megatron --row 5
  [ "$status" -eq 2 ] && [[ $output == *"offload=gradients: of what lies in the memory of the host only"* ]]
  "$PACELINE" report "$out" -o "$folder/page.html"
  run grep -c '"pipeline":""' "$folder/page.html"
  [ "$output" = 0 ]
  rm "$out"
  "$PACELINE" search "${gpt[@]}" "${few[@]}" -o "$out" >/dev/null # whose rows have their strategies as text
  for row in 0 1 5; do
    [ "$("$PACELINE" simulate --from "$out:$row" --json | jq .run_digest)" = "$("$PACELINE" show "$out" --where "candidate == $row" --json | jq .rows[0].run_digest)" ]
  done
  rm "$out"
  run "$PACELINE" search "${gpt[@]}" "${few[@]/none,states,gradients/states,gradients}" -o "$out"
  [ "$status" -eq 0 ] && [[ $output == *"offload=states,"* ]]
  rm "$out"
  refused "'none,kep' is not a list of none, states, kept, both, gradients, all" sweep "${gpt[@]}" --offload none,kep -o "$out"
  refused "--overlap: --offload is simulated as a program" sweep "${gpt[@]}" --offload states --overlap off -o "$out"
}

@test "a candidate that is refused is a row with its reason" {
  has_onnx
  run "$PACELINE" sweep --platform dgx-1v --model "$FILES/fixed.onnx" --gbs 24 --pp 1 --mbs 1,3 --zero 0 -o "$out"
  [ "$status" -eq 0 ] && [[ $output == *"first failure, candidate "*"input 'x' has 3 samples, and the job has 8"* ]]
  run "$PACELINE" show "$out" --where "status == 'failed'" --columns mbs,reason --csv
  [[ ${lines[1]} == 1,*"fixed.onnx: input 'x' has 3 samples"* ]]
}

@test "searches of ONNX files go through all, or through some in random order, and are resumed" {
  has_onnx
  job=(--platform dgx-1v --model "$FILES/good.onnx" --gbs 32)
  run "$PACELINE" search "${job[@]}" --top 2
  [ "$status" -eq 0 ] && [[ $output == "method        exhaustive"* && $output == *"best "*"pp="* ]]
  "$PACELINE" search "${job[@]}" --method random --budget 10 -o "$out" --quiet
  "$PACELINE" search "${job[@]}" --method random --budget 20 -o "$out" --quiet --resume
  mpirun -n 2 "$PACELINE" search "${job[@]}" --method random --budget 20 -o "$folder/once.h5" --quiet
  cmp "$out" "$folder/once.h5"
  rm "$out"
  refused "method bound knows no programs, and an ONNX file is simulated as one" search "${job[@]}" --method bound
  refused "method amp knows no programs" search "${job[@]}" --compare random,amp
}

@test "a search none of whose candidates can be simulated says why" {
  has_onnx
  run "$PACELINE" search --platform dgx-1v --model "$FILES/fixed.onnx" --gbs 8
  [ "$status" -eq 2 ] && [[ $output == *"best          none could be simulated"* ]]
  [[ ${lines[-1]} == "paceline search: none of "*" could be simulated; the first: "*"has 3 samples, and the job has 8"* ]]
}

@test "what programs have no choice of is said" {
  has_onnx
  job=(--platform dgx-1v --model "$FILES/good.onnx" --gbs 32 -o "$out")
  refused "--assign: an ONNX file is simulated as a program" sweep "${job[@]}" --assign balanced
  refused "--overlap: an ONNX file" sweep "${job[@]}" --overlap both
  refused "--features: not known of programs" sweep "${job[@]}" --features
  refused "--network simgrid" sweep "${job[@]}" --network simgrid
  refused "fluid collectives" sweep "${job[@]}" --collectives chunked
  refused "broken or cut off" sweep --platform dgx-1v --model "$FILES/cut.onnx" --gbs 32 -o "$out"
}

@test "a strategy space sweeps: a column for each choice, and the best as a file" {
  run "$PACELINE" sweep "${vgg[@]}" -o "$out" --threads 2
  [ "$status" -eq 0 ] && [[ ${lines[0]} == "candidates    6" && $output == *"best "*"microbatches="*",linears="* ]]
  mpirun -n 2 "$PACELINE" sweep "${vgg[@]}" -o "$folder/ranks.h5" --threads 1 --quiet
  cmp "$out" "$folder/ranks.h5"
  best=$("$PACELINE" show "$out" --json --top 1)
  labels="microbatches=$(jq -r .rows[0].choice_microbatches <<<"$best"),linears=$(jq -r .rows[0].choice_linears <<<"$best")"
  [[ $output == *"paceline strategy choose $space --take $labels"* ]]
  "$PACELINE" strategy choose "$space" --take "$labels" -o "$folder/best.yaml"
  one=$("$PACELINE" simulate --platform dgx-1v --model vgg-16 --gbs 32 --strategy "$folder/best.yaml" --json)
  [ "$(jq .rows[0].run_digest <<<"$best")" = "$(jq .run_digest <<<"$one")" ]
  run "$PACELINE" show "$out" --where "choice_linears == 'owt'" --columns choice_microbatches --csv
  [ "${#lines[@]}" -eq 4 ]
  run "$PACELINE" search "${vgg[@]}" --json
  [ "$(jq -r .top[0].strategy <<<"$output")" = "$labels" ] && [ "$(jq .rows <<<"$output")" -eq 6 ]
}

@test "a page of programs: what does not apply is not there, and the best one is drawn" {
  "$PACELINE" sweep "${vgg[@]}" -o "$out" --quiet
  "$PACELINE" search "${vgg[@]}" -o "$folder/search.h5" >"$folder/said"
  for file in "$out" "$folder/search.h5"; do
    "$PACELINE" report "$file" -o "$folder/page.html" --force 2>"$folder/stderr"
    [ ! -s "$folder/stderr" ]
    grep -qF '"strategy_keys":["pp","schedule","vpp","choice_microbatches","choice_linears"],' "$folder/page.html"
    ! grep -q -e '"dp":' -e '[[,]-1[],]' "$folder/page.html"
    python3 - "$folder/page.html" <<'END'
import json, re, sys
from xml.etree import ElementTree
data = json.loads(re.search(r"^const data = (.*?);$", open(sys.argv[1]).read(), re.S | re.M).group(1))
text = data["drawings"]["pipeline"]
assert ElementTree.fromstring(text).tag.endswith("svg") and "linears=owt" in text and "#2f9e44" in text, text[:300]
END
  done
  has_onnx
  "$PACELINE" sweep --platform dgx-1v --model "$FILES/good.onnx" --gbs 32 --mbs 1 -o "$folder/onnx.h5" --quiet
  "$PACELINE" report "$folder/onnx.h5" -o "$folder/onnx.html" 2>"$folder/stderr"
  [ ! -s "$folder/stderr" ] && grep -q "microbatches: pp=1,dp=8,tmp=1" "$folder/onnx.html" && grep -q '"pp","dp","tmp","mbs"' "$folder/onnx.html"
}

@test "trees that do not suit the model or the batch are rows with file, line and column" {
  printf 'partition: {b: {choose: [2, 3]}}\n' >"$folder/s.yaml"
  run "$PACELINE" sweep --platform dgx-1v --model vgg-16 --gbs 32 --strategy-space "$folder/s.yaml" -o "$out"
  [ "$status" -eq 0 ] && [[ $output == *"first failure, candidate 1: $folder/s.yaml:1:"*"3 parts do not divide b = 32"* ]]
  run "$PACELINE" show "$out" --where "status == 'failed'" --columns choice_b,reason --csv
  [[ ${lines[1]} == 3,*"s.yaml:1:29: 3 parts"* ]] || [[ ${lines[1]} == 3,*"s.yaml:1:"* ]]
}

@test "spaces that are wrong: one line with the place" {
  wrong() {
    cat >"$folder/s.yaml"
    refused "$folder/s.yaml:$1" sweep --platform dgx-1v --model vgg-16 --gbs 32 --strategy-space "$folder/s.yaml" -o "$out"
  }
  wrong "1:25: choose has a list" <<<'partition: {b: {choose: []}}'
  wrong "1:29: a choice inside of another" <<<'partition: {choose: {x: {b: {choose: [2, 4]}}}}'
  wrong "1:33: 'of' beside choose" <<<'partition: {b: {choose: [2, 4], of: x}}'
  wrong " nothing to choose from" <<<'partition: {b: 2}'
  refused "leave out --pp" sweep "${vgg[@]}" --pp 2 -o "$out"
  refused "No such file" sweep --platform dgx-1v --model vgg-16 --gbs 32 --strategy-space nowhere.yaml -o "$out"
  run "$PACELINE" simulate --platform dgx-1v --model vgg-16 --gbs 32 --strategy "$space"
  [ "$status" -eq 2 ] && [[ ${lines[0]} == *"$space:2:26: a choice: 'paceline sweep'"* ]]
}

@test "explain of a program: what a device computes, waits for and idles is the iteration" {
  run "$PACELINE" explain --platform dgx-1v --model gpt2-345m --gbs 32 --seq 64 --strategy gpt-megatron-3d.yaml --stage all --json
  [ "$status" -eq 0 ] && [ "$(jq '.lists | length' <<<"$output")" -eq 2 ]
  [ "$(jq '[.iter_time_s as $all | .lists[] | ([.computing[].time_s, .communication[].exposed_s] | add) + .idle_s - $all | fabs < 1e-12 * $all] | all' <<<"$output")" = true ]
  [ "$(jq '[.lists[0].computing[].op] | map(startswith("h.*.mlp")) | any' <<<"$output")" = true ]
  one=$("$PACELINE" simulate --platform dgx-1v --model gpt2-345m --gbs 32 --seq 64 --strategy gpt-megatron-3d.yaml --json)
  [ "$(jq .iter_time_s <<<"$output")" = "$(jq .iter_time_s <<<"$one")" ]
  run "$PACELINE" explain --platform dgx-1v --model gpt2-345m --gbs 32 --seq 64 --strategy gpt-megatron-3d.yaml --top 2
  [[ $output == *"list "*"(the busiest)"*"bubble "*"iteration "*"more (--top 0 shows all)"*"slowest link"* ]]
  refused "--stage: 2 is out of range" explain --platform dgx-1v --model gpt2-345m --gbs 32 --seq 64 --strategy gpt-megatron-3d.yaml --stage 2
  has_onnx
  run "$PACELINE" explain --platform dgx-1v --model "$FILES/good.onnx" --gbs 32 --strategy pp=1,dp=8,tmp=1,mbs=4
  [ "$status" -eq 0 ] && [[ $output == *"list 0 of 1, "*"computing op"*"all_reduce"* ]]
}

@test "gradients in the host of replicas with unlike numbers of microbatches: an even split is none, any is the same training" {
  one=(--platform dgx-1v --model gpt2-345m --gbs 16 --seq 64)
  even=$("$PACELINE" simulate "${one[@]}" --strategy pp=2,dp=4,tmp=1,mbs=1,zero=1,offload=gradients --json | jq .iter_time_s)
  [ "$even" = "$("$PACELINE" simulate "${one[@]}" --strategy pp=2,dp=4,tmp=1,mbs=1,zero=1,split=4x4,offload=gradients --json | jq .iter_time_s)" ]
  uneven=$("$PACELINE" simulate "${one[@]}" --strategy pp=2,dp=4,tmp=1,mbs=1,zero=1,split=7:3x3,offload=gradients --json | jq .iter_time_s)
  awk -v a="$uneven" -v b="$even" 'BEGIN { exit !(a > b) }' || { echo "$uneven, $even"; return 1; }
  run "$PACELINE" verify --model tiny-gpt2 --gbs 8 --seq 8 --strategy pp=1,dp=2,tmp=1,mbs=1,split=6:2,offload=gradients,zero=1
  [ "$status" -eq 0 ] && [[ $output == *"equal: "* ]]
}

@test "a strategy space whose patterns match nothing is one message, of a sweep as of a search, again with --resume" {
  cd "$BATS_TEST_TMPDIR"
  sed 's/match: h\.\*/match: layers.*/' "$BATS_TEST_DIRNAME"/../../workloads/strategies/spaces/gpt-3d.yaml >space.yaml
  local space=(--platform dgx-a100 --model tiny-gpt2 --gbs 32 --seq 8 --strategy-space space.yaml)
  run --separate-stderr "$PACELINE" sweep "${space[@]}" -o none.h5 --quiet
  [ "$status" -eq 2 ]
  [[ "$stderr" == "paceline sweep: none of 48 strategies could be simulated; the first: space.yaml:10:13: 'layers.*' matches nothing; there are embedding, h.0"* ]]
  run --separate-stderr "$PACELINE" sweep "${space[@]}" -o none.h5 --resume --quiet
  [ "$status" -eq 2 ]
  [ "$stderr" = "paceline sweep: none of 48 strategies could be simulated when this file was written" ]
  run --separate-stderr "$PACELINE" search "${space[@]}" --quiet
  [ "$status" -eq 2 ]
  [[ "$stderr" == "paceline search: none of 48 strategies could be simulated; the first: space.yaml:10:13: 'layers.*' matches nothing"* ]]
}

@test "a strategy space in fp8 has room for all that its file says of the job" {
  local space="$BATS_TEST_DIRNAME"/../../workloads/strategies/spaces/gpt-offload.yaml
  "$PACELINE" sweep --platform dgx-h100 --model gpt2-345m --gbs 32 --seq 512 --dtype bf16 --fp8 --strategy-space "$space" -o "$BATS_TEST_TMPDIR/narrow.h5" --quiet
  "$PACELINE" show "$BATS_TEST_TMPDIR/narrow.h5" | grep -q 'all in bf16 with fp8 products'
}
