#!/usr/bin/env bash
# A rank of `paceline run` that dies, stops or meets an error ends the run of all: no hang, one message of ours, nothing written.
set -euo pipefail
: "${PACELINE:?}" "${SOURCE_DIR:?}"
source "$SOURCE_DIR/tests/parallel/mpi_environment.sh.inc"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$PACELINE" program print --model tiny-gpt2 --gbs 64 --seq 16 --strategy pp=2,dp=1,tmp=1,mbs=1 -o long.plir

# expect STATUS MESSAGE: how the run in `status`, `err` ended.
expect() {
  [[ $(cat status) == "$1" ]] || { echo "status $(cat status), not $1" && cat err && exit 1; }
  grep -q "$2" err || { echo "no '$2' in:" && cat err && exit 1; }
  [[ $(grep -c '^paceline' err) == 1 ]] || { echo "more than one message:" && cat err && exit 1; }
  [[ ! -e runs.csv && -z $(find . -name '*runs.csv*') ]] || { echo "something was written" && ls -a && exit 1; }
}

# hurt SIGNAL: that to the last rank of a run that would take hours, once it works.
hurt() {
  rm -f status
  (timeout 60 mpirun -n 2 "$PACELINE" run "$folder/long.plir" --iterations 100000 --patience 2s --csv runs.csv >out 2>err && echo 0 >status ||
    echo $? >status) &
  local all rank
  for _ in $(seq 100); do
    all=$(pgrep -f "^$PACELINE run $folder/long.plir" || true)
    [[ $(wc -w <<<"$all") -lt 2 ]] || break
    sleep 0.1
  done
  sleep 1
  rank=$(tail -1 <<<"$all")
  kill "-$1" "$rank"
  wait
}

hurt KILL
expect 137 'interrupted; nothing was written to runs.csv'
hurt STOP
expect 1 'has waited 2 s for others'

# Ids beyond the table, on the second stage only: the first waits for what never comes.
cat >wrong.plir <<'END'
plir 1 distributed "wrong"
mesh pp=2
func @first() {
  %y = receive() {from=stage1, tag="y"} : fp32[b=4, h=8]
  %l = sum(%y) {over=(b, h)} : fp32[]
  loss(%l)
}
func @second() {
  %ids = input "ids"() {below=64} : i32[b=4]
  %table = param "table"() : fp32[v=8, h=8]
  %y = embedding(%ids, %table) {over=v} : fp32[b=4, h=8]
  send(%y) {to=stage0, tag="y"}
}
class stage0 at pp=0 {
  chunk 0 forward @first
  steps F0.0
}
class stage1 at pp=1 {
  chunk 1 forward @second
  steps F1.0
}
END
timeout 60 mpirun -n 2 "$PACELINE" run wrong.plir --csv runs.csv >out 2>err && echo 0 >status || echo $? >status
expect 2 'stage1, @second, embedding (line 11)'

# A program for other ranks than there are.
for n in 1 3; do
  timeout 60 mpirun -n $n "$PACELINE" run long.plir --csv runs.csv >out 2>err && echo 0 >status || echo $? >status
  expect 2 "is for 2 devices (pp=2) and here .* $n rank.*; start it with: mpirun -n 2"
done
echo "killed, stopped, wrong, too few, too many: all ranks end with one message"
