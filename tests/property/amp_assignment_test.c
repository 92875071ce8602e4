/* AMP's dynamic program against the exact layer assignment, which brute force holds (layer_assignment_test): the same
 * cost for every L <= 12 and k <= 6 on what both can express. PACELINE_SEED repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "workloads/assign/amp_assignment.h"
#include "workloads/assign/layer_assignment.h"

enum { L = 12, K = 6, TRIALS = 100 };

typedef struct prices {
  double time[L + 1], cut[K][L + 1];
  const double *times[K], *cuts[K];
} prices;

static void draw(prices *p, int32_t n, uint64_t *state) {
  bool nice = random_below(state, 2);
  p->time[0] = 0;
  for (int32_t i = 0; i < n; i++)
    p->time[i + 1] = p->time[i] + (nice ? random_between(state, 0, 5) : 5 * random_unit(state));
  for (int32_t i = 0; i < K; i++) {
    p->times[i] = p->time;
    p->cuts[i] = p->cut[i];
    for (int32_t b = 0; b <= n; b++)
      p->cut[i][b] = nice ? random_between(state, 0, 9) : 9 * random_unit(state);
  }
}

static double price(const pl_assignment_problem *problem, int32_t *boundary) {
  pl_assignment found = {.boundary = boundary};
  pl_layer_assignment_price(problem, &found);
  return found.time_s;
}

static void equals_the_optimum(void **state) {
  (void)state;
  static const double rounds[] = {0, 1, 3, 7, 31};
  uint64_t random = test_seed(31);
  uint32_t n_worse = 0, n_with_cuts = 0;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (int32_t n = 1; n <= L; n++)
    for (int32_t k = 1; k <= K && k <= n; k++)
      for (int trial = 0; trial < TRIALS; trial++) {
        prices p;
        draw(&p, n, &random);
        bool cuts = trial % 2;
        double w = rounds[random_below(&random, 5)];
        const pl_assignment_problem exact = {
            .n_layers = n, .n_stages = k, .rounds = w, .time_s = p.times, .cut_s = cuts ? p.cuts : NULL};
        pl_amp_problem amp = {
            .n_layers = n, .n_stages = k, .rounds = w, .time_s = p.time, .cut_s = cuts ? p.cuts : NULL};
        int32_t best[K + 1], own[K + 1], forgetful[K + 1];
        pl_assignment found = {.boundary = best};
        pl_error error = PL_ERROR_INIT;
        assert_int_equal(pl_layer_assignment_solve(&exact, &arena, &found, &error), PL_OK);
        assert_int_equal(pl_amp_assignment_solve(&amp, &arena, own, NULL, &error), PL_OK);
        amp.forgets_cuts = true;
        assert_int_equal(pl_amp_assignment_solve(&amp, &arena, forgetful, NULL, &error), PL_OK);
        for (int32_t i = 0; i < k; i++)
          assert_true(own[i] < own[i + 1] && forgetful[i] < forgetful[i + 1]);
        assert_true(own[0] == 0 && own[k] == n);
        assert_true(fabs(price(&exact, own) - found.time_s) <= 1e-12 * found.time_s);
        double forgot = price(&exact, forgetful);
        assert_true(forgot >= found.time_s * (1 - 1e-12));
        if (!cuts) assert_true(forgot <= found.time_s * (1 + 1e-12));
        n_worse += forgot > found.time_s * (1 + 1e-9);
        n_with_cuts += cuts && k > 2;
        pl_arena_reset(&arena);
      }
  printf("forgetting the cuts: worse in %u of %u with three stages or more\n", n_worse, n_with_cuts);
  assert_true(n_worse > n_with_cuts / 10);
  pl_arena_release(&arena);
}

/* The steps that the header promises, and the refusal of what is too large. */
static void cost_and_limit(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  double row[401];
  int32_t boundary[65];
  uint64_t random = 3, n_steps = 0;
  row[0] = 0;
  for (int32_t i = 0; i < 400; i++)
    row[i + 1] = row[i] + random_unit(&random);
  pl_error error = PL_ERROR_INIT;
  pl_amp_problem amp = {.n_layers = 20, .n_stages = 4, .rounds = 3, .time_s = row};
  assert_int_equal(pl_amp_assignment_solve(&amp, &arena, boundary, &n_steps, &error), PL_OK);
  /* stage j starts at j or later: sum over j = 1 .. 3 of (20 - j)(21 - j) / 2 pairs, for each of 211 times */
  assert_int_equal(n_steps, (19 * 20 / 2 + 18 * 19 / 2 + 17 * 18 / 2) * 211);
  amp.n_layers = 400;
  amp.n_stages = 64;
  assert_int_equal(pl_amp_assignment_solve(&amp, &arena, boundary, &n_steps, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "assign=optimal"));
  pl_arena_release(&arena);
}

static void memory_fails(void **state) {
  (void)state;
  prices p;
  uint64_t random = 5;
  draw(&p, L, &random);
  const pl_amp_problem amp = {.n_layers = L, .n_stages = 3, .rounds = 3, .time_s = p.time};
  int n_failed = 0;
  for (int64_t k = 0;; k++, n_failed++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_error error = PL_ERROR_INIT;
    int32_t boundary[K + 1];
    pl_code code = pl_amp_assignment_solve(&amp, &arena, boundary, NULL, &error);
    pl_arena_release(&arena);
    if (code == PL_OK) break;
    assert_int_equal(code, PL_NO_MEMORY);
  }
  assert_true(n_failed >= 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_the_optimum),
      cmocka_unit_test(cost_and_limit),
      cmocka_unit_test(memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
