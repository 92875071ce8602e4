/* The memory of a simulation: peaks of its devices, what the allocator holds beyond them, the device with the least
 * room.
 */
#include <math.h>
#include <string.h>

#include "workloads/memory/stage_memory.h"
#include "workloads/memory/stage_peak.h"
#include "workloads/run/launched_ahead.h"
#include "workloads/run/simulate_state.h"

/* Of the stage's devices the smallest. */
static double limit_of(const pl_simulation *state, int32_t stage) {
  double limit = INFINITY;
  for (uint32_t c = 0; c < state->plan.n_device_classes; c++) {
    const pl_device_class *class = &state->plan.device_classes[c];
    if (class->stage != stage) continue;
    limit = fmin(limit, pl_allocator_limit(state->cluster, &state->program, stage,
                                           pl_cluster_profile(state->cluster, class->device)));
  }
  return fmax(limit, 1); /* a device that is too small for its context has room for nothing */
}

/* Per stage; NULL where the framework's allocator holds nothing beyond the tensors. */
static pl_code replay_stages(pl_simulation *state, const pl_replayed_memory **replayed) {
  *replayed = NULL;
  if (pl_framework_or_ideal(state->job->framework)->memory.allocator == PL_ALLOCATOR_EXACT) return PL_OK;
  pl_replayed_memory *memory = PL_TAKE(state->arena, pl_replayed_memory, state->strategy->pp);
  if (memory == NULL) return pl_fail_memory(state->error, "the replay of the stages");
  for (int32_t s = 0; s < state->strategy->pp; s++)
    PL_TRY(pl_stage_replay(&state->program, s, limit_of(state, s), state->arena, &memory[s], state->error));
  *replayed = memory;
  return PL_OK;
}

/* Of a class of devices. */
static pl_code ahead_bytes(pl_simulation *state, uint32_t index, pl_let_go *let_go, double *bytes) {
  const pl_device_class *class = &state->plan.device_classes[index];
  pl_piece_context context = {.program = &state->program,
                              .plan = &state->plan,
                              .options = &state->compile,
                              .device = class,
                              .profile = pl_cluster_profile(state->cluster, class->device),
                              .arena = state->arena};
  *bytes = 0;
  if (!pl_framework_or_ideal(state->job->framework)->memory.records_streams) return PL_OK;
  PL_TRY(pl_block_cache_prices(state->options->blocks, state->model, state->program.blocks, context.profile,
                               state->arena, &context.prices, state->error));
  pl_block_scale scales[PL_MODEL_CLASSES_MAX][2];
  if (pl_block_scales_of(state->cluster, &state->program, &state->plan, class, scales)) context.scales = scales;
  *bytes = pl_launched_ahead_bytes(&context, let_go);
  return PL_OK;
}

/* What waits in the launch queue stands beside the tensors of the passes, as far as the device has room for it. */
static pl_code add_ahead(pl_simulation *state, uint32_t index, pl_let_go *let_go, pl_stage_memory *stage) {
  const pl_device_class *class = &state->plan.device_classes[index];
  double limit = pl_allocator_limit(state->cluster, &state->program, class->stage,
                                    pl_cluster_profile(state->cluster, class->device));
  double bytes;
  if (stage->activations <= 0) return PL_OK; /* the optimizer's step: no pass is under way */
  PL_TRY(ahead_bytes(state, index, let_go, &bytes));
  bytes = fmin(bytes, fmax(limit - stage->reserved, 0));
  stage->reserved += bytes;
  stage->device += bytes;
  return PL_OK;
}

