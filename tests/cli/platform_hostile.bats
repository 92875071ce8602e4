#!/usr/bin/env bats
# Platform files that mean harm, or are too large to expand: one line with the place, exit 2, nothing written, at once.
bats_require_minimum_version 1.5.0

setup() {
  shopt -u patsub_replacement # "&" of a replacement is itself
  scratch=$(mktemp -d)
  export PACELINE_DEVICES=tests/unit/platforms/devices
}
teardown() { rm -rf "$scratch"; }

# platform BODY: a file of three lines of head and the body.
platform() {
  printf '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n%s\n</platform>\n' \
    "$1" >"$scratch/p.xml"
}

zone='<zone id="z" routing="Full">
<host id="a" speed="1Gf"><prop id="device" value="Toy-8GB"/></host><host id="b" speed="1Gf"><prop id="device" value="Toy-8GB"/></host>
<link id="l" bandwidth="1GBps" latency="1us"/>
<route src="a" dst="b"><link_ctn id="l"/></route>
</zone>'

cluster() {
  platform "<cluster id=\"c\" prefix=\"n\" suffix=\"\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" $1><prop id=\"device\" value=\"Toy-8GB\"/></cluster>"
}

# refused PATTERN: at once, and nothing appears beside it.
refused() {
  local before
  before=$(ls -A "$scratch")
  run --separate-stderr timeout 20 "$PACELINE" platform check "$scratch/p.xml"
  [ "$status" -eq 2 ] || { echo "status $status: $stderr"; return 1; }
  [ -z "$output" ] || { echo "printed: $output"; return 1; }
  [ "$(wc -l <<<"$stderr")" -eq 1 ] || { echo "$stderr"; return 1; }
  [[ $stderr == *"$1"* ]] || { echo "$stderr"; return 1; }
  [ "$before" = "$(ls -A "$scratch")" ]
}

@test "the harmless form of these files is accepted" {
  platform "$zone"
  run "$PACELINE" platform check "$scratch/p.xml"
  [ "$status" -eq 0 ]
  [[ $output == *"OK: 2 GPUs"* ]]
}

@test "<config> cannot overwrite a file or end the program" {
  echo precious >"$scratch/victim"
  platform "<config id=\"0\"><prop id=\"tracing\" value=\"yes\"/><prop id=\"tracing/filename\" value=\"$scratch/victim\"/></config>
$zone"
  refused "p.xml:4:1: <config>: it changes SimGrid's own settings"
  [ "$(cat "$scratch/victim")" = precious ]
  platform "<config><prop id=\"plugin\" value=\"help\"/></config>$zone"
  refused "p.xml:4:1: <config>"
}

@test "every command that loads a platform refuses them" {
  platform "<config id=\"0\"><prop id=\"tracing/filename\" value=\"x\"/></config>$zone"
  for command in "platform show" "platform show --json" \
    "simulate --model workloads/models/gpt2-345m.json --gbs 8 --strategy pp=1,dp=2,tmp=1,mbs=1 --platform" \
    "search --model workloads/models/gpt2-345m.json --gbs 8 --platform"; do
    # shellcheck disable=SC2086
    run --separate-stderr "$PACELINE" $command "$scratch/p.xml"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ $stderr == *"p.xml:4:1: <config>: it changes SimGrid's own settings"* ]]
  done
}

@test "files that SimGrid would open" {
  echo '0.0 1.0' >"$scratch/profile"
  for attribute in bandwidth_file latency_file state_file; do
    platform "${zone/<link id=\"l\"/<link id=\"l\" $attribute=\"$scratch/profile\"}"
    refused "p.xml:6:1: $attribute of <link>"
  done
  for attribute in speed_file availability_file state_file; do
    platform "${zone/<host id=\"a\"/<host id=\"a\" $attribute=\"$scratch/profile\"}"
    refused "p.xml:5:1: $attribute of <host>"
  done
  platform "<trace id=\"t\" file=\"$scratch/profile\" periodicity=\"1\"/>$zone"
  refused "p.xml:4:1: <trace>"
  platform "<include file=\"$scratch/profile\"/>$zone"
  refused "p.xml:4:1: <include>: other files are not read"
}

