/* Memory without a simulation is the simulation's, and what is named as the nearest strategy that fits does fit: random
 * strategies of GPT-2 on random clusters of devices that are too small for many of them, under frameworks with and
 * without an allocator of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/strategy_fixture.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/assign/assign.h"
#include "workloads/run/nearest_fit.h"

enum { N_CASES = 300, N_DEVICES = 8 };

typedef struct tally {
  uint32_t n_simulated, n_short, n_named;
} tally;

static pl_cluster *small_cluster(uint64_t *random, pl_device_profile profiles[2]) {
  synthetic_options options = synthetic_cluster_defaults();
  pl_cluster *model = synthetic_cluster_create(&options);
  for (uint32_t p = 0; p < 2; p++) {
    profiles[p] = model->profiles[p < model->n_profiles ? p : 0];
    profiles[p].memory_bytes = profiles[p].reserved_bytes + 1e9 * random_between(random, 1, 14);
  }
  synthetic_cluster_release(model);
  options.profiles = profiles;
  options.n_profiles = 2;
  options.gpus_per_node = N_DEVICES;
  pl_cluster *cluster = synthetic_cluster_create(&options);
  if (random_below(random, 2) == 0) synthetic_cluster_set_profile(cluster, random_below(random, N_DEVICES), 1);
  return cluster;
}

static void random_text(uint64_t *random, char *text, size_t size) {
  static const char *const recompute[] = {"none", "selective", "full"}, *const schedules[] = {"1f1b", "gpipe"};
  uint32_t pp = 1u << random_below(random, 3), tmp = 1u << random_below(random, 2), dp = N_DEVICES / pp / tmp;
  uint32_t mbs = 1u << random_below(random, 3), how = random_below(random, 3), schedule = random_below(random, 2);
  uint32_t zero = random_below(random, pp > 1 ? 2 : 4), sp = tmp > 1 ? random_below(random, 2) : 0;
  snprintf(text, size, "pp=%u,dp=%u,tmp=%u,mbs=%u,recompute=%s,schedule=%s,zero=%u,sp=%u", pp, dp, tmp, mbs,
           recompute[how], schedules[schedule], dp > 1 ? zero : 0, sp);
}

static pl_result_row simulate(fixture *own, const pl_cluster *cluster, const char *text, pl_strategy *strategy) {
  const pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_error error = PL_ERROR_INIT;
  pl_simulate_report report;
  *strategy = parse(own, text);
  if (pl_strategy_check(strategy, &own->model, &own->job, cluster->n_devices, &error) != PL_OK ||
      pl_assign(strategy, &own->model, &own->job, cluster, &options, &own->arena, &error) != PL_OK ||
      pl_simulate(cluster, &own->model, &own->job, strategy, &options, &own->arena, &report, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return report.row;
}

static void check_case(fixture *own, const pl_cluster *cluster, const char *text, tally *seen) {
  const pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_error error = PL_ERROR_INIT;
  pl_strategy strategy, found;
  pl_nearest_fit fit;
  double short_bytes;
  int32_t stage;
  pl_result_row row = simulate(own, cluster, text, &strategy);
  assert_int_equal(
      pl_strategy_shortfall(cluster, &own->model, &own->job, &strategy, &own->arena, &short_bytes, &stage, &error),
      PL_OK);
  seen->n_simulated++;
  if (row.fits != (short_bytes <= 0) && labs(row.peak_mem_bytes - row.mem_capacity_bytes) > 65536)
    fail_msg("%s: fits %d, but %g bytes are lacking", text, row.fits, short_bytes);
  if (row.fits) return;
  seen->n_short++;
  assert_int_equal(pl_nearest_fit_find(cluster, &own->model, &own->job, &strategy, &options, &own->arena, &fit, &error),
                   PL_OK);
  if (fit.strategy == NULL) return;
  seen->n_named++;
  row = simulate(own, cluster, fit.strategy, &found);
  if (!row.fits && row.peak_mem_bytes - row.mem_capacity_bytes > 65536)
    fail_msg("%s: %s (%s) does not fit either", text, fit.strategy, fit.changes);
}

static void what_is_named_fits(void **state) {
  fixture *own = *state;
  uint64_t random = test_seed(20);
  static const char *const frameworks[] = {"ideal", "megatron-lm-2021", "torch-fsdp"};
  tally seen = {0};
  for (uint32_t i = 0; i < N_CASES; i++) {
    char text[256];
    pl_device_profile profiles[2];
    pl_framework framework;
    pl_error error = PL_ERROR_INIT;
    pl_arena_mark mark = pl_arena_mark_here(&own->arena);
    pl_cluster *cluster = small_cluster(&random, profiles);
    assert_int_equal(pl_framework_load(frameworks[i % 3], &own->arena, &framework, &error), PL_OK);
    pl_framework_apply(&framework, &own->job);
    random_text(&random, text, sizeof text);
    check_case(own, cluster, text, &seen);
    synthetic_cluster_release(cluster);
    pl_arena_release_to(&own->arena, mark);
  }
  print_message("%u strategies, %u do not fit, for %u of them another is named\n", seen.n_simulated, seen.n_short,
                seen.n_named);
  assert_true(seen.n_short > N_CASES / 4 && seen.n_named > N_CASES / 8 && seen.n_short < N_CASES);
}

/* By hand: 345 million parameters on one device each take 16 bytes; ZeRO 1 on 8 devices takes 12 of them down to 1.5.
 */
static void one_step_is_preferred_to_two(void **state) {
  fixture *own = *state;
  uint64_t random = 1;
  pl_device_profile profiles[2];
  pl_cluster *cluster = small_cluster(&random, profiles);
  const pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_error error = PL_ERROR_INIT;
  pl_nearest_fit fit;
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    synthetic_cluster_set_profile(cluster, d, 0);
  ((pl_device_profile *)cluster->profiles)[0].memory_bytes = cluster->profiles[0].reserved_bytes + 5e9;
  own->job.framework = NULL;
  pl_strategy strategy;
  assert_false(simulate(own, cluster, "pp=1,dp=8,tmp=1,mbs=1", &strategy).fits);
  assert_int_equal(pl_nearest_fit_find(cluster, &own->model, &own->job, &strategy, &options, &own->arena, &fit, &error),
                   PL_OK);
  assert_string_equal(fit.changes, "zero=1");
  assert_non_null(strstr(fit.strategy, "zero=1"));
  ((pl_device_profile *)cluster->profiles)[0].memory_bytes = cluster->profiles[0].reserved_bytes + 1e7;
  assert_int_equal(pl_nearest_fit_find(cluster, &own->model, &own->job, &strategy, &options, &own->arena, &fit, &error),
                   PL_OK);
  assert_null(fit.strategy);
  assert_null(fit.changes);
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(what_is_named_fits), TEST(one_step_is_preferred_to_two)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
