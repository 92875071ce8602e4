/* Whole programs against closed forms.
 *
 * The device computes nothing but attention, and that at times given in its profile's table (f forward, b backward, per
 * layer and microbatch): everything else runs at 1e30 FLOP/s and bytes/s, 0 ticks. Links have no latency unless a test
 * says so. Then, with p stages of k layers, m microbatches, F = k f, B = k b:
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

#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/op_cost.h"
#include "workloads/simulate.h"

enum { HIDDEN = 256, HEADS = 4, SEQ = 128 };

typedef struct fixture {
  pl_op_entry table[2];
  pl_device_profile profile;
  pl_model model;
  pl_job job;
  pl_cluster *cluster;
  pl_arena arena;
} fixture;

typedef struct shape {
  int n_layers;
  double forward_s, backward_s; /* per layer */
  uint32_t n_nodes, gpus_per_node;
  double port_Bps, nic_Bps; /* 0: so wide that bytes take no time */
  int64_t gbs;
  int32_t tmp;
} shape;

static void build(fixture *own, const shape *given) {
  *own = (fixture){.job = {.gbs = given->gbs, .seq = SEQ, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 1e15}};
  pl_arena_init(&own->arena, 0);
  char config[256];
  int size = snprintf(config, sizeof config,
                      "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_layer\":%d,\"n_head\":%d,\"n_positions\":%d,"
                      "\"vocab_size\":1024,\"tie_word_embeddings\":false}",
                      HIDDEN, given->n_layers, HEADS, SEQ);
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("m.json", config, (size_t)size, &own->arena, &own->model, &error) != PL_OK)
    fail_msg("%s", error.message);
  int32_t tmp = given->tmp == 0 ? 1 : given->tmp;
  for (int pass = 0; pass < 2; pass++)
    own->table[pass] = (pl_op_entry){.kind = "attention",
                                     .dtype = PL_DTYPE_FP16,
                                     .dims = {HEADS / tmp, SEQ, SEQ, HIDDEN / HEADS},
                                     .time_s = pass == 0 ? given->backward_s : given->forward_s};
  strcpy(own->table[0].pass, "backward");
  strcpy(own->table[1].pass, "forward");
  own->profile = (pl_device_profile){.name = "attention only",
                                     .memory_bytes = 80e9,
                                     .bandwidth_Bps = 1e30,
                                     .compute_efficiency = 1,
                                     .attention_efficiency = 1,
                                     .bandwidth_efficiency = 1,
                                     .ops = own->table,
                                     .n_ops = 2};
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    own->profile.peak_flops[dtype] = 1e30;
  const synthetic_options options = {.n_nodes = given->n_nodes,
                                     .gpus_per_node = given->gpus_per_node,
                                     .nics_per_node = given->gpus_per_node,
                                     .nvlink_Bps = given->port_Bps > 0 ? given->port_Bps : 1e30,
                                     .nic_Bps = given->nic_Bps > 0 ? given->nic_Bps : 1e30,
                                     .pcie_Bps = 1e30,
                                     .cpu_Bps = 1e30,
                                     .profiles = &own->profile,
                                     .n_profiles = 1};
  own->cluster = synthetic_cluster_create(&options);
}

static void release(fixture *own) {
  synthetic_cluster_release(own->cluster);
  pl_arena_release(&own->arena);
}

static pl_simulate_report simulate(fixture *own, const char *text) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.algorithm = PL_ALGORITHM_RING;
  pl_strategy strategy;
  pl_simulate_report report = {.n_stages = 0};
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error) != PL_OK ||
      pl_strategy_check(&strategy, &own->model, &own->job, own->cluster->n_devices, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &own->model, &own->job, &own->profile, &own->arena, &error) != PL_OK ||
      pl_simulate(own->cluster, &own->model, &own->job, &strategy, &options, &own->arena, &report, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return report;
}

