/* See workloads/assign/assignment_sum.h.
 *
 * best_i(a) = min over b of T_i(b) - T_i(a) + e_i(b) + best_{i+1}(b), T the prefix sums: the sum of stages i .. k-1
 * when stage i starts at layer a. Time, synchronisation and memory of layers a .. b-1 do not grow when a does and do
 * not shrink when b does, so the ends that are allowed for a start a are a window [a + 1, last(a)] whose upper end
 * never moves on when a moves back: a sliding minimum of best + e + T, one push and at most one pop per layer,
 * O(layers) per stage. Without the window (all a, all b) it would be O(layers^2).
 *
 * From the last stage to the first because of the round trip: stage i has n_i microbatches under way, so its period is
 * at least best_i(a) / n_i. That is a limit on the very sum that is kept, and the least sum keeps to it if any does.
 */
#include "workloads/assign/assignment_sum.h"

#include <math.h>
#include <string.h>

static size_t cell(const pl_assignment_problem *problem, int32_t stage, int32_t layer) {
  return (size_t)stage * (size_t)(problem->n_layers + 1) + (size_t)layer;
}

void pl_assignment_sum_widen(pl_assignment_sum *sum, double extra_bytes) {
  const pl_assignment_problem *problem = sum->problem;
  int32_t n = problem->n_layers;
  for (int32_t i = 0; i < problem->n_stages; i++)
    for (int32_t a = n, b = n; a >= 0; a--) {
      if (problem->memory_bytes != NULL) {
        const double *memory = problem->memory_bytes[i];
        double room = problem->memory_room_bytes[i] + extra_bytes;
        while (b > a && memory[b] - memory[a] > room)
          b--;
      }
      sum->last[cell(problem, i, a)] = b;
    }
}

pl_code pl_assignment_sum_take(const pl_assignment_problem *problem, pl_arena *arena, pl_assignment_sum *sum,
                               pl_error *error) {
  size_t width = (size_t)problem->n_layers + 1, cells = (size_t)problem->n_stages * width;
  *sum = (pl_assignment_sum){.problem = problem,
                             .last = PL_TAKE(arena, int32_t, cells),
                             .end = PL_TAKE(arena, int32_t, cells),
                             .best = PL_TAKE(arena, double, cells + width),
                             .key = PL_TAKE(arena, double, width),
                             .queue = PL_TAKE(arena, int32_t, width)};
  if (arena->failed) return pl_fail_memory(error, "the layer assignment");
  pl_assignment_sum_widen(sum, 0);
  return PL_OK;
}

/* Starts that leave a layer for this stage and each behind it; those before it have one each from `stage` on. */
static int32_t last_start(const pl_assignment_problem *problem, int32_t stage) {
  return problem->n_layers - (problem->n_stages - stage);
}

static bool is_within(const pl_assignment_problem *problem, int32_t stage, int32_t a, int32_t b, double period_limit_s,
                      double sync_limit_s) {
  return problem->time_s[stage][b] - problem->time_s[stage][a] <= period_limit_s &&
         pl_assignment_sync_s(problem, stage, a, b) <= sync_limit_s;
}

/* The largest end that is allowed for a start, given that of the start behind it. */
static int32_t retreat(const pl_assignment_sum *sum, int32_t stage, int32_t a, int32_t last, double period_limit_s,
                       double sync_limit_s) {
  int32_t by_memory = sum->last[cell(sum->problem, stage, a)];
  if (last > by_memory) last = by_memory;
  while (last > a && !is_within(sum->problem, stage, a, last, period_limit_s, sync_limit_s))
    last--;
  return last;
}

