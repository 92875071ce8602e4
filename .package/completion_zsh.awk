# options.tsv -> completion for zsh (see texts.sh).
function quoted(text) {
  gsub(/'/, "'\\''", text)
  gsub(/\[/, "\\[", text)
  gsub(/\]/, "\\]", text)
  gsub(/:/, "\\:", text)
  return text
}
function action(option, value) {
  if (value == "") return ""
  if (option == "model" || option == "platform" || option == "framework") return ":" value ":_paceline_names " option "s"
  return ":" quoted(value) ":_files"
}
BEGIN {
  print "#compdef paceline"
  print "# Completion of paceline for zsh; made from its tables of options."
  print "_paceline_names() {"
  print "  local -a names"
  print "  names=(${(f)\"$(paceline list ${@[-1]} 2>/dev/null | cut -d' ' -f1 | grep -v :NODES)\"})"
  print "  _alternative \"names:name:($names)\" 'files:file:_files'"
  print "}"
  print "_paceline() {"
  print "  local context state line"
  print "  local -a commands"
  print "  case \"$words[2] $words[3]\" in"
}
{
  split($1, part, " ")
  if (part[2] == "" || !(part[1] in seen)) {
    if (!(part[1] in seen)) top = top sprintf("    '%s:%s'\n", part[1], quoted(part[2] == "" ? $2 : "of several actions"))
    seen[part[1]] = 1
  }
  if (part[2] != "" && !($1 in listed)) { listed[$1] = 1; actions[part[1]] = actions[part[1]] " " part[2] }
  if ($1 != last) {
    if (last != "") print "      '*:file:_files' ;;"
    last = $1
    printf "  '%s'*) shift %d words; (( CURRENT -= %d ))\n    _arguments -s \\\n", part[2] != "" ? $1 : $1 " ", part[2] != "" ? 2 : 1, part[2] != "" ? 2 : 1
  }
  letter = $4 != "" ? sprintf("'(-%s --%s)'{-%s,--%s%s}'", $4, $3, $4 ($5 != "" ? "+" : ""), $3, $5 != "" ? "=" : "") : sprintf("'--%s%s", $3, $5 != "" ? "=" : "")
  printf "      %s[%s]%s' \\\n", letter, quoted($6), action($3, $5)
}
END {
  print "      '*:file:_files' ;;"
  for (command in actions) printf "  '%s '*) compadd %s ;;\n", command, actions[command]
  print "  *) commands=("
  printf "%s", top
  print "    'help:what a command does' )"
  print "    _describe command commands ;;"
  print "  esac"
  print "}"
  print "_paceline \"$@\""
}
