#!/usr/bin/env bats
# `paceline compare`: either side is a strategy, a platform, a row of results or JSON of simulate; a figure is the same whichever way
# it came, and differences add up, exactly in JSON and as printed.
bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  export OMPI_MCA_btl=self,vader OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  job=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
  "$PACELINE" sweep "${job[@]}" --pp 2,4 --mbs 1 --features -o sweep.h5 --quiet
  "$PACELINE" sweep "${job[@]}" --pp 2,4 --mbs 1 -o plain.h5 --quiet
  "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --json >a.json
  "$PACELINE" simulate "${job[@]}" --strategy pp=2,dp=8,tmp=1,mbs=1 --json >b.json
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  job=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
}

refuses() { # 'MESSAGE' WORD ...
  local message="paceline compare: $1"
  shift
  run -2 --separate-stderr "$PACELINE" compare "$@"
  [[ -z $output && $stderr == "$message"* && $stderr != *$'\n'* ]] || { printf 'wanted: %s\nsaid:   %s\n' "$message" "$output$stderr"; return 1; }
}

@test "two strategies, their JSON and rows of results say the same, and it adds up" {
  "$PACELINE" compare "${job[@]}" pp=4,dp=4,tmp=1,mbs=1 pp=2,dp=8,tmp=1,mbs=1 --json >simulated.json
  "$PACELINE" compare a.json b.json --json >files.json
  diff <(sed 1,3d simulated.json) <(sed 1,3d files.json)
  "$PACELINE" compare sweep.h5 a.json --json >row.json
  "$PACELINE" compare plain.h5 plain.h5:3 --json >plain.json
  "$PACELINE" show sweep.h5 --top 1 --json >best.json
  "$PACELINE" show plain.h5 --where 'true' --sort candidate --top 4 --json >first.json
  /usr/bin/python3 - <<'PYTHON'
import json
from fractions import Fraction
parts = "compute_s tensor_comm_s pipeline_comm_s data_comm_s context_comm_s expert_comm_s bubble_s".split()
c, a, b = (json.load(open(name)) for name in ("files.json", "a.json", "b.json"))
for name in parts + ["iter_time_s", "iter_time_low_s", "iter_time_high_s", "tokens_per_s", "mfu", "peak_mem_bytes", "mem_activations_bytes"]:
    assert (c[name]["a"], c[name]["b"], c[name]["difference"]) == (a[name], b[name], b[name] - a[name]), name
whole = c["iter_time_s"]["difference"]
assert abs(sum(c[name]["difference"] for name in parts) - whole) < 1e-12
for side, told in (("a", a), ("b", b)): # ticks are exact in doubles, and so are their sums
    assert len(c["stages"][side]) == told["pp"]
    for stage in c["stages"][side]:
        assert sum(Fraction(stage[name]) for name in parts) == Fraction(told["iter_time_s"])
differs = {d["name"]: (d["a"], d["b"]) for d in c["differs"]}
assert differs == {"pp": ("4", "2"), "dp": ("4", "8"), "assign": ("0:6:12:18:24", "0:12:24")}, differs
assert c["same_model"] and c["better"] == ("a" if whole > 0 else "b") and c["within_interval"] is True
assert c["ratio"] == max(a["tokens_per_s"], b["tokens_per_s"]) / min(a["tokens_per_s"], b["tokens_per_s"])
# A row: the fastest that fits, with its stages; of a sweep without features without.
row, best = json.load(open("row.json")), json.load(open("best.json"))["rows"][0]
assert row["iter_time_s"]["a"] == best["iter_time_s"] and row["iter_time_low_s"]["a"] == best["iter_time_low_s"]
assert row["peak_mem_bytes"]["a"] == best["peak_mem_bytes"] and row["better"] == "a"
for stage in row["stages"]["a"]:
    assert sum(Fraction(stage[name]) for name in parts) == Fraction(best["iter_time_s"])
assert row["stages"]["b"] == c["stages"]["a"]
for stage in row["stages"]["difference"]:
    assert abs(sum(stage.values()) - row["iter_time_s"]["difference"]) < 1e-12
plain = json.load(open("plain.json"))
assert plain["stages"] == {"a": [], "b": []} and plain["iter_time_s"]["b"] == json.load(open("first.json"))["rows"][3]["iter_time_s"]
PYTHON
}

