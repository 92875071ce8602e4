/* See workloads/compile/ir_graph_state.h: of programs of level kernels, how parameters are gathered: what a function
 * reads under ZeRO-3, all at once or a matrix at a time (gather_unit), while the function before it runs or in front of
 * it (gathers_ahead); and what an update has made of its shares, behind the optimizer.
 */
#include "workloads/compile/ir_graph_state.h"

bool pl_ir_graph_defer_gather(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                              const pl_ir_arrival *values) {
  if (own->module->level != PL_IR_KERNELS || own->category != PL_CATEGORY_OPTIMIZER || !pl_ir_op_is(op, "all_gather"))
    return false;
  const pl_ir_op *reader = pl_ir_graph_reader_of(own, f, op->first_output);
  if (values[op->inputs[0]].tasks != NULL || reader == NULL || !pl_ir_op_is(reader, "store")) return false;
  const pl_ir_meeting meeting = pl_ir_graph_meeting_of(own, f, op);
  uint32_t i = 0;
  while (i < own->n_gathers && own->gathers[i].axes != meeting.axes)
    i++;
  if (i == PL_IR_BUCKETS_MAX) return false;
  double bytes = i < own->n_gathers ? own->gathers[i].bytes : 0;
  own->gathers[i] = meeting;
  own->gathers[i].bytes += bytes;
  if (i == own->n_gathers) own->n_gathered[own->n_gathers++] = 0;
  const char *path = pl_ir_graph_path(own, reader->path);
  const pl_ir_reduction *reduction = path != NULL ? pl_ir_graph_reduction_of(own, path) : NULL;
  own->n_gathered[i] += reduction == NULL || !reduction->is_packed;
  return true;
}

/* What came is copied twice, one copy per rank of the group and one per rank and tensor, packed ones as one
 * (workloads/compile/pieces.c says the same of tuples). */
static pl_code copy_gathered(pl_ir_graphing *own, const pl_ir_meeting *meeting, uint32_t n_tensors) {
  const pl_ir_groups *groups = pl_ir_graph_groups_over(own, meeting->axes);
  pl_ticks ticks[PL_IR_GRAPH_PROFILES_MAX];
  if (groups == NULL) return pl_ir_graph_no_memory(own);
  double n_copies = (double)groups->size * (1 + (double)n_tensors);
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    ticks[p] =
        pl_ticks_from_s(pl_gathered_copy_cost(&own->cluster->profiles[p], 4 * meeting->bytes, n_copies, 0).time_s);
  uint32_t name = pl_ir_graph_label(own, "copy what was gathered");
  return pl_ir_graph_part(own, PL_CATEGORY_DATA, ticks, NULL, name, NULL) ? PL_OK : pl_ir_graph_no_memory(own);
}

pl_code pl_ir_graph_send_gathers(pl_ir_graphing *own) {
  pl_ir_arrival arrivals[PL_IR_BUCKETS_MAX];
  bool copies = own->framework->gathers.copies_per_tensor;
  PL_TRY(pl_ir_graph_flush(own));
  for (uint32_t i = 0; i < own->n_gathers; i++)
    PL_TRY(pl_ir_graph_meet(own, &own->gathers[i], PL_IR_BEHIND_WORK, NULL, &arrivals[i]));
  for (uint32_t i = 0; i < own->n_gathers && copies; i++)
    PL_TRY(pl_ir_graph_await(own, &arrivals[i]));
  for (uint32_t i = 0; i < own->n_gathers && copies; i++)
    PL_TRY(copy_gathered(own, &own->gathers[i], own->n_gathered[i]));
  own->n_gathers = 0;
  return PL_OK;
}

/* The place among `all` of the one over these axes; n of them are known. */
static uint32_t place_of(const pl_ir_meeting *all, uint32_t n, uint32_t axes) {
  uint32_t i = 0;
  while (i < n && all[i].axes != axes)
    i++;
  return i;
}

/* Whether another function of the pass has its part in the parameter, as a head in its embedding's table: whoever reads
 * it has it gathered. */
static bool is_shared(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *gather) {
  const char *path = pl_ir_graph_path(own, f->ops[f->values[gather->inputs[0]].op].path);
  const pl_ir_reduction *reduction = path != NULL ? pl_ir_graph_reduction_of(own, path) : NULL;
  return reduction != NULL && reduction->n_adds > 1;
}

/* What the function gathers: one for each group that parameters are gathered over, experts and all else may have
 * others. False: there are too many. */
