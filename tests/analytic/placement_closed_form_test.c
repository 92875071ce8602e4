/* Unlike devices, idle ones and uneven replicas against formulas.
 *
 * Only attention takes time: c = L (f + b) per microbatch on device 0, k times that on device 1. Gradients G go over
 * ports of B bytes/s behind the backward passes.
 *
 *   dp = 2, m0 and m1 microbatches      max(m0 c, m1 k c) + ring(2, G, B)
 *   one device of two                   m c on device 0, m k c on device 1
 *   pp = 2, 1F1B, stage times t0, t1 (f0, b0: passes of stage 0)
 *     t1 >= t0                          t0 + m t1: stage 1 never waits after its first forward
 *     t0 >= t1, m >= 2                  m t0 + max(0, t1 - f0) + max(0, t1 - b0): stage 0 waits for its first backward
 *                                       and for its last */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "tests/support/synthetic_cluster.h"

enum { N_LAYERS = 4, N_MICROBATCHES = 8 };

/* Dyadic, so that products of them are on the grid of ticks. */
static const double forward_s = 0x1p-12, backward_s = 0x1.8p-11, port_Bps = 1e9;

typedef struct pair {
  attention_job job;
  pl_op_entry slow_table[2];
  pl_device_profile profiles[2];
} pair;

/* Device 1 is `slowness` times as slow. */
static void build(pair *own, double slowness) {
  attention_job_build(&own->job, &(attention_shape){.n_layers = N_LAYERS,
                                                    .forward_s = forward_s,
                                                    .backward_s = backward_s,
                                                    .n_nodes = 1,
                                                    .gpus_per_node = 2,
                                                    .port_Bps = port_Bps,
                                                    .gbs = N_MICROBATCHES});
  own->profiles[0] = own->profiles[1] = own->job.profile;
  memcpy(own->slow_table, own->job.table, sizeof own->slow_table);
  for (int i = 0; i < 2; i++)
    own->slow_table[i].time_s *= slowness;
  own->profiles[1].name = "slow";
  own->profiles[1].ops = own->slow_table;
  own->job.cluster->profiles = own->profiles;
  own->job.cluster->n_profiles = 2;
  synthetic_cluster_set_profile(own->job.cluster, 1, 1);
}

static const double layers_s = N_LAYERS * (0x1p-12 + 0x1.8p-11);

static void replicas_wait_for_the_one_with_most_work(void **state) {
  (void)state;
  for (double slowness = 1; slowness <= 4; slowness += 1.5)
    for (int m0 = 1; m0 < N_MICROBATCHES; m0++)
      for (int swapped = 0; swapped < 2; swapped++) {
        pair own;
        build(&own, slowness);
        char text[128];
        snprintf(text, sizeof text, "pp=1,dp=2,tmp=1,mbs=1,overlap=0,split=%d:%d,placement=%s", m0, N_MICROBATCHES - m0,
                 swapped ? "1:0" : "0-1");
        double work_s[2] = {m0 * layers_s, (N_MICROBATCHES - m0) * layers_s};
        work_s[!swapped] *= slowness;
        double gradients_s = ring_all_reduce_s(2, attention_job_all_gradient_bytes(&own.job), port_Bps);
        pl_simulate_report report = attention_job_simulate(&own.job, text);
        expect_time(text, report.row.iter_time_s, fmax(work_s[0], work_s[1]) + gradients_s, 100);
        expect_time(text, report.row.compute_s, (work_s[0] + work_s[1]) / 2, 100);
        assert_int_equal(report.row.n_microbatches, m0 > N_MICROBATCHES / 2 ? m0 : N_MICROBATCHES - m0);
        attention_job_release(&own.job);
      }
}

static void an_idle_device_does_not_count(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    pair own;
    build(&own, 2.5);
    char text[128];
    snprintf(text, sizeof text, "pp=1,dp=1,tmp=1,mbs=1,placement=%d", device);
    pl_simulate_report report = attention_job_simulate(&own.job, text);
    expect_time(text, report.row.iter_time_s, N_MICROBATCHES * layers_s * (device ? 2.5 : 1), 100);
    assert_true(report.row.compute_s == report.row.iter_time_s && report.row.bubble_s == 0);
    assert_int_equal(report.n_devices, 1);
    attention_job_release(&own.job);
  }
}

static double pipeline_s(double slowness_0, double slowness_1) {
  double share_s = layers_s / 2, t0 = slowness_0 * share_s, t1 = slowness_1 * share_s;
  double f0 = slowness_0 * N_LAYERS / 2 * forward_s, b0 = slowness_0 * N_LAYERS / 2 * backward_s;
  if (t1 >= t0) return t0 + N_MICROBATCHES * t1;
  return N_MICROBATCHES * t0 + fmax(0, t1 - f0) + fmax(0, t1 - b0);
}

static void stages_take_what_their_devices_take(void **state) {
  (void)state;
  for (double slowness = 1; slowness <= 8; slowness += 0.5)
    for (int swapped = 0; swapped < 2; swapped++) {
      pair own;
      build(&own, slowness);
      for (uint32_t link = 0; link < own.job.cluster->n_links; link++)
        synthetic_cluster_set_capacity(own.job.cluster, link, 1e30);
      char text[128];
      snprintf(text, sizeof text, "pp=2,dp=1,tmp=1,mbs=1,overlap=0,assign=uniform,placement=%s",
               swapped ? "1:0" : "0:1");
      pl_simulate_report report = attention_job_simulate(&own.job, text);
      expect_time(text, report.row.iter_time_s, swapped ? pipeline_s(slowness, 1) : pipeline_s(1, slowness), 200);
      attention_job_release(&own.job);
    }
}

/* All forwards first: a replica keeps the activations of its own microbatches, and the worst is the one with most. */
static void memory_is_that_of_the_replica_with_most(void **state) {
  (void)state;
  pair uneven, even;
  build(&uneven, 3);
  build(&even, 3);
  even.job.job.gbs = 12;
  pl_simulate_report few = attention_job_simulate(&uneven.job, "pp=1,dp=2,tmp=1,mbs=1,schedule=gpipe,split=6:2");
  pl_simulate_report many = attention_job_simulate(&even.job, "pp=1,dp=2,tmp=1,mbs=1,schedule=gpipe");
  assert_true(few.row.peak_mem_bytes == many.row.peak_mem_bytes);
  few = attention_job_simulate(&uneven.job, "pp=1,dp=2,tmp=1,mbs=1,schedule=gpipe,split=4:4");
  assert_true(few.row.peak_mem_bytes < many.row.peak_mem_bytes);
  attention_job_release(&uneven.job);
  attention_job_release(&even.job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replicas_wait_for_the_one_with_most_work), cmocka_unit_test(an_idle_device_does_not_count),
      cmocka_unit_test(stages_take_what_their_devices_take), cmocka_unit_test(memory_is_that_of_the_replica_with_most)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
