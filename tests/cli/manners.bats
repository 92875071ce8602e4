# How the commands behave around their results: interrupted, at a terminal, in a log, quiet, over ranks.
bats_require_minimum_version 1.5.0

setup() {
  source_dir=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  : "${PACELINE:=$source_dir/.build/release/paceline}"
  cd "$BATS_TEST_TMPDIR"
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  small=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
  large=(--platform dgx-a100-16 --model gpt3-175b --gbs 1536 --seq 2048)
}

@test "Ctrl-C while a file is written leaves nothing of it, and an older one as it was" {
  echo old >t.json
  "$PACELINE" simulate "${large[@]}" --strategy pp=16,dp=1,tmp=8,mbs=1 --no-fold --trace t.json --force >out 2>err &
  sleep 1
  kill -INT $! 2>/dev/null && sleep 0.2 && kill -TERM $! 2>/dev/null || true # bats starts jobs with SIGINT ignored
  run wait $!
  [[ $(cat t.json) == old ]]
  rm -f t.json out err
  [[ -z $(ls -A) ]] || { ls -lA; return 1; }
}

@test "Ctrl-C in a sweep says how to go on, with what was given in quotes that a shell takes" {
  mkdir "a b"
  "$PACELINE" sweep "${large[@]}" --threads 1 -o "a b/s.h5" 2>err >out &
  until [[ -e "a b/s.h5" ]]; do sleep 0.1; done
  kill -TERM $!
  wait $! || true
  grep -qF "this goes on: paceline sweep ${large[*]} --threads 1 -o 'a b/s.h5' --resume" err || { cat err; return 1; }
}

# In a container without /dev/ptmx there is none.
has_terminal() { command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; }

@test "at a terminal progress is drawn in place; in a log it is lines, if asked for; --quiet has none" {
  has_terminal || skip "no script(1), or no pseudo-terminals"
  job="$PACELINE sweep ${large[*]} --tmp 8 --threads 1 --no-leap --force" # takes some seconds
  case $PACELINE in */asan/*) job+=" --pp 16 --mbs 1,2" ;; *) job+=" --pp 8,16" ;; esac
  script -qec "$job -o s.h5" /dev/null </dev/null >terminal
  grep -qP '\rpaceline sweep: \d+ of \d+ strategies, \d+ per second, about \d+ s left; best .*\x1b\[K' terminal || { cat -A terminal | head; return 1; }
  ! grep -P '^paceline sweep: ' terminal
  TERM=dumb script -qec "$job --quiet -o s.h5" /dev/null </dev/null >quiet
  [[ ! -s quiet ]]
  script -qec "$job --quiet --progress -o s.h5" /dev/null </dev/null >quiet
  [[ ! -s quiet ]]
  $job -o s.h5 2>err >out
  [[ ! -s err ]]
  $job -o s.h5 --progress 2>err >out
  grep -qP '^paceline sweep: \d+ of \d+ strategies, .*: pp=(8|16),' err
  ! grep -qP '\r|\x1b' err out
}

@test "no colours: neither NO_COLOR nor a terminal changes a byte of what is printed" {
  has_terminal || skip "no script(1), or no pseudo-terminals"
  "$PACELINE" simulate "${small[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 >plain
  NO_COLOR=1 "$PACELINE" simulate "${small[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 | cmp - plain
  script -qec "$PACELINE simulate ${small[*]} --strategy pp=4,dp=4,tmp=1,mbs=1" /dev/null </dev/null | tr -d '\r' | cmp - plain
}

@test "over ranks a command of one process prints and writes once" {
  mpirun -n 2 "$PACELINE" simulate "${small[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace t.json >two 2>err
  "$PACELINE" simulate "${small[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace t.json --force >one
  cmp one two
  run -2 mpirun -n 2 "$PACELINE" simulate "${small[@]}" --strategy pp=4
  [[ $(grep -c '^paceline simulate: ' <<<"$output") -eq 1 ]]
}

@test "what was written is said" {
  says() { [[ $output == *"$1"* ]] || { echo "$output"; return 1; }; }
  run -0 "$PACELINE" platform make dgx-h100 --nodes 2 -o made.xml && says "written to made.xml"
  run -0 "$PACELINE" platform show made.xml --svg made.svg && says "written to made.svg"
  run -0 "$PACELINE" simulate "${small[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 --trace t.json && says "t.json"
  run -0 "$PACELINE" sweep "${small[@]}" --pp 1 -o s.h5 && says "results       s.h5"
  run -0 "$PACELINE" search "${small[@]}" -o b.h5 && says "results       b.h5"
  run -0 "$PACELINE" validate "$source_dir/validation/measured/nemo_launcher.csv" -o r.html --csv r.csv
  says "written to r.html (open it in a browser)" && says "written to r.csv"
  run -0 "$PACELINE" platform make dgx-h100 -o /dev/stdout
  [[ $output != *"written to"* ]]
}