@test "the text fits 120 columns, and its printed figures add up" {
  "$PACELINE" compare a.json b.json >files.txt
  "$PACELINE" compare sweep.h5 sweep.h5:1 >rows.txt
  "$PACELINE" compare "${job[@]}" --strategy pp=2,dp=8,tmp=1,mbs=1 amp-homogeneous dgx-h100:2 >clusters.txt
  run -1 grep -E '.{121}' files.txt rows.txt clusters.txt
  /usr/bin/python3 - <<'PYTHON'
import re
from decimal import Decimal
for name in ("files.txt", "rows.txt", "clusters.txt"):
    columns, table = [], False
    for line in open(name):
        if re.search(r"^(where the time goes|memory at the peak|B - A by stage|[AB] by stage)", line):
            table, columns, stages = True, [], "by stage" in line
        elif table and line.startswith("  ("):
            table = False
        elif table and line.strip() and not line.startswith("  usable"):
            figures = [Decimal(word) for word in re.findall(r"(?<=[ ])[+-]?\d+\.\d+(?= |$)(?! %)", line.rstrip("\n"))]
            if stages:
                assert sum(figures[:-1]) == figures[-1], (name, line)
            elif re.match("  (iteration|peak) ", line):
                assert [sum(column) for column in zip(*columns)] == figures[:3], (name, line, columns)
                table = False
            elif line.strip():
                columns.append(figures[:3])
                assert figures[1] - figures[0] == figures[2], (name, line)
PYTHON
  grep -q "^better  *A: for the same tokens B takes .* % longer$" rows.txt
  grep -q "^ *GPUs  *16 x T4  *16 x H100-SXM5-80GB$" clusters.txt
  grep -q "^ *link nic  *" clusters.txt
  grep -q "beyond the interval" clusters.txt
}

@test "what does not fit is not better; another model has no better" {
  run -0 "$PACELINE" compare --platform dgx-h100 --model llama-2-7b --gbs 8 --seq 4096 pp=1,dp=8,tmp=1,mbs=1 pp=1,dp=8,tmp=1,mbs=1,zero=3,recompute=full
  [[ $output == *"better                  B: A does not fit in memory, "*" are lacking"* ]]
  "$PACELINE" simulate --platform amp-homogeneous --model gpt2-117m --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1 --json >small.json
  run -0 "$PACELINE" compare a.json small.json
  [[ $output == *"neither can be said to be: they train another model"* ]]
  run -0 "$PACELINE" compare a.json a.json
  [[ $output == *"what differs            nothing that was said of them"*"neither: both are equally fast"* ]]
}

@test "a tree, and a strategy that only programs can say, beside a tuple: figures of simulate" {
  on=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024)
  "$PACELINE" simulate "${on[@]}" --strategy gpt-megatron-3d.yaml --json >tree.json
  "$PACELINE" simulate "${on[@]}" --strategy pp=2,dp=2,tmp=2,mbs=1 --json >tuple.json
  "$PACELINE" compare "${on[@]}" pp=2,dp=2,tmp=2,mbs=1 gpt-megatron-3d.yaml --json >both.json
  "$PACELINE" compare tuple.json tree.json --json >files.json
  diff <(sed 1,3d both.json) <(sed 1,3d files.json)
  /usr/bin/python3 - <<'PYTHON'
