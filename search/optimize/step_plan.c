/* Plans and what they cost (see search/optimize/step_plan.h). */
#include "search/optimize/step_plan.h"
#include "core/base/order.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pl_step_plan_take(const pl_step_model *model, pl_arena *arena, pl_step_plan *plan) {
  *plan = (pl_step_plan){.joins = PL_TAKE(arena, uint8_t, model->n_tensors + 1),
                         .parts = PL_TAKE(arena, uint8_t, model->n_tensors + 1),
                         .fuses = PL_TAKE(arena, uint8_t, model->n_units + 1),
                         .narrows = PL_TAKE(arena, uint8_t, model->n_units + 1)};
  return plan->joins != NULL && plan->parts != NULL && plan->fuses != NULL && plan->narrows != NULL;
}

void pl_step_plan_copy(const pl_step_model *model, const pl_step_plan *from, pl_step_plan *to) {
  memcpy(to->joins, from->joins, model->n_tensors);
  memcpy(to->parts, from->parts, model->n_tensors);
  memcpy(to->fuses, from->fuses, model->n_units);
  memcpy(to->narrows, from->narrows, model->n_units);
}

uint32_t pl_step_plan_end(const pl_step_model *model, const pl_step_plan *plan, uint32_t tensor) {
  uint32_t end = tensor + 1;
  while (end < model->n_tensors && plan->joins[end])
    end++;
  return end;
}

uint32_t pl_step_plan_first(const pl_step_plan *plan, uint32_t tensor) {
  while (plan->joins[tensor])
    tensor--;
  return tensor;
}

uint32_t pl_step_plan_unit_end(const pl_step_model *model, const pl_step_plan *plan, uint32_t unit) {
  uint32_t end = unit + 1;
  while (end < model->n_units && plan->fuses[end])
    end++;
  return end;
}

/* ---- what it costs ---- */

/* The median lag between kernels that stand one behind the other on a stream of the device; -1: there are none. */
static pl_ticks launch_of(const pl_step_model *model, pl_arena *arena) {
  const pl_trace *trace = model->replay->trace;
  pl_ticks *lags = PL_TAKE(arena, pl_ticks, model->n + 1);
  uint32_t n = 0;
  for (uint32_t u = 0; lags != NULL && u < model->n_units; u++)
    for (uint32_t k = 0; model->units[u].follows && k < model->units[u].n_members; k++) {
      uint32_t op = model->members[model->units[u].first_member + k].op;
      if (trace->streams[trace->ops[op].stream].kind == PL_TRACE_DEVICE)
        lags[n++] = model->replay->ticks[model->replay->gate[op]];
    }
  if (n == 0) return -1;
  qsort(lags, n, sizeof *lags, pl_by_int64);
  return lags[(n - 1) / 2] > 0 ? lags[(n - 1) / 2] : -1;
}

/* ---- latencies ---- */

/* What a message of no size takes, by the line of the tensor's kind; -1: no two sizes. */
static double latency_of(const pl_trace_fits *fits, const pl_step_tensor *tensor, double *sd) {
  const pl_trace_fit *fit = pl_trace_fits_find(fits, tensor->kind, tensor->n_members);
  *sd = fit != NULL ? fit->line.latency_sd_s : 0;
  return fit != NULL && fit->line.is_line ? fit->line.latency_s : -1;
}

pl_code pl_step_costs_take(const pl_step_model *model, const pl_op_costs *given, const pl_trace_fits *fits,
                           pl_arena *arena, pl_step_costs *costs, pl_error *error) {
  *costs = (pl_step_costs){.given = given, .launch = launch_of(model, arena)};
  costs->latency = PL_TAKE(arena, pl_ticks, model->n_tensors + 1);
  costs->latency_sd_s = PL_TAKE(arena, double, model->n_tensors + 1);
  if (costs->latency == NULL || costs->latency_sd_s == NULL) return pl_fail_memory(error, "the costs of messages");
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    const pl_step_tensor *tensor = &model->tensors[k], *before = k > 0 ? tensor - 1 : NULL;
    if (before != NULL && before->kind == tensor->kind && before->n_members == tensor->n_members) {
      costs->latency[k] = costs->latency[k - 1];
      costs->latency_sd_s[k] = costs->latency_sd_s[k - 1];
    } else {
      double latency_s = latency_of(fits, tensor, &costs->latency_sd_s[k]);
      if (given != NULL && given->message_s >= 0) {
        latency_s = given->message_s;
        costs->latency_sd_s[k] = 0;
      }
      costs->latency[k] = latency_s >= 0 ? pl_ticks_from_s(latency_s) : -1;
    }
    costs->n_without += costs->latency[k] < 0;
  }
  if (given != NULL && given->launch_s >= 0) {
    costs->launch = pl_ticks_from_s(given->launch_s);
    costs->launch_given = true;
  }
  return PL_OK;
}