/* Within `ticks` of the grid: every task's date is rounded once. */
static void expect(const char *what, double time_s, double formula_s, double ticks) {
  if (!(fabs(time_s - formula_s) <= ticks / PL_TICKS_PER_S))
    fail_msg("%s: %.17g s, formula %.17g s, %.1f ticks apart", what, time_s, formula_s,
             (time_s - formula_s) * PL_TICKS_PER_S);
}

static void expect_sum(const pl_result_row *row) {
  double sum_s = row->compute_s + row->tensor_comm_s + row->pipeline_comm_s + row->data_comm_s + row->bubble_s;
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
      fixture own;
      build(&own, &(shape){.n_layers = 16,
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
        pl_simulate_report report = simulate(&own, text);
        expect(text, report.row.iter_time_s, (m + p - 1) * pass_s, 0);
        expect(text, report.row.compute_s, m * pass_s, 0);
        expect(text, report.row.bubble_s, (p - 1) * pass_s, 0);
        expect_sum(&report.row);
      }
      if (p > 1) {
        snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,vpp=2", p);
        pl_simulate_report report = simulate(&own, text);
        expect(text, report.row.iter_time_s, (2 * m + p - 1) * pass_s / 2, 0);
        expect(text, report.row.bubble_s, (p - 1) * pass_s / 2, 0);
      }
      release(&own);
    }
}

/* 1F1B: from the end of microbatch k's backward on the last stage, the longest way to another forward there goes up j <
 * p stages and back down. It ends at the forward of microbatch k + j + 1, and is 2 j c longer than the j microbatches
 * that the last stage runs meanwhile. m - 1 microbatches are covered by ceil((m - 1)/p) such ways at best, so each of
 * them costs 2 c, but for one a way. */
static void pipelines_with_sends(void **state) {
  (void)state;
  const double port_Bps = 256.0 * HIDDEN * SEQ; /* a message of 2 s b h bytes takes 2^-7 / 2 ... 2^-7 s alone */
  for (int32_t p = 2; p <= 8; p *= 2)
    for (int32_t m = 1; m <= 4 * p; m++) {
      fixture own;
      build(&own, &(shape){.n_layers = 16,
                           .forward_s = 8 * forward_s,
                           .backward_s = 8 * backward_s,
                           .n_nodes = 1,
                           .gpus_per_node = (uint32_t)p,
                           .port_Bps = port_Bps,
                           .gbs = m});
      double pass_s = 16.0 / p * 8 * (forward_s + backward_s), send_s = 2.0 * SEQ * HIDDEN / port_Bps;
      assert_true(send_s == 0x1p-7 && send_s <= 16.0 / p * 8 * forward_s);
      char text[128];
      snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=gpipe", p);
      pl_simulate_report gpipe = simulate(&own, text);
      expect(text, gpipe.row.iter_time_s, (m + p - 1) * pass_s + 2 * (p - 1) * send_s, 0);
      expect_sum(&gpipe.row);
      snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=1f1b", p);
      pl_simulate_report one = simulate(&own, text);
      int32_t stalls = m - 1 - (m - 1 + p - 1) / p;
      expect(text, one.row.iter_time_s, (m + p - 1) * pass_s + 2 * (p - 1 + stalls) * send_s, 0);
      expect_sum(&one.row);
      release(&own);
    }
}

/* ---- communication ---- */

static pl_block_program block_program(fixture *own, pl_block_kind kind, int32_t tmp) {
  const pl_block_shard shard = {.tmp = tmp, .mbs = 1, .seq = SEQ, .dtype = PL_DTYPE_FP16, .flash = true};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_block_program_take(&own->model, kind, &shard, &own->arena, &program, &error), PL_OK);
  return program;
}

static double gradient_bytes(fixture *own, pl_block_kind kind) {
  return 2 * block_program(own, kind, 1).parameters;
}

static double all_gradient_bytes(fixture *own) {
  double bytes = own->model.n_layers * gradient_bytes(own, PL_BLOCK_LAYER);
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
    if (kind != PL_BLOCK_LAYER) bytes += gradient_bytes(own, (pl_block_kind)kind);
  return bytes;
}

