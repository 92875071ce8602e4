#!/usr/bin/env bash
# Every file that a page (*.md) links to or shows is there, and so is the heading or the name behind a '#'.
# Control: a link to nothing, a picture of nothing and a heading that is not there are found.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"

# links PAGE: what it links to or shows, one per line
links() {
  { grep -oE '\]\([^)]+\)|<img src="[^"]+"' "$1" || true; } | sed -E 's/^\]\(//; s/\)$//; s/^<img src="//; s/"$//'
}

# anchors PAGE: what may stand behind a '#': headings as GitHub spells them, and names
anchors() {
  sed '/^```/,/^```/d' "$1" | sed -n 's/^##* //p' | tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:] _-]//g; s/ /-/g'
  { grep -oE '<a name="[^"]+"' "$1" || true; } | sed 's/^<a name="//; s/"$//'
}

# broken PAGE: its links that lead nowhere, one per line
broken() {
  local folder link page
  folder=$(dirname "$1")
  links "$1" | while read -r link; do
    [[ $link == http*://* ]] && continue
    page=$1
    [[ -z ${link%%#*} ]] || page=$folder/${link%%#*}
    if [[ ! -e $page ]]; then
      echo "$1: $link"
    elif [[ $link == *#* ]]; then
      anchors "$page" | grep -xF -- "${link#*#}" >/dev/null || echo "$1: $link (no such heading)"
    fi
  done
}

mapfile -t pages < <(find . -name .git -prune -o -name .build -prune -o -name '*.md' -print | sed 's|^\./||' | LC_ALL=C sort)
[[ ${#pages[@]} -ge 15 ]] || { echo "only ${#pages[@]} pages were found"; exit 1; }
found=$(for page in "${pages[@]}"; do broken "$page"; done)
[[ -z $found ]] || { echo "links to nothing:"; echo "$found"; exit 1; }

control=$(mktemp -d)
trap 'rm -rf "$control"' EXIT
printf '%s\n' '# One `heading` (two), three' '[a](nowhere.md#part) [b](#one-heading-two-three) [c](#one-heading)' '[d](https://simgrid.org) <img src="none.svg">' >"$control/a.md"
[[ $(broken "$control/a.md") == "$control/a.md: nowhere.md#part
$control/a.md: #one-heading (no such heading)
$control/a.md: none.svg" ]] || { echo "control: a link to nothing is not found, or one to something is"; exit 1; }
echo "the links of ${#pages[@]} pages lead somewhere"
