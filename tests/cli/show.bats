#!/usr/bin/env bats
# paceline show: table, CSV and JSON of a results file; one line and exit status 2 for what is wrong.

bats_require_minimum_version 1.5.0

setup_file() {
  export OMPI_MCA_btl=self,vader OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export FILE=$BATS_FILE_TMPDIR/sweep.h5
  "$PACELINE" sweep --platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --mbs 1,2 \
    --recompute none,full -o "$FILE" --quiet
}

refused() {
  local message=$1
  shift
  run "$PACELINE" show "$@"
  [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
  [[ "${lines[0]}" == "paceline show: "*"$message"* ]] || { echo "said: $output"; return 1; }
  [ "${#lines[@]}" -eq 1 ]
}

@test "the ten best as a table within 160 columns" {
  run "$PACELINE" show "$FILE" --top 10 --sort iter_time_s --where 'fits and tmp<=8'
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == *"iter_time[s]"*"mfu[%]"*"peak_mem[GiB]"* ]]
  [[ "$output" == *"10 of "*" matching rows"* ]]
  for line in "${lines[@]}"; do [ "${#line}" -le 160 ]; done
}

@test "sorted up and down, filtered, chosen columns" {
  "$PACELINE" show "$FILE" --csv --columns iter_time_s --where true | tail -n +2 > "$BATS_TEST_TMPDIR/up"
  sort -g "$BATS_TEST_TMPDIR/up" | cmp - "$BATS_TEST_TMPDIR/up"
  "$PACELINE" show "$FILE" --csv --columns iter_time_s --where true --sort -iter_time_s | tail -n +2 > "$BATS_TEST_TMPDIR/down"
  sort -gr "$BATS_TEST_TMPDIR/down" | cmp - "$BATS_TEST_TMPDIR/down"
  run bash -c "'$PACELINE' show '$FILE' --csv --columns pp,schedule --where \"schedule == 'gpipe' and pp == 2\" | sort -u"
  [ "$output" = $'2,gpipe\npp,schedule' ]
}

@test "--top 0 is all, as explain has it" {
  all=$("$PACELINE" show "$FILE" --csv)
  [ "$("$PACELINE" show "$FILE" --csv --top 0)" = "$all" ]
  [ "$(wc -l <<<"$all")" -gt "$("$PACELINE" show "$FILE" --csv --top 3 | wc -l)" ]
}

@test "JSON names every column" {
  "$PACELINE" show "$FILE" --json --top 2 | /usr/bin/python3 -c '
import json, sys
shown = json.load(sys.stdin)
assert len(shown["rows"]) == 2 and shown["pending"] == 0
for name in ("pp", "dp", "tmp", "mbs", "assign", "iter_time_s", "peak_mem_bytes", "status", "run_digest"): assert name in shown["rows"][0]
assert shown["rows"][0]["status"] == "done" and len(shown["rows"][0]["run_digest"]) == 16'
}

@test "a file with pending rows is read, and said" {
  cp "$FILE" "$BATS_TEST_TMPDIR/partial.h5"
  /usr/bin/python3 -c 'import h5py, sys; h5py.File(sys.argv[1], "r+")["status"][:100] = 0' "$BATS_TEST_TMPDIR/partial.h5"
  run "$PACELINE" show "$BATS_TEST_TMPDIR/partial.h5" --top 3
  [ "$status" -eq 0 ]
  command=$(sed -n 's/^100 candidates are not computed yet; this goes on: paceline //p' <<< "$output")
  [ "$command" = "sweep --platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --mbs 1,2 --recompute none,full -o $BATS_TEST_TMPDIR/partial.h5 --resume" ]
  run "$PACELINE" show "$BATS_TEST_TMPDIR/partial.h5" --csv --where "status == 'pending'" --columns candidate
  [ "$(grep -c '^[0-9]*$' <<< "$output")" -eq 100 ]
}

