# Models and platforms by name, what a near miss is taken for, and help in all its forms.
bats_require_minimum_version 1.5.0

setup() {
  source_dir=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  : "${PACELINE:=$source_dir/.build/release/paceline}"
  cd "$BATS_TEST_TMPDIR"
  job=(--platform amp-homogeneous --model gpt2-345m --gbs 32 --strategy pp=4,dp=4,tmp=1,mbs=1)
}

says() { # 'MESSAGE' WORD ...: on standard error, all of it, with exit status 2
  local message="paceline $1"
  shift
  run -2 --separate-stderr "$PACELINE" "$@"
  [[ -z $output && $stderr == "$message" ]] || { printf 'wanted: %s\nsaid:   %s\n' "$message" "$output$stderr"; return 1; }
}

@test "a name is the file that comes with Paceline" {
  run -0 "$PACELINE" simulate "${job[@]}" --digest
  by_name=$output
  run -0 "$PACELINE" simulate "${job[@]}" --digest --platform "$source_dir/platforms/amp-homogeneous.xml" \
    --model "$source_dir/workloads/models/gpt2-345m.json"
  [[ ${by_name/platform         amp-homogeneous/} == "${output/platform         $source_dir\/platforms\/amp-homogeneous.xml/}" ]]
}

@test "a machine and its nodes are what platform make writes" {
  "$PACELINE" platform make dgx-h100 --nodes 3 -o made.xml
  for network in flow simgrid; do
    run -0 "$PACELINE" simulate "${job[@]}" --platform made.xml --strategy pp=3,dp=8,tmp=1,mbs=1 --network $network --json
    from_file=$output
    run -0 "$PACELINE" simulate "${job[@]}" --platform dgx-h100:3 --strategy pp=3,dp=8,tmp=1,mbs=1 --network $network --json
    # Digests are of the platform's text, which in the file names its maker.
    diff <(grep -v platform_digest <<<"${output//dgx-h100:3/}") <(grep -v platform_digest <<<"${from_file//made.xml/}")
  done
  run -0 "$PACELINE" platform show p3.8xlarge:3,g4dn.12xlarge:1
  [[ $output == "p3.8xlarge:3,g4dn.12xlarge:1: 16 GPUs (12 x V100-SXM2-16GB, 4 x T4) in 4 nodes"* ]]
  says "platform show: nodes of dgx-h100: 0 is out of range: 1 to 65536" platform show dgx-h100:0
}

@test "a file of that name comes first; a folder does not hide what comes with Paceline" {
  cp "$source_dir/workloads/models/bert-base.json" gpt2-345m
  run -0 "$PACELINE" model show gpt2-345m
  [[ $output == "bert-base:"* ]]
  rm gpt2-345m && mkdir gpt2-345m
  run -0 "$PACELINE" model show gpt2-345m
  [[ $output == "gpt2-345m:"* ]]
  # What lies in the folder that one happens to be in is nothing to a platform by name.
  mkdir -p devices collectives && echo '{' | tee devices/T4.json >collectives/nccl.json
  run -0 "$PACELINE" simulate "${job[@]}"
}

@test "near misses" {
  says "model: 'llama-3.1-8' is neither a file nor a model that comes with Paceline; did you mean llama-3.1-8b? 'paceline list models' lists all" \
    model show llama-3.1-8
  says "simulate: 'dgx-h10' is neither a file nor a platform that comes with Paceline; did you mean dgx-h100? 'paceline list platforms' lists all" \
    simulate "${job[@]}" --platform dgx-h10:16
  # Names as hubs have them, and words that are in a name.
  says "model: 'meta-llama/Llama-3.1-8B' is neither a file nor a model that comes with Paceline; did you mean llama-3.1-8b? 'paceline list models' lists all" \
    model show meta-llama/Llama-3.1-8B
  says "model: 'GPT-3' is neither a file nor a model that comes with Paceline; did you mean gpt3-5b? 'paceline list models' lists all" model show GPT-3
  says "simulate: 'h100' is neither a file nor a platform that comes with Paceline; did you mean dgx-h100? 'paceline list platforms' lists all" \
    simulate "${job[@]}" --platform h100:2
  says "platform show: 'p5' is neither a file nor a platform that comes with Paceline; did you mean p5.48xlarge? 'paceline list platforms' lists all" platform show p5:2
  for path in ./no/such no/such/file /no/such models/such.json; do
    run -2 "$PACELINE" model show $path
    [[ $output == *"$path: cannot open: No such file or directory" ]]
  done
  says "model: 'zzz' is neither a file nor a model that comes with Paceline; 'paceline list models' lists them" model show zzz
  says "list: 'model' is not a list; there are: models, platforms, frameworks, devices, strategies; did you mean 'models'?" list model
  says "simulate: --network: 'flaw' is unknown; choose one of flow, analytic, simgrid; did you mean 'flow'?" simulate "${job[@]}" --network flaw
  run -2 "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1,recompte=full
  [[ $output == *"unknown key 'recompte'; known are "*"; did you mean 'recompute'?" ]]
  run -2 "$PACELINE" simulate "${job[@]}" --strategy pp=4,dp=4,tmp=1,mbs=1,schedule=interleave
  [[ $output == *"choose one of gpipe, 1f1b, interleaved"*"; did you mean 'interleaved'?" ]]
  run -2 "$PACELINE" simulate "${job[@]}" --framework megatron-lm-202
  [[ $output == *"; did you mean 'megatron-lm-2021'?" ]]
  run -2 "$PACELINE" search --platform amp-homogeneous --model gpt2-345m --gbs 32 --method exhaustiv
  [[ $output == *"; did you mean 'exhaustive'?" ]]
  run -2 "$PACELINE" simulate "${job[@]}" --vary device:T4=A100-SXM4-80G
  [[ $output == *"; did you mean 'A100-SXM4-80GB'?" ]]
  run -2 "$PACELINE" platform make dgx-h10
  [[ $output == *"; did you mean 'dgx-h100'?" ]]
}

