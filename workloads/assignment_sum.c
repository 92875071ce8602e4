/* See workloads/assignment_sum.h.
 *
 * best_i(b) = min over a of best_{i-1}(a) + e_{i-1}(a) + T_i(b) - T_i(a), T the prefix sums. Time, synchronisation and
 * memory of layers a .. b-1 do not grow when a does and do not shrink when b does, so the starts that are allowed for
 * an end b are a window [first(b), b-1] whose lower end never moves back: a sliding minimum of best + e - T, one push
 * and at most one pop per layer, O(layers) per stage. Without the window (all a, all b) it would be O(layers^2).
 */
#include "workloads/assignment_sum.h"

#include <math.h>
#include <string.h>

void pl_assignment_sum_widen(pl_assignment_sum *sum, double extra_bytes) {
  const pl_assignment_problem *problem = sum->problem;
  int32_t n = problem->n_layers;
  for (int32_t i = 0; i < problem->n_stages && problem->memory_bytes != NULL; i++) {
    const double *memory = problem->memory_bytes[i];
    double room = problem->memory_room_bytes[i] + extra_bytes;
    int32_t *first = sum->first + (size_t)i * (size_t)(n + 1), a = 0;
    for (int32_t b = 0; b <= n; b++) {
      while (a < b && memory[b] - memory[a] > room)
        a++;
      first[b] = a;
    }
  }
}

pl_code pl_assignment_sum_take(const pl_assignment_problem *problem, pl_arena *arena, pl_assignment_sum *sum,
                               pl_error *error) {
  size_t width = (size_t)problem->n_layers + 1, cells = (size_t)problem->n_stages * width;
  *sum = (pl_assignment_sum){.problem = problem,
                             .first = PL_TAKE(arena, int32_t, cells),
                             .start = PL_TAKE(arena, int32_t, cells),
                             .best = PL_TAKE(arena, double, width),
                             .previous = PL_TAKE(arena, double, width),
                             .key = PL_TAKE(arena, double, width),
                             .queue = PL_TAKE(arena, int32_t, width)};
  if (arena->failed) return pl_fail_memory(error, "the layer assignment");
  pl_assignment_sum_widen(sum, 0);
  return PL_OK;
}

/* Ends that leave a layer for each stage before and behind. */
static int32_t last_end(const pl_assignment_problem *problem, int32_t stage) {
  return problem->n_layers - (problem->n_stages - 1 - stage);
}

static bool is_within(const pl_assignment_problem *problem, int32_t stage, int32_t a, int32_t b, double stage_limit_s,
                      double sync_limit_s) {
  return problem->time_s[stage][b] - problem->time_s[stage][a] <= stage_limit_s &&
         pl_assignment_sync_s(problem, stage, a, b) <= sync_limit_s;
}

/* From previous, over the ends of stages before, to best, over those of `stage`. */
static void extend(pl_assignment_sum *sum, int32_t stage, double stage_limit_s, double sync_limit_s) {
  const pl_assignment_problem *problem = sum->problem;
  const double *time = problem->time_s[stage];
  double *best = sum->best, *previous = sum->previous, *key = sum->key;
  int32_t *queue = sum->queue, n = problem->n_layers, head = 0, tail = 0, first = stage;
  size_t row = (size_t)stage * (size_t)(n + 1);
  for (int32_t b = 0; b <= n; b++)
    best[b] = INFINITY;
  for (int32_t b = stage + 1; b <= last_end(problem, stage); b++) {
    double value = previous[b - 1] + pl_assignment_cut_s(problem, stage, b - 1) - time[b - 1];
    if (value < INFINITY) {
      while (tail > head && key[tail - 1] > value)
        tail--;
      queue[tail] = b - 1;
      key[tail++] = value;
    }
    if (first < sum->first[row + (size_t)b]) first = sum->first[row + (size_t)b];
    while (first < b && !is_within(problem, stage, first, b, stage_limit_s, sync_limit_s))
      first++;
    while (head < tail && queue[head] < first)
      head++;
    if (head == tail) continue;
    best[b] = key[head] + time[b];
    sum->start[row + (size_t)b] = queue[head];
  }
}

bool pl_assignment_sum_solve(pl_assignment_sum *sum, double stage_limit_s, double sync_limit_s, int32_t *boundary) {
  const pl_assignment_problem *problem = sum->problem;
  int32_t n = problem->n_layers, k = problem->n_stages;
  for (int32_t b = 0; b <= n; b++)
    sum->best[b] = b == 0 ? 0 : INFINITY;
  for (int32_t i = 0; i < k; i++) {
    double *swap = sum->previous;
    sum->previous = sum->best;
    sum->best = swap;
    extend(sum, i, stage_limit_s, sync_limit_s);
  }
  if (!(sum->best[n] < INFINITY)) return false;
  boundary[k] = n;
  for (int32_t i = k; i-- > 0;)
    boundary[i] = sum->start[(size_t)i * (size_t)(n + 1) + (size_t)boundary[i + 1]];
  return true;
}

