# `paceline validate`: what it prints and writes, and what it refuses. Few rows: the whole tables are golden/validation_table.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  : "${PACELINE:=.build/release/paceline}"
  rows=validation/measured/paper_megatron_sc21.csv
  few=$BATS_TEST_TMPDIR/few.csv
  sed -n '1p;8,10p' "$rows" >"$few"
  mkdir "$BATS_TEST_TMPDIR/empty"
}

# refuses 'MESSAGE' ARGUMENT ...: exit 2, one line, nothing on standard output
refuses() {
  local message="paceline validate: $1"
  shift
  run -2 --separate-stderr "$PACELINE" validate "$@"
  [[ -z $output && $stderr == $message ]] || { printf 'wanted: %s\nsaid:   %s\n' "$message" "$output$stderr"; return 1; }
}

@test "tables, the same for any number of threads" {
  run -0 --separate-stderr "$PACELINE" validate "$few" --threads 1
  [[ ${lines[0]} == "3 rows, 3 different configurations, 3 expressed, 3 compared; "*" % of them in their 80 % intervals" && -z $stderr ]]
  [[ $output == *"paper_megatron_sc21 "*"3       3         3 "* && $output == *"largest errors"* && $output == *"bubble"* ]]
  local one=$output
  run -0 "$PACELINE" validate "$few" --threads 3
  [[ $output == "$one" ]]
}

@test "a row says how its layers are assigned, by any recipe" {
  local recipe
  for recipe in uniform balanced ends filled optimal amp-dp 0:12:24; do
    printf 'model,n_layers,hidden,n_heads,vocab,seq_len,gpu,n_gpus,tp,pp,dp,mbs,gbs,precision,step_time_s,assign\n' >"$BATS_TEST_TMPDIR/assign.csv"
    printf 'GPT-2 345M,24,1024,16,50257,1024,A100,8,1,2,4,1,32,bf16,1,%s\n' "$recipe" >>"$BATS_TEST_TMPDIR/assign.csv"
    run -0 --separate-stderr "$PACELINE" validate "$BATS_TEST_TMPDIR/assign.csv"
    [[ ${lines[0]} == "1 rows, 1 different configurations, 1 expressed, 1 compared"* ]] || { printf '%s: %s\n' "$recipe" "$output"; return 1; }
  done
}

@test "counts beyond 32 bits are rows that cannot be, with the count" {
  run -0 --separate-stderr "$PACELINE" validate tests/fuzz/corpus/measured/numbers.csv --csv "$BATS_TEST_TMPDIR/numbers.csv"
  [[ ${lines[0]} == "15 rows, 15 different configurations, 5 expressed, 5 compared"* ]]
  grep -q ',count: gbs 4294967296 is more than 2147483647' "$BATS_TEST_TMPDIR/numbers.csv"
  grep -q ',count: tp \* pp \* cp \* dp is more than 16777216' "$BATS_TEST_TMPDIR/numbers.csv"
  grep -q ',"\?count: no mbs is stated, and gbs / dp = 2147483647 is more than 16777216' "$BATS_TEST_TMPDIR/numbers.csv"
  grep -q ',count: pp \* vpp is more than 16777216' "$BATS_TEST_TMPDIR/numbers.csv"
  grep -q ',count: zero_stage 4294967297 is more than 3' "$BATS_TEST_TMPDIR/numbers.csv"
}

@test "TMPDIR may be long; one that is not there is named" {
  local long=$BATS_TEST_TMPDIR/$(printf 'x%.0s' {1..200})
  mkdir "$long"
  TMPDIR=$long run -0 "$PACELINE" validate "$few"
  [[ -z $(ls -A "$long") ]]
  TMPDIR=/nowhere run -1 --separate-stderr "$PACELINE" validate "$few"
  [[ $stderr == "paceline validate: cannot make a folder for temporary files in /nowhere: No such file or directory; set TMPDIR" ]]
}

@test "JSON has the families and their figures" {
  run -0 --separate-stderr "$PACELINE" validate "$few" --json
  jq -e '.families | length == 1' <<<"$output"
  jq -e '.families[0] | .family == "paper_megatron_sc21" and .rows == 3 and .expressed == 3 and .mape_pct > 0 and .median_ape_pct > 0
    and .p90_ape_pct >= .median_ape_pct and (.bias_pct | fabs) <= .mape_pct and has("spearman") and has("regret_pct")' <<<"$output"
  jq -e '.worst | length == 3 and (.[0].error_pct | fabs) >= (.[2].error_pct | fabs) - 1 and .[0].compute_pct > 0' <<<"$output"
}

