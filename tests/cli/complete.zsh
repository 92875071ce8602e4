# zsh -f complete.zsh FOLDER LINE WANTED: zsh at a pseudo-terminal, with the functions of FOLDER, is given LINE and a tab. Status 0 once it shows
# WANTED, 1 if it has not in ten seconds, 77 where there are no pseudo-terminals. What it showed goes to stdout.
setopt extendedglob
zmodload zsh/zpty || exit 77
zpty shell zsh -f -i 2>/dev/null || exit 77
zpty -w shell "stty -echo cols 400; unsetopt beep; PS1=; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; setopt autolist noautomenu; LISTMAX=9999"
zpty -w shell 'print REA""DY'
deadline=$((SECONDS + 10)) shown=""
until [[ $shown == *READY* ]]; do
  zpty -r -t shell piece && shown+=$piece || sleep 0.05
  (( SECONDS < deadline )) || { print -r -- "$shown"; exit 1; }
done
zpty -w -n shell "$2"$'\t'
shown=""
until [[ ${shown//$'\e'\[[0-9;?]#[a-zA-Z]/} == *"$3"* ]]; do
  zpty -r -t shell piece && shown+=$piece || sleep 0.05
  (( SECONDS < deadline )) || { print -r -- "$shown"; exit 1; }
done
print -r -- "$shown"
