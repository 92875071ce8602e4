#!/usr/bin/env bash
# libsimgrid exports MPI_* symbols of its own. Only the shim may ask for it, and programs open the shim when they need it: then its
# symbols are nobody else's, and no program waits for its 70 libraries at its start. The control: a program that links libsimgrid
# itself must be found out.
set -euo pipefail
: "${PACELINE:?the program}" "${BUILD_DIR:?the build folder}"
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
asks_for_simgrid() { needed "$1" | grep -q '^libsimgrid'; }

shim=$BUILD_DIR/libpaceline_simgrid.so
asks_for_simgrid "$shim" || { echo "$shim does not ask for libsimgrid"; exit 1; }
# mpi_version_test uses MPI and the shim both.
both=$BUILD_DIR/tests/mpi_version_test
for program in "$PACELINE" "$both"; do
  needed "$program" | grep -q '^libmpi\.' || { echo "$program does not ask for libmpi"; exit 1; }
  needed "$program" | grep -q '^libpaceline_simgrid' && { echo "$program asks for the shim at its start"; exit 1; }
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