@test "list names everything, and every name is taken" {
  for list in models platforms strategies; do
    run -0 "$PACELINE" list $list
    while read -r name _; do
      case $list in
      models) run -0 "$PACELINE" model show "$name" ;;
      strategies) run -0 "$PACELINE" strategy check "$name" ;;
      platforms)
        [[ $name == hc1:NODES ]] && nodes=1 || nodes=2 # a machine without a network card
        run -0 "$PACELINE" platform show "${name/:NODES/:$nodes}"
        ;;
      esac
    done <<<"$output"
  done
  run -0 "$PACELINE" list
  for list in models platforms frameworks devices strategies; do [[ $output == *"$list:"* ]]; done
}

@test "help: -h, --help and help COMMAND say the same, for every command" {
  run -0 "$PACELINE" -h
  top=$output
  run -0 "$PACELINE" --help
  [[ $output == "$top" ]]
  run -0 "$PACELINE" -V
  [[ $output == "paceline "*"(build "* ]]
  for name in $(sed -n 's/^ *{"\([a-z_-]*\)",.*/\1/p' "$source_dir/main.c") "platform make"; do
    run -0 "$PACELINE" $name --help
    help=$output
    run -0 "$PACELINE" $name -h
    [[ $output == "$help" ]]
    run -0 "$PACELINE" help $name
    [[ $output == "$help" ]]
  done
  run -2 --separate-stderr "$PACELINE" help serch
  [[ $stderr == "paceline: 'serch' is not a command; 'paceline --help' lists them; did you mean 'search'?" ]]
  run -2 --separate-stderr "$PACELINE" help platform make x
  [[ $stderr == "paceline help: 'x' is one argument too many" ]]
}

# The lines behind "Example", joined where a backslash says so.
examples() {
  "$PACELINE" "$@" --help | sed '1,/^ *Example/d' | sed -e ':join' -e '/\\$/{N;s/\\\n *//;bjoin' -e '}' | grep -E '^ +(paceline|mpirun) '
}

@test "every help ends with an example that runs where it is pasted" {
  case $PACELINE in */asan/*) skip "jobs of full size; tests of their own run every command under the sanitizers" ;; esac
  mkdir bin
  ln -s "$PACELINE" bin/paceline
  ln -s "$source_dir/validation" "$source_dir/workloads" .
  cp "$source_dir/validation/measured/nemo_launcher.csv" mine.csv
  cp "$source_dir/platforms/amp-homogeneous.xml" mycluster.xml
  export PATH="$PWD/bin:$PATH" OMPI_MCA_btl=self,vader OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  paceline sweep --platform amp-homogeneous --model gpt2-345m --gbs 32 --pp 1,2 -o sweep.h5 --quiet
  for name in $(sed -n 's/^ *{"\([a-z_-]*\)",.*/\1/p' "$source_dir/main.c") "platform make" "platform show" "platform check"; do
    [[ -n $(examples $name) ]] || { echo "$name --help has no example"; return 1; }
    while read -r line; do
      case $name in
      sweep) line="$line --pp 16 --tmp 8 --force" ;; # not 14,268 strategies
      trace | replay | diagnose | optimize) continue ;; # of a job that ran somewhere
      report) rm -f sweep.html ;;
      validate | calibrate) continue ;;              # minutes, on tables of the sources; tests of their own run these
      "platform"*) rm -f h100-512.xml ;; # two helps give it as example
      esac
      bash -c "$line" >out 2>err || { echo "$line: $(cat out err)"; return 1; }
    done < <(examples $name)
  done
}