/* The worst device of each stage is the one with the least room left. */
pl_code pl_simulation_report_memory(pl_simulation *state, pl_simulate_report *report) {
  pl_stage_memory *stages = PL_TAKE(state->arena, pl_stage_memory, state->strategy->pp);
  if (stages == NULL) return pl_fail_memory(state->error, "the memory of the stages");
  const pl_replayed_memory *replayed;
  PL_TRY(replay_stages(state, &replayed));
  int32_t worst = 0;
  uint32_t *fullest = PL_TAKE(state->arena, uint32_t, state->strategy->pp);
  if (fullest == NULL) return pl_fail_memory(state->error, "the memory of the stages");
  for (int32_t s = 0; s < state->strategy->pp; s++)
    stages[s].capacity = INFINITY; /* nothing is known yet; what is usable may be below 0 */
  for (uint32_t c = 0; c < state->plan.n_device_classes; c++) {
    const pl_device_class *class = &state->plan.device_classes[c];
    pl_resident_memory resident = pl_resident_memory_of(&state->program, class->stage);
    double peak = (double)state->result.peak_bytes[c];
    pl_held_memory held = pl_held_memory_of(state->cluster, &state->program, class->stage,
                                            pl_cluster_profile(state->cluster, class->device), peak,
                                            replayed == NULL ? NULL : &replayed[class->stage]);
    double capacity = held.usable;
    pl_stage_memory *stage = &stages[class->stage];
    if (stage->capacity - stage->peak <= capacity - peak) continue;
    double above = peak - (double)(int64_t)pl_resident_bytes(&resident), update = (double)llrint(resident.update);
    fullest[class->stage] = c;
    bool updates = above == update; /* the optimizer needs more than any pass did: no activation is there */
    *stage = (pl_stage_memory){.parameters = resident.parameters,
                               .gradients = resident.gradients + (updates ? resident.stepped : 0),
                               .optimizer = resident.optimizer,
                               .buffers = resident.buffers + (updates ? update - resident.stepped : 0),
                               .activations = updates ? 0 : above,
                               .peak = peak,
                               .reserved = held.allocator,
                               .device = held.device,
                               .capacity = capacity};
  }
  pl_let_go let_go = {.n_launches = {0}};
  bool held = replayed == NULL || !pl_framework_or_ideal(state->job->framework)->memory.replays_ahead;
  for (int32_t s = 0; s < state->strategy->pp && held; s++)
    PL_TRY(add_ahead(state, fullest[s], &let_go, &stages[s]));
  for (int32_t s = 1; s < state->strategy->pp; s++)
    if (stages[s].capacity - stages[s].peak < stages[worst].capacity - stages[worst].peak) worst = s;
  report->stages = stages;
  report->n_stages = state->strategy->pp;
  pl_result_row *row = &report->row;
  row->peak_mem_bytes = llrint(stages[worst].peak);
  row->reserved_mem_bytes = llrint(stages[worst].reserved);
  row->device_mem_bytes = llrint(stages[worst].device);
  row->mem_capacity_bytes = llrint(stages[worst].capacity);
  row->fits = stages[worst].peak <= stages[worst].capacity;
  row->peak_stage = worst;
  row->mem_parameters_bytes = llrint(stages[worst].parameters);
  row->mem_gradients_bytes = llrint(stages[worst].gradients);
  row->mem_optimizer_bytes = llrint(stages[worst].optimizer);
  row->mem_activations_bytes = llrint(stages[worst].activations);
  row->mem_buffers_bytes = llrint(stages[worst].buffers);
  return PL_OK;
}

pl_code pl_simulation_foresee_memory(pl_simulation *state, pl_simulate_report *report, bool *is_known) {
  const pl_simulate_options *options = state->options;
  *is_known = !state->chunked && options->streams == PL_STREAMS_IN_ORDER && options->executor == PL_EXECUTOR_ENGINE &&
              state->program.n_schedules == 1 && !pl_strategy_hides_tokens(state->strategy);
  if (!*is_known) return PL_OK;
  const pl_communication_plan *plan = &state->plan;
  int64_t *peaks = PL_TAKE(state->arena, int64_t, plan->n_device_classes);
  if (peaks == NULL) return pl_fail_memory(state->error, "the peaks of the devices");
  for (uint32_t c = 0; c < plan->n_device_classes; c++)
    peaks[c] = (int64_t)pl_stage_peak_bytes(&state->program, plan->device_classes[c].stage, true);
  state->result.peak_bytes = peaks;
  return pl_simulation_report_memory(state, report);
}
