/* See search/optimize/op_costs.h. */
#include "search/optimize/op_costs.h"

#include <string.h>

#include "core/text/csv.h"

const pl_op_cost_row *pl_op_costs_find(const pl_op_costs *costs, const char *ops) {
  uint32_t probe = 0;
  uint64_t hash = pl_hash_text(1, ops);
  for (const pl_op_cost_row *row; (row = pl_hash_index_find(&costs->index, hash, &probe)) != NULL;)
    if (strcmp(row->ops, ops) == 0) return row;
  return NULL;
}

static pl_code read_cell(const pl_csv *csv, uint32_t r, uint32_t column, double *value, pl_error *error) {
  bool given = false;
  *value = -1;
  if (column == PL_CSV_NO_COLUMN) return PL_OK;
  PL_TRY(pl_csv_number(csv, r, column, &given, value, error));
  if (given && !(*value >= 0 && *value < 1e18))
    return pl_csv_fail(csv, r, error, "column '%s': '%s' is not from 0 to 10^18", csv->header[column],
                       pl_csv_cell(csv, r, column));
  return PL_OK;
}

static pl_code read_special(const pl_csv *csv, uint32_t r, const pl_op_cost_row *row, pl_op_costs *costs,
                            pl_error *error) {
  bool launch = strcmp(row->ops, "(launch)") == 0;
  double *value = launch ? &costs->launch_s : &costs->message_s;
  if (!launch && strcmp(row->ops, "(message)") != 0)
    return pl_csv_fail(csv, r, error, "'%.60s' is neither (launch) nor (message)", row->ops);
  if (row->time_s < 0) return pl_csv_fail(csv, r, error, "%s needs a time_s", row->ops);
  *value = row->time_s;
  return PL_OK;
}

static pl_code read_table(const pl_csv *csv, pl_arena *arena, pl_op_costs *costs, pl_error *error) {
  static const char *const names[] = {"ops", "time_s", "half_time_s", "activation_bytes", "read_by"};
  uint32_t columns[5];
  *costs = (pl_op_costs){.launch_s = -1, .message_s = -1};
  for (uint32_t c = 0; c < csv->n_columns; c++) {
    bool known = false;
    for (int k = 0; k < 5; k++)
      known |= strcmp(csv->header[c], names[k]) == 0;
    if (!known)
      return pl_fail(error, PL_BAD_INPUT,
                     "%s: column '%.60s' is none of ops, time_s, half_time_s, activation_bytes, read_by", csv->name,
                     csv->header[c]);
  }
  for (int k = 0; k < 5; k++)
    columns[k] = pl_csv_column(csv, names[k]);
  if (columns[0] == PL_CSV_NO_COLUMN) return pl_fail(error, PL_BAD_INPUT, "%s: has no column 'ops'", csv->name);
  costs->rows = PL_TAKE(arena, pl_op_cost_row, csv->n_rows + 1);
  if (costs->rows == NULL) return pl_fail_memory(error, csv->name);
  for (uint32_t r = 0; r < csv->n_rows; r++) {
    pl_op_cost_row row = {.ops = pl_csv_cell(csv, r, columns[0]), .read_by = pl_csv_cell(csv, r, columns[4])};
    PL_TRY(read_cell(csv, r, columns[1], &row.time_s, error));
    PL_TRY(read_cell(csv, r, columns[2], &row.half_time_s, error));
    PL_TRY(read_cell(csv, r, columns[3], &row.activation_bytes, error));
    if (row.ops[0] == '\0') return pl_csv_fail(csv, r, error, "column 'ops' is empty");
    if (row.ops[0] == '(') {
      PL_TRY(read_special(csv, r, &row, costs, error));
      continue;
    }
    if (pl_op_costs_find(costs, row.ops) != NULL) return pl_csv_fail(csv, r, error, "'%.60s' is there twice", row.ops);
    costs->rows[costs->n] = row;
    if (!pl_hash_index_put(&costs->index, pl_hash_text(1, row.ops), &costs->rows[costs->n++], arena))
      return pl_fail_memory(error, csv->name);
  }
  return PL_OK;
}

pl_code pl_op_costs_load(const char *path, pl_arena *arena, pl_op_costs *costs, pl_error *error) {
  pl_csv csv;
  PL_TRY(pl_csv_load(path, arena, &csv, error));
  return read_table(&csv, arena, costs, error);
}

pl_code pl_op_costs_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_op_costs *costs,
                          pl_error *error) {
  pl_csv csv;
  PL_TRY(pl_csv_parse(name, text, size, arena, &csv, error));
  return read_table(&csv, arena, costs, error);
}