static double ring_s(int32_t n, double size_bytes, double port_Bps) {
  return 2.0 * (n - 1) / n * size_bytes / port_Bps;
}

static void data_parallel_without_overlap(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 8; n++)
    for (int32_t m = 1; m <= 4; m++) {
      fixture own;
      build(&own, &(shape){.n_layers = 4,
                           .forward_s = forward_s,
                           .backward_s = backward_s,
                           .n_nodes = 1,
                           .gpus_per_node = (uint32_t)n,
                           .port_Bps = 10e9,
                           .gbs = n * m});
      char text[128];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,overlap=0", n);
      pl_simulate_report report = simulate(&own, text);
      double reduce_s = ring_s(n, all_gradient_bytes(&own), 10e9);
      expect(text, report.row.iter_time_s, m * 4 * (forward_s + backward_s) + reduce_s, 1);
      expect(text, report.row.data_comm_s, reduce_s, 1);
      expect(text, report.row.bubble_s, 0, 0);
      expect_sum(&report.row);
      release(&own);
    }
}

/* The head is not tied: its gradients come first, at the start of the last backward, then the final norm's; both are
 * reduced before the first layer is through (asserted) and wait for nobody. */
static void data_parallel_with_overlap(void **state) {
  (void)state;
  for (int slow = 0; slow < 2; slow++) {
    const int32_t n = 4, m = 3, k = 6;
    double port_Bps = slow ? 4e7 : 4e9;
    fixture own;
    build(&own, &(shape){.n_layers = k,
                         .forward_s = 16 * forward_s,
                         .backward_s = 16 * backward_s,
                         .n_nodes = 1,
                         .gpus_per_node = (uint32_t)n,
                         .port_Bps = port_Bps,
                         .gbs = n * m});
    own.job.bucket_bytes = 1; /* every block is a bucket */
    double b = 16 * backward_s, pass_s = k * 16 * (forward_s + backward_s);
    double layer_s = ring_s(n, gradient_bytes(&own, PL_BLOCK_LAYER), port_Bps);
    double embedding_s = ring_s(n, gradient_bytes(&own, PL_BLOCK_EMBEDDING), port_Bps);
    double head_s =
        ring_s(n, gradient_bytes(&own, PL_BLOCK_HEAD) + gradient_bytes(&own, PL_BLOCK_FINAL_NORM), port_Bps);
    assert_true(head_s < b);
    assert_true(slow ? layer_s > b : layer_s < b);
    double exposed_s = slow ? k * layer_s - (k - 1) * b : layer_s;
    pl_simulate_report report = simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,overlap=1");
    expect("overlap", report.row.iter_time_s, m * pass_s + exposed_s + embedding_s, k + 3);
    expect("exposed", report.row.data_comm_s, exposed_s + embedding_s, k + 3);
    expect("compute", report.row.compute_s, m * pass_s, 0);
    pl_simulate_report after = simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,overlap=0");
    expect("no overlap", after.row.iter_time_s, m * pass_s + ring_s(n, all_gradient_bytes(&own), port_Bps), 1);
    release(&own);
  }
}

/* With factors g of compute and h of communication: the gradients of one bucket meet compute only where buckets are
 * smaller than the model. Here the transfer of a layer always ends inside the next layer's backward, so each of the k -
 * 1 overlapped transfers lasts (1 + h) r and slows compute by (1 + h) r g / (1 + g) (engine_closed_form_test). */
