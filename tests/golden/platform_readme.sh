#!/usr/bin/env bash
# The example in platforms/README.md is complete: a plain SimGrid program loads it and finds every route.
# All platform files, and the example, are well-formed XML.
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

grep -v '<route src="right0" dst="right_out">' "$scratch/example.xml" >"$scratch/broken.xml"
if "$plain" "$scratch/broken.xml" 2>"$scratch/messages"; then
  echo "control: an example without a route passed" >&2
  exit 1
fi
echo "the example loads; without one of its routes it does not"
