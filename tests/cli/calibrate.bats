#!/usr/bin/env bats
# paceline calibrate: a profile from timings; what is wrong with a table in one line with file, line, value and way out.

bats_require_minimum_version 1.5.0

setup_file() {
  export BASE=platforms/devices/T4.json TABLE=validation/calibration/gemm_T4.csv.gz
}

refused() {
  local message=$1
  shift
  run "$PACELINE" calibrate "$@"
  [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
  [[ "${lines[-1]}" == "paceline calibrate: "*"$message"* ]] || { echo "said: $output"; return 1; }
}

# bad NAME CONTENT: a table in the test's folder.
bad() { printf '%b' "$2" > "$BATS_TEST_TMPDIR/$1"; }

@test "fits, reports, writes; the same again; everything else of the base is kept" {
  run "$PACELINE" calibrate --gemm "$TABLE" --base "$BASE" -o "$BATS_TEST_TMPDIR/one.json" --provenance 'a test'
  [ "$status" -eq 0 ]
  [[ "$output" == *"gemm fp16: 81 shapes, 66 fitted"*"held out, from 1 GFLOP"*"worst held out"*"written to "* ]]
  "$PACELINE" calibrate --gemm "$TABLE" --base "$BASE" -o "$BATS_TEST_TMPDIR/two.json" --provenance 'a test'
  cmp "$BATS_TEST_TMPDIR/one.json" "$BATS_TEST_TMPDIR/two.json"
  jq -S 'del(.gemm, .provenance.gemm)' "$BASE" > "$BATS_TEST_TMPDIR/before"
  jq -S 'del(.gemm, .provenance.gemm)' "$BATS_TEST_TMPDIR/one.json" | cmp - "$BATS_TEST_TMPDIR/before"
  [ "$(jq -r .provenance.gemm "$BATS_TEST_TMPDIR/one.json")" = 'a test' ]
  [ "$(jq -r .gemm.multiprocessors "$BATS_TEST_TMPDIR/one.json")" = 40 ]
}

@test "a fit of one data type keeps the fits of the others; in place with --force" {
  cp "$BASE" "$BATS_TEST_TMPDIR/p.json"
  "$PACELINE" calibrate --gemm "$TABLE" --base "$BATS_TEST_TMPDIR/p.json" -o "$BATS_TEST_TMPDIR/p.json" --force
  jq '.gemm.fits[] | select(.dtypes == ["fp16"])' "$BATS_TEST_TMPDIR/p.json" > "$BATS_TEST_TMPDIR/fp16"
  [ -s "$BATS_TEST_TMPDIR/fp16" ]
  "$PACELINE" calibrate --gemm "$TABLE" --dtype fp32 --base "$BATS_TEST_TMPDIR/p.json" -o "$BATS_TEST_TMPDIR/p.json" --force
  jq '.gemm.fits[] | select(.dtypes == ["fp16"])' "$BATS_TEST_TMPDIR/p.json" | cmp - "$BATS_TEST_TMPDIR/fp16"
}

@test "a relative's fits for a device without timings, without its errors" {
  "$PACELINE" calibrate --gemm "$TABLE" --base "$BASE" -o "$BATS_TEST_TMPDIR/t4.json"
  run "$PACELINE" calibrate --transfer "$BATS_TEST_TMPDIR/t4.json" --base platforms/devices/P100.json --multiprocessors 80 -o "$BATS_TEST_TMPDIR/p.json"
  [ "$status" -eq 0 ]
  [ "$(jq -r .provenance.gemm "$BATS_TEST_TMPDIR/p.json")" = 'not measured on this device: transferred from T4' ]
  jq -e '.gemm.multiprocessors == 80 and ([.gemm.fits[] | has("held_out") or has("residual")] | any | not)' "$BATS_TEST_TMPDIR/p.json"
  refused "leave it or --gemm out" --transfer "$BASE" --gemm "$TABLE" --base "$BASE"
  jq 'del(.gemm)' "$BASE" > "$BATS_TEST_TMPDIR/bare.json"
  refused "has no fit of matrix products" --transfer "$BATS_TEST_TMPDIR/bare.json" --base platforms/devices/P100.json --multiprocessors 80
}

@test "no output: only the report" {
  run "$PACELINE" calibrate --gemm "$TABLE" --base "$BASE" --dtype fp32
  [ "$status" -eq 0 ]
  [[ "$output" == *"gemm fp32: 81 shapes"* && "$output" != *fp16* && "$output" != *written* ]]
}

@test "refused: tables" {
  bad dtype.csv 'dtype,m,n,k,time\nbf16,64,64,64,1us\nint3,64,64,64,1us\n'
  refused "dtype.csv:3: unknown data type 'int3'; known are" --gemm "$BATS_TEST_TMPDIR/dtype.csv" --base "$BASE"
  bad time.csv 'dtype,m,n,k,time\nfp16,64,64,64,fast\n'
  refused "time.csv:2: time: 'fast'" --gemm "$BATS_TEST_TMPDIR/time.csv" --base "$BASE"
  bad short.csv 'dtype,m,n,k,time\nfp16,64,64,1us\n'
  refused "short.csv:2: 4 cells where the header has 5" --gemm "$BATS_TEST_TMPDIR/short.csv" --base "$BASE"
  bad column.csv 'dtype,m,n,time\nfp16,64,64,1us\n'
  refused "column.csv: no column 'k'; needed are" --gemm "$BATS_TEST_TMPDIR/column.csv" --base "$BASE"
  bad gpus.csv 'gpu,dtype,m,n,k,time\nA,fp16,64,64,64,1us\nB,fp16,64,64,64,1us\n'
  refused "gpus.csv:3: GPU 'B' after 'A'" --gemm "$BATS_TEST_TMPDIR/gpus.csv" --base "$BASE"
  bad few.csv 'multiprocessors,dtype,m,n,k,time\n40,fp16,64,64,64,1us\n'
  refused "a fit needs at least 30" --gemm "$BATS_TEST_TMPDIR/few.csv" --base "$BASE"
  bad bf16.csv 'multiprocessors,dtype,m,n,k,time\n40,bf16,64,64,64,1us\n'
  refused "T4 has no peak for bf16" --gemm "$BATS_TEST_TMPDIR/bf16.csv" --base "$BASE"
  head -c 500 "$TABLE" > "$BATS_TEST_TMPDIR/cut.csv.gz"
  refused "cut.csv.gz: is no whole gzip file" --gemm "$BATS_TEST_TMPDIR/cut.csv.gz" --base "$BASE"
  refused "no such file" --gemm no-such.csv --base "$BASE" || refused "No such file" --gemm no-such.csv --base "$BASE"
}

@test "refused: options" {
  printf 'dtype,m,n,k,time\nfp16,64,64,64,1us\n' > "$BATS_TEST_TMPDIR/one.csv"
  refused "nothing to calibrate: say --runs CSV or --suggest N (a site of one's own), --collectives CSV, --gemm CSV, --attention CSV, --kernels CSV, --convolutions CSV, --training CSV, --residuals FOLDER or --this-machine" --base "$BASE"
  refused "--base is missing: peak and bandwidth are not fitted but taken from an existing profile, and the timings do not say of which GPU" --gemm "$BATS_TEST_TMPDIR/one.csv"
  bad foo.csv 'gpu,dtype,m,n,k,time\nFoo 9,fp16,64,64,64,1us\n'
  refused "the timings are of 'Foo 9', of which there is none" --gemm "$BATS_TEST_TMPDIR/foo.csv"
  refused "--dtype: 'fp12' is none of" --gemm "$TABLE" --base "$BASE" --dtype fp16,fp12
  refused "--multiprocessors" --gemm "$TABLE" --base "$BASE" --multiprocessors 0
  refused "no row of the GPU 'H100'" --gemm "$TABLE" --base "$BASE" --gpu H100
  cp "$TABLE" "$BATS_TEST_TMPDIR/mine.csv.gz"
  refused "mine.csv.gz" --gemm "$BATS_TEST_TMPDIR/mine.csv.gz" --base "$BASE" -o "$BATS_TEST_TMPDIR/mine.csv.gz" --force
  cmp "$TABLE" "$BATS_TEST_TMPDIR/mine.csv.gz"
  echo keep > "$BATS_TEST_TMPDIR/there.json"
  refused "exists; --force replaces it" --gemm "$TABLE" --base "$BASE" -o "$BATS_TEST_TMPDIR/there.json"
  [ "$(cat "$BATS_TEST_TMPDIR/there.json")" = keep ]
  refused "cannot write" --gemm "$TABLE" --base "$BASE" --dtype fp32 -o "$BATS_TEST_TMPDIR/no/such/folder.json"
  jq 'del(.gemm)' "$BASE" > "$BATS_TEST_TMPDIR/bare.json"
  refused "how many multiprocessors has the device" --gemm "$BATS_TEST_TMPDIR/one.csv" --base "$BATS_TEST_TMPDIR/bare.json"
}

@test "attention and kernels: fits, reports, writes; the same again; everything else of the base is kept" {
  local base=platforms/devices/H200-SXM5-141GB.json folder=validation/calibration
  for name in one two; do
    run "$PACELINE" calibrate --attention $folder/attention.csv.gz --kernels $folder/kernels.csv.gz --base $base \
      -o "$BATS_TEST_TMPDIR/$name.json" --provenance 'a test'
    [ "$status" -eq 0 ]
  done
  [[ "$output" == *"attention flash3: 9 parameters"*"forward, held out, 100 us and more: "*"attention cudnn"*"norm, backward"* ]]
  cmp "$BATS_TEST_TMPDIR/one.json" "$BATS_TEST_TMPDIR/two.json"
  local rest='del(.attention, .kernels, .provenance.attention, .provenance.kernels)'
  jq -S "$rest" $base > "$BATS_TEST_TMPDIR/before"
  jq -S "$rest" "$BATS_TEST_TMPDIR/one.json" | cmp - "$BATS_TEST_TMPDIR/before"
  # Kernels and kinds without rows stay; those with rows are what is shipped, to the last digit but one.
  [ "$(jq -c '.attention[0]' "$BATS_TEST_TMPDIR/one.json")" = "$(jq -c '.attention[0]' $base)" ]
  [ "$(jq -c .kernels.softmax "$BATS_TEST_TMPDIR/one.json")" = "$(jq -c .kernels.softmax $base)" ]
  for path in .attention[1].efficiency.\"128\" .attention[2].efficiency.\"128\" .kernels.norm.backward.bandwidth; do
    jq -e -n --argjson a "$(jq "$path" "$BATS_TEST_TMPDIR/one.json")" --argjson b "$(jq "$path" $base)" '($a / $b - 1) | fabs < 0.01'
  done
}

@test "attention and kernels, refused" {
  local base=platforms/devices/H200-SXM5-141GB.json
  bad no.csv 'device,kind,pass,bytes,host_bound,time_us\nH200,norm,forward,1,0,1\n'
  refused "no.csv: no row is about H200-SXM5-141GB (the first is about H200)" --kernels "$BATS_TEST_TMPDIR/no.csv" --base $base
  bad kind.csv 'device,kind,pass,bytes,host_bound,time_us\nH200-SXM5-141GB,nrom,forward,1,0,1\n'
  refused "kind.csv:2: column 'kind': 'nrom'" --kernels "$BATS_TEST_TMPDIR/kind.csv" --base $base
  refused "--base is missing" --kernels "$BATS_TEST_TMPDIR/kind.csv"
  refused "--gemm has a run of its own" --kernels "$BATS_TEST_TMPDIR/kind.csv" --gemm "$TABLE" --base $base
  refused "kind.csv" --kernels "$BATS_TEST_TMPDIR/kind.csv" --base $base -o "$BATS_TEST_TMPDIR/kind.csv" --force
}

@test "convolutions: fitted, everything else of the base is kept; refused" {
  local base=platforms/devices/T4.json table=validation/calibration/convolutions.csv.gz head
  head=device,multiprocessors,dtype,pass,batch,channels,height,width,filters,filter_height,filter_width,stride,out_height,out_width,time_us
  run "$PACELINE" calibrate --convolutions $table --base $base -o "$BATS_TEST_TMPDIR/c.json" --provenance 'a test'
  [ "$status" -eq 0 ]
  [[ "$output" == *"convolution fp32, forward: 7 parameters"*"held out: "*"convolution fp16, weight: "*"written to "* ]]
  jq -S 'del(.convolutions, .provenance.convolutions)' $base > "$BATS_TEST_TMPDIR/before"
  jq -S 'del(.convolutions, .provenance.convolutions)' "$BATS_TEST_TMPDIR/c.json" | cmp - "$BATS_TEST_TMPDIR/before"
  [ "$(jq -r .provenance.convolutions "$BATS_TEST_TMPDIR/c.json")" = 'a test' ]
  bad pass.csv "$head\nT4,40,fp32,backward,1,1,8,8,8,3,3,1,8,8,10\n"
  refused "pass.csv:2: column 'pass': 'backward' is none of forward, data" --convolutions "$BATS_TEST_TMPDIR/pass.csv" --base $base
  bad size.csv "$head\nT4,40,fp32,data,1,0,8,8,8,3,3,1,8,8,10\n"
  refused "size.csv:2: column 'channels': 0 is less than 1" --convolutions "$BATS_TEST_TMPDIR/size.csv" --base $base
  bad type.csv "$head\nT4,40,bf16,data,1,1,8,8,8,3,3,1,8,8,10\n"
  refused "type.csv:2: T4 has no peak for bf16" --convolutions "$BATS_TEST_TMPDIR/type.csv" --base $base
  jq '.convolutions[1].pass = "forward"' "$BATS_TEST_TMPDIR/c.json" > "$BATS_TEST_TMPDIR/two.json"
  refused "two fits of the pass 'forward' in one data type" --convolutions $table --base "$BATS_TEST_TMPDIR/two.json"
}

@test "training steps: what tensor cores sustain; the same again; everything else of the base is kept" {
  local base=platforms/devices/H100-SXM5-80GB.json rows=validation/calibration/mosaicml_mpt.csv
  for name in one two; do
    run "$PACELINE" calibrate --training $rows --source llm-foundry --base $base -o "$BATS_TEST_TMPDIR/$name.json"
    [ "$status" -eq 0 ]
  done
  [[ "$output" == *"sustained: 1 parameter; tensor cores of H100-SXM5-80GB do at most 0."*"held out: "*"written to "* ]]
  cmp "$BATS_TEST_TMPDIR/one.json" "$BATS_TEST_TMPDIR/two.json"
  local rest='del(.sustained, .provenance.sustained)'
  jq -S "$rest" $base > "$BATS_TEST_TMPDIR/before"
  jq -S "$rest" "$BATS_TEST_TMPDIR/one.json" | cmp - "$BATS_TEST_TMPDIR/before"
  [[ "$(jq -r .provenance.sustained "$BATS_TEST_TMPDIR/one.json")" == "paceline calibrate: "*" runs on one machine in mosaicml_mpt.csv" ]]
}

@test "training steps made by a GPU that sustains half of its peak say so" {
  # The times that a profile with 0.5 predicts are put in the place of the measured ones.
  local base=platforms/devices/H100-SXM5-80GB.json folder=$BATS_TEST_TMPDIR/devices
  mkdir "$folder"
  jq '.sustained.compute = 0.5' $base > "$folder/H100-SXM5-80GB.json"
  (head -1 validation/calibration/mosaicml_mpt.csv; grep llm-foundry validation/calibration/mosaicml_mpt.csv | grep 'H100-80GB-SXM,8,') > "$BATS_TEST_TMPDIR/h100.csv"
  "$PACELINE" validate "$BATS_TEST_TMPDIR/h100.csv" --devices "$folder" --csv "$BATS_TEST_TMPDIR/rows.csv" > /dev/null
  /usr/bin/python3 - "$BATS_TEST_TMPDIR" <<'PY'
import csv, sys
folder = sys.argv[1]
made = {int(r["line"]): r["predicted_s"] for r in csv.DictReader(open(folder + "/rows.csv")) if r["predicted_s"]}
with open(folder + "/h100.csv") as source, open(folder + "/made.csv", "w", newline="") as target:
    reader = csv.reader(source)
    header = next(reader)
    writer = csv.writer(target)
    writer.writerow(header)
    at = header.index("step_time_s")
    for line, row in enumerate(reader, 2):
        if line in made:
            row[at] = made[line]
            writer.writerow(row)
PY
  run "$PACELINE" calibrate --training "$BATS_TEST_TMPDIR/made.csv" --base $base
  [[ "$output" == *"do at most 0.50 of their peak"*"median 0.0 %"* ]] || { echo "$output"; return 1; }
}

@test "a relative's sustained rate; refused" {
  local h100=platforms/devices/H100-SXM5-80GB.json
  run "$PACELINE" calibrate --sustained-like $h100 --base platforms/devices/B200.json -o "$BATS_TEST_TMPDIR/p.json"
  [ "$status" -eq 0 ]
  [ "$(jq -r .provenance.sustained "$BATS_TEST_TMPDIR/p.json")" = "no training run of this device was measured: transferred from H100-SXM5-80GB" ]
  jq -e '.sustained.compute > 0.3 and .sustained.compute < 0.8' "$BATS_TEST_TMPDIR/p.json"
  local rows=validation/calibration/vocab_parallelism.csv
  refused "has no section 'sustained'" --sustained-like platforms/devices/P100.json --base $h100
  refused "no fit of matrix products in 16 bits" --sustained-like $h100 --base platforms/devices/P100.json
  refused "leave it or --training out" --sustained-like $h100 --training $rows --base $h100
  refused "--base is missing" --training $rows
  refused "--source chooses rows of --training" --sustained-like $h100 --source x --base $h100
  refused "0 timed runs on one machine of T4" --training $rows --base $BASE
  refused "--training has a run of its own" --training $rows --kernels x.csv --base $BASE
}

@test "the collector explains itself without a GPU, and its columns are read" {
  run /usr/bin/python3 validation/collect/gemm_timings.py --help
  [ "$status" -eq 0 ]
  [[ "$output" == *"--output"* && "$output" == *"--dtype"* ]]
  /usr/bin/python3 -m py_compile validation/collect/gemm_timings.py
  header=$(/usr/bin/python3 validation/collect/gemm_timings.py --list --dtype fp16 | head -n 1)
  [ "$header" = "gpu,multiprocessors,dtype,batch,m,n,k,time_us" ]
  run /usr/bin/python3 validation/collect/kernel_timings.py --help
  [[ "$status" -eq 0 && "$output" == *"--attention"* && "$output" == *"--kernels"* ]]
  # Its calls, each timed at 100 us, are a table that is fitted.
  /usr/bin/python3 validation/collect/kernel_timings.py --list |
    sed '1!s/^,,,,/A100-SXM4-80GB,108,flash2,forward,/; 1!s/$/100/' > "$BATS_TEST_TMPDIR/listed.csv"
  [ "$(wc -l < "$BATS_TEST_TMPDIR/listed.csv")" -gt 500 ]
  run "$PACELINE" calibrate --attention "$BATS_TEST_TMPDIR/listed.csv" --base platforms/devices/A100-SXM4-80GB.json
  [[ "$status" -eq 0 && "$output" == *"attention flash2: "* ]]
}

@test "logs of nccl-tests become a table that is fitted" {
  local log="$BATS_TEST_TMPDIR/a.log" script=validation/collect/collective_timings.py rank
  { echo "# Collective test starting: all_gather_perf"
    for rank in 0 1 2 3 4 5 6 7; do echo "#  Rank  $rank Group  0 Pid  1 on host-a device  $rank [0x8d] NVIDIA A100"; done
    echo "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    echo "     1048576         32768     float    none      -1    38.15   27.49   24.05      0    37.27   28.14   24.62      0"
    echo "[1,0]<stdout>:   268435456       8388608     float    none      -1  1211.1  221.64  193.94      0  1210.0  221.85  194.12      0"
    echo "# Avg bus bandwidth    : 6.6"; } >"$log"
  /usr/bin/python3 $script --output "$BATS_TEST_TMPDIR/nccl.csv" --logs "$log"
  [ "$(grep -v '^#' "$BATS_TEST_TMPDIR/nccl.csv")" = "op,n_gpus,n_nodes,size_bytes,time_us
all_gather,8,1,1048576,38.15
all_gather,8,1,268435456,1211.1" ]
  # As older versions print it: no root, the operation only in the name of the file.
  printf '#   Rank  0 Pid 1 on a device 0\n#   Rank  1 Pid 1 on b device 0\n 33554432 8388608 float sum 817.8 20.51 20.51 0e+00 785.1 21.37 21.37 0e+00\n' >"$BATS_TEST_TMPDIR/all_reduce_perf.out"
  /usr/bin/python3 $script --output "$BATS_TEST_TMPDIR/nccl.csv" --logs "$BATS_TEST_TMPDIR/all_reduce_perf.out"
  [ "$(tail -n 1 "$BATS_TEST_TMPDIR/nccl.csv")" = "all_reduce,2,2,33554432,817.8" ]
  run "$PACELINE" calibrate --collectives "$BATS_TEST_TMPDIR/nccl.csv" --platform platforms/dgx-a100-16.xml
  [ "$status" -eq 0 ]
  [[ "$output" == *"| nvswitch-nvlink3 | "* ]]
  printf 'nothing\n' >"$log"
  run /usr/bin/python3 $script --output "$BATS_TEST_TMPDIR/none.csv" --logs "$log"
  [ "$status" -eq 1 ]
  [[ "$output" == *"a.log: which operation is this? --op is one of all_reduce,"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/none.csv" ]
}

# ---- collectives ----

# measured NAME HEADER ROW...: a table in the test's folder
measured() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$BATS_TEST_TMPDIR/$name"
}

@test "collectives: one's own measurements become one's own profile" {
  local rows=(op,n_gpus,size_bytes,time_us) size
  for size in 1024 65536 1048576 16777216 268435456 1073741824; do
    rows+=("all_reduce,8,$size,$(awk "BEGIN { print 40 + 1.75 * $size / 100e3 }")")
  done
  measured mine.csv "${rows[@]}"
  "$PACELINE" calibrate --collectives "$BATS_TEST_TMPDIR/mine.csv" --platform platforms/dgx-a100.xml -o "$BATS_TEST_TMPDIR/mine.json" >"$BATS_TEST_TMPDIR/out"
  grep -q '^| nvswitch-nvlink3 | [1-6] |' "$BATS_TEST_TMPDIR/out"
  # 100 GB/s of 300 and 40 us: what was measured is what a job is now charged
  jq -e '[.inside[] | select(.name == "nvswitch-nvlink3").provenance | contains("of measured")] == [true]' "$BATS_TEST_TMPDIR/mine.json"
  run "$PACELINE" calibrate --collectives "$BATS_TEST_TMPDIR/mine.csv" --platform platforms/dgx-a100.xml --check --profile "$BATS_TEST_TMPDIR/mine.json"
  [ "$status" -eq 0 ]
  awk -F'|' '/measured \| fitted/ && $7 > 6 { bad = 1 } END { exit bad }' <<<"$output"
  refused "exists; --force replaces it" --collectives "$BATS_TEST_TMPDIR/mine.csv" --platform platforms/dgx-a100.xml -o "$BATS_TEST_TMPDIR/mine.json"
}

@test "products and collectives in one run: two profiles, the second in the folder of its kind" {
  local mine="$BATS_TEST_TMPDIR/mine.csv" to="$BATS_TEST_TMPDIR/platforms" both
  measured mine.csv op,n_gpus,size_bytes,time_us all_reduce,4,1024,30 all_reduce,4,1048576,200 all_reduce,4,268435456,40000
  both=(--gemm "$TABLE" --collectives "$mine" --platform platforms/amp-homogeneous.xml)
  mkdir -p "$to/devices"
  refused "cannot write $to/collectives/t4.json: No such file or directory" "${both[@]}" -o "$to/devices/t4.json"
  [ -z "$(ls "$to/devices")" ]
  mkdir "$to/collectives"
  run "$PACELINE" calibrate "${both[@]}" -o "$to/devices/t4.json"
  [ "$status" -eq 0 ]
  [[ "$output" == *"not fitted: "*"/T4.json"* && "$output" == *"written to $to/collectives/t4.json"*"written to $to/devices/t4.json" ]]
  "$PACELINE" calibrate --gemm "$TABLE" --base "$BASE" -o "$to/alone.json"
  cmp "$to/alone.json" "$to/devices/t4.json"
  jq -e .inside "$to/collectives/t4.json" >/dev/null
  run "$PACELINE" calibrate "${both[@]}" -o "$to/other.json"
  [ "$status" -eq 0 ]
  cmp "$to/other-collectives.json" "$to/collectives/t4.json"
  # A table that cannot be read, a name that is taken: nothing is written.
  printf 'op,n_gpus,size_bytes,time_us\nall_reduce,4,1024,fast\n' >"$mine"
  refused "mine.csv:2: column 'time_us': 'fast' is not a number" "${both[@]}" -o "$to/third.json"
  refused "t4.json exists; --force replaces it" "${both[@]}" -o "$to/devices/t4.json"
  [ ! -e "$to/third.json" ] && [ ! -e "$to/third-collectives.json" ]
}

@test "collectives: refused" {
  local head=op,n_gpus,size_bytes,time_us
  measured op.csv $head reduce,8,1024,20
  refused "op.csv:2: op 'reduce' is none of all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send" \
    --collectives "$BATS_TEST_TMPDIR/op.csv" --platform platforms/dgx-a100.xml
  measured gpus.csv $head all_reduce,16,1024,20
  refused "gpus.csv:2: 1 nodes with 16 GPUs each: platforms/dgx-a100.xml has only 1 nodes, 8 GPUs" \
    --collectives "$BATS_TEST_TMPDIR/gpus.csv" --platform platforms/dgx-a100.xml
  measured time.csv $head all_reduce,8,1024,-3
  refused "time.csv:2: time_us is '-3': it must be more than 0" --collectives "$BATS_TEST_TMPDIR/time.csv" --platform platforms/dgx-a100.xml
  measured time.csv $head all_reduce,8,1024,
  refused "time.csv:2: time_us is ''" --collectives "$BATS_TEST_TMPDIR/time.csv" --platform platforms/dgx-a100.xml
  measured one.csv $head all_reduce,1,1024,9
  refused "one.csv:2: 1 GPUs on 1 nodes: at least 2" --collectives "$BATS_TEST_TMPDIR/one.csv" --platform platforms/dgx-a100.xml
  measured column.csv op,n_gpus,size_bytes all_reduce,8,1024
  refused "no column 'time_us'" --collectives "$BATS_TEST_TMPDIR/column.csv" --platform platforms/dgx-a100.xml
  measured good.csv $head all_reduce,8,1024,20
  refused "good.csv:2: no platform; say --platform FILE" --collectives "$BATS_TEST_TMPDIR/good.csv"
  measured role.csv $head,role all_reduce,8,1024,20,train
  refused "role.csv:2: role 'train' is neither fit nor check" --collectives "$BATS_TEST_TMPDIR/role.csv" --platform platforms/dgx-a100.xml
  measured members.csv $head,members all_reduce,2,1024,20,'0 9'
  refused "members.csv:2: members: 2 devices from 0 to 7 are needed" --collectives "$BATS_TEST_TMPDIR/members.csv" --platform platforms/dgx-a100.xml
  refused "--profile: 'ideal' has no figures to fit" --collectives "$BATS_TEST_TMPDIR/good.csv" --platform platforms/dgx-a100.xml --profile ideal
}

@test "residuals for prediction intervals: as shipped, and refused" {
  run -0 --separate-stderr "$PACELINE" calibrate --residuals validation/calibration -o "$BATS_TEST_TMPDIR/r.json"
  cmp workloads/residuals.json "$BATS_TEST_TMPDIR/r.json"
  [[ $output == *"| gemm_transferred | 0."* && $output == *"centre "*"; seen: framework "* ]]
  run -0 --separate-stderr env OMP_NUM_THREADS=1 "$PACELINE" calibrate --residuals validation/calibration -o "$BATS_TEST_TMPDIR/one.json"
  cmp "$BATS_TEST_TMPDIR/one.json" "$BATS_TEST_TMPDIR/r.json"
  refused "r.json exists; --force replaces it" --residuals validation/calibration -o "$BATS_TEST_TMPDIR/r.json"
  refused "--residuals fits nothing and has a run of its own" --residuals validation/calibration --gemm "$TABLE" --base "$BASE"
  refused "nosuch/gemm_A100.csv.gz" --residuals nosuch
}
