/* See workloads/assign/layer_assignment.h. Branch and bound over the two maxima of the objective.
 *
 * Write T for a limit of the stages' times, S for one of their synchronisation, F(T, S) for the least sum of stage
 * times and cuts among the assignments that keep to both and to the memory: workloads/assign/assignment_sum.h finds it
 * in one sweep, O(stages * layers). The optimum is min over T, S of rounds * T + S + F(T, S), and F does not grow with
 * T or S.
 *
 * A box holds the assignments with period_low <= max t <= period_high and sync_low <= max s <= sync_high. All of them
 * cost at least rounds * period_low + sync_low + F(period_high, sync_high): the box's bound. The assignment that
 * attains F is a real one, with maxima (period_s, sync_s) of its own: it may become the best so far. Boxes are taken in
 * the order of their bounds.
 *
 *   done     when the smallest bound is not below the best: no box holds a better assignment, so the best is optimal.
 *   tighten  what is better than the best has max t < (best - F - sync_low) / rounds and max s < best - F - rounds *
 *            period_low. If the box's own assignment breaks one of these, F is found anew under them.
 *   split    else, in the dimension that contributes more to the gap between the bound and the box's own assignment,
 *            at the middle m: those with max t <= m, for which F is found anew; and the others, whose F stands and
 * whose period_low becomes the smallest time above m that any stage can have.
 *
 * Every assignment of a box is in one of its parts, and no part is dropped unless its bound is not below the best:
 * hence exact. A split separates at least one value of t or s that a stage can have from another, of which there are at
 * most stages * layers^2 / 2 each: hence finite. In practice the gap halves with each split.
 *
 * Rejected: AMP's table over every (layer, stage, limit), O(stages * layers^4), which cannot hold prices per stage or
 * the second maximum. A sweep over all limits T with the sliding minimum, O(stages^2 * layers^3) with prices per stage.
 * A Pareto set of (sum, max t, max s) per stage and layer: exact too, but on random prices the sets held thousands.
 */
#include "workloads/assign/layer_assignment.h"

#include <math.h>
#include <string.h>

#include "workloads/assign/assignment_sum.h"

typedef struct box {
  double bound;
  double period_low, period_high, sync_low, sync_high;
  double sum_s, period_s, sync_s; /* of the assignment with the least sum in the box */
} box;

typedef struct solving {
  const pl_assignment_problem *problem;
  pl_arena *arena;
  pl_assignment *found;
  pl_assignment_sum sum;
  int32_t *trial;
  box *heap; /* smallest bound first */
  size_t n_boxes;
  uint32_t room;
} solving;

/* ---- the heap ---- */

static pl_code push(solving *s, const box *new, pl_error *error) {
  box *heap = pl_arena_grown(s->arena, s->heap, s->n_boxes, 1, sizeof *heap, &s->room);
  if (heap == NULL) return pl_fail_memory(error, "the layer assignment");
  s->heap = heap;
  size_t i = s->n_boxes++;
  while (i > 0 && s->heap[(i - 1) / 2].bound > new->bound) {
    s->heap[i] = s->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  s->heap[i] = *new;
  return PL_OK;
}

static box pop(solving *s) {
  box top = s->heap[0], last = s->heap[--s->n_boxes];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < s->n_boxes; i = child) {
    if (child + 1 < s->n_boxes && s->heap[child + 1].bound < s->heap[child].bound) child++;
    if (!(s->heap[child].bound < last.bound)) break;
    s->heap[i] = s->heap[child];
  }
  if (s->n_boxes > 0) s->heap[i] = last;
  return top;
}

/* ---- values that a maximum can have ---- */

typedef double value_of(const pl_assignment_problem *problem, int32_t stage, int32_t a, int32_t b);

static double stage_time_s(const pl_assignment_problem *problem, int32_t stage, int32_t a, int32_t b) {
  return problem->time_s[stage][b] - problem->time_s[stage][a];
}

/* Smallest value of some layers on some stage that is above `limit`: O(stages * layers), since the first end that
 * exceeds it does not move back when the start moves on. */
static double next_above(const pl_assignment_problem *problem, value_of *value, double limit) {
  double next = INFINITY;
  for (int32_t i = 0; i < problem->n_stages; i++)
    for (int32_t a = 0, b = 1; a < problem->n_layers; a++) {
      if (b <= a) b = a + 1;
      while (b <= problem->n_layers && value(problem, i, a, b) <= limit)
        b++;
      if (b > problem->n_layers) break; /* later starts reach no further */
      next = fmin(next, value(problem, i, a, b));
    }
  return next;
}

