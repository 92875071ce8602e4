# options.tsv, -v words=FILE (what may stand behind a command) -> completion for fish (see texts.sh).
function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/'/, "\\'", text)
  return text
}
BEGIN {
  print "# Completion of paceline for fish; made from its tables of options."
  print "function __paceline_names"
  print "  set -l token (string replace -r '^--[a-z]+=' '' -- (commandline -ct))"
  print "  if string match -q '*:*' -- $token"
  print "    printf '%s\\n' (string replace -r ':.*' ':' -- $token)(printf '%s\\n' 1 2 4 8 16 32 64 128 256 512 1024)"
  print "  else"
  print "    paceline list $argv[1] 2>/dev/null | cut -d' ' -f1 | string replace :NODES :"
  print "  end"
  print "end"
}
END {
  while ((getline line < words) > 0) {
    split(line, part, " ")
    all = substr(line, length(part[1]) + 2)
    printf "complete -c paceline -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s' -a '%s'\n", part[1], all, all
  }
}
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
  if ($3 == "model" || $3 == "platform" || $3 == "framework") printf " -a '(__paceline_names %ss)'", $3
  printf " -d '%s'\n", quoted($6)
}
