/* What a framework's profile does to the memory of whole programs, against closed forms. The job is that of
 * tests/support/attention_job.h; Psi parameters, n replicas, p stages.
 *
 *   weights in fp32       parameters 4 Psi and a 16-bit copy, gradients 4 Psi, optimizer 8 Psi, each over n from its
 * ZeRO on all in 16 bits        2, 2 and 4 Psi beside the tensors    allocator = (tensors + workspace) (1 +
 * fragmentation); device = allocator + context + communicators static pipeline       c p times what a microbatch
 * leaves, c p copies of 16-bit weights caching allocator     the tensors that the simulation holds, and at least as
 * much
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "tests/support/replayed_stage.h"
#include "workloads/memory/stage_replay.h"

enum { LAYERS = 4, RANKS = 4, MICROBATCHES = 3 };

static void build(attention_job *own, uint32_t n_devices) {
  attention_job_build(own, &(attention_shape){.n_layers = LAYERS,
                                              .forward_s = 0x1p-10,
                                              .backward_s = 0x1.8p-9,
                                              .n_nodes = 1,
                                              .gpus_per_node = n_devices,
                                              .gbs = MICROBATCHES * (int64_t)n_devices});
}

static pl_result_row simulate(attention_job *own, const pl_framework *framework, const char *text) {
  own->job.framework = framework;
  return attention_job_simulate(own, text).row;
}

/* In bf16, of which a bucket is a gradient: its number of parameters. */
static double build_16bit(attention_job *own) {
  build(own, RANKS);
  own->job.dtype = PL_DTYPE_BF16;
  own->job.bucket_bytes = 1;
  return attention_job_all_gradient_bytes(own) / 2;
}

static pl_result_row simulate_zero(attention_job *own, const pl_framework *framework, int32_t zero) {
  char text[64];
  snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=1,zero=%d", RANKS, zero);
  return simulate(own, framework, text);
}

static void fsdp_state(void **state) {
  (void)state;
  attention_job own;
  double psi = build_16bit(&own);
  pl_framework framework = pl_framework_ideal;
  framework.update.weights = PL_WEIGHTS_FP32;
  for (int32_t zero = 0; zero < 4; zero++) {
    pl_result_row row = simulate_zero(&own, &framework, zero);
    double casts = zero >= 3 ? 0 : 2;
    assert_true((double)row.mem_parameters_bytes == 4 * psi / (zero >= 2 ? RANKS : 1) + casts * psi);
    assert_true((double)row.mem_gradients_bytes == 4 * psi / (zero >= 2 ? RANKS : 1));
    assert_true((double)row.mem_optimizer_bytes == 8 * psi / (zero >= 1 ? RANKS : 1));
  }
  attention_job_release(&own);
}

/* Everything in 16 bits: weights and gradients of two bytes, moments of two each. */
static void nothing_in_fp32(void **state) {
  (void)state;
  attention_job own;
  double psi = build_16bit(&own);
  pl_framework framework = pl_framework_ideal;
  framework.update.weights = PL_WEIGHTS_ALONE;
  framework.gradients.gradient_dtype = PL_DTYPE_BF16;
  for (int32_t zero = 0; zero < 4; zero++) {
    pl_result_row row = simulate_zero(&own, &framework, zero);
    assert_true((double)row.mem_parameters_bytes == 2 * psi / (zero >= 3 ? RANKS : 1));
    assert_true((double)row.mem_gradients_bytes == 2 * psi / (zero >= 2 ? RANKS : 1));
    assert_true((double)row.mem_optimizer_bytes == 4 * psi / (zero >= 1 ? RANKS : 1));
  }
  attention_job_release(&own);
}

