#!/usr/bin/env bash
# Folders are layers: validation -> search -> workloads -> netmodel -> core. An include that points up, one that is not rooted at
# the repository, and a foreign header where it does not belong (MPI, HDF5, SimGrid, OpenBLAS) are found here; compilers would only notice
# some of them at link time. Inside a folder the same holds of its rooms: a file lies in a room, and its includes stay in that room
# or go to one that is named further left below.
# Control: in a copy with one violation of each kind planted, each must be found.
set -euo pipefail
source_dir=${SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
layers=(core netmodel workloads search validation)
declare -A rooms=(
  [core]="base system text cluster graph engine"
  [netmodel]="device simgrid make platform flow fold collective show"
  [workloads]="blas ir trace formats language onnx framework block import derive layout fuse cost lower execute emit strategy launch tree passes program memory compile run assign command"
  [search]="parallel results trace hdf5 optimize space run bound method command"
  [validation]="statistics rows fit report command"
)

# check ROOT: prints violations; status 1 if there are any.
check() {
  local root=$1 rank=0 layer file line number include folder own other bad=0 above
  for layer in "${layers[@]}"; do
    above=" ${layers[*]:$((rank + 1))} "
    rank=$((rank + 1))
    [[ -d $root/$layer ]] || continue
    while read -r file; do
      own=${file#"$root/$layer/"}
      [[ $own == */* && " ${rooms[$layer]} " == *" ${own%%/*} "* ]] ||
        { echo "$file: not in a room of $layer/ (${rooms[$layer]})" && bad=1; }
    done < <(find "$root/$layer" \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \))
    while IFS=: read -r file number line; do
      if [[ $line =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\"([^\"]*)\" ]]; then
        include=${BASH_REMATCH[1]} folder=${BASH_REMATCH[1]%%/*}
        if [[ $above == *" $folder "* ]]; then
          echo "$file:$number: $layer/ must not include $include: $folder/ is above it" && bad=1
        elif [[ ! " ${layers[*]} " == *" $folder "* ]]; then
          echo "$file:$number: \"$include\" is not rooted at the repository (say \"$layer/...\")" && bad=1
        elif [[ ! -e $root/$include ]]; then
          echo "$file:$number: $include does not exist" && bad=1
        elif [[ $folder == "$layer" ]]; then
          own=${file#"$root/$layer/"} own=${own%%/*} other=${include#*/} other=${other%%/*}
          if [[ " ${rooms[$layer]} " =~ \ $own\ (.*\ )?$other\  ]]; then
            echo "$file:$number: $own/ must not include $include: $other/ is above it" && bad=1
          fi
        fi
      elif [[ $line =~ \<(mpi\.h|hdf5[^>]*|H5[^>]*) && " core netmodel workloads " == *" $layer "* ]]; then
        echo "$file:$number: MPI and HDF5 stay in search/ and above: $line" && bad=1
      elif [[ $line =~ \<(hdf5[^>]*|H5[^>]*) && $file != */search/hdf5/* ]]; then
        echo "$file:$number: HDF5 stays in search/hdf5/: $line" && bad=1
      elif [[ $line =~ \<cblas && $file != */workloads/blas/* ]]; then
        echo "$file:$number: OpenBLAS stays in workloads/blas/: $line" && bad=1
      elif [[ $line =~ \<(simgrid|xbt|smpi|msg)/ && ! ($layer == netmodel && $file == *.cpp) ]]; then
        echo "$file:$number: SimGrid stays in netmodel/*/*.cpp: $line" && bad=1
      fi
    done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' --include='*.cpp' --include='*.hpp' "$root/$layer" || true)
  done
  return $bad
}

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for layer in "${layers[@]}"; do
  [[ ! -d $source_dir/$layer ]] || cp -r "$source_dir/$layer" "$copy/"
done
planted=()

# plant NAME FILE LINE: a violation that `check` must find where it stands.
plant() {
  mkdir -p "$copy/$(dirname "$2")"
  printf '%s\n' "$3" >>"$copy/$2"
  planted+=("$1|$copy/$2:$(wc -l <"$copy/$2"):")
}

check "$source_dir"
plant "up" core/base/planted.c '#include "netmodel/platform/platform.h"'
plant "up, spaced" workloads/ir/planted.h '  #  include "search/run/sweep.h"'
plant "not rooted" netmodel/flow/planted.c '#include "platform.h"'
plant "missing" search/run/planted.c '#include "core/no_such_header.h"'
plant "MPI low" workloads/ir/planted.c '#include <mpi.h>'
plant "HDF5 low" core/base/planted.c '#include <hdf5.h>'
plant "HDF5 elsewhere" search/run/planted.h '#include <hdf5_hl.h>'
plant "OpenBLAS elsewhere" workloads/execute/planted.c '#include <cblas.h>'
plant "SimGrid in C" netmodel/flow/planted.c '#include <simgrid/host.h>'
plant "SimGrid high" search/run/planted.cpp '#include <simgrid/s4u.hpp>'
plant "no room" core/planted.c 'int planted;'
plant "unknown room" core/cellar/planted.c 'int planted;'
plant "up in a folder" core/base/planted.c '#include "core/engine/engine.h"'
plant "up next door" workloads/compile/planted.c '#include "workloads/run/simulate.h"'
found=$(check "$copy") && { echo "control: planted violations were not found" >&2; exit 1; }
for plant in "${planted[@]}"; do
  where=${plant#*|}
  # What lies in no room is said of the file.
  [[ $found == *"$where"* || (${plant%%|*} == *" room" && $found == *"${where%:*:}: not in a room"*) ]] ||
    { echo "control '${plant%%|*}': a planted violation was not found" >&2; exit 1; }
done
echo "layers and rooms hold; ${#planted[@]} planted violations were found"
