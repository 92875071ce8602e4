/* See attention_job.h. */
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

void attention_job_build(attention_job *own, const attention_shape *given) {
  *own = (attention_job){
      .job = {.gbs = given->gbs, .seq = ATTENTION_SEQ, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 1e15}};
  pl_arena_init(&own->arena, 0);
  char config[256];
  int size = snprintf(config, sizeof config,
                      "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_layer\":%d,\"n_head\":%d,\"n_positions\":%d,"
                      "\"vocab_size\":1024,\"tie_word_embeddings\":false}",
                      ATTENTION_HIDDEN, given->n_layers, ATTENTION_HEADS, ATTENTION_SEQ);
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("m.json", config, (size_t)size, &own->arena, &own->model, &error) != PL_OK)
    fail_msg("%s", error.message);
  int32_t tmp = given->tmp == 0 ? 1 : given->tmp;
  for (int pass = 0; pass < 2; pass++)
    own->table[pass] =
        (pl_op_entry){.kind = "attention",
                      .dtype = PL_DTYPE_FP16,
                      .dims = {ATTENTION_HEADS / tmp, ATTENTION_SEQ, ATTENTION_SEQ, ATTENTION_HIDDEN / ATTENTION_HEADS},
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
                                     .nic_latency_s = given->nic_latency_s,
                                     .pcie_Bps = 1e30,
                                     .cpu_Bps = 1e30,
                                     .profiles = &own->profile,
                                     .n_profiles = 1};
  own->cluster = synthetic_cluster_create(&options);
}

void attention_job_release(attention_job *own) {
  synthetic_cluster_release(own->cluster);
  pl_arena_release(&own->arena);
}

pl_simulate_report attention_job_simulate(attention_job *own, const char *text) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.algorithm = PL_ALGORITHM_RING;
  options.collective_profile = own->profile_of_collectives;
  pl_strategy strategy;
  pl_simulate_report report = {.n_stages = 0};
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error) != PL_OK ||
      pl_strategy_check(&strategy, &own->model, &own->job, own->cluster->n_devices, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &own->model, &own->job, own->cluster, &own->arena, &error) != PL_OK ||
      pl_simulate(own->cluster, &own->model, &own->job, &strategy, &options, &own->arena, &report, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return report;
}

void expect_time(const char *what, double time_s, double formula_s, double ticks) {
  if (!(fabs(time_s - formula_s) <= ticks / PL_TICKS_PER_S))
    fail_msg("%s: %.17g s, formula %.17g s, %.1f ticks apart", what, time_s, formula_s,
             (time_s - formula_s) * PL_TICKS_PER_S);
}

pl_block_program attention_job_block(attention_job *own, pl_block_kind kind, int32_t tmp) {
  const pl_block_shard shard = {.tmp = tmp,
                                .mbs = 1,
                                .seq = ATTENTION_SEQ,
                                .dtype = PL_DTYPE_FP16,
                                .flash = true,
                                .framework = own->job.framework};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_block_program_take(&own->model, kind, &shard, &own->arena, &program, &error), PL_OK);
  return program;
}

double attention_job_gradient_bytes(attention_job *own, pl_block_kind kind) {
  return 2 * attention_job_block(own, kind, 1).parameters;
}

double attention_job_all_gradient_bytes(attention_job *own) {
  double bytes = own->model.n_layers * attention_job_gradient_bytes(own, PL_BLOCK_LAYER);
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
    if (kind != PL_BLOCK_LAYER && kind != PL_BLOCK_EXPERT_LAYER)
      bytes += attention_job_gradient_bytes(own, (pl_block_kind)kind);
  return bytes;
}

double ring_all_reduce_s(int32_t n, double size_bytes, double port_Bps) {
  return 2.0 * (n - 1) / n * size_bytes / port_Bps;
}
