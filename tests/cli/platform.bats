#!/usr/bin/env bats
# paceline platform check|show: what it prints, and every bad input: one message with file:line, exit 2, nothing written.
bats_require_minimum_version 1.5.0

setup() {
  scratch=$(mktemp -d)
  good=tests/unit/platforms/two-nodes.xml
  export PACELINE_DEVICES=tests/unit/platforms/devices
}
teardown() { rm -rf "$scratch"; }

# edited SED-EXPRESSION: a broken copy of the good file
edited() {
  sed "$1" "$good" >"$scratch/broken.xml"
  if cmp -s "$good" "$scratch/broken.xml"; then
    echo "nothing was changed"
    return 1
  fi
}

# refused PATTERN FILE: for check, show and show --svg: exit 2, one line on stderr that has the pattern, nothing on stdout, no file.
refused() {
  local before command
  before=$(ls -A "$scratch")
  for command in check show "show --json" "show --svg $scratch/out.svg"; do
    # shellcheck disable=SC2086
    run --separate-stderr "$PACELINE" platform $command "$2"
    [ "$status" -eq 2 ] || { echo "$command: status $status: $stderr"; return 1; }
    [ -z "$output" ] || { echo "$command printed: $output"; return 1; }
    [ "$(wc -l <<<"$stderr")" -eq 1 ] || { echo "$command: $stderr"; return 1; }
    [[ $stderr == *"$1"* ]] || { echo "$command: $stderr"; return 1; }
  done
  [ "$before" = "$(ls -A "$scratch")" ]
}

@test "check says what a good platform has" {
  run "$PACELINE" platform check "$good"
  [ "$status" -eq 0 ]
  [ "$output" = "$good: OK: 3 GPUs (2 x Toy-8GB, 1 x Toy-16GB) in 2 nodes, 6 links" ]
}

@test "check --json" {
  run bash -c "$PACELINE platform check --json $good | jq -c '[.ok, .n_devices, .n_nodes, .n_links, .types[1].device, .types[1].memory_bytes]'"
  [ "$status" -eq 0 ]
  [ "$output" = '[true,3,2,6,"Toy-16GB",17179869184]' ]
}

@test "check of several files: each is answered, the worst decides" {
  edited 's/link_ctn id="pcie2"/link_ctn id="nowhere"/'
  run --separate-stderr "$PACELINE" platform check "$good" "$scratch/broken.xml" "$good"
  [ "$status" -eq 2 ]
  [ "$(grep -c OK <<<"$output")" -eq 2 ]
  [[ $stderr == *"broken.xml:21: Link not found: nowhere"* ]]
}

@test "show prints the tree" {
  run "$PACELINE" platform show "$good"
  [ "$status" -eq 0 ]
  diff <(printf '%s\n' "$output") - <<'TREE'
tests/unit/platforms/two-nodes.xml: 3 GPUs (2 x Toy-8GB, 1 x Toy-16GB) in 2 nodes, 6 links
cluster
│     fabric        1 x  1 TB/s               3 us     fatpipe  backbone
├─ node10
│     gpu           2 x  Toy-8GB              8 GiB             gpu9 ... gpu10
│     nvlink        1 x  50 GB/s each way     1 us              nvlink
│     nic           1 x  12.5 GB/s each way   2 us              nic10
└─ node2
      gpu           1 x  Toy-16GB             16 GiB            gpu0
      pcie          1 x  16 GB/s              500 ns            pcie2
TREE
}

@test "show folds what is alike" {
  "$PACELINE" platform make dgx-a100 --nodes 3 -o "$scratch/three.xml"
  PACELINE_DEVICES=platforms/devices run "$PACELINE" platform show "$scratch/three.xml"
  [ "$status" -eq 0 ]
  [[ $output == *"n0 ... n2  x3"* ]]
  [ "$(grep -c A100-SXM4-80GB <<<"$output")" -eq 2 ]
}

