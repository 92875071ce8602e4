/* Whole programs against closed forms.
 *
 * The job is that of tests/support/attention_job.h: a device computes nothing but attention (f forward, b backward, per
 * layer and microbatch), and links have no latency unless a test says so. Then, with p stages of k layers, m
 * microbatches, F = k f, B = k b:
 *
 *   GPipe, 1F1B         (m + p - 1) (F + B)                                       Narayanan et al. 2021, section 2.2.1
 *   interleaved, v      (m v + p - 1) (F + B), F and B of one chunk               section 2.2.2
 *   GPipe with sends    (m + p - 1) (F + B) + 2 (p - 1) c, c <= F, B: every message after the first is hidden
 *   1F1B with sends     (m + p - 1) (F + B) + 2 (p - 1) c + 2 c (m - 1 - ceil((m - 1)/p)), see the test
 *   data parallel       m (F + B) + R, all gradients in one ring all-reduce of S bytes: R = 2 (n - 1)/n S/W
 *   ... overlapped      buckets of one layer, r each: the last layer's can only start when its backward is over; those
 *                       before it hide if r <= b: m (F + B) + r + e with e for the embedding's; else the backward of
 *                       the first layer, then all of them: m (F + B) - (k - 1) b + k r + e
 *   tensor parallel     m (F + B + sum of the blocks' collectives), of which 4 k all-reduces of 2 s b h bytes
 *   ZeRO                bytes over each device's port, Psi = parameters, 2 bytes each, in units of Psi 2 (n - 1)/n:
 *                       0: 2, 1: 2, 2: m + 1, 3: 3 m          Rajbhandari et al. 2020, section 7 (there for m = 1)
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
#include "tests/support/random.h"
#include "workloads/cost/op_cost.h"
#include "workloads/run/simulate.h"

static void expect_sum(const pl_result_row *row) {
  double sum_s = row->compute_s + row->tensor_comm_s + row->pipeline_comm_s + row->data_comm_s + row->context_comm_s +
                 row->expert_comm_s + row->bubble_s;
  if (fabs(sum_s - row->iter_time_s) > 1e-12 * row->iter_time_s)
    fail_msg("the breakdown adds up to %.17g of %.17g s", sum_s, row->iter_time_s);
}

/* Dyadic, so that products of them are on the grid of ticks. */
static const double forward_s = 0x1p-10, backward_s = 0x1.8p-9;

/* ---- pipelines ---- */

static void pipelines_without_sends(void **state) {
  (void)state;
  for (int32_t p = 1; p <= 8; p *= 2)
    for (int32_t m = p; m <= 4 * p; m += p) {
      attention_job own;
      attention_job_build(&own, &(attention_shape){.n_layers = 16,
                                                   .forward_s = forward_s,
                                                   .backward_s = backward_s,
                                                   .n_nodes = 1,
                                                   .gpus_per_node = (uint32_t)p,
                                                   .gbs = m});
      double pass_s = 16.0 / p * (forward_s + backward_s);
      const char *const schedules[] = {"gpipe", "1f1b"};
      char text[128];
      for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=%s", p, schedules[i]);
        pl_simulate_report report = attention_job_simulate(&own, text);
        expect_time(text, report.row.iter_time_s, (m + p - 1) * pass_s, 0);
        expect_time(text, report.row.compute_s, m * pass_s, 0);
        expect_time(text, report.row.bubble_s, (p - 1) * pass_s, 0);
        expect_sum(&report.row);
      }
      if (p > 1) {
        snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,vpp=2", p);
        pl_simulate_report report = attention_job_simulate(&own, text);
        expect_time(text, report.row.iter_time_s, (2 * m + p - 1) * pass_s / 2, 0);
        expect_time(text, report.row.bubble_s, (p - 1) * pass_s / 2, 0);
      }
      attention_job_release(&own);
    }
}

