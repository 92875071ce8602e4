#!/usr/bin/env bash
# libsimgrid exports MPI_* symbols of its own. Only the shim may ask for it: then it stands behind libmpi for every program. The
# control: a program that links libsimgrid itself must be found out.
set -euo pipefail
: "${PACELINE:?the program}" "${BUILD_DIR:?the build folder}"
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
asks_for_simgrid() { needed "$1" | grep -q '^libsimgrid'; }

shim=$BUILD_DIR/libpaceline_simgrid.so
asks_for_simgrid "$shim" || { echo "$shim does not ask for libsimgrid"; exit 1; }
# The linker leaves out what a program does not use: mpi_version_test uses MPI and the shim both.
both=$BUILD_DIR/tests/mpi_version_test
needed "$PACELINE" | grep -q '^libpaceline_simgrid' || { echo "paceline does not ask for the shim"; exit 1; }
for library in libpaceline_simgrid libmpi; do
  needed "$both" | grep -q "^$library\." || { echo "$both does not ask for $library"; exit 1; }
done
for program in "$PACELINE" "$both"; do
  asks_for_simgrid "$program" && { echo "$program asks for libsimgrid itself"; exit 1; }
done

# What the shim shows to the world: its own functions and the one that it takes over from SimGrid.
strangers=$(nm -D --defined-only "$shim" | awk '{print $3}' | grep -vE '^(pl_shim_|pl_simgrid_|_xbt_log_event_log$|__|_init$|_fini$|_edata$|_end$|_ZN|_ZT|_ZS|_ZG|_ZZ|_Z[dn])' || true)
[[ -z $strangers ]] || { echo "the shim exports: $strangers"; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'int sg_version_get(int *, int *, int *); int main(void) { int a, b, c; sg_version_get(&a, &b, &c); return 0; }' >"$scratch/t.c"
cc -o "$scratch/planted" "$scratch/t.c" -lsimgrid
asks_for_simgrid "$scratch/planted" || { echo "the planted program was not found out"; exit 1; }
echo "libsimgrid stands behind the shim only; the planted program was found"
