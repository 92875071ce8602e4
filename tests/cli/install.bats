# cmake --install into a prefix of its own: the program runs there without the sources, the build folder, and any variable of the
# environment, and everything that belongs to it came along.
bats_require_minimum_version 1.5.0

setup_file() {
  export source_dir=$(cd "$BATS_TEST_DIRNAME/../.." && pwd) prefix=$BATS_FILE_TMPDIR/prefix
  [[ -e $BUILD_DIR/texts/done ]] || return 0
  cmake --install "$BUILD_DIR" --prefix "$prefix" >"$BATS_FILE_TMPDIR/log"
}

setup() {
  [[ -e $BUILD_DIR/texts/done ]] || skip "builds with sanitizers are not installed"
  cd "$BATS_TEST_TMPDIR"
}

# Who builds the program alone has no texts yet.
@test "the program alone was built: man pages and completions come all the same" {
  mv "$BUILD_DIR/texts" texts
  cmake --install "$BUILD_DIR" --prefix "$PWD/alone" >log
  diff -r texts "$BUILD_DIR/texts"
  diff -r "$prefix/share" alone/share --exclude paceline.pc
}

# away COMMAND ...: without the sources where the system lets us hide them (an empty folder over them, in a namespace of its own),
# and with nothing of the environment but PATH.
away() {
  local clean=(env -i PATH="$prefix/bin:/usr/bin:/bin" HOME="$PWD" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none)
  local hide='mount -t tmpfs none "$0" && cd "$1" && shift && exec "$@"'
  if unshare -rm true 2>/dev/null && unshare -rm sh -c 'mount -t tmpfs none "$0"' "$source_dir" 2>/dev/null; then
    unshare -rm sh -c "$hide" "$source_dir" "$PWD" "${clean[@]}" "$@"
  else
    "${clean[@]}" "$@"
  fi
}

