#!/usr/bin/env bash
# Who asks for which library. libsimgrid exports MPI_* symbols of its own: only the shim may ask for it, and programs open the shim
# when they need it, so that its symbols are nobody else's, and no program waits for its 70 libraries at its start. Likewise HDF5
# (33 libraries) and OpenBLAS (threads): only libraries of ours that are opened when they are needed ask for them. The controls: a
# program that links libsimgrid itself must be found out, and commands that need one of the three open it.
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

# name of ours, what it alone asks for.
while read -r ours foreign; do
  needed "$BUILD_DIR/$ours" | grep -q "^$foreign" || { echo "$ours does not ask for $foreign"; exit 1; }
  for program in "$PACELINE" "$both"; do
    ldd "$program" | awk '{print $1}' | grep -E "^($foreign|$ours)" && { echo "$program loads them at its start"; exit 1; }
  done
done <<'TEXT'
libpaceline_hdf5.so libhdf5
libpaceline_blas.so libopenblas
TEXT

# opens LIBRARY COMMAND...: by what the loader notes.
opens() {
  local library=$1
  shift
  LD_DEBUG=files LD_DEBUG_OUTPUT="$scratch/loader" "$PACELINE" "$@" >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
  cat "$scratch"/loader.* >"$scratch/notes"
  rm "$scratch"/loader.*
  grep -q "file=$library" "$scratch/notes"
}
job=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
for library in libpaceline_ libhdf5 libopenblas libsimgrid; do
  opens $library simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1 && { echo "simulate opens $library"; exit 1; }
  opens $library search "${job[@]}" --pp 4 && { echo "search without a file of results opens $library"; exit 1; }
done
opens libpaceline_hdf5 search "${job[@]}" --pp 4 -o "$scratch/rows.h5" || { echo "search -o does not open HDF5"; exit 1; }
opens libpaceline_hdf5 show "$scratch/rows.h5" || { echo "show does not open HDF5"; exit 1; }
opens libpaceline_blas verify --model tiny-gpt2 --gbs 4 --seq 8 --strategy tmp=2,mbs=2 || { echo "verify does not open OpenBLAS"; exit 1; }

echo "libsimgrid, HDF5 and OpenBLAS stand behind libraries of ours, which are opened when they are needed; the planted program was found"
