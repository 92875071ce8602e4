/* Context and expert parallelism against formulas.
 *
 * Only attention takes time to compute (a per step of one rank's keys, forward; b backward), n ranks share one node
 * with a port of B bytes per second each, m microbatches pass L layers:
 *
 *   ring     x = (n - 1)/n * K / B for the keys and values K of a whole sequence; backward 2 x
 *            m L (max((n - 1) a, x) + a + max((n - 1) b, 2 x) + b)
 *   gather   m L (x + n a + x + n b + x)
 *   steps    m L (max(a, x) + (n - 1) a + x + max((n - 1) b, 2 x) + b), gathered, gradients in fp32
 *   experts  y = (n - 1)/n * S / B for the S bytes of the tokens of a rank times k; two all-to-alls each way, behind
 * one of them the weights of the answers, a number for each of these vectors, or their gradients: w = y / hidden m L (4
 * y + 2 w)
 *
 * and behind it the all-reduce of the gradients that all ranks share. Over N nodes, to each of which a token is sent
 * once though several of its k experts are there, y shrinks by (N - 1) (1 - (1 - 1/N)^k) / (k (1 - 1/N)). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "workloads/import/model_file.h"

enum { N_LAYERS = 3, N_MICROBATCHES = 2, HEAD = ATTENTION_HIDDEN / ATTENTION_HEADS };

/* Exchanges of a layer, in exchanges of its tokens: of these, and of the weights of the answers. */
static const double exchanges = 4 + 2.0 / ATTENTION_HIDDEN;

/* Dyadic, so that products of them are on the grid of ticks. */
static const double step_forward_s = 0x1p-12, step_backward_s = 0x1.8p-11;

/* Entries of a profile's table stand in its order: backward first, then by dims. */
static void attend(pl_op_entry *table, int32_t n, bool gathers, uint32_t *n_entries) {
  const int64_t share = ATTENTION_SEQ / n;
  *n_entries = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int steps = 1; steps <= n; steps++) {
      if (gathers ? steps != n : steps != 1 && steps != n - 1) continue;
      pl_op_entry *own = &table[(*n_entries)++];
      *own = (pl_op_entry){.kind = "attention",
                           .dtype = PL_DTYPE_FP16,
                           .dims = {ATTENTION_HEADS, share, share * steps, HEAD},
                           .time_s = steps * (pass == 0 ? step_backward_s : step_forward_s)};
      strcpy(own->pass, pass == 0 ? "backward" : "forward");
    }
}

static void build(attention_job *own, int32_t n, double port_Bps, pl_op_entry *table, bool gathers) {
  attention_job_build(own, &(attention_shape){.n_layers = N_LAYERS,
                                              .forward_s = 1,
                                              .backward_s = 1,
                                              .n_nodes = 1,
                                              .gpus_per_node = (uint32_t)n,
                                              .port_Bps = port_Bps,
                                              .gbs = N_MICROBATCHES});
  own->profile.ops = table;
  attend(table, n, gathers, &own->profile.n_ops);
}

static void context(void **state) {
  (void)state;
  const double ports[] = {1e8, 1e9, 1e10, 1e12};
  for (int32_t n = 2; n <= 4; n++)
    for (int variant = 0; variant < 12 && ATTENTION_SEQ % (2 * n) == 0; variant++) {
      bool gathers = variant >= 4, steps = variant >= 8;
      double port_Bps = ports[variant % 4];
      pl_op_entry table[8];
      attention_job own;
      build(&own, n, port_Bps, table, gathers && !steps);
      pl_framework framework = pl_framework_ideal;
      framework.kernels.fuses_context = !steps;
      own.job.framework = &framework;
      char text[128];
      snprintf(text, sizeof text, "pp=1,dp=1,tmp=1,cp=%d,mbs=1,overlap=0%s", n, gathers ? ",cp_comm=gather" : "");
      pl_simulate_report report = attention_job_simulate(&own, text);
      double x = (n - 1.0) / n * (2.0 * ATTENTION_SEQ * 2 * ATTENTION_HIDDEN) / port_Bps;
      double a = step_forward_s, b = step_backward_s;
      double layer_s = gathers ? 3 * x + n * (a + b) : fmax((n - 1) * a, x) + a + fmax((n - 1) * b, 2 * x) + b;
      double exposed_s = gathers ? 3 * x : fmax(0, x - (n - 1) * a) + fmax(0, 2 * x - (n - 1) * b);
      if (steps) layer_s = fmax(a, x) + (n - 1) * a + x + fmax((n - 1) * b, 2 * x) + b;
      if (steps) exposed_s = fmax(0, x - a) + x + fmax(0, 2 * x - (n - 1) * b);
      double gradients_s = ring_all_reduce_s(n, attention_job_all_gradient_bytes(&own), port_Bps);
      double passes = N_MICROBATCHES * N_LAYERS;
      expect_time(text, report.row.iter_time_s, passes * layer_s + gradients_s, 1000);
      expect_time(text, report.row.context_comm_s, passes * exposed_s, 1000);
      expect_time(text, report.row.compute_s, passes * n * (a + b), 1000);
      assert_int_equal(report.row.cp, n);
      attention_job_release(&own);
    }
}