import json
parts = "compute_s tensor_comm_s pipeline_comm_s data_comm_s context_comm_s expert_comm_s bubble_s".split()
both, tree = json.load(open("both.json")), json.load(open("tree.json"))
for name in parts + ["iter_time_s", "iter_time_low_s", "tokens_per_s", "mfu", "peak_mem_bytes", "mem_optimizer_bytes"]:
    assert both[name]["b"] == tree[name], name
assert abs(sum(tree[name] for name in parts) - tree["iter_time_s"]) < 1e-9 * tree["iter_time_s"]
PYTHON
  grep -q '"program": "b"' both.json
  run -0 "$PACELINE" compare "${on[@]}" pp=2,dp=2,tmp=2,mbs=1 gpt-megatron-3d.yaml
  [[ $output == *"simulated as "*"a tuple "*"a program"* ]]
  run -0 "$PACELINE" compare "${on[@]}" pp=8,dp=1,tmp=1,mbs=1,schedule=dualpipe gpt-megatron-3d.yaml
  [[ $output != *"simulated as "* ]]
  [[ $output == *"what differs            the strategies"*"by stage, ms "*"a program's list,"*"better                  "* ]]
}

@test "rows that are programs are said to be: of a sweep with dualpipe, with --offload, of a strategy space" {
  on=(--platform dgx-h100:1 --model llama-3.1-8b --gbs 16 --seq 2048)
  job=("${on[@]}" --pp 4 --dp 2 --tmp 1 --mbs 1 --sp off --zero 0 --recompute none --overlap on --assign uniform --quiet --force)
  "$PACELINE" simulate "${on[@]}" --strategy pp=4,dp=2,tmp=1,mbs=1 --json >tuple.json
  "$PACELINE" sweep "${job[@]}" --schedule 1f1b,dualpipe -o dual.h5
  run -0 "$PACELINE" compare tuple.json dual.h5:1
  [[ $output =~ "differs  schedule       1f1b "\ +"dualpipe" ]]
  [[ $output == *"the same "*" pp 4, dp 2, "*"simulated as "*"a tuple "*"a program"*"by stage                not known of "*": of rows that are programs 'simulate --json' says it"* ]]
  run -0 "$PACELINE" compare dual.h5:0 dual.h5:1
  [[ $output != *"simulated as "* && $output == *"by stage                not known of "*": of rows that are programs 'simulate --json' says it"* ]]
  run -0 "$PACELINE" compare dual.h5:0 dual.h5
  [[ $output == *"what differs            nothing that was said of them"* ]]
  "$PACELINE" sweep "${job[@]}" --schedule 1f1b --offload none,states -o states.h5
  run -0 "$PACELINE" compare states.h5:0 states.h5:1
  [[ $output =~ "differs  choice_offload  none "\ +"states" ]]
  "$PACELINE" sweep --platform dgx-1v --model gpt3-5b --gbs 64 --strategy-space "$BATS_TEST_DIRNAME/../../workloads/strategies/spaces/gpt-offload.yaml" -o trees.h5 --quiet --force
  run -0 "$PACELINE" compare trees.h5:0 trees.h5:2
  [[ $output =~ "differs  choice_microbatches  1 "\ +"4" ]]
  [[ $output == *"n_devices 8, "* && $output != *" -1"* ]]
}

@test "how experts lie and are hidden, and what only texts say, is among what differs" {
  job=(--platform dgx-a100 --model tiny-mixtral --gbs 16 --seq 64)
  run -0 "$PACELINE" compare "${job[@]}" pp=1,dp=8,tmp=1,mbs=1,ep=2 pp=1,dp=8,tmp=1,mbs=1,ep=2,ep_overlap=1
  [[ $output =~ "differs  ep_overlap     off "\ +"on" ]]
  run -0 "$PACELINE" compare "${job[@]}" pp=1,dp=4,tmp=2,sp=1,mbs=1,ep=2 pp=1,dp=4,tmp=2,sp=1,mbs=1,ep=2,etp=tmp
  [[ $output =~ "differs  etp            1 "\ +"2" ]]
  run -0 "$PACELINE" compare --platform dgx-a100 --model tiny-llama --gbs 32 pp=2,dp=4,tmp=1,mbs=1,schedule=dualpipe-v pp=2,dp=4,tmp=1,mbs=1,schedule=dualpipe
  [[ $output =~ "differs  strategy       schedule=dualpipe-v "\ +"schedule=dualpipe" ]]
}