/* 1F1B: from the end of microbatch k's backward on the last stage, the longest way to another forward there goes up j <
 * p stages and back down. It ends at the forward of microbatch k + j + 1, and is 2 j c longer than the j microbatches
 * that the last stage runs meanwhile. m - 1 microbatches are covered by ceil((m - 1)/p) such ways at best, so each of
 * them costs 2 c, but for one a way. */
static void pipelines_with_sends(void **state) {
  (void)state;
  const double port_Bps =
      256.0 * ATTENTION_HIDDEN * ATTENTION_SEQ; /* a message of 2 s b h bytes takes 2^-7 / 2 ... 2^-7 s alone */
  for (int32_t p = 2; p <= 8; p *= 2)
    for (int32_t m = 1; m <= 4 * p; m++) {
      attention_job own;
      attention_job_build(&own, &(attention_shape){.n_layers = 16,
                                                   .forward_s = 8 * forward_s,
                                                   .backward_s = 8 * backward_s,
                                                   .n_nodes = 1,
                                                   .gpus_per_node = (uint32_t)p,
                                                   .port_Bps = port_Bps,
                                                   .gbs = m});
      double pass_s = 16.0 / p * 8 * (forward_s + backward_s),
             send_s = 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN / port_Bps;
      assert_true(send_s == 0x1p-7 && send_s <= 16.0 / p * 8 * forward_s);
      char text[128];
      snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=gpipe", p);
      pl_simulate_report gpipe = attention_job_simulate(&own, text);
      expect_time(text, gpipe.row.iter_time_s, (m + p - 1) * pass_s + 2 * (p - 1) * send_s, 0);
      expect_sum(&gpipe.row);
      snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=1f1b", p);
      pl_simulate_report one = attention_job_simulate(&own, text);
      int32_t stalls = m - 1 - (m - 1 + p - 1) / p;
      expect_time(text, one.row.iter_time_s, (m + p - 1) * pass_s + 2 * (p - 1 + stalls) * send_s, 0);
      expect_sum(&one.row);
      attention_job_release(&own);
    }
}

/* ---- communication ---- */

static void data_parallel_without_overlap(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 8; n++)
    for (int32_t m = 1; m <= 4; m++) {
      attention_job own;
      attention_job_build(&own, &(attention_shape){.n_layers = 4,
                                                   .forward_s = forward_s,
                                                   .backward_s = backward_s,
                                                   .n_nodes = 1,
                                                   .gpus_per_node = (uint32_t)n,
                                                   .port_Bps = 10e9,
                                                   .gbs = n * m});
      char text[128];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,overlap=0", n);
      pl_simulate_report report = attention_job_simulate(&own, text);
      double reduce_s = ring_all_reduce_s(n, attention_job_all_gradient_bytes(&own), 10e9);
      expect_time(text, report.row.iter_time_s, m * 4 * (forward_s + backward_s) + reduce_s, 1);
      expect_time(text, report.row.data_comm_s, reduce_s, 1);
      expect_time(text, report.row.bubble_s, 0, 0);
      expect_sum(&report.row);
      attention_job_release(&own);
    }
}

/* The head is not tied: its gradients come first, at the start of the last backward, then the final norm's; both are
 * reduced before the first layer is through (asserted) and wait for nobody. */