@test "CSV and HDF5 hold the same; the figures follow from them" {
  PACELINE=$(realpath "$PACELINE")
  cd "$BATS_TEST_TMPDIR"
  run -0 "$PACELINE" validate few.csv --csv rows.csv --hdf5 rows.h5 --json
  /usr/bin/python3 - "$output" <<'PYTHON'
import csv, json, sys
import h5py
rows = list(csv.DictReader(open("rows.csv", newline="")))
file = h5py.File("rows.h5")
assert len(rows) == 3 and set(rows[0]) | {"configuration"} == set(file), set(file) ^ set(rows[0])
for name in rows[0]:
    for row, value in zip(rows, file[name].asstr()[:] if file[name].dtype.kind == "S" else file[name][:]):
        text = row[name]
        assert (text == value) if isinstance(value, str) else (abs(float(text) / value - 1) < 1e-8 if text not in ("", "0") else value in (0, -1) or value != value), (name, text, value)
errors = [100 * (float(r["predicted_s"]) / float(r["measured_s"]) - 1) for r in rows]
family = json.loads(sys.argv[1])["families"][0]
assert abs(sum(map(abs, errors)) / 3 - family["mape_pct"]) < 1e-6 and abs(sum(errors) / 3 - family["bias_pct"]) < 1e-6
assert file["predicted_s"].attrs["units"] == b"s" or file["predicted_s"].attrs["units"] == "s"
PYTHON
}

@test "the page and the picture are well formed and load nothing" {
  sed -i '2s/GPT 174.6B/<b>"\&GPT<\/b>/' "$few" # also when names are hostile
  sed -i '2s/,<b>"&GPT<\/b>,/,"<b>""\&GPT<\/b>",/' "$few"
  run -0 "$PACELINE" validate "$few" -o "$BATS_TEST_TMPDIR/r.html" --svg "$BATS_TEST_TMPDIR/r.svg"
  xmllint --noout "$BATS_TEST_TMPDIR/r.html" "$BATS_TEST_TMPDIR/r.svg"
  ! grep -qE '(href|src)=|url\(|<b>"&GPT' "$BATS_TEST_TMPDIR/r.html"
  [ "$(grep -c '<script' "$BATS_TEST_TMPDIR/r.html")" -eq 1 ] # its own, and the policy lets it fetch nothing
  grep -q "default-src 'none'" "$BATS_TEST_TMPDIR/r.html" && grep -q 'name="viewport"' "$BATS_TEST_TMPDIR/r.html"
  [ "$(grep -o '<circle' "$BATS_TEST_TMPDIR/r.html" | wc -l)" -eq 3 ]
  [ "$(grep -o 'class="range"' "$BATS_TEST_TMPDIR/r.html" | wc -l)" -eq 3 ] # the intervals
  ! grep -q 'class="range"' "$BATS_TEST_TMPDIR/r.svg"
  if command -v chromium >/dev/null; then # what a browser makes of it
    run -0 --separate-stderr timeout 60 chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$BATS_TEST_TMPDIR/r.html"
    [ "$(grep -o '<circle' <<<"$output" | wc -l)" -eq 3 ]
    [ "$(grep -o 'class="range"' <<<"$output" | wc -l)" -eq 3 ]
    [[ $output == *"<h2>Largest errors</h2>"* && $output == *"3 of 3 configurations</span>"* ]]
    [ "$(grep -o '<tr data-in=' <<<"$output" | wc -l)" -eq 3 ]
    # As wide as a phone: tables scroll in their boxes, the page does not.
    sed -e 's|<body>|<body style="width: 390px">|' -e "s|update();$|update();document.body.dataset.ready=document.body.scrollWidth<=390?'fits':'too wide '+document.body.scrollWidth;|" \
      "$BATS_TEST_TMPDIR/r.html" >"$BATS_TEST_TMPDIR/phone.html"
    run -0 --separate-stderr timeout 60 chromium --headless --no-sandbox --disable-gpu --window-size=500,900 --dump-dom "file://$BATS_TEST_TMPDIR/phone.html"
    [[ $output == *'data-ready="fits"'* ]] || { grep -o 'data-ready="[^"]*"' <<<"$output"; return 1; }
  fi
}

