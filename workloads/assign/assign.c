/* See workloads/assign/assign.h. */
#include "workloads/assign/assign.h"

#include "workloads/assign/amp_assignment.h"
#include "workloads/assign/amp_cost.h"
#include "workloads/assign/stage_costs.h"

static pl_code cut_optimally(const pl_strategy *strategy, const pl_model *model, const pl_job *job,
                             const pl_cluster *cluster, const pl_simulate_options *options, pl_arena *arena,
                             int32_t *cut, pl_error *error) {
  const pl_collective_options collective = {
      .sharing = options->sharing, .algorithm = options->algorithm, .profile = options->collective_profile};
  pl_stage_costs costs;
  PL_TRY(pl_stage_costs_take(cluster, model, job, strategy, &collective, options->blocks, arena, &costs, error));
  pl_assignment found = {.boundary = cut};
  PL_TRY(pl_layer_assignment_solve(&costs.problem, arena, &found, error));
  if (found.feasible) return PL_OK;
  double missing_bytes, *room = PL_TAKE(arena, double, costs.problem.n_stages);
  if (room == NULL) return pl_fail_memory(error, "the layer assignment");
  PL_TRY(pl_layer_assignment_shortfall(&costs.problem, arena, &missing_bytes, error));
  for (int32_t i = 0; i < costs.problem.n_stages; i++)
    room[i] = costs.problem.memory_room_bytes[i] + missing_bytes;
  costs.problem.memory_room_bytes = room;
  PL_TRY(pl_layer_assignment_solve(&costs.problem, arena, &found, error));
  PL_ASSERT(found.feasible);
  return PL_OK;
}

static pl_code cut_as_amp(const pl_strategy *strategy, const pl_model *model, const pl_job *job,
                          const pl_cluster *cluster, pl_arena *arena, int32_t *cut, pl_error *error) {
  pl_amp_costs costs;
  PL_TRY(pl_amp_costs_take(cluster, model, job, strategy, arena, &costs, error));
  return pl_amp_assignment_solve(&costs.problem, arena, cut, NULL, error);
}

pl_code pl_assign(pl_strategy *strategy, const pl_model *model, const pl_job *job, const pl_cluster *cluster,
                  const pl_simulate_options *options, pl_arena *arena, pl_error *error) {
  if (strategy->recipe != PL_ASSIGN_OPTIMAL && strategy->recipe != PL_ASSIGN_AMP)
    return pl_strategy_assign_cached(strategy, model, job, cluster, options->blocks, arena, error);
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  PL_TRY(pl_strategy_check_chunks(strategy, model, error));
  int32_t *cut = PL_TAKE(arena, int32_t, n_chunks + 1);
  if (cut == NULL) return pl_fail_memory(error, "the layer assignment");
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  if (strategy->recipe == PL_ASSIGN_OPTIMAL) {
    PL_TRY(cut_optimally(strategy, model, job, cluster, options, arena, cut, error));
  } else {
    PL_TRY(cut_as_amp(strategy, model, job, cluster, arena, cut, error));
  }
  pl_arena_release_to(arena, scratch);
  for (int32_t c = 1; c < n_chunks; c++)
    cut[c] += PL_MODEL_BLOCKS_BEFORE_LAYERS;
  cut[n_chunks] = pl_model_n_blocks(model);
  strategy->counts_layers = true;
  strategy->boundary = cut;
  PL_ASSERT(pl_strategy_is_cut(strategy, model));
  return PL_OK;
}
