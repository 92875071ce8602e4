/* See search/method/search_top.h. Sorted by insertion: tops are short. */
#include "search/method/search_top.h"

#include <string.h>

bool pl_search_top_init(pl_search_top *top, uint32_t capacity, pl_arena *arena) {
  *top = (pl_search_top){.capacity = capacity};
  top->rows = PL_TAKE(arena, pl_result_row, capacity);
  top->values = PL_TAKE(arena, pl_search_values, capacity);
  return top->rows != NULL && top->values != NULL;
}

static double shortfall_bytes(const pl_result_row *row) {
  return (double)(row->peak_mem_bytes - row->mem_capacity_bytes);
}

static void note_oom(pl_search_top *top, const pl_result_row *row) {
  if (top->has_oom && shortfall_bytes(&top->oom) <= shortfall_bytes(row)) return;
  top->has_oom = true;
  top->oom = *row;
  top->oom_values = *row->search;
  top->oom.search = &top->oom_values;
}

static bool is_there(const pl_search_top *top, const pl_result_row *row) {
  for (uint32_t i = 0; i < top->n_rows; i++)
    if (top->rows[i].iter_time_s == row->iter_time_s &&
        strcmp(top->values[i].strategy.text, row->search->strategy.text) == 0)
      return true;
  return false;
}

bool pl_search_top_wants(const pl_search_top *top, const pl_result_row *row) {
  if (row->status == PL_RESULT_OOM) return !top->has_oom || shortfall_bytes(row) < shortfall_bytes(&top->oom);
  return row->status == PL_RESULT_DONE &&
         (top->n_rows < top->capacity || row->iter_time_s < top->rows[top->n_rows - 1].iter_time_s);
}

void pl_search_top_add(pl_search_top *top, const pl_result_row *row) {
  if (row->status == PL_RESULT_OOM) note_oom(top, row);
  if (row->status != PL_RESULT_DONE) return;
  uint32_t at = top->n_rows;
  while (at > 0 && row->iter_time_s < top->rows[at - 1].iter_time_s)
    at--;
  if (at == top->capacity || is_there(top, row)) return;
  uint32_t last = top->n_rows < top->capacity ? top->n_rows++ : top->capacity - 1;
  for (uint32_t i = last; i > at; i--) {
    top->rows[i] = top->rows[i - 1];
    top->values[i] = top->values[i - 1];
    top->rows[i].search = &top->values[i];
  }
  top->rows[at] = *row;
  top->values[at] = *row->search;
  top->rows[at].search = &top->values[at];
}