static void data_parallel_with_overlap(void **state) {
  (void)state;
  for (int slow = 0; slow < 2; slow++) {
    const int32_t n = 4, m = 3, k = 6;
    double port_Bps = slow ? 4e7 : 4e9;
    attention_job own;
    attention_job_build(&own, &(attention_shape){.n_layers = k,
                                                 .forward_s = 16 * forward_s,
                                                 .backward_s = 16 * backward_s,
                                                 .n_nodes = 1,
                                                 .gpus_per_node = (uint32_t)n,
                                                 .port_Bps = port_Bps,
                                                 .gbs = n * m});
    own.job.bucket_bytes = 1; /* every block is a bucket */
    double b = 16 * backward_s, pass_s = k * 16 * (forward_s + backward_s);
    double layer_s = ring_all_reduce_s(n, attention_job_gradient_bytes(&own, PL_BLOCK_LAYER), port_Bps);
    double embedding_s = ring_all_reduce_s(n, attention_job_gradient_bytes(&own, PL_BLOCK_EMBEDDING), port_Bps);
    double head_s = ring_all_reduce_s(
        n, attention_job_gradient_bytes(&own, PL_BLOCK_HEAD) + attention_job_gradient_bytes(&own, PL_BLOCK_FINAL_NORM),
        port_Bps);
    assert_true(head_s < b);
    assert_true(slow ? layer_s > b : layer_s < b);
    double exposed_s = slow ? k * layer_s - (k - 1) * b : layer_s;
    pl_simulate_report report = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,overlap=1");
    expect_time("overlap", report.row.iter_time_s, m * pass_s + exposed_s + embedding_s, k + 3);
    expect_time("exposed", report.row.data_comm_s, exposed_s + embedding_s, k + 3);
    expect_time("compute", report.row.compute_s, m * pass_s, 0);
    pl_simulate_report after = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,overlap=0");
    expect_time("no overlap", after.row.iter_time_s,
                m * pass_s + ring_all_reduce_s(n, attention_job_all_gradient_bytes(&own), port_Bps), 1);
    attention_job_release(&own);
  }
}

/* With factors g of compute and h of communication: the gradients of one bucket meet compute only where buckets are
 * smaller than the model. Here the transfer of a layer always ends inside the next layer's backward, so each of the k -
 * 1 overlapped transfers lasts (1 + h) r and slows compute by (1 + h) r g / (1 + g) (engine_closed_form_test). */
static void data_parallel_with_the_overlap_factor(void **state) {
  (void)state;
  const int32_t n = 4, k = 6;
  const double g = 0.25, h = 0.5;
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = k,
                                               .forward_s = 16 * forward_s,
                                               .backward_s = 16 * backward_s,
                                               .n_nodes = 1,
                                               .gpus_per_node = (uint32_t)n,
                                               .port_Bps = 4e9,
                                               .gbs = n});
  own.job.bucket_bytes = 1;
  own.profile.overlap_compute = g;
  own.profile.overlap_communication = h;
  double layer_s = ring_all_reduce_s(n, attention_job_gradient_bytes(&own, PL_BLOCK_LAYER), 4e9);
  double embedding_s = ring_all_reduce_s(n, attention_job_gradient_bytes(&own, PL_BLOCK_EMBEDDING), 4e9);
  double head_s = ring_all_reduce_s(
      n, attention_job_gradient_bytes(&own, PL_BLOCK_HEAD) + attention_job_gradient_bytes(&own, PL_BLOCK_FINAL_NORM),
      4e9);
  double overlapped_s = (k - 1) * layer_s + head_s;
  double compute_s = k * 16 * (forward_s + backward_s) + overlapped_s * (1 + h) * g / (1 + g);
  pl_simulate_report report = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,overlap=1");
  expect_time("compute", report.row.compute_s, compute_s, 4 * k);
  expect_time("iteration", report.row.iter_time_s, compute_s + layer_s + embedding_s, 4 * k);
  expect_sum(&report.row);
  attention_job_release(&own);
}

/* Time of a block's collectives by the ring's closed forms; `n_layer_reduces` counts the all-reduces of 2 s b h bytes.
 */
static double tensor_s(attention_job *own, pl_block_kind kind, int32_t n, double port_Bps, uint32_t *n_layer_reduces,
                       uint32_t *n_collectives) {
  pl_block_program program = attention_job_block(own, kind, n);
  const pl_op_list lists[2] = {program.forward, program.backward};
  double time_s = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind != PL_OP_COLLECTIVE) continue;
      assert_int_equal(op->collective, PL_ALL_REDUCE);
      time_s += ring_all_reduce_s(n, op->size_bytes, port_Bps);
      *n_layer_reduces += op->size_bytes == 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN;
      ++*n_collectives;
    }
  return time_s;
}

