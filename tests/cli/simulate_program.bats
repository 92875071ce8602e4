# `paceline simulate --program`: a program as it is written, edited or not, on a platform.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  program=$BATS_TEST_TMPDIR/p.plir
  "$PACELINE" program print --model workloads/models/tiny-llama.json --gbs 8 --seq 8 --strategy pp=2,dp=2,tmp=2,mbs=1 -o "$program"
  run_program=("$PACELINE" simulate --platform platforms/dgx-a100.xml --program)
}

time_s() { "${run_program[@]}" "$1" --json | jq .iter_time_s; }
near() { awk "BEGIN { exit !($1 > 0.996 * $2 && $1 < 1.004 * $2) }"; }
longer() { awk "BEGIN { exit !($1 > $2) }"; }

@test "simulate --program: text" {
  run -0 "${run_program[@]}" "$program"
  [[ ${lines[0]} == "platform         platforms/dgx-a100.xml: 8 x A100-SXM4-80GB in 1 node" ]]
  [[ ${lines[1]} == "program          $program, distributed: 8 devices, 2 lists, 4 microbatches" ]]
  [[ $output == *"memory           fits: "*" at the fullest, stage"* ]]
  [[ $output == *"where the time goes (mean over devices)"*"tensor communication"*"pipeline communication"*"idle"* ]]
  [[ $output == *"memory at the peak (a device of each list)"*"stage0 "*"stage1 "* ]]
}

@test "simulate with a tree: the summary says what it says of a tuple" {
  job=(--platform dgx-a100-16 --model gpt2-345m --gbs 32 --seq 1024)
  run -0 "$PACELINE" simulate "${job[@]}" --strategy pp=2,dp=2,tmp=2,mbs=2,idle=1
  tuple=("${lines[@]}")
  run -0 "$PACELINE" simulate "${job[@]}" --strategy gpt-megatron-3d.yaml
  for i in 0 1 2; do [[ ${lines[i]} == "${tuple[i]}" ]]; done # model, type, platform
  [[ ${lines[4]} == "idle             120 of 128 GPUs" && ${tuple[4]} == "${lines[4]}" ]]
  [[ $output == *$'\niteration time   '*" ms (80 %: "*$'\nthroughput       '*" sequences/s, "*" tokens/s"$'\nMFU              '*" %"* ]]
}

@test "simulate --program: what is spent adds up to the iteration" {
  run -0 "${run_program[@]}" "$program" --json
  jq -e '.forward_s + .recompute_s + .backward_s + .optimizer_s + .tensor_s + .context_s + .expert_s + .pipeline_s + .data_s + .host_s +
         .other_s + .idle_s' <<<"$output" >"$BATS_TEST_TMPDIR/sum"
  jq -e --slurpfile sum "$BATS_TEST_TMPDIR/sum" '(.iter_time_s - $sum[0]) / .iter_time_s | fabs < 1e-9' <<<"$output"
  jq -e '.compute_s + .tensor_comm_s + .context_comm_s + .expert_comm_s + .pipeline_comm_s + .data_comm_s + .bubble_s' <<<"$output" >"$BATS_TEST_TMPDIR/sum"
  jq -e --slurpfile sum "$BATS_TEST_TMPDIR/sum" '(.iter_time_s - $sum[0]) / .iter_time_s | fabs < 1e-9' <<<"$output"
}

@test "simulate --program: the same twice" {
  run -0 "${run_program[@]}" "$program" --digest
  first=$output
  run -0 "${run_program[@]}" "$program" --digest
  [[ $output == "$first" ]]
}

@test "simulate --program: one microbatch after another takes longer" {
  sed '/^class stage0/,/^}/s/steps F0.0 F0.1 B0.0 .*/steps F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3/' "$program" >"$BATS_TEST_TMPDIR/other.plir"
  run -0 "$PACELINE" program check "$BATS_TEST_TMPDIR/other.plir"
  ! cmp -s "$program" "$BATS_TEST_TMPDIR/other.plir"
  longer "$(time_s "$BATS_TEST_TMPDIR/other.plir")" "$(time_s "$program")"
}

@test "simulate --program: work done twice takes longer" {
  # the activation of the MLP once more
  awk '{ print } /%active = silu\(/ { sub(/%active =/, "%again ="); print }' "$program" >"$BATS_TEST_TMPDIR/twice.plir"
  run -0 "$PACELINE" program check "$BATS_TEST_TMPDIR/twice.plir"
  longer "$(time_s "$BATS_TEST_TMPDIR/twice.plir")" "$(time_s "$program")"
}

@test "simulate --program: a collective left out is found before it is simulated" {
  # the consumer reads the partial sum
  sed '/%mlp.down.2 = all_reduce/d; s/add(%attended, %mlp.down.2)/add(%attended, %mlp.down)/' "$program" >"$BATS_TEST_TMPDIR/wrong.plir"
  run -2 --separate-stderr "${run_program[@]}" "$BATS_TEST_TMPDIR/wrong.plir"
  [[ -z $output && $stderr == *"wrong.plir:"*"operand"*"add"*"along axis tp"*" = add("*" ^" ]]
}

