#!/usr/bin/env bash
# texts.sh PROGRAM FOLDER: man pages and completions of bash, zsh and fish, from what the program says of itself: its list of
# commands and, per command, its table of options (--print-options). Man pages need help2man and are left out without it.
set -euo pipefail
program=$1 folder=$2 here=$(dirname "$0")
mkdir -p "$folder"
export LC_ALL=C

# NAME<TAB>SUMMARY per line of a list in a help text.
entries() { sed -nE 's/^  ([a-z]+) {2,}(.*)/\1\t\2/p'; }

# COMMAND<TAB>SUMMARY<TAB>OPTION<TAB>LETTER<TAB>VALUE<TAB>WHAT FOR: a line per option of every command.
table() {
  local name summary action meaning
  while IFS=$'\t' read -r name summary; do
    if [[ $("$program" "$name" --print-options 2>/dev/null) == *$'\t'* ]]; then
      "$program" "$name" --print-options | sed "s|^|$name\t$summary\t|"
      continue
    fi
    local actions=0
    while IFS=$'\t' read -r action meaning; do
      "$program" "$name" "$action" --print-options | sed "s|^|$name $action\t$meaning\t|"
      actions=1
    done < <("$program" "$name" --help | entries)
    ((actions)) || printf '%s\t%s\thelp\t\t\tgive this help list\n' "$name" "$summary" # a command without options
  done < <("$program" --help | sed '/^Example/,$d' | entries)
}

# COMMAND WORD...: what may stand behind a command, by its usage: "paceline model [OPTION...] show FILE", "[models|platforms]".
words() {
  local name
  for name in $(cut -f1 "$folder/options.tsv" | uniq | grep -v ' '); do
    "$program" "$name" --help | sed -E ':a;N;$!ba;s/\n {8,}/ /g' | sed -nE "s/^(Usage:|  or: ) paceline $name \\[OPTION\\.\\.\\.\\] \\[?([a-z|]+)\\]?( .*)?$/\\2/p" | tr '|' '\n' | awk '!seen[$0]++' | paste -sd ' ' | sed -nE "s/(.+)/$name \\1/p"
  done
}

man_page() { # FILE SUMMARY WORD ...
  local file=$1 summary=$2
  shift 2
  help2man --no-info --no-discard-stderr --source=Paceline --manual="Paceline" --version-string="$("$program" --version)" \
    --name="$summary" --help-option="$* --help" "$program" --output="$file"
  local name
  name=$(basename "$file" .1)
  sed -i "s/^\.TH PACELINE /.TH ${name^^} /; s/^paceline \\\\-/$name \\\\-/" "$file"
}

table >"$folder/options.tsv"
words >"$folder/words"
for shell in bash zsh fish; do
  case $shell in zsh) to=$folder/_paceline ;; *) to=$folder/paceline.$shell ;; esac
  awk -F'\t' -v words="$folder/words" -f "$here/completion_$shell.awk" "$folder/options.tsv" >"$to.part"
  mv "$to.part" "$to"
done

rm -f "$folder"/*.1
if command -v help2man >/dev/null; then
  cut -f1,2 "$folder/options.tsv" | uniq | while IFS=$'\t' read -r command summary; do
    # shellcheck disable=SC2086
    man_page "$folder/paceline-${command// /-}.1" "$summary" $command
  done
  man_page "$folder/paceline.1" "predicts how fast a distributed DNN training job runs"
else
  echo "no help2man: no man pages"
fi
touch "$folder/done"
