/* See workloads/lower/block_prices.h. */
#include "workloads/lower/block_prices.h"

static void price(const pl_op_list *list, const pl_device_profile *profile, pl_arena *arena, const pl_op_time **times,
                  const pl_ticks **ticks) {
  pl_op_time *own_times = PL_TAKE(arena, pl_op_time, list->n_ops);
  pl_ticks *own_ticks = PL_TAKE(arena, pl_ticks, list->n_ops);
  *times = own_times;
  *ticks = own_ticks;
  for (uint32_t i = 0; !arena->failed && i < list->n_ops; i++) {
    if (list->ops[i].kind == PL_OP_COLLECTIVE) continue;
    own_times[i] = pl_op_cost(profile, &list->ops[i]);
    own_ticks[i] = pl_ticks_from_s(own_times[i].time_s);
  }
}

pl_code pl_block_prices_take(const pl_model *model, const pl_block_program *blocks, const pl_device_profile *profile,
                             pl_arena *arena, const pl_block_prices **prices, pl_error *error) {
  pl_block_prices *made = PL_TAKE(arena, pl_block_prices, 1);
  for (int32_t c = 0; made != NULL && c < pl_model_n_classes(model); c++) {
    for (int pass = 0; pass < PL_PASS_COUNT; pass++)
      price(pl_block_ops(&blocks[c], (pl_block_pass)pass), profile, arena, &made->times[c][pass],
            &made->ticks[c][pass]);
  }
  *prices = made;
  return arena->failed ? pl_fail_memory(error, "the prices of the ops") : PL_OK;
}