/* ---- evenly ---- */

typedef struct evening {
  const pl_assignment_sum *sum;
  double stage_limit_s, sync_limit_s;
  double *before; /* [n_stages + 1][n_layers + 1]: the least sum of the first stages that end there */
  double *after;  /* the same shape: of the stages from there on */
  double least_s; /* of all, with a tolerance for rounding */
} evening;

static double *row_of(double *table, const pl_assignment_problem *problem, int32_t stage) {
  return table + (size_t)stage * (size_t)(problem->n_layers + 1);
}

/* Smallest start of a stage that ends at b, given that of one that ends at b - 1. */
static int32_t advance(const evening *e, int32_t stage, int32_t first, int32_t b) {
  const pl_assignment_problem *problem = e->sum->problem;
  int32_t by_memory = e->sum->first[(size_t)stage * (size_t)(problem->n_layers + 1) + (size_t)b];
  if (first < by_memory) first = by_memory;
  while (first < b && !is_within(problem, stage, first, b, e->stage_limit_s, e->sync_limit_s))
    first++;
  return first;
}

static void fill_before(evening *e, int32_t stage) {
  const pl_assignment_problem *problem = e->sum->problem;
  const double *time = problem->time_s[stage], *from = row_of(e->before, problem, stage);
  double *to = row_of(e->before, problem, stage + 1);
  for (int32_t b = stage + 1, first = stage; b <= last_end(problem, stage); b++) {
    first = advance(e, stage, first, b);
    for (int32_t a = first; a < b; a++)
      to[b] = fmin(to[b], from[a] + pl_assignment_cut_s(problem, stage, a) + (time[b] - time[a]));
  }
}

static void fill_after(evening *e, int32_t stage) {
  const pl_assignment_problem *problem = e->sum->problem;
  const double *time = problem->time_s[stage], *from = row_of(e->after, problem, stage + 1);
  double *to = row_of(e->after, problem, stage);
  for (int32_t b = stage + 1, first = stage; b <= last_end(problem, stage); b++) {
    first = advance(e, stage, first, b);
    for (int32_t a = first; a < b; a++)
      to[a] = fmin(to[a], from[b] + pl_assignment_cut_s(problem, stage, a) + (time[b] - time[a]));
  }
}

/* squares: [2][n_layers + 1], of the first stages, those that lie on an assignment with the least sum. */
static void choose_even(evening *e, int32_t stage, const double *from, double *to) {
  const pl_assignment_problem *problem = e->sum->problem;
  const double *time = problem->time_s[stage], *before = row_of(e->before, problem, stage);
  const double *after = row_of(e->after, problem, stage + 1);
  int32_t *start = e->sum->start + (size_t)stage * (size_t)(problem->n_layers + 1);
  for (int32_t b = 0; b <= problem->n_layers; b++)
    to[b] = INFINITY;
  for (int32_t b = stage + 1, first = stage; b <= last_end(problem, stage); b++) {
    first = advance(e, stage, first, b);
    for (int32_t a = first; a < b; a++) {
      double time_s = time[b] - time[a], squares = from[a] + time_s * time_s;
      if (before[a] + pl_assignment_cut_s(problem, stage, a) + time_s + after[b] > e->least_s || !(squares < to[b]))
        continue;
      to[b] = squares;
      start[b] = a;
    }
  }
}

pl_code pl_assignment_sum_even(pl_assignment_sum *sum, double stage_limit_s, double sync_limit_s, pl_arena *arena,
                               int32_t *boundary, pl_error *error) {
  const pl_assignment_problem *problem = sum->problem;
  int32_t n = problem->n_layers, k = problem->n_stages;
  size_t cells = (size_t)(k + 1) * (size_t)(n + 1);
  evening e = {.sum = sum,
               .stage_limit_s = stage_limit_s,
               .sync_limit_s = sync_limit_s,
               .before = PL_TAKE(arena, double, cells),
               .after = PL_TAKE(arena, double, cells)};
  if (arena->failed) return pl_fail_memory(error, "the layer assignment");
  for (size_t i = 0; i < cells; i++)
    e.before[i] = e.after[i] = INFINITY;
  e.before[0] = e.after[cells - 1] = 0;
  for (int32_t i = 0; i < k; i++)
    fill_before(&e, i);
  for (int32_t i = k; i-- > 0;)
    fill_after(&e, i);
  e.least_s = e.after[0] * (1 + 1e-12);
  double *from = sum->best, *to = sum->previous;
  for (int32_t b = 0; b <= n; b++)
    from[b] = b == 0 ? 0 : INFINITY;
  for (int32_t i = 0; i < k; i++) {
    choose_even(&e, i, from, to);
    double *swap = from;
    from = to;
    to = swap;
  }
  if (!(from[n] < INFINITY)) return PL_OK; /* keeps what it had */
  boundary[k] = n;
  for (int32_t i = k; i-- > 0;)
    boundary[i] = sum->start[(size_t)i * (size_t)(n + 1) + (size_t)boundary[i + 1]];
  return PL_OK;
}
