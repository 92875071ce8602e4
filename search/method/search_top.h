/* The best rows of a search, and of those that do not fit the one that misses by least. */
#ifndef PL_SEARCH_SEARCH_TOP_H
#define PL_SEARCH_SEARCH_TOP_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/graph/result.h"

typedef struct pl_search_top {
  pl_result_row *rows; /* that fit, by time and discovery, each with row->search of its own */
  pl_search_values *values;
  uint32_t n_rows, capacity;
  bool has_oom;
  pl_result_row oom; /* with row->search */
  pl_search_values oom_values;
} pl_search_top;

/* False: no memory. Stays where it is. */
bool pl_search_top_init(pl_search_top *top, uint32_t capacity, pl_arena *arena);
/* Whether the row would be kept, but for being there already. */
bool pl_search_top_wants(const pl_search_top *top, const pl_result_row *row);
/* Rows of one strategy are kept once. Copies the row and row->search. O(capacity). */
void pl_search_top_add(pl_search_top *top, const pl_result_row *row);
static inline const pl_result_row *pl_search_top_best(const pl_search_top *top) {
  return top->n_rows > 0 ? &top->rows[0] : NULL;
}

#endif
