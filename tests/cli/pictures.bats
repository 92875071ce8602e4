# What is drawn of a simulation, and what a whole training takes.
bats_require_minimum_version 1.5.0

setup() {
  : "${PACELINE:=$BATS_TEST_DIRNAME/../../.build/release/paceline}"
  cd "$BATS_TEST_TMPDIR"
  gpt3=(--platform dgx-a100-16 --model gpt3-175b --gbs 1536 --seq 2048)
  small=(--platform amp-homogeneous --model gpt2-345m --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1)
}

@test "--svg: a row per stage, bars as long as the times, bubble left bare" {
  "$PACELINE" simulate "${small[@]}" --svg p.svg --trace t.json >said
  grep -qx 'drawing          p.svg' said
  xmllint --noout p.svg
  /usr/bin/python3 - <<'PYTHON'
import json, re
svg = open("p.svg").read()
assert [int(n) for n in re.findall(r'text-anchor="end"[^>]*>stage (\d+)<', svg)] == [0, 1, 2, 3]
trace = json.load(open("t.json"))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in trace if e["ph"] == "M" and e["name"] == "process_name"}
end = max(e["ts"] + e["dur"] for e in trace if e["ph"] == "X")
# The last stage in the trace against its row in the drawing: green and blue as wide as its passes are long.
pid = next(p for p, name in names.items() if name.startswith("stage 3:"))
row = svg[svg.index(">stage 3<"):]
row = row[:row.index("font-size", 30)]
scale = (1280 - 96 - 16) / end
for category, fill in (("forward", "#2f9e44"), ("backward", "#1c7ed6")):
    passes = [e for e in trace if e["ph"] == "X" and e["pid"] == pid and e["tid"] == 1 and e["cat"] == "pass" and e["args"]["category"] == category]
    path = re.search(f'fill="{fill}" d="([^"]*)"', row).group(1)
    bars = re.findall(r"M([\d.]+) [\d.]+h([\d.]+)v", path)
    assert len(bars) == len(passes) > 0, (category, len(bars), len(passes))
    for (x, width), e in zip(bars, sorted(passes, key=lambda e: e["ts"])):
        assert abs(float(x) - 96 - e["ts"] * scale) < 0.11 and abs(float(width) - e["dur"] * scale) < 0.61, (x, width, e)
PYTHON
}

@test "--svg of many microbatches and many stages: beginning and end, and it says so; it stays small" {
  "$PACELINE" simulate "${gpt3[@]}" --strategy pp=16,dp=1,tmp=8,mbs=1 --svg p.svg >/dev/null
  xmllint --noout p.svg
  grep -q 'the 1536 microbatches go on alike' p.svg
  # Passes of tensor ranks begin with a collective and are passes all the same: in every row there is green and blue.
  [[ $(grep -c 'fill="#2f9e44" d=' p.svg) -eq 16 && $(grep -c 'fill="#1c7ed6" d=' p.svg) -eq 16 && $(grep -c 'fill="#f76707" d=' p.svg) -eq 0 ]]
  [[ $(grep -cE 'text-anchor="end"[^>]*>stage [0-9]+<' p.svg) -eq 16 && $(stat -c %s p.svg) -lt 1000000 ]]
  "$PACELINE" simulate --platform dgx-a100:64 --model megatron-310.1b --gbs 256 --strategy pp=32,dp=2,tmp=8,mbs=1,recompute=full --svg q.svg >/dev/null
  xmllint --noout q.svg
  grep -q recompute q.svg
  [[ $(stat -c %s q.svg) -lt 1000000 ]]
  # Where rows are few the words along them are, too.
  "$PACELINE" simulate "${gpt3[@]}" --strategy pp=2,dp=8,tmp=8,mbs=1 --svg r.svg >/dev/null
  grep -q '>192 alike<' r.svg
  ! grep -q 'microbatches go on alike' r.svg
}

@test "--svg: memory over time below, up to the peak that is reported" {
  "$PACELINE" simulate "${small[@]}" --svg p.svg --json >said.json
  /usr/bin/python3 - <<'PYTHON'
import json, re
svg, row = open("p.svg").read(), json.load(open("said.json"))
paths = re.findall(r'<path class="memory"[^>]* d="([^"]*)"', svg)
assert len(paths) == 4, len(paths)
# The dashed line is at what a device has, the box's bottom at nothing: that makes the scale.
usable_y = float(re.search(r'class="usable" d="M96 ([\d.]+)H', svg).group(1))
box = re.search(r'<rect x="96" y="([\d.]+)" width="[\d.]+" height="(\d+)" fill="#f6f8fa"', svg)
bottom = float(box.group(1)) + float(box.group(2))
scale = row["mem_capacity_bytes"] / (bottom - usable_y)
peaks = []
for path in paths:
    ys = [float(y) for y in re.findall(r'(?:M[\d.]+ |V)([\d.]+)', path)]
    assert path.startswith("M96") and path.endswith("H1264") and len(ys) > 8, path[:60]
    peaks.append((bottom - min(ys)) * scale)
assert abs(max(peaks) - row["peak_mem_bytes"]) < 0.01 * row["mem_capacity_bytes"], (peaks, row["peak_mem_bytes"])
PYTHON
}