static void data_parallel_with_the_overlap_factor(void **state) {
  (void)state;
  const int32_t n = 4, k = 6;
  const double g = 0.25, h = 0.5;
  fixture own;
  build(&own, &(shape){.n_layers = k,
                       .forward_s = 16 * forward_s,
                       .backward_s = 16 * backward_s,
                       .n_nodes = 1,
                       .gpus_per_node = (uint32_t)n,
                       .port_Bps = 4e9,
                       .gbs = n});
  own.job.bucket_bytes = 1;
  own.profile.overlap_compute = g;
  own.profile.overlap_communication = h;
  double layer_s = ring_s(n, gradient_bytes(&own, PL_BLOCK_LAYER), 4e9);
  double embedding_s = ring_s(n, gradient_bytes(&own, PL_BLOCK_EMBEDDING), 4e9);
  double head_s = ring_s(n, gradient_bytes(&own, PL_BLOCK_HEAD) + gradient_bytes(&own, PL_BLOCK_FINAL_NORM), 4e9);
  double overlapped_s = (k - 1) * layer_s + head_s;
  double compute_s = k * 16 * (forward_s + backward_s) + overlapped_s * (1 + h) * g / (1 + g);
  pl_simulate_report report = simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,overlap=1");
  expect("compute", report.row.compute_s, compute_s, 4 * k);
  expect("iteration", report.row.iter_time_s, compute_s + layer_s + embedding_s, 4 * k);
  expect_sum(&report.row);
  release(&own);
}

/* Time of a block's collectives by the ring's closed forms; `n_layer_reduces` counts the all-reduces of 2 s b h bytes.
 */
static double tensor_s(fixture *own, pl_block_kind kind, int32_t n, double port_Bps, uint32_t *n_layer_reduces,
                       uint32_t *n_collectives) {
  pl_block_program program = block_program(own, kind, n);
  const pl_op_list lists[2] = {program.forward, program.backward};
  double time_s = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind != PL_OP_COLLECTIVE) continue;
      assert_int_equal(op->collective, PL_ALL_REDUCE);
      time_s += ring_s(n, op->size_bytes, port_Bps);
      *n_layer_reduces += op->size_bytes == 2.0 * SEQ * HIDDEN;
      ++*n_collectives;
    }
  return time_s;
}

