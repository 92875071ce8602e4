/* See workloads/assign/amp_assignment.h.
 *
 * cost[j][b][m] is the least of rounds * max(0, max t - m) + sum t + sum e over the assignments of the first b layers
 * to stages 0 .. j; with the last stage [a, b) of time t it is (equation 8)
 *
 *   cost[j-1][a][max(t, m)] + rounds * max(0, t - m) + t + e_{j-1}(a)
 *
 * and cost[k-1][L][0] is the answer. Tolerances are indices into the sorted times, so max(t, m) is a maximum of
 * indices; the row of one (j, b) is filled for all m at once. Kept whole: the starts, 2 bytes a cell. Costs are kept
 * for two j.
 */
#include "workloads/assign/amp_assignment.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/order.h"

enum { MOST_CELLS = 1 << 27 };

/* Times that differ by no more than rounding are one: like layers have some 3 L times, not L^2 / 2. */
static const double SAME = 1e-12;

typedef struct table {
  const pl_amp_problem *problem;
  double *tolerance; /* sorted, distinct, from 0 */
  uint32_t n_tolerances;
  uint32_t *rank;        /* [n_layers + 1][n_layers + 1]: of the time of layers a .. b-1 */
  double *cost, *before; /* [n_layers + 1][n_tolerances]: up to this stage, and up to the one before */
  double *weighed;       /* n_tolerances: what is compared */
  int16_t *start;        /* [n_stages][n_layers + 1][n_tolerances] */
  uint64_t n_steps;
} table;

static double time_of(const pl_amp_problem *problem, int32_t a, int32_t b) {
  return problem->time_s[b] - problem->time_s[a];
}

/* The last tolerance that is not above the time: the one that stands for it. */
static uint32_t rank_of(const table *t, double time) {
  uint32_t low = 0, high = t->n_tolerances - 1;
  while (low < high) {
    uint32_t m = low + (high - low + 1) / 2;
    if (t->tolerance[m] <= time)
      low = m;
    else
      high = m - 1;
  }
  return low;
}

static pl_code list_tolerances(table *t, pl_arena *arena, pl_error *error) {
  int32_t n = t->problem->n_layers;
  size_t width = (size_t)n + 1, room = width * (width - 1) / 2 + 1, found = 0;
  t->tolerance = PL_TAKE(arena, double, room);
  t->rank = PL_TAKE(arena, uint32_t, width * width);
  if (arena->failed) return pl_fail_memory(error, "AMP's layer assignment");
  t->tolerance[found++] = 0;
  for (int32_t a = 0; a < n; a++)
    for (int32_t b = a + 1; b <= n; b++)
      t->tolerance[found++] = time_of(t->problem, a, b);
  qsort(t->tolerance, found, sizeof *t->tolerance, pl_by_double);
  for (size_t i = 0; i < found; i++)
    if (i == 0 || t->tolerance[i] > t->tolerance[t->n_tolerances - 1] * (1 + SAME))
      t->tolerance[t->n_tolerances++] = t->tolerance[i];
  for (int32_t a = 0; a < n; a++)
    for (int32_t b = a + 1; b <= n; b++)
      t->rank[(size_t)a * width + (size_t)b] = rank_of(t, time_of(t->problem, a, b));
  return PL_OK;
}

/* As many tolerances as layers at least, for like layers. */
static pl_code check_size(const table *t, uint32_t n_tolerances, pl_error *error) {
  const size_t rows = (size_t)t->problem->n_layers + 1, n_stages = (size_t)t->problem->n_stages;
  if (rows < INT16_MAX && rows * n_tolerances <= MOST_CELLS / n_stages) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "AMP's dynamic program over %d layers, %d stages and %" PRIu32
                 " distinct times needs more than %d cells; assign=optimal finds an assignment that is at least as "
                 "good",
                 t->problem->n_layers, t->problem->n_stages, n_tolerances, MOST_CELLS);
}

