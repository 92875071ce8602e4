# options.tsv, -v words=FILE (what may stand behind a command) -> completion for bash (see texts.sh).
function kind(option, value) {
  if (value == "") return ""
  if (option == "model") return "models"
  if (option == "platform") return "platforms"
  if (option == "framework") return "frameworks"
  return "files"
}
function unsaid(group, option) { return said[group, option]++ ? "" : "|" option }
BEGIN {
  print "# Completion of paceline for bash; made from its tables of options."
  print "_paceline() {"
  print "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words='' names=''"
  print "  [[ $before != '=' ]] || before=${COMP_WORDS[COMP_CWORD - 2]}"
  print "  [[ $current != '=' ]] || current=''"
  # bash takes 'machine:4' for three words; of the number of nodes, doublings are offered.
  print "  local line=\" ${COMP_WORDS[*]:0:COMP_CWORD + 1}\""
  print "  if [[ $line =~ \\ --platform(\\ =)?\\ [^\\ ]+\\ :\\ ?([0-9]*)$ ]]; then"
  print "    COMPREPLY=($(compgen -W '1 2 4 8 16 32 64 128 256 512 1024' -- \"${BASH_REMATCH[2]}\"))"
  print "    return"
  print "  fi"
  print "  case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in"
}
{
  split($1, part, " ")
  if (!(part[1] in seen)) { seen[part[1]] = 1; top = top " " part[1] }
  if (part[2] != "" && !($1 in listed)) { listed[$1] = 1; actions[part[1]] = actions[part[1]] " " part[2] }
  if ($1 != last) {
    if (last != "") print "\" ;;"
    last = $1
    printf "  \"%s\"*) words=\"--help", part[2] != "" ? $1 : $1 " "
  }
  if ($3 != "help") printf " --%s", $3
  k = kind($3, $5)
  if (k != "" && k != "files") special[k] = special[k] unsaid(k, "--" $3) ($4 != "" ? unsaid(k, "-" $4) : "")
  else if ($5 != "") valued = valued unsaid("", "--" $3) ($4 != "" ? unsaid("", "-" $4) : "")
}
END {
  print "\" ;;"
  for (command in actions) printf "  \"%s \"*) words=\"%s\" ;;\n", command, substr(actions[command], 2)
  print "  'help '*) words=\"" substr(top, 2) "\" ;;"
  print "  esac"
  print "  [[ $COMP_CWORD -ne 2 ]] || case ${COMP_WORDS[1]} in"
  while ((getline line < words) > 0) {
    split(line, part, " ")
    printf "  %s) words=\"$words %s\" ;;\n", part[1], substr(line, length(part[1]) + 2)
  }
  print "  esac"
  print "  [[ $COMP_CWORD -gt 1 ]] || words=\"" substr(top, 2) " help --help --version\""
  print "  case $before in"
  for (k in special) printf "  %s) names=$(paceline list %s 2>/dev/null | cut -d' ' -f1 | sed 's/:NODES/:/') words='' ;;\n", substr(special[k], 2), k
  printf "  %s) words='' ;;\n", substr(valued, 2)
  print "  esac"
  print "  COMPREPLY=($(compgen -W \"$words $names\" -- \"$current\"))"
  print "  [[ ${#COMPREPLY[@]} -ne 1 || $COMPREPLY != *: ]] || compopt -o nospace 2>/dev/null"
  print "  [[ $COMP_CWORD -eq 1 || $current == -* ]] || local files=($(compgen -f -- \"$current\"))"
  print "  [[ ${#files[@]} -gt 0 ]] || compopt +o filenames 2>/dev/null # which would put a backslash in front of a colon"
  print "  COMPREPLY+=(\"${files[@]}\")"
  print "}"
  print "complete -o filenames -F _paceline paceline"
}