pl_ticks pl_step_slot_latency(const pl_step_costs *costs, uint32_t tensor, pl_step_slot_kind kind) {
  pl_ticks latency = kind == PL_STEP_MOVES ? costs->latency[tensor] : kind == PL_STEP_SUMS ? costs->launch : 0;
  return latency > 0 ? latency : 0;
}

pl_ticks pl_step_slot_ticks(const pl_step_model *model, const pl_step_costs *costs, uint32_t first, uint32_t end,
                            uint32_t slot, uint32_t piece, uint32_t parts) {
  pl_step_slot_kind kind = model->slots[model->tensors[first].first_slot + slot].kind;
  pl_ticks latency = pl_step_slot_latency(costs, first, kind);
  pl_ticks most = 0, moving = 0;
  for (uint32_t k = first; k < end; k++) {
    pl_ticks ticks = model->ticks[model->slots[model->tensors[k].first_slot + slot].task];
    if (ticks > most) most = ticks;
    if (ticks > latency) moving = pl_ticks_sum(moving, ticks - latency);
  }
  if (kind == PL_STEP_WAITS) return most;
  if (latency > most) latency = most;
  pl_ticks share = moving / parts + (piece < (uint32_t)(moving % parts));
  return pl_ticks_sum(latency, share);
}

/* In half precision: as given, or by the factor of what its name says it is, at least a launch. */
static pl_ticks narrow(const pl_step_model *model, const pl_step_costs *costs, uint32_t op, pl_ticks ticks) {
  static const char *const products[] = {"*gemm*", "*GEMM*", "*matmul*", "*MatMul*",  "*conv*",
                                         "*Conv*", "*::mm",  "*addmm*",  "*cutlass*", "*linear*"};
  const char *name = pl_trace_op_name(model->replay->trace, op);
  const pl_op_cost_row *row = costs->given != NULL ? pl_op_costs_find(costs->given, name) : NULL;
  if (row != NULL && row->half_time_s >= 0) return pl_ticks_from_s(row->half_time_s);
  double factor = costs->half_other;
  for (size_t k = 0; k < sizeof products / sizeof products[0]; k++)
    if (fnmatch(products[k], name, 0) == 0) factor = costs->half_matrix;
  return factor > 0 ? (pl_ticks)llrint((double)ticks * factor) : ticks;
}

static pl_ticks given_for(const pl_step_model *model, const pl_step_costs *costs, uint32_t first, uint32_t end,
                          uint32_t member) {
  char names[1024];
  size_t used = 0;
  if (costs->given == NULL || costs->given->n == 0) return -1;
  for (uint32_t u = first; u < end; u++) {
    const char *name = pl_trace_op_name(model->replay->trace, model->members[model->units[u].first_member + member].op);
    size_t size = strlen(name);
    if (used + size + 2 > sizeof names) return -1;
    if (u > first) names[used++] = '+';
    memcpy(names + used, name, size);
    used += size;
  }
  names[used] = '\0';
  const pl_op_cost_row *row = pl_op_costs_find(costs->given, names);
  return row != NULL && row->time_s >= 0 ? pl_ticks_from_s(row->time_s) : -1;
}

pl_ticks pl_step_unit_ticks(const pl_step_model *model, const pl_step_costs *costs, const pl_step_plan *plan,
                            uint32_t first, uint32_t end, uint32_t member) {
  pl_ticks sum = 0, most = 0;
  if (end > first + 1) {
    pl_ticks given = given_for(model, costs, first, end, member);
    if (given >= 0) return given;
  }
  for (uint32_t u = first; u < end; u++) {
    const pl_step_member *own = &model->members[model->units[u].first_member + member];
    pl_ticks body = model->ticks[own->body];
    if (plan->narrows[u]) body = narrow(model, costs, own->op, body);
    if (body > most) most = body;
    sum = pl_ticks_sum(sum, body);
    if (u > first) sum = pl_ticks_sum(sum, model->ticks[own->gate]);
  }
  pl_ticks saved = costs->launch > 0 ? (end - first - 1) * costs->launch : 0;
  return sum - saved > most ? sum - saved : most;
}
