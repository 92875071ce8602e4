#!/usr/bin/env bash
# Every file that a README links to or shows is there. Control: a link to nothing is found.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"

# broken README: its links to files that are not there, one per line
broken() {
  local folder=$1 link
  { grep -oE '\]\([^)#]+[)#]' "$2" || true; } | sed 's/^](//; s/.$//' | while read -r link; do
    [[ $link == http*://* || -e $folder/$link ]] || echo "$2: $link"
  done
}

n=0 found=
for readme in README.md */README.md .package/README.md; do
  found+=$(broken "$(dirname "$readme")" "$readme")
  n=$((n + 1))
done
[[ -z $found ]] || { echo "links to nothing:"; echo "$found"; exit 1; }

control=$(mktemp)
trap 'rm -f "$control"' EXIT
echo '[here](README.md) [there](nowhere.md#part) [web](https://simgrid.org)' >"$control"
[[ $(broken . "$control") == "$control: nowhere.md" ]] || { echo "control: a link to nothing is not found"; exit 1; }
echo "the links of $n READMEs lead somewhere"
