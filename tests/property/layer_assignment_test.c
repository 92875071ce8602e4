/* The layer assignment against all assignments, one by one: every L <= 12 and k <= 6 with random prices per stage,
 * memory, synchronisation and cuts, and larger ones of equal layers. PACELINE_SEED repeats
 * a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "workloads/assign/layer_assignment.h"

enum { L = 12, K = 6, TRIALS = 500 };

/* Prices per stage and layer, plain; the prefix sums that the solver takes are made from them. */
typedef struct plain {
  int32_t n_layers, n_stages;
  double rounds;
  double time[K][L], cut[K][L + 1], sync[K][L], slack[K][L + 1], constant[K], memory[K][L], room[K], in_flight[K];
  bool has_cuts, has_sync, has_slack, has_trips, has_memory, whole, shared_rows;
  double time_row[K][L + 1], sync_row[K][L + 1], memory_row[K][L + 1];
  const double *times[K], *cuts[K], *syncs[K], *slacks[K], *memories[K];
} plain;

static double draw(uint64_t *state, bool whole, double largest) {
  switch (random_below(state, 8)) {
  case 0:
    return 0;
  case 1:
    return whole ? floor(largest) : largest;
  default:
    return whole ? random_below(state, (uint32_t)largest + 1) : largest * random_unit(state);
  }
}

static void sum_up(const double *prices, int32_t n, double *row) {
  row[0] = 0;
  for (int32_t i = 0; i < n; i++)
    row[i + 1] = row[i] + prices[i];
}

static void draw_plain(plain *p, int32_t n_layers, int32_t n_stages, uint64_t *state) {
  static const double rounds[] = {0, 1, 2, 3, 7, 31, 0.5};
  *p = (plain){.n_layers = n_layers, .n_stages = n_stages, .rounds = rounds[random_below(state, 7)]};
  p->has_cuts = random_below(state, 3) > 0;
  p->has_sync = random_below(state, 3) > 0;
  p->has_slack = p->has_sync && random_below(state, 2);
  p->has_trips = random_below(state, 3) == 0;
  p->has_memory = random_below(state, 2);
  p->whole = random_below(state, 2);
  p->shared_rows = random_below(state, 3) == 0;
  double largest = random_below(state, 2) ? 3 : 1000, cut = random_below(state, 2) ? 4 : 1000;
  double sync = random_below(state, 2) ? 10 : 1000, tight = 0.5 + random_unit(state);
  for (int32_t i = 0; i < n_stages; i++) {
    double slower = p->whole ? random_between(state, 1, 3) : 1 + 2 * random_unit(state), needed = 0;
    p->constant[i] = draw(state, p->whole, sync);
    for (int32_t layer = 0; layer < n_layers; layer++) {
      p->time[i][layer] = i > 0 && p->shared_rows ? p->time[0][layer] : slower * draw(state, p->whole, largest);
      p->sync[i][layer] = draw(state, p->whole, sync);
      p->memory[i][layer] = draw(state, true, 100);
      needed += p->memory[i][layer];
    }
    for (int32_t b = 0; b <= n_layers; b++)
      p->cut[i][b] = draw(state, p->whole, cut);
    for (int32_t b = 1; b <= n_layers; b++)
      p->slack[i][b] = p->slack[i][b - 1] + draw(state, p->whole, sync) * (p->whole ? 1 : 0.5);
    p->in_flight[i] =
        random_below(state, 4) == 0 ? (double)INFINITY : (double)random_between(state, 1, (uint32_t)(n_stages - i));
    p->room[i] = floor(2 * tight * needed / n_stages + 10);
    sum_up(p->time[i], n_layers, p->time_row[i]);
    sum_up(p->sync[i], n_layers, p->sync_row[i]);
    sum_up(p->memory[i], n_layers, p->memory_row[i]);
    p->times[i] = p->time_row[i > 0 && p->shared_rows ? 0 : i];
    p->cuts[i] = p->cut[i];
    p->syncs[i] = p->sync_row[i];
    p->slacks[i] = p->slack[i];
    p->memories[i] = p->memory_row[i];
  }
}

static pl_assignment_problem problem_of(const plain *p) {
  return (pl_assignment_problem){.n_layers = p->n_layers,
                                 .n_stages = p->n_stages,
                                 .rounds = p->rounds,
                                 .time_s = p->times,
                                 .cut_s = p->has_cuts ? p->cuts : NULL,
                                 .sync_s = p->has_sync ? p->syncs : NULL,
                                 .sync_slack_s = p->has_slack ? p->slacks : NULL,
                                 .in_flight = p->has_trips ? p->in_flight : NULL,
                                 .sync_constant_s = p->has_sync ? p->constant : NULL,
                                 .memory_bytes = p->has_memory ? p->memories : NULL,
                                 .memory_room_bytes = p->room};
}