static bool sum_gathers(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_meeting all[PL_IR_BUCKETS_MAX],
                        uint32_t *n) {
  *n = 0;
  for (int32_t i = 0; i < f->n_ops; i++) {
    if (!pl_ir_graph_gathers_param(f, &f->ops[i]) || pl_ir_graph_is_kept(own, f, &f->ops[i])) continue;
    if (!own->doings[own->function].reads_gathered && is_shared(own, f, &f->ops[i])) {
      *n = 0; /* a unit with the head, which has them gathered */
      return true;
    }
    const pl_ir_meeting one = pl_ir_graph_meeting_of(own, f, &f->ops[i]);
    uint32_t at = place_of(all, *n, one.axes);
    if (at == PL_IR_BUCKETS_MAX) return false;
    double bytes = at < *n ? all[at].bytes : 0;
    all[at] = one;
    all[at].bytes += bytes;
    if (at == *n) (*n)++;
  }
  return true;
}

/* All parameters of a unit at once. A backward function's are those of its forward function, whether it reads them or
 * not: hooks gather modules. What it does not read it waits for all the same. */
static pl_code gather_layer(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_behind behind, pl_ir_arrival *values) {
  const pl_ir_doing *doing = &own->doings[own->function];
  pl_ir_meeting all[PL_IR_BUCKETS_MAX];
  pl_ir_arrival arrivals[PL_IR_BUCKETS_MAX];
  uint32_t n;
  if (!sum_gathers(own, doing->unit, all, &n)) return PL_OK; /* one by one */
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(pl_ir_graph_meet(own, &all[i], behind, NULL, &arrivals[i]));
  for (int32_t i = 0; i < f->n_ops; i++) {
    if (!pl_ir_graph_gathers_param(f, &f->ops[i]) || pl_ir_graph_is_kept(own, f, &f->ops[i])) continue;
    uint32_t at = place_of(all, n, pl_ir_graph_meeting_of(own, f, &f->ops[i]).axes);
    if (at < n) values[f->ops[i].first_output] = arrivals[at];
  }
  for (uint32_t i = 0; i < n && !doing->reads_gathered; i++)
    PL_TRY(pl_ir_graph_await(own, &arrivals[i]));
  return PL_OK;
}

static pl_code gather_tensors(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_behind behind,
                              pl_ir_arrival *values) {
  for (int32_t i = 0; i < f->n_ops; i++) {
    if (!pl_ir_graph_gathers_param(f, &f->ops[i]) || pl_ir_graph_is_kept(own, f, &f->ops[i])) continue;
    const pl_ir_meeting one = pl_ir_graph_meeting_of(own, f, &f->ops[i]);
    PL_TRY(pl_ir_graph_meet(own, &one, behind, NULL, &values[f->ops[i].first_output]));
  }
  return PL_OK;
}

/* Nothing of the function runs before all is there. */
static pl_code await_gathered(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_arrival *values) {
  for (int32_t i = 0; i < f->n_ops; i++) {
    pl_ir_arrival *gathered = f->ops[i].n_outputs > 0 ? &values[f->ops[i].first_output] : NULL;
    if (!pl_ir_graph_gathers_param(f, &f->ops[i]) || gathered->tasks == NULL) continue;
    PL_TRY(pl_ir_graph_await(own, gathered));
    gathered->is_there = true;
  }
  return PL_OK;
}

pl_code pl_ir_graph_gather(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_arrival *values) {
  if (own->module->level != PL_IR_KERNELS) return PL_OK;
  const bool ahead = own->framework->gathers.gathers_ahead;
  /* As of tuples: workloads/program/program_passes.c, most_units. */
  bool early = own->framework->gathers.copies_gathered && own->category == PL_CATEGORY_FORWARD && own->n_units >= 2;
  /* A pass's first unit is asked for when the pass before it is over. */
  bool first = !ahead || own->n_units == 0;
  pl_ir_behind behind = first ? PL_IR_BEHIND_WORK : early ? PL_IR_BEHIND_UNIT_BEFORE : PL_IR_BEHIND_UNIT;
  PL_TRY(pl_ir_graph_flush(own));
  if (own->framework->gathers.gather_unit == PL_GATHER_TENSOR)
    PL_TRY(gather_tensors(own, f, behind, values));
  else
    PL_TRY(gather_layer(own, f, behind, values));
  if (!ahead) PL_TRY(await_gathered(own, f, values));
  bool unit = own->doings[own->function].gathers_matrices; /* a norm by itself is of the unit beside it */
  own->n_units += unit;
  return unit && ahead ? pl_ir_graph_act(own, &(pl_ir_act){.kind = PL_IR_ACT_UNIT}) : PL_OK;
}