@test "show has the CPU sockets: tree, JSON and drawing" {
  run "$PACELINE" platform show platforms/dgx-1v.xml
  [ "$status" -eq 0 ]
  [[ $output == *"socket        2 x  Xeon E5-2698 v4      20 cores          n0cpu0 ... n0cpu1"* ]]
  [[ $output == *"cpu           1 x  6 GB/s each way      200 ns            n0qpi"* ]]
  run bash -c "$PACELINE platform show --json platforms/dgx-1v.xml | jq -c '.zones[1].sockets'"
  [ "$output" = '[{"cpu":"Xeon E5-2698 v4","cores":20,"count":2,"first":"n0cpu0","last":"n0cpu1"}]' ]
  "$PACELINE" platform show platforms/dgx-1v.xml --svg "$scratch/dgx.svg"
  xmllint --noout "$scratch/dgx.svg"
  [ "$(grep -c '>Xeon E5-2698 v4, 20 cores<' "$scratch/dgx.svg")" -eq 2 ]
  [ "$(grep -c '>6 GB/s<' "$scratch/dgx.svg")" -eq 1 ]
  [ "$(grep -c '>PCIe 12 GB/s<' "$scratch/dgx.svg")" -eq 4 ]
  # No line to the network crosses the title: it stands below the GPUs.
  y() { sed -nE "s/.* y=\"([0-9]+)\".*class=\"$1\".*/\1/p" "$scratch/dgx.svg" | head -1; }
  [ "$(y title)" -gt "$(y gpu)" ]
}

@test "show --svg: a NIC hangs on the PCIe switch from which its routes leave" {
  export PACELINE_DEVICES=platforms/devices
  # hc2's only NIC is behind the second switch (GPUs 2 and 3); of dgx-a100 two are behind each.
  "$PACELINE" platform show platforms/hc2.xml --svg "$scratch/one.svg"
  "$PACELINE" platform show platforms/dgx-a100-16.xml --svg "$scratch/rails.svg"
  /usr/bin/python3 - "$scratch/one.svg" "$scratch/rails.svg" <<'PYTHON'
import re, sys
def per_switch(path):
    svg = open(path).read()
    boxes = [tuple(map(int, m)) for m in re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="26" rx="5" fill="#2f72c4"', svg)]
    gpus = [int(x) + 31 for x in re.findall(r'<rect x="(\d+)" y="\d+" width="62" height="40" rx="7" class="gpu"', svg)]
    ends = [(int(x), int(y)) for x, y in re.findall(r'<path d="M\d+ \d+C[\d ]* (\d+) (\d+)" fill="none" stroke="#2f72c4" stroke-width="1.6"', svg)]
    # Lines that end on a switch and are not below a GPU's middle are the NICs'.
    return [sum(left <= x <= left + width and y == top and x not in gpus for x, y in ends) for left, top, width in boxes]
assert per_switch(sys.argv[1]) == [0, 1, 0, 0], per_switch(sys.argv[1])
assert per_switch(sys.argv[2]) == [2, 2, 2, 2], per_switch(sys.argv[2])
PYTHON
  [ "$(grep -c '>4 such nodes<' "$scratch/one.svg")" -eq 1 ]
}

@test "nodes with other CPUs are not alike" {
  "$PACELINE" platform make dgx-a100 --nodes 2 -o "$scratch/two.xml"
  sed 's/\(id="n1cpu1".*\)EPYC 7742/\1EPYC 7763/' "$scratch/two.xml" >"$scratch/other.xml"
  for file in two other; do
    PACELINE_DEVICES=platforms/devices run "$PACELINE" platform show "$scratch/$file.xml"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'n0 ... n1  x2' <<<"$output")" -eq "$([ $file = two ] && echo 1 || echo 0)" ]
  done
  [[ $output == *"1 x  EPYC 7763            64 cores          n1cpu1"* ]]
}

@test "show --json" {
  run bash -c "$PACELINE platform show --json $good | jq -c '[.zones[] | [.name, .depth, .alike, .gpus[0].count, .links[0].kind]]'"
  [ "$status" -eq 0 ]
  [ "$output" = '[["cluster",0,1,null,"fabric"],["node10",1,1,2,"nvlink"],["node2",1,1,1,"pcie"]]' ]
}