@test "no path of the sources is compiled in" {
  for file in "$prefix/bin/paceline" "$prefix"/lib*/paceline/libpaceline_*.so "$prefix"/lib/*/paceline/libpaceline_*.so; do
    [[ -e $file ]] || continue
    seen=$((${seen:-0} + 1))
    ! strings "$file" | grep -F "$source_dir"
  done
  [[ $seen -eq 4 ]]
  ! grep -rlF "$source_dir" "$prefix"
}

@test "the demo runs: sweep over ranks, show, simulate, by names alone" {
  away mpirun -n 2 paceline sweep --platform dgx-a100-16 --model gpt3-175b --gbs 1536 --seq 2048 --pp 8 --tmp 4,8 -o demo.h5 --quiet
  away paceline show demo.h5 --top 3 --sort iter_time_s --where fits >table
  grep -q '^3 of [0-9]* matching rows' table
  away paceline simulate --platform dgx-a100-16 --model gpt3-175b --gbs 1536 --seq 2048 --framework megatron-lm-2021 \
    --strategy pp=8,dp=2,tmp=8,mbs=1,recompute=full --trace demo.trace.json >report
  grep -q '^iteration time .* (80 %: ' report
  [[ -s demo.trace.json ]]
  # The same figures as in the build folder.
  "$PACELINE" simulate --platform dgx-a100-16 --model gpt3-175b --gbs 1536 --seq 2048 --framework megatron-lm-2021 \
    --strategy pp=8,dp=2,tmp=8,mbs=1,recompute=full --trace other.json >other
  diff report <(sed 's/other.json/demo.trace.json/' other)
  cmp demo.trace.json <(sed '1s/--trace other.json/--trace demo.trace.json/' other.json) # the command is in the header
}

# The recipes of .package/README.md, as far as one machine can: its host file, and its batch script with an srun that is none.
@test "the recipes for clusters" {
  small=(--platform amp-homogeneous --model gpt2-345m --gbs 32 --pp 1,2)
  echo "localhost slots=8" >hosts
  line=$(grep -m1 '^    mpirun --hostfile' "$source_dir/.package/README.md")
  line=${line/-n 64 --map-by ppr:4:node/-n 4 --map-by ppr:4:node:oversubscribe}
  away bash -c "${line/--platform*--gbs 2048/${small[*]}} --quiet"
  away paceline show sweep.h5 >by_hosts
  sed -n '/^#!\/bin\/bash/,/^```/p' "$source_dir/.package/README.md" | sed '/^```/d' >job.sh
  grep -q '^srun paceline sweep .* --resume$' job.sh
  sed -i "s|^srun|srun() { mpirun -n 2 \"\$@\"; }; srun|; s|--platform.*--gbs 2048|${small[*]}|; s|sweep.h5|batch.h5|" job.sh
  away env SLURM_CPUS_PER_TASK=1 bash job.sh >/dev/null
  away env SLURM_CPUS_PER_TASK=1 bash job.sh >/dev/null # again: it goes on, and there is nothing left
  away paceline show batch.h5 >by_batch
  cmp by_hosts by_batch
}

@test "everything that names something is there" {
  for list in models platforms frameworks devices; do
    [[ $(away paceline list $list) == "$("$PACELINE" list $list)" ]]
  done
  cp "$source_dir/validation/measured/nemo_launcher.csv" rows.csv
  away paceline validate rows.csv >table
  grep -q '^nemo_launcher ' table
}

@test "a copy that was moved finds its data; PACELINE_DATA is stronger; without data it says so" {
  cp -r "$prefix" moved
  mkdir own && cp -r "$prefix/share/paceline/." own && rm own/models/gpt2-345m.json
  run -0 env -i moved/bin/paceline model show gpt2-345m
  run -2 env -i PACELINE_DATA="$PWD/own" moved/bin/paceline model show gpt2-345m
  [[ $output == *"is neither a file nor a model that comes with Paceline"* ]]
  ln -s "$PWD/moved/bin/paceline" linked
  run -0 env -i ./linked model show gpt2-345m
  # A library that is not there is missed by what needs it, and by nothing else.
  run -0 env -i moved/bin/paceline verify --model tiny-gpt2 --gbs 4 --seq 8 --strategy tmp=2,mbs=2
  find moved -name libpaceline_hdf5.so -delete
  find moved -name libpaceline_blas.so -delete
  run -2 --separate-stderr env -i moved/bin/paceline verify --model tiny-gpt2 --gbs 4 --seq 8 --strategy tmp=2,mbs=2
  [[ $stderr == *"OpenBLAS cannot be used: libpaceline_blas.so: cannot open shared object file: No such file or directory; it comes with the program: build or install both anew" ]]
  job=(--platform amp-homogeneous --model gpt2-345m --gbs 32)
  run -2 --separate-stderr env -i moved/bin/paceline sweep "${job[@]}" --pp 4 -o rows.h5
  [[ $stderr == *"HDF5 cannot be used: libpaceline_hdf5.so: cannot open shared object file: No such file or directory; it comes with the program: build or install both anew" ]]
  [[ ! -e rows.h5 ]]
  run -2 --separate-stderr env -i moved/bin/paceline simulate "${job[@]}" --from rows.h5:3
  [[ $stderr == *"HDF5 cannot be used: "* ]]
  run -0 env -i moved/bin/paceline search "${job[@]}" --pp 4
  # One that is there and needs one of the system that is not.
  echo 'int pl_away;' | cc -shared -fPIC -x c - -o libaway.so
  library=$(dirname "$(find moved -name libpaceline_simgrid.so)")/libpaceline_hdf5.so
  echo 'extern int pl_away; int *pl_it(void); int *pl_it(void) { return &pl_away; }' | cc -shared -fPIC -x c - -x none ./libaway.so -Wl,-soname,libpaceline_hdf5.so -o "$library"
  rm libaway.so
  run -2 --separate-stderr env -i moved/bin/paceline sweep "${job[@]}" --pp 4 -o rows.h5
  [[ $stderr == *"HDF5 cannot be used: ./libaway.so: cannot open shared object file: No such file or directory, which libpaceline_hdf5.so needs; it is the system's: install it "*" LD_LIBRARY_PATH" ]] || { echo "$stderr"; return 1; }
  rm -r moved/share/paceline
  cp "$source_dir"/platforms/amp-homogeneous.xml p.xml && cp "$source_dir/workloads/models/gpt2-345m.json" m.json && mkdir devices &&
    cp "$source_dir/platforms/devices/T4.json" devices
  run -2 --separate-stderr env -i moved/bin/paceline simulate --platform p.xml --model m.json --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1
  [[ $stderr == *"/share/paceline/platforms/collectives/nccl.json: not found; it is among the data that come with Paceline, whose folder (share/paceline of an installation) PACELINE_DATA names" ]]
}

@test "pkg-config, man pages, completions" {
  export PKG_CONFIG_PATH=$prefix/share/pkgconfig
  version=$("$prefix/bin/paceline" --version | cut -d' ' -f2)
  [[ $(pkg-config --modversion paceline) == "$version" ]]
  [[ -d $(pkg-config --variable=datadir paceline)/models && -x $(pkg-config --variable=bindir paceline)/paceline ]]
  for shell in bash zsh fish; do
    command -v $shell >/dev/null || continue
    $shell -n "$(find "$prefix/share" -path "*$shell*" -name '*paceline*' -type f)"
  done
  # bash completes commands, options and names.
  complete_words() { # WORD ... -> COMPREPLY
    COMP_WORDS=(paceline "$@") COMP_CWORD=$#
    _paceline
    echo " ${COMPREPLY[*]} "
  }
  source "$prefix/share/bash-completion/completions/paceline"
  PATH=$prefix/bin:$PATH
  [[ $(complete_words si) == " simulate " ]]
  [[ $(complete_words simulate --strat) == " --strategy " ]]
  [[ $(complete_words sweep --model llama-3.1-) == " llama-3.1-70b llama-3.1-8b " ]]
  [[ $(complete_words search --platform dgx-h1) == *" dgx-h100 "*" dgx-h100: "* ]]
  [[ $(complete_words search --platform p5.) == " p5.48xlarge: " ]]
  [[ $(complete_words search --platform dgx-h100 :) == *" 1 2 4 8 16 "* ]]
  [[ $(complete_words search --platform = dgx-h100 : 12) == " 128 " ]]
  [[ $(complete_words search --vary device : 12) != *128* ]]
  [[ $(complete_words platform m) == " make " ]]
  [[ $(complete_words li) == " list " ]]
  [[ $(complete_words list pl) == " platforms " ]]
  [[ $(complete_words program "") == *" check print torch "* ]]
  [[ $(complete_words platform make --no) == " --nodes " ]]
  # The other two say so when they are asked, as a user asks.
  if command -v fish >/dev/null; then
    offers() { # LINE WANTED
      HOME=$PWD fish --no-config -c "source $prefix/share/fish/vendor_completions.d/paceline.fish; complete -C '$1'" | grep -qE "^$2(\$|	)" ||
        { echo "fish: $1: no $2"; return 1; }
    }
    offers "paceline si" simulate
    offers "paceline simulate --strat" --strategy
    offers "paceline sweep --model llama-3.1-" llama-3.1-70b
    offers "paceline search --platform dgx-h1" dgx-h100-16
    offers "paceline search --platform p5." p5.48xlarge:
    offers "paceline search --platform p5.48xlarge:12" p5.48xlarge:128
    offers "paceline platform make --no" --nodes
    offers "paceline list pl" platforms
    offers "paceline program pr" print
  fi
  if command -v zsh >/dev/null; then
    offers() {
      HOME=$PWD timeout 30 zsh -f "$source_dir/tests/cli/complete.zsh" "$prefix/share/zsh/site-functions" "$1" "$2" >shown || [[ $? -eq 77 ]] ||
        { echo "zsh: $1: no $2"; cat -A shown; return 1; }
    }
    offers "paceline si" "paceline simulate"
    offers "paceline simulate --strat" "--strategy="
    offers "paceline sweep --model llama-3.1-" llama-3.1-70b
    offers "paceline search --platform=dgx-h" dgx-h100
    offers "paceline search --platform p5." p5.48xlarge:
    offers "paceline search --platform=p5.48xlarge:12" p5.48xlarge:128
    offers "paceline platform make --no" "--nodes="
    offers "paceline li" "paceline list"
    offers "paceline program pr" "paceline program print"
  fi
  # A man page per help that there is.
  command -v help2man >/dev/null || skip "no help2man: no man pages"
  for page in paceline paceline-simulate paceline-platform-make; do
    grep -q "^.TH ${page^^} \"1\"" "$prefix/share/man/man1/$page.1"
  done
}

@test "a Debian package holds the same" {
  command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || skip "not Debian"
  cpack --config "$BUILD_DIR/CPackConfig.cmake" -B "$PWD/package" >log 2>&1 || { cat log; return 1; }
  package=$(echo package/paceline_*.deb)
  dpkg-deb --info "$package" >info
  for library in libexpat1 libfyaml libhdf5-openmpi libopenblas libopenmpi libsimgrid zlib1g; do
    grep -qE "^ Depends:.*$library" info || { echo "no dependency on $library"; cat info; return 1; }
  done
  dpkg-deb -x "$package" tree
  away "$PWD/tree/usr/bin/paceline" model show gpt2-345m
}

# Spack is not here: the recipe runs on a stand-in for its module, which notes what it is told.
@test "the Spack recipe asks for what CMake asks for, and its check runs" {
  /usr/bin/python3 - "$source_dir" "$PACELINE" <<'PYTHON'
import re, subprocess, sys, types
source, program = sys.argv[1:]
noted, ran, module = [], [], types.ModuleType("spack.package")
class CMakePackage:
    def define_from_variant(self, name, variant):
        return f"-D{name}={variant}"
def note(kind):
    return lambda *words, **more: noted.append((kind, words, more))
for kind in ("license", "version", "variant", "depends_on", "generator"):
    setattr(module, kind, note(kind))
module.run_after = module.on_package_attributes = lambda *words, **more: lambda method: method
module.Executable = lambda path: lambda *words: ran.append(subprocess.run([program, *words], capture_output=True, text=True))
module.join_path = lambda *parts: "/".join(parts)
module.CMakePackage = CMakePackage
sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
recipe = {}
exec(compile(open(f"{source}/.package/spack/package.py").read(), "package.py", "exec"), recipe)
package = recipe["Paceline"]()
package.prefix = types.SimpleNamespace(bin="/prefix/bin")
needs = {re.match(r"[a-z0-9-]+", words[0]).group(): (words[0], more) for kind, words, more in noted if kind == "depends_on"}
# What CMake looks for, by Spack's names.
names = {"libfyaml": "libfyaml", "libxxhash": "xxhash", "zlib": "zlib-api", "libprotobuf-c": "protobuf-c", "sqlite3": "sqlite"}
cmake, tests = open(f"{source}/CMakeLists.txt").read(), open(f"{source}/tests/CMakeLists.txt").read()
wanted = re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET ([\w-]+)\)", cmake)
assert len(wanted) >= 9
assert set(re.findall(r"find_path\(\w+ (\w+)/", cmake)) == {"Random123"}
for name in [names.get(name, name) for name in wanted] + ["mpi", "hdf5", "pkgconfig", "random123"]:
    assert name in needs and "build" not in needs[name][1].get("type", "") or name == "pkgconfig", name
assert "+mpi" in needs["hdf5"][0] and "+hl" in needs["hdf5"][0]
assert needs["cmocka"][1]["when"] == "+tests" and "pkg_check_modules(CMOCKA" in tests
least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", cmake).group(1)
assert needs["cmake"][0] == f"cmake@{least}:", (needs["cmake"], least)
assert package.cmake_args() == ["-DPACELINE_TESTS=tests"] and re.search(r"option\(PACELINE_TESTS ", cmake)
package.check_install()
assert len(ran) == 1 and ran[0].returncode == 0 and "iteration time" in ran[0].stdout, ran
PYTHON
}

@test "one version everywhere" {
  version=$(sed -nE 's/^#define PACELINE_VERSION "(.*)"/\1/p' "$source_dir"/core/system/command.h)
  [[ -n $version ]]
  grep -q "^project(paceline VERSION $version " "$source_dir/CMakeLists.txt"
  grep -q "^### $version$" "$source_dir/.package/README.md"
  grep -q "^__version__ = \"$version\"$" "$source_dir/search/python/paceline.py"
  grep -q "version(\"$version\"" "$source_dir/.package/spack/package.py"
}
