/* Wires on which a message is long on its way, against closed forms.
 *
 * The job is that of tests/support/attention_job.h on p nodes of one GPU: F forward and B backward of a stage, c of a
 * message's bytes on a NIC, d of its way. A send whose bytes leave into a socket's buffer holds its stream for c alone,
 * so that with c <= F, B every message after the first hides behind computing, however long d is:
 *
 *   GPipe, buffered sends           (m + p - 1) (F + B) + 2 (p - 1) (c + d)
 *   GPipe, else, p = 2, c + d >= F, B   the m messages of a pass go one after another: 2 (F + B) + 2 m (c + d)
 *
 * A ring over n such nodes carries S (n - 1) / n bytes past each NIC of rate W. NCCL's goes round in rounds of 2 MiB
 * per member and channel, of which it has two: r = S / (n 4 MiB) of them. A round occupies the wire for O = (S (n - 1)
 * / n / W) / r, and its first slice, half of a piece, is round after (n - 1) d + O / 2, whichever is longer; behind the
 * last round the wire's latency is seen once:
 *
 *   all-gather                      r O + (n - 1) d + (r - 1) max(0, (n - 1) d - O / 2)
 *   all-reduce                      the same with 2 (n - 1) hops
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/attention_job.h"
#include "tests/support/synthetic_cluster.h"

/* Dyadic, so that products of them are on the grid of ticks. */
static const double forward_s = 0x1p-7, backward_s = 0x1p-6;

static const pl_collective_profile *free_profile(bool buffers_sends) {
  static const char form[] = "{\"library\":\"none\",\"inside\":[],\"between\":[{\"name\":\"far\",\"launch_us\":0,"
                             "\"buffered_sends\":%s,\"ring\":{\"Simple\":{\"start_us\":0,\"step_us\":0,\"rate\":1,"
                             "\"ramp\":0}},\"direct\":{\"Simple\":{\"start_us\":0,\"step_us\":0,\"rate\":1,"
                             "\"ramp\":0}}}]}";
  char text[512];
  int size = snprintf(text, sizeof text, form, buffers_sends ? "true" : "false");
  pl_error error = PL_ERROR_INIT;
  pl_collective_profile *profile = PL_TAKE(&arena, pl_collective_profile, 1);
  if (profile == NULL || pl_collective_profile_parse("far.json", text, (size_t)size, &arena, profile, &error) != PL_OK)
    fail_msg("%s", error.message);
  return profile;
}

/* ---- sends ---- */

static double pipeline_s(int32_t p, int32_t m, double delay_s, bool buffers_sends, double *send_s) {
  const double nic_Bps = 512.0 * ATTENTION_HIDDEN * ATTENTION_SEQ;
  *send_s = 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN / nic_Bps;
  assert_true(*send_s <= forward_s && *send_s <= backward_s);
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = p,
                                               .forward_s = forward_s,
                                               .backward_s = backward_s,
                                               .n_nodes = (uint32_t)p,
                                               .gpus_per_node = 1,
                                               .nic_Bps = nic_Bps,
                                               .nic_latency_s = delay_s / 2, /* out of one NIC, into another */
                                               .gbs = m});
  own.profile_of_collectives = free_profile(buffers_sends);
  char text[128];
  snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=gpipe", p);
  pl_simulate_report report = attention_job_simulate(&own, text);
  double sum_s = report.row.compute_s + report.row.pipeline_comm_s + report.row.bubble_s;
  expect_time("breakdown", sum_s, report.row.iter_time_s, 1);
  attention_job_release(&own);
  return report.row.iter_time_s;
}

static void a_wire_delays_what_is_on_it_and_nothing_behind(void **state) {
  (void)state;
  for (int32_t p = 2; p <= 8; p *= 2)
    for (int32_t m = 1; m <= 16; m += 5)
      for (double delay_s = 0x1p-9; delay_s < 2; delay_s *= 8) {
        double send_s, time_s = pipeline_s(p, m, delay_s, true, &send_s);
        double pass_s = forward_s + backward_s;
        expect_time("buffered sends", time_s, (m + p - 1) * pass_s + 2 * (p - 1) * (send_s + delay_s), 0);
      }
}

static void a_send_that_waits_for_its_arrival_holds_the_next(void **state) {
  (void)state;
  for (int32_t m = 1; m <= 16; m += 5) {
    double send_s, delay_s = 0x1p-4, time_s = pipeline_s(2, m, delay_s, false, &send_s);
    expect_time("sends in turn", time_s, 2 * (forward_s + backward_s) + 2 * m * (send_s + delay_s), 0);
  }
}

/* ---- rings ---- */

static double ring_s(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, double nic_Bps) {
  pl_fluid_collective fluid;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_collective_fluid(group, kind, size_bytes, &arena, &fluid, &error), PL_OK);
  assert_int_equal(fluid.flight, 0);
  return pl_ticks_to_s(fluid.spec.latency) + fluid.progress_bytes / fmin(fluid.spec.rate_cap_Bps, nic_Bps);
}

