/* See search/method/amp_candidate.h. */
#include "search/method/amp_candidate.h"

#include <string.h>

#include "search/method/method_space.h"
#include "workloads/assign/amp_cost.h"
#include "workloads/assign/layer_assignment.h"

static uint32_t lowest_bit(uint32_t mask) {
  return mask & (~mask + 1);
}

static int32_t smallest_node(const pl_cluster *cluster) {
  uint32_t smallest = INT32_MAX;
  for (uint32_t n = 0; n < cluster->n_nodes; n++)
    if (cluster->nodes[n].n_devices < smallest) smallest = cluster->nodes[n].n_devices;
  return (int32_t)smallest;
}

pl_space_choices pl_amp_choices(const pl_search_problem *problem) {
  const pl_space_choices *given = problem->choices;
  pl_space_choices choices = *given;
  if ((given->schedules & 1u << PL_SCHEDULE_1F1B) != 0) choices.schedules = 1u << PL_SCHEDULE_1F1B;
  choices.sp = pl_method_space_plain_sp(problem);
  choices.recomputes = lowest_bit(given->recomputes);
  if ((given->overlap & 2) != 0) choices.overlap = 2;
  if (pl_int_set_has(&given->zero, 0)) choices.zero = (pl_int_set){.n_ranges = 1};
  choices.recipes = 1u << PL_ASSIGN_AMP;
  choices.n_orders = 1;
  int64_t most_mbs = problem->job->gbs < PL_SPACE_MBS_LIMIT ? problem->job->gbs : PL_SPACE_MBS_LIMIT;
  if (given->mbs.n_ranges == 0)
    choices.mbs = (pl_int_set){.n_ranges = 1, .lowest = {1}, .highest = {(int32_t)most_mbs}};
  if (given->tmp.n_ranges == 0)
    choices.tmp = (pl_int_set){.n_ranges = 1, .lowest = {1}, .highest = {smallest_node(problem->cluster)}};
  return choices;
}

enum { MOST_STEPS = 8000000 };

/* Of like layers, which have some 4 L distinct tolerances. */
static double steps_of(const pl_amp_problem *amp) {
  double n = amp->n_layers;
  return amp->n_stages * n * n / 2 * 4 * n;
}

static pl_code assign(const pl_amp_problem *amp, bool dynamic, pl_arena *arena, int32_t *cut, pl_error *error) {
  pl_error refusal = PL_ERROR_INIT;
  pl_code code = dynamic && steps_of(amp) <= MOST_STEPS ? pl_amp_assignment_solve(amp, arena, cut, NULL, &refusal)
                                                        : PL_UNSUPPORTED;
  if (code == PL_OK) return PL_OK;
  if (code != PL_UNSUPPORTED) return pl_fail(error, code, "%s", refusal.message);
  const double **rows = PL_TAKE(arena, const double *, amp->n_stages);
  if (rows == NULL) return pl_fail_memory(error, "the layer assignment");
  for (int32_t i = 0; i < amp->n_stages; i++)
    rows[i] = amp->time_s;
  const pl_assignment_problem exact = {
      .n_layers = amp->n_layers, .n_stages = amp->n_stages, .rounds = amp->rounds, .time_s = rows, .cut_s = amp->cut_s};
  pl_assignment found = {.boundary = cut};
  return pl_layer_assignment_solve(&exact, arena, &found, error);
}

pl_code pl_amp_candidate_price(const pl_search_problem *problem, pl_strategy *strategy, bool dynamic, pl_arena *arena,
                               double *estimate_s, pl_error *error) {
  int32_t n_chunks = pl_strategy_n_chunks(strategy), *cut = PL_TAKE(arena, int32_t, n_chunks + 1);
  if (cut == NULL) return pl_fail_memory(error, "the layer assignment");
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  pl_amp_costs costs;
  PL_TRY(pl_amp_costs_take(problem->cluster, problem->model, problem->job, strategy, arena, &costs, error));
  PL_TRY(assign(&costs.problem, dynamic, arena, cut, error));
  *estimate_s = pl_amp_costs_time(&costs, cut);
  pl_arena_release_to(arena, scratch);
  for (int32_t c = 1; c < n_chunks; c++)
    cut[c] += PL_MODEL_BLOCKS_BEFORE_LAYERS;
  cut[n_chunks] = pl_model_n_blocks(problem->model);
  strategy->counts_layers = true;
  strategy->boundary = cut;
  return PL_OK;
}
