/* Files of op costs: any bytes give times from 0 on, found again by their ops, or one message. */
#include <stdint.h>
#include <string.h>

#include "search/optimize/op_costs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_cost(double value) {
  return value == -1 || (value >= 0 && value < 1e18);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_op_costs costs;
  pl_error error = PL_ERROR_INIT;
  if (pl_op_costs_parse("fuzz.csv", (const char *)data, size, &arena, &costs, &error) == PL_OK) {
    PL_ASSERT(is_cost(costs.launch_s) && is_cost(costs.message_s));
    for (uint32_t k = 0; k < costs.n; k++) {
      const pl_op_cost_row *row = &costs.rows[k];
      PL_ASSERT(is_cost(row->time_s) && is_cost(row->half_time_s) && is_cost(row->activation_bytes));
      PL_ASSERT(row->ops[0] != '\0' && pl_op_costs_find(&costs, row->ops) == row);
    }
  } else {
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.csv") == error.message);
  }
  pl_arena_release(&arena);
  return 0;
}
