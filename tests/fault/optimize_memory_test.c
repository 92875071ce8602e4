/* Every allocation of an optimisation fails once: always one message, never a crash or a plan. */
#include "search/optimize/optimize.h"
#include "tests/support/chain_job.h"

static chain_job small_job(void) {
  chain_job job = {.n_ranks = 2, .n_ops = 6, .latency_ns = 20000, .ns_per_kB = 100, .slow = {1, 1.1, 1, 1}};
  for (uint32_t k = 0; k < job.n_ops; k++)
    job.ops[k] = (chain_op){.compute_ns = 30000, .gap_ns = 500, .size_bytes = 1000 * (k + 1)};
  return job;
}

static void test_every_allocation(void **state) {
  (void)state;
  chain_job job = small_job();
  chain_step step;
  chain_set_up(&step, &job);
  pl_op_cost_row row = {"op0", "op4", -1, 1e-6, 1e6};
  pl_op_costs given = {.rows = &row, .n = 1, .launch_s = 1e-6, .message_s = -1};
  assert_true(pl_hash_index_put(&given.index, pl_hash_text(1, row.ops), &row, &step.arena));
  pl_optimize_options options = {
      .costs = &given, .fits = &step.fits, .memory = {.budget_bytes = 0.8e6, .state_copies = 4}};
  for (int k = 0; k < PL_PASS_COUNT; k++)
    options.passes.has[k] = true;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = PL_NO_MEMORY;
  uint32_t failures = 0;
  for (int64_t k = 0; code == PL_NO_MEMORY; k += 1 + k / 50) {
    pl_error error = PL_ERROR_INIT;
    pl_optimization done;
    pl_arena_reset(&arena);
    arena.fail_after = k;
    code = pl_optimize(&step.replay, &step.steps, &options, &arena, &done, &error);
    assert_true(code == PL_OK || (code == PL_NO_MEMORY && error.code == code && error.message[0] != '\0'));
    failures += code != PL_OK;
    if (code == PL_OK) {
      assert_true(done.search.best < done.search.start);
      assert_int_equal(done.memory.way, PL_MEMORY_ACCUMULATE);
    }
  }
  printf("%u allocations failed\n", failures);
  assert_true(failures > 200);
  pl_arena_release(&arena);
  chain_tear_down(&step);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