@test "simulate --program: a distributed program is lowered to kernels; they take what a tuple's take" {
  mla=$BATS_TEST_TMPDIR/mla.json # latent attention without experts
  jq '.first_k_dense_replace = .num_hidden_layers | .n_routed_experts = null' workloads/models/deepseek-v2-lite.json >"$mla"
  while read -r model gbs seq strategy framework; do
    [[ $model == mla ]] && model=$mla
    job="--platform platforms/dgx-a100.xml --model $model --gbs $gbs --seq $seq --dtype bf16 --strategy $strategy --framework $framework"
    "$PACELINE" program print $job --level kernels -o "$BATS_TEST_TMPDIR/k.plir" --force
    tuple=$("$PACELINE" simulate $job --json | jq .iter_time_s)
    kernels=$("${run_program[@]}" "$BATS_TEST_TMPDIR/k.plir" --framework "$framework" --json | jq .iter_time_s)
    near "$kernels" "$tuple" || { echo "$model $strategy: $tuple s, $kernels s"; return 1; }
    tuple=$("$PACELINE" simulate $job --json | jq .peak_mem_bytes)
    kernels=$("${run_program[@]}" "$BATS_TEST_TMPDIR/k.plir" --framework "$framework" --json | jq .peak_mem_bytes)
    # a tuple's bias in front of an activation is added in place, a program's makes another value
    [[ $model == resnet* || $framework == deepspeed || $framework == nanotron ]] || near "$kernels" "$tuple" || { echo "$model $strategy: $tuple B, $kernels B"; return 1; }
  done <<'END'
gpt2-345m 8 1024 pp=1,dp=1,tmp=1,mbs=8,idle=1 ideal
gpt2-345m 32 1024 pp=2,dp=2,tmp=2,mbs=2 ideal
gpt2-345m 48 1024 pp=2,dp=2,tmp=2,mbs=4,split=8:4 ideal
gpt2-345m 56 1024 pp=4,dp=2,tmp=1,mbs=2,schedule=zb-h1 ideal
gpt2-345m 56 1024 pp=4,vpp=2,dp=2,tmp=1,mbs=2,schedule=zb-v ideal
gpt2-345m 48 1024 pp=1,dp=8,tmp=1,mbs=2,split=4x4:2x4,zero=1 ideal
llama-3.2-1b 2 4096 pp=1,dp=1,tmp=1,mbs=2,idle=1 megatron-core
bert-large 64 512 pp=1,dp=8,tmp=1,mbs=8 ideal
gpt2-345m 32 1024 pp=4,dp=2,tmp=1,mbs=2 megatron-lm-2021
bert-large 64 512 pp=1,dp=8,tmp=1,mbs=8 megatron-lm-2021
resnet-50 64 1 pp=1,dp=1,tmp=1,mbs=64,idle=1 ideal
mlp-1b 64 1 pp=1,dp=1,tmp=1,mbs=64,idle=1 ideal
transgan-amp 8 81 pp=1,dp=8,tmp=1,mbs=1 ideal
gpt2-345m 32 1024 pp=4,dp=2,tmp=1,mbs=2,recompute=full megatron-core
bert-large 64 512 pp=1,dp=8,tmp=1,mbs=8 deepspeed
mla 16 4096 pp=1,dp=8,tmp=1,mbs=1 ideal
gpt2-345m 32 1024 pp=2,dp=2,tmp=2,mbs=2 nanotron
END
  "$PACELINE" program print --platform platforms/dgx-a100.xml --model gpt2-345m --gbs 8 --seq 1024 --dtype bf16 --strategy pp=1,dp=1,tmp=1,mbs=8,idle=1 -o "$BATS_TEST_TMPDIR/p.plir" --force
  run -0 "${run_program[@]}" "$BATS_TEST_TMPDIR/p.plir"
  [[ $output == *"kernels of framework ideal"* ]]
  fused=$(time_s "$BATS_TEST_TMPDIR/p.plir")
  steps=$("${run_program[@]}" "$BATS_TEST_TMPDIR/p.plir" --framework torch-ddp --json | jq .iter_time_s)
  longer "$steps" "$fused"
}

# A tuple's reductions begin when their block's backward pass is over (workloads/FRAMEWORKS.md, bucket_unit), a program's where the last gradient
# of a bucket is there. Buckets that close behind layers are there at the same time.
@test "simulate --program: buckets that close inside a layer begin there, others take what a tuple's take" {
  job="--platform platforms/dgx-a100.xml --model gpt2-345m --gbs 32 --seq 1024 --dtype bf16 --strategy pp=1,dp=8,tmp=1,mbs=4"
  jq '.name = "layers" | .communication.bucket_unit = "layer"' workloads/frameworks/megatron-core.json >"$BATS_TEST_TMPDIR/layers.json"
  for framework in "$BATS_TEST_TMPDIR/layers.json" megatron-core; do
    "$PACELINE" program print $job --framework "$framework" --level kernels -o "$BATS_TEST_TMPDIR/k.plir" --force
    tuple=$("$PACELINE" simulate $job --framework "$framework" --json | jq .iter_time_s)
    kernels=$("${run_program[@]}" "$BATS_TEST_TMPDIR/k.plir" --framework "$framework" --json | jq .iter_time_s)
    echo "$framework: $tuple s, $kernels s"
    low=0.999 high=1.001
    [[ $framework == megatron-core ]] && low=0.98 high=0.995
    awk "BEGIN { exit !($kernels > $low * $tuple && $kernels < $high * $tuple) }"
  done
}

