/* See search/method/method_space.h. */
#include "search/method/method_space.h"

#include <math.h>

#include "search/run/evaluate.h"

pl_code pl_method_space_take(const pl_search_problem *problem, pl_arena *arena, pl_space *space, pl_error *error) {
  pl_evaluation evaluation = {
      .cluster = problem->cluster, .model = problem->model, .job = problem->job, .options = problem->options};
  uint32_t n_devices = problem->cluster->n_devices;
  if (problem->trees != NULL) {
    pl_space_of_trees(problem->trees, problem->model, problem->job, n_devices, space);
    return PL_OK;
  }
  pl_space_choices choices = *problem->choices;
  choices.allow_idle = problem->allow_idle;
  PL_TRY(pl_evaluate_space(&evaluation, &choices, arena, space, error));
  return space->n_candidates == 0 ? pl_space_refuse_empty(space, n_devices, error) : PL_OK;
}

uint32_t pl_method_space_plain_sp(const pl_search_problem *problem) {
  uint32_t given = problem->choices->sp, wanted = problem->model->moe.n_experts > 0 ? 2 : 1;
  return (given & wanted) != 0 ? wanted : given;
}

pl_proposal pl_method_space_proposal(const pl_space *space, uint32_t index) {
  pl_proposal proposal = {.estimate_s = (double)NAN, .tree = index};
  if (space->trees == NULL) pl_space_strategy(space, index, &proposal.strategy);
  return proposal;
}
