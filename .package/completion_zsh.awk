# options.tsv, -v words=FILE (what may stand behind a command) -> completion for zsh (see texts.sh).
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
  while ((getline line < words) > 0) {
    split(line, part, " ")
    behind[part[1]] = substr(line, length(part[1]) + 2)
  }
  print "#compdef paceline"
  print "# Completion of paceline for zsh; made from its tables of options."
  print "_paceline_names() {"
  print "  local -a names machines expl"
  print "  if compset -P '*:'; then"
  print "    _wanted nodes expl 'number of nodes' compadd 1 2 4 8 16 32 64 128 256 512 1024"
  print "    return"
  print "  fi"
  print "  names=(${(f)\"$(paceline list ${@[-1]} 2>/dev/null | cut -d' ' -f1)\"})"
  print "  machines=(${${(M)names:#*:NODES}%NODES}) names=(${names:#*:NODES})"
  print "  _wanted names expl name compadd -a names"
  print "  _wanted machines expl 'machine of nodes' compadd -S '' -a machines"
  print "  _files"
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
    if ($1 in behind) printf "      '1:what to do:(%s)' \\\n", behind[$1]
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
