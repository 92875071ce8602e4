#!/usr/bin/env bats
# The examples of the top README.md: every command runs, what it is said to print is what it prints, and the Python reads a sweep's
# results. (The sweep itself stands for minutes; a small one takes its place.)
# Not sanitized: searches of full size; every command has a test of its own.

setup() {
  folder=$(mktemp -d)
  export PATH="$(dirname "$PACELINE"):$PATH" OMPI_MCA_btl=self,vader OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  for room in platforms workloads validation README.md; do ln -s "$PWD/$room" "$folder/$room"; done
  cd "$folder"
}

teardown() {
  rm -rf "$folder"
}

small_sweep() {
  paceline sweep --platform platforms/amp-homogeneous.xml --model workloads/models/gpt2-345m.json --gbs 32 --pp 1,2 -o "$1" --quiet
}

# The commands of one line or, with a backslash, of two.
examples() {
  sed -e ':join' -e '/\\$/{N;s/\\\n//;bjoin' -e '}' README.md | sed -n 's/^    \(paceline .*\)/\1/p'
}

@test "every command runs" {
  small_sweep sweep.h5
  [ "$(examples | wc -l)" -ge 8 ]
  while read -r command; do
    bash -c "$command" >out 2>err || { echo "$command: $(cat err)"; return 1; }
    [[ -s out || $command == *" -o "* || $command == *" --svg "* ]] || { echo "$command prints nothing"; return 1; }
  done < <(examples)
}

@test "the search on top gives the best that is shown, and the picture is what simulate draws" {
  bash -c "$(examples | grep -m1 '^paceline search')" >out
  shown=$(sed -n '/^    best  /,/^  *pp=/p' README.md | sed 's/^    //')
  [ "$(wc -l <<<"$shown")" -eq 2 ]
  [ "$shown" = "$(sed -n '/^best/,/^  *pp=/p' out)" ] || { echo "README.md shows another best than:"; cat out; return 1; }
  bash -c "$(examples | grep -m1 -e '--svg pipeline.svg$')" >out
  # To renew it: copy what that command draws to workloads/pipeline.svg.
  cmp pipeline.svg workloads/pipeline.svg
}

@test "simulate prints what is shown" {
  bash -c "$(examples | grep '^paceline simulate' | grep -m1 trace)" >out
  # Figures move when the model of a job does: then copy them.
  shown=$(sed -n '/^    iteration time/,/^      bubble/p' README.md | sed 's/^    //')
  [ "$(wc -l <<<"$shown")" -eq 10 ]
  [ "$shown" = "$(sed -n '/^iteration time/,/^  bubble/p' out)" ] || { echo "README.md shows other figures than:"; cat out; return 1; }
}

@test "the Python runs" {
  small_sweep demo.h5
  sed -n '/^```python$/,/^```$/p' README.md | sed '/^```/d' >read.py
  [ -s read.py ]
  /usr/bin/python3 read.py >out
  grep -q '^paceline sweep --platform .* B$' out
  grep -q "array(" out
}