static void tensor_parallel(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 4; n *= 2) {
    const int32_t m = 3, k = 5;
    const double port_Bps = 10e9;
    attention_job own;
    attention_job_build(&own, &(attention_shape){.n_layers = k,
                                                 .forward_s = forward_s,
                                                 .backward_s = backward_s,
                                                 .n_nodes = 1,
                                                 .gpus_per_node = (uint32_t)n,
                                                 .port_Bps = port_Bps,
                                                 .gbs = m,
                                                 .tmp = n});
    uint32_t n_reduces = 0, n_others = 0, n_collectives = 0;
    double exposed_s = k * tensor_s(&own, PL_BLOCK_LAYER, n, port_Bps, &n_reduces, &n_collectives);
    assert_int_equal(n_reduces, 4); /* two forward, two backward (Shoeybi et al. 2019, section 3) */
    expect_time("per layer", exposed_s, k * 4 * ring_all_reduce_s(n, 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN, port_Bps),
                1);
    n_collectives *= (uint32_t)k;
    for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
      if (kind != PL_BLOCK_LAYER)
        exposed_s += tensor_s(&own, (pl_block_kind)kind, n, port_Bps, &n_others, &n_collectives);
    char text[64];
    snprintf(text, sizeof text, "pp=1,dp=1,tmp=%d,mbs=1", n);
    pl_simulate_report report = attention_job_simulate(&own, text);
    expect_time(text, report.row.tensor_comm_s, m * exposed_s, (double)m * n_collectives);
    expect_time(text, report.row.iter_time_s, m * (k * (forward_s + backward_s) + exposed_s),
                (double)m * n_collectives);
    expect_time(text, report.row.bubble_s, 0, 0);
    expect_sum(&report.row);
    attention_job_release(&own);
  }
}

/* One microbatch through p stages, each of a node with t tensor ranks: every one of the 2 (p - 1) crossings of S bytes
 * takes S/N when each rank sends all of it through its own NIC of N bytes/s, and S/(t N) + (t - 1)/t S/W when it sends
 * its share and the receivers gather on ports of W bytes/s (Narayanan et al. 2021, section 4.1). With sequence
 * parallelism a rank holds no more than its share: the option changes nothing. */
static void split_sends(void **state) {
  (void)state;
  const double nic_Bps = 1e9, port_Bps = 8e9, size_bytes = 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN;
  for (int32_t t = 2; t <= 4; t *= 2)
    for (int32_t p = 2; p <= 4; p++) {
      attention_job own;
      attention_job_build(&own, &(attention_shape){.n_layers = 12,
                                                   .forward_s = forward_s,
                                                   .backward_s = backward_s,
                                                   .n_nodes = (uint32_t)p,
                                                   .gpus_per_node = (uint32_t)t,
                                                   .port_Bps = port_Bps,
                                                   .nic_Bps = nic_Bps,
                                                   .gbs = 1,
                                                   .tmp = t});
      double crossing_s[2] = {size_bytes / nic_Bps, size_bytes / (t * nic_Bps) + (t - 1.0) / t * size_bytes / port_Bps};
      double time_s[2][2];
      for (int split = 0; split < 2; split++)
        for (int sp = 0; sp < 2; sp++) {
          char text[64];
          snprintf(text, sizeof text, "pp=%d,dp=1,tmp=%d,mbs=1,sp=%d", p, t, sp);
          own.job.split_sends = split;
          pl_result_row row = attention_job_simulate(&own, text).row;
          expect_sum(&row);
          time_s[split][sp] = row.iter_time_s;
        }
      expect_time("whole - split", time_s[0][0] - time_s[1][0], 2 * (p - 1) * (crossing_s[0] - crossing_s[1]), 4 * p);
      assert_true(time_s[0][1] == time_s[1][1]);
      attention_job_release(&own);
    }
}