@test "every prediction has its interval" {
  run -0 --separate-stderr "$PACELINE" validate "$few" --json --csv "$BATS_TEST_TMPDIR/i.csv"
  jq -e '.families[0].coverage_pct | . >= 0 and . <= 100' <<<"$output"
  jq -e '.worst | length == 3 and all(.predicted_low_s < .predicted_s and .predicted_s < .predicted_high_s)' <<<"$output"
  python3 - "$BATS_TEST_TMPDIR/i.csv" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 3 and all(float(r["predicted_low_s"]) < float(r["predicted_high_s"]) for r in rows)
END
  run -0 "$PACELINE" validate "$few"
  [[ $output == *" (80 %: "* && $output == *" covered%"* ]]
  echo '{"residuals": 3}' >"$BATS_TEST_TMPDIR/bad.json"
  PACELINE_RESIDUALS=$BATS_TEST_TMPDIR/bad.json refuses "*bad.json:1:15: 'residuals' must be an object" "$few"
}

@test "ablation: what the overlap factor and sharing do" {
  # T4s in machines with one way out: groups of four nodes share it.
  head -2 validation/measured/amp_homogeneous.csv >"$BATS_TEST_TMPDIR/amp.csv"
  sed -n '28,30p' validation/measured/amp_homogeneous.csv >>"$BATS_TEST_TMPDIR/amp.csv"
  head -2 validation/measured/ibm_fms_fsdp.csv >"$BATS_TEST_TMPDIR/fsdp.csv" # gathers beside computing
  rows=("$BATS_TEST_TMPDIR/amp.csv" "$BATS_TEST_TMPDIR/fsdp.csv" "$few")
  run -0 --separate-stderr "$PACELINE" validate "${rows[@]}" --ablation --json -o "$BATS_TEST_TMPDIR/a.html"
  jq -e '.ablation.families | length >= 3 and .[-1].family == "all" and .[-1].expressed >= 6' <<<"$output"
  jq -e '[.ablation.families[].mape_pct] | all(has("all") and has("no_overlap_factor") and has("no_sharing") and has("neither"))' <<<"$output"
  jq -e '.ablation.families[-1] | .sharing_over_5_pct >= 1 and .sharing_over_1_pct >= .sharing_over_5_pct and .sharing_most_pct < 30' <<<"$output"
  jq -e '.ablation.sharing[0].change_pct > 5 and .ablation.sharing[0].model == "GPT-2 345M"' <<<"$output"
  jq -e '.ablation.families[-1].mape_pct | .all != .no_overlap_factor and .no_sharing != .neither' <<<"$output"
  # All on is what is predicted anyway, and without sharing what the analytic network says.
  jq -e '(.ablation.families[-1].mape_pct.all - .mape_pct) | fabs < 1e-9' <<<"$output"
  sharing=$(jq '.ablation.families[-1].mape_pct.no_sharing' <<<"$output")
  run -0 --separate-stderr "$PACELINE" validate "${rows[@]}" --network analytic --json
  jq -e --argjson other "$sharing" '(.mape_pct - $other) | fabs < 1e-9' <<<"$output"
  xmllint --noout "$BATS_TEST_TMPDIR/a.html"
  grep -q '<h2>Ablation</h2>' "$BATS_TEST_TMPDIR/a.html"
  run -0 "$PACELINE" validate "$few" --ablation
  [[ $output == *"sharing changes most"* ]]
}

@test "what cannot be expressed is counted with its reason" {
  sed -i '2s/A100-SXM4-80GB/FooGPU/; 3s/fp16\/bf16 mixed/int3/' "$few"
  run -0 --separate-stderr "$PACELINE" validate "$few"
  [[ ${lines[0]} == "3 rows, 3 different configurations, 1 expressed, 1 compared; "* ]]
  [[ $output == *"unknown GPU "*"1       1  $few:2: 'FooGPU'; known are "* ]]
  [[ $output == *"precision "*"1       1  $few:3: 'int3' is unknown"* ]]
  run -0 --separate-stderr "$PACELINE" validate "$few" --json
  jq -e '.not_expressed | map(.configurations) == [1, 1]' <<<"$output"
}

