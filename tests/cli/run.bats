# `paceline run`: programs for real, and what it writes.
setup() {
  bats_require_minimum_version 1.5.0
  : "${PACELINE:?}"
  source "$BATS_TEST_DIRNAME/../parallel/mpi_environment.sh.inc"
  cd "$BATS_TEST_TMPDIR"
  "$PACELINE" program print --model tiny-gpt2 --gbs 8 --strategy pp=2,dp=1,tmp=1,mbs=4 -o two.plir
  "$PACELINE" program print --model tiny-gpt2 --gbs 8 --strategy pp=1,dp=1,tmp=1,mbs=4 -o one.plir
}

@test "a row that validate reads, and every op of every rank" {
  mkdir out
  run -0 mpirun -n 2 "$PACELINE" run two.plir --iterations 4 --warmup 1 --platform dgx-a100 --csv out/runs.csv --ops out/ops.csv
  [[ $output == *"two.plir: 2 ranks, fp32"* && $output == *"median of 4"* && $output == *"1 in front not counted"* ]]
  [[ $output == *"predicted "*" on dgx-a100"* ]]
  grep -q '^paceline-run,.*/two.plir,dgx-a100,.*,2,paceline,fp32,[0-9.]*$' out/runs.csv
  # Every op that computes, sends or keeps has a line for the rank that ran it, and a price where it has a kernel.
  [[ $(head -1 out/ops.csv) == rank,class,function,line,op,value,runs,time_s,time_low_s,time_high_s,flops,bytes,predicted_s ]]
  grep -q '^0,stage0,.*,send,' out/ops.csv
  grep -q '^1,stage1,.*,receive,' out/ops.csv
  grep -q '^0,stage0,layer,.*,product,.*,[0-9.]*,[0-9.]*,[0-9.e-]*$' out/ops.csv
  run -0 "$PACELINE" validate out/runs.csv --csv rows.csv
  /usr/bin/python3 -c 'import csv
row = next(csv.DictReader(open("rows.csv")))
assert row["predicted_mfu"] in ("", "nan") and float(row["predicted_mem_bytes"]) > 0 and row["predicted_fits"] == "1", row'
  [[ $output == *"1 rows, 1 different configurations, 1 expressed, 1 compared; "*" % of them in their 80 % intervals"* ]]
  [[ $output == *", two.plir"$'\n'"    measured "*" (80 %: "*" to "*"), "* && $output != *nan* && $output != *MFU* ]]
  # The interval holds what is predicted, which is what `run` said.
  said=$(mpirun -n 2 "$PACELINE" run two.plir --iterations 2 --platform dgx-a100 --json | jq .predicted_s)
  "$PACELINE" validate out/runs.csv --json | jq -e --argjson said "$said" \
    '.worst[0] | .predicted_low_s < .predicted_s and .predicted_s < .predicted_high_s and (.predicted_s / $said - 1 | fabs) < 1e-9'
  # Without a platform nothing is made up, which is said.
  run -0 mpirun -n 2 "$PACELINE" run two.plir --iterations 2 --csv nameless.csv
  [[ $output == *"platform         none: that of the row in nameless.csv is empty, and paceline validate asks for --platform"* ]]
  sed 's/dgx-a100//' out/runs.csv >out/without.csv
  run -0 "$PACELINE" validate out/without.csv
  [[ $output == *"0 expressed"*"platform (or --platform, for all rows)"* ]]
  run -0 "$PACELINE" validate out/without.csv --platform dgx-a100
  [[ $output == *"1 expressed, 1 compared"* ]]
}

@test "one device needs no mpirun, and its losses are those of two" {
  run -0 "$PACELINE" run one.plir --iterations 2 --warmup 0 --dtype fp64 --json
  alone=$(grep -A2 '"losses"' <<<"$output" | tail -2 | tr -d ' ,')
  run -0 mpirun -n 2 "$PACELINE" run two.plir --iterations 2 --warmup 0 --dtype fp64 --json
  both=$(grep -A2 '"losses"' <<<"$output" | tail -2 | tr -d ' ,')
  paste <(echo "$alone") <(echo "$both") | awk '{ if (($1 - $2) ^ 2 > 1e-20 * $1 ^ 2 || $1 == 0) exit 1 } END { exit NR != 2 }'
}

@test "bad input is one line, and writes nothing" {
  run -2 --separate-stderr "$PACELINE" run
  [[ $stderr == "paceline run: which program? paceline run FILE.plir" ]]
  run -2 --separate-stderr "$PACELINE" run two.plir --csv runs.csv
  [[ $stderr == "paceline run: two.plir is for 2 devices (pp=2) and here is 1 rank; start it with: mpirun -n 2" ]]
  run -2 --separate-stderr "$PACELINE" run one.plir --dtype bf16
  [[ $stderr == *"--dtype 'bf16': processors compute in fp32 or fp64 here" ]]
  run -2 --separate-stderr "$PACELINE" run one.plir --iterations 0
  [[ $stderr == *"--iterations"* ]]
  run -2 --separate-stderr "$PACELINE" run one.plir --csv one.plir --force
  [[ $stderr == *"one.plir"* ]]
  run -2 --separate-stderr "$PACELINE" run one.plir --csv a.csv --ops a.csv
  [[ $stderr == *"--csv and --ops are both a.csv" ]]
  run -2 --separate-stderr "$PACELINE" run one.plir --csv nowhere/a.csv
  [[ $stderr == *"nowhere"* ]]
  [[ ! -e runs.csv && ! -e a.csv ]]
}

@test "calibrate --this-machine: a platform that every command loads" {
  run -0 mpirun -n 2 "$PACELINE" calibrate --this-machine -o here
  [[ $output == *"2 ranks at once"* && $output == *"reductions, gathers"* && $output == *$'\n'"product "* ]]
  run -0 "$PACELINE" platform check here/platform.xml
  run -0 "$PACELINE" simulate --program two.plir --platform here/platform.xml
  [[ $output == *"2 devices"* ]]
  run -0 mpirun -n 2 "$PACELINE" run two.plir --iterations 5 --platform here/platform.xml --csv runs.csv
  [[ $output == *"predicted "*" on here/platform.xml"* ]]
  run -0 "$PACELINE" validate runs.csv
  [[ $output == *"1 expressed, 1 compared"* ]]
  run -0 "$PACELINE" simulate --model tiny-gpt2 --gbs 8 --dtype fp32 --platform here/platform.xml --strategy pp=2,dp=1,tmp=1,mbs=1
  run -2 --separate-stderr "$PACELINE" calibrate --this-machine -o here
  [[ $stderr == *"here/platform.xml"*"--force"* ]]
  run -2 --separate-stderr "$PACELINE" calibrate --this-machine
  [[ $stderr == "paceline calibrate: --this-machine needs -o FOLDER: where the platform goes" ]]
  run -2 --separate-stderr "$PACELINE" calibrate --this-machine -o nowhere/here
  [[ $stderr == *"nowhere"* ]]
  run -2 --separate-stderr "$PACELINE" calibrate --this-machine --gemm x.csv -o there
  [[ $stderr == *"it has a run of its own; leave out --gemm" && ! -e there ]]
  run -2 --separate-stderr "$PACELINE" calibrate --thorough --gemm x.csv
  [[ $stderr == *"--thorough is for --this-machine" ]]
}