static pl_model mixture(attention_job *own) {
  char config[512];
  int size = snprintf(config, sizeof config,
                      "{\"model_type\":\"mixtral\",\"hidden_size\":%d,\"num_hidden_layers\":%d,"
                      "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"intermediate_size\":512,"
                      "\"num_local_experts\":8,\"num_experts_per_tok\":2,\"vocab_size\":1024}",
                      ATTENTION_HIDDEN, N_LAYERS, ATTENTION_HEADS, ATTENTION_HEADS);
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("mixture.json", config, (size_t)size, &own->arena, &model, &error) != PL_OK)
    fail_msg("%s", error.message);
  return model;
}

static void experts(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 8; n *= 2) {
    const double port_Bps = 4e9;
    pl_op_entry table[8];
    attention_job own;
    build(&own, n, port_Bps, table, false);
    own.profile.n_ops = 0; /* attention takes no time either */
    own.model = mixture(&own);
    own.job.gbs = (int64_t)N_MICROBATCHES * n;
    double expert = 8.0 * 3 * ATTENTION_HIDDEN * 512 * N_LAYERS, dense = own.model.count.parameters - expert;
    double y = (n - 1.0) / n * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2) / port_Bps;
    char text[128];
    snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,mbs=1,overlap=0", n, n);
    pl_simulate_report report = attention_job_simulate(&own, text);
    double exchanges_s = N_MICROBATCHES * N_LAYERS * exchanges * y;
    expect_time(text, report.row.expert_comm_s, exchanges_s, 1000);
    expect_time(text, report.row.iter_time_s, exchanges_s + ring_all_reduce_s(n, 2 * dense, port_Bps), 1000);
    assert_true((double)report.row.mem_parameters_bytes == 2 * (dense + expert / n));
    assert_true((double)report.row.mem_optimizer_bytes == 12 * (dense + expert / n));
    /* ZeRO shards all but experts over n ranks, and experts, which no two ranks share, not at all. */
    snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,mbs=1,overlap=0,zero=1", n, n);
    report = attention_job_simulate(&own, text);
    assert_true((double)report.row.mem_optimizer_bytes == 12 * (dense / n + expert / n));
    if (n > 2) { /* two ranks hold the same experts, and share their state */
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,mbs=1,overlap=0,zero=1", n, n / 2);
      report = attention_job_simulate(&own, text);
      assert_true((double)report.row.mem_parameters_bytes == 2 * (dense + 2 * expert / n));
      assert_true((double)report.row.mem_optimizer_bytes == 12 * (dense / n + expert / n));
      /* The gathers behind the optimizer, of experts and of all else, run at once and are counted once. */
      expect_time(text, report.row.data_comm_s, report.row.iter_time_s - report.row.expert_comm_s, 1000);
      expect_time(text, report.row.bubble_s, 0, 1000);
    }
    attention_job_release(&own);
  }
}

/* Experts that are cut over two tensor ranks (etp=tmp) have half as much of each expert on a rank, and as many tokens
 * to exchange: on 8 devices ep=4 of 2 tensor ranks is groups of two replicas, or of the four ranks of equal tensor
 * rank. In front of them the tokens of both ranks are gathered, behind them the answers are summed and scattered:
 * forward and back two times half of what a rank then has, tokens * k / 2 * 2 rows, and as much of weights as they are
 * exchanged. The products are as long. */