@test "a cell that is none spoils its row alone" {
  sed -i '2s/,12288,/,12288x,/; 3s/,76.78[0-9]*,/,0,/' "$few"
  cp "$few" "$BATS_TEST_TMPDIR/more.csv"
  sed -i '4s/,1536,8,/,1536.5,8,/; 3s/,12288,/,-12288,/' "$BATS_TEST_TMPDIR/more.csv"
  run -0 --separate-stderr "$PACELINE" validate "$few"
  [[ $output == *"cell "*"  $few:2: column 'hidden': '12288x' is not a number"* ]]
  run -0 --separate-stderr "$PACELINE" validate "$BATS_TEST_TMPDIR/more.csv" --csv "$BATS_TEST_TMPDIR/out.csv"
  [[ $output == *", 0 expressed"* ]]
  grep -q "cell: column 'hidden': -12288 must be a whole number from 1" "$BATS_TEST_TMPDIR/out.csv"
  grep -q "cell: column 'n_gpus': 1536.5 must be a whole number from 1" "$BATS_TEST_TMPDIR/out.csv"
}

@test "the columns that are needed are enough, in any case, between semicolons; what is assumed is said" {
  local table=$BATS_TEST_TMPDIR/needed.csv
  printf '%s\n' 'Model;N_Layers;HIDDEN;n_heads;seq_len;gpu;n_gpus;tp;pp;dp;gbs;step_time_s' \
    'GPT-3 175B;96;12288;96;2048;A100;1024;8;8;16;1536;30' 'my llama;32;4096;32;4096;H100;64;2;2;16;512;9' \
    'something;24;1024;16;1024;V100;8;1;1;8;64;1' >"$table"
  run -0 --separate-stderr "$PACELINE" validate "$table" --assumptions
  [[ ${lines[0]} == "3 rows, 3 different configurations, 3 expressed, 3 compared"* ]]
  [[ $output == *"$table:3, 1 configuration: gpu: H100-SXM5-80GB; interconnect: dgx-h100; "*"framework: megatron-core; "* ]]
  [[ $output == *"precision: bf16; ffn_hidden: 11008; vocab: 32000; mlp_type: gated; "*"schedule: 1f1b; assign: uniform"* ]]
  [[ $output == *"$table:4, "*"framework: torch-ddp; "*"precision: fp16; "* ]]
  run -0 "$PACELINE" validate "$table" --csv "$BATS_TEST_TMPDIR/needed.out" -o "$BATS_TEST_TMPDIR/needed.html"
  [[ $output != *"assumed where"* ]]
  head -1 "$BATS_TEST_TMPDIR/needed.out" | grep -q ',assumptions$'
  grep -q 'vocab: 32000; mlp_type: gated' "$BATS_TEST_TMPDIR/needed.out"
  grep -q 'vocab: 32000; mlp_type: gated' "$BATS_TEST_TMPDIR/needed.html"
  run -0 --separate-stderr "$PACELINE" validate "$table" --json
  jq -e '.assumptions | length == 3 and .[0].line == 2 and (.[1].assumed | test("vocab: 32000"))' <<<"$output"
  sed -i '1s/$/;recomputation;mfu/; 2,$s/$/;full;x/' "$table"
  run -0 --separate-stderr "$PACELINE" validate "$table" --assumptions
  [[ $output == *"$table: columns not read: recomputation (recompute?), mfu"* && -z $stderr ]]
  run -0 --separate-stderr "$PACELINE" validate "$table" # said without being asked too
  [[ $stderr == "paceline validate: $table: columns not read: recomputation (recompute?), mfu" ]]
}

