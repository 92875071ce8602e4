#!/usr/bin/env bash
# Every source is as clang-format with .clang-format writes it. To mend: clang-format -i FILE
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
mapfile -t files < <(find main.c core netmodel workloads search validation tests \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) -print 2>/dev/null | sort)
failed=()
for file in "${files[@]}"; do
  clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || failed+=("$file")
done
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "not formatted; run: clang-format -i ${failed[*]}"
  exit 1
fi
echo "${#files[@]} files formatted"