@test "programs, storage, unknown things, things in the wrong place" {
  platform "$zone<actor host=\"a\" function=\"f\"/>"
  refused "p.xml:8:8: <actor>: programs on hosts belong to a deployment file"
  platform "$zone<process host=\"a\" function=\"f\"/>"
  refused "<process>: programs on hosts"
  platform "$zone<gadget/>"
  refused "<gadget> is no element of a platform"
  platform "${zone/<link id=\"l\"/<link id=\"l\" plugin=\"x\"}"
  refused "unknown attribute 'plugin' of <link>; it may have id bandwidth latency sharing_policy"
  platform "<prop id=\"x\" value=\"y\"/>$zone"
  refused "p.xml:4:1: <prop> inside <platform>"
  platform "${zone/<link /<backbone id=\"bb\" bandwidth=\"1GBps\" latency=\"1us\"/><link }"
  refused "<backbone> outside a zone with routing=\"Cluster\""
  platform "$zone words"
  refused "text between elements"
}

@test "entities: none of the file's own" {
  printf '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "simgrid.dtd" [<!ENTITY x SYSTEM "/etc/passwd">]>\n<platform version="4.1">\n%s&x;</platform>\n' \
    "$zone" >"$scratch/p.xml"
  refused "p.xml:2: a DTD inside the file"
  platform "$zone&x;"
  refused "p.xml:8: malformed XML: undefined entity &x"
  platform "${zone//\"a\"/\"a&x;\"}"
  refused "p.xml:5: malformed XML: undefined entity &x"
}

@test "a name like a program's is a name" {
  platform "$zone"
  mv "$scratch/p.xml" "$scratch/p.so"
  run "$PACELINE" platform check "$scratch/p.so"
  [ "$status" -eq 0 ]
}

@test "radicals" {
  cluster 'radical="0-99999999"'
  refused 'p.xml:4:1: radical="0-99999999" names 100000000 hosts; a platform may have 1048576'
  cluster 'radical="5-1"'
  refused 'radical="5-1": a range ends before it begins'
  for radical in "" "," "1," "a" "1-" "-3" "1-2-3" "1;2" "99999999999" "0-4294967295" "1.5" "0x10"; do
    cluster "radical=\"$radical\""
    refused "radical=\"$radical\" is no list of numbers"
  done
  cluster 'radical="0-3, 7"'
  run "$PACELINE" platform check "$scratch/p.xml"
  [[ $output == *"OK: 5 GPUs"* ]]
  platform "$(for i in 1 2 3; do echo "<cluster id=\"c$i\" prefix=\"n$i.\" suffix=\"\" radical=\"0-499999\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\"/>"; done)"
  refused "p.xml:6: more than 1048576 hosts"
}

