/* See workloads/run/interval.h. */
#include "workloads/run/interval.h"

#include <math.h>

typedef struct composing {
  const pl_explanation *explanation;
  const pl_residuals *residuals;
  pl_arena *arena;
  pl_error *error;
  pl_doubts doubts;
} composing;

static bool is_tensor(const pl_explained_op *op) {
  return op->family != PL_NONE && op->category == PL_CATEGORY_TENSOR;
}

static void doubt(composing *state, pl_doubt kind, pl_device_ticks time, double residual) {
  pl_doubts_add(&state->doubts, (pl_doubt_of_one){kind, residual}, time);
}

static void add_computing(composing *state, const pl_device_profile *profile, const pl_explained_op *op,
                          const pl_explained_time *time, uint32_t share) {
  pl_device_ticks taken = (pl_device_ticks)time->alone * share; /* what slows it down is a doubt of its own */
  const pl_doubt_of_one found =
      pl_doubt_of_kernel(state->residuals, profile, op->op, (pl_category)op->category, time->cost.source);
  doubt(state, found.kind, taken, found.residual);
}

/* A device may wait for a group that it is not in: any group of that family will do. */
static const pl_group_class *group_of(const pl_explanation *explanation, const pl_explained_op *op,
                                      const pl_explained_time *time) {
  if (time->group_class != PL_NONE) return &explanation->plan->group_classes[time->group_class];
  for (uint32_t g = 0; g < explanation->plan->n_group_classes; g++)
    if (explanation->plan->group_classes[g].family == op->family) return &explanation->plan->group_classes[g];
  return NULL;
}

static pl_code doubt_of(composing *state, const pl_explained_op *op, const pl_explained_time *time,
                        pl_doubt_of_one *found) {
  const pl_communication *own = &state->explanation->program->families[op->family].ops[op->family_op];
  const pl_group_class *group = group_of(state->explanation, op, time);
  return pl_doubt_of_collective(state->residuals, group != NULL ? group->channels : NULL, own->kind, own->size_bytes,
                                state->arena, found, state->error);
}

static pl_code add_communication(composing *state, const pl_explained_op *op, const pl_explained_time *time,
                                 uint32_t share) {
  pl_doubt_of_one found;
  PL_TRY(doubt_of(state, op, time, &found));
  doubt(state, found.kind, (pl_device_ticks)time->exposed * share, found.residual);
  return PL_OK;
}

/* Tensor collectives may be parts of passes (workloads/compile/pieces.h), and of what contention makes of a part in the
 * run only the device's sum is known. So the sum is divided among a device's tensor collectives as their times alone,
 * wherever they are: the same for fused and unfused runs. */
static pl_code add_tensor(composing *state, uint32_t class, uint32_t share) {
  const pl_explanation *explanation = state->explanation;
  const pl_explained_time *times = pl_explained_times(explanation, class);
  pl_device_ticks weighted[PL_DOUBT_COUNT] = {0}, all = 0;
  for (uint32_t i = 0; i < explanation->n_ops; i++) {
    if (!is_tensor(&explanation->ops[i]) || times[i].alone == 0) continue;
    pl_doubt_of_one found;
    PL_TRY(doubt_of(state, &explanation->ops[i], &times[i], &found));
    pl_device_ticks alone = (pl_device_ticks)times[i].alone;
    weighted[found.kind] += alone * (uint64_t)llrint(found.residual * 1e6);
    all += alone;
  }
  pl_ticks spent = explanation->spent[class * PL_CATEGORY_COUNT + PL_CATEGORY_TENSOR];
  for (int kind = 0; all > 0 && kind < PL_DOUBT_COUNT; kind++)
    state->doubts.sums[kind] += (pl_device_ticks)spent * share * (weighted[kind] / all);
  return PL_OK;
}

static pl_code add_class(composing *state, uint32_t class) {
  const pl_explanation *explanation = state->explanation;
  const pl_device_class *own = &explanation->plan->device_classes[class];
  const pl_device_profile *profile = pl_cluster_profile(explanation->cluster, own->device);
  const pl_explained_time *times = pl_explained_times(explanation, class);
  uint32_t share = own->multiplicity;
  pl_ticks computing = 0, parts = 0;
  for (uint32_t i = 0; i < explanation->n_ops; i++) {
    const pl_explained_op *op = &explanation->ops[i];
    if (times[i].exposed == 0 || is_tensor(op)) continue;
    if (op->family != PL_NONE) {
      PL_TRY(add_communication(state, op, &times[i], share));
      continue;
    }
    add_computing(state, profile, op, &times[i], share);
    if (!pl_category_is_communication((pl_category)op->category)) parts += times[i].alone;
  }
  PL_TRY(add_tensor(state, class, share));
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    if (!pl_category_is_communication((pl_category)category))
      computing += explanation->spent[class * PL_CATEGORY_COUNT + (uint32_t)category];
  if (computing > parts)
    doubt(state, PL_DOUBT_OVERLAP, (pl_device_ticks)(computing - parts) * share,
          state->residuals->half[PL_RESIDUAL_overlap]);
  state->doubts.busy += (pl_device_ticks)(explanation->makespan - explanation->idle[class]) * share;
  return PL_OK;
}

pl_code pl_interval_take(const pl_explanation *explanation, const pl_residuals *residuals, pl_arena *arena,
                         pl_interval *interval, pl_error *error) {
  composing state = {.explanation = explanation, .residuals = residuals, .arena = arena, .error = error};
  *interval = pl_interval_none();
  for (uint32_t class = 0; class < explanation->plan->n_device_classes; class ++)
    PL_TRY(add_class(&state, class));
  const pl_program *program = explanation->program;
  const pl_aspects aspects = pl_aspects_of(explanation->cluster, program->model, program->job, program->strategy);
  pl_doubts_compose(&state.doubts, residuals, &aspects, pl_ticks_to_s(explanation->makespan), interval);
  return PL_OK;
}