static void extend(pl_assignment_sum *sum, int32_t stage, double period_limit_s, double sync_limit_s) {
  const pl_assignment_problem *problem = sum->problem;
  const double *time = problem->time_s[stage], *next = sum->best + cell(problem, stage + 1, 0);
  double *best = sum->best + cell(problem, stage, 0), *key = sum->key;
  double trip_limit_s = problem->in_flight != NULL ? problem->in_flight[stage] * period_limit_s : INFINITY;
  int32_t *queue = sum->queue, *end = sum->end + cell(problem, stage, 0), head = 0, tail = 0, last = problem->n_layers;
  for (int32_t a = 0; a <= problem->n_layers; a++)
    best[a] = INFINITY;
  for (int32_t b = problem->n_layers, a = b - 1; a >= stage; a--) {
    for (; b > a; b--) {
      double value = next[b] + pl_assignment_cut_s(problem, stage, b) + time[b];
      if (!(value < INFINITY)) continue;
      while (tail > head && key[tail - 1] >= value)
        tail--;
      queue[tail] = b;
      key[tail++] = value;
    }
    if (a > last_start(problem, stage)) continue;
    last = retreat(sum, stage, a, last, period_limit_s, sync_limit_s);
    while (head < tail && queue[head] > last)
      head++;
    if (head == tail || key[head] - time[a] > trip_limit_s) continue;
    best[a] = key[head] - time[a];
    end[a] = queue[head];
  }
}

static void follow(const pl_assignment_sum *sum, int32_t *boundary) {
  boundary[0] = 0;
  for (int32_t i = 0; i < sum->problem->n_stages; i++)
    boundary[i + 1] = sum->end[cell(sum->problem, i, boundary[i])];
}

bool pl_assignment_sum_solve(pl_assignment_sum *sum, double period_limit_s, double sync_limit_s, int32_t *boundary) {
  const pl_assignment_problem *problem = sum->problem;
  int32_t n = problem->n_layers, k = problem->n_stages;
  for (int32_t a = 0; a <= n; a++)
    sum->best[cell(problem, k, a)] = a == n ? 0 : INFINITY;
  for (int32_t i = k; i-- > 0;)
    extend(sum, i, period_limit_s, sync_limit_s);
  if (!(sum->best[0] < INFINITY)) return false;
  follow(sum, boundary);
  return true;
}

/* ---- evenly ---- */

/* Every part of an assignment with the least sum that goes from a start to the end has itself the least sum from there:
 * so it is enough to follow `best`. squares, squares_behind: n_layers + 1, of this stage on and of the next on. */
static void choose_even(pl_assignment_sum *sum, int32_t stage, double period_limit_s, double sync_limit_s,
                        const double *squares_behind, double *squares) {
  const pl_assignment_problem *problem = sum->problem;
  const double *time = problem->time_s[stage], *next = sum->best + cell(problem, stage + 1, 0);
  const double *best = sum->best + cell(problem, stage, 0);
  int32_t *end = sum->end + cell(problem, stage, 0), last = problem->n_layers;
  for (int32_t a = 0; a <= problem->n_layers; a++)
    squares[a] = INFINITY;
  for (int32_t a = last_start(problem, stage); a >= stage; a--) {
    last = retreat(sum, stage, a, last, period_limit_s, sync_limit_s);
    double least_s = best[a] + 1e-12 * sum->best[0];
    for (int32_t b = a + 1; b <= last && best[a] < INFINITY; b++) {
      double time_s = time[b] - time[a], own = time_s * time_s + squares_behind[b];
      if (time_s + pl_assignment_cut_s(problem, stage, b) + next[b] > least_s || !(own < squares[a])) continue;
      squares[a] = own;
      end[a] = b;
    }
  }
}

bool pl_assignment_sum_even(pl_assignment_sum *sum, double period_limit_s, double sync_limit_s, double *squares,
                            int32_t *boundary) {
  const pl_assignment_problem *problem = sum->problem;
  int32_t n = problem->n_layers;
  if (!pl_assignment_sum_solve(sum, period_limit_s, sync_limit_s, boundary)) return false;
  double *behind = squares, *own = squares + n + 1;
  for (int32_t a = 0; a <= n; a++)
    behind[a] = a == n ? 0 : INFINITY;
  for (int32_t i = problem->n_stages; i-- > 0;) {
    choose_even(sum, i, period_limit_s, sync_limit_s, behind, own);
    double *swap = behind;
    behind = own;
    own = swap;
  }
  follow(sum, boundary);
  return true;
}