static pl_code take_cells(table *t, pl_arena *arena, pl_error *error) {
  size_t rows = (size_t)t->problem->n_layers + 1, cells = rows * t->n_tolerances;
  PL_TRY(check_size(t, t->n_tolerances, error));
  t->cost = PL_TAKE(arena, double, cells);
  t->before = PL_TAKE(arena, double, cells);
  t->weighed = PL_TAKE(arena, double, t->n_tolerances);
  t->start = PL_TAKE(arena, int16_t, cells * (size_t)t->problem->n_stages);
  return arena->failed ? pl_fail_memory(error, "AMP's layer assignment") : PL_OK;
}

static void fill_first(table *t) {
  const pl_amp_problem *problem = t->problem;
  for (int32_t b = 0; b <= problem->n_layers; b++) {
    double time = time_of(problem, 0, b), *cost = t->cost + (size_t)b * t->n_tolerances;
    for (uint32_t m = 0; m < t->n_tolerances; m++)
      cost[m] = b == 0 ? INFINITY : problem->rounds * fmax(0, time - t->tolerance[m]) + time;
  }
}

/* Weighs the last stage [a, b) of index `stage` for every tolerance. */
static void weigh(table *t, int32_t stage, int32_t a, int32_t b) {
  const pl_amp_problem *problem = t->problem;
  size_t n = t->n_tolerances, width = (size_t)problem->n_layers + 1;
  uint32_t rank = t->rank[(size_t)a * width + (size_t)b];
  double time = time_of(problem, a, b), cut = problem->cut_s != NULL ? problem->cut_s[stage - 1][a] : 0;
  const double *before = t->before + (size_t)a * n;
  double *cost = t->cost + (size_t)b * n;
  int16_t *start = t->start + ((size_t)stage * width + (size_t)b) * n;
  for (uint32_t m = 0; m < n; m++) {
    double kept = before[m > rank ? m : rank] + problem->rounds * fmax(0, time - t->tolerance[m]) + time;
    if (!(kept + cut < t->weighed[m])) continue;
    t->weighed[m] = kept + cut;
    cost[m] = problem->forgets_cuts ? kept : kept + cut;
    start[m] = (int16_t)a;
  }
  t->n_steps += n;
}

static void fill_next(table *t, int32_t stage) {
  size_t n = t->n_tolerances;
  double *swap = t->before;
  t->before = t->cost;
  t->cost = swap;
  for (int32_t b = 0; b <= t->problem->n_layers; b++) {
    for (size_t m = 0; m < n; m++)
      t->weighed[m] = t->cost[(size_t)b * n + m] = INFINITY;
    for (int32_t a = stage; a < b; a++)
      weigh(t, stage, a, b);
  }
}

static void trace_back(const table *t, int32_t *boundary) {
  size_t width = (size_t)t->problem->n_layers + 1, n = t->n_tolerances;
  uint32_t m = 0;
  int32_t b = t->problem->n_layers;
  boundary[t->problem->n_stages] = b;
  for (int32_t stage = t->problem->n_stages - 1; stage > 0; stage--) {
    int32_t a = t->start[((size_t)stage * width + (size_t)b) * n + m];
    uint32_t rank = t->rank[(size_t)a * width + (size_t)b];
    if (rank > m) m = rank;
    boundary[stage] = b = a;
  }
  boundary[0] = 0;
}

pl_code pl_amp_assignment_solve(const pl_amp_problem *problem, pl_arena *arena, int32_t *boundary, uint64_t *n_steps,
                                pl_error *error) {
  PL_ASSERT(problem->n_stages >= 1 && problem->n_stages <= problem->n_layers);
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  table t = {.problem = problem};
  PL_TRY(check_size(&t, (uint32_t)problem->n_layers, error));
  PL_TRY(list_tolerances(&t, arena, error));
  PL_TRY(take_cells(&t, arena, error));
  fill_first(&t);
  for (int32_t stage = 1; stage < problem->n_stages; stage++)
    fill_next(&t, stage);
  trace_back(&t, boundary);
  if (n_steps != NULL) *n_steps = t.n_steps;
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}
