/* What waits in the launch queue for the device (workloads/run/launched_ahead.h) against closed forms.
 *
 * A layer over a tensor group of two lets go of two tensors that were all-reduced, of a whole activation each; with
 * sequence parallelism of two that were gathered, two that were scattered, and the halves that came out of that. With a
 * host that takes no time all of a forward pass waits; with one that takes h of the d seconds of the pass (d - h) / d
 * of it, where nothing is left over from the pass before.
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

static const double forward_s = 0x1p-10, backward_s = 0x1p-9;
static const double activation = 2.0 * ATTENTION_HIDDEN * ATTENTION_SEQ;

static pl_framework recording(void) {
  pl_framework framework = pl_framework_ideal;
  framework.memory.records_streams = true;
  framework.gradients.gradient_dtype = PL_DTYPE_FP32; /* so that the optimizer needs nothing on top */
  return framework;
}

typedef struct run {
  const char *strategy;
  int n_layers;
  uint32_t n_devices;
  int64_t gbs;
  double memory_bytes; /* 0: enough */
} run;

static pl_simulate_report simulate(const run *of, const pl_framework *framework, attention_job *own) {
  attention_job_build(own, &(attention_shape){.n_layers = of->n_layers,
                                              .forward_s = forward_s,
                                              .backward_s = backward_s,
                                              .n_nodes = 1,
                                              .gpus_per_node = of->n_devices,
                                              .gbs = of->gbs,
                                              .tmp = 2});
  own->job.framework = framework;
  if (of->memory_bytes > 0) own->profile.memory_bytes = of->memory_bytes;
  return attention_job_simulate(own, of->strategy);
}

/* Beside the tensors, on the first stage. */
static double waiting(const run *of, const pl_framework *framework) {
  attention_job own;
  pl_simulate_report report = simulate(of, framework, &own);
  double bytes = report.stages[0].reserved - report.stages[0].peak;
  assert_true(report.stages[0].device - report.stages[0].peak == bytes); /* no context here */
  attention_job_release(&own);
  return bytes;
}

static double per_layer(const char *strategy, const pl_framework *framework) {
  run few = {strategy, 4, 2, 2, 0}, many = {strategy, 8, 2, 2, 0};
  return (waiting(&many, framework) - waiting(&few, framework)) / 4;
}

static void all_of_a_pass_where_the_host_takes_no_time(void **state) {
  (void)state;
  pl_framework framework = recording();
  assert_true(per_layer("pp=1,dp=1,tmp=2,mbs=1", &framework) == 2 * activation);
  assert_true(per_layer("pp=1,dp=1,tmp=2,mbs=2", &framework) == 4 * activation);
  assert_true(per_layer("pp=1,dp=1,tmp=2,mbs=1,sp=1", &framework) == 5 * activation);
  framework.memory.keeps_gathered = true;
  assert_true(per_layer("pp=1,dp=1,tmp=2,mbs=1,sp=1", &framework) == 3 * activation);
}

static void nothing_where_nothing_is_ahead(void **state) {
  (void)state;
  const run of = {"pp=1,dp=1,tmp=2,mbs=1,sp=1", 4, 2, 2, 0}, alone = {"pp=1,dp=2,tmp=1,mbs=1", 4, 2, 2, 0};
  pl_framework framework = recording();
  assert_true(waiting(&of, &framework) > 0 && waiting(&alone, &framework) == 0);
  framework.launch.host_window = PL_HOST_KERNEL;
  assert_true(waiting(&of, &framework) == 0);
  framework = recording();
  framework.launch.collective_s = 1; /* later than the device all the time */
  assert_true(waiting(&of, &framework) == 0);
  assert_true(waiting(&of, &pl_framework_ideal) == 0);
}

