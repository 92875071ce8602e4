#!/usr/bin/env bash
# No writable static storage in any library of ours, thread-local included: a simulation touches nothing shared but const data.
# Reads the symbol tables. Relocated constants (.data.rel.ro) are read-only once loaded; locks that the compiler makes for OpenMP
# critical sections and reductions, and COMDAT data of C++ headers that are not ours, are no state of ours.
# Control: objects with one planted static of each kind must be found.
set -euo pipefail
build_dir=${BUILD_DIR:?the build folder}

# check FILE ...: prints writable data symbols; status 1 if there are any. objdump -t: value, 7 flag letters, section, size, name.
check() {
  local found
  found=$(objdump -t "$@" | awk '
    /file format/ { file = $1; sub(/:$/, "", file); next }
    /^[0-9a-f]+ [lgu! ]/ {
      flags = substr($0, index($0, " ") + 1, 7)
      rest = substr($0, index($0, " ") + 8)
      split(rest, field, /[ \t]+/)
      section = field[1] == "" ? field[2] : field[1]
      name = $NF
      if (section !~ /^(\.data|\.bss|\.tdata|\.tbss|\.ldata|\.lbss|\*COM\*)/ || section ~ /^\.data\.rel\.ro/) next
      if (flags ~ /[dw]/ || flags ~ /u/) next # section names, weak and unique (COMDAT)
      # What sanitizers add, and constants of Boost that an unoptimised build keeps.
      if (name ~ /^__odr_asan\.|^_ZN5boost/) next
      if (name ~ /^\.?gomp_critical_user_|^\.gomp_|^\.omp\.|\.reduction\.var$/) next
      print file ": writable static " name " in " section
    }')
  [[ -z $found ]] && return 0
  printf '%s\n' "$found"
  return 1
}

# Shared libraries by their objects: linking turns the COMDAT data of foreign headers into plain symbols.
shopt -s nullglob
libraries=("$build_dir"/libpaceline_*.a "$build_dir"/CMakeFiles/paceline_simgrid.dir/netmodel/simgrid/*.o
  "$build_dir"/CMakeFiles/paceline_{blas,hdf5}.dir/*/*/*.o)
shopt -u nullglob
[[ ${#libraries[@]} -gt 0 ]] || { echo "no libraries in $build_dir" >&2; exit 1; }
check "${libraries[@]}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# control NAME CODE [COMPILER]: the object made of the code must be found; `clean` the opposite.
compile() { printf '%s\n' "$1" | ${2:-cc -x c} -O2 -fPIC -fopenmp -c -o "$scratch/planted.o" -; }
control() {
  compile "$2" "${3:-cc -x c}"
  if check "$scratch/planted.o" >/dev/null; then
    echo "control '$1': the planted static was not found" >&2
    exit 1
  fi
}
clean() {
  compile "$2" "${3:-cc -x c}"
  check "$scratch/planted.o" || { echo "control '$1': found something where there is nothing" >&2; exit 1; }
}
control "zeroed static" 'static int n; int f(void); int f(void) { return n++; }'
control "initialised static" 'static int n = 3; int f(void); int f(void) { return n++; }'
control "static in a function" 'int f(void); int f(void) { static long n; return (int)n++; }'
control "global" 'int n = 3;'
control "common" '__attribute__((common)) int n;'
control "thread-local, zeroed" 'static _Thread_local int n; int f(void); int f(void) { return n++; }'
control "thread-local, initialised" '_Thread_local int n = 4;'
control "array of writable pointers" 'const char *names[] = {"a", "b"};'
control "C++ object" '#include <string>
static std::string s; int f(); int f() { s += "x"; return (int)s.size(); }' "c++ -x c++"
clean "constants" 'static const char *const names[] = {"a", "b"}; const char *f(int i); const char *f(int i) { return names[i]; }'
clean "OpenMP" 'int f(int n); int f(int n) { int s = 0, best = 0;
#pragma omp parallel for reduction(+ : s)
for (int i = 0; i < n; i++) { s += i;
#pragma omp critical(keep_best)
if (i > best) best = i; }
return s + best; }'
echo "${#libraries[@]} libraries and objects without writable statics; 9 planted ones were found"