static void cut_experts(void **state) {
  (void)state;
  const double port_Bps = 4e9;
  attention_job own;
  pl_op_entry table[8];
  build(&own, 8, port_Bps, table, false);
  own.profile.n_ops = 0;
  own.model = mixture(&own);
  own.job.gbs = (int64_t)N_MICROBATCHES * 4;
  double expert = 8.0 * 3 * ATTENTION_HIDDEN * 512 * N_LAYERS;
  double gather_s = 0.5 * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2) / port_Bps;
  pl_simulate_report whole = attention_job_simulate(&own, "pp=1,dp=4,tmp=2,sp=1,ep=4,mbs=1,overlap=0");
  pl_simulate_report cut = attention_job_simulate(&own, "pp=1,dp=4,tmp=2,sp=1,ep=4,etp=2,mbs=1,overlap=0");
  assert_true((double)(whole.row.mem_parameters_bytes - cut.row.mem_parameters_bytes) == 2 * (expert / 4 - expert / 8));
  expect_time("all-to-all", cut.row.expert_comm_s, whole.row.expert_comm_s, 1000);
  expect_time("gathers", cut.row.tensor_comm_s - whole.row.tensor_comm_s,
              N_MICROBATCHES * N_LAYERS * exchanges * gather_s, 1000);
  /* ZeRO shards what is left of the experts over the replicas that hold the same: with ep=2 two of them. */
  whole = attention_job_simulate(&own, "pp=1,dp=4,tmp=2,sp=1,ep=2,etp=2,mbs=1,overlap=0");
  cut = attention_job_simulate(&own, "pp=1,dp=4,tmp=2,sp=1,ep=2,etp=2,mbs=1,overlap=0,zero=1");
  double dense = (double)whole.row.mem_parameters_bytes / 2 - expert / 4;
  assert_true((double)cut.row.mem_optimizer_bytes == 12 * (dense / 4 + expert / 4 / 2));
  attention_job_release(&own);
}

/* The fullest device's tokens go through both exchanges: of 8 experts of loads 6, 2, 1, 1, 2, 2, 1, 1 on 2 devices 10
 * of 16, 5/4 of the mean; on 4 devices 8, twice the mean, on 8 devices 6, three times. A factor is that of any. */
static void loads(void **state) {
  (void)state;
  static const double loads_of[] = {6, 2, 1, 1, 2, 2, 1, 1};
  const double port_Bps = 4e9, wanted[] = {1.25, 2, 3};
  for (int32_t n = 2, k = 0; n <= 8; n *= 2, k++)
    for (int listed = 0; listed < 2; listed++) {
      pl_op_entry table[8];
      attention_job own;
      build(&own, n, port_Bps, table, false);
      own.profile.n_ops = 0;
      own.model = mixture(&own);
      if (listed == 1)
        own.model.moe.expert_loads = loads_of;
      else
        own.model.moe.expert_load = wanted[k];
      own.job.gbs = (int64_t)N_MICROBATCHES * n;
      double tokens = ATTENTION_SEQ * 2.0 * wanted[k]; /* each to 2 experts */
      double y = (n - 1.0) / n * (tokens * ATTENTION_HIDDEN * 2) / port_Bps;
      char text[128];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,mbs=1,overlap=0", n, n);
      pl_simulate_report report = attention_job_simulate(&own, text);
      assert_true(fabs(pl_model_expert_load(&own.model, n) - wanted[k]) < 1e-12);
      expect_time(text, report.row.expert_comm_s, N_MICROBATCHES * N_LAYERS * exchanges * y, 1000);
      attention_job_release(&own);
    }
}

/* ep_overlap=1, Megatron Core's combined 1F1B: a forward pass of a layer is attention, a, and exchanges of y in front
 * of and behind the experts, which take no time here; backward likewise, with b. Of a pair, a forward layer beside a
 * backward one, the stream of the exchanges has those of the backward pass and the forward pass in turn:
 *   exchanges   B's gradients | F's tokens | B's tokens | F's answers
 *   computing   a             |            |            | b
 * so that a layer of both takes max(a, y) + 2 (y + w) + max(y, b), weights w going with both's tokens. The first
 * forward and the last backward pass are alone. On one stage; the gradients are reduced behind all of it. */
