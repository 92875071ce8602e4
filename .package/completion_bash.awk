# options.tsv -> completion for bash (see texts.sh).
function kind(option, value) {
  if (value == "") return ""
  if (option == "model") return "models"
  if (option == "platform") return "platforms"
  if (option == "framework") return "frameworks"
  return "files"
}
BEGIN {
  print "# Completion of paceline for bash; made from its tables of options."
  print "_paceline() {"
  print "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words='' names=''"
  print "  [[ $before != '=' ]] || before=${COMP_WORDS[COMP_CWORD - 2]}"
  print "  [[ $current != '=' ]] || current=''"
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
  printf " --%s", $3
  k = kind($3, $5)
  if (k != "" && k != "files") special[k] = special[k] "|--" $3 ($4 != "" ? "|-" $4 : "")
  else if ($5 != "") valued = valued "|--" $3 ($4 != "" ? "|-" $4 : "")
}
END {
  print "\" ;;"
  for (command in actions) printf "  \"%s \"*) words=\"%s\" ;;\n", command, substr(actions[command], 2)
  print "  'help '*) words=\"" substr(top, 2) "\" ;;"
  print "  esac"
  print "  [[ $COMP_CWORD -gt 1 ]] || words=\"" substr(top, 2) " help --help --version\""
  print "  case $before in"
  for (k in special) printf "  %s) names=$(paceline list %s 2>/dev/null | cut -d' ' -f1 | grep -v :NODES) words='' ;;\n", substr(special[k], 2), k
  printf "  %s) words='' ;;\n", substr(valued, 2)
  print "  esac"
  print "  COMPREPLY=($(compgen -W \"$words $names\" -- \"$current\"))"
  print "  [[ $COMP_CWORD -eq 1 || $current == -* ]] || COMPREPLY+=($(compgen -f -- \"$current\"))"
  print "}"
  print "complete -o filenames -F _paceline paceline"
}