@test "--svg: what is refused" {
  touch there.svg
  run -2 "$PACELINE" simulate "${small[@]}" --svg there.svg
  [[ $output == "paceline simulate: there.svg exists; --force replaces it" ]]
  run -2 "$PACELINE" simulate "${small[@]}" --svg other.svg --vary nodes=2
  [[ $output == *"leave out --svg"* && ! -e other.svg ]]
}

@test "--tokens and --price: days, GPU hours and money follow from the throughput" {
  run -0 "$PACELINE" simulate "${small[@]}" --tokens 300B --price 2.5 --json
  /usr/bin/python3 - "$output" <<'PYTHON'
import json, sys
row = json.loads(sys.argv[1])
assert row["training_tokens"] == 3e11
assert abs(row["training_s"] - 3e11 / row["tokens_per_s"]) < 1e-6 * row["training_s"]
assert abs(row["training_gpu_hours"] - row["training_s"] / 3600 * 16) < 1e-6 * row["training_gpu_hours"]
assert abs(row["training_cost"] - row["training_gpu_hours"] * 2.5) < 1e-6 * row["training_cost"]
PYTHON
  run -0 "$PACELINE" search --platform dgx-h100:16 --model llama-3.1-8b --gbs 512 --tokens 15T --price 2
  [[ $output =~ training\ +15\ trillion\ tokens:\ [0-9.]+\ days\ without\ a\ break,\ [0-9.]+\ thousand\ GPU\ hours,\ a\ cost\ of\ [0-9.]+\ (thousand|million)\ at\ 2\ an\ hour ]]
  run -2 "$PACELINE" simulate "${small[@]}" --tokens many
  [[ $output == "paceline simulate: --tokens: 'many' is not a number of tokens such as 3e11, 300B or 15T" ]]
  run -2 "$PACELINE" simulate "${small[@]}" --price 2
  [[ $output == "paceline simulate: --price 2: of what? add --tokens N, the length of the training" ]]
  run -2 "$PACELINE" search --platform dgx-h100:16 --model llama-3.1-8b --gbs 512 --tokens 1T --compare amp,megatron
  [[ $output == *"--tokens: of one search; leave it out of --compare and --vary" ]]
}

@test "explain fits 120 columns" {
  # All that is printed of a stage, over kinds of models and strategies. A strategy is one word, for pasting, and may be longer.
  longest=0
  while read -r model seq strategy; do
    "$PACELINE" explain --platform dgx-a100-16 --model $model --gbs 512 --seq $seq --strategy $strategy --stage all --top 0 >said
    longest=$(grep -vE '^(strategy|nearest fit) ' said | LC_ALL=C.UTF-8 awk '{ if (length($0) > m) m = length($0) } END { print m }')
    [[ $longest -le 120 && $longest -gt 90 ]] || { echo "$model $strategy: $longest columns"; false; }
    grep -q 'slowest link' said
  done <<'JOBS'
gpt3-175b 2048 pp=8,dp=2,tmp=8,mbs=1,sp=1,recompute=selective,vpp=2,schedule=interleaved
gpt3-175b 2048 pp=1,dp=16,tmp=8,mbs=1,zero=3
llama-3-405b 8192 pp=4,dp=2,tmp=8,cp=2,mbs=1
qwen3-235b-a22b 4096 pp=2,dp=16,tmp=4,ep=8,mbs=1,sp=1
deepseek-v3 4096 pp=1,dp=128,tmp=1,mbs=1,zero=1
bert-large 512 pp=4,dp=32,tmp=1,mbs=1,recompute=full
nemotron-4-340b 4096 pp=16,dp=1,tmp=8,mbs=1,recompute=full
JOBS
}

@test "--svg: chunks of interleaved stages are told apart, each with all of its microbatches" {
  "$PACELINE" simulate "${small[@]/mbs=1/mbs=1,schedule=interleaved,vpp=2}" --svg p.svg >/dev/null
  xmllint --noout p.svg
  /usr/bin/python3 - <<'PYTHON'
import re
svg = open("p.svg").read()
for stage in range(4):
    row = svg[svg.index(f">stage {stage}<"):]
    row = row[:row.index("</g>")]
    for fill in ("#2f9e44", "#1c7ed6"):
        first = re.search(f'fill="{fill}" d="([^"]*)"', row).group(1)
        second = re.search(f'fill="{fill}" fill-opacity="0.38" d="([^"]*)"', row).group(1)
        n = (first.count("M"), second.count("M")) # a backward pass may be several bars: gradients go beside the last
        assert n == (8, 8) if fill == "#2f9e44" else min(n) >= 8, (stage, fill, n)
assert ">chunk 0<" in svg and ">1</text>" in svg
PYTHON
  "$PACELINE" simulate "${small[@]}" --svg q.svg >/dev/null
  ! grep -q 'fill-opacity' q.svg
}
