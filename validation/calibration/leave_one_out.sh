#!/usr/bin/env bash
# What a stranger can expect: the error on each source when nothing of it is in any fit.
#
#   validation/calibration/leave_one_out.sh [TABLE]
#
# TABLE: what `paceline validate validation/measured/*.csv` prints, if it is there already. Nothing of those sources is in
# any fit, so that their errors are what they are. The two families of training runs that calibration may use are left
# out in turn: what they gave to the device profiles (the sustained rate; of MosaicML also the speed of FlashAttention 1,
# in whose place FlashAttention 2 then runs) is fitted without them, in a copy of the profiles. PACELINE names the program.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
paceline=${PACELINE:-.build/release/paceline}
data=validation/calibration
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# lines FILE: "source MAPE median p90 bias" of each source in the table of sources
lines() {
  sed -n '/^source /,/^$/p' "$1" | sed '1d;/^mean over/d;/^$/d' |
    awk '{ name = substr($0, 1, 40); sub(/ +$/, "", name); split(substr($0, 41), f, " ")
           if (f[4] != "-") printf "%s\t%s\t%s\t%s\t%s\n", name, f[4], f[5], f[6], f[7] }'
}

devices() { # NAME: a copy of the profiles
  mkdir "$scratch/$1"
  cp platforms/devices/*.json "$scratch/$1"
}

fit() { # FOLDER PROFILE TABLE SOURCE
  "$paceline" calibrate --training "$data/$3" --source "$4" --base "$scratch/$1/$2.json" -o "$scratch/$1/$2.json" --force >/dev/null
}

like() { # FOLDER RELATIVE PROFILE
  "$paceline" calibrate --sustained-like "$scratch/$1/$2.json" --base "$scratch/$1/$3.json" -o "$scratch/$1/$3.json" --force >/dev/null
}

if [[ $# -gt 0 ]]; then cp "$1" "$scratch/measured.txt"; else "$paceline" validate validation/measured/*.csv >"$scratch/measured.txt"; fi
lines "$scratch/measured.txt" >"$scratch/all"

devices mosaicml
for profile in A100-SXM4-80GB H100-SXM5-80GB; do
  python3 - "$scratch/mosaicml/$profile.json" <<'END'
import json, sys
profile = json.load(open(sys.argv[1]))
profile["attention"] = [curve for curve in profile["attention"] if curve["kernel"] != "flash1"]
json.dump(profile, open(sys.argv[1], "w"))
END
done
fit mosaicml A100-SXM4-80GB vocab_parallelism.csv VocabularyParallelism
like mosaicml A100-SXM4-80GB H100-SXM5-80GB
"$paceline" validate "$data/mosaicml_mpt.csv" --devices "$scratch/mosaicml" >"$scratch/mosaicml.txt"
lines "$scratch/mosaicml.txt" >>"$scratch/all"

devices vocab
fit vocab A100-SXM4-80GB mosaicml_mpt.csv llm-foundry
"$paceline" validate "$data/vocab_parallelism.csv" --devices "$scratch/vocab" >"$scratch/vocab.txt"
lines "$scratch/vocab.txt" >>"$scratch/all"

printf '%-40s %7s %7s %7s %7s\n' 'source, left out' MAPE% median% p90% bias%
awk -F '\t' '{ printf "%-40s %7s %7s %7s %7s\n", $1, $2, $3, $4, $5 }' "$scratch/all"

summary() { # WORDS PATTERN: over the sources that the pattern does not match
  grep -v "$2" "$scratch/all" | cut -f 2 | sort -n |
    awk -v words="$1" '{ value[NR] = $1; sum += $1 }
      END { middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
            printf "%-40s %7.1f %7s   (median of the sources %.1f)\n", words " (" NR ")", sum / NR, "", middle }'
}
summary 'mean over the sources' '^$'
