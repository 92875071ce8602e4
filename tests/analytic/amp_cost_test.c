/* AMP's cost model against equations 3 to 5 written out. A layer computes f forward (tests/support/attention_job.h: all
 * else takes no time); L layers, k stages, B microbatches of m sequences, a = bytes of an activation of one sequence.
 *
 *   pipeline alone       (B - 1) max t + sum t + (k - 1) m a / b,  t of l layers = 3 m l f
 *   data parallel        + 2 (n - 1) / n * gradients of the largest stage / port
 *   tensor parallel      f + 2 all-reduces of a over 2 ranks: f + 2 a / port
 *   experts              tensor ranks hold different tokens: an all-gather and a reduce-scatter of a around attention,
 *                        each half an all-reduce, and none around the experts
 *   two kinds of device  the mean of the one and of the other */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/assign/amp_cost.h"
#include "workloads/import/model_file.h"
#include "workloads/program/program.h"

static const double f = 0x1p-10, port_Bps = 0x1p34, nic_Bps = 0x1p31;
enum { LAYERS = 6 };
static const double activation_bytes = 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN;

static void build(attention_job *own, int32_t tmp) {
  attention_job_build(own, &(attention_shape){.n_layers = LAYERS,
                                              .forward_s = f,
                                              .backward_s = 5 * f,
                                              .n_nodes = 2,
                                              .gpus_per_node = 4,
                                              .port_Bps = port_Bps,
                                              .nic_Bps = nic_Bps,
                                              .gbs = 16,
                                              .tmp = tmp});
}

static pl_amp_costs take(attention_job *own, const pl_cluster *cluster, const char *text, pl_strategy *strategy) {
  pl_error error = PL_ERROR_INIT;
  pl_amp_costs costs = {0};
  if (pl_strategy_parse(text, &own->model, &own->arena, strategy, &error) != PL_OK ||
      pl_strategy_check(strategy, &own->model, &own->job, cluster->n_devices, &error) != PL_OK ||
      pl_amp_costs_take(cluster, &own->model, &own->job, strategy, &own->arena, &costs, &error) != PL_OK)
    fail_msg("%s", error.message);
  return costs;
}

static void expect(double found, double wanted) {
  if (fabs(found - wanted) > 1e-9 * wanted) fail_msg("%.17g, not %.17g", found, wanted);
}

static void pipeline_and_gradients(void **state) {
  (void)state;
  attention_job own;
  pl_strategy strategy;
  build(&own, 1);
  /* six stages on devices 0-3 and 4-5: the cut behind stage 3 crosses the NIC */
  const pl_amp_costs pipeline = take(&own, own.cluster, "pp=6,dp=1,tmp=1,mbs=2,idle=1", &strategy);
  const int32_t ones[] = {0, 1, 2, 3, 4, 5, 6};
  expect(pl_amp_costs_time(&pipeline, ones),
         7 * 6 * f + 6 * 6 * f + 4 * 2 * activation_bytes / port_Bps + 2 * activation_bytes / nic_Bps);
  const pl_amp_costs two = take(&own, own.cluster, "pp=2,dp=4,tmp=1,mbs=2", &strategy);
  const int32_t halves[] = {0, 2, 6};
  pl_training_state bytes = pl_training_state_of(&own.job, 4);
  double held[2] = {0, 0};
  for (int32_t block = 0; block < pl_model_n_blocks(&own.model); block++)
    held[block >= 2 + PL_MODEL_BLOCKS_BEFORE_LAYERS] +=
        attention_job_block(&own, pl_model_block_kind(&own.model, block), 1).parameters;
  expect(pl_amp_costs_time(&two, halves), 1 * 4 * 6 * f + 6 * 6 * f + 2 * activation_bytes / nic_Bps +
                                              1.5 * fmax(held[0], held[1]) * bytes.reduced_bytes / port_Bps);
  attention_job_release(&own);
}

static void tensor_parallel(void **state) {
  (void)state;
  attention_job own;
  pl_strategy strategy;
  build(&own, 2);
  const pl_amp_costs costs = take(&own, own.cluster, "pp=4,dp=1,tmp=2,mbs=4", &strategy);
  double layer_s = costs.problem.time_s[3] - costs.problem.time_s[2];
  expect(layer_s, 3 * 4 * (f + 2 * activation_bytes / port_Bps));
  /* the order that puts tensor ranks on two nodes: over the NIC */
  const pl_amp_costs apart = take(&own, own.cluster, "pp=4,dp=1,tmp=2,mbs=4,order=pdt", &strategy);
  expect(apart.problem.time_s[3] - apart.problem.time_s[2], 3 * 4 * (f + 2 * activation_bytes / nic_Bps));
  attention_job_release(&own);
}

static void experts_split_the_sequence(void **state) {
  (void)state;
  static const char config[] =
      "{\"model_type\":\"mixtral\",\"hidden_size\":256,\"num_hidden_layers\":4,\"num_attention_heads\":16,"
      "\"num_key_value_heads\":16,\"intermediate_size\":512,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
      "\"vocab_size\":1000}";
  attention_job own;
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  build(&own, 2);
  if (pl_model_parse("m.json", config, strlen(config), &own.arena, &own.model, &error) != PL_OK)
    fail_msg("%s", error.message);
  double layer_s[2], bytes = 2.0 * (double)own.job.seq * 256;
  for (int apart = 0; apart <= 1; apart++) {
    const char *text = apart ? "pp=4,dp=1,tmp=2,mbs=4,sp=1,order=pdt" : "pp=4,dp=1,tmp=2,mbs=4,sp=1";
    const pl_amp_costs costs = take(&own, own.cluster, text, &strategy);
    layer_s[apart] = costs.problem.time_s[2] - costs.problem.time_s[1];
  }
  expect(layer_s[1] - layer_s[0], 3 * 4 * bytes * (1 / nic_Bps - 1 / port_Bps));
  attention_job_release(&own);
}

static void mixed_devices_are_averaged(void **state) {
  (void)state;
  attention_job own;
  pl_strategy strategy;
  double layer_s[3];
  build(&own, 1);
  for (int slow = 0; slow <= 2; slow++) {
    synthetic_options options = synthetic_cluster_defaults();
    options.n_nodes = 1;
    options.gpus_per_node = 4;
    pl_cluster *cluster = synthetic_cluster_create(&options);
    for (uint32_t d = 0; d < (slow == 2 ? 4u : (uint32_t)slow); d++)
      synthetic_cluster_set_profile(cluster, d, 1);
    const pl_amp_costs costs = take(&own, cluster, "pp=2,dp=2,tmp=1,mbs=1", &strategy);
    layer_s[slow] = costs.problem.time_s[3] - costs.problem.time_s[2];
    synthetic_cluster_release(cluster);
  }
  assert_true(layer_s[2] > 1.01 * layer_s[0]);
  expect(layer_s[1], 0.75 * layer_s[0] + 0.25 * layer_s[2]);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pipeline_and_gradients),
      cmocka_unit_test(tensor_parallel),
      cmocka_unit_test(experts_split_the_sequence),
      cmocka_unit_test(mixed_devices_are_averaged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
