#!/usr/bin/env bash
# A type of ours is one type in the whole program: no pl_ struct, union, enum or typedef is defined in two places, since C would
# let two files mean different things by one name and never say so. Control: a planted second definition is found.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"

# doubled FILE ...: names that are defined more than once
doubled() {
  { grep -ohE '^(typedef )?(struct|union|enum) pl_[a-z0-9_]+ \{' "$@" | sed 's/^typedef //; s/ {$//'
    grep -ohE '^\} pl_[a-z0-9_]+;' "$@" | sed 's/^} /typedef /; s/;$//'; } | sort | uniq -d
}

shopt -s nullglob
files=({core,netmodel,workloads,search,validation}/*/*.{c,h,cpp})
found=$(doubled "${files[@]}")
[[ -z $found ]] || { echo "defined more than once:"; echo "$found"; exit 1; }

control=$(mktemp)
trap 'rm -f "$control"' EXIT
printf 'typedef struct pl_graph {\n  int n;\n} pl_graph;\n' >"$control"
[[ $(doubled "${files[@]}" "$control" | wc -l) -eq 2 ]] || { echo "control: a second pl_graph is not found"; exit 1; }
echo "${#files[@]} files, each type is defined once"
