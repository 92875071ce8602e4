#!/usr/bin/env bash
# The top level is exactly this set, so that the house can be understood from its door. What git ignores (build folders, results of
# the demo) does not count; without git (a tarball), only what the demo leaves is let through.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
expected="CMakeLists.txt CMakePresets.json LICENSE README.md bootstrap core main.c netmodel platforms search tests validation workloads"
if ! found=$(git -c safe.directory='*' ls-files --cached --others --exclude-standard 2>/dev/null) || [[ -z $found ]]; then
  found=$(find . -mindepth 1 -maxdepth 1 ! -name demo.h5 ! -name demo.trace.json.gz -printf '%f\n')
fi
found=$(cut -d/ -f1 <<<"$found" | grep -v '^\.' | LC_ALL=C sort -u)
if ! difference=$(diff <(tr ' ' '\n' <<<"$expected") - <<<"$found"); then
  echo "the top level is not as agreed ('<' is missing, '>' is one too many):"
  echo "$difference"
  exit 1
fi
[[ -x bootstrap ]] || { echo "bootstrap is not executable"; exit 1; }
echo "top level as agreed"
