/* Random plans of random steps: unchanged, the step takes what its replay takes; the coarsened view takes what the
 * whole graph takes, tick for tick; buckets end when the recursion says; the dynamic program finds the best of all cuts
 * where there are few enough to try. */
#include "tests/support/chain_job.h"

static chain_job random_job(uint64_t *random, uint32_t most_ops) {
  chain_job job = chain_random_job(random, 2, most_ops);
  for (uint32_t k = 0; k < job.n_ops; k++)
    job.ops[k].beside_ns = random_below(random, 5) == 0 ? 1 + (int64_t)random_below(random, 50000) : 0;
  return job;
}

static void draw_plan(uint64_t *random, const pl_step_model *model, pl_step_plan *plan) {
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    plan->joins[k] = k > 0 && random_below(random, 2);
    plan->parts[k] = (uint8_t)random_below(random, 5);
  }
  for (uint32_t u = 0; u < model->n_units; u++)
    plan->fuses[u] = model->units[u].follows && random_below(random, 2);
}

static void test_views_agree(void **state) {
  (void)state;
  uint64_t random = test_seed(14010);
  uint32_t impossible = 0, smaller = 0;
  for (int k = 0; k < 200; k++) {
    chain_job job = random_job(&random, 24);
    chain_step step;
    pl_step_plan plan;
    chain_set_up(&step, &job);
    if (k % 2 == 1) { /* without units, rows of ops become one */
      pl_error error = PL_ERROR_INIT;
      assert_int_equal(pl_step_model_take(&step.replay, &step.steps, false, &step.arena, &step.whole, &error), PL_OK);
      assert_int_equal(pl_step_model_coarsen(&step.whole, &step.arena, &step.coarse, &error), PL_OK);
    }
    assert_true(pl_step_plan_take(&step.whole, &step.arena, &plan));
    pl_ticks *finish = PL_TAKE(&step.arena, pl_ticks, step.replay.graph.n_tasks + 1);
    pl_ticks replayed = pl_trace_replay_run(&step.replay, step.replay.ticks, finish);
    assert_true(pl_step_plan_play(&step.whole, &step.costs, &plan, &step.arena) == replayed);
    smaller += step.coarse.n < step.whole.n;
    for (int p = 0; p < 8; p++) {
      draw_plan(&random, &step.whole, &plan);
      step.costs.launch = (pl_ticks)random_below(&random, 1000000);
      pl_ticks whole = pl_step_plan_play(&step.whole, &step.costs, &plan, &step.arena);
      assert_true(whole > 0 && whole == pl_step_plan_play(&step.coarse, &step.costs, &plan, &step.arena));
      impossible += whole == PL_TICKS_NEVER;
    }
    chain_tear_down(&step);
  }
  printf("%u plans could not be, %u coarsened views were smaller\n", impossible, smaller);
  assert_true(impossible < 800 && smaller > 0);
}

/* Buckets of a step without gaps: each begins when the slowest rank has computed its last op and the one before has
 * ended, and takes one latency and its bytes; its pieces stand behind one another. */
static int64_t recursion(const chain_job *job, const pl_step_plan *plan) {
  int64_t end = 0;
  for (uint32_t k = 0, last; k < job->n_ops; k = last + 1) {
    int64_t size = 0, ready = 0;
    for (last = k; last + 1 < job->n_ops && plan->joins[last + 1];)
      last++;
    for (uint32_t i = k; i <= last; i++)
      size += job->ops[i].size_bytes * job->ns_per_kB / 1000;
    for (uint32_t r = 0; r < job->n_ranks; r++)
      if (chain_computed(job, r, last) > ready) ready = chain_computed(job, r, last);
    end = (ready > end ? ready : end) + job->latency_ns * (plan->parts[k] > 1 ? plan->parts[k] : 1) + size;
  }
  return end;
}

static chain_job gradient_job(uint64_t *random, uint32_t most_ops) {
  chain_job job = random_job(random, most_ops);
  for (uint32_t k = 0; k < job.n_ops; k++) {
    job.ops[k].beside_ns = job.ops[k].gap_ns = 0;
    job.ops[k].size_bytes = 1000 + (int64_t)random_below(random, 600000);
  }
  return job;
}

static void test_recursion(void **state) {
  (void)state;
  uint64_t random = test_seed(14011);
  for (int k = 0; k < 200; k++) {
    chain_job job = gradient_job(&random, 24);
    chain_step step;
    pl_step_plan plan;
    chain_set_up(&step, &job);
    assert_true(pl_step_plan_take(&step.whole, &step.arena, &plan));
    draw_plan(&random, &step.whole, &plan);
    memset(plan.fuses, 0, step.whole.n_units);
    pl_ticks time = pl_step_plan_play(&step.whole, &step.costs, &plan, &step.arena);
    assert_true(llabs(time - pl_trace_ticks_from_ns(recursion(&job, &plan))) < 200);
    chain_tear_down(&step);
  }
}

static void test_best_buckets(void **state) {
  (void)state;
  uint64_t random = test_seed(14012);
  uint32_t fused = 0;
  for (int k = 0; k < 60; k++) {
    chain_job job = gradient_job(&random, 9);
    chain_step step;
    pl_step_plan plan;
    pl_plan_search search;
    pl_error error = PL_ERROR_INIT;
    const pl_plan_options options = {.tensor_fusion = true};
    chain_set_up(&step, &job);
    assert_true(pl_step_plan_take(&step.whole, &step.arena, &plan));
    int64_t best = INT64_MAX;
    for (uint32_t cuts = 0; cuts < UINT32_C(1) << (job.n_ops - 1); cuts++) {
      for (uint32_t t = 1; t < job.n_ops; t++)
        plan.joins[t] = cuts >> (t - 1) & 1;
      int64_t end = recursion(&job, &plan);
      if (end < best) best = end;
    }
    assert_int_equal(
        pl_plan_search_take(&step.whole, &step.coarse, &step.costs, &options, &step.arena, &search, &error), PL_OK);
    assert_int_equal(pl_plan_search_run(&search), PL_OK);
    assert_true(llabs(search.best - pl_trace_ticks_from_ns(best)) < 200);
    for (uint32_t t = 0; t < job.n_ops; t++)
      fused += search.plan.joins[t];
    assert_true(pl_step_plan_play(&step.whole, &step.costs, &search.plan, &step.arena) == search.best);
    chain_tear_down(&step);
  }
  assert_true(fused > 0);
}

/* What a later collective of the chain waits for on all ranks is no gradient; on one rank of four the wait was
 * concluded wrongly, and the chain stays. */
static void test_activations(void **state) {
  (void)state;
  for (uint32_t waits = 0; waits < 16; waits++) {
    chain_job job = {
        .n_ranks = 4, .n_ops = 3, .latency_ns = 1000, .ns_per_kB = 100, .slow = {1, 1, 1, 1}, .waits = waits};
    uint32_t n = 0;
    for (uint32_t k = 0; k < job.n_ops; k++)
      job.ops[k] = (chain_op){.compute_ns = 1000000, .size_bytes = 1000 * (k + 1)};
    for (uint32_t r = 0; r < job.n_ranks; r++)
      n += waits >> r & 1;
    chain_step step;
    chain_set_up(&step, &job);
    assert_int_equal(step.whole.n_tensors, n > 2 ? 0 : 3);
    assert_int_equal(step.whole.n_activations, n > 2 ? 3 : 0);
    chain_tear_down(&step);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_views_agree),
      cmocka_unit_test(test_recursion),
      cmocka_unit_test(test_best_buckets),
      cmocka_unit_test(test_activations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