static void around_the_tensors(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS);
  pl_framework framework = pl_framework_ideal;
  const char *text = "pp=1,dp=4,tmp=1,mbs=1";
  pl_result_row ideal = simulate(&own, NULL, text);
  assert_true(ideal.reserved_mem_bytes == ideal.peak_mem_bytes && ideal.device_mem_bytes == ideal.peak_mem_bytes);
  assert_true((double)ideal.mem_capacity_bytes == own.profile.memory_bytes && ideal.fits);
  framework.memory.workspace_bytes = 1e9;
  framework.memory.fragmentation = 0.25;
  framework.memory.context_bytes = 2e9;
  framework.memory.communicator_bytes = 1e8;
  pl_result_row row = simulate(&own, &framework, text);
  assert_true(row.peak_mem_bytes == ideal.peak_mem_bytes);
  assert_true((double)row.reserved_mem_bytes == ((double)row.peak_mem_bytes + 1e9) * 1.25);
  assert_true((double)row.device_mem_bytes ==
              (double)row.reserved_mem_bytes + 2e9 + 2e8); /* of all devices, and of the replicas */
  /* the largest context with which it fits, and one byte more */
  framework.memory.context_bytes = own.profile.memory_bytes - (double)row.reserved_mem_bytes - 2e8;
  assert_true(simulate(&own, &framework, text).fits);
  framework.memory.context_bytes += 4;
  assert_false(simulate(&own, &framework, text).fits);
  /* communicators as the device's profile has them */
  framework.memory.context_bytes = 2e9;
  framework.memory.communicator_bytes = -1;
  double without = (double)simulate(&own, &framework, text).device_mem_bytes;
  own.profile.communicator_bytes = 3e8;
  assert_true((double)simulate(&own, &framework, text).device_mem_bytes == without + 6e8);
  /* and for reductions in the switch: of all four devices and of the four replicas, for each of its four GPUs */
  own.profile.switch_bytes = 1e7;
  assert_true((double)simulate(&own, &framework, text).device_mem_bytes == without + 6e8 + 8e7);
  double pairs = (double)simulate(&own, &framework, "pp=1,dp=2,tmp=2,mbs=1").device_mem_bytes;
  framework.memory.switch_buffers = false;
  assert_true((double)simulate(&own, &framework, text).device_mem_bytes == without + 6e8);
  assert_true(pairs == (double)simulate(&own, &framework, "pp=1,dp=2,tmp=2,mbs=1").device_mem_bytes + 4e7);
  attention_job_release(&own);
}

/* 16-bit gradients of all blocks live until the pass is over: at the end of the first block's backward pass. */
static void gradients_of_a_pass(void **state) {
  (void)state;
  attention_job own;
  build(&own, 1);
  own.job.dtype = PL_DTYPE_BF16;
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  pl_framework framework = pl_framework_ideal;
  const char *text = "pp=1,dp=1,tmp=1,mbs=1,recompute=full";
  int64_t without = simulate(&own, &framework, text).peak_mem_bytes;
  framework.gradients.keeps_16bit_gradients = true;
  int64_t with = simulate(&own, &framework, text).peak_mem_bytes;
  double more = (double)(with - without);
  if (!(more > 0 && more <= 2 * psi)) fail_msg("%g bytes more, of %g", more, 2 * psi);
  own.job.dtype = PL_DTYPE_FP16; /* gradients are of 16 bits anyway */
  with = simulate(&own, &framework, text).peak_mem_bytes;
  framework.gradients.keeps_16bit_gradients = false;
  assert_true(with == simulate(&own, &framework, text).peak_mem_bytes);
  attention_job_release(&own);
}

static void a_flat_update_stays(void **state) {
  (void)state;
  attention_job own;
  build(&own, 1);
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  pl_framework framework = pl_framework_ideal;
  pl_result_row shared = simulate(&own, &framework, "pp=1,dp=1,tmp=1,mbs=1");
  framework.update.holds_update = true;
  pl_result_row held = simulate(&own, &framework, "pp=1,dp=1,tmp=1,mbs=1");
  double resident = 16 * psi, activations = (double)held.mem_activations_bytes;
  assert_true((double)held.peak_mem_bytes == resident + 4 * psi + activations);
  assert_true((double)shared.peak_mem_bytes == resident + fmax(4 * psi, activations));
  attention_job_release(&own);
}

/* What p stages keep in a static graph: c p times what a microbatch leaves on them, c p copies of 16-bit weights, on
 * all but the last. */
static void buffers_of_a_static_pipeline(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS);
  pl_framework framework = pl_framework_ideal;
  framework.update.weights = PL_WEIGHTS_FP32;
  own.job.framework = &framework;
  const char *text = "pp=4,dp=1,tmp=1,mbs=1";
  pl_simulate_report plain = attention_job_simulate(&own, text);
  framework.pipeline.pipeline_buffers = 2;
  pl_simulate_report buffered = attention_job_simulate(&own, text);
  pl_block_program layer = attention_job_block(&own, PL_BLOCK_LAYER, 1);
  for (int s = 1; s < RANKS; s++) { /* a layer each; stage 0 has the embedding besides */
    double more = buffered.stages[s].buffers - plain.stages[s].buffers;
    double needed = fmin(RANKS - s, (double)own.job.gbs);
    double formula = s == RANKS - 1 ? 0 : (8 - needed) * layer.saved_bytes + 7 * 2 * layer.parameters;
    if (more != formula) fail_msg("stage %d: %.17g bytes more, not %.17g", s, more, formula);
  }
  own.job.gbs = 1; /* a single microbatch needs no buffer */
  buffered = attention_job_simulate(&own, text);
  framework.pipeline.pipeline_buffers = 0;
  assert_true(buffered.row.peak_mem_bytes == attention_job_simulate(&own, text).row.peak_mem_bytes);
  attention_job_release(&own);
}

