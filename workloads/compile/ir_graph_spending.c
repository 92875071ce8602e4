/* See workloads/compile/ir_graph_state.h: what each device of a class computed, kernel by kernel. */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

static bool add(pl_ir_graphing *own, const pl_ir_spending *spending) {
  pl_ir_graph *made = own->made;
  pl_ir_spending *grown = (pl_ir_spending *)pl_arena_grown(own->arena, made->spendings, made->n_spendings, 1,
                                                           sizeof *grown, &own->room_spendings);
  if (grown == NULL) return false;
  grown[made->n_spendings++] = *spending;
  made->spendings = grown;
  return true;
}

/* Room for as much of each other class as of the first. */
static bool expect(pl_ir_graphing *own) {
  pl_ir_graph *made = own->made;
  uint64_t wanted = (uint64_t)made->n_spendings * (uint64_t)own->module->n_classes + 1;
  if (wanted > UINT32_MAX) return true;
  pl_ir_spending *wider = pl_arena_take(own->arena, (size_t)wanted * sizeof *wider, _Alignof(pl_ir_spending));
  if (wider == NULL) return false;
  if (made->n_spendings > 0) memcpy(wider, made->spendings, made->n_spendings * sizeof *wider);
  made->spendings = wider;
  own->room_spendings = (uint32_t)wanted;
  return true;
}

/* Time without a kernel, of all of the class's list. */
static bool add_time(pl_ir_graphing *own, int32_t class, pl_category category, const pl_ticks *ticks) {
  uint32_t n = own->cluster->n_profiles;
  pl_ticks *copy = PL_TAKE(own->arena, pl_ticks, n);
  uint8_t *sources = PL_TAKE(own->arena, uint8_t, n);
  if (copy == NULL || sources == NULL) return false;
  for (uint32_t p = 0; p < n; p++) {
    copy[p] = ticks[p];
    const pl_device_profile *profile = &own->cluster->profiles[p];
    sources[p] = (uint8_t)(category == PL_CATEGORY_OPTIMIZER ? pl_optimizer_cost(profile, 1, 0).source : PL_COST_FIT);
  }
  const pl_ir_spending spending = {.class = class, .category = category, .n = 1, .ticks = copy, .sources = sources};
  return add(own, &spending);
}

/* Sums are of kernels times their number: the same bits whatever was gone through to count them. */
pl_code pl_ir_graph_spend(pl_ir_graphing *own, int32_t class) {
  for (int32_t i = 0; i < own->module->n_functions * PL_IR_GRAPH_CATEGORIES; i++) {
    int32_t n_ops = own->prices[i] != NULL ? own->module->functions[i / PL_IR_GRAPH_CATEGORIES]->n_ops : 0;
    for (int32_t op = 0; op < n_ops; op++) {
      pl_ir_price *price = &own->prices[i][op];
      own->made->flops += price->flops * (double)price->n_on_all;
      price->n_on_all = 0;
      if (price->n_runs == 0 || !own->options->spendings) continue;
      const pl_ir_spending spending = {.class = class,
                                       .has_kernel = !price->is_update,
                                       .kernel = price->kernel,
                                       .category = (pl_category)price->kernel.category,
                                       .n = price->n_runs,
                                       .ticks = price->ticks,
                                       .sources = price->sources};
      if (!add(own, &spending)) return pl_ir_graph_no_memory(own);
      price->n_runs = 0;
    }
  }
  if (!own->options->spendings) return PL_OK;
  bool late = false;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    late = late || own->late_ticks[p] > 0;
  if (late && !add_time(own, class, PL_CATEGORY_HOST, own->late_ticks)) return pl_ir_graph_no_memory(own);
  if (own->updates && !add_time(own, class, PL_CATEGORY_OPTIMIZER, own->launch_ticks))
    return pl_ir_graph_no_memory(own);
  memset(own->late_ticks, 0, sizeof own->late_ticks);
  if (class == 0 && own->module->n_classes > 1 && !expect(own)) return pl_ir_graph_no_memory(own);
  return PL_OK;
}
