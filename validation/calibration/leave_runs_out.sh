#!/usr/bin/env bash
# How sites differ, and what a few measured runs of one are worth: simulates all tables of validation/measured and of calibration's training runs eight
# times (minutes), then fits the prior and leaves runs out. Prints the tables of validation/SITES.md; with --renew writes them there and
# the prior to workloads/sites.json. --keep uses the simulations of the last time.
#   [PACELINE=.build/release/paceline] validation/calibration/leave_runs_out.sh [--keep] [--renew]
set -euo pipefail
cd "$(dirname "$0")/../.."
paceline=${PACELINE:-.build/release/paceline}
table=.build/sites.csv keep=no renew=no
for option in "$@"; do
  case $option in
    --keep) keep=yes ;;
    --renew) renew=yes ;;
    *) echo "leave_runs_out.sh: '$option' is neither --keep nor --renew" >&2; exit 2 ;;
  esac
done
if [[ $keep == no || ! -e $table ]]; then
  "$paceline" validate validation/measured/*.csv validation/calibration/{mosaicml_mpt,vocab_parallelism}.csv --sensitivities \
    --csv "$table" --force >/dev/null
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$paceline" calibrate --sites "$table" -o "$scratch/sites.json" | sed '/^written to /d' >"$scratch/tables"
cat "$scratch/tables"
[[ $renew == yes ]] || exit 0
cp "$scratch/sites.json" workloads/sites.json
{ echo '```' && cat "$scratch/tables" && echo '```'; } >"$scratch/block"
sed -i -e "\\|^<!-- runs left out/ -->\$|,\\|^<!-- end -->\$|{\\|^<!-- runs left out/ -->\$|{p;r $scratch/block
}
\\|^<!-- end -->\$|!d}" validation/SITES.md
