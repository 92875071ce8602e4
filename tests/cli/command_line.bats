# What is wrong with the words themselves, for every command: one line on standard error that names the way out, exit 2, nothing on
# standard output.
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.."
  : "${PACELINE:=.build/release/paceline}"
  commands=(calibrate compare diagnose explain launch list model optimize program replay report run search show simulate strategy sweep validate verify "trace import" "trace check" "platform check" "platform show" "platform make")
}

# refuses 'MESSAGE' WORD ...: the whole line behind "paceline "
refuses() {
  local message="paceline $1"
  shift
  run -2 --separate-stderr "$PACELINE" "$@"
  [[ -z $output && $stderr == "$message" ]] || { printf 'wanted: %s\nsaid:   %s\n' "$message" "$output$stderr"; return 1; }
}

@test "the commands above are all there are" {
  local top
  top=$(printf '%s\n' "${commands[@]}" | cut -d' ' -f1 | sort -u)
  [[ $top == "$(sed -n 's/^ *{"\([a-z_-]*\)",.*/\1/p' main.c | sort)" ]]
}

@test "an unknown option, long and short" {
  for command in "${commands[@]}"; do
    refuses "$command: '--qqq' is not an option; 'paceline $command --help' lists them" $command --qqq=3
    refuses "$command: '-z' is not an option; 'paceline $command --help' lists them" $command -z
  done
  refuses "simulate: '--platfrom' is not an option; did you mean --platform? 'paceline simulate --help' lists all" simulate --platfrom x
  refuses "show: '-z' is not an option; 'paceline show --help' lists them" show -jzq
}

# Every option as --help shows it, alone and, where it takes none, with a value.
@test "a value that is missing, a value that is too much, for every option of every command" {
  local n=0
  for command in "${commands[@]}"; do
    while read -r name value; do
      n=$((n + 1))
      if [[ -n $value ]]; then
        refuses "$command: '--$name' needs a value: --$name $value" $command "--$name"
      elif [[ $name != help && $name != usage ]]; then
        refuses "$command: '--$name=3': --$name takes no value" $command "--$name=3"
      fi
    done < <("$PACELINE" $command --help | sed '/^Mandatory/,$d' | sed -nE 's/^ +(-.(, ?|=[^ ]+, ))?--([a-z0-9-]+)=?([^ ]*).*/\3 \4/p')
  done
  [ "$n" -ge 60 ]
  refuses "show: '-n' needs a value: --top N" show -n
  refuses "sweep: '-o' needs a value: --output FILE" sweep -o
}

@test "-f is --force wherever there is one, but in calibrate, whose -f is --profile" {
  local with=0
  for command in "${commands[@]}"; do
    "$PACELINE" $command --help | grep -q -- '--force' || continue
    [[ $command == calibrate ]] && continue
    with=$((with + 1))
    "$PACELINE" $command --help | grep -q -- '^  -f, --force ' || { echo "$command"; return 1; }
  done
  [ "$with" -ge 14 ]
}

@test "an option cut too short" {
  refuses "simulate: '--s' is short for several options: --strategy, --svg, --sensitivity, --seq, --site, --sharing, --streams, --slow; write more of it" simulate --s 4
  refuses "show: '--c' is short for several options: --columns, --csv; write more of it" show --c x
}

@test "too many arguments, and too few" {
  refuses "simulate: 'x' is one argument too many" simulate x
  refuses "sweep: 'x' is one argument too many" sweep x -o y
  refuses "show: '-x' is one argument too many" show -- a -x
  refuses "model: 'y' is one argument too many" model show x y
  refuses "platform make: one KIND only, not also 'b'" platform make a b
  refuses "model: what is to be done? paceline model show FILE" model
  refuses "model: 'list' is not an action; there is: show FILE ('paceline list models' lists names)" model list
  refuses "platform: check, show or make? 'paceline platform --help' says more" platform
  refuses "platform: 'mak' is none of check, show and make; 'paceline platform --help' says more; did you mean 'make'?" platform mak
  refuses "platform check: which platform file? paceline platform check FILE" platform check
  refuses "platform show: which platform file? paceline platform show FILE" platform show
  refuses "show: which results file? paceline show FILE" show
  refuses "platform make: which machine? --list shows them" platform make
}

@test "the first mistake counts; help in front of it is given, behind it is not" {
  refuses "show: '--aa' is not an option; 'paceline show --help' lists them" show --aa --bb --help
  run -0 --separate-stderr "$PACELINE" show --help --aa
  [[ $output == Usage:* && -z $stderr ]]
  refuses "show: --top: 'x' is not a whole number" show -nx --columns= nosuch.h5
}

@test "help that cannot be written is an error" {
  for command in "${commands[@]}"; do
    for word in --help --usage; do
      run -1 bash -c "'$PACELINE' $command $word >/dev/full"
      [[ $output == "paceline $command: cannot write standard output: No space left on device" ]]
      run -0 --separate-stderr "$PACELINE" $command $word
      [[ $output == Usage:* && -z $stderr ]]
    done
  done
}

@test "options may be shortened, and values attached or not" {
  for form in "--dev=platforms/devices" "--devices platforms/devices" "--dev platforms/devices"; do
    run -0 "$PACELINE" platform check $form platforms/hc1.xml
  done
  for form in "-n2" "-n 2" "--nodes=2" "--no 2"; do
    run -0 "$PACELINE" platform make $form -o - dgx-a100
    [[ $output == *"paceline platform make dgx-a100 --nodes 2"* ]]
  done
}