typedef struct parts {
  double time, largest, sync, sum, squares;
} parts;

/* The objective from its definition; INFINITY when a stage does not fit. */
static parts price(const plain *p, const int32_t *boundary) {
  double largest = 0, sum = 0, sync = 0, squares = 0;
  for (int32_t i = 0; i < p->n_stages; i++) {
    double time = 0, own_sync = p->constant[i], memory = 0;
    for (int32_t layer = boundary[i]; layer < boundary[i + 1]; layer++) {
      time += p->time[i][layer];
      own_sync += p->sync[i][layer];
      memory += p->memory[i][layer];
    }
    if (p->has_memory && memory > p->room[i]) return (parts){.time = INFINITY};
    largest = fmax(largest, time);
    sum += time;
    if (p->has_cuts && i > 0) sum += p->cut[i - 1][boundary[i]];
    if (p->has_sync) sync = fmax(sync, own_sync - (p->has_slack ? p->slack[i][boundary[i]] : 0));
    squares += time * time;
  }
  for (int32_t i = 0; i < p->n_stages && p->has_trips; i++) {
    double trip = 0;
    for (int32_t layer = boundary[i]; layer < p->n_layers; layer++) {
      int32_t stage = i;
      while (layer >= boundary[stage + 1])
        stage++;
      trip += p->time[stage][layer];
    }
    for (int32_t j = i; j < p->n_stages - 1 && p->has_cuts; j++)
      trip += p->cut[j][boundary[j + 1]];
    largest = fmax(largest, trip / p->in_flight[i]);
  }
  return (parts){p->rounds * largest + sum + sync, largest, sync, sum, squares};
}

/* Next way to cut, in lexicographic order; false after the last. */
static bool next_cuts(int32_t *boundary, int32_t k, int32_t n) {
  for (int32_t i = k - 1; i >= 1; i--) {
    if (boundary[i] >= n - (k - i)) continue;
    boundary[i]++;
    for (int32_t j = i + 1; j < k; j++)
      boundary[j] = boundary[j - 1] + 1;
    return true;
  }
  return false;
}

/* The least time of all; with `like` the least sum of squares of those with its sum and no larger maxima. */
static double best_of_all(const plain *p, const parts *like) {
  int32_t boundary[K + 1];
  for (int32_t i = 0; i < p->n_stages; i++)
    boundary[i] = i;
  boundary[p->n_stages] = p->n_layers;
  double best = INFINITY;
  do {
    parts own = price(p, boundary);
    bool counts = like == NULL || (own.largest <= like->largest && own.sync <= like->sync && own.sum == like->sum);
    if (isfinite(own.time) && counts) best = fmin(best, like == NULL ? own.time : own.squares);
  } while (next_cuts(boundary, p->n_stages, p->n_layers));
  return best;
}

static void compare(const plain *p, pl_arena *arena, uint32_t *n_infeasible) {
  pl_error error = PL_ERROR_INIT;
  int32_t boundary[K + 1] = {0};
  pl_assignment found = {.boundary = boundary};
  const pl_assignment_problem problem = problem_of(p);
  assert_int_equal(pl_layer_assignment_solve(&problem, arena, &found, &error), PL_OK);
  double best = best_of_all(p, NULL);
  assert_int_equal(found.feasible, isfinite(best));
  *n_infeasible += !found.feasible;
  if (!found.feasible) return;
  assert_int_equal(boundary[0], 0);
  assert_int_equal(boundary[p->n_stages], p->n_layers);
  for (int32_t i = 0; i < p->n_stages; i++)
    assert_true(boundary[i] < boundary[i + 1]);
  parts own = price(p, boundary);
  double tolerance = p->whole && !p->has_trips ? 0 : 4e-12 * best;
  if (fabs(own.time - best) > tolerance)
    fail_msg("%.17g, not %.17g: L=%d k=%d rounds %g trips %d sync %d slack %d cuts %d memory %d whole %d", own.time,
             best, p->n_layers, p->n_stages, p->rounds, p->has_trips, p->has_sync, p->has_slack, p->has_cuts,
             p->has_memory, p->whole);
  assert_true(fabs(found.time_s - best) <= tolerance);
  assert_true(fabs(p->rounds * found.period_s + found.largest_sync_s + found.sum_s - found.time_s) <= tolerance);
  if (p->whole && !p->has_trips) assert_true(own.squares == best_of_all(p, &own));
}

