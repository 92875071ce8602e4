/* Hosts that wait for each other, against closed forms. The job is that of tests/support/attention_job.h: a device
 * computes nothing but attention, f forward and b backward per layer and microbatch; k layers, m microbatches.
 *
 * collectives that ranks compare first, r per rank of the group
 *                   in layers, C of them a microbatch over t ranks: m max(k (f + b), C t r); of gradients of n
 * replicas, of which nothing is hidden, n r more sends that hold up both hosts for w 2 stages, F and B a microbatch and
 * stage: 2 F + 2 B + 2 w + (m - 1) (F + B + 2 w). The first activation goes w after F; then, for each further
 * microbatch, both stages compute F and B, an activation goes down and a gradient up, one after the other; the last
 * gradient goes up after w, and B.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"

static const double forward_s = 0x1p-10, backward_s = 0x1.8p-9;
enum { LAYERS = 4, MICROBATCHES = 5 };

static void build(attention_job *own, uint32_t n_devices, int64_t gbs, int32_t tmp) {
  attention_job_build(own, &(attention_shape){.n_layers = LAYERS,
                                              .forward_s = forward_s,
                                              .backward_s = backward_s,
                                              .n_nodes = 1,
                                              .gpus_per_node = n_devices,
                                              .gbs = gbs,
                                              .tmp = tmp});
}

static double simulate(attention_job *own, const pl_framework *framework, const char *text) {
  own->job.framework = framework;
  return attention_job_simulate(own, text).row.iter_time_s;
}

static int collectives_in(const pl_op_list *list) {
  int n = 0;
  for (uint32_t i = 0; i < list->n_ops; i++)
    n += list->ops[i].kind == PL_OP_COLLECTIVE;
  return n;
}

static int collectives_of_microbatch(attention_job *own, int32_t tmp) {
  int n = 0;
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++) {
    if (kind == PL_BLOCK_EXPERT_LAYER) continue;
    pl_block_program block = attention_job_block(own, (pl_block_kind)kind, tmp);
    int times = kind == PL_BLOCK_LAYER ? LAYERS : kind == PL_BLOCK_IDENTITY ? 2 : 1;
    n += times * (collectives_in(&block.forward) + collectives_in(&block.backward));
  }
  return n;
}

static void checked_in_layers(void **state) {
  (void)state;
  enum { TENSOR = 2 };
  attention_job own;
  build(&own, TENSOR, MICROBATCHES, TENSOR);
  double device_s = LAYERS * (forward_s + backward_s);
  int n = collectives_of_microbatch(&own, TENSOR);
  bool late = false, ahead = false;
  assert_true(n >= 4 * LAYERS);
  for (int i = -20; i <= -10; i++) {
    pl_framework framework = pl_framework_ideal;
    framework.launch.collective_rank_s = ldexp(1, i);
    double host_s = n * TENSOR * framework.launch.collective_rank_s;
    late |= host_s > device_s;
    ahead |= host_s < device_s;
    expect_time("checked", simulate(&own, &framework, "pp=1,dp=1,tmp=2,mbs=1"), MICROBATCHES * fmax(device_s, host_s),
                MICROBATCHES * 4 * (LAYERS + 6));
  }
  assert_true(late && ahead);
  attention_job_release(&own);
}

static void checked_gradients(void **state) {
  (void)state;
  enum { REPLICAS = 4 };
  attention_job own;
  build(&own, REPLICAS, REPLICAS * (int64_t)MICROBATCHES, 1);
  pl_framework framework = pl_framework_ideal;
  framework.gradients.bucket_bytes = 1e15;
  const char *text = "pp=1,dp=4,tmp=1,mbs=1,overlap=0";
  double plain_s = simulate(&own, &framework, text);
  framework.launch.collective_rank_s = 0x1p-8;
  expect_time("checked", simulate(&own, &framework, text), plain_s + REPLICAS * framework.launch.collective_rank_s, 8);
  attention_job_release(&own);
}

static void waited_for_sends(void **state) {
  (void)state;
  attention_job own;
  for (int64_t m = 1; m <= 40; m += 13) { /* many enough for periods that are passed over, too */
    build(&own, 2, m, 1);
    double pass_s[] = {LAYERS / 2 * forward_s, LAYERS / 2 * backward_s};
    pl_framework framework = pl_framework_ideal;
    framework.pipeline.send_wait_s = 0x1.4p-7;
    double slot_s = pass_s[0] + pass_s[1] + 2 * framework.pipeline.send_wait_s;
    double whole_s = 2 * pass_s[0] + 2 * pass_s[1] + 2 * framework.pipeline.send_wait_s + (double)(m - 1) * slot_s;
    expect_time("sends", simulate(&own, &framework, "pp=2,dp=1,tmp=1,mbs=1"), whole_s, 40 * (double)m);
    attention_job_release(&own);
  }
}

/* Every schedule whose stages do not wait for each other in a ring comes to its end, and no send is free. */
static void schedules_end(void **state) {
  (void)state;
  static const char *const texts[] = {"pp=4,dp=1,tmp=1,mbs=1", "pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe",
                                      "pp=2,dp=2,tmp=1,mbs=1"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    attention_job own;
    build(&own, 4, 8, 1);
    pl_framework framework = pl_framework_ideal;
    double free_s = simulate(&own, &framework, texts[i]);
    framework.pipeline.send_wait_s = 0x1p-8;
    double waited_s = simulate(&own, &framework, texts[i]);
    if (waited_s < free_s + 4 * framework.pipeline.send_wait_s)
      fail_msg("%s: %g s, %g s without waiting", texts[i], waited_s, free_s);
    attention_job_release(&own);
  }
}

/* Where neighbours would wait for each other for good. */
static void circles_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *said;
  } rows[] = {{"pp=2,dp=1,tmp=1,mbs=1,vpp=2", "vpp=2"},
              {"pp=2,dp=1,tmp=1,mbs=1,schedule=zb-h1", "schedule=zb-h1: with the framework's send_wait"},
              {"pp=2,dp=1,tmp=1,mbs=1,schedule=zb-h2", "schedule=zb-h2"}};
  pl_framework framework = pl_framework_ideal;
  framework.pipeline.send_wait_s = 0x1p-8;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    attention_job own;
    build(&own, 2, 4, 1);
    own.job.framework = &framework;
    pl_strategy strategy;
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    pl_simulate_report report = {.n_stages = 0};
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_strategy_parse(rows[i].text, &own.model, &own.arena, &strategy, &error), PL_OK);
    assert_int_equal(pl_strategy_assign(&strategy, &own.model, &own.job, own.cluster, &own.arena, &error), PL_OK);
    assert_int_equal(pl_simulate(own.cluster, &own.model, &own.job, &strategy, &options, &own.arena, &report, &error),
                     PL_UNSUPPORTED);
    if (strstr(error.message, rows[i].said) == NULL) fail_msg("%s: %s", rows[i].text, error.message);
    attention_job_release(&own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checked_in_layers), cmocka_unit_test(checked_gradients),   cmocka_unit_test(waited_for_sends),
      cmocka_unit_test(schedules_end),     cmocka_unit_test(circles_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