static void rounds_of_a_ring_wait_for_their_first_slice(void **state) {
  (void)state;
  const double nic_Bps = 125e6, per_round = 4194304;
  const uint32_t members[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  uint32_t n_waiting = 0;
  for (uint32_t n = 2; n <= 12; n += 5)
    for (double delay_s = 2e-5; delay_s < 0.1; delay_s *= 10) {
      pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){
          .n_nodes = n, .gpus_per_node = 1, .nics_per_node = 1, .nic_Bps = nic_Bps, .nic_latency_s = delay_s / 2});
      const pl_collective_options options = {.algorithm = PL_ALGORITHM_RING, .profile = free_profile(true)};
      pl_collective_group *group;
      pl_error error = PL_ERROR_INIT;
      assert_int_equal(pl_collective_group_take(cluster, members, n, &options, &arena, &group, &error), PL_OK);
      for (double rounds = 0.5; rounds < 100; rounds *= 3)
        for (int twice = 0; twice < 2; twice++) {
          double size_bytes = rounds * n * per_round, hops = (n - 1) * (twice ? 2.0 : 1.0);
          double wire_s = hops / n * size_bytes / nic_Bps, round_s = wire_s / rounds;
          double wait_s = rounds > 1 ? (rounds - 1) * fmax(0, hops * delay_s - round_s / 2) : 0;
          double time_s = ring_s(group, twice ? PL_ALL_REDUCE : PL_ALL_GATHER, size_bytes, nic_Bps);
          double formula_s = wire_s + hops * delay_s + wait_s;
          if (fabs(time_s - formula_s) > 1e-9 * formula_s)
            fail_msg("n %u, delay %g s, %g rounds: %.12g s, formula %.12g s", n, delay_s, rounds, time_s, formula_s);
          n_waiting += wait_s > 0;
        }
      synthetic_cluster_release(cluster);
    }
  assert_true(n_waiting > 10);
}

/* ---- the library's choice ---- */

static pl_collective_weighing weighed(const char *key, uint32_t n, double delay_s, double size_bytes) {
  static const char form[] =
      "{\"library\":\"none\",\"inside\":[],\"between\":[{\"name\":\"far\",\"launch_us\":0,%s"
      "\"ring\":{\"Simple\":{\"start_us\":0,\"step_us\":0,\"rate\":1,\"ramp\":0}},\"tree\":{\"Simple\":"
      "{\"start_us\":0,\"step_us\":0,\"rate\":1,\"ramp\":0}},\"direct\":{\"Simple\":{\"start_us\":0,"
      "\"step_us\":0,\"rate\":1,\"ramp\":0}}}]}";
  const uint32_t members[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  char text[1024];
  int size = snprintf(text, sizeof text, form, key);
  pl_error error = PL_ERROR_INIT;
  pl_collective_profile *profile = PL_TAKE(&arena, pl_collective_profile, 1);
  assert_int_equal(pl_collective_profile_parse("far", text, (size_t)size, &arena, profile, &error), PL_OK);
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){
      .n_nodes = n, .gpus_per_node = 1, .nics_per_node = 1, .nic_Bps = 125e6, .nic_latency_s = delay_s / 2});
  const pl_collective_options options = {.profile = profile};
  pl_collective_group *group;
  pl_collective_weighing weighing;
  assert_int_equal(pl_collective_group_take(cluster, members, n, &options, &arena, &group, &error), PL_OK);
  assert_int_equal(pl_collective_weigh(group, PL_ALL_REDUCE, size_bytes, &arena, &weighing, &error), PL_OK);
  synthetic_cluster_release(cluster);
  return weighing;
}

/* 1.2 MB among 16: a ring has 30 hops, a tree 8 and twice the bytes on a NIC. On wires of 40 us the ring is faster; on
 * wires of 50 ms the tree would be, but who goes by 20 us per NIC takes the ring and pays for its hops. */
static void a_choice_that_does_not_know_the_wire(void **state) {
  (void)state;
  const double size_bytes = 1.2e6;
  pl_collective_weighing near = weighed("", 16, 40e-6, size_bytes), far = weighed("", 16, 50e-3, size_bytes),
                         blind = weighed("\"tuner_nic_us\":20,", 16, 50e-3, size_bytes),
                         same = weighed("\"tuner_nic_us\":20,", 16, 40e-6, size_bytes);
  assert_int_equal(near.works[near.chosen].algorithm, PL_TUNED_RING);
  assert_int_equal(far.works[far.chosen].algorithm, PL_TUNED_TREE);
  assert_int_equal(blind.works[blind.chosen].algorithm, PL_TUNED_RING);
  assert_true(same.time.latency_us == near.time.latency_us && same.time.transfer_us == near.time.transfer_us);
  if (fabs(blind.time.latency_us - 30 * 50e3) > 1e-3) fail_msg("%g us for 30 hops of 50 ms", blind.time.latency_us);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_wire_delays_what_is_on_it_and_nothing_behind, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_send_that_waits_for_its_arrival_holds_the_next, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_choice_that_does_not_know_the_wire, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rounds_of_a_ring_wait_for_their_first_slice, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
