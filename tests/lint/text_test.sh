#!/usr/bin/env bash
# What must not be in the sources: marks of unfinished work, paths of the machine that something was written on, hosts of package
# registries (a build takes packages from wherever its machine is set up to), tabs and blanks at line ends, files without a final
# newline. The patterns are put together from pieces so that this file does not find itself.
# Control: each kind planted in a copy must be found.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"

marks='TO''DO|FIX''ME|XX''X[: ]|HA''CK[: ]'
paths='/wo''rk/|/ho''me/[a-z]|/ro''ot/'
hosts='deb\.deb''ian\.org|security\.deb''ian\.org|py''pi\.org|files\.python''hosted|registry\.np''mjs|cra''tes\.io|arti''factory|proxy\.go''lang'

list_files() {
  if git -c safe.directory='*' ls-files >/dev/null 2>&1 && [[ -n $(git -c safe.directory='*' ls-files) ]]; then
    git -c safe.directory='*' ls-files --cached --others --exclude-standard
  else
    find . -path ./.git -prune -o -path ./.build -prune -o -type f ! -name 'demo.*' -print
  fi | grep -vE '(^|/)(LICENSE|fuzz/corpus/)|\.(png|h5|gz|onnx)$' || true
}

# check FILE ...
check() {
  local bad=0
  grep -nIE "$marks" "$@" && bad=1
  grep -nIE "$paths" "$@" && bad=1
  grep -nIiE "$hosts" "$@" && bad=1
  grep -nIE '[[:blank:]]+$' "$@" && bad=1
  for file in "$@"; do
    [[ ! -s $file || -z $(tail -c 1 "$file") ]] || { echo "$file: no newline at the end" && bad=1; }
  done
  return $bad
}

mapfile -t files < <(list_files | while read -r f; do [[ -f $f ]] && echo "$f"; done)
check "${files[@]}" || { echo "text that must not be in the sources (above)"; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for planted in '/* TO''DO: later */' '#define DATA "/wo''rk/shared"' 'see https://py''pi.org/x' 'trailing blank '; do
  printf '%s\n' "$planted" >"$scratch/planted.c"
  if check "$scratch/planted.c" /dev/null >/dev/null; then
    echo "control: '$planted' was not found" >&2
    exit 1
  fi
done
printf 'int x;' >"$scratch/planted.c"
if check "$scratch/planted.c" >/dev/null; then echo "control: a missing newline was not found" >&2; exit 1; fi
echo "${#files[@]} files are clean; 5 planted faults were found"