static void experts_exchange_beside_the_other_pass(void **state) {
  (void)state;
  static const double ports[] = {2e8, 1e9, 4e9, 1e11};
  enum { RANKS = 4, MANY = 5 };
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
    for (int n = 1; n <= MANY; n += 2) {
      attention_job own;
      attention_job_build(&own, &(attention_shape){.n_layers = N_LAYERS,
                                                   .forward_s = step_forward_s,
                                                   .backward_s = step_backward_s,
                                                   .n_nodes = 1,
                                                   .gpus_per_node = RANKS,
                                                   .port_Bps = ports[i],
                                                   .gbs = (int64_t)n * RANKS});
      own.model = mixture(&own);
      double expert = 8.0 * 3 * ATTENTION_HIDDEN * 512 * N_LAYERS, dense = own.model.count.parameters - expert;
      double y = (RANKS - 1.0) / RANKS * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2) / ports[i];
      double a = step_forward_s, b = step_backward_s, w = y / ATTENTION_HIDDEN;
      double alone = a + b + exchanges * y, pair = fmax(a, y) + 2 * (y + w) + fmax(y, b);
      double gradients_s = ring_all_reduce_s(RANKS, 2 * dense, ports[i]);
      char text[128];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,mbs=1,overlap=0", RANKS, RANKS);
      expect_time(text, attention_job_simulate(&own, text).row.iter_time_s, n * N_LAYERS * alone + gradients_s, 1000);
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,ep_overlap=1,mbs=1,overlap=0", RANKS, RANKS);
      pl_result_row row = attention_job_simulate(&own, text).row;
      double passes_s = N_LAYERS * (alone + (n - 1) * pair);
      expect_time(text, row.iter_time_s, passes_s + gradients_s, 1000);
      expect_time(text, row.compute_s, n * N_LAYERS * (a + b), 1000);
      expect_time(text, row.expert_comm_s, passes_s - n * N_LAYERS * (a + b), 1000);
      attention_job_release(&own);
    }
}

/* ---- what is put behind exchanges ---- */

enum { SHARED_FFN = 96, EXPERT_FFN = 512 };

static int compare_entries(const void *left, const void *right) {
  const pl_op_entry *a = left, *b = right;
  int order = strcmp(a->kind, b->kind);
  if (order == 0) order = strcmp(a->pass, b->pass);
  for (int i = 0; order == 0 && i < 4; i++)
    order = (a->dims[i] > b->dims[i]) - (a->dims[i] < b->dims[i]);
  return order;
}

/* The six products of a gated layer of so many matrices: up and down, the gradients of their inputs, those of their
 * weights. */
static void time_products(pl_op_entry *table, uint32_t *n, int64_t batch, int64_t ffn, const double times[6]) {
  const int64_t s = ATTENTION_SEQ, h = ATTENTION_HIDDEN;
  const int64_t dims[6][4] = {{batch, s, 2 * ffn, h}, {batch, s, h, ffn},     {batch, s, h, 2 * ffn},
                              {batch, s, ffn, h},     {batch, h, 2 * ffn, s}, {batch, ffn, h, s}};
  for (int i = 0; i < 6; i++) {
    table[*n] = (pl_op_entry){.kind = "gemm", .dtype = PL_DTYPE_FP16, .time_s = times[i]};
    memcpy(table[(*n)++].dims, dims[i], sizeof dims[i]);
  }
}

/* ep_overlap=shared: u for the shared experts' first products runs beside the exchange to the experts, y + w, d for the
 * last beside that of the answers, y; back their gradients, of inputs and of weights, beside y and beside y + w. What
 * is hidden is the smaller of the two each time. */
static void shared_experts_run_beside_exchanges(void **state) {
  (void)state;
  static const double ports[] = {2e8, 1e9, 4e9, 1e11};
  const double times[6] = {0x1p-13, 0x1p-14, 0x1.8p-13, 0x1p-15, 0x1.4p-13, 0x1.8p-14};
  enum { RANKS = 4 };
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
    pl_op_entry table[8];
    attention_job own;
    build(&own, RANKS, ports[i], table, false);
    own.profile.n_ops = 0;
    time_products(table, &own.profile.n_ops, 1, SHARED_FFN, times);
    qsort(table, own.profile.n_ops, sizeof *table, compare_entries);
    own.model = mixture(&own);
    own.model.moe.shared_ffn = SHARED_FFN;
    own.job.gbs = (int64_t)N_MICROBATCHES * RANKS;
    double y = (RANKS - 1.0) / RANKS * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2) / ports[i];
    double w = y / ATTENTION_HIDDEN;
    double hidden =
        fmin(y + w, times[0]) + fmin(y, times[1]) + fmin(y, times[3] + times[5]) + fmin(y + w, times[2] + times[4]);
    pl_result_row apart = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,ep=4,mbs=1,overlap=0").row;
    pl_result_row beside = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,ep=4,ep_overlap=shared,mbs=1,overlap=0").row;
    assert_int_equal(beside.ep_overlap, 3);
    expect_time("hidden", apart.iter_time_s - beside.iter_time_s, N_MICROBATCHES * N_LAYERS * hidden, 1000);
    expect_time("exposed", beside.expert_comm_s, N_MICROBATCHES * N_LAYERS * (exchanges * y - hidden), 1000);
    expect_time("computing", beside.compute_s, apart.compute_s, 1000);
    attention_job_release(&own);
  }
}

