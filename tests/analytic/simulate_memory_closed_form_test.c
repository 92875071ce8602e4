/* The memory of whole programs against closed forms: what ZeRO shards, what precision costs, how many microbatches'
 * activations a schedule keeps. The job is that of tests/support/attention_job.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"

/* Dyadic, so that products of them are on the grid of ticks. */
static const double forward_s = 0x1p-10, backward_s = 0x1.8p-9;

static void zero_shards_what_the_paper_says(void **state) {
  (void)state;
  const int32_t n = 8;
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = 4, .n_nodes = 1, .gpus_per_node = (uint32_t)n, .gbs = n});
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  for (int32_t zero = 0; zero < 4; zero++) { /* 2 Psi + 2 Psi + 12 Psi, Rajbhandari et al. 2020, figure 1 */
    char text[64];
    snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d", n, zero);
    pl_result_row row = attention_job_simulate(&own, text).row;
    assert_true(row.mem_parameters_bytes == 2 * psi / (zero >= 3 ? n : 1));
    assert_true(row.mem_gradients_bytes == 2 * psi / (zero >= 2 ? n : 1));
    assert_true(row.mem_optimizer_bytes == 12 * psi / (zero >= 1 ? n : 1));
    int64_t sum = row.mem_parameters_bytes + row.mem_gradients_bytes + row.mem_optimizer_bytes +
                  row.mem_activations_bytes + row.mem_buffers_bytes;
    assert_true(labs(sum - row.peak_mem_bytes) <= 1);
  }
  attention_job_release(&own);
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
  attention_job own;
  attention_job_build(
      &own, &(attention_shape){.n_layers = 16, .n_nodes = 1, .gpus_per_node = (uint32_t)n, .port_Bps = 4e9, .gbs = n});
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (int32_t zero = 0; zero < 2; zero++) {
      char text[64];
      snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d,overlap=0,recompute=%s", n, zero,
               zero ? "none" : "full");
      own.job.dtype = rows[i].dtype;
      pl_result_row row = attention_job_simulate(&own, text).row;
      double shards = zero ? n : 1, update = rows[i].update * psi / shards;
      assert_true(row.mem_parameters_bytes == rows[i].parameters * psi);
      assert_true(row.mem_gradients_bytes == rows[i].gradients * psi);
      assert_true(row.mem_optimizer_bytes == rows[i].optimizer * psi / shards);
      bool updates = rows[i].update > 0 && zero == 0;
      assert_true(row.mem_buffers_bytes == (updates ? update : 0));
      assert_true(updates ? row.mem_activations_bytes == 0
                          : row.mem_activations_bytes > update && row.mem_activations_bytes < 4 * psi);
      double sent = zero == 0 ? 2 * rows[i].gradients : rows[i].gradients + rows[i].parameters;
      expect_time("communication of data parallelism", row.data_comm_s, ring_all_reduce_s(n, sent / 2 * psi, 4e9), 2);
    }
  attention_job_release(&own);
}

/* What stages 1 to p - 2, all of the same layers, keep differs by the microbatches in flight alone: min(p - s, m) with
 * 1F1B, m with GPipe. */
static void activations_follow_the_schedule(void **state) {
  (void)state;
  const int32_t p = 8, m = 12, k = 16;
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = k,
                                               .forward_s = forward_s,
                                               .backward_s = backward_s,
                                               .n_nodes = 1,
                                               .gpus_per_node = (uint32_t)p,
                                               .gbs = m});
  own.table[0].dtype = own.table[1].dtype = own.job.dtype = PL_DTYPE_BF16; /* whose optimizer needs nothing more */
  double saved = (double)k / p * attention_job_block(&own, PL_BLOCK_LAYER, 1).saved_bytes;
  pl_simulate_report one = attention_job_simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=1f1b");
  pl_simulate_report all = attention_job_simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=gpipe");
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
  one = attention_job_simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=1f1b");
  all = attention_job_simulate(&own, "pp=8,dp=1,tmp=1,mbs=1,schedule=gpipe");
  for (int32_t s = 1; s < p - 2; s++)
    assert_true(one.stages[s].activations == all.stages[s].activations);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zero_shards_what_the_paper_says),
      cmocka_unit_test(precision_decides_what_gradients_take),
      cmocka_unit_test(activations_follow_the_schedule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