@test "a word that is not known is its row's reason, with the nearest one" {
  local table=$BATS_TEST_TMPDIR/words.csv columns=model,n_layers,hidden,n_heads,vocab,seq_len,gpu,n_gpus,gpus_per_node,tp,pp,dp,gbs,step_time_s
  says() { # COLUMN VALUE REASON [PP]
    printf '%s,precision,%s\nGPT-2,24,1024,16,50257,1024,A100,16,8,1,%s,,64,1,bf16,"%s"\n' $columns "$1" "${4:-1}" "$2" >"$table"
    run -0 --separate-stderr "$PACELINE" validate "$table" --csv "$BATS_TEST_TMPDIR/words.out" --force
    grep -qF -- "$3" "$BATS_TEST_TMPDIR/words.out" || { printf '%s=%s: %s\n' "$1" "$2" "$(cat "$BATS_TEST_TMPDIR/words.out")"; return 1; }
  }
  says mlp_type swigloo "mlp_type: 'swigloo' is unknown, did you mean 'swiglu'?; known are gated, swiglu"
  says schedule ZB-2p "schedule: 'ZB-2p' is not simulated; gpipe, fifo, 1f1b, interleaved, breadth-first, and zb-h1, zb-h2 and zb-v" 2
  says schedule breadth-first "not stated: vpp, of an interleaved schedule" 2
  says notes "ZB-H1 beside it" "schedule: 'ZB-H1' is not simulated" 2
  says notes "with DualPipe" "schedule: 'DualPipe' is not simulated" 2
  says schedule 1f2b "schedule: '1f2b' is unknown, did you mean '1f1b'?" 2
  says schedule Interleaved "not stated: vpp, of an interleaved schedule" 2
  says fsdp FULL_SHRAD "fsdp: 'FULL_SHRAD' is unknown, did you mean 'FULL_SHARD'?"
  says tied_embeddings maybe "tied_embeddings: 'maybe' is unknown; known are tied"
  says norms eagre "norms: 'eagre' is unknown, did you mean 'eager'?"
  says reshard_after_forward true "reshard_after_forward: on behind a pipeline" 2
  says etp 2 "etp: 2: experts are cut over all tp 1 tensor ranks or none"
  says recompute fulll "recomputation: 'fulll' is unknown, did you mean 'full'?"
  says recompute "full, 16 layers" "recomputation: of some layers and not of others: 'full, 16 layers'"
  says schedule 1f1b-interleaved "not stated: vpp, of an interleaved schedule" 2
}

# predicts COLUMN VALUE PATTERN [FSDP]: a row of 16 GPUs, 4 of each node, with that word; PATTERN is in what comes of it.
predicts() {
  local table=$BATS_TEST_TMPDIR/named.csv gpu=A100-SXM4-80GB interconnect="" precision=bf16 framework="" fsdp=${4:-}
  local "$1=$2"
  printf '%s\nnet,8,1024,16,50257,1024,"%s",16,4,"%s","%s","%s",%s,4,1,4,64,1\n' \
    model,n_layers,hidden,n_heads,vocab,seq_len,gpu,n_gpus,gpus_per_node,interconnect,precision,framework,fsdp,tp,pp,dp,gbs,step_time_s \
    "$gpu" "$interconnect" "$precision" "$framework" "$fsdp" >"$table"
  run --separate-stderr "$PACELINE" validate "$table" --csv "$BATS_TEST_TMPDIR/named.out" --force
  outcome="$(cat "$BATS_TEST_TMPDIR/named.out") $stderr" && rm -f "$BATS_TEST_TMPDIR/named.out"
  grep -qE -- "$3" <<<"$outcome" || { printf '%s=%s: %s\n' "$1" "$2" "$outcome"; return 1; }
}

@test "GPUs by the names that drivers, shops and tables give them; a number beside a name is no name" {
  local of_80="dgx-a100 --nodes 4 --gpus-per-node 4(,| --nic)"
  predicts gpu "A100-SXM4-80GB 300 W" "$of_80" # holds "GB 300"
  predicts gpu "NVIDIA A100-SXM4-40GB" "dgx-a100 .*--device A100-SXM4-40GB"
  predicts gpu "8xA100 40GB" "dgx-a100 .*--device A100-SXM4-40GB"
  predicts gpu "NVIDIA A100 80GB PCIe" "pcie4-server --nodes 4 --gpus-per-node 4,"
  predicts gpu "A100-PCIE-40GB" "pcie4-server .*--device A100-PCIe-40GB"
  predicts gpu "NVIDIA H100 80GB HBM3" "dgx-h100 "
  predicts gpu "NVIDIA H100 PCIe" "pcie5-server "
  predicts gpu "GH200 480GB" "gh200-quad "
  predicts gpu "L40S" "pcie4-server .*--device L40S"
  predicts gpu "H100 NVL" "gpu: 'H100 NVL' has no profile; nearest is .*H100-PCIe-80GB \(400 W, 94GB, 3.9TB/s\)"
  predicts gpu "H100-PCIe-80GB (400 W, 94GB, 3.9TB/s)" "pcie5-server "
  predicts gpu "A1000" "unknown GPU: 'A1000'; known are "
  predicts gpu "GTX 1080" "unknown GPU: 'GTX 1080'; known are "
}

