# `paceline simulate --program`: a program as it is written, edited or not, on a platform.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  program=$BATS_TEST_TMPDIR/p.plir
  "$PACELINE" program print --model workloads/models/tiny-llama.json --gbs 8 --seq 8 --strategy pp=2,dp=2,tmp=2,mbs=1 -o "$program"
  run_program=("$PACELINE" simulate --platform platforms/dgx-a100.xml --program)
}

time_s() { "${run_program[@]}" "$1" --json | jq .iter_time_s; }
longer() { awk "BEGIN { exit !($1 > $2) }"; }

@test "simulate --program: text" {
  run -0 "${run_program[@]}" "$program"
  [[ ${lines[0]} == "program          $program, distributed: 8 devices, 2 lists, 4 microbatches" ]]
  [[ $output == *"where the time goes (mean over devices)"*"tensor communication"*"pipeline communication"*"idle"* ]]
}

@test "simulate --program: what is spent adds up to the iteration" {
  run -0 "${run_program[@]}" "$program" --json
  jq -e '[to_entries[] | select(.key | test("_s$")) | select(.key != "iter_time_s") | .value] | add as $sum
         | $sum' <<<"$output" >"$BATS_TEST_TMPDIR/sum"
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

@test "simulate --program: a timeline" {
  run -0 "${run_program[@]}" "$program" --trace "$BATS_TEST_TMPDIR/t.json"
  jq -e '[.traceEvents[] | select(.ph == "X") | .name] | any(test("mlp.up"))' "$BATS_TEST_TMPDIR/t.json"
}

@test "simulate --program: what does not go together is one line" {
  run -2 --separate-stderr "${run_program[@]}" "$program" --strategy pp=1,dp=1,tmp=1,mbs=1
  [[ $stderr == *"--program is simulated as it is written"* ]]
  run -2 --separate-stderr "${run_program[@]}" "$program" --gbs 8
  [[ $stderr == *"leave out --model, --gbs"* ]]
  run -2 --separate-stderr "$PACELINE" simulate --program "$program"
  [[ $stderr == *"--platform is missing"* ]]
  sed 's/^mesh .*/mesh pp=2, dp=2, tp=4/' "$program" >"$BATS_TEST_TMPDIR/large.plir"
  run -2 --separate-stderr "${run_program[@]}" "$BATS_TEST_TMPDIR/large.plir"
  [[ ${#stderr_lines[@]} -ge 1 ]]
}
