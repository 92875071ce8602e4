#!/usr/bin/env bats
# `paceline validate` on tables with other simulators' predictions and with orders instead of times.
bats_require_minimum_version 1.5.0

setup() {
  table=$BATS_TEST_TMPDIR/t.csv
  echo 'family,model,n_layers,hidden,n_heads,seq_len,vocab,gpu,n_gpus,framework,precision,tp,pp,dp,mbs,gbs,step_time_s,mem_gb,measured_rank,other_rank,other_step_time_s,other_mem_gb' >"$table"
}

# row TP PP DP MBS STEP MEM RANK OTHER_RANK OTHER_STEP OTHER_MEM
row() { echo "f,GPT,24,1024,16,1024,50257,A100,8,Megatron-Core,bf16,$1,$2,$3,$4,64,$5,$6,$7,$8,$9,${10}" >>"$table"; }

json() { "$PACELINE" validate "$table" --json | jq -r "$1"; }

@test "an order without times: places among those that can be expressed, and both rank correlations" {
  row 1 1 8 8 '' '' 1 3 '' ''
  row 2 1 4 8 '' '' 2 2 '' ''
  row 3 1 2 8 '' '' 3 9 '' '' # no such degrees
  row 8 1 1 8 '' '' 4 1 '' ''
  run -0 "$PACELINE" validate "$table"
  [[ $output == *"4 rows, 4 different configurations, 3 expressed, 0 compared"* ]]
  [[ $output == *"order: f, 8 A100"* && $output == *"rank correlation "*" 3     1.000    -1.000"* ]]
  [ "$(json '.orders | length')" = 1 ]
  [ "$(json '.orders[0] | [.expressed, .spearman, .other_spearman] | join(" ")')" = "3 1 -1" ]
  [ "$(json '[.orders[0].configurations[] | .rank] | join(" ")')" = "1 2 0 3" ]
}

@test "the order is by work per second, and the measured one the other way round gives -1" {
  row 1 1 8 8 '' '' 3 '' '' ''
  row 2 1 4 8 '' '' 2 '' '' ''
  row 8 1 1 8 '' '' 1 '' '' ''
  [ "$(json '.orders[0] | [.spearman, .other_spearman] | join(" ")')" = "-1 " ]
  [ "$(json '[.orders[0].configurations[] | .rank] | join(" ")')" = "3 2 1" ]
}

@test "errors beside the errors of others, of the rows that have both" {
  row 1 1 8 8 0.5 10 '' '' 0.6 12
  row 2 1 4 8 0.5 '' '' '' 0.45 ''
  row 4 1 2 8 0.5 '' '' '' '' ''
  [ "$(json '.beside | length')" = 1 ]
  [ "$(json '.beside[0] | [.times, .memory_peaks] | join(" ")')" = "2 1" ]
  [ "$(json '.beside[0] | (.other_mape_pct * 10 | round), (.other_bias_pct * 10 | round), (.other_memory_mape_pct * 10 | round)' | tr '\n' ' ')" = "150 50 200 " ]
  json '.beside[0].bias_pct, (.worst | map(select(.line != 4) | .error_pct) | add / length)' >"$BATS_TEST_TMPDIR/bias"
  /usr/bin/python3 -c 'import sys; a, b = map(float, open(sys.argv[1])); assert abs(a - b) < 1e-9, (a, b)' "$BATS_TEST_TMPDIR/bias"
}

@test "places are whole numbers from 1; another one makes its row not expressed" {
  row 1 1 8 8 '' '' 0 '' '' ''
  run -0 "$PACELINE" validate "$table"
  [[ $output == *"1 rows, 1 different configurations, 0 expressed, 0 compared"* ]]
  [[ $output == *"t.csv:2: column 'measured_rank': 0 must be a whole number from 1"* ]]
}
