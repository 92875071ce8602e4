/* See search/command/selection.h. Columns that the condition or the order reads are loaded whole; of wide ones that are
 * only shown, the rows shown. Sorting is qsort_r with the row's index as the last key, which makes it stable and total.
 */
#include "search/command/selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/results/column_text.h"

static uint32_t status_index(void) {
  return (uint32_t)(pl_result_column("status") - pl_result_columns);
}

static pl_code load(pl_selection *selection, uint32_t column, pl_error *error) {
  if (column == PL_RESULT_CANDIDATE || selection->values[column] != NULL) return PL_OK;
  return pl_results_reader_column(selection->reader, &selection->columns.at[column], selection->arena,
                                  &selection->values[column], error);
}

static const void *in_memory(const pl_selection *selection, uint32_t column, uint32_t row) {
  return (const unsigned char *)selection->values[column] + (size_t)row * selection->columns.at[column].size;
}

/* A row under evaluation; digests are spelled out here. */
typedef struct current_row {
  const pl_selection *selection;
  uint32_t row;
  char text[4][24];
  uint32_t n_texts;
} current_row;

static pl_where_value value_of(const pl_selection *selection, uint32_t column, uint32_t row, char digest[24]) {
  pl_where_value value = {0};
  int32_t i32;
  int64_t i64;
  if (column == PL_RESULT_CANDIDATE) return (pl_where_value){.number = row};
  const pl_column_info *info = &selection->columns.at[column];
  const void *bytes = in_memory(selection, column, row);
  switch (info->type) {
  case PL_COLUMN_i32:
    memcpy(&i32, bytes, sizeof i32);
    value.number = i32;
    break;
  case PL_COLUMN_i64:
    memcpy(&i64, bytes, sizeof i64);
    value.number = (double)i64;
    break;
  case PL_COLUMN_f64:
    memcpy(&value.number, bytes, sizeof value.number);
    break;
  case PL_COLUMN_u64:
    value.length = (uint32_t)pl_column_text(info, bytes, digest, 24);
    value.text = digest;
    break;
  case PL_COLUMN_text:
    value.text = bytes;
    value.length = (uint32_t)strnlen(bytes, info->size);
    break;
  }
  return value;
}

static pl_where_value get(void *context, uint32_t column) {
  current_row *row = context;
  return value_of(row->selection, column, row->row, row->text[row->n_texts++ % 4]);
}

/* ---- order ---- */

typedef struct sort_order {
  const pl_selection *selection;
  uint32_t column;
  bool descending;
} sort_order;

static int compare_values(const pl_where_value *a, const pl_where_value *b, bool descending) {
  int order;
  if (a->text != NULL && b->text != NULL) {
    uint32_t shorter = a->length < b->length ? a->length : b->length;
    order = memcmp(a->text, b->text, shorter);
    if (order == 0) order = (a->length > b->length) - (a->length < b->length);
  } else {
    bool no_a = isnan(a->number), no_b = isnan(b->number);
    if (no_a || no_b) return no_a - no_b; /* last in either direction */
    order = (a->number > b->number) - (a->number < b->number);
  }
  return descending ? -order : order;
}

static int compare_rows(const void *left, const void *right, void *context) {
  const sort_order *sort = context;
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  char text_a[24], text_b[24];
  pl_where_value value_a = value_of(sort->selection, sort->column, a, text_a);
  pl_where_value value_b = value_of(sort->selection, sort->column, b, text_b);
  int order = compare_values(&value_a, &value_b, sort->descending);
  return order != 0 ? order : (a > b) - (a < b);
}

pl_code pl_selection_take(pl_results_reader *reader, const pl_where *where, uint32_t sort, bool descending,
                          uint32_t top, pl_arena *arena, pl_selection *selection, pl_error *error) {
  *selection = (pl_selection){.reader = reader, .arena = arena, .columns = pl_results_reader_columns(reader)};
  uint32_t status = status_index(), n = pl_results_reader_n_rows(reader);
  bool with_pending = pl_where_reads(where, status);
  for (uint32_t c = 0; c < selection->columns.n; c++)
    if (pl_where_reads(where, c) || c == sort || c == status) PL_TRY(load(selection, c, error));
  uint32_t *rows = PL_TAKE(arena, uint32_t, n);
  if (rows == NULL) return pl_fail_memory(error, "the rows");
  current_row current = {.selection = selection};
  for (current.row = 0; current.row < n; current.row++) {
    int32_t row_status;
    memcpy(&row_status, in_memory(selection, status, current.row), sizeof row_status);
    selection->n_pending += row_status == PL_RESULT_PENDING;
    if (row_status == PL_RESULT_PENDING && !with_pending) continue;
    if (pl_where_holds(where, get, &current)) rows[selection->n_matching++] = current.row;
  }
  sort_order order = {.selection = selection, .column = sort, .descending = descending};
  qsort_r(rows, selection->n_matching, sizeof *rows, compare_rows, &order);
  selection->rows = rows;
  selection->n_rows = top != 0 && top < selection->n_matching ? top : selection->n_matching;
  return PL_OK;
}

pl_code pl_selection_value(pl_selection *selection, uint32_t column, uint32_t row, void *value, pl_error *error) {
  const pl_column_info *info = &selection->columns.at[column];
  if (selection->values[column] == NULL && info->size > sizeof(double) * 2)
    return pl_results_reader_element(selection->reader, info, row, value, error);
  PL_TRY(load(selection, column, error));
  memcpy(value, in_memory(selection, column, row), info->size);
  return PL_OK;
}
