/* Steps that save memory, against closed forms of the same step: batches whose gradients are added up, ops that are
 * computed again; and the coarsened view of either. */
#include "search/optimize/memory_pass.h"
#include "tests/support/chain_job.h"

/* The step of `n` batches, with `again_ns` of computing in front of op `reader` on each rank (in parts of rank 0's). */
static int64_t closed_form(const chain_job *job, uint32_t n, uint32_t reader, uint32_t again) {
  int64_t end = 0;
  for (uint32_t k = 0; k < job->n_ops; k++) {
    int64_t ready = 0;
    if (job->ops[k].size_bytes == 0) continue;
    for (uint32_t r = 0; r < job->n_ranks; r++) {
      double gaps = 0, works = 0, all_gaps = 0, all_works = 0, more = 0;
      for (uint32_t i = 0; i < job->n_ops; i++) {
        double work = (double)(int64_t)((double)job->ops[i].compute_ns * job->slow[r]);
        all_gaps += (double)job->ops[i].gap_ns;
        all_works += work;
        gaps += i <= k ? (double)job->ops[i].gap_ns : 0;
        works += i <= k ? work : 0;
        more += i < again ? work + (double)job->ops[i].gap_ns : 0;
      }
      double date = (n - 1) * (all_gaps + all_works / n) + gaps + works / n + (k >= reader ? more : 0);
      if ((int64_t)date > ready) ready = (int64_t)date;
    }
    end = (ready > end ? ready : end) + job->latency_ns + job->ops[k].size_bytes * job->ns_per_kB / 1000;
  }
  return end;
}

static void draw_plan(uint64_t *random, const pl_step_model *model, pl_step_plan *plan) {
  for (uint32_t k = 1; k < model->n_tensors; k++)
    plan->joins[k] = (uint8_t)random_below(random, 2);
  for (uint32_t u = 0; u < model->n_units; u++)
    plan->fuses[u] = model->units[u].follows && random_below(random, 2);
}

static void check(chain_step *step, uint64_t *random, const pl_step_model *model, int64_t expected_ns) {
  pl_error error = PL_ERROR_INIT;
  pl_step_plan plan;
  pl_step_model coarse;
  assert_int_equal(pl_step_model_coarsen(model, &step->arena, &coarse, &error), PL_OK);
  assert_true(pl_step_plan_take(model, &step->arena, &plan));
  pl_ticks time = pl_step_plan_play(model, &step->costs, &plan, &step->arena);
  assert_true(llabs(time - pl_trace_ticks_from_ns(expected_ns)) < pl_trace_ticks_from_ns(64));
  for (int k = 0; k < 4; k++) {
    assert_true(pl_step_plan_play(model, &step->costs, &plan, &step->arena) ==
                pl_step_plan_play(&coarse, &step->costs, &plan, &step->arena));
    draw_plan(random, model, &plan);
  }
}

static void test_batches(void **state) {
  (void)state;
  uint64_t random = test_seed(14020);
  for (int k = 0; k < 100; k++) {
    chain_job job = chain_random_job(&random, 3, 16);
    job.ops[0].gap_ns = 0; /* dates count from the first op */
    uint32_t n = random_between(&random, 1, 6);
    chain_step step;
    pl_step_model model;
    chain_set_up(&step, &job);
    assert_true(pl_step_model_repeat(&step.whole, &step.costs, n, &step.arena, &model));
    assert_int_equal(model.n_members, n * step.whole.n_members);
    check(&step, &random, &model, closed_form(&job, n, 0, 0));
    chain_tear_down(&step);
  }
}

static void test_again(void **state) {
  (void)state;
  uint64_t random = test_seed(14021);
  for (int k = 0; k < 100; k++) {
    chain_job job = chain_random_job(&random, 3, 16);
    job.ops[0].gap_ns = 0; /* dates count from the first op */
    uint32_t again = random_between(&random, 1, job.n_ops - 1), reader = random_between(&random, again, job.n_ops - 1);
    chain_step step;
    pl_step_model model;
    pl_step_insertion insertions[CHAIN_MOST_RANKS];
    uint32_t n = 0;
    chain_set_up(&step, &job);
    for (uint32_t r = 0; r < job.n_ranks; r++) { /* ops of a rank stand first on its first stream */
      uint32_t first = step.trace.ranks[r].first_op;
      insertions[n] = (pl_step_insertion){step.replay.gate[first + reader], 0};
      for (uint32_t i = 0; i < again; i++)
        insertions[n].ticks +=
            step.replay.ticks[step.replay.gate[first + i]] + step.replay.ticks[step.replay.body[first + i]];
      n++;
    }
    assert_true(pl_step_model_insert(&step.whole, insertions, n, &step.arena, &model));
    check(&step, &random, &model, closed_form(&job, 1, reader, again));
    chain_tear_down(&step);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_batches), cmocka_unit_test(test_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