static void all_small_ones(void **state) {
  (void)state;
  uint64_t random = test_seed(20261121);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  plain *p = malloc(sizeof *p);
  uint32_t n_infeasible = 0, n = 0;
  for (int32_t n_layers = 1; n_layers <= L; n_layers++)
    for (int32_t n_stages = 1; n_stages <= K && n_stages <= n_layers; n_stages++)
      for (int trial = 0; trial < TRIALS; trial++, n++) {
        draw_plain(p, n_layers, n_stages, &random);
        compare(p, &arena, &n_infeasible);
        pl_arena_reset(&arena);
      }
  printf("%u problems, %u without a solution\n", n, n_infeasible);
  assert_true(n_infeasible > n / 50 && n_infeasible < n / 2);
  free(p);
  pl_arena_release(&arena);
}

/* Room that is short by `bytes` for each stage is just enough with them. */
static void shortfall(void **state) {
  (void)state;
  uint64_t random = test_seed(7);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  plain *p = malloc(sizeof *p);
  uint32_t n_short = 0;
  for (int trial = 0; trial < 500; trial++) {
    draw_plain(p, (int32_t)random_between(&random, 6, L), (int32_t)random_between(&random, 1, K), &random);
    p->has_memory = true;
    for (int32_t i = 0; i < p->n_stages; i++)
      p->room[i] = floor(p->room[i] * random_unit(&random));
    pl_error error = PL_ERROR_INIT;
    pl_assignment_problem problem = problem_of(p);
    double bytes = -1;
    assert_int_equal(pl_layer_assignment_shortfall(&problem, &arena, &bytes, &error), PL_OK);
    bool fits = isfinite(best_of_all(p, NULL));
    assert_int_equal(bytes == 0, fits);
    n_short += !fits;
    for (int32_t i = 0; i < p->n_stages && !fits; i++)
      p->room[i] += bytes;
    assert_true(isfinite(best_of_all(p, NULL)));
    for (int32_t i = 0; i < p->n_stages && !fits; i++)
      p->room[i] -= 2.1; /* the search ends within a byte */
    if (!fits && bytes > 2.1) assert_true(isinf(best_of_all(p, NULL)));
    pl_arena_reset(&arena);
  }
  assert_true(n_short > 50);
  free(p);
  pl_arena_release(&arena);
}

/* Equal layers on equal stages: as even as can be, though any split with the same largest stage costs the same. */
static void equal_layers_are_even(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (int32_t n = 1; n <= 96; n += 5)
    for (int32_t k = 1; k <= n && k <= 32; k++) {
      double row[97];
      const double *rows[32];
      int32_t boundary[33];
      for (int32_t b = 0; b <= n; b++)
        row[b] = b;
      for (int32_t i = 0; i < k; i++)
        rows[i] = row;
      const pl_assignment_problem problem = {.n_layers = n, .n_stages = k, .rounds = 7, .time_s = rows};
      pl_assignment found = {.boundary = boundary};
      pl_error error = PL_ERROR_INIT;
      assert_int_equal(pl_layer_assignment_solve(&problem, &arena, &found, &error), PL_OK);
      for (int32_t i = 0; i < k; i++) {
        int32_t own = boundary[i + 1] - boundary[i];
        assert_true(own == n / k || own == (n + k - 1) / k);
      }
      pl_arena_reset(&arena);
    }
  pl_arena_release(&arena);
}

/* The k-th allocation fails: no memory is reported, nothing is lost. */
static void memory_fails(void **state) {
  (void)state;
  uint64_t random = 5;
  plain *p = malloc(sizeof *p);
  draw_plain(p, L, K, &random);
  p->has_memory = false;
  const pl_assignment_problem problem = problem_of(p);
  int n_failed = 0;
  for (int64_t k = 0;; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_error error = PL_ERROR_INIT;
    int32_t boundary[K + 1];
    pl_assignment found = {.boundary = boundary};
    pl_code code = pl_layer_assignment_solve(&problem, &arena, &found, &error);
    pl_arena_release(&arena);
    if (code == PL_OK) break;
    assert_int_equal(code, PL_NO_MEMORY);
    n_failed++;
  }
  assert_true(n_failed >= 3);
  free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_small_ones),
      cmocka_unit_test(shortfall),
      cmocka_unit_test(equal_layers_are_even),
      cmocka_unit_test(memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