@test "simulate --program: what does not fit is said, and with --must-fit refused" {
  "$PACELINE" program print --model llama-2-7b --gbs 8 --seq 4096 --dtype bf16 --strategy pp=1,dp=8,tmp=1,mbs=1 -o "$BATS_TEST_TMPDIR/large.plir"
  run -0 "${run_program[@]}" "$BATS_TEST_TMPDIR/large.plir"
  [[ $output == *"memory           DOES NOT FIT: stage0 needs "*" are lacking"*"OUT OF MEMORY"* ]]
  run -3 --separate-stderr "${run_program[@]}" "$BATS_TEST_TMPDIR/large.plir" --must-fit
  run -0 "${run_program[@]}" "$BATS_TEST_TMPDIR/large.plir" --json
  jq -e '.fits == false and .peak_mem_bytes > .mem_capacity_bytes and (.lists | length) == 1' <<<"$output"
}

@test "simulate --program: a timeline" {
  run -0 "${run_program[@]}" "$program" --trace "$BATS_TEST_TMPDIR/t.json"
  jq -e '[.traceEvents[] | select(.ph == "X") | .name] | any(test("mlp.up"))' "$BATS_TEST_TMPDIR/t.json"
}

@test "simulate --program: a drawing, a row per list" {
  run -0 "${run_program[@]}" "$program" --svg "$BATS_TEST_TMPDIR/p.svg"
  [[ $output == *"drawing          $BATS_TEST_TMPDIR/p.svg"* ]]
  python3 -c 'import sys, xml.etree.ElementTree as e
texts = [t.text for t in e.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}text")]
assert "stage0" in texts and "stage1" in texts and "forward" in texts, texts' "$BATS_TEST_TMPDIR/p.svg"
  run -2 "${run_program[@]}" "$program" --svg "$BATS_TEST_TMPDIR/p.svg"
}