@test "what few jobs use has a column where a row has it" {
  "$PACELINE" sweep --platform platforms/dgx-a100.xml --model workloads/models/tiny-mixtral.json --gbs 8 --seq 128 --pp 1 --tmp 2 --cp 1,2 \
    --mbs 1 --ep 2 --etp 1,tmp --zero 1 --recompute none --sp on --quiet -o "$BATS_TEST_TMPDIR/experts.h5"
  header=$("$PACELINE" show "$BATS_TEST_TMPDIR/experts.h5" --top 100 | head -1)
  [[ "$header" == *" tmp  cp  ep  etp  mbs "* ]]
  [[ $("$PACELINE" show "$BATS_TEST_TMPDIR/experts.h5" --where 'etp==1 and cp==1' | head -1) == *" tmp  ep  mbs "* ]]
  [[ $("$PACELINE" show "$FILE" | head -1) == *" tmp  mbs "* ]]
}

@test "strategies in words that are simulated as programs have their degrees, and what the host holds where some leave it something" {
  job=(--platform dgx-h100:1 --model llama-3.1-8b --gbs 16 --seq 2048 --pp 4 --dp 2 --tmp 1 --mbs 1 --sp off --zero 0 --recompute none --overlap on --assign uniform --quiet)
  "$PACELINE" sweep "${job[@]}" --schedule 1f1b,dualpipe -o "$BATS_TEST_TMPDIR/dual.h5"
  "$PACELINE" sweep "${job[@]}" --schedule 1f1b --offload none,states -o "$BATS_TEST_TMPDIR/states.h5"
  run -0 "$PACELINE" show "$BATS_TEST_TMPDIR/dual.h5" --where true
  [[ "${lines[0]}" == *"tokens_per_s  mfu[%]  pp  dp  tmp  mbs  schedule "*" assign"* ]]
  [[ "${lines[0]}" != *choice_offload* ]]
  [[ "$output" == *" 4   2    1    1  dualpipe "* ]]
  run -0 "$PACELINE" show "$BATS_TEST_TMPDIR/states.h5"
  [[ "${lines[0]}" == *" pp  dp  tmp  mbs  schedule "*" choice_offload" ]]
  [[ "$output" == *"0:8:16:24:32  none"*"0:8:16:24:32  states"* ]]
  run -0 "$PACELINE" show "$BATS_TEST_TMPDIR/states.h5" --where 'choice_offload=="none"'
  [[ "${lines[0]}" != *choice_offload* ]]
}

@test "what all rows compute in is said, and a column that is an attribute" {
  job=(--platform dgx-h100:1 --model llama-3.1-8b --gbs 16 --seq 2048 --pp 4 --dp 2 --tmp 1 --mbs 1 --schedule 1f1b --sp off --zero 0 --recompute none --overlap on --assign uniform)
  "$PACELINE" sweep "${job[@]}" --fp8 -o "$BATS_TEST_TMPDIR/fp8.h5" --quiet
  run -0 "$PACELINE" show "$FILE"
  [[ $output == *"candidates in the file, all in fp16"$'\n'* ]]
  run -0 "$PACELINE" show "$BATS_TEST_TMPDIR/fp8.h5"
  [[ $output == *"candidates in the file, all in bf16 with fp8 products (86.8 % of their work; the MFU counts each at its own peak)"* ]]
  share=$("$PACELINE" simulate --platform dgx-h100:1 --model llama-3.1-8b --gbs 16 --seq 2048 --fp8 --strategy pp=4,dp=2,tmp=1,mbs=1 --json | jq .narrow_share)
  [ "$("$PACELINE" show "$BATS_TEST_TMPDIR/fp8.h5" --json | jq -c '.attributes | [.dtype, .fp8, .narrow_share]')" = "[\"bf16\",1,$share]" ]
  refused "--columns: dtype is no column: it is bf16 in all rows (--json has it in \"attributes\")" "$BATS_TEST_TMPDIR/fp8.h5" --columns mfu,dtype
  refused "there is no column 'dtyp'; near: " "$FILE" --columns dtyp
  "$PACELINE" sweep "${job[@]}" -o "$BATS_TEST_TMPDIR/bf16.h5" --quiet
  run -0 "$PACELINE" compare "$BATS_TEST_TMPDIR/fp8.h5:0" "$BATS_TEST_TMPDIR/bf16.h5:0"
  [[ $output =~ "differs  fp8            on "\ +"off" ]]
}