/* 2 collectives a layer and one of the embedding: 9 launches beside 4 calls of attention. */
static void as_far_as_the_host_is_ahead(void **state) {
  (void)state;
  const run of = {"pp=2,dp=1,tmp=2,mbs=1,assign=uniform", 8, 4, 4, 0};
  pl_framework fast = recording(), half = recording();
  half.launch.collective_s = 4 * forward_s / 2 / 9;
  double all = waiting(&of, &fast), some = waiting(&of, &half);
  if (!(fabs(some - all / 2) < 1)) fail_msg("%.0f of %.0f bytes wait, half should", some, all);
  /* Without a pipeline the loss has three more, and the host goes on from the backward pass before, if there is one. */
  half.launch.collective_s = 4 * forward_s / 2 / 12;
  run single = {"pp=1,dp=1,tmp=2,mbs=1", 4, 2, 1, 0};
  all = waiting(&single, &fast);
  some = waiting(&single, &half);
  if (!(fabs(some - all / 2) < 1)) fail_msg("one microbatch: %.0f of %.0f bytes wait, half should", some, all);
  single.gbs = 2;
  assert_true(waiting(&single, &half) == all);
}

static void no_more_than_the_queue_has_room_for(void **state) {
  (void)state;
  pl_framework framework = recording();
  run deep = {"pp=1,dp=1,tmp=2,mbs=1", 192, 2, 2, 0}, deeper = {"pp=1,dp=1,tmp=2,mbs=1", 256, 2, 2, 0};
  double bytes = waiting(&deep, &framework), layer = per_layer(deep.strategy, &framework);
  assert_true(bytes == waiting(&deeper, &framework));
  assert_true(bytes < 128 * layer && bytes > 1024 / 24.0 * layer); /* a layer is 8 to 24 launches */
}

/* ZeRO-3: all that a forward pass gathers is there when it has been launched, as parameters that are kept or in the
 * queue, whichever part is kept; without marks what is kept is all. */
static void what_was_gathered_waits(void **state) {
  (void)state;
  const run of = {"pp=1,dp=2,tmp=1,mbs=1,zero=3", 8, 2, 2, 0};
  pl_framework framework = recording(), unmarked = recording();
  unmarked.memory.records_streams = false;
  const double reuse[] = {0, 4 * 12.0 * ATTENTION_HIDDEN * ATTENTION_HIDDEN, 1e15}; /* nothing, some four layers, all */
  double reserved[3], waits[3];
  for (int i = 0; i < 3; i++) {
    attention_job own;
    framework.gathers.reuse_parameters = unmarked.gathers.reuse_parameters = reuse[i];
    pl_simulate_report report = simulate(&of, &framework, &own);
    reserved[i] = report.stages[0].reserved;
    waits[i] = reserved[i] - report.stages[0].peak;
    attention_job_release(&own);
    assert_true(waiting(&of, &unmarked) == 0);
    if (!(fabs(reserved[i] - reserved[0]) < 1)) fail_msg("%.0f and %.0f bytes", reserved[i], reserved[0]);
  }
  if (!(waits[0] > waits[1] && waits[1] > 0 && waits[2] == 0))
    fail_msg("%.0f, %.0f, %.0f bytes", waits[0], waits[1], waits[2]);
  framework.gathers.reuse_parameters = 0;
  const run sharded_less = {"pp=1,dp=2,tmp=1,mbs=1,zero=2", 8, 2, 2, 0};
  assert_true(waiting(&sharded_less, &framework) == 0);
}

static void verdicts_do_not_depend_on_it(void **state) {
  (void)state;
  run of = {"pp=1,dp=1,tmp=2,mbs=1,sp=1", 8, 2, 2, 0};
  pl_framework framework = recording();
  attention_job own;
  pl_simulate_report report = simulate(&of, &framework, &own);
  double peak = report.stages[0].peak, held = report.stages[0].reserved;
  attention_job_release(&own);
  of.memory_bytes = peak + (held - peak) / 4; /* the allocator gives the rest back */
  report = simulate(&of, &framework, &own);
  assert_true(report.row.fits && report.stages[0].peak == peak);
  assert_true(fabs(report.stages[0].reserved - of.memory_bytes) < 1);
  attention_job_release(&own);
  of.memory_bytes = peak - 1;
  report = simulate(&of, &framework, &own);
  assert_true(!report.row.fits && report.stages[0].reserved == peak);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_a_pass_where_the_host_takes_no_time),
                                     cmocka_unit_test(nothing_where_nothing_is_ahead),
                                     cmocka_unit_test(as_far_as_the_host_is_ahead),
                                     cmocka_unit_test(no_more_than_the_queue_has_room_for),
                                     cmocka_unit_test(what_was_gathered_waits),
                                     cmocka_unit_test(verdicts_do_not_depend_on_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
