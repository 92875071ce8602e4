#!/usr/bin/env bats
# Sites: what a few measured runs teach, where it acts, and what is refused.

bats_require_minimum_version 1.5.0

setup_file() {
  export TABLE=validation/measured/amp_homogeneous.csv RUNS=$BATS_FILE_TMPDIR/three.csv SITE=$BATS_FILE_TMPDIR/site.json
  { head -1 $TABLE && sed -n '5p;20p;40p' $TABLE; } >"$RUNS"
  "$PACELINE" calibrate --runs "$RUNS" -o "$SITE" >"$BATS_FILE_TMPDIR/learnt.txt"
}

refused() {
  local message=$1
  shift
  run "$PACELINE" "$@"
  [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
  [[ "${lines[-1]}" == "paceline $1: "*"$message"* ]] || { echo "said: $output"; return 1; }
}

# error FILE ARGUMENTS...: mean absolute error of all rows
error() {
  local table=$1
  shift
  "$PACELINE" validate "$table" --csv "$BATS_TEST_TMPDIR/rows.csv" --force "$@" >/dev/null
  /usr/bin/python3 - "$BATS_TEST_TMPDIR/rows.csv" <<'END'
import csv, sys
errors = [abs(float(r["error_pct"])) for r in csv.DictReader(open(sys.argv[1])) if r["error_pct"]]
print(sum(errors) / len(errors))
END
}

@test "three runs of a site: figures, what is left of their doubt, each run; a file" {
  run cat "$BATS_FILE_TMPDIR/learnt.txt"
  [[ $output == *"inside_rate "*" %"*"memory beside tensors"*"scatter of runs"*"three.csv:2: measured 1.2 s, without the site"*"written to "* ]]
  [ "$(jq -r '.runs' "$SITE")" = 3 ]
  "$PACELINE" calibrate --runs "$RUNS" -o "$BATS_TEST_TMPDIR/again.json"
  cmp "$SITE" "$BATS_TEST_TMPDIR/again.json"
}

# Of software whose kernels and waits no profile names: what is left is the site.
@test "runs that were not learnt from come out nearer" {
  table=validation/measured/nemo_launcher.csv
  { head -1 $table && sed -n '3p;6p;9p' $table; } >"$BATS_TEST_TMPDIR/three.csv"
  "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/three.csv" -o "$BATS_TEST_TMPDIR/three.json"
  before=$(error $table) after=$(error $table --site "$BATS_TEST_TMPDIR/three.json")
  awk -v a="$before" -v b="$after" 'BEGIN { exit !(b < 0.5 * a) }' || { echo "$before, $after"; return 1; }
}

@test "one run is better than none here" {
  table=validation/measured/nemo_launcher.csv
  { head -1 $table && sed -n '6p' $table; } >"$BATS_TEST_TMPDIR/one.csv"
  "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/one.csv" -o "$BATS_TEST_TMPDIR/one.json"
  before=$(error $table) after=$(error $table --site "$BATS_TEST_TMPDIR/one.json")
  awk -v a="$before" -v b="$after" 'BEGIN { exit !(b < a) }' || { echo "$before, $after"; return 1; }
}

@test "runs of two sites: the figures are of the first's, and the other's tell something" {
  { head -1 $TABLE && sed -n '5p;20p' $TABLE && sed -n '40p' $TABLE | sed 's/,fp16,/,fp32,/'; } >"$BATS_TEST_TMPDIR/two.csv"
  run "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/two.csv" -o "$BATS_TEST_TMPDIR/two.json"
  [ "$status" -eq 0 ]
  [[ $output == *"note: runs of 2 sites"*"of 'T4', 'Megatron-DeepSpeed (AMP)', 'fp16', the first's"* ]]
  [ "$(jq .runs "$BATS_TEST_TMPDIR/two.json")" = 2 ]
  head -3 "$BATS_TEST_TMPDIR/two.csv" >"$BATS_TEST_TMPDIR/own.csv"
  "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/own.csv" -o "$BATS_TEST_TMPDIR/own.json"
  jq -e --slurpfile own "$BATS_TEST_TMPDIR/own.json" '.figures.memory.factor != $own[0].figures.memory.factor and .figures.memory.factor > 0.5' "$BATS_TEST_TMPDIR/two.json"
}

job=(--platform amp-homogeneous --model gpt2-345m --gbs 64)

@test "simulate, explain, sweep and search at a site; a site of no figures changes nothing" {
  with=$("$PACELINE" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$SITE" --json | jq .iter_time_s)
  without=$("$PACELINE" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --json | jq .iter_time_s)
  explained=$("$PACELINE" explain "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$SITE" --json | jq .iter_time_s)
  [ "$explained" = "$with" ]
  awk -v a="$with" -v b="$without" 'BEGIN { exit !(a > 1.05 * b) }' || { echo "$with, $without"; return 1; }
  found=$("$PACELINE" search "${job[@]}" --pp 2 --dp 4 --tmp 2 --mbs 1 --schedule 1f1b --sp off --zero 0 --recompute none --overlap on --assign uniform --site "$SITE" --json | jq '.best[0].iter_time_s // .top[0].iter_time_s')
  [ "$found" = "$with" ] || { echo "$found, $with"; return 1; }
  jq '(.figures, .elsewhere.figures) |= map_values(if has("factor") then .factor = 1 else .seconds = 0 end) | .memory.bytes = 0 | .remains.runs[].factor = 1' "$SITE" >"$BATS_TEST_TMPDIR/none.json"
  same=$("$PACELINE" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$BATS_TEST_TMPDIR/none.json" --json | jq .iter_time_s)
  [ "$same" = "$without" ]
}

@test "what the figures leave moves what is like a run, by a factor that everything tells; nothing that is unlike" {
  run -0 "$PACELINE" calibrate --runs "$RUNS"
  [[ $output == *"what the figures leave: +- "*"no physics"*"gpus x"*"; of another gpu by "*"which x"*" is what the figures leave"* ]]
  [ "$(jq '.remains.runs | length' "$SITE")" = 3 ]
  like=(--strategy pp=4,dp=4,tmp=1,mbs=1,assign=uniform --framework megatron-lm-1.1.5)
  factor=$(jq '.remains.runs[] | select(.pp == 4 and .tmp == 1) | .factor' "$SITE")
  told=$("$PACELINE" simulate "${job[@]}" "${like[@]}" --site "$SITE" --json | jq .remains.factor)
  jq -en --argjson a "$factor" --argjson b "$told" '$a / $b - 1 | fabs < 1e-4' || { echo "$factor, $told"; return 1; }
  jq 'del(.remains)' "$SITE" >"$BATS_TEST_TMPDIR/figures.json"
  with=$("$PACELINE" simulate "${job[@]}" "${like[@]}" --site "$SITE" --json | jq .iter_time_s)
  without=$("$PACELINE" simulate "${job[@]}" "${like[@]}" --site "$BATS_TEST_TMPDIR/figures.json" --json | jq .iter_time_s)
  jq -en --argjson a "$with" --argjson b "$without" --argjson f "$told" '$a / $b / $f - 1 | fabs < 1e-9'
  run -0 "$PACELINE" explain "${job[@]}" "${like[@]}" --site "$SITE"
  [[ $output == *"of it the site   x"*"80 %: "*"3 runs"*"no physics"* ]]
  jq '(.remains.runs | map(.pp == 4 and .tmp == 1) | index(true)) as $i | .remains.runs |= [.[$i] | .with_runs |= [.[$i]]] | .elsewhere.with_runs |= [.[$i]]' "$SITE" >"$BATS_TEST_TMPDIR/one.json"
  run -0 "$PACELINE" explain "${job[@]}" "${like[@]}" --site "$BATS_TEST_TMPDIR/one.json"
  [[ $output == *" at the site's 1 run, which is alike by "* ]]
  # stages, stragglers and comparisons are of the moved time
  "$PACELINE" simulate "${job[@]}" "${like[@]}" --site "$SITE" --json >"$BATS_TEST_TMPDIR/a.json"
  jq -e '.iter_time_s as $t | .stages | all(.compute_s + .tensor_comm_s + .pipeline_comm_s + .data_comm_s + .context_comm_s + .expert_comm_s + .bubble_s | . / $t - 1 | fabs < 1e-9)' "$BATS_TEST_TMPDIR/a.json"
  "$PACELINE" simulate "${job[@]}" "${like[@]}" --site "$SITE" --slow n0g0=1.0001 --json >"$BATS_TEST_TMPDIR/slow.json"
  jq -e --argjson t "$with" '[.. | .without_s? // empty | numbers] | length > 0 and all(. / $t - 1 | fabs < 1e-6)' "$BATS_TEST_TMPDIR/slow.json" || { jq . "$BATS_TEST_TMPDIR/slow.json" | grep -n without -A3; return 1; }
  run -0 "$PACELINE" compare "$BATS_TEST_TMPDIR/a.json" "$BATS_TEST_TMPDIR/slow.json"
  [[ $output == *"of it the site "*"x"[01].*"no physics"* ]] || { echo "$output"; return 1; }
  run -0 "$PACELINE" validate $TABLE --site "$SITE"
  [[ $output == *"site: predicted times are x"*" by what its figures leave at its 3 runs"* ]]
  # another GPU, model and scale: the figures alone
  far=$("$PACELINE" simulate --platform dgx-h100:16 --model llama-3.1-70b --gbs 128 --strategy pp=4,dp=4,tmp=8,mbs=1 --framework nemo --site "$SITE" --json | jq .remains)
  jq -en --argjson r "$far" '($r.factor - 1 | fabs) < 0.01 and $r.likeness < 0.1' || { echo "$far"; return 1; }
}

@test "on a GPU, in software or precision that are not the site's: half of its figures, more doubt, and said" {
  run -0 "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --framework megatron-lm-1.1.5 --site "$SITE"
  [[ $output != *"not of the site"* ]] || { echo "$output"; return 1; }
  run -0 "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --framework nemo --site "$SITE"
  [[ $output == *"not of the site  software nemo: figures are what sites of one owner share, and the interval has the doubt of the rest"* ]]
  for as in "" --as-program; do
    # shellcheck disable=SC2086
    run -0 "$PACELINE" simulate --platform dgx-h100 --model gpt2-345m --gbs 64 --dtype bf16 --strategy pp=1,dp=8,tmp=1,mbs=1 --framework nemo --site "$SITE" $as
    [[ $output == *"not of the site  gpu H100-SXM5-80GB, software nemo, precision bf16: figures"* ]] || { echo "$output"; return 1; }
  done
  run -0 "$PACELINE" sweep "${job[@]}" --framework nemo --pp 2 --mbs 1 --site "$SITE" -o "$BATS_TEST_TMPDIR/else.h5"
  [[ $output == *"not of the site: software nemo; figures are what"*"no 80 % interval of the rows"* ]]
  [ "$("$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --framework nemo --site "$SITE" --json | jq -r .remains.not_of_site)" = "software nemo" ]
  [ "$("$PACELINE" search "${job[@]}" --framework nemo --pp 2 --mbs 1 --site "$SITE" --json | jq -r .remains.not_of_site)" = "software nemo" ]
  [ "$("$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --framework megatron-lm-1.1.5 --site "$SITE" --json | jq -r .remains.not_of_site)" = null ]
  # nearer to what is known of any site, with more doubt, by what owners' sites share; a figure that moved no run has about the doubt of both
  jq -e --slurpfile any workloads/sites.json '. as $s | .figures | keys_unsorted | map(select(. != "step")) | all(. as $f
    | ($s.figures[$f].factor | log) as $own | ($s.elsewhere.figures[$f].factor | log) as $there | ($any[0].figures[$f].factor | log) as $prior
    | $there - $prior - $any[0].shared * ($own - $prior) | fabs < 1e-9)' "$SITE"
  jq -e '. as $s | [range(7)] | all($s.elsewhere.covariance[.][.] > 0.95 * $s.covariance[.][.]) and ([range(7)] | any($s.elsewhere.covariance[.][.] > 1.1 * $s.covariance[.][.]))' "$SITE"
  # the figures of `elsewhere`, and nothing else, act there: programs, validate and what is simulated alike
  jq '.elsewhere.figures.step.seconds = 1' "$SITE" >"$BATS_TEST_TMPDIR/slow.json"
  for as in "" --as-program; do
    # shellcheck disable=SC2086
    slow=$("$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --framework nemo --site "$BATS_TEST_TMPDIR/slow.json" --json $as | jq .iter_time_s)
    jq -en --argjson t "$slow" '$t > 1.5' || { echo "$slow"; return 1; }
  done
  { head -1 $TABLE && sed -n '5p' $TABLE && sed -n '5s/,fp16,/,fp32,/p' $TABLE; } >"$BATS_TEST_TMPDIR/mixed.csv"
  for site in "$SITE" "$BATS_TEST_TMPDIR/slow.json"; do
    "$PACELINE" validate "$BATS_TEST_TMPDIR/mixed.csv" --site "$site" --csv "$BATS_TEST_TMPDIR/rows.csv" --force >/dev/null
    cut -d, -f1-60 "$BATS_TEST_TMPDIR/rows.csv" | python3 -c 'import csv, sys; print(*(r["predicted_s"] for r in csv.DictReader(sys.stdin)))'
  done | xargs | { read -r own other own_slow other_slow && jq -en "$own == $own_slow and $other_slow > $other + 0.9"; }
  # a file of before has its figures act
  jq 'del(.elsewhere)' "$SITE" >"$BATS_TEST_TMPDIR/before.json"
  run -0 "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --framework nemo --site "$BATS_TEST_TMPDIR/before.json"
  [[ $output == *"not of the site  software nemo: its figures act all the same, and the interval does not know"* ]]
}

@test "what the figures leave in a search: proven best is the exhaustive one, and said; a sweep too" {
  small=("${job[@]}" --framework megatron-lm-1.1.5 --pp 1,2,4 --mbs 1,2 --schedule 1f1b --recompute none,full --zero 0 --site "$SITE")
  # a run of the slowest kind of all here is made the fastest, and nothing is like it: what bounds say of it must say so
  jq '.remains.lengths |= map_values(0.2) | .remains.runs[0] |= (.pp = 1 | .tmp = 4 | .mbs = 1 | .factor = 0.2)' "$SITE" >"$BATS_TEST_TMPDIR/odd.json"
  for site in "$SITE" "$BATS_TEST_TMPDIR/odd.json"; do
    bound=$("$PACELINE" search "${small[@]}" --site "$site" --json | jq -c '[.top[0].iter_time_s, .remains.factor]')
    all=$("$PACELINE" search "${small[@]}" --site "$site" --method exhaustive --json | jq -c '[.top[0].iter_time_s, .remains.factor]')
    [[ $bound = [[0-9]* ]] && [ "$bound" = "$all" ] || { echo "$bound, $all"; return 1; }
  done
  run -0 "$PACELINE" search "${small[@]}" --top 3
  [[ $output == *"site          the best is x"*"no physics"*"of the 3 here it is x"* ]]
  run -0 "$PACELINE" search --model gpt2-345m --platform dgx-h100 --gbs 64 --gpus 8 --site "$SITE"
  [[ $output == *"site          times are multiplied by what its figures leave"* ]]
  run -0 "$PACELINE" search "${small[@]}" --compare megatron,random
  [[ $output == *"site          times are multiplied by what its figures leave"* ]]
  run -0 "$PACELINE" sweep "${small[@]}" -o "$BATS_TEST_TMPDIR/moved.h5"
  [[ $output == *"site          the best is x"*"no physics"* ]]
}

# time TUPLE...: of a strategy, low, time and high, in words and as a program
times() {
  "$PACELINE" "$@" --json | jq -c '[.iter_time_low_s, .iter_time_s, .iter_time_high_s]'
}

# near A B: two of these within 1 part in 10^6; sums are in another order
near() {
  jq -en --argjson a "$1" --argjson b "$2" '[range(3)] | all($a[.] / $b[.] - 1 | fabs < 1e-6)' || { echo "$1 and $2"; return 1; }
}

# a job whose tuple and program take the same time without a site
program_job=(--platform dgx-h100:1 --model llama-3.1-8b --gbs 16 --seq 2048)

@test "programs at a site take as long as their tuples, with the same intervals" {
  jq '(.figures, .elsewhere.figures).step.seconds = 0.05' "$SITE" >"$BATS_TEST_TMPDIR/step.json"
  site=(--site "$BATS_TEST_TMPDIR/step.json") tuple="pp=4,dp=2,tmp=1,mbs=1"
  words=$(times simulate "${program_job[@]}" --strategy $tuple "${site[@]}")
  without=$(times simulate "${program_job[@]}" --strategy $tuple)
  jq -en --argjson a "$words" --argjson b "$without" '$a[1] > $b[1] + 0.05'
  near "$words" "$(times simulate "${program_job[@]}" --strategy $tuple --as-program "${site[@]}")"
  explained=$("$PACELINE" explain "${program_job[@]}" --strategy $tuple --as-program "${site[@]}" --json | jq .iter_time_s)
  jq -en --argjson a "$words" --argjson b "$explained" '$a[1] / $b - 1 | fabs < 1e-6'
  "$PACELINE" program print "${program_job[@]}" --strategy $tuple >"$BATS_TEST_TMPDIR/print.plir"
  # a program of a file has no configuration: its site is the figures alone
  jq 'del(.remains)' "$BATS_TEST_TMPDIR/step.json" >"$BATS_TEST_TMPDIR/figures.json"
  figures=$(times simulate "${program_job[@]}" --strategy $tuple --site "$BATS_TEST_TMPDIR/figures.json")
  near "$figures" "$(times simulate --platform dgx-h100:1 --program "$BATS_TEST_TMPDIR/print.plir" --site "$BATS_TEST_TMPDIR/figures.json")"
  run -0 "$PACELINE" simulate --platform dgx-h100:1 --program "$BATS_TEST_TMPDIR/print.plir" "${site[@]}"
  [[ $output == *"of it the site   its figures alone"* ]]
}

@test "a sweep of programs at a site has the times of simulate" {
  jq '(.figures, .elsewhere.figures).step.seconds = 0.05' "$SITE" >"$BATS_TEST_TMPDIR/step.json"
  "$PACELINE" sweep "${program_job[@]}" --pp 4 --dp 2 --tmp 1 --mbs 1 --schedule 1f1b,dualpipe --sp off --zero 0 --recompute none --overlap on --assign uniform --site "$BATS_TEST_TMPDIR/step.json" -o "$BATS_TEST_TMPDIR/s.h5" >/dev/null
  "$PACELINE" show "$BATS_TEST_TMPDIR/s.h5" --where 'schedule=="1f1b"' --json >"$BATS_TEST_TMPDIR/rows.json"
  swept=$(jq '[.. | .iter_time_s? // empty][0]' "$BATS_TEST_TMPDIR/rows.json")
  words=$("$PACELINE" simulate "${program_job[@]}" --strategy pp=4,dp=2,tmp=1,mbs=1 --site "$BATS_TEST_TMPDIR/step.json" --json | jq .iter_time_s)
  awk -v a="$swept" -v b="$words" 'BEGIN { exit !(a / b - 1 < 1e-6 && b / a - 1 < 1e-6) }' || { echo "$swept, $words"; return 1; }
}

@test "a time in milliseconds is asked about; rows that say the same are told as one" {
  local rates=validation/measured/nemo_launcher_22_06.csv
  head -2 $rates | sed '2s/,74.5801,/,74580.1,/; 2s/,4942.88,/,,/' >"$BATS_TEST_TMPDIR/milliseconds.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/milliseconds.csv"
  [[ $output == *"note: line 2 is 1"*" times as long as without the site: is it the time of one step, in seconds?"* ]]
  { head -2 $rates && sed -n 2p $rates; } >"$BATS_TEST_TMPDIR/twice.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/twice.csv"
  [[ $output == *"twice.csv:2: the median of 2 rows that say the same: measured 74.6 s"* && $output != *note:* ]]
}

@test "suggested runs are strategies that can be simulated" {
  run -0 --separate-stderr "$PACELINE" calibrate --suggest 2 "${job[@]}"
  [ "$(grep -c '^run [12]: --strategy pp=' <<<"$output")" = 2 ]
  [[ $output == *$'\n'"type          fp16, assumed: "*$'\n'"sequence      1024 tokens, assumed: "* ]] # what was left open is said, as by search
  strategy=$(sed -n 's/^run 1: --strategy //p' <<<"$output")
  "$PACELINE" simulate "${job[@]}" --strategy "$strategy" >/dev/null
}

# fill TABLE FACTOR: the times of its strategies are FACTOR of what is predicted under $framework
fill() {
  python3 - "$1" "$2" "$PACELINE" "$framework" "${job[@]}" <<'END'
import csv, json, subprocess, sys
path, factor, paceline, framework, *job = sys.argv[1:]
with open(path) as table:
    rows = list(csv.DictReader(table))
for row in rows:
    told = subprocess.run([paceline, "simulate", *job, "--framework", framework, "--strategy", row["strategy"], "--json"], capture_output=True, check=True)
    row["step_time_s"] = json.loads(told.stdout)["iter_time_s"] * float(factor)
with open(path, "w", newline="") as table:
    writer = csv.DictWriter(table, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
END
}

@test "what sites add to steps of milliseconds is no interval of millions of per cent" {
  run -0 --separate-stderr "$PACELINE" calibrate --suggest 1 --platform dgx-h100 --model resnet-50 --gbs 64
  [[ $output == *" ms    > 999 %     +- "* && $output != *[0-9][0-9][0-9][0-9]" %"* ]] || { echo "$output"; return 1; }
}

@test "suggested runs as a table: filled in, they are what --suggest predicted, and the best strategies are named" {
  framework=megatron-core table="$BATS_TEST_TMPDIR/runs.csv"
  run -0 --separate-stderr "$PACELINE" calibrate --suggest 3 "${job[@]}" --framework $framework -o "$table"
  [[ ${lines[0]} == "to be known well: the "*" best strategies; predicted, 80 % before any run of this site, after these 3" ]]
  # each of them: a time, less doubt after than before, a strategy
  grep -A12 '^to be known' <<<"$output" | grep '+-' | awk '{ if (!($4 > $7 && $NF ~ /^pp=/)) exit 1; n++ } END { exit n < 3 }'
  [[ $output == *"written to $table: put in what they took"*"paceline calibrate --runs $table --platform amp-homogeneous --framework megatron-core -o site.json"* ]]
  refused "exists; --force replaces it" calibrate --suggest 3 "${job[@]}" --framework $framework -o "$table"
  refused "runs.csv:2: not stated: step_time_s; no run of" calibrate --runs "$table" --platform amp-homogeneous --framework $framework
  fill "$table" 1
  run -0 "$PACELINE" calibrate --runs "$table" --platform amp-homogeneous --framework $framework -o "$BATS_TEST_TMPDIR/site.json"
  [ "$(grep -c 'without the site .* ([+-]0\.0 %)' <<<"$output")" = 3 ] || { echo "$output"; return 1; }
  # a row with a strategy names its framework as the command does
  for as in $framework ideal; do
    sed "s/,$framework,/,$as,/" "$table" >"$BATS_TEST_TMPDIR/named.csv"
    [ "$(grep -c ",$as," "$BATS_TEST_TMPDIR/named.csv")" = 3 ]
    "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/named.csv" --platform amp-homogeneous >"$BATS_TEST_TMPDIR/named.txt"
    "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/named.csv" --platform amp-homogeneous --framework $as | diff "$BATS_TEST_TMPDIR/named.txt" -
  done
  run -0 "$PACELINE" validate "$table" --platform amp-homogeneous --site "$BATS_TEST_TMPDIR/site.json"
  [[ $output == *"site: predicted times are x"* && $output != *"not of the site"* ]] || { echo "$output"; return 1; }
  sed '3s/megatron-core/torch-ddp/' "$table" >"$BATS_TEST_TMPDIR/strange.csv"
  run -0 "$PACELINE" validate "$BATS_TEST_TMPDIR/strange.csv" --platform amp-homogeneous --site "$BATS_TEST_TMPDIR/site.json"
  [[ $output == *$'\nnot of the site: 1 of 3 configurations (software torch-ddp): figures are what sites of one owner share'* ]] || { echo "$output"; return 1; }
  # of the platform's GPU, of which the site has runs: nothing is strange
  run -0 "$PACELINE" simulate "${job[@]}" --framework $framework --strategy pp=4,dp=4,tmp=1,mbs=1 --site "$BATS_TEST_TMPDIR/site.json"
  [[ $output == *"of it the site"* && $output != *"not of the site"* ]] || { echo "$output"; return 1; }
  [ "$(jq -r '.remains.runs[0].gpu' "$BATS_TEST_TMPDIR/site.json")" = T4 ]
  sed '2s/,$/,20/' "$table" >"$BATS_TEST_TMPDIR/excess.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/excess.csv" --platform amp-homogeneous --framework $framework
  [[ $output == *"excess.csv:2: not learnt from: column 'mem_gb': a peak of 20 GiB, and T4 has 15"* ]] || { echo "$output"; return 1; }
  sed '3s/,T4,/,V100-SXM2-16GB,/' "$table" >"$BATS_TEST_TMPDIR/other.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/other.csv" --platform amp-homogeneous --framework $framework
  [[ $output == *"note: line 3 is of 'V100-SXM2-16GB', and is predicted on the platform's T4"*"note: runs of 2 sites"*"put another's runs first"* ]] || { echo "$output"; return 1; }
  # a model's file, seen from the folder of the table
  cp workloads/models/gpt2-345m.json "$BATS_TEST_TMPDIR/mine.json"
  sed 's/,gpt2-345m,/,mine.json,/' "$table" >"$BATS_TEST_TMPDIR/file.csv"
  grep -q ,mine.json, "$BATS_TEST_TMPDIR/file.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/file.csv" --platform amp-homogeneous --framework $framework
  [ "$(grep -c 'without the site .* ([+-]0\.0 %)' <<<"$output")" = 3 ] || { echo "$output"; return 1; }
  # what other columns say of a strategy must be the same
  sed '1s/,gpu,/,tp,gpu,/; 2,$s/,T4,/,3,T4,/' "$table" >"$BATS_TEST_TMPDIR/two.csv"
  refused "two.csv:2: column 'tp': 3, and 'strategy' has tmp=" calibrate --runs "$BATS_TEST_TMPDIR/two.csv" --platform amp-homogeneous
  sed 's/pp=/pq=/' "$table" >"$BATS_TEST_TMPDIR/word.csv"
  refused "word.csv:2: strategy: " calibrate --runs "$BATS_TEST_TMPDIR/word.csv" --platform amp-homogeneous
  sed 's/,gpt2-345m,/,gpt2-345.json,/' "$table" >"$BATS_TEST_TMPDIR/none.csv"
  refused "none.csv:2: model_file: " calibrate --runs "$BATS_TEST_TMPDIR/none.csv" --platform amp-homogeneous
}

@test "runs of a mixed cluster are of their platform, which the table names; a cell of two GPUs alone is refused" {
  local there="$BATS_TEST_TMPDIR/my runs"
  mkdir -p "$there"
  cp platforms/amp-hetero-cluster.xml "$there/my cluster.xml"
  framework=megatron-core job=(--platform "$there/my cluster.xml" --model gpt2-345m --gbs 32)
  run -0 --separate-stderr "$PACELINE" calibrate --suggest 2 "${job[@]}" --framework $framework -o "$there/a b.csv"
  # the next command is what a shell takes
  [[ $output == *"calibrate --runs '$there/a b.csv' --platform '$there/my cluster.xml' --framework megatron-core -o site.json"* ]] || { echo "$output"; return 1; }
  [ "$(grep -c ",\"$there/my cluster.xml\",\"V100-SXM2-16GB + T4\",16," "$there/a b.csv")" = 2 ]
  fill "$there/a b.csv" 1
  run -0 "$PACELINE" calibrate --runs "$there/a b.csv"
  [ "$(grep -c 'without the site .* ([+-]0\.0 %)' <<<"$output")" = 2 ] || { echo "$output"; return 1; }
  [[ $output == *"note: the platform has 2 kinds of GPUs, and the site goes by the first: its figures are those of wherever V100-SXM2-16GB comes first"* ]] || { echo "$output"; return 1; }
  # seen from the table, and --platform goes before
  sed "s|,$there/my cluster.xml,|,my cluster.xml,|" "$there/a b.csv" >"$there/near.csv"
  run -0 "$PACELINE" calibrate --runs "$there/near.csv"
  [ "$(grep -c 'without the site .* ([+-]0\.0 %)' <<<"$output")" = 2 ] || { echo "$output"; return 1; }
  run -0 "$PACELINE" calibrate --runs "$there/near.csv" --platform amp-homogeneous
  [[ $output != *"without the site "*"([+-]0.0 %)"* && $output == *"note: line 2 is of 'V100-SXM2-16GB + T4', and is predicted on the platform's T4"* ]] || { echo "$output"; return 1; }
  # one of its kinds in the cell: said
  sed '2s/,V100-SXM2-16GB + T4,/,T4,/' "$there/near.csv" >"$there/one.csv"
  run -0 "$PACELINE" calibrate --runs "$there/one.csv"
  [[ $output == *"note: line 2 is of 'T4', and is predicted on $there/my cluster.xml, which has 2 kinds of GPUs"* ]] || { echo "$output"; return 1; }
  # the memory of the largest bounds a peak
  sed '2s/,$/,20/' "$there/a b.csv" >"$there/peak.csv"
  run -0 "$PACELINE" calibrate --runs "$there/peak.csv"
  [[ $output == *"peak.csv:2: not learnt from: column 'mem_gb': a peak of 20 GiB, and $there/my cluster.xml has 16"* ]] || { echo "$output"; return 1; }
  sed '2s/,$/,15.5/' "$there/a b.csv" >"$there/peak.csv" # more than a T4 has
  run -0 "$PACELINE" calibrate --runs "$there/peak.csv"
  [[ $output == *"peak.csv:2: measured "*"; peak 15.5 GiB"* ]] || { echo "$output"; return 1; }
  # without its platform nobody knows; a platform that is none is its row's fault alone
  sed 's|,my cluster.xml,|,,|' "$there/near.csv" >"$there/none.csv"
  refused "none.csv:2: gpu: 'V100-SXM2-16GB + T4' names V100 and T4: how many of each, and what connects them, says a platform file, in column 'platform' or by --platform; no run of" calibrate --runs "$there/none.csv"
  sed '3s|,my cluster.xml,|,my claster.xml,|' "$there/near.csv" >"$there/bad.csv"
  run -0 "$PACELINE" calibrate --runs "$there/bad.csv"
  [[ $output == *"bad.csv:3: not learnt from: platform: my claster.xml: No such file"* ]] || { echo "$output"; return 1; }
  run -0 "$PACELINE" validate "$there/bad.csv"
  [[ $output == *"2 expressed, 1 compared"* || $output == *"1 expressed, 1 compared"* ]] || { echo "$output"; return 1; }
}

@test "figures of a GPU that is not the platform's are not the platform's" {
  { head -1 $TABLE && sed -n '5p' $TABLE; } >"$BATS_TEST_TMPDIR/t4.csv"
  sed '2s/,T4,/,V100 16GB (120 W),/' "$BATS_TEST_TMPDIR/t4.csv" >"$BATS_TEST_TMPDIR/v100.csv"
  for name in t4 v100; do
    "$PACELINE" validate "$BATS_TEST_TMPDIR/$name.csv" --platform dgx-a100:2 --csv "$BATS_TEST_TMPDIR/$name.out" >/dev/null
  done
  cat "$BATS_TEST_TMPDIR"/{t4,v100}.out | python3 -c 'import csv, sys
times = [r["predicted_s"] for r in csv.DictReader(sys.stdin) if r["predicted_s"] != "predicted_s"]
assert len(times) == 2 and times[0] == times[1] != "", times'
}

@test "software that is not known is said, once, with what it is predicted as" {
  { head -1 $TABLE && sed -n '5p;20p' $TABLE; } | sed 's/,Megatron-DeepSpeed (AMP)[^,]*,/,SomeStack,/' >"$BATS_TEST_TMPDIR/unknown.csv"
  grep -q SomeStack "$BATS_TEST_TMPDIR/unknown.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/unknown.csv"
  [ "$(grep -c "^note: the software of line 2, 'SomeStack', is none that is known, and is predicted as [a-z-]*; --framework NAME says which$" <<<"$output")" = 1 ]
  [ "$(grep -c 'none that is known' <<<"$output")" = 1 ]
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/unknown.csv" --framework megatron-core
  [[ $output != *"none that is known"* ]]
}

@test "runs that take a fifth longer: the site predicts strategies that were not run a fifth longer" {
  framework=megatron-core table="$BATS_TEST_TMPDIR/runs.csv"
  "$PACELINE" calibrate --suggest 3 "${job[@]}" --framework $framework -o "$table" >/dev/null
  fill "$table" 1.2
  "$PACELINE" calibrate --runs "$table" --platform amp-homogeneous --framework $framework -o "$BATS_TEST_TMPDIR/site.json" >/dev/null
  other=(simulate "${job[@]}" --framework $framework --strategy pp=8,dp=2,tmp=1,mbs=2)
  before=$("$PACELINE" "${other[@]}" --json | jq .iter_time_s) after=$("$PACELINE" "${other[@]}" --site "$BATS_TEST_TMPDIR/site.json" --json | jq .iter_time_s)
  jq -en "$after / $before | . > 1.1 and . < 1.3" || { echo "$before, $after"; return 1; }
}

@test "peaks alone: figures are those of any site, and said" {
  awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; print; next } { $(column["mem_gb"]) = 8; $(column["step_time_s"]) = ""; print }' "$RUNS" >"$BATS_TEST_TMPDIR/peaks.csv"
  run -0 "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/peaks.csv" -o "$BATS_TEST_TMPDIR/peaks.json"
  [[ $output == *"note: no run has a time: figures are those of any site"* ]]
  [ "$(jq -c '[.runs, .peaks]' "$BATS_TEST_TMPDIR/peaks.json")" = "[0,3]" ]
  "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --site "$BATS_TEST_TMPDIR/peaks.json" >/dev/null
}

@test "peaks: memory beside tensors, and how runs scatter around it by what they are" {
  for spread in 0.05 3; do
    awk -F, -v OFS=, -v s=$spread 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; print; next }
      { $(column["mem_gb"]) = 8 + s * (NR % 2); print }' "$RUNS" >"$BATS_TEST_TMPDIR/peaks$spread.csv"
    "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/peaks$spread.csv" -o "$BATS_TEST_TMPDIR/peaks$spread.json" >"$BATS_TEST_TMPDIR/told.txt"
    grep -q 'memory beside tensors: .* GiB more than without a site (80 %: +- .*, from 3 peaks), a run'"'"'s +- .* around it' "$BATS_TEST_TMPDIR/told.txt"
  done
  jq -e --slurpfile wide "$BATS_TEST_TMPDIR/peaks3.json" '.memory.sd > 0 and .memory.scatter < $wide[0].memory.scatter' "$BATS_TEST_TMPDIR/peaks0.05.json"
  [ "$(jq .peaks "$BATS_TEST_TMPDIR/peaks3.json")" = 3 ]
}

@test "refused" {
  printf 'gpu,n_gpus\nT4,4\n' >"$BATS_TEST_TMPDIR/bad.csv"
  refused "no columns" calibrate --runs "$BATS_TEST_TMPDIR/bad.csv"
  { head -1 $TABLE && sed -n '5s/T4/Z80/p' $TABLE; } >"$BATS_TEST_TMPDIR/unknown.csv"
  refused "can be learnt from" calibrate --runs "$BATS_TEST_TMPDIR/unknown.csv"
  refused "exists; --force replaces it" calibrate --runs "$RUNS" -o "$SITE"
  refused "--residuals fits nothing and has a run of its own; leave out --runs, --gemm" calibrate --residuals x --runs "$RUNS" --gemm x.csv
  refused "--runs has a run of its own: leave out --residuals" calibrate --runs "$RUNS" --residuals validation/calibration
  refused "--suggest has a run of its own: leave out --runs" calibrate --suggest 3 --runs "$RUNS"
  refused "--runs has a run of its own: leave out --sites (the table of validate --sensitivities; what --runs writes, others take by --site)" calibrate --runs "$RUNS" --site "$SITE"
  # the cell at fault, without the class that validate counts it in
  { head -1 $TABLE && sed -n '5s/T4,16,/T4,16x,/p' $TABLE; } >"$BATS_TEST_TMPDIR/cell.csv"
  refused "$BATS_TEST_TMPDIR/cell.csv:2: column 'n_gpus': '16x' is not a number; no run of" calibrate --runs "$BATS_TEST_TMPDIR/cell.csv"
  # what cannot be of the run that a row describes: two times, a peak that the GPU does not have
  local rates=validation/measured/nemo_launcher_22_06.csv
  head -2 $rates | sed '2s/,74.5801,/,10,/' >"$BATS_TEST_TMPDIR/times.csv"
  refused "times.csv:2: columns 'step_time_s' and 'tokens_per_s_per_gpu' contradict each other: 10 s said, 74.6 s from 4942.88 tokens" calibrate --runs "$BATS_TEST_TMPDIR/times.csv"
  head -2 $rates | sed '2s/,4942.88,,,/,4942.88,,790,/' >"$BATS_TEST_TMPDIR/peak.csv"
  refused "peak.csv:2: column 'mem_gb': a peak of 790 GiB, and A100-SXM4-80GB has 79." calibrate --runs "$BATS_TEST_TMPDIR/peak.csv"
  refused "--platform P --model M --gbs N" calibrate --suggest 3
  refused "dlrm-516m: a model of this family is simulated as a program, which nothing is calibrated for by whole runs" calibrate --suggest 3 --platform dgx-h100 --model dlrm-516m --gbs 64
  refused "the column" calibrate --sites "$RUNS"
  refused "add --csv FILE" validate $TABLE --sensitivities
  refused "SimGrid has the platform file's figures only" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$SITE" --network simgrid
  jq '.elsewhere.with_runs |= .[1:]' "$SITE" >"$BATS_TEST_TMPDIR/fewer.json"
  head -2 $rates | sed '2s/,74.5801,/,1e30,/' >"$BATS_TEST_TMPDIR/huge.csv"
  refused "huge.csv:2: column 'step_time_s': 1e30 must be positive and less than 1e15" calibrate --runs "$BATS_TEST_TMPDIR/huge.csv"
  refused "'with_runs' must be a list of 3 lists" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$BATS_TEST_TMPDIR/fewer.json"
  jq '.elsewhere.figures.memory.factor = -1' "$SITE" >"$BATS_TEST_TMPDIR/negative.json"
  refused "factor is -1: it must lie between" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$BATS_TEST_TMPDIR/negative.json"
  jq '.memory.sd = -1' "$SITE" >"$BATS_TEST_TMPDIR/negative.json"
  refused "sd is -1: it must lie between 0 and 1e+12" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$BATS_TEST_TMPDIR/negative.json"
  echo '{}' >"$BATS_TEST_TMPDIR/empty.json"
  refused "empty.json:1:1" simulate "${job[@]}" --strategy pp=2,dp=4,tmp=2,mbs=1 --site "$BATS_TEST_TMPDIR/empty.json"
}

# beside NAME,... VALUE,... MESSAGE: a row with a model's file and a strategy, and other columns beside them
beside() {
  printf 'model_file,strategy,seq_len,gbs,gpu,n_gpus,precision,step_time_s%s\ngpt2-345m,"%s",1024,32,T4,16,fp16,1.2%s\n' "$1" "$strategy" "$2" >"$BATS_TEST_TMPDIR/beside.csv"
  refused "beside.csv:2: $3; no run of" calibrate --runs "$BATS_TEST_TMPDIR/beside.csv" --platform amp-homogeneous
}

@test "what columns say beside a strategy and a model's file is the same" {
  local strategy=pp=4,dp=4,tmp=1,mbs=1,schedule=1f1b,recompute=none same=,pp,mbs,schedule,recompute,n_layers,hidden,vocab
  printf 'model_file,strategy,seq_len,gbs,gpu,n_gpus,precision,step_time_s%s\ngpt2-345m,"%s",1024,32,T4,16,fp16,1.2%s\n' $same $strategy ,4,1,1f1b,none,24,1024,50257 >"$BATS_TEST_TMPDIR/same.csv"
  run -0 --separate-stderr "$PACELINE" calibrate --runs "$BATS_TEST_TMPDIR/same.csv" --platform amp-homogeneous
  beside ,pp ,2 "column 'pp': 2, and 'strategy' has pp=4; leave one empty"
  beside ,cp ,2 "column 'cp': 2, and 'strategy' has cp=1; leave one empty"
  beside ,zero_stage ,3 "column 'zero_stage': 3, and 'strategy' has zero=0; leave one empty"
  beside ,schedule ,gpipe "column 'schedule': 'gpipe', and 'strategy' has 1f1b; leave the column empty"
  beside ,recompute ,full "column 'recompute': 'full', and 'strategy' has none; leave the column empty"
  beside ,assign ,uniform "column 'assign': 'uniform', and 'strategy' has boundaries of its own, or a recipe; leave the column empty"
  beside ,n_layers ,25 "column 'n_layers': 25, and 'model_file' has 24; leave the column empty"
  strategy=pp=-4,dp=-4,mbs=1 beside "" "" "strategy: pp: -4 is out of range: 1 to 16777216"
  strategy=pp=99999999999999999999,mbs=1 beside "" "" "strategy: pp: 99999999999999999999 is out of range: 1 to 16777216"
  strategy='' beside "" "" "column 'strategy': is empty, and there is no column 'tp'"
}
