#!/usr/bin/env bash
# The example in platforms/README.md is complete: a plain SimGrid program loads it and finds every route.
# All platform files, and the example, are well-formed XML.
# So does it for every pair of GPUs and CPU sockets of generated clusters: pods, shared rails, leaves, groups, mixtures.
# Control: the example without one of its routes must fail.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
plain=${BUILD_DIR:?the build folder}/tests/routes_plain
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

awk '/^```xml$/ { inside = 1; next } /^```$/ { inside = 0 } inside' platforms/README.md >"$scratch/example.xml"
"$plain" "$scratch/example.xml"
/usr/bin/python3 -c 'import sys, xml.etree.ElementTree as tree; [tree.parse(path) for path in sys.argv[1:]]' \
  platforms/*.xml "$scratch/example.xml"

paceline=$BUILD_DIR/paceline
"$paceline" platform make dgx-2 --nodes 3 --pod-nodes 1 -o "$scratch/rails.xml"
"$paceline" platform make dgx-a100 --nodes 6 --pod-nodes 2 --oversubscription 2 -o "$scratch/pods.xml"
"$paceline" platform make dgx-h100 --nodes 8 --pod-nodes 4 --fabric fat-tree -o "$scratch/leaves.xml"
"$paceline" platform make hc2 --nodes 40 -o "$scratch/groups.xml"
"$paceline" platform make dgx-1v:1,hc3:1,g4dn.12xlarge:1 -o "$scratch/mixture.xml"
"$paceline" platform make dgx-a100 --nodes 300 --sockets always -o "$scratch/many.xml"
"$plain" "$scratch"/{rails,pods,leaves,groups,mixture,many}.xml

grep -v '<route src="right0" dst="right_out">' "$scratch/example.xml" >"$scratch/broken.xml"
if "$plain" "$scratch/broken.xml" 2>"$scratch/messages"; then
  echo "control: an example without a route passed" >&2
  exit 1
fi
echo "the example loads; without one of its routes it does not"