@test "rates of the NICs that the node's GPUs use, and of no other link" {
  local plain="dgx-a100 --nodes 4 --gpus-per-node 4," # its NICs: 25 GB/s
  predicts interconnect "4x200Gb" "$plain"
  predicts interconnect "800 Gb/s per node" "$plain"
  predicts interconnect "200 Gb/s per GPU" "$plain"
  predicts interconnect "NVLink 2400 Gb/s" "$plain"
  predicts interconnect "NVLink 2400 Gb/s; 4x100Gb HDR" "--nic-rate 12.5GBps"
  predicts interconnect "400 Gb/s per node" "--nic-rate 12.5GBps"
  predicts interconnect "3.2 Tb/s" "--nic-rate 100GBps"
  predicts interconnect "10GbE" "--transport socket"
  predicts interconnect "ENA" "--transport socket"
  predicts interconnect "RoCE, ENABLED" "$plain"
  predicts interconnect "200 Gb/s" "$plain" # the machine's own
  predicts interconnect "NVLink + IB HDR" "$plain"
  predicts interconnect "4x HDR" "$plain"
  predicts interconnect "4x ConnectX-6 HDR" "$plain"
  predicts interconnect "4x ConnectX-7 NDR 400Gb/s" "--nic-rate 50GBps"
  predicts interconnect "1x Ethernet 100Gb/s, 4x CX7 InfiniBand (400Gb/s)" "--nic-rate 50GBps"
  predicts interconnect "100Gb/s InfiniBand" "--nic-rate 12.5GBps.*network: 100 Gb/s for each of the NICs"
  predicts interconnect "8xA100 SXM, 200Gb/s" "$plain"
  predicts interconnect "100 Gb/s" "interconnect: 100 Gb/s, of a node or of each NIC\? \('100 Gb/s per node', '8x100Gb'; dgx-a100 has 8x200Gb\)"
  predicts interconnect "800 Gb/s IB" "interconnect: 800 Gb/s, of a node or of each NIC"
}

@test "the stage of ZeRO that only the framework's name says; a dash says nothing" {
  zero() { # FRAMEWORK FSDP
    predicts framework "$1" . "$2"
    sed -n 2p <<<"$outcome" | cut -d, -f22
  }
  [[ $(zero "DeepSpeed ZeRO-3" "") == 3 && $(zero "DeepSpeed ZeRO stage 2" -) == 2 ]]
  [[ $(zero "DeepSpeed ZeRO-3" no) == 0 && $(zero "DeepSpeed ZeRO" "") == 0 ]]
  [[ $(zero "Megatron-LM" "") == 0 && $(zero "Megatron-LM (--use-distributed-optimizer)" "") == 1 && $(zero "Megatron-LM with distributed optimizer" no) == 0 ]]
}

@test "amp is fp16, and fp32 where autocast is said to be off" {
  local seconds amp off fp16 fp32
  seconds() {
    predicts "$@"
    sed -n 2p <<<"$outcome" | cut -d, -f27 # predicted_s
  }
  amp=$(seconds precision amp .) && off=$(seconds precision "amp (autocast off)" .)
  fp16=$(seconds precision fp16 .) && fp32=$(seconds precision fp32 .)
  [[ $amp == "$fp16" && $off == "$fp32" && $fp16 != "$fp32" ]]
}

@test "one platform for every row" {
  run -0 --separate-stderr "$PACELINE" validate "$few" --platform platforms/dgx-a100.xml
  [[ $output == *"3 rows, 3 different configurations, 0 expressed"* && $output == *"platform "*"it has 8 GPUs, the row 384"* ]]
  "$PACELINE" platform make dgx-a100 --nodes 48 -o "$BATS_TEST_TMPDIR/c.xml"
  run -0 --separate-stderr "$PACELINE" validate "$few" --platform "$BATS_TEST_TMPDIR/c.xml"
  [[ $output == *", 1 expressed"* ]]
}

