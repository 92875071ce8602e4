/* What Megatron-LM's users are told to do, as AMP states it for its baseline (Li et al. 2022, section 4.1): every
 * microbatch size; tmp not above the devices of a node; of the degrees that fit those with the smallest tmp * pp;
 * tensor ranks next to each other, then data ranks (order tdp); layers by number. Degrees and microbatch sizes are
 * powers of two, as in AMP's experiments.
 *
 * What the paper does not have is set as a plain run has it: 1f1b, and of sp, zero and recompute the first that the
 * user's choices allow of "off", 0 and none; overlap if it may. Recomputation goes up one step for a microbatch size of
 * which nothing fits. That something fits is only known when it is simulated, so a round holds for each microbatch size
 * that is still open its next level of tmp * pp.
 */
#include <stdlib.h>

#include "search/method/method_space.h"
#include "search/method/methods.h"

enum { MOST_MBS = 32 };

/* One microbatch size: levels are tried in turn until something fits. */
typedef struct ladder {
  uint32_t first, count; /* its candidates in `order`, by (recompute, tmp * pp) */
  uint32_t next;         /* of these the first that is not proposed */
  bool closed;           /* something fits, or none is left */
} ladder;

typedef struct megatron {
  pl_space space;
  uint32_t *order, n_kept;
  ladder ladders[MOST_MBS];
  uint32_t n_ladders;
} megatron;

static bool is_power_of_two(int32_t n) {
  return (n & (n - 1)) == 0;
}

static uint32_t lowest_bit(uint32_t mask) {
  return mask & (~mask + 1);
}

/* The user's choices, narrowed to what the heuristic leaves open. */
static pl_space_choices narrow(const pl_search_problem *problem) {
  const pl_space_choices *given = problem->choices;
  pl_space_choices choices = *given;
  choices.schedules = given->schedules & 1u << PL_SCHEDULE_1F1B;
  if (choices.schedules == 0) choices.schedules = lowest_bit(given->schedules);
  choices.sp = pl_method_space_plain_sp(problem);
  if ((given->overlap & 2) != 0) choices.overlap = 2;
  if (pl_int_set_has(&given->zero, 0)) choices.zero = (pl_int_set){.n_ranges = 1};
  if ((given->recipes & 1u << PL_ASSIGN_UNIFORM) != 0) choices.recipes = 1u << PL_ASSIGN_UNIFORM;
  choices.n_orders = 1;
  return choices;
}

static int32_t smallest_node(const pl_cluster *cluster) {
  uint32_t smallest = UINT32_MAX;
  for (uint32_t n = 0; n < cluster->n_nodes; n++)
    if (cluster->nodes[n].n_devices < smallest) smallest = cluster->nodes[n].n_devices;
  return (int32_t)(smallest < INT32_MAX ? smallest : INT32_MAX);
}

static bool follows(const pl_candidate *c, int32_t most_tmp) {
  return c->tmp <= most_tmp && is_power_of_two(c->tmp) && is_power_of_two(c->pp) && is_power_of_two(c->dp) &&
         is_power_of_two(c->mbs);
}

static int level(const pl_candidate *a, const pl_candidate *b) {
  if (a->recompute != b->recompute) return a->recompute < b->recompute ? -1 : 1;
  int64_t left = (int64_t)a->tmp * a->pp, right = (int64_t)b->tmp * b->pp;
  return (left > right) - (left < right);
}

static int by_ladder(const void *left, const void *right, void *context) {
  const pl_space *space = context;
  uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
  const pl_candidate *a = &space->candidates[i], *b = &space->candidates[j];
  if (a->mbs != b->mbs) return a->mbs < b->mbs ? -1 : 1;
  int order = level(a, b);
  return order != 0 ? order : (i > j) - (i < j);
}

static void cut_ladders(megatron *own) {
  for (uint32_t i = 0; i < own->n_kept; i++) {
    const pl_candidate *c = &own->space.candidates[own->order[i]];
    bool starts = i == 0 || own->space.candidates[own->order[i - 1]].mbs != c->mbs;
    if (starts) {
      PL_ASSERT(own->n_ladders < MOST_MBS); /* powers of two */
      own->ladders[own->n_ladders++] = (ladder){.first = i};
    }
    own->ladders[own->n_ladders - 1].count++;
  }
}

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  megatron *own = PL_TAKE(arena, megatron, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  const pl_space_choices choices = narrow(problem);
  pl_search_problem narrowed = *problem;
  narrowed.choices = &choices;
  PL_TRY(pl_method_space_take(&narrowed, arena, &own->space, error));
  own->order = PL_TAKE(arena, uint32_t, own->space.n_candidates);
  if (own->order == NULL) return pl_fail_memory(error, "the search");
  int32_t most_tmp = smallest_node(problem->cluster);
  for (uint32_t i = 0; i < own->space.n_candidates; i++)
    if (follows(&own->space.candidates[i], most_tmp)) own->order[own->n_kept++] = i;
  qsort_r(own->order, own->n_kept, sizeof *own->order, by_ladder, &own->space);
  cut_ladders(own);
  if (own->n_kept > 0) return PL_OK;
  return pl_fail(
      error, PL_BAD_INPUT,
      "no candidate follows Megatron's heuristics: powers of two, and tmp at most %d, the devices of a node; "
      "choose another --method",
      most_tmp);
}

static void propose_level(megatron *own, ladder *l, uint32_t max, pl_proposal *proposals, uint32_t *n) {
  const pl_candidate *candidates = own->space.candidates;
  uint32_t start = l->next;
  while (l->next < l->count && *n < max) {
    uint32_t index = own->order[l->first + l->next];
    if (level(&candidates[index], &candidates[own->order[l->first + start]]) != 0) return;
    proposals[(*n)++] = pl_method_space_proposal(&own->space, index);
    l->next++;
  }
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  megatron *own = state;
  (void)error;
  *n = 0;
  for (uint32_t i = 0; i < own->n_ladders; i++)
    if (!own->ladders[i].closed) propose_level(own, &own->ladders[i], max, proposals, n);
  return PL_OK;
}

static void learn(void *state, const pl_proposal *proposal, const pl_result_row *row) {
  megatron *own = state;
  if (row->status != PL_RESULT_DONE) return;
  for (uint32_t i = 0; i < own->n_ladders; i++) {
    ladder *l = &own->ladders[i];
    if (own->space.candidates[own->order[l->first]].mbs == proposal->strategy.mbs) l->closed = true;
  }
}

static void account(const void *state, pl_search_account *account) {
  const megatron *own = state;
  account->enumerated = own->n_kept;
  account->space = &own->space;
}

const pl_method pl_method_megatron = {.name = "megatron",
                                      .description = "Megatron-LM's heuristics: smallest tmp * pp that fits",
                                      .open = open,
                                      .propose = propose,
                                      .learn = learn,
                                      .account = account};