@test "what cannot be compared is one line" {
  refuses "what with what? paceline compare A B: strategies, platforms or files" a.json
  refuses "'b.json' is one argument too many" a.json a.json b.json
  refuses "sweep.h5: has no row 99999: rows are 0 to " sweep.h5:99999 a.json
  refuses "sweep.h5: 'x' is no row; :N is row N" sweep.h5:x a.json
  refuses "nosuch.json: cannot open: No such file or directory" nosuch.json a.json
  refuses "nosuch.h5: " nosuch.h5 a.json
  refuses "'dgx-a100' is a platform: --strategy is missing" dgx-a100 dgx-h100 --model gpt2-345m --gbs 32
  refuses "--strategy is of two platforms; A or B is a strategy itself" "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 pp=2,dp=8,tmp=1,mbs=1 a.json
  refuses "--platform is missing" pp=4,dp=4,tmp=1,mbs=1 a.json
  refuses "strategy: unknown key 'qq'; known are pp, " "${job[@]}" qq=4,dp=4,tmp=1,mbs=1 a.json
  refuses "'nosuch.yaml' is neither a file nor a strategy tree that comes with Paceline" "${job[@]}" nosuch.yaml a.json
  refuses "--model is missing" --platform amp-homogeneous gpt-degrees-by-layer.yaml a.json
  echo '{"model": "x"}' >other.json
  refuses "other.json:1:1: is no result of 'paceline simulate --json'" other.json a.json
  sed 's/"iter_time_s": .*/"iter_time_s": -1,/' a.json >negative.json
  refuses "negative.json:" negative.json a.json
  head -c 3000 sweep.h5 >cut.h5
  refuses "cut.h5: " cut.h5 a.json
}

@test "compare: a program has its lists where a tuple has its stages, and each adds up to the iteration" {
  local job=(--platform dgx-a100 --model gpt2-345m --gbs 32 --seq 1024 --strategy pp=2,dp=2,tmp=2,mbs=2)
  "$PACELINE" simulate "${job[@]}" --json >"$BATS_TEST_TMPDIR/tuple.json"
  "$PACELINE" simulate "${job[@]}" --as-program --json >"$BATS_TEST_TMPDIR/program.json"
  parts='.compute_s + .tensor_comm_s + .pipeline_comm_s + .data_comm_s + .context_comm_s + .expert_comm_s + .bubble_s'
  jq -e ".iter_time_s as \$all | .lists | length == 2 and all(($parts) == \$all)" "$BATS_TEST_TMPDIR/program.json"
  jq -s -e '.[0] as $t | .[1] as $p | [range(2) | ($t.stages[.].compute_s - $p.lists[.].compute_s) / $t.iter_time_s | fabs] | max < 0.005' \
    "$BATS_TEST_TMPDIR/tuple.json" "$BATS_TEST_TMPDIR/program.json"
  run -0 "$PACELINE" compare "$BATS_TEST_TMPDIR/tuple.json" "$BATS_TEST_TMPDIR/program.json"
  [[ "$output" == *"B - A by stage, ms"*"of each stage, a program's list, the device that is idle least"* && "$output" != *"not known of"* ]]
  awk '/B - A by stage/ { on = 1; next } on && $1 ~ /^[0-9]/ { sum = 0; for (i = 2; i < NF; i++) sum += $i; if (sum - $NF > 0.02 || $NF - sum > 0.02) exit 1; n++ } /of each stage/ { exit n < 1 }' <<<"$output"
}