@test "topologies" {
  cluster 'radical="0-5" topology="DRAGONFLY" topo_parameters="3,1;2,1;1,1;1"'
  refused 'p.xml:4:1: topo_parameters="3,1;2,1;1,1;1": a DRAGONFLY has at most as many groups as blades'
  for parameters in "" "3" "0,1;1,1;1,1;1" "1,1;1,1;1,1" "1,1;1,1;1,1;-1" "1;1;1;1" "a,1;1,1;1,1;1"; do
    cluster "radical=\"0\" topology=\"DRAGONFLY\" topo_parameters=\"$parameters\""
    refused "a DRAGONFLY has \"GROUPS"
  done
  for parameters in "" "2;4;1,2;1,2" "0;1;1;1" "1;0;1;1" "2;4,4;1,2" "1;4;1;1;1" "17;$(printf '1%s' ,1{1..16});1;1"; do
    cluster "radical=\"0-15\" topology=\"FAT_TREE\" topo_parameters=\"$parameters\""
    refused "a FAT_TREE has \"LEVELS"
  done
  cluster 'radical="0-15" topology="FAT_TREE" topo_parameters="2;65536,65536;1,1;1,1"'
  refused 'a FAT_TREE of 4294967296 hosts, 65537 switches and'
  cluster 'radical="0-15" topology="FAT_TREE" topo_parameters="2;4,4;1,999999999;1,1"'
  refused 'is too large'
  cluster 'radical="0-15" topology="FAT_TREE" topo_parameters="2;4,5;1,2;1,2"'
  refused 'this FAT_TREE has 20 hosts, but the radical names 16'
  for parameters in "" "0" "2,0" "2,-2" "2,,2"; do
    cluster "radical=\"0-3\" topology=\"TORUS\" topo_parameters=\"$parameters\""
    refused "a TORUS has the size of each dimension"
  done
  cluster 'radical="0-3" topology="TORUS" topo_parameters="999999999,999999999,999999999"'
  refused 'is too large'
  for shape in 'FAT_TREE" topo_parameters="2;4,4;1,2;1,2' 'TORUS" topo_parameters="4,2,2' 'DRAGONFLY" topo_parameters="2,1;2,1;2,1;2'; do
    cluster "radical=\"0-15\" topology=\"$shape\""
    run "$PACELINE" platform check "$scratch/p.xml"
    [[ $output == *"OK: 16 GPUs"* ]]
  done
}

@test "many hosts in one cluster are checked by sample" {
  cluster 'radical="0-49999"'
  run timeout 60 "$PACELINE" platform check "$scratch/p.xml"
  [[ $output == *"OK: 50000 GPUs"* ]]
}

@test "zones that would need a table of all pairs" {
  {
    printf '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n<zone id="z" routing="Full">\n'
    seq -f '<router id="r%.0f"/>' 32769
    printf '</zone></platform>\n'
  } >"$scratch/p.xml"
  refused "p.xml:32773: more than 32768 hosts, routers and zones in the Full zone 'z'"
  sed -i 's/"Full"/"Floyd"/' "$scratch/p.xml"
  refused "p.xml:4101: more than 4096 hosts, routers and zones in the Floyd zone 'z'"
}

@test "control and bidi characters of names do not reach the terminal" {
  for character in '&#x9b;' '&#10;' '&#x202e;' '&#x2066;' '&#x200f;' '&#127;' $'\xe2\x80\xae'; do
    platform "${zone//\"a\"/\"a${character}31mRED\"}"
    for command in "platform check" "platform show --json"; do
      # shellcheck disable=SC2086
      run --separate-stderr "$PACELINE" $command "$scratch/p.xml"
      [ "$status" -eq 2 ]
      [ -z "$output" ]
      [[ $stderr == *"p.xml:5:1: id=\"a\\"*"31mRED\" of <host> has characters that cannot be printed" ]]
      [ "$(wc -l <<<"$stderr")" -eq 1 ]
      ! LC_ALL=C grep -q '[^ -~]' <<<"$stderr"
    done
  done
  for character in '&#27;' $'\e'; do # not even XML
    platform "${zone//\"a\"/\"a${character}31mRED\"}"
    refused "p.xml:5: malformed XML"
  done
  # A file's own name, too.
  platform "$zone"
  mv "$scratch/p.xml" "$scratch/"$'\e[31mred.xml'
  run "$PACELINE" platform check "$scratch/"*red.xml
  [ "$status" -eq 0 ]
  ! LC_ALL=C grep -q '[^ -~]' <<<"$output"
  run "$PACELINE" platform show --json "$scratch/"*red.xml
  jq -e .n_devices <<<"$output" >/dev/null
  ! LC_ALL=C grep -q $'\e' <<<"$output"
  # Other alphabets are names like any other.
  platform "${zone//\"a\"/\"hôte\"}"
  run "$PACELINE" platform show "$scratch/p.xml"
  [ "$status" -eq 0 ]
  [[ $output == *"hôte ... b"* ]]
}