@test "wires that a big file declares in front are shown in their nodes" {
  "$PACELINE" platform make dgx-a100 --nodes 64 -o "$scratch/pods.xml"
  PACELINE_DEVICES=platforms/devices run "$PACELINE" platform show "$scratch/pods.xml"
  [ "$status" -eq 0 ]
  [ "$(grep -c ' nvlink  *8 x ' <<<"$output")" -eq 2 ] # of a node in a full pod, and in the last
  [ "$(grep -c ' nic  *8 x ' <<<"$output")" -eq 2 ]
  [ "$(grep -c nvlink <<<"$output")" -eq 2 ]
}

@test "show --svg draws well-formed XML, and does not replace a file unless forced" {
  "$PACELINE" platform show "$good" --svg "$scratch/out.svg"
  xmllint --noout "$scratch/out.svg"
  [ "$(grep -c 'class="gpu"' "$scratch/out.svg")" -eq 3 ]
  echo mine >"$scratch/mine.svg"
  run --separate-stderr "$PACELINE" platform show "$good" --svg "$scratch/mine.svg"
  [ "$status" -eq 2 ]
  [[ $stderr == *"mine.svg exists; --force replaces it"* ]]
  [ "$(cat "$scratch/mine.svg")" = mine ]
  run --separate-stderr "$PACELINE" platform show "$good" --svg "$good" --force
  [ "$status" -eq 2 ]
  [[ $stderr == *"is an input of this command"* ]]
  "$PACELINE" platform show "$good" --svg "$scratch/mine.svg" --force
  cmp "$scratch/mine.svg" "$scratch/out.svg"
  [ "$(ls -A "$scratch" | wc -l)" -eq 2 ]
}

@test "a full disk is an error" {
  run --separate-stderr bash -c "$PACELINE platform show $good >/dev/full"
  [ "$status" -eq 1 ]
  [[ $stderr == *"cannot write standard output"* ]]
  run --separate-stderr "$PACELINE" platform show "$good" --svg "$scratch/no/folder.svg"
  [ "$status" -eq 2 ]
  [[ $stderr == *"no/folder.svg: No such file"* ]]
}

@test "malformed XML" {
  edited 's/<\/platform>//'
  refused 'broken.xml:27: malformed XML: no element found' "$scratch/broken.xml"
  edited 's/<\/route>/<\/rout>/'
  refused 'malformed XML: mismatched tag' "$scratch/broken.xml"
  edited 's/<router id="node2_out"\/>/<router id="node2_out">/'
  refused 'broken.xml:20:7: <link> inside <router>: it may stand in zone AS only' "$scratch/broken.xml"
}

@test "unknown device" {
  edited 's/Toy-16GB/Toy-17GB/'
  refused "broken.xml:18: unknown device 'Toy-17GB'; known are: Toy-16GB, Toy-8GB" "$scratch/broken.xml"
}

@test "GPU without route" {
  edited '/<route src="gpu0"/d'
  run --separate-stderr "$PACELINE" platform check "$scratch/broken.xml"
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  [[ $stderr == *"no route from GPU 'gpu9' ("*"broken.xml:7) to GPU 'gpu0' ("*"broken.xml:18)"* ]]
}

@test "zero bandwidth" {
  edited 's/bandwidth="16GBps"/bandwidth="0Bps"/'
  refused "broken.xml:20: bandwidth of <link id=\"pcie2\"> is '0Bps': it must be more than zero" "$scratch/broken.xml"
}

@test "no GPU" {
  edited '/id="device"/s/device/thing/'
  refused 'broken.xml: no GPU in it: mark each <host>' "$scratch/broken.xml"
}

@test "missing file, directory, empty file, not a file" {
  refused 'nowhere.xml: No such file' "$scratch/nowhere.xml"
  refused "$scratch: is a directory" "$scratch"
  : >"$scratch/empty.xml"
  refused 'empty.xml:1: the file is empty' "$scratch/empty.xml"
  refused '/dev/null: is not a regular file' /dev/null
}