/* ep_overlap=delayed: of experts f forward, e and g back, for inputs and for weights, g begins with the exchange behind
 * e. Of a pair (above), with attention of no time, D1 = 2 y + w is when the forward pass's tokens are there, and
 *   D2 = max(D1, y + e) + y + w     the gradients of the backward pass's tokens; y + e + g without delay
 *   F  = max(D1, y + e + g) + f     the forward pass's answers are ready
 * and the pair takes max(D2, F) + y. Alone a backward pass takes y + e + max(g, y + w), or + g + y + w. */
static void gradients_of_weights_run_behind_the_exchange(void **state) {
  (void)state;
  static const double ports[] = {2e8, 1e9, 4e9, 1e11};
  const double times[6] = {0x1p-13, 0x1p-14, 0x1.8p-13, 0x1p-15, 0x1.4p-13, 0x1.8p-14};
  enum { RANKS = 4, MANY = 5 };
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
    for (int delayed = 0; delayed < 2; delayed++) {
      pl_op_entry table[8];
      attention_job own;
      build(&own, RANKS, ports[i], table, false);
      own.profile.n_ops = 0;
      time_products(table, &own.profile.n_ops, 8 / RANKS, EXPERT_FFN, times);
      qsort(table, own.profile.n_ops, sizeof *table, compare_entries);
      own.model = mixture(&own);
      own.job.gbs = (int64_t)MANY * RANKS;
      double expert = 8.0 * 3 * ATTENTION_HIDDEN * EXPERT_FFN * N_LAYERS;
      double gradients_s = ring_all_reduce_s(RANKS, 2 * (own.model.count.parameters - expert), ports[i]);
      double y = (RANKS - 1.0) / RANKS * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2) / ports[i];
      double w = y / ATTENTION_HIDDEN, f = times[0] + times[1], e = times[2] + times[3], g = times[4] + times[5];
      double there = 2 * y + w, back = fmax(there, y + e + (delayed ? 0 : g)) + y + w;
      double pair = fmax(back, fmax(there, y + e + g) + f) + y;
      double alone = y + w + f + y + y + e + (delayed ? fmax(g, y + w) : g + y + w);
      char text[128];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,ep=%d,ep_overlap=%s,mbs=1,overlap=0", RANKS, RANKS,
               delayed ? "delayed" : "1");
      pl_result_row row = attention_job_simulate(&own, text).row;
      assert_int_equal(row.ep_overlap, 1 + delayed);
      expect_time(text, row.iter_time_s, N_LAYERS * (alone + (MANY - 1) * pair) + gradients_s, 2000);
      expect_time(text, row.compute_s, MANY * N_LAYERS * (f + e + g), 1000);
      attention_job_release(&own);
    }
}

/* Under sends_tokens_fp8 what goes to experts, forward and backward, takes a byte and 1/32 for each number, and what
 * comes back two, if products are in fp8. */
static void tokens_go_in_8_bits(void **state) {
  (void)state;
  const int32_t n = 4;
  const double port_Bps = 4e9;
  pl_op_entry table[8];
  attention_job own;
  build(&own, n, port_Bps, table, false);
  own.profile.n_ops = 0;
  own.model = mixture(&own);
  own.job.gbs = (int64_t)N_MICROBATCHES * n;
  pl_framework framework = pl_framework_ideal;
  framework.pipeline.sends_tokens_fp8 = true;
  own.job.framework = &framework;
  for (int fp8 = 0; fp8 < 2; fp8++) {
    own.job.fp8 = fp8 == 1;
    own.profile.peak_flops[PL_DTYPE_FP8] = 1e30;
    double y = (n - 1.0) / n * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN) / port_Bps;
    pl_result_row row = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,ep=4,mbs=1,overlap=0").row;
    expect_time("exchanges", row.expert_comm_s,
                N_MICROBATCHES * N_LAYERS * 2 * y * (exchanges - (fp8 ? 1 - 4 / 128.0 : 0)), 1000);
  }
  attention_job_release(&own);
}