/* ZeRO-2 reduces every microbatch's gradients; without overlap computing stands still meanwhile, bucket by bucket. */
static void zero_2_without_overlap(void **state) {
  (void)state;
  const int32_t n = 4, m = 3, k = 6;
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = k,
                                               .forward_s = forward_s,
                                               .backward_s = backward_s,
                                               .n_nodes = 1,
                                               .gpus_per_node = (uint32_t)n,
                                               .port_Bps = 4e9,
                                               .gbs = n * m});
  own.job.bucket_bytes = 1;
  double scatter_s = ring_all_reduce_s(n, attention_job_all_gradient_bytes(&own), 4e9) / 2,
         pass_s = k * (forward_s + backward_s);
  pl_simulate_report report = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,zero=2,overlap=0");
  expect_time("iteration", report.row.iter_time_s, m * (pass_s + scatter_s) + scatter_s, 10 * m);
  expect_time("exposed", report.row.data_comm_s, (m + 1) * scatter_s, 10 * m);
  assert_true(attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,zero=2,overlap=1").row.iter_time_s <
              report.row.iter_time_s);
  attention_job_release(&own);
}

/* Nothing computes: all time is communication, and bytes over the port can be read off it. */
static void zero_moves_what_the_paper_says(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 8; n *= 2)
    for (int32_t m = 1; m <= 3; m++) {
      attention_job own;
      attention_job_build(
          &own, &(attention_shape){
                    .n_layers = 4, .n_nodes = 1, .gpus_per_node = (uint32_t)n, .port_Bps = 10e9, .gbs = n * m});
      own.job.bucket_bytes = 1e5;
      double unit_s = ring_all_reduce_s(n, attention_job_all_gradient_bytes(&own), 10e9) / 2;
      const int32_t units[4] = {2, 2, m + 1, 3 * m};
      for (int32_t zero = 0; zero < 4; zero++) {
        char text[64];
        snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d", n, zero);
        pl_simulate_report report = attention_job_simulate(&own, text);
        expect_time(text, report.row.iter_time_s, units[zero] * unit_s, 16 * m);
        expect_time(text, report.row.data_comm_s, units[zero] * unit_s, 16 * m);
      }
      attention_job_release(&own);
    }
}

/* ---- the account of any program ---- */

static void the_breakdown_adds_up(void **state) {
  (void)state;
  static const char *const texts[] = {
      "pp=2,dp=2,tmp=2,mbs=1,schedule=gpipe",   "pp=2,dp=2,tmp=2,mbs=1,sp=1,recompute=full",
      "pp=4,dp=2,tmp=1,mbs=2,zero=1,order=pdt", "pp=2,dp=4,tmp=1,mbs=1,vpp=2,overlap=0",
      "pp=1,dp=8,tmp=1,mbs=1,zero=3",           "pp=1,dp=2,tmp=4,mbs=1,zero=2,recompute=selective",
      "pp=8,dp=1,tmp=1,mbs=1,assign=balanced"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int bucket = 0; bucket < 2; bucket++) {
      attention_job own;
      attention_job_build(&own, &(attention_shape){.n_layers = 8,
                                                   .forward_s = forward_s,
                                                   .backward_s = backward_s,
                                                   .n_nodes = 2,
                                                   .gpus_per_node = 4,
                                                   .port_Bps = 5e9,
                                                   .nic_Bps = 1e9,
                                                   .gbs = 16});
      own.profile.bandwidth_Bps = 1e12;
      own.profile.overlap_compute = own.profile.overlap_communication = bucket * 0.2;
      own.job.bucket_bytes = bucket ? 1e5 : 1e7;
      pl_simulate_report report = attention_job_simulate(&own, texts[i]);
      expect_sum(&report.row);
      assert_true(report.row.bubble_s >= 0 && report.row.compute_s > 0);
      attention_job_release(&own);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pipelines_without_sends),
      cmocka_unit_test(pipelines_with_sends),
      cmocka_unit_test(data_parallel_without_overlap),
      cmocka_unit_test(data_parallel_with_overlap),
      cmocka_unit_test(data_parallel_with_the_overlap_factor),
      cmocka_unit_test(tensor_parallel),
      cmocka_unit_test(split_sends),
      cmocka_unit_test(zero_2_without_overlap),
      cmocka_unit_test(zero_moves_what_the_paper_says),
      cmocka_unit_test(the_breakdown_adds_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