/* Some stage runs at least the mean of what the layers take on the devices that are fastest for each. */
static double least_stage_s(const pl_assignment_problem *problem) {
  double total = 0, largest = 0;
  for (int32_t layer = 0; layer < problem->n_layers; layer++) {
    double least = INFINITY;
    for (int32_t i = 0; i < problem->n_stages; i++)
      least = fmin(least, problem->time_s[i][layer + 1] - problem->time_s[i][layer]);
    total += least;
    largest = fmax(largest, least);
  }
  return fmax(largest, total / problem->n_stages * (1 - 1e-12)) * (1 - 1e-12);
}

/* ---- boxes ---- */

void pl_layer_assignment_price(const pl_assignment_problem *problem, pl_assignment *assignment) {
  const int32_t *boundary = assignment->boundary;
  assignment->period_s = assignment->largest_sync_s = assignment->sum_s = 0;
  for (int32_t i = problem->n_stages; i-- > 0;) {
    int32_t a = boundary[i], b = boundary[i + 1];
    double time_s = stage_time_s(problem, i, a, b);
    assignment->sum_s += time_s + pl_assignment_cut_s(problem, i, b);
    assignment->period_s = fmax(assignment->period_s, time_s);
    if (problem->in_flight != NULL)
      assignment->period_s = fmax(assignment->period_s, assignment->sum_s / problem->in_flight[i]);
    assignment->largest_sync_s = fmax(assignment->largest_sync_s, pl_assignment_sync_s(problem, i, a, b));
  }
  assignment->time_s = problem->rounds * assignment->period_s + assignment->largest_sync_s + assignment->sum_s;
}

static double bound_of(const pl_assignment_problem *problem, const box *part) {
  return problem->rounds * part->period_low + part->sync_low + part->sum_s;
}

static void keep_if_better(solving *s, const pl_assignment *trial) {
  if (s->found->feasible && !(trial->time_s < s->found->time_s)) return;
  uint64_t n_solves = s->found->n_solves;
  int32_t *boundary = s->found->boundary;
  memcpy(boundary, trial->boundary, (size_t)(s->problem->n_stages + 1) * sizeof *boundary);
  *s->found = *trial;
  s->found->boundary = boundary;
  s->found->n_solves = n_solves;
  s->found->feasible = true;
}

static bool may_be_better(const solving *s, const box *part) {
  return part->bound < s->found->time_s * (s->problem->in_flight != NULL ? 1 - 1e-12 : 1);
}

static pl_code push_if_useful(solving *s, box *part, pl_error *error) {
  part->bound = bound_of(s->problem, part);
  return may_be_better(s, part) ? push(s, part, error) : PL_OK;
}

/* Solves the inner problem of a box, and keeps the box if it may hold something better. */
static pl_code visit(solving *s, box *part, pl_error *error) {
  pl_assignment trial = {.boundary = s->trial};
  s->found->n_solves++;
  if (!pl_assignment_sum_solve(&s->sum, part->period_high, part->sync_high, trial.boundary)) return PL_OK;
  pl_layer_assignment_price(s->problem, &trial);
  part->sum_s = trial.sum_s;
  part->period_s = trial.period_s;
  part->sync_s = trial.largest_sync_s;
  keep_if_better(s, &trial);
  return push_if_useful(s, part, error);
}

static double middle(double low, double high) {
  double m = low + (high - low) / 2;
  return m < high ? m : low;
}

static pl_code split_period(solving *s, const box *part, pl_error *error) {
  box below = *part, above = *part;
  below.period_high = middle(part->period_low, part->period_s);
  above.period_low = s->problem->in_flight != NULL ? nextafter(below.period_high, INFINITY)
                                                   : next_above(s->problem, stage_time_s, below.period_high);
  if (above.period_low <= above.period_high) PL_TRY(push_if_useful(s, &above, error));
  return visit(s, &below, error);
}

static pl_code split_sync(solving *s, const box *part, pl_error *error) {
  box below = *part, above = *part;
  below.sync_high = middle(part->sync_low, part->sync_s);
  above.sync_low = next_above(s->problem, pl_assignment_sync_s, below.sync_high);
  PL_TRY(push_if_useful(s, &above, error));
  return visit(s, &below, error);
}

/* round trips are kept to and measured by two sums that may differ in their last bits */
static double slip_of(const pl_assignment_problem *problem) {
  return problem->in_flight != NULL ? 1 + 1e-12 : 1;
}

