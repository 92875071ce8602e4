# options.tsv -> completion for fish (see texts.sh).
function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/'/, "\\'", text)
  return text
}
BEGIN { print "# Completion of paceline for fish; made from its tables of options." }
{
  split($1, part, " ")
  if (!($1 in seen)) {
    seen[$1] = 1
    if (part[2] == "")
      printf "complete -c paceline -f -n __fish_use_subcommand -a %s -d '%s'\n", $1, quoted($2)
    else {
      if (!(part[1] in seen)) printf "complete -c paceline -f -n __fish_use_subcommand -a %s\n", part[1]
      seen[part[1]] = 1
      printf "complete -c paceline -f -n '__fish_seen_subcommand_from %s' -a %s -d '%s'\n", part[1], part[2], quoted($2)
    }
  }
  where = "__fish_seen_subcommand_from " part[1]
  if (part[2] != "") where = where "; and __fish_seen_subcommand_from " part[2]
  printf "complete -c paceline -n '%s' -l %s", where, $3
  if ($4 != "") printf " -s %s", $4
  if ($5 != "") printf " -r"
  if ($3 == "model" || $3 == "platform" || $3 == "framework") printf " -a '(paceline list %ss 2>/dev/null | cut -d\" \" -f1 | grep -v :NODES)'", $3
  printf " -d '%s'\n", quoted($6)
}
