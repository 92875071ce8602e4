/* dPRO's theorems 1 to 3 (Hu et al. 2022, section 5.1) against replays of random steps: where their assumptions hold,
 * what they say is better is better; where the third's do not hold, cases are found in which it is wrong. */
#include "search/optimize/theorems.h"

#include "tests/support/chain_job.h"

enum { SLACK = 64 /* ticks: dates are whole nanoseconds, each rounded once */ };

typedef struct dates {
  chain_step *step;
  pl_step_plan plan;
  uint32_t n; /* the last tensor and, as every op makes one here, the last op */
} dates;

/* Two ranks that are alike. `bound`: how much longer communication takes than computing. */
static chain_job random_job(uint64_t *random, double bound) {
  chain_job job = {.n_ranks = 2, .slow = {1, 1, 1, 1}};
  job.n_ops = random_between(random, 2, 6);
  job.latency_ns = (int64_t)random_below(random, 40000);
  job.ns_per_kB = 100;
  for (uint32_t k = 0; k < job.n_ops; k++) {
    job.ops[k].compute_ns = 1000 + (int64_t)random_below(random, 100000);
    job.ops[k].size_bytes = (int64_t)(bound * (1000 + random_below(random, 1000000)));
  }
  return job;
}

static void take(dates *own, chain_step *step, const chain_job *job) {
  chain_set_up(step, job);
  own->step = step;
  own->n = job->n_ops - 1;
  assert_int_equal(step->whole.n_tensors, job->n_ops);
  assert_int_equal(step->whole.n_units, job->n_ops);
  assert_true(pl_step_plan_take(&step->whole, &step->arena, &own->plan));
}

static pl_ticks play(dates *own) {
  return pl_step_plan_play(&own->step->whole, &own->step->costs, &own->plan, &own->step->arena);
}

static pl_ticks task_of(const dates *own, uint32_t tensor) {
  return own->step->replay.ticks[own->step->whole.slots[own->step->whole.tensors[tensor].first_slot].task];
}

static pl_ticks computed(const chain_job *job, uint32_t k) {
  return pl_trace_ticks_from_ns(chain_computed(job, 0, k));
}

/* End of the k-th reduction: the recursion that the step was made by. */
static pl_ticks reduced(const chain_job *job, uint32_t k) {
  int64_t end = 0;
  for (uint32_t i = 0; i <= k; i++) {
    int64_t date = chain_computed(job, 0, i);
    end = (date > end ? date : end) + job->latency_ns + job->ops[i].size_bytes * job->ns_per_kB / 1000;
  }
  return pl_trace_ticks_from_ns(end);
}

/* Theorem 1: computing takes long, both tensors wait for the fused op. */
static void test_op_fusion(void **state) {
  (void)state;
  uint64_t random = test_seed(14001);
  uint32_t better = 0, worse = 0;
  for (int k = 0; k < 3000 && (better < 60 || worse < 60); k++) {
    chain_job job = random_job(&random, 0.2);
    chain_step step;
    dates own;
    take(&own, &step, &job);
    step.costs.launch = pl_trace_ticks_from_ns((int64_t)random_below(&random, 60000));
    pl_ticks p = pl_trace_ticks_from_ns(job.ops[own.n].compute_ns);
    pl_ticks p_before = pl_trace_ticks_from_ns(job.ops[own.n - 1].compute_ns);
    pl_ticks fused = pl_step_unit_ticks(&step.whole, &step.costs, &own.plan, own.n - 1, own.n + 1, 0);
    pl_ticks p_end = computed(&job, own.n), fused_end = p_end - (p + p_before - fused);
    bool computes = reduced(&job, own.n - 1) <= p_end && (own.n < 2 || reduced(&job, own.n - 2) <= fused_end);
    if (computes) {
      pl_ticks now = play(&own);
      own.plan.fuses[own.n] = 1;
      pl_ticks then = play(&own);
      bool says = pl_theorem_op_fusion(task_of(&own, own.n - 1), p_before, p, fused);
      assert_true(says ? then <= now + SLACK : then >= now - SLACK);
      better += says;
      worse += !says;
    }
    chain_tear_down(&step);
  }
  printf("theorem 1: %u fused, %u not\n", better, worse);
  assert_true(better >= 60 && worse >= 60);
}

/* Theorem 2: communication takes long. */
static void test_tensor_fusion(void **state) {
  (void)state;
  uint64_t random = test_seed(14002);
  uint32_t better = 0, worse = 0;
  for (int k = 0; k < 3000 && (better < 60 || worse < 60); k++) {
    chain_job job = random_job(&random, 0.9);
    chain_step step;
    dates own;
    take(&own, &step, &job);
    pl_ticks p_end = computed(&job, own.n), q_end_before = reduced(&job, own.n - 1);
    if (q_end_before >= p_end) {
      pl_ticks q = task_of(&own, own.n);
      pl_ticks fused = pl_step_slot_ticks(&step.whole, &step.costs, own.n - 1, own.n + 1, 0, 0, 1);
      pl_ticks now = play(&own);
      own.plan.joins[own.n] = 1;
      pl_ticks then = play(&own);
      bool says = pl_theorem_tensor_fusion(q_end_before, p_end, fused, q);
      assert_true(says ? then <= now + SLACK : then >= now - SLACK);
      better += says;
      worse += !says;
    }
    chain_tear_down(&step);
  }
  printf("theorem 2: %u fused, %u not\n", better, worse);
  assert_true(better >= 60 && worse >= 60);
}

/* Theorem 3: what is fused on one side is fused on the other. Somebody else who waits for op n-1 breaks it. */
static void test_both(void **state) {
  (void)state;
  uint64_t random = test_seed(14003);
  uint32_t held = 0, broken = 0;
  for (int k = 0; k < 300; k++) {
    chain_job job = random_job(&random, 0.2 + random_unit(&random));
    bool beside = k % 2 == 1;
    if (beside) job.ops[job.n_ops - 2].beside_ns = 400000 + (int64_t)random_below(&random, 400000);
    chain_step step;
    dates own;
    chain_set_up(&step, &job);
    own = (dates){.step = &step, .n = job.n_ops - 1};
    assert_true(pl_step_plan_take(&step.whole, &step.arena, &own.plan));
    step.costs.launch = pl_trace_ticks_from_ns((int64_t)random_below(&random, 20000));
    uint32_t unit = 1; /* of op n: units of the side stream stand behind */
    while (step.whole.units[unit].name != step.trace.ops[own.n].name)
      unit++;
    own.plan.fuses[unit] = 1;
    pl_ticks ops = play(&own);
    own.plan.joins[own.n] = 1;
    pl_ticks both = play(&own);
    own.plan.fuses[unit] = 0;
    pl_ticks tensors = play(&own);
    assert_true(both <= ops + SLACK); /* the fused op's tensors are ready at one time */
    if (!beside) assert_true(both <= tensors + SLACK);
    held += !beside;
    broken += beside && both > tensors + SLACK;
    chain_tear_down(&step);
  }
  printf("theorem 3: held %u times; with another op that waits for the first one it was wrong %u times\n", held,
         broken);
  assert_true(broken > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_op_fusion),
      cmocka_unit_test(test_tensor_fusion),
      cmocka_unit_test(test_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