@test "simulate --program: what does not go together is one line" {
  run -2 --separate-stderr "${run_program[@]}" "$program" --strategy pp=1,dp=1,tmp=1,mbs=1
  [[ $stderr == *"--program is simulated as it is written"* ]]
  run -2 --separate-stderr "${run_program[@]}" "$program" --gbs 8
  [[ $stderr == *"leave out --model, --gbs"* ]]
  for option in "--dtype bf16" --fp8 --fp4 "--attention unfused"; do
    # shellcheck disable=SC2086 # an option and its value
    run -2 --separate-stderr "${run_program[@]}" "$program" $option
    [[ $stderr == *"--program says types and ops itself"* ]]
  done
  run -2 --separate-stderr "${run_program[@]}" "$program" --bucket-bytes 1MB
  [[ $stderr == *"leave out --bucket-bytes and --pipeline-sends"* ]]
  run -2 --separate-stderr "${run_program[@]}" "$program" --streams ready
  [[ $stderr == *"runs with --streams in-order"* ]]
  run -2 --separate-stderr "$PACELINE" simulate --program "$program"
  [[ $stderr == *"--platform is missing"* ]]
  sed 's/^mesh .*/mesh pp=2, dp=2, tp=4/' "$program" >"$BATS_TEST_TMPDIR/large.plir"
  run -2 --separate-stderr "${run_program[@]}" "$BATS_TEST_TMPDIR/large.plir"
  [[ ${#stderr_lines[@]} -ge 1 ]]
}

@test "an order of ranks costs a program what it costs the strategy: groups between nodes" {
  gpt=(--model gpt2-345m --gbs 32 --seq 1024 --strategy)
  for order in tdp pdt; do
    a=$("$PACELINE" simulate --platform amp-homogeneous "${gpt[@]}" "pp=2,dp=2,tmp=4,mbs=2,order=$order" --json | jq .iter_time_s)
    "$PACELINE" program print --level kernels "${gpt[@]}" "pp=2,dp=2,tmp=4,mbs=2,order=$order" --force -o "$BATS_TEST_TMPDIR/o.plir"
    b=$("$PACELINE" simulate --platform amp-homogeneous --program "$BATS_TEST_TMPDIR/o.plir" --json | jq .iter_time_s)
    python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(b / a - 1) < 0.02, (a, b)' "$a" "$b"
    [ "$order" = pdt ] || first=$b
  done
  python3 -c 'import sys; assert float(sys.argv[2]) > 1.4 * float(sys.argv[1])' "$first" "$b"
}

@test "tuples that offload or recompute some layers are simulated as programs, between those that do all and nothing" {
  figure() { # of a strategy, by name
    "$PACELINE" simulate --platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy "pp=2,dp=2,tmp=2,mbs=2,$1" --json >"$BATS_TEST_TMPDIR/r.json"
    python3 -c "import json; print(json.load(open('$BATS_TEST_TMPDIR/r.json'))['$2'])"
  }
  less() { python3 -c "import sys; sys.exit(not float(sys.argv[1]) < float(sys.argv[2]))" "$1" "$2"; }
  less "$(figure recompute=full,recompute_layers=1 iter_time_s)" "$(figure recompute=full,recompute_layers=6 iter_time_s)"
  less "$(figure recompute=full,recompute_layers=6 iter_time_s)" "$(figure recompute=full,recompute_layers=12 iter_time_s)"
  less "$(figure recompute=full,recompute_layers=12 peak_mem_bytes)" "$(figure recompute=full,recompute_layers=6 peak_mem_bytes)"
  less "$(figure offload=states,zero=1 peak_mem_bytes)" "$(figure zero=1 peak_mem_bytes)"
  less "$(figure zero=1 iter_time_s)" "$(figure offload=states,zero=1 iter_time_s)"
  run "$PACELINE" simulate --platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy pp=2,dp=2,tmp=2,mbs=2,recompute_layers=3
  [ "$status" -eq 2 ]
  [[ $output == *"recompute_layers=3 of each chunk, and recompute=none; say how"* ]]
  run "$PACELINE" explain --platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy pp=2,dp=2,tmp=2,mbs=2,offload=kept
  [ "$status" -eq 0 ]
  [[ $output == *"offloading "*"a device and iteration to and from its host"*"list "*"(the busiest)"*"backward "* ]]
  [[ $output == *"iteration "*"100.0 %"* ]]
}

@test "what a gated MLP keeps goes to the host of some layers, where the kernel that reads it makes the activation again" {
  printf 'mesh: {dp: 2}\nschedule: {microbatches: 2}\npartition: {b: dp}\nchildren:\n  - {match: h.0-7, memory: {kept: host}}\n' >"$BATS_TEST_TMPDIR/o.yaml"
  job=(--platform dgx-a100 --model llama-3.2-1b --gbs 8 --seq 1024 --strategy "$BATS_TEST_TMPDIR/o.yaml")
  run "$PACELINE" simulate "${job[@]}"
  [ "$status" -eq 0 ] && [[ $output == *"offloading       4.63 GiB a device and iteration"* ]]
  # 8 layers of 2 x 1024 tokens a device, fp16: x, norm1, attended, norm2, queries, context of 2048, keys and values of 512, up, gate and
  # product of 8192, a number a head and token in fp32; out and back, twice
  bytes=$(python3 -c 'print(2 * 2 * 8 * 2 * 1024 * (2 * (6 * 2048 + 2 * 512 + 3 * 8192) + 4 * 32))')
  [ "$("$PACELINE" simulate "${job[@]}" --json | jq '.offloaded_bytes / 2')" = "$bytes" ]
}

@test "a table that embedding and head read is reduced once: where the network is slow a tree takes what the tuple takes" {
  printf 'partition: {b: 16}\n' >"$BATS_TEST_TMPDIR/d.yaml"
  job() { "$PACELINE" simulate --platform hc2 --model gpt2-117m --gbs 32 --seq 128 --json --strategy "$1"; }
  job "$BATS_TEST_TMPDIR/d.yaml" >"$BATS_TEST_TMPDIR/tree.json"
  job pp=1,dp=16,tmp=1,mbs=2,idle=1 >"$BATS_TEST_TMPDIR/tuple.json"
  python3 - "$BATS_TEST_TMPDIR" <<'END'
import json, sys
tree, tuple_ = (json.load(open(f"{sys.argv[1]}/{n}.json"))["iter_time_s"] for n in ("tree", "tuple"))
assert abs(tree / tuple_ - 1) < 0.01, (tree, tuple_)
END
}

@test "kernels of a tuple's program take the tuple's time, ZeRO and sequence parallelism too" {
  compared() { # PLATFORM MODEL GBS SEQ STRATEGY LEAST MOST
    local job="--platform $1 --gbs $3 --seq $4 --strategy $5"
    "$PACELINE" program print --model "$2" $job --level kernels -o "$BATS_TEST_TMPDIR/k.plir" --force
    "$PACELINE" simulate --program "$BATS_TEST_TMPDIR/k.plir" --platform "$1" --json >"$BATS_TEST_TMPDIR/program.json"
    "$PACELINE" simulate --model "$2" $job --json >"$BATS_TEST_TMPDIR/tuple.json"
    python3 - "$BATS_TEST_TMPDIR/program.json" "$BATS_TEST_TMPDIR/tuple.json" "$6" "$7" <<'END'
import json, sys
program, own = (json.load(open(path))["iter_time_s"] for path in sys.argv[1:3])
print(program / own)
sys.exit(not float(sys.argv[3]) <= program / own <= float(sys.argv[4]))
END
  }
  compared dgx-a100 gpt2-345m 32 1024 pp=2,dp=2,tmp=2,mbs=2,sp=1 0.99 1.01
  compared dgx-a100-16 gpt3-175b 128 2048 pp=8,dp=2,tmp=8,mbs=1,zero=1 0.99 1.01
  compared dgx-h100 llama-3.1-8b 16 2048 pp=1,dp=8,tmp=1,mbs=1,zero=1 0.99 1.01
  compared dgx-h100 llama-3.1-8b 16 2048 pp=1,dp=8,tmp=1,mbs=1,zero=2 0.99 1.01
  compared dgx-h100 llama-3.1-8b 16 2048 pp=1,dp=8,tmp=1,mbs=1,zero=3 0.96 1.01
  compared dgx-h100 mixtral-8x7b 8 2048 pp=1,dp=8,tmp=1,mbs=1,ep=8,zero=1 0.99 1.06
}

@test "DeepSpeed's ZeRO-3: what is used again within 10^9 parameters is not gathered for the backward pass, of tuples and their programs" {
  cd "$BATS_TEST_TMPDIR"
  jq 'del(.communication.reuse_parameters)' "$BATS_TEST_DIRNAME"/../../workloads/frameworks/deepspeed-zero3.json >lets-go.json
  # kept N MODEL STRATEGY [GBS GROUPS]: of the gathers of a microbatch N fewer, in each of so many groups; however the
  # program is played, and read from its text. Of two microbatches.
  kept() {
    local job=(--platform dgx-a100 --seq 512 --model "$2" --strategy "$3" --gbs "${4:-16}")
    for framework in "$PWD/lets-go.json" deepspeed-zero3; do
      "$PACELINE" explain "${job[@]}" --framework $framework | awk '/gather parameters  / {n += $4} END {print n}'
      "$PACELINE" simulate "${job[@]}" --framework $framework --as-program --json >p.json
      jq .n_collectives p.json
    done >counts
    mapfile -t counts <counts
    [ $((counts[0] - counts[2])) -eq $((2 * $1)) ] && [ $((counts[1] - counts[3])) -eq $((2 * $1 * ${5:-1})) ] || { echo "$*: ${counts[*]}"; return 1; }
    for other in --no-fold --no-leap; do
      "$PACELINE" simulate "${job[@]}" --framework deepspeed-zero3 --as-program --json $other | jq .iter_time_s
    done >times
    "$PACELINE" program print "${job[@]}" --framework deepspeed-zero3 --force -o d.plir
    "$PACELINE" simulate --program d.plir --platform dgx-a100 --framework deepspeed-zero3 --json | jq .iter_time_s >>times
    jq .iter_time_s p.json >>times
    [ "$(sort -u times | wc -l)" -eq 1 ] || { echo "$*: $(cat times)"; return 1; }
  }
  kept 26 gpt2-345m pp=1,dp=8,tmp=1,mbs=1,zero=3 # all
  # Head 131 million, layers 202: of the layer before the last 667 million are used in between, of the one before that 1,070.
  kept 4 llama-2-7b pp=1,dp=8,tmp=1,mbs=1,zero=3
  # Thrice where they are computed again: 262, 869, 1,476.
  kept 4 llama-2-7b pp=1,dp=8,tmp=1,mbs=1,zero=3,recompute=full
  # Shares of tensor ranks: 131, 333, 536, 738, 940, 1,143.
  kept 7 llama-2-7b pp=1,dp=4,tmp=2,mbs=1,zero=3 8 2
}

@test "DeepSpeed's ZeRO-3 keeps half of 10^9 parameters, a third where products with them are made again, of tuples and their programs" {
  cd "$BATS_TEST_TMPDIR"
  jq 'del(.communication.reuse_parameters)' "$BATS_TEST_DIRNAME"/../../workloads/frameworks/deepspeed-zero3.json >lets-go.json
  local job=(--platform dgx-a100 --seq 1024 --model gpt2-1.5b --gbs 64 --attention unfused --json)
  # keeps RECOMPUTE USES: of 10^9 / USES parameters and a unit, in 16 bits, more than without the limit, which has two
  # units, each the table of 50257 words and 1024 places of 1600.
  keeps() {
    for as in --no-leap --as-program; do
      for framework in "$PWD/lets-go.json" deepspeed-zero3; do
        "$PACELINE" simulate "${job[@]}" --strategy pp=1,dp=8,tmp=1,mbs=4,zero=3,recompute=$1 --framework $framework $as | jq .mem_buffers_bytes
      done | paste -sd' ' | awk '{print $2 - $1}'
    done >more
    cat more
    awk -v uses=$2 'NR == 1 {tuple = $1} {d = $1 - 2 * (1e9 / uses - 51281 * 1600)} d > 2 || d < -2 || $1 != tuple {bad = 1} END {exit bad || NR != 2}' more
  }
  keeps none 2
  keeps selective 2 # attention's two products read no parameters
  keeps full 3
}

@test "what runs beside products is said by what a function computes: layers by another name take the same time" {
  cd "$BATS_TEST_TMPDIR"
  # named MODEL DEGREES NAME OTHER
  named() {
    rm -f times
    for level in distributed kernels; do
      "$PACELINE" program print --platform dgx-h100:2 --model "$1" --gbs 64 --seq 1024 --strategy pp=1,dp=8,tmp=2,mbs=1,sp=1,zero=1$2 --framework nemo --level $level --force -o made.plir
      sed "s/@$3/@$4/g" made.plir >named.plir
      [ "$(grep -c "@$4" named.plir)" -gt 2 ]
      for file in made named; do
        "$PACELINE" simulate --program $file.plir --platform dgx-h100:2 --framework nemo --json | jq .iter_time_s
      done >>times
    done
    [ "$(sort -u times | wc -l)" -eq 1 ] && [ "$(wc -l <times)" -eq 4 ] || { cat times; return 1; }
  }
  named mixtral-8x7b ,ep=8 expert_layer mixed_layer
  named gpt2-345m "" layer block
}

# What a run says, but for what it played.
said() { jq 'del(.run_digest, .n_played_microbatches)' <<<"$1"; }

@test "simulate: microbatches that a tree's or an edited program's lists repeat are leapt over, to the bit" {
  printf 'mesh: {dp: 2, tp: 2}\npipeline: {stages: 2}\nschedule: {microbatches: 256, kind: 1f1b}\npartition: {b: dp, v|g|r|f: tp}\n' >"$BATS_TEST_TMPDIR/t.yaml"
  job="--platform platforms/dgx-a100.xml --model workloads/models/tiny-llama.json --gbs 512 --seq 8"
  run -0 "$PACELINE" simulate $job --strategy "$BATS_TEST_TMPDIR/t.yaml"
  [[ $output =~ "microbatches     "([0-9]+)" of 256 played, the others repeat them exactly" ]]
  ((BASH_REMATCH[1] < 64))
  leapt=$("$PACELINE" simulate $job --strategy "$BATS_TEST_TMPDIR/t.yaml" --json)
  whole=$("$PACELINE" simulate $job --strategy "$BATS_TEST_TMPDIR/t.yaml" --json --no-leap)
  [[ $(said "$leapt") == "$(said "$whole")" && $(jq .n_played_microbatches <<<"$whole") == 256 ]]
  # one forward more ahead on the first stage
  "$PACELINE" program print $job --strategy pp=2,dp=2,tmp=2,mbs=1 -o "$BATS_TEST_TMPDIR/many.plir"
  awk '/^class stage0/ { print; own = 1; next }
       own && /^  steps/ { printf "  steps F0.0 F0.1"; for (m = 2; m < 256; m++) printf " F0.%d B0.%d", m, m - 2; print " B0.254 B0.255"; skip = 1; next }
       skip && /^   / { next } { skip = 0; print } /^}/ { own = 0 }' "$BATS_TEST_TMPDIR/many.plir" >"$BATS_TEST_TMPDIR/edited.plir"
  run -0 "$PACELINE" program check "$BATS_TEST_TMPDIR/edited.plir"
  leapt=$("${run_program[@]}" "$BATS_TEST_TMPDIR/edited.plir" --json)
  whole=$("${run_program[@]}" "$BATS_TEST_TMPDIR/edited.plir" --json --no-leap)
  [[ $(said "$leapt") == "$(said "$whole")" ]]
  (($(jq .n_played_microbatches <<<"$leapt") < 64))
}

@test "simulate: uneven and padded experts take in programs what they take in tuples, read back too; their values are the same" {
  model=$BATS_TEST_TMPDIR/uneven.json k=$BATS_TEST_TMPDIR/uneven.plir even=
  job="--platform dgx-a100 --model $model --gbs 32 --seq 1024 --dtype bf16 --strategy pp=1,dp=8,tmp=1,ep=4,mbs=2,zero=1"
  for says in '{}' '{"expert_capacity_factor": 1.25}' '{"expert_capacity_factor": 2}' '{"expert_capacity_factor": 4}' '{"expert_load": 3}' \
    '{"expert_load": [6, 2, 1, 1, 2, 2, 1, 1], "expert_capacity_factor": 1.25}'; do
    jq ". + $says" workloads/models/mixtral-8x7b.json >"$model"
    tuple=$("$PACELINE" simulate $job --json)
    [[ -n $even ]] || even=$tuple
    "$PACELINE" program print $job -o "$k" --force
    made=$("$PACELINE" simulate $job --json --as-program)
    for program in "$made" "$("${run_program[@]}" "$k" --platform dgx-a100 --json)"; do
      jq -ne --argjson t "$tuple" --argjson p "$program" 'def near(a; b): (a / b - 1 | fabs) < 0.01;
        near($p.iter_time_s; $t.iter_time_s) and near($p.peak_mem_bytes; $t.peak_mem_bytes)' || { echo "$says"; return 1; }
    done
    [[ $says == '{}' ]] || jq -ne --argjson t "$tuple" --argjson e "$even" '$t.iter_time_s > 1.02 * $e.iter_time_s and $t.peak_mem_bytes > 1.003 * $e.peak_mem_bytes'
    # model FLOPs are those of the tokens, not of what they are padded to
    for figures in "$made" "$tuple"; do
      jq -ne --argjson t "$figures" --argjson e "$even" '($t.iter_time_s * $t.mfu / ($e.iter_time_s * $e.mfu) - 1 | fabs) < 0.001'
    done
  done
  jq '. + {"expert_capacity_factor": 4, "expert_load": 3}' workloads/models/tiny-mixtral.json >"$model"
  run -0 "$PACELINE" verify --model "$model" --gbs 8 --seq 16 --strategy pp=1,dp=2,tmp=1,ep=2,mbs=2
  # a choice out of groups says nine things
  jq '. + {"expert_capacity_factor": 1.5, "expert_load": 2}' workloads/models/tiny-deepseek.json >"$model"
  run -0 "$PACELINE" verify --model "$model" --gbs 8 --seq 16 --strategy pp=1,dp=2,tmp=1,ep=2,mbs=2
}

@test "simulate: the summary of a program says why all of many microbatches were played" {
  job="--platform platforms/dgx-a100.xml --model workloads/models/tiny-llama.json --gbs 128 --seq 8"
  run -0 "$PACELINE" simulate $job --as-program --strategy pp=2,dp=2,tmp=2,mbs=1,schedule=breadth-first,vpp=2
  [[ $output == *"microbatches     all 64 played: steps of some list do not repeat themselves" ]]
  run -0 "$PACELINE" simulate $job --as-program --strategy pp=2,dp=2,tmp=2,mbs=1,schedule=breadth-first,vpp=2 --no-leap
  [[ $output != *" played"* ]]
  printf 'mesh: {dp: 2, tp: 2}\npipeline: {stages: 2}\nschedule: {microbatches: 64, kind: gpipe}\npartition: {b: dp, v|g|r|f: tp}\nmemory: {kept: host}\n' >"$BATS_TEST_TMPDIR/t.yaml"
  run -0 "$PACELINE" simulate --platform dgx-a100 --model gpt2-345m --gbs 128 --seq 1024 --strategy "$BATS_TEST_TMPDIR/t.yaml"
  [[ $output == *"microbatches     all 64 played: no shorter run came back to a state that it had been in" ]]
}

@test "simulate: a timeline of a program shows every microbatch" {
  job="--platform platforms/dgx-a100.xml --model workloads/models/tiny-llama.json --gbs 128 --seq 8"
  "$PACELINE" program print $job --strategy pp=2,dp=2,tmp=2,mbs=1 -o "$BATS_TEST_TMPDIR/many.plir"
  run -0 "${run_program[@]}" "$BATS_TEST_TMPDIR/many.plir" --trace "$BATS_TEST_TMPDIR/t.json"
  [[ $output != *" of 64 played"* ]]
  jq -e '[.. | .microbatch? // empty] | unique | length == 64' "$BATS_TEST_TMPDIR/t.json"
}

@test "simulate: products in a type that a device has not, and casts that are none, are refused where they stand" {
  "$PACELINE" program print --model tiny-gpt2 --gbs 8 --seq 8 --strategy pp=1,dp=2,tmp=2,mbs=1 --dtype fp16 --fp8 --framework ideal -o "$BATS_TEST_TMPDIR/narrow.plir"
  run -2 "${run_program[@]}" "$BATS_TEST_TMPDIR/narrow.plir"
  [[ $output =~ "narrow.plir:"[0-9]+":"[0-9]+": this product is in fp8, in which A100-SXM4-80GB does not compute" ]]
  run -0 "$PACELINE" simulate --platform platforms/dgx-h100.xml --program "$BATS_TEST_TMPDIR/narrow.plir"
  sed 's/, as="fp16"//' "$BATS_TEST_TMPDIR/narrow.plir" >"$BATS_TEST_TMPDIR/no_as.plir"
  run -2 "$PACELINE" program check "$BATS_TEST_TMPDIR/no_as.plir"
  [[ $output =~ 'no_as.plir:'[0-9]+:[0-9]+': narrow="fp8" of product without as="...", the type of its result' ]]
  sed 's/narrow="fp8"/narrow="fp16"/' "$BATS_TEST_TMPDIR/narrow.plir" >"$BATS_TEST_TMPDIR/wide.plir"
  run -2 "$PACELINE" program check "$BATS_TEST_TMPDIR/wide.plir"
  [[ $output == *'narrow="fp16" of product: fp8 or fp4; for another type cast its operands'* ]]
  "$PACELINE" program print --model tiny-gpt2 --gbs 8 --seq 8 --strategy pp=1,dp=2,tmp=2,mbs=1 --dtype fp16 --fp8 --level kernels -o "$BATS_TEST_TMPDIR/kernels.plir"
  for word in copies=0 copies=3 scaled=3; do
    sed "0,/copies=2/s//$word/" "$BATS_TEST_TMPDIR/kernels.plir" >"$BATS_TEST_TMPDIR/cast.plir"
    run -2 "$PACELINE" program check "$BATS_TEST_TMPDIR/cast.plir"
    [[ $output =~ "cast.plir:"[0-9]+":"[0-9]+": $word of cast" ]]
  done
}

@test "products of one layer may be of several types: those that are one kernel else are kernels of their own" {
  "$PACELINE" program print --platform platforms/dgx-h100.xml --model workloads/models/tiny-llama.json --gbs 16 --seq 16 --dtype bf16 --fp8 \
    --strategy pp=1,dp=4,tmp=2,mbs=2,sp=1 -o "$BATS_TEST_TMPDIR/all.plir" >/dev/null
  narrow=$(grep -n 'narrow="fp8"' "$BATS_TEST_TMPDIR/all.plir" | cut -d: -f1)
  [ "$(wc -l <<<"$narrow")" -eq 21 ]
  kernels() { "$PACELINE" simulate --program "$1" --platform platforms/dgx-h100.xml --framework megatron-core --json | grep n_kernels | tr -dc 0-9; }
  all=$(kernels "$BATS_TEST_TMPDIR/all.plir")
  more=0
  for line in $narrow; do
    sed "${line}s/, narrow=\"fp8\"//" "$BATS_TEST_TMPDIR/all.plir" >"$BATS_TEST_TMPDIR/one.plir"
    "$PACELINE" program check "$BATS_TEST_TMPDIR/one.plir"
    one=$(kernels "$BATS_TEST_TMPDIR/one.plir")
    [ "$one" -gt 0 ]
    [ "$one" -le "$all" ] || more=$((more + 1))
  done
  [ "$more" -ge 6 ] # of queries, keys, values, gate and up forward, and of their gradients
}

@test "a program may keep something under the name that a pass would give" {
  peak() { "$PACELINE" simulate --program "$1" --platform platforms/dgx-h100.xml --framework megatron-core --json | grep -m1 peak_mem_bytes; }
  "$PACELINE" program print --platform platforms/dgx-h100.xml --model workloads/models/tiny-llama.json --gbs 16 --seq 16 --dtype bf16 --fp8 \
    --strategy pp=1,dp=4,tmp=2,mbs=2,sp=1 -o "$BATS_TEST_TMPDIR/own.plir" >/dev/null
  own=$(peak "$BATS_TEST_TMPDIR/own.plir")
  # the pass keeps "context" as it is and as "context.fp8"
  sed 's/"queries"/"context.fp8"/' "$BATS_TEST_TMPDIR/own.plir" >"$BATS_TEST_TMPDIR/taken.plir"
  [ "$(peak "$BATS_TEST_TMPDIR/taken.plir")" = "$own" ]
}

@test "what is a layer is told by what it computes: functions may have any name" {
  played() { "$PACELINE" simulate --program "$1" --platform dgx-a100:2 --framework "$2" --json | jq -c '[.iter_time_s, .peak_mem_bytes]'; }
  local job=(--model gpt2-345m --gbs 32 --seq 512 --dtype fp16 --strategy pp=1,dp=16,tmp=1,mbs=2) of_layers
  # autocast keeps layers' residual stream in fp32; the host works for each layer
  for framework in torch-ddp nanotron; do
    "$PACELINE" program print "${job[@]}" --framework "$framework" -o "$BATS_TEST_TMPDIR/$framework.plir"
    sed 's/@layer/@block/g' "$BATS_TEST_TMPDIR/$framework.plir" >"$BATS_TEST_TMPDIR/other.plir"
    of_layers=$(played "$BATS_TEST_TMPDIR/$framework.plir" "$framework")
    [ "$(played "$BATS_TEST_TMPDIR/other.plir" "$framework")" = "$of_layers" ]
  done
}

@test "a printed program says its framework and what its strategy has otherwise; simulate launches it by that" {
  cd "$BATS_TEST_TMPDIR"
  local job=(--model tiny-gpt2 --platform dgx-a100 --gbs 16 --seq 8 --framework torch-ddp)
  for strategy in pp=1,dp=8,tmp=1,mbs=1 pp=1,dp=8,tmp=1,mbs=1,overlap=0; do
    for level in distributed kernels; do
      "$PACELINE" program print "${job[@]}" --strategy $strategy --level $level -f -o p.plir
      [ "$("$PACELINE" simulate --program p.plir --platform dgx-a100 --json | jq .iter_time_s)" = "$("$PACELINE" simulate "${job[@]}" --strategy $strategy --as-program --json | jq .iter_time_s)" ]
    done
  done
  [ "$(sed -n 2p p.plir)" = 'framework "torch-ddp" overlap=0' ]
  "$PACELINE" program print p.plir | cmp - p.plir
  run "$PACELINE" simulate --program p.plir --platform dgx-a100 --framework nemo
  [ "$status" -eq 2 ]
  [[ "$output" == *"p.plir:2:1: these are the kernels of framework torch-ddp, and --framework says nemo: leave it out"* ]]
  "$PACELINE" program print "${job[@]}" --strategy $strategy -f -o d.plir
  run --separate-stderr "$PACELINE" simulate --program d.plir --platform dgx-a100 --framework nemo
  [ "$status" -eq 0 ]
  [[ "$output" == *"kernels of framework nemo"* ]]
  [ "$stderr" = "paceline simulate: d.plir was written for framework torch-ddp; launched as --framework nemo does" ]
  sed 's/"torch-ddp"/"torch-dp"/' d.plir >unknown.plir
  run "$PACELINE" simulate --program unknown.plir --platform dgx-a100
  [ "$status" -eq 2 ]
  [[ "$output" == *"unknown.plir:2:1: framework: 'torch-dp' is not among"*"did you mean 'torch-ddp'"* ]]
  printf 'plir 1 kernels "m"\nframework "ideal" overlap=2\n' >bad.plir
  run "$PACELINE" program check bad.plir
  [ "$status" -eq 2 ]
  [[ "$output" == *"bad.plir:2:27: 2 is out of range"* ]]
  printf 'plir 1 kernels "m"\nframework "ideal" overlap=0 tokens=shared overlap=1\n' >bad.plir
  run "$PACELINE" program check bad.plir
  [ "$status" -eq 2 ]
  [[ "$output" == *"bad.plir:2:43: overlap= is said twice"* ]]
  printf 'plir 1 kernels "m"\nframework "a\\x1b[31m"\n' >bad.plir
  run "$PACELINE" program check bad.plir
  [ "$status" -eq 2 ]
  [[ "$output" == *"bad.plir:2:11: a framework's name has only what can be printed"* ]]
  run --separate-stderr "$PACELINE" simulate --program d.plir --platform dgx-a100 --framework torch-dp
  [ "$status" -eq 2 ]
  [[ "$stderr" == "paceline simulate: --framework: 'torch-dp' is not among"* ]]
  printf 'plir 1 kernels "m"\nframework "ideal"\nframework "ideal"\n' >bad.plir
  run "$PACELINE" program check bad.plir
  [ "$status" -eq 2 ]
  [[ "$output" == *"bad.plir:3:1: a program says its framework once"* ]]
}

@test "a list of a program belongs to as many communicators as the stage of its tuple, and has as much memory" {
  usable_of() { awk '/^memory at the peak/ { on = 1 } on && /iB$|MEMORY$/ && $1 ~ /^(stage)?[0-9]+$/ { sub(/^stage/, "", $1); sub(/  OUT OF MEMORY$/, ""); print $1, $(NF - 1), $NF }'; }
  while read -r strategy framework; do
    job=(--model gpt2-345m --gbs 32 --seq 1024 --strategy "$strategy" --framework "$framework")
    "$PACELINE" program print "${job[@]}" -o "$BATS_TEST_TMPDIR/u.plir" --force
    "${run_program[@]}" "$BATS_TEST_TMPDIR/u.plir" | usable_of >"$BATS_TEST_TMPDIR/lists"
    # a program's tensors are counted, its allocator is not replayed
    "$PACELINE" simulate --platform platforms/dgx-a100.xml "${job[@]}" --allocator exact | usable_of >"$BATS_TEST_TMPDIR/stages"
    [[ $(wc -l <"$BATS_TEST_TMPDIR/lists") -ge 1 ]]
    diff "$BATS_TEST_TMPDIR/lists" "$BATS_TEST_TMPDIR/stages"
  done <<'END'
pp=2,dp=2,tmp=2,mbs=2 megatron-core
pp=4,dp=2,tmp=1,mbs=1 torch-ddp
pp=4,dp=1,tmp=2,mbs=1,schedule=interleaved,vpp=2 megatron-core
pp=1,dp=4,tmp=2,mbs=1,zero=1,sp=1 megatron-core
pp=2,dp=2,tmp=2,mbs=1,zero=0,sp=1 megatron-core
END
}