@test "bad tables" {
  local bad=$BATS_TEST_TMPDIR/bad.csv
  edit() { sed "$1" "$few" >"$bad"; }
  refuses "which measurements? paceline validate FILE... (e.g. validation/measured/*.csv)"
  refuses "nosuch.csv: cannot open: No such file or directory" nosuch.csv
  refuses "platforms: is a directory, not a file" platforms
  : >"$bad" && refuses "$bad: is empty; a header line is needed" "$bad"
  edit 2,9d && refuses "$bad: has a header and no rows" "$bad"
  edit '1s/,gbs,/,batch,/' && refuses "$bad: no column 'gbs'; validation/README.md lists the columns" "$bad"
  edit '1s/,gbs,/,batch,/; 1s/,hidden,/,hiden,/; 1s/,seq_len,/,seq_length,/' &&
    refuses "$bad: no columns 'hidden' (is it 'hiden'?), 'seq_len' (is it 'seq_length'?), 'gbs'; *" "$bad"
  edit '1s/,notes,/,GBS,/' && refuses "$bad: columns * are both 'GBS'; leave one out" "$bad"
  edit '1s/step_time_s/x/; 1s/tokens_per_s_per_gpu/y/' && refuses "$bad: nothing measured: no column 'step_time_s', *" "$bad"
  edit '2s/$/,more/' && refuses "$bad:2: * cells where the header has 40" "$bad"
  edit '2,9s/A100-SXM4-80GB/FooGPU/' && refuses "$bad:2: unknown GPU: 'FooGPU'; known are TitanXp, *; or name the machines with --platform" "$bad"
  refuses "--threads: 0 is out of range*" "$few" --threads 0
}

@test "outputs: nothing is replaced, nothing is written over an input" {
  echo keep >"$BATS_TEST_TMPDIR/out"
  for option in -o --svg --csv --hdf5; do
    refuses "$BATS_TEST_TMPDIR/out exists; --force replaces it" "$few" $option "$BATS_TEST_TMPDIR/out"
    refuses "$few: is an input of this command; choose another output file" "$few" $option "$few" --force
    [[ $(cat "$BATS_TEST_TMPDIR/out") == keep ]]
    run -2 --separate-stderr "$PACELINE" validate "$few" $option "$BATS_TEST_TMPDIR/nosuch/out"
    run -0 "$PACELINE" validate "$few" $option "$BATS_TEST_TMPDIR/out" --force
    [[ $(head -c 4 "$BATS_TEST_TMPDIR/out") != keep ]]
    echo keep >"$BATS_TEST_TMPDIR/out"
  done
  run -1 bash -c "'$PACELINE' validate $few >/dev/full"
  TMPDIR=$BATS_TEST_TMPDIR/empty run -0 "$PACELINE" validate "$few" # nor left behind
  [[ -z $(ls -A "$BATS_TEST_TMPDIR/empty") ]]
  TMPDIR=$BATS_TEST_TMPDIR/nosuch run -1 "$PACELINE" validate "$few"
}

@test "words of torchtune: a loss in chunks, an optimizer in the backward pass and 8-bit moments need less" {
  awk -F, 'NR == 1 || /42.9/' validation/measured/torchtune.csv >"$BATS_TEST_TMPDIR/one.csv"
  row=$(sed -n 2p "$BATS_TEST_TMPDIR/one.csv")
  {
    sed -n 1p "$BATS_TEST_TMPDIR/one.csv"
    echo "${row/, chunked cross entropy/}"
    echo "$row"
    echo "${row/chunked cross entropy/chunked cross entropy, optimizer in backward}"
    echo "${row/chunked cross entropy/chunked cross entropy, optimizer in backward, AdamW8bit}"
  } >"$BATS_TEST_TMPDIR/words.csv"
  "$PACELINE" validate "$BATS_TEST_TMPDIR/words.csv" --csv "$BATS_TEST_TMPDIR/out.csv" >/dev/null
  /usr/bin/python3 - "$BATS_TEST_TMPDIR/out.csv" <<'PYTHON'
import csv, sys
plain, chunked, early, small = (float(r["predicted_mem_bytes"]) for r in csv.DictReader(open(sys.argv[1])))
logits, parameters = 2 * 4096 * 128256, 3.21e9
# fp32 logits and as wide a gradient, against 16 bits and an eighth of their gradient.
assert abs((plain - chunked) / (logits * (4 + 4 - 2 - 2 / 8)) - 1) < 0.02, (plain, chunked)
# The peak is at the loss: no gradient is there, with either; a moment of a byte instead of two.
assert early <= chunked and abs((early - small) / (parameters * 2 * (2 - 1 - 4 / 256)) - 1) < 0.02, (chunked, early, small)
PYTHON
}
