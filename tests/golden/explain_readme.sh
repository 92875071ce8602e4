#!/usr/bin/env bash
# The example of `paceline explain` in workloads/README.md is what the command prints. After a change that is meant:
#   PACELINE_UPDATE_GOLDEN=1 PACELINE=.build/release/paceline tests/golden/explain_readme.sh
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
readme=workloads/README.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

command=$(sed -n 's/^    paceline \(explain .*\)/\1/p' "$readme")
[[ $(wc -l <<<"$command") -eq 1 && -n $command ]] || { echo "$readme: not one example of explain"; exit 1; }
# shellcheck disable=SC2086
{ echo '```'; "$PACELINE" $command; echo '```'; } >"$scratch/printed"
sed -n '/^<!-- explain prints/,/^<!-- end of explain/p' "$readme" | sed '1d;$d' >"$scratch/shown"

if [[ -n ${PACELINE_UPDATE_GOLDEN:-} ]]; then
  sed -e "/^<!-- explain prints/r $scratch/printed" -e '/^<!-- explain prints/,/^<!-- end of explain/{/^<!--/!d}' "$readme" >"$scratch/readme"
  cp "$scratch/readme" "$readme"
  exit 0
fi
diff -u "$scratch/shown" "$scratch/printed" || { echo "explain prints other figures than $readme (if that is meant, renew it: see $0)"; exit 1; }
echo "the example of $readme is what explain prints"
