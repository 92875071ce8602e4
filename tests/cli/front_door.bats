# The front door: help, version, unknown commands, and a standard output that cannot be written.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  : "${PACELINE:=.build/release/paceline}"
}

@test "help names every command and exits 0" {
  run -0 "$PACELINE" --help
  [[ $output == "Usage: paceline COMMAND"* ]]
  while read -r name _; do
    [[ $output == *"  $name "* ]] || { echo "help does not name $name"; return 1; }
  done < <(sed -n 's/^ *{"\([a-z_-]*\)",.*/\1/p' main.c)
  help=$output
  run -0 "$PACELINE" help
  [[ $output == "$help" ]]
}

@test "every command of the table has help" {
  for name in $(sed -n 's/^ *{"\([a-z_-]*\)",.*/\1/p' main.c); do
    run "$PACELINE" "$name" --help
    [[ $status -eq 0 && $output == *[Uu]sage:* ]] || { echo "$name --help: exit $status: $output"; return 1; }
  done
}

@test "version" {
  run -0 "$PACELINE" --version
  [[ $output =~ ^paceline\ [0-9]+\.[0-9]+\.[0-9]+\ \(build\ [0-9a-f]{16}\)$ ]]
}

# The identity of a build is that of its sources: the same in any folder, another after any change.
@test "version: the same sources, the same build" {
  copy=$BATS_TEST_TMPDIR/copy
  mkdir "$copy"
  cp -r main.c core netmodel workloads search validation "$copy"
  identity() { # -> of the copy
    cmake -DSOURCE_DIR="$copy" -DSALT_FILE="$BUILD_DIR/build_salt.txt" -DOUTPUT="$copy/out.c" -P core/build_id.cmake
    sed -n 's/.*return "\(.*\)";/\1/p' "$copy/out.c"
  }
  run -0 "$PACELINE" --version
  [[ $output == "paceline "*" (build $(identity))" ]]
  echo "/* another */" >> "$copy/workloads/run/simulate.h"
  [[ $output != *"$(identity)"* ]]
}

@test "nothing: help on standard error, exit 2" {
  run -2 --separate-stderr "$PACELINE"
  [[ -z $output && $stderr == "Usage: paceline COMMAND"* ]]
}

@test "an unknown command: one line, exit 2" {
  run -2 --separate-stderr "$PACELINE" swep
  [[ -z $output && $stderr == "paceline: 'swep' is not a command; 'paceline --help' lists them; did you mean 'sweep'?" ]]
  run -2 --separate-stderr "$PACELINE" frobnicate
  [[ -z $output && $stderr == "paceline: 'frobnicate' is not a command; 'paceline --help' lists them" ]]
}

@test "a full disk is an error" {
  run -1 bash -c "'$PACELINE' --help >/dev/full"
  [[ $output == *"cannot write standard output: No space left on device" ]]
  run -1 bash -c "'$PACELINE' --version >/dev/full"
}

@test "bootstrap: help, unknown command, a word too many" {
  run -0 ./bootstrap help
  [[ $output == "Usage: ./bootstrap COMMAND"* ]]
  for name in build demo test bench help; do [[ $output == *"  $name "* ]]; done
  run -0 ./bootstrap
  run -2 --separate-stderr ./bootstrap tset
  [[ -z $output && $stderr == "bootstrap: 'tset' is not a command; './bootstrap help' lists them" ]]
  run -2 --separate-stderr ./bootstrap test again
  [[ -z $output && $stderr == "bootstrap: 'again' is one word too many; './bootstrap help' says more" ]]
}