@test "a broken device profile" {
  mkdir "$scratch/devices"
  cp tests/unit/platforms/devices/*.json "$scratch/devices"
  sed -i 's/"bandwidth": "400GBps"/"bandwith": "400GBps"/' "$scratch/devices/Toy-8GB.json"
  cp "$good" "$scratch/broken.xml"
  refused "Toy-8GB.json:6" "$scratch/broken.xml"
  refused "unknown key 'bandwith'" "$scratch/broken.xml"
}

@test "bad usage" {
  for arguments in "" "frobnicate" "check" "check --frobnicate $good" "show --svg" "check --svg x $good"; do
    # shellcheck disable=SC2086
    run --separate-stderr "$PACELINE" platform $arguments
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" -eq 1 ]
  done
  run --separate-stderr "$PACELINE" platform show "$good" "$good" --svg "$scratch/out.svg"
  [ "$status" -eq 2 ]
  [ ! -e "$scratch/out.svg" ]
}

@test "help goes to standard output" {
  for arguments in "--help" "check --help" "show --help"; do
    # shellcheck disable=SC2086
    run --separate-stderr "$PACELINE" platform $arguments
    [ "$status" -eq 0 ]
    [[ $output == *"Usage: paceline platform"* ]]
    [ -z "$stderr" ]
  done
}

@test "over sockets the GPUs of a node share one interface, priced as published nccl-tests over TCP" {
  unset PACELINE_DEVICES
  run -0 "$PACELINE" platform make p3.16xlarge --nodes 4 --transport socket --nic-rate 32Gbps -o "$BATS_TEST_TMPDIR/four.xml"
  run -0 "$PACELINE" platform make p3.16xlarge --nodes 2 --transport socket --nic-rate 32Gbps -o "$BATS_TEST_TMPDIR/two.xml"
  run -0 "$PACELINE" platform make p3.16xlarge --nodes 4 --transport socket --nic-rate 100Gbps -o "$BATS_TEST_TMPDIR/fast.xml"
  [ "$(grep -c 'link id="n0nic' "$BATS_TEST_TMPDIR/four.xml")" = 1 ]
  "$PACELINE" platform check "$BATS_TEST_TMPDIR/four.xml"
  local rows=validation/calibration/collectives_socket.csv line=2
  for platform in two four fast; do
    { head -1 $rows && sed -n "${line}p" $rows; } >"$BATS_TEST_TMPDIR/row.csv"
    "$PACELINE" calibrate --collectives "$BATS_TEST_TMPDIR/row.csv" --platform "$BATS_TEST_TMPDIR/$platform.xml" --check |
      tail -1 | awk -F'|' '{ exit !($7 < 25) }'
    line=$((line + 1))
  done
  # One GPU per node: two measured systems, and sends of a third on throttled wires, which the entry never saw.
  local nodes gpus rate
  for wire in "2 1 32" "4 1 32" "2 8 100" "2 1 100" "2 1 10" "2 1 5" "2 1 2" "2 1 1"; do
    read -r nodes gpus rate <<<"$wire"
    "$PACELINE" platform make p3.16xlarge --nodes "$nodes" --gpus-per-node "$gpus" --transport socket --nic-rate "${rate}Gbps" -o "$BATS_TEST_TMPDIR/wire.xml" --force
    { head -1 $rows && sed -n "${line}p" $rows; } >"$BATS_TEST_TMPDIR/row.csv"
    "$PACELINE" calibrate --collectives "$BATS_TEST_TMPDIR/row.csv" --platform "$BATS_TEST_TMPDIR/wire.xml" --check |
      tail -1 | awk -F'|' -v most="$([ "$gpus" = 1 ] && echo 4 || echo 25)" '{ exit !($7 < most) }'
    line=$((line + 1))
  done
  [ "$line" -gt "$(wc -l <$rows)" ]
  "$PACELINE" simulate --platform "$BATS_TEST_TMPDIR/four.xml" --model gpt2-345m --gbs 64 --strategy pp=1,dp=32,tmp=1,mbs=2 | grep -q ' + socket'
  "$PACELINE" platform make p3.16xlarge --nodes 2 --transport socket --delay 10ms -o - | grep -q 'id="n0nic0".* latency="5018000ns"'
  run "$PACELINE" platform make dgx-a100 --transport socket
  [ "$status" -eq 2 ] && [[ $output == *"one node has no other to reach"* ]]
  run "$PACELINE" platform make dgx-a100 --nodes 2 --transport carrier-pigeon
  [ "$status" -eq 2 ] && [[ $output == *"must be rdma or socket"* ]]
}