static pl_code refine(solving *s, box *part, pl_error *error) {
  double rounds = s->problem->rounds, best = s->found->time_s;
  double period_cap = rounds > 0 ? (best - part->sum_s - part->sync_low) / rounds : INFINITY;
  double sync_cap = best - part->sum_s - rounds * part->period_low;
  bool period_caps = part->period_s > period_cap * slip_of(s->problem) && part->period_high > period_cap;
  if (period_caps || part->sync_s > sync_cap) {
    part->period_high = fmin(part->period_high, period_cap);
    part->sync_high = fmin(part->sync_high, sync_cap);
    return visit(s, part, error);
  }
  part->period_s = fmin(part->period_s, part->period_high); /* by the last bits it may be above */
  double period_gap = rounds * (part->period_s - part->period_low), sync_gap = part->sync_s - part->sync_low;
  if (!(period_gap > 0) && !(sync_gap > 0)) return PL_OK;
  return period_gap >= sync_gap ? split_period(s, part, error) : split_sync(s, part, error);
}

static pl_code search_boxes(solving *s, pl_error *error) {
  box all = {.period_low = least_stage_s(s->problem), .period_high = INFINITY, .sync_high = INFINITY};
  PL_TRY(visit(s, &all, error));
  while (s->n_boxes > 0) {
    box part = pop(s);
    if (!may_be_better(s, &part)) return PL_OK;
    PL_TRY(refine(s, &part, error));
  }
  return PL_OK;
}

/* Of the assignments as good as the best, the evenest. */
static pl_code even_out(solving *s, pl_error *error) {
  pl_assignment *found = s->found;
  pl_assignment trial = {.boundary = s->trial};
  double *squares = PL_TAKE(s->arena, double, 2 * ((size_t)s->problem->n_layers + 1));
  if (squares == NULL) return pl_fail_memory(error, "the layer assignment");
  if (!pl_assignment_sum_even(&s->sum, found->period_s * slip_of(s->problem), found->largest_sync_s, squares, s->trial))
    return PL_OK;
  pl_layer_assignment_price(s->problem, &trial);
  if (trial.time_s > found->time_s * (1 + 1e-11)) return PL_OK;
  found->time_s = INFINITY;
  keep_if_better(s, &trial);
  return PL_OK;
}

pl_code pl_layer_assignment_solve(const pl_assignment_problem *problem, pl_arena *arena, pl_assignment *assignment,
                                  pl_error *error) {
  PL_ASSERT(problem->n_stages >= 1 && problem->n_stages <= problem->n_layers && problem->rounds >= 0);
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  assignment->feasible = false;
  assignment->n_solves = 0;
  assignment->time_s = INFINITY;
  solving s = {.problem = problem, .arena = arena, .found = assignment};
  PL_TRY(pl_assignment_sum_take(problem, arena, &s.sum, error));
  s.trial = PL_TAKE(arena, int32_t, problem->n_stages + 1);
  if (s.trial == NULL) return pl_fail_memory(error, "the layer assignment");
  PL_TRY(search_boxes(&s, error));
  if (assignment->feasible) PL_TRY(even_out(&s, error));
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}

pl_code pl_layer_assignment_shortfall(const pl_assignment_problem *problem, pl_arena *arena, double *bytes,
                                      pl_error *error) {
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  pl_assignment_sum sum;
  PL_TRY(pl_assignment_sum_take(problem, arena, &sum, error));
  int32_t *trial = PL_TAKE(arena, int32_t, problem->n_stages + 1);
  if (trial == NULL) return pl_fail_memory(error, "the layer assignment");
  *bytes = 0;
  if (!pl_assignment_sum_solve(&sum, INFINITY, INFINITY, trial)) {
    double low = 0, high = 0; /* feasible with `high`: every stage could hold all layers */
    for (int32_t i = 0; i < problem->n_stages; i++)
      high = fmax(high, problem->memory_bytes[i][problem->n_layers] - problem->memory_room_bytes[i]);
    while (high - low > fmax(1, high * 1e-9)) {
      double extra = low + (high - low) / 2;
      pl_assignment_sum_widen(&sum, extra);
      *(pl_assignment_sum_solve(&sum, INFINITY, INFINITY, trial) ? &high : &low) = extra;
    }
    /* room + (memory - room) may round to less than the memory */
    for (pl_assignment_sum_widen(&sum, high); !pl_assignment_sum_solve(&sum, INFINITY, INFINITY, trial);
         pl_assignment_sum_widen(&sum, high))
      high += fmax(1, high * 1e-9);
    *bytes = high;
  }
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}