static pl_replayed_memory replay(attention_job *own, const char *text, int32_t stage, double limit_bytes) {
  return replay_stage(&own->model, &own->job, own->cluster, text, stage, limit_bytes, &own->arena);
}

/* The replay holds at its peak what the simulation holds, tensor for tensor, but for the buffers between stages, which
 * are tensors of the passes; what the allocator adds is beside that. */
static void a_caching_allocator_holds_more(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS);
  own.job.gbs = 64 * RANKS;
  own.job.dtype = PL_DTYPE_BF16; /* whose optimizer needs nothing more */
  pl_framework framework = pl_framework_ideal;
  own.job.framework = &framework;
  static const char *const texts[] = {"pp=4,dp=1,tmp=1,mbs=16", "pp=1,dp=4,tmp=1,mbs=16,recompute=full",
                                      "pp=2,dp=2,tmp=1,mbs=8,schedule=gpipe", "pp=2,dp=2,tmp=1,mbs=8,zero=1"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    framework.memory.allocator = PL_ALLOCATOR_EXACT;
    pl_simulate_report exact = attention_job_simulate(&own, texts[i]);
    framework.memory.allocator = PL_ALLOCATOR_CACHING;
    pl_simulate_report caching = attention_job_simulate(&own, texts[i]);
    for (int32_t s = 0; s < exact.n_stages; s++) {
      assert_true(caching.stages[s].peak == exact.stages[s].peak);
      pl_replayed_memory memory = replay(&own, texts[i], s, 0);
      double tensors = exact.stages[s].peak - exact.stages[s].buffers;
      if (fabs(memory.peak - tensors) > 64) /* shares are rounded up to whole elements */
        fail_msg("%s, stage %d: %.17g bytes of tensors, not %.17g", texts[i], s, memory.peak, tensors);
      assert_true(caching.stages[s].reserved == memory.reserved);
      double held = memory.reserved - memory.peak, stuck = exact.stages[s].capacity - caching.stages[s].capacity;
      if (!(held > 0 && held < 0.5 * tensors + 64 * 0x1p20 && stuck >= 0 && stuck <= held))
        fail_msg("%s, stage %d: %g bytes held beside %g, %g stuck", texts[i], s, held, tensors, stuck);
    }
  }
  attention_job_release(&own);
}

/* What a replay needs at most suffices for it; with less it gives segments back, and below its tensors it is full. */
static void a_device_suffices_or_not(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS);
  own.job.gbs = 64 * RANKS;
  own.job.dtype = PL_DTYPE_BF16;
  pl_framework framework = pl_framework_ideal;
  framework.memory.allocator = PL_ALLOCATOR_CACHING;
  own.job.framework = &framework;
  const char *text = "pp=2,dp=2,tmp=1,mbs=16,zero=1";
  pl_replayed_memory enough = replay(&own, text, 0, 0);
  assert_true(!enough.full && !replay(&own, text, 0, enough.reserved).full);
  pl_replayed_memory tight = replay(&own, text, 0, enough.reserved - 1);
  assert_true(tight.full || tight.reserved < enough.reserved);
  pl_replayed_memory less = replay(&own, text, 0, enough.peak - 1);
  assert_true(less.full && less.peak < enough.peak);
  own.profile.memory_bytes = own.profile.reserved_bytes + enough.peak - 1;
  assert_false(attention_job_simulate(&own, text).row.fits);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fsdp_state),
      cmocka_unit_test(nothing_in_fp32),
      cmocka_unit_test(around_the_tensors),
      cmocka_unit_test(gradients_of_a_pass),
      cmocka_unit_test(a_flat_update_stays),
      cmocka_unit_test(buffers_of_a_static_pipeline),
      cmocka_unit_test(a_caching_allocator_holds_more),
      cmocka_unit_test(a_device_suffices_or_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