/* Neighbours share experts: with tensor ranks innermost they are on one node, whose NIC the exchange never meets. */
static void experts_stay_on_a_node(void **state) {
  (void)state;
  const double port_Bps = 4e9;
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = N_LAYERS,
                                               .n_nodes = 2,
                                               .gpus_per_node = 4,
                                               .port_Bps = port_Bps,
                                               .nic_Bps = port_Bps / 64,
                                               .gbs = N_MICROBATCHES * 8});
  own.profile.n_ops = 0;
  own.model = mixture(&own);
  const char *const texts[] = {"pp=1,dp=8,tmp=1,ep=4,mbs=1,overlap=0", "pp=1,dp=4,tmp=2,sp=1,ep=4,mbs=2,overlap=0",
                               "pp=1,dp=2,tmp=2,cp=2,sp=1,ep=4,mbs=4,overlap=0"};
  for (int i = 0; i < 3; i++) { /* each rank has as many tokens */
    double y = 3.0 / 4 * (ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2) / port_Bps;
    pl_simulate_report report = attention_job_simulate(&own, texts[i]);
    expect_time(texts[i], report.row.expert_comm_s, N_MICROBATCHES * N_LAYERS * exchanges * y, 1000);
  }
  attention_job_release(&own);
}

static void tokens_go_once_to_a_node(void **state) {
  (void)state;
  for (uint32_t n_nodes = 1; n_nodes <= 4; n_nodes *= 2) {
    const double nic_Bps = 1e8;
    attention_job own;
    attention_job_build(&own, &(attention_shape){.n_layers = N_LAYERS,
                                                 .n_nodes = n_nodes,
                                                 .gpus_per_node = 8 / n_nodes,
                                                 .port_Bps = 4e9,
                                                 .nic_Bps = nic_Bps,
                                                 .gbs = N_MICROBATCHES * 8});
    own.profile.n_ops = 0;
    own.model = mixture(&own);
    pl_framework framework = pl_framework_ideal;
    own.job.framework = &framework;
    const char *text = "pp=1,dp=8,tmp=1,ep=8,mbs=1,overlap=0";
    double copies_s = attention_job_simulate(&own, text).row.expert_comm_s;
    framework.pipeline.sends_tokens_per_node = true;
    double once_s = attention_job_simulate(&own, text).row.expert_comm_s;
    /* two experts, both on one of the other nodes or not */
    static const double share[] = {[1] = 1, [2] = 0.75, [4] = 3 * (1 - 0.75 * 0.75) / (2 * 0.75)};
    expect_time("once per node", once_s, copies_s * share[n_nodes], 1000);
    /* ... out of one or two of four groups: one group is on one node, two on two nodes are together on either or apart
     */
    static const double limited[][5] = {{[1] = 1, [2] = 0.5, [4] = 0.5},
                                        {[1] = 1, [2] = 2.0 / 3, [4] = 3 * (0.5 * 0.75) / (2 * 0.75)}};
    own.model.moe.n_groups = 4;
    own.model.moe.group_best = 1;
    for (int64_t chosen = 1; chosen <= 2; chosen++) {
      own.model.moe.topk_groups = chosen;
      expect_time("out of some groups", attention_job_simulate(&own, text).row.expert_comm_s,
                  copies_s * limited[chosen - 1][n_nodes], 1000);
    }
    if (n_nodes > 1) {
      double tokens_bytes = ATTENTION_SEQ * 2.0 * ATTENTION_HIDDEN * 2, elsewhere = 1 - 1.0 / n_nodes;
      expect_time("copies", copies_s, N_MICROBATCHES * N_LAYERS * exchanges * elsewhere * tokens_bytes / nic_Bps, 1000);
    }
    attention_job_release(&own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(context),
                                     cmocka_unit_test(experts),
                                     cmocka_unit_test(cut_experts),
                                     cmocka_unit_test(experts_exchange_beside_the_other_pass),
                                     cmocka_unit_test(shared_experts_run_beside_exchanges),
                                     cmocka_unit_test(gradients_of_weights_run_behind_the_exchange),
                                     cmocka_unit_test(tokens_go_in_8_bits),
                                     cmocka_unit_test(loads),
                                     cmocka_unit_test(experts_stay_on_a_node),
                                     cmocka_unit_test(tokens_go_once_to_a_node)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