@test "nothing of a file that cannot be read to its end" {
  cp "$FILE" "$BATS_TEST_TMPDIR/lacking.h5"
  /usr/bin/python3 -c 'import h5py, sys; del h5py.File(sys.argv[1], "r+")["mbs"]' "$BATS_TEST_TMPDIR/lacking.h5"
  for form in --json --csv; do refused "has no column 'mbs'" "$BATS_TEST_TMPDIR/lacking.h5" $form; done
}

@test "what a terminal should not get is escaped" {
  cp "$FILE" "$BATS_TEST_TMPDIR/texts.h5"
  /usr/bin/python3 -c '
import h5py, sys
file = h5py.File(sys.argv[1], "r+")
file["assign"][:] = b"\x1b[31m\xe2\x80\xae,\xff\n"
file["status"][:100] = 0
file.attrs["command"] = "paceline sweep \x1b[2J"' "$BATS_TEST_TMPDIR/texts.h5"
  for form in --columns=assign "--csv --columns=assign" --json; do
    run --separate-stderr "$PACELINE" show "$BATS_TEST_TMPDIR/texts.h5" --top 2 $form
    [ "$status" -eq 0 ]
    [[ "$output" == *'\u001b[31m\u202e,'* ]] || { echo "$form: $output"; return 1; }
    if LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80\xae|\xff' <<< "$output$stderr"; then echo "$form"; return 1; fi
    [[ "$output$stderr" == *'paceline sweep \u001b[2J -o '* ]]
    if [ "$form" = --json ]; then /usr/bin/python3 -c 'import json, sys; json.load(sys.stdin)' <<< "$output"; fi
  done
}

@test "wrong conditions, columns and files" {
  refused "column 6 of \"fits and8 tmp\"" "$FILE" --where 'fits and8 tmp'
  refused "there is no column 'iter_time'; near: iter_time_s" "$FILE" --where 'iter_time < 3'
  refused "--sort: there is no column 'mem'" "$FILE" --sort mem
  refused "--columns: there is no column 'peak'; near: peak_mem_bytes, peak_stage" "$FILE" --columns pp,peak
  refused "--top" "$FILE" --top ten
  refused "--top" "$FILE" --top -1
  refused "exclude each other" "$FILE" --json --csv
  refused "which results file" --top 3
  refused "is not an option" "$FILE" --best
  refused "No such file" nowhere.h5
  refused "is not an HDF5 file" main.c
  refused "is not a regular file" platforms
  head -c 20000 "$FILE" > "$BATS_TEST_TMPDIR/cut.h5"
  refused "is damaged or truncated HDF5" "$BATS_TEST_TMPDIR/cut.h5"
  /usr/bin/python3 -c 'import h5py, sys; h5py.File(sys.argv[1], "w")["x"] = [1]' "$BATS_TEST_TMPDIR/other.h5"
  refused "not a results file of paceline sweep" "$BATS_TEST_TMPDIR/other.h5"
}

@test "a full standard output is an error" {
  [ -c /dev/full ] || skip
  run bash -c "'$PACELINE' show '$FILE' > /dev/full"
  [ "$status" -eq 1 ]
  [[ "$output" == *"cannot write standard output"* ]]
}

@test "show and compare: ep_overlap in words; files, --csv and --where have its number" {
  local out="$BATS_TEST_TMPDIR/overlap.h5"
  "$PACELINE" sweep --platform dgx-h100:2 --model mixtral-8x7b --gbs 64 --ep 8 --ep-overlap off,on --tmp 1 --pp 1 --mbs 1 --zero 1 --recompute none --overlap on -o "$out" --quiet
  "$PACELINE" show "$out" --columns ep_overlap --where 'ep_overlap == 1' | grep -qx ' *on'
  "$PACELINE" show "$out" --columns ep_overlap --where 'ep_overlap == 0' | grep -qx ' *off'
  [ "$("$PACELINE" show "$out" --csv --columns ep_overlap --where 'ep_overlap > 0' | tr '\n' ' ')" = "ep_overlap 1 " ]
  "$PACELINE" compare "$out:0" "$out:1" | grep -q 'ep_overlap *off *on'
}
