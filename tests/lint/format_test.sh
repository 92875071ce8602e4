#!/usr/bin/env bash
# Every source is as clang-format with .clang-format writes it. To mend: clang-format -i FILE
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
mapfile -t files < <(find main.c core netmodel workloads search validation tests \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) -print 2>/dev/null | sort)
# Forty files to a process: starting one for each takes longer than reading them.
if ! found=$(printf '%s\n' "${files[@]}" | xargs -n 40 clang-format --dry-run -Werror 2>&1); then
  mapfile -t failed < <(sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/\1/p' <<<"$found" | sort -u)
  echo "not formatted; run: clang-format -i ${failed[*]:-FILE}"
  [[ ${#failed[@]} -gt 0 ]] || echo "$found"
  exit 1
fi
echo "${#files[@]} files formatted"
