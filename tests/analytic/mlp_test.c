/* Plain MLPs against closed forms. A device computes at P FLOP/s and moves bytes in no time; L layers of width h, m
 * microbatches of b vectors, t tensor ranks, ports of W bytes/s.
 *
 *   one device     m L 3 (2 b h^2) / P
 *   t ranks        m (L 3 (2 b h^2) / (t P) + L A): a pair of layers has an all-reduce in each pass, A = 2 (t - 1)/t 2
 * b h / W p stages       (m + p - 1) L/p 3 (2 b h^2) / P n replicas     and L all-reduces of 2 h^2 bytes behind it,
 * without overlap parameters     L h^2; SGD keeps weights and gradients, of two bytes each, and nothing else FLOPs 6 L
 * h^2 per vector
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
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/lower/block_program.h"

enum { LAYERS = 8, WIDTH = 256, VECTORS = 64, MICROBATCHES = 4 };
static const double peak = 0x1p40, port_Bps = 0x1p30;

static void build(attention_job *own, uint32_t n_devices, int64_t gbs) {
  attention_job_build(own, &(attention_shape){.n_layers = 1,
                                              .forward_s = 1,
                                              .backward_s = 1,
                                              .n_nodes = 1,
                                              .gpus_per_node = n_devices,
                                              .port_Bps = port_Bps,
                                              .gbs = gbs});
  own->profile.n_ops = 0;
  own->profile.peak_flops[PL_DTYPE_FP16] = peak;
  own->job.seq = 1;
  char config[128];
  int size = snprintf(config, sizeof config,
                      "{\"model_type\": \"mlp\", \"num_hidden_layers\": %d, \"hidden_size\": %d}", LAYERS, WIDTH);
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("m.json", config, (size_t)size, &own->arena, &own->model, &error) != PL_OK)
    fail_msg("%s", error.message);
}

static double layer_s(void) {
  return 3 * 2.0 * VECTORS * WIDTH * WIDTH / peak;
}

enum { TICKS = 64 * LAYERS * MICROBATCHES };

static void one_device(void **state) {
  (void)state;
  attention_job own;
  build(&own, 1, MICROBATCHES * VECTORS);
  pl_result_row row = attention_job_simulate(&own, "pp=1,dp=1,tmp=1,mbs=64").row;
  expect_time("one device", row.iter_time_s, MICROBATCHES * LAYERS * layer_s(), TICKS);
  assert_true(own.model.count.parameters == (double)LAYERS * WIDTH * WIDTH);
  assert_true(pl_model_flops_per_sequence(&own.model, 1) == 6 * own.model.count.parameters);
  assert_int_equal(pl_model_n_blocks(&own.model), LAYERS + 6);
  attention_job_release(&own);
}

static void tensor_ranks(void **state) {
  (void)state;
  attention_job own;
  for (int t = 2; t <= 8; t *= 2) {
    build(&own, (uint32_t)t, MICROBATCHES * VECTORS);
    char text[64];
    snprintf(text, sizeof text, "pp=1,dp=1,tmp=%d,mbs=64", t);
    double reduce_s = ring_all_reduce_s(t, 2.0 * VECTORS * WIDTH, port_Bps);
    expect_time("tensor ranks", attention_job_simulate(&own, text).row.iter_time_s,
                MICROBATCHES * LAYERS * (layer_s() / t + reduce_s), TICKS);
    attention_job_release(&own);
  }
}

static void stages(void **state) {
  (void)state;
  attention_job own;
  for (int p = 2; p <= LAYERS; p *= 2) {
    build(&own, (uint32_t)p, MICROBATCHES * VECTORS);
    for (uint32_t link = 0; link < own.cluster->n_links; link++) /* sends take no time */
      ((pl_link *)(uintptr_t)own.cluster->links)[link].capacity_Bps = 1e30;
    char text[64];
    snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=64", p);
    expect_time("stages", attention_job_simulate(&own, text).row.iter_time_s,
                (MICROBATCHES + p - 1) * ((double)LAYERS / p) * layer_s(), TICKS);
    attention_job_release(&own);
  }
}

static void replicas_with_sgd(void **state) {
  (void)state;
  attention_job own;
  enum { REPLICAS = 4 };
  build(&own, REPLICAS, REPLICAS * VECTORS);
  pl_framework framework = pl_framework_ideal;
  framework.update.optimizer = PL_OPTIMIZER_SGD;
  framework.gradients.bucket_bytes = 1;
  framework.gradients.overlaps_gradients = false;
  own.job.framework = &framework;
  own.job.bucket_bytes = 1;
  pl_simulate_report report = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=64,overlap=0");
  double reduce_s = ring_all_reduce_s(REPLICAS, 2.0 * WIDTH * WIDTH, port_Bps);
  expect_time("replicas", report.row.iter_time_s, LAYERS * (layer_s() + reduce_s), TICKS);
  assert_true(report.stages[0].parameters == 2 * own.model.count.parameters);
  assert_true(report.stages[0].gradients == 2 * own.model.count.parameters);
  assert_true(report.stages[0].optimizer == 0);
  attention_job_release(&own);
}

static void refused(void **state) {
  (void)state;
  const char *texts[][2] = {
      {"{\"model_type\": \"mlp\", \"num_hidden_layers\": 3, \"hidden_size\": 8}", "must be even"},
      {"{\"model_type\": \"mlp\", \"num_hidden_layers\": 0, \"hidden_size\": 8}", "num_hidden_layers"},
      {"{\"model_type\": \"mlp\", \"num_hidden_layers\": 2}", "hidden_size"},
      {"{\"model_type\": \"mlp\", \"num_hidden_layers\": 2, \"hidden_size\": 1.5}", "hidden_size"}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    pl_arena arena;
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&arena, 0);
    assert_int_equal(pl_model_parse("m.json", texts[i][0], strlen(texts[i][0]), &arena, &model, &error), PL_BAD_INPUT);
    if (strstr(error.message, texts[i][1]) == NULL || strstr(error.message, "m.json:1") == NULL)
      fail_msg("'%s' is not in '%s'", texts[i][1], error.message);
    pl_arena_release(&arena);
  }
  attention_job own;
  build(&own, 1, VECTORS);
  const pl_block_shard shard = {.tmp = 3, .mbs = 1, .seq = 1, .dtype = PL_DTYPE_FP16};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_block_class_program_take(&own.model, 1, &shard, &own.arena, &program, &error), PL_BAD_INPUT);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_device),        cmocka_unit_test(tensor_ranks), cmocka_unit_test(stages),
      cmocka_unit_test(replicas_with_sgd), cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