static void tensor_parallel(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 4; n *= 2) {
    const int32_t m = 3, k = 5;
    const double port_Bps = 10e9;
    fixture own;
    build(&own, &(shape){.n_layers = k,
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
    expect("per layer", exposed_s, k * 4 * ring_s(n, 2.0 * SEQ * HIDDEN, port_Bps), 1);
    n_collectives *= (uint32_t)k;
    for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
      if (kind != PL_BLOCK_LAYER)
        exposed_s += tensor_s(&own, (pl_block_kind)kind, n, port_Bps, &n_others, &n_collectives);
    char text[64];
    snprintf(text, sizeof text, "pp=1,dp=1,tmp=%d,mbs=1", n);
    pl_simulate_report report = simulate(&own, text);
    expect(text, report.row.tensor_comm_s, m * exposed_s, (double)m * n_collectives);
    expect(text, report.row.iter_time_s, m * (k * (forward_s + backward_s) + exposed_s), (double)m * n_collectives);
    expect(text, report.row.bubble_s, 0, 0);
    expect_sum(&report.row);
    release(&own);
  }
}

/* One microbatch through p stages, each of a node with t tensor ranks: every one of the 2 (p - 1) crossings of S bytes
 * takes S/N when each rank sends all of it through its own NIC of N bytes/s, and S/(t N) + (t - 1)/t S/W when it sends
 * its share and the receivers gather on ports of W bytes/s (Narayanan et al. 2021, section 4.1). With sequence
 * parallelism a rank holds no more than its share: the option changes nothing. */
static void split_sends(void **state) {
  (void)state;
  const double nic_Bps = 1e9, port_Bps = 8e9, size_bytes = 2.0 * SEQ * HIDDEN;
  for (int32_t t = 2; t <= 4; t *= 2)
    for (int32_t p = 2; p <= 4; p++) {
      fixture own;
      build(&own, &(shape){.n_layers = 12,
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
          pl_result_row row = simulate(&own, text).row;
          expect_sum(&row);
          time_s[split][sp] = row.iter_time_s;
        }
      expect("whole - split", time_s[0][0] - time_s[1][0], 2 * (p - 1) * (crossing_s[0] - crossing_s[1]), 4 * p);
      assert_true(time_s[0][1] == time_s[1][1]);
      release(&own);
    }
}

/* ZeRO-2 reduces every microbatch's gradients; without overlap computing stands still meanwhile, bucket by bucket. */
static void zero_2_without_overlap(void **state) {
  (void)state;
  const int32_t n = 4, m = 3, k = 6;
  fixture own;
  build(&own, &(shape){.n_layers = k,
                       .forward_s = forward_s,
                       .backward_s = backward_s,
                       .n_nodes = 1,
                       .gpus_per_node = (uint32_t)n,
                       .port_Bps = 4e9,
                       .gbs = n * m});
  own.job.bucket_bytes = 1;
  double scatter_s = ring_s(n, all_gradient_bytes(&own), 4e9) / 2, pass_s = k * (forward_s + backward_s);
  pl_simulate_report report = simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,zero=2,overlap=0");
  expect("iteration", report.row.iter_time_s, m * (pass_s + scatter_s) + scatter_s, 10 * m);
  expect("exposed", report.row.data_comm_s, (m + 1) * scatter_s, 10 * m);
  assert_true(simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,zero=2,overlap=1").row.iter_time_s < report.row.iter_time_s);
  release(&own);
}

/* Nothing computes: all time is communication, and bytes over the port can be read off it. */
static void zero_moves_what_the_paper_says(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 8; n *= 2)
    for (int32_t m = 1; m <= 3; m++) {
      fixture own;
      build(&own, &(shape){.n_layers = 4, .n_nodes = 1, .gpus_per_node = (uint32_t)n, .port_Bps = 10e9, .gbs = n * m});
      own.job.bucket_bytes = 1e5;
      double unit_s = ring_s(n, all_gradient_bytes(&own), 10e9) / 2;
      const int32_t units[4] = {2, 2, m + 1, 3 * m};
      for (int32_t zero = 0; zero < 4; zero++) {
        char text[64];
        snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d", n, zero);
        pl_simulate_report report = simulate(&own, text);
        expect(text, report.row.iter_time_s, units[zero] * unit_s, 16 * m);
        expect(text, report.row.data_comm_s, units[zero] * unit_s, 16 * m);
      }
      release(&own);
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
      fixture own;
      build(&own, &(shape){.n_layers = 8,
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
      pl_simulate_report report = simulate(&own, texts[i]);
      expect_sum(&report.row);
      assert_true(report.row.bubble_s >= 0 && report.row.compute_s > 0);
      release(&own);
    }
}

/* ---- memory ---- */

static void zero_shards_what_the_paper_says(void **state) {
  (void)state;
  const int32_t n = 8;
  fixture own;
  build(&own, &(shape){.n_layers = 4, .n_nodes = 1, .gpus_per_node = (uint32_t)n, .gbs = n});
  double psi = all_gradient_bytes(&own) / 2;
  for (int32_t zero = 0; zero < 4; zero++) { /* 2 Psi + 2 Psi + 12 Psi, Rajbhandari et al. 2020, figure 1 */
    char text[64];
    snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d", n, zero);
    pl_result_row row = simulate(&own, text).row;
    assert_true(row.mem_parameters_bytes == 2 * psi / (zero >= 3 ? n : 1));
    assert_true(row.mem_gradients_bytes == 2 * psi / (zero >= 2 ? n : 1));
    assert_true(row.mem_optimizer_bytes == 12 * psi / (zero >= 1 ? n : 1));
    double sum = row.mem_parameters_bytes + row.mem_gradients_bytes + row.mem_optimizer_bytes +
                 row.mem_activations_bytes + row.mem_buffers_bytes;
    assert_true(fabs(sum - row.peak_mem_bytes) < 1);
  }
  release(&own);
}

/* Bytes per parameter of weights, gradients and optimizer: 16 bits with fp16 (ZeRO paper, 3.1), gradients in fp32 with
 * bf16 (Megatron Core's guide to the distributed optimizer: 18), no master copy in fp32. Gradients are sent as they are
 * kept, so that the reduction takes as long as they are large. The optimizer works in fp32: 16-bit gradients take 4
 * bytes per owned parameter more while it runs, and where no activation ever took as much, that is the peak. */
static void precision_decides_what_gradients_take(void **state) {
  (void)state;
  static const struct {
    pl_dtype dtype;
    double parameters, gradients, optimizer, update;
  } rows[] = {{PL_DTYPE_FP16, 2, 2, 12, 4},
              {PL_DTYPE_BF16, 2, 4, 12, 0},
              {PL_DTYPE_FP32, 4, 4, 8, 0},
              {PL_DTYPE_TF32, 4, 4, 8, 0}};
  const int32_t n = 8;
  fixture own;
  build(&own, &(shape){.n_layers = 16, .n_nodes = 1, .gpus_per_node = (uint32_t)n, .port_Bps = 4e9, .gbs = n});
  double psi = all_gradient_bytes(&own) / 2;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (int32_t zero = 0; zero < 2; zero++) {
      char text[64];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d,overlap=0,recompute=%s", n, zero,
               zero ? "none" : "full");
      own.job.dtype = rows[i].dtype;
      pl_result_row row = simulate(&own, text).row;
      double shards = zero ? n : 1, update = rows[i].update * psi / shards;
      assert_true(row.mem_parameters_bytes == rows[i].parameters * psi);
      assert_true(row.mem_gradients_bytes == rows[i].gradients * psi);
      assert_true(row.mem_optimizer_bytes == rows[i].optimizer * psi / shards);
      bool updates = rows[i].update > 0 && zero == 0;
      assert_true(row.mem_buffers_bytes == (updates ? update : 0));
      assert_true(updates ? row.mem_activations_bytes == 0
                          : row.mem_activations_bytes > update && row.mem_activations_bytes < 4 * psi);
      double sent = zero == 0 ? 2 * rows[i].gradients : rows[i].gradients + rows[i].parameters;
      expect("communication of data parallelism", row.data_comm_s, ring_s(n, sent / 2 * psi, 4e9), 2);
    }
  release(&own);
}

/* What stages 1 to p - 2, all of the same layers, keep differs by the microbatches in flight alone: min(p - s, m) with
 * 1F1B, m with GPipe. */
static void activations_follow_the_schedule(void **state) {
  (void)state;
  const int32_t p = 8, m = 12, k = 16;
  fixture own;
  build(&own, &(shape){.n_layers = k,
                       .forward_s = forward_s,
                       .backward_s = backward_s,
                       .n_nodes = 1,
                       .gpus_per_node = (uint32_t)p,
                       .gbs = m});
  own.table[0].dtype = own.table[1].dtype = own.job.dtype = PL_DTYPE_BF16; /* whose optimizer needs nothing more */
  double saved = (double)k / p * block_program(&own, PL_BLOCK_LAYER, 1).saved_bytes;
  pl_simulate_report one = simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=1f1b");
  pl_simulate_report all = simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=gpipe");
  for (int32_t s = 1; s < p - 1; s++) {
    if (s < p - 2) assert_true(one.stages[s].activations - one.stages[s + 1].activations == saved);
    assert_true(all.stages[s].activations - one.stages[s].activations == (m - (p - s)) * saved);
    assert_true(all.stages[s].activations == all.stages[1].activations);
    /* The microbatches kept, and what the pass in work takes for itself: less than one microbatch more. */
    double kept = (p - s) * saved;
    assert_true(one.stages[s].activations >= kept && one.stages[s].activations < kept + saved);
  }
  assert_true(all.row.peak_mem_bytes > one.row.peak_mem_bytes);
  own.job.gbs = 2; /* fewer microbatches than stages: the schedules keep the same */
  one = simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=1f1b");
  all = simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=gpipe");
  for (int32_t s = 1; s < p - 2; s++)
    assert_true(one.stages[s].activations == all.stages[s].activations);
  release(&own);
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
      cmocka_unit_test(zero_shards_what_the_paper_says),
      cmocka_unit_test(precision_decides_what_gradients_take),
      cmocka_unit_test(activations_follow_the_schedule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
