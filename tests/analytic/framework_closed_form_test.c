/* What a framework's profile does to the times of whole programs, against closed forms (to memory:
 * framework_memory_closed_form_test.c). The job is that of
 * tests/support/attention_job.h: a device computes nothing but attention (f forward, b backward, per layer and
 * microbatch), k layers, m microbatches, n replicas; Psi parameters, S = 2 Psi bytes of 16 bits; W bytes/s of a port.
 *
 *   host             m max(k (f + b), H), or the sum where every kernel is waited for, H = launches of a microbatch
 * forward and backward ZeRO-3, no overlap, not ahead m (k (f + b) + 3 (n - 1)/n S/W): two gathers and one scatter of
 * everything, none of them hidden
 *   ... by all-reduce   the scatter counts twice
 *   ... copied per rank  and n launches more behind each of 2 (number of blocks with parameters) gathers
 *   ... with recomputation above the reuse distance    layers are gathered three times
 *   tensor collectives beside products, per layer and microbatch
 *                    sum over ten pairs of max(collective, product) instead of their sum
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
#include "workloads/cost/op_cost.h"

static const double forward_s = 0x1p-10, backward_s = 0x1.8p-9;
enum { LAYERS = 4, RANKS = 4, MICROBATCHES = 3 };

static void build(attention_job *own, uint32_t n_devices, double port_Bps) {
  attention_job_build(own, &(attention_shape){.n_layers = LAYERS,
                                              .forward_s = forward_s,
                                              .backward_s = backward_s,
                                              .n_nodes = 1,
                                              .gpus_per_node = n_devices,
                                              .port_Bps = port_Bps,
                                              .gbs = MICROBATCHES * (int64_t)n_devices});
}

static pl_result_row simulate(attention_job *own, const pl_framework *framework, const char *text) {
  own->job.framework = framework;
  return attention_job_simulate(own, text).row;
}

/* ---- host ---- */

/* Launches of a microbatch: every op of every block, forward and backward. */
static double launches_s(attention_job *own, double forward_launch_s, double backward_launch_s) {
  double sum_s = 0;
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++) {
    if (kind == PL_BLOCK_EXPERT_LAYER) continue;
    pl_block_program block = attention_job_block(own, (pl_block_kind)kind, 1);
    double times = kind == PL_BLOCK_LAYER ? LAYERS : kind == PL_BLOCK_IDENTITY ? 2 : 1;
    sum_s += times * (block.forward.n_ops * forward_launch_s + block.backward.n_ops * backward_launch_s);
  }
  return sum_s;
}

static void host_and_device_take_the_longer(void **state) {
  (void)state;
  attention_job own;
  build(&own, 1, 0);
  double device_s = LAYERS * (forward_s + backward_s);
  bool late = false, ahead = false;
  for (int i = -24; i <= -8; i++) {
    pl_framework framework = pl_framework_ideal;
    framework.launch.launch_s = ldexp(1, i);
    framework.launch.backward_launch_s = ldexp(1, i - 2);
    double host_s = launches_s(&own, framework.launch.launch_s, framework.launch.backward_launch_s);
    late |= host_s > device_s;
    ahead |= host_s < device_s;
    pl_result_row row = simulate(&own, &framework, "pp=1,dp=1,tmp=1,mbs=1");
    /* the shares of the blocks are rounded one by one */
    expect_time("host", row.iter_time_s, MICROBATCHES * fmax(device_s, host_s), MICROBATCHES * 2 * (LAYERS + 6));
    framework.launch.host_window = PL_HOST_KERNEL;
    double turns_s = simulate(&own, &framework, "pp=1,dp=1,tmp=1,mbs=1").iter_time_s;
    expect_time("waited for", turns_s, MICROBATCHES * (device_s + host_s), MICROBATCHES * 2 * (LAYERS + 6));
    double sum_s = row.compute_s + row.bubble_s;
    if (fabs(sum_s - row.iter_time_s) > 1e-12) fail_msg("the breakdown lacks %g s", row.iter_time_s - sum_s);
  }
  assert_true(late && ahead);
  attention_job_release(&own);
}

/* A host that waits at every send has no use of what it saved in the backward pass. */
static void waiting_at_sends_costs(void **state) {
  (void)state;
  attention_job own;
  build(&own, 2, 0);
  pl_framework framework = pl_framework_ideal;
  framework.launch.launch_s = forward_s / 4; /* late in the forward pass, ahead in the backward pass */
  double together_s = simulate(&own, &framework, "pp=2,dp=1,tmp=1,mbs=1").iter_time_s;
  framework.launch.host_window = PL_HOST_PASS;
  double apart_s = simulate(&own, &framework, "pp=2,dp=1,tmp=1,mbs=1").iter_time_s;
  double ideal_s = simulate(&own, NULL, "pp=2,dp=1,tmp=1,mbs=1").iter_time_s;
  if (!(apart_s > together_s && together_s == ideal_s))
    fail_msg("ideal %g s, one window %g s, a window for each pass %g s", ideal_s, together_s, apart_s);
  attention_job_release(&own);
}

/* ---- ZeRO-3 ---- */

static void unhidden_zero_3(void **state) {
  (void)state;
  const double port_Bps = 1e9, compute_s = LAYERS * (forward_s + backward_s);
  attention_job own;
  build(&own, RANKS, port_Bps);
  double all_s = (RANKS - 1.0) / RANKS * attention_job_all_gradient_bytes(&own) / port_Bps;
  double layers_s = (RANKS - 1.0) / RANKS * LAYERS * attention_job_gradient_bytes(&own, PL_BLOCK_LAYER) / port_Bps;
  const char *text = "pp=1,dp=4,tmp=1,mbs=1,zero=3,overlap=0";
  enum { TICKS = 400 }; /* dozens of transfers a microbatch, each rounded */

  pl_framework framework = pl_framework_ideal;
  framework.gathers.gathers_ahead = false;
  double plain_s = MICROBATCHES * (compute_s + 3 * all_s);
  expect_time("not ahead", simulate(&own, &framework, text).iter_time_s, plain_s, TICKS);

  framework.gradients.scatters_by_all_reduce = true;
  expect_time("all-reduce", simulate(&own, &framework, text).iter_time_s, plain_s + MICROBATCHES * all_s, TICKS);
  framework.gradients.scatters_by_all_reduce = false;

  framework.gathers.copies_per_rank = true;
  framework.launch.launch_s = 0x1p-16;
  framework.launch.backward_launch_s =
      0;                            /* the host is ahead: 4 launches of a copy, and of the ops, are less than a layer */
  int n_gathers = 2 * (LAYERS + 3); /* embedding, final norm and head have parameters; the loss has none */
  double copies_s = MICROBATCHES * n_gathers * RANKS * framework.launch.launch_s;
  expect_time("copies", simulate(&own, &framework, text).iter_time_s, plain_s + copies_s, TICKS);
  framework.gathers.copies_per_rank = false;
  framework.gathers.copies_gathered = true;
  expect_time("one copy", simulate(&own, &framework, text).iter_time_s, plain_s + copies_s / RANKS, TICKS);
  framework = pl_framework_ideal;

  framework.gathers.gathers_ahead = false;
  framework.gathers.reuse_parameters = 1;
  double head_s = (RANKS - 1.0) / RANKS * attention_job_gradient_bytes(&own, PL_BLOCK_HEAD) / port_Bps; /* is kept */
  double again_s = MICROBATCHES * (LAYERS * forward_s + layers_s - head_s);
  expect_time("gathered again",
              simulate(&own, &framework, "pp=1,dp=4,tmp=1,mbs=1,zero=3,overlap=0,recompute=full").iter_time_s,
              plain_s + again_s, TICKS);
  attention_job_release(&own);
}

/* Of the last blocks, between whose two passes fewer parameters are used than a framework lets go of none within: a
 * block's own count twice for those in front of it, thrice where it is computed again. In a pipeline none is kept. */
static void kept_for_the_backward_pass(void **state) {
  (void)state;
  const double port_Bps = 1e9, bytes_s = (RANKS - 1.0) / RANKS / port_Bps;
  attention_job own;
  build(&own, RANKS, port_Bps);
  double head = attention_job_gradient_bytes(&own, PL_BLOCK_HEAD) / 2,
         norm = attention_job_gradient_bytes(&own, PL_BLOCK_FINAL_NORM) / 2,
         layer = attention_job_gradient_bytes(&own, PL_BLOCK_LAYER) / 2,
         embedding = attention_job_gradient_bytes(&own, PL_BLOCK_EMBEDDING) / 2;
  double ends = 2 * (head + norm);
  const struct {
    const char *what, *recompute;
    double reuse, kept; /* parameters */
  } cases[] = {{"the head", "none", 2 * head, head},
               {"and the norm", "none", ends, head + norm},
               {"and a layer", "none", ends + 1, head + norm + layer},
               {"a layer counts twice", "none", ends + 2 * layer, head + norm + layer},
               {"and two", "none", ends + 2 * layer + 1, head + norm + 2 * layer},
               {"a layer counts thrice", "full", ends + 3 * layer, head + norm + layer},
               {"and two, recomputed", "full", ends + 3 * layer + 1, head + norm + 2 * layer},
               {"all", "none", 1e15, head + norm + LAYERS * layer + embedding}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, "pp=1,dp=4,tmp=1,mbs=1,zero=3,overlap=0,recompute=%s", cases[i].recompute);
    pl_framework framework = pl_framework_ideal;
    framework.gathers.gathers_ahead = false;
    double whole_s = simulate(&own, &framework, text).iter_time_s;
    framework.gathers.reuse_parameters = cases[i].reuse;
    double saved_s = MICROBATCHES * 2 * cases[i].kept * bytes_s;
    expect_time(cases[i].what, simulate(&own, &framework, text).iter_time_s, whole_s - saved_s, 400);
    framework.gathers.reuse_parameters = 0;
    framework.gathers.keeps_last = true;
    saved_s = MICROBATCHES * 2 * (head + norm) * bytes_s;
    expect_time("the last unit", simulate(&own, &framework, text).iter_time_s, whole_s - saved_s, 400);
  }
  attention_job_release(&own);
}

/* Gathering matrices by themselves moves what a layer's gather moves, less the vectors, which stay. */
static void gathers_per_tensor(void **state) {
  (void)state;
  const double port_Bps = 1e9;
  attention_job own;
  build(&own, RANKS, port_Bps);
  const char *text = "pp=1,dp=4,tmp=1,mbs=1,zero=3,overlap=0";
  pl_framework framework = pl_framework_ideal;
  framework.gathers.gathers_ahead = false;
  double whole_s = simulate(&own, &framework, text).iter_time_s;
  framework.gathers.gather_unit = PL_GATHER_TENSOR;
  double apart_s = simulate(&own, &framework, text).iter_time_s;
  /* of a layer: norms 4 h, biases 3 h + h + 4 h + h; the final norm has no matrix and is gathered as it is; positions
   * are vectors too */
  double h = ATTENTION_HIDDEN, vectors = LAYERS * 13 * h + ATTENTION_SEQ * h;
  double saved_s = MICROBATCHES * 2 * (RANKS - 1.0) / RANKS * 2 * vectors / port_Bps;
  expect_time("matrices", apart_s, whole_s - saved_s, 1000);
  attention_job_release(&own);
}

/* ---- tensor collectives ---- */

static double product_s(const attention_job *own, const pl_op_list *list, const char *name) {
  for (uint32_t i = 0; i < list->n_ops; i++)
    if (strcmp(list->ops[i].name, name) == 0) return pl_op_cost(&own->profile, &list->ops[i]).time_s;
  fail_msg("no op %s", name);
  return 0;
}

/* All ten collectives of a layer gather or scatter 2 s b h bytes; each runs beside the product that it feeds or is fed
 * by, or, the gradient of a column split's input, beside the weight gradient. */
static void collectives_run_beside_products(void **state) {
  (void)state;
  static const char *const forward[] = {"qkv", "attention_out", "mlp_up", "mlp_down"};
  static const char *const backward[] = {"mlp_down_dgrad", "mlp_up_dgrad",        "mlp_up_wgrad",
                                         "qkv_dgrad",      "attention_out_dgrad", "qkv_wgrad"};
  const int32_t n = 4;
  const double port_Bps = 16e9, collective_s = (n - 1.0) / n * 2 * ATTENTION_SEQ * ATTENTION_HIDDEN / port_Bps;
  bool hidden = false, exposed = false;
  for (int exponent = 41; exponent <= 46; exponent++) {
    attention_job own;
    attention_job_build(&own, &(attention_shape){.n_layers = LAYERS,
                                                 .forward_s = forward_s,
                                                 .backward_s = backward_s,
                                                 .n_nodes = 1,
                                                 .gpus_per_node = (uint32_t)n,
                                                 .port_Bps = port_Bps,
                                                 .gbs = MICROBATCHES,
                                                 .tmp = n});
    own.profile.peak_flops[PL_DTYPE_FP16] = ldexp(1, exponent);
    pl_block_program layer = attention_job_block(&own, PL_BLOCK_LAYER, n);
    double saved_s = 0;
    for (int i = 0; i < 10; i++) {
      double alone_s =
          i < 4 ? product_s(&own, &layer.forward, forward[i]) : product_s(&own, &layer.backward, backward[i - 4]);
      saved_s += fmin(collective_s, alone_s);
      hidden |= alone_s > collective_s;
      exposed |= alone_s < collective_s;
    }
    pl_framework framework = pl_framework_ideal;
    const char *text = "pp=1,dp=1,tmp=4,mbs=1,sp=1";
    pl_result_row apart = simulate(&own, &framework, text);
    framework.pipeline.overlaps_tensor = true;
    pl_result_row beside = simulate(&own, &framework, text);
    const double passes = MICROBATCHES * LAYERS;
    expect_time("saved", apart.iter_time_s - beside.iter_time_s, passes * saved_s, 400);
    expect_time("computing", beside.compute_s, apart.compute_s, 0);
    expect_time("exposed", apart.tensor_comm_s - beside.tensor_comm_s, passes * saved_s, 400);
    /* without sequence parallelism nothing changes */
    double plain_s = simulate(&own, &framework, "pp=1,dp=1,tmp=4,mbs=1").iter_time_s;
    framework.pipeline.overlaps_tensor = false;
    expect_time("all-reduces", plain_s, simulate(&own, &framework, "pp=1,dp=1,tmp=4,mbs=1").iter_time_s, 0);
    /* nor in NVFP4 */
    own.job.fp8 = own.job.fp4 = true;
    own.profile.peak_flops[PL_DTYPE_FP4] = 4 * own.profile.peak_flops[PL_DTYPE_FP16];
    double fp4_s = simulate(&own, &framework, text).iter_time_s;
    framework.pipeline.overlaps_tensor = true;
    expect_time("NVFP4", simulate(&own, &framework, text).iter_time_s, fp4_s, 0);
    attention_job_release(&own);
  }
  assert_true(hidden && exposed);
}

/* Of a column split's derivative alone: what is gathered again runs beside the product for its input's gradient, which
 * is scattered beside that for its weight's; without sequence parallelism an all-reduce, twice as long, beside that. */
static void derivatives_of_splits_run_beside_products(void **state) {
  (void)state;
  static const char *const products[] = {"mlp_up_dgrad", "qkv_dgrad", "mlp_up_wgrad", "qkv_wgrad"};
  const int32_t n = 4;
  const double port_Bps = 16e9, collective_s = (n - 1.0) / n * 2 * ATTENTION_SEQ * ATTENTION_HIDDEN / port_Bps;
  for (int exponent = 41; exponent <= 46; exponent++) {
    attention_job own;
    attention_job_build(&own, &(attention_shape){.n_layers = LAYERS,
                                                 .forward_s = forward_s,
                                                 .backward_s = backward_s,
                                                 .n_nodes = 1,
                                                 .gpus_per_node = (uint32_t)n,
                                                 .port_Bps = port_Bps,
                                                 .gbs = MICROBATCHES,
                                                 .tmp = n});
    own.profile.peak_flops[PL_DTYPE_FP16] = ldexp(1, exponent);
    pl_block_program layer = attention_job_block(&own, PL_BLOCK_LAYER, n);
    double scattered_s = 0, summed_s = 0;
    for (int i = 0; i < 4; i++) {
      double alone_s = product_s(&own, &layer.backward, products[i]);
      scattered_s += fmin(collective_s, alone_s);
      if (i >= 2) summed_s += fmin(2 * collective_s, alone_s);
    }
    const double passes = MICROBATCHES * LAYERS;
    for (int sp = 0; sp <= 1; sp++) {
      pl_framework framework = pl_framework_ideal;
      const char *text = sp ? "pp=1,dp=1,tmp=4,mbs=1,sp=1" : "pp=1,dp=1,tmp=4,mbs=1";
      pl_result_row apart = simulate(&own, &framework, text);
      framework.pipeline.overlaps_tensor_backward = true;
      pl_result_row beside = simulate(&own, &framework, text);
      expect_time("saved", apart.iter_time_s - beside.iter_time_s, passes * (sp ? scattered_s : summed_s), 400);
      expect_time("computing", beside.compute_s, apart.compute_s, 0);
      /* where all ten do, these do */
      framework.pipeline.overlaps_tensor = true;
      double all_s = simulate(&own, &framework, text).iter_time_s;
      framework.pipeline.overlaps_tensor_backward = false;
      if (sp) expect_time("all", all_s, simulate(&own, &framework, text).iter_time_s, 0);
    }
    attention_job_release(&own);
  }
}

/* A product of `alone_s` that begins beside a collective of `collective_s`, until both are over: `channels` of its
 * multiprocessors are taken, or, where its thread blocks fill the device, a second round of them comes behind. */
static double both_s(const pl_device_profile *profile, double alone_s, double collective_s) {
  double all = profile->gemm.multiprocessors, share = all / (all - profile->channels);
  double lost_s =
      profile->fills_device ? fmin(collective_s, alone_s) : fmin(collective_s, alone_s * share) * (1 - 1 / share);
  return fmax(alone_s + lost_s, collective_s);
}

/* As above, of collectives that keep 24 of 108 multiprocessors busy; userbuffers, which all ten are sent by, none. */
static void collectives_take_multiprocessors_of_products(void **state) {
  (void)state;
  static const char *const products[] = {"mlp_up_dgrad", "qkv_dgrad", "mlp_up_wgrad", "qkv_wgrad"};
  const int32_t n = 4;
  const double port_Bps = 16e9, collective_s = (n - 1.0) / n * 2 * ATTENTION_SEQ * ATTENTION_HIDDEN / port_Bps;
  for (int i = 0; i < 12; i++) {
    attention_job own;
    attention_job_build(&own, &(attention_shape){.n_layers = LAYERS,
                                                 .forward_s = forward_s,
                                                 .backward_s = backward_s,
                                                 .n_nodes = 1,
                                                 .gpus_per_node = (uint32_t)n,
                                                 .port_Bps = port_Bps,
                                                 .gbs = MICROBATCHES,
                                                 .tmp = n});
    own.profile.peak_flops[PL_DTYPE_FP16] = ldexp(1, 41 + i / 2);
    own.profile.gemm.multiprocessors = 108;
    own.profile.channels = 24;
    own.profile.fills_device = i % 2 == 1;
    pl_block_program layer = attention_job_block(&own, PL_BLOCK_LAYER, n);
    double scattered_s = 0, summed_s = 0;
    for (int k = 0; k < 4; k++) {
      double alone_s = product_s(&own, &layer.backward, products[k]);
      scattered_s += collective_s + alone_s - both_s(&own.profile, alone_s, collective_s);
      if (k >= 2) summed_s += 2 * collective_s + alone_s - both_s(&own.profile, alone_s, 2 * collective_s);
    }
    const double passes = MICROBATCHES * LAYERS;
    for (int sp = 0; sp <= 1; sp++) {
      pl_framework framework = pl_framework_ideal;
      const char *text = sp ? "pp=1,dp=1,tmp=4,mbs=1,sp=1" : "pp=1,dp=1,tmp=4,mbs=1";
      pl_result_row apart = simulate(&own, &framework, text);
      framework.pipeline.overlaps_tensor_backward = true;
      pl_result_row beside = simulate(&own, &framework, text);
      expect_time("saved", apart.iter_time_s - beside.iter_time_s, passes * (sp ? scattered_s : summed_s), 800);
      framework.pipeline.overlaps_tensor = true;
      double all_s = simulate(&own, &framework, text).iter_time_s;
      framework.pipeline.overlaps_tensor_backward = false;
      if (sp) expect_time("all", all_s, simulate(&own, &framework, text).iter_time_s, 0);
    }
    attention_job_release(&own);
  }
}

/* Nothing else is in the buffers with one stage, and eight sequences leave activations that the optimizer's step does
 * not come up to. */
static void expect_buffers(attention_job *own, const pl_framework *framework, int32_t zero, double bytes) {
  char text[64];
  snprintf(text, sizeof text, "pp=1,dp=%d,tmp=1,mbs=8,zero=%d", RANKS, zero);
  double buffers = (double)simulate(own, framework, text).mem_buffers_bytes;
  if (buffers != bytes) fail_msg("zero=%d: %.17g bytes of buffers, not %.17g", zero, buffers, bytes);
}

/* DeepSpeed's copies: E elements of a flat tensor, T of the largest tensor, Psi of all.
 *   reduced and, sharded, gathered through flat tensors of 16 bits   2 min(E, Psi) (1 + (zero >= 1))
 *   one gradient in fp32, or in fp64 for ZeRO's norm                 4 T; 8 min(T, Psi/n)
 *   a list of fp32 gradients and the flat one                        8 Psi; sharded 4 Psi/n
 *   bf16: 16-bit gradients stay, fp32 ones are converted to travel   2 Psi + 2 Psi (+ 4 T) */
static void copies_of_gradients(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS, 0);
  double psi = attention_job_all_gradient_bytes(&own) / 2, largest = 4.0 * ATTENTION_HIDDEN * ATTENTION_HIDDEN;
  pl_framework framework = pl_framework_ideal;
  own.job.gbs = 8 * RANKS;
  framework.memory.flat_elements = 1000;
  expect_buffers(&own, &framework, 0, 2000);
  expect_buffers(&own, &framework, 1, 4000);
  framework.memory.flat_elements = 2 * psi;
  expect_buffers(&own, &framework, 1, 4 * psi);
  framework.memory.flat_elements = 0;
  framework.memory.copies_gradient = true;
  expect_buffers(&own, &framework, 0, 4 * largest);
  expect_buffers(&own, &framework, 1, 8 * largest);
  framework.update.holds_update = framework.update.lists_update = true;
  expect_buffers(&own, &framework, 0, 4 * largest + 8 * psi);
  expect_buffers(&own, &framework, 1, 8 * largest + 4 * psi / RANKS);
  own.job.dtype = PL_DTYPE_BF16; /* gradients are of 32 bits: nothing to convert, one is cast to be added */
  expect_buffers(&own, &framework, 1, 4 * largest);
  framework.gradients.keeps_16bit_gradients = framework.gradients.holds_16bit_gradients = true;
  framework.gradients.reduce_dtype = PL_DTYPE_BF16;
  own.job.bucket_bytes = 0; /* one bucket for all */
  expect_buffers(&own, &framework, 1, 4 * largest + 4 * psi);
  own.job.bucket_bytes = 1e6;
  expect_buffers(&own, &framework, 1, 4 * largest + 2 * psi + 1e6);
  attention_job_release(&own);
}

/* ZeRO-3 by tensors holds one (or two, ahead) of them, and the gradient of one. */
static void gathered_by_tensor(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS, 0);
  double layer = attention_job_block(&own, PL_BLOCK_LAYER, 1).parameters;
  double largest = 4.0 * ATTENTION_HIDDEN * ATTENTION_HIDDEN;
  pl_framework framework = pl_framework_ideal;
  own.job.gbs = 8 * RANKS;
  own.job.bucket_bytes = 1;
  expect_buffers(&own, &framework, 3, (2 + 1) * 2 * layer);
  framework.gathers.gather_unit = PL_GATHER_TENSOR;
  expect_buffers(&own, &framework, 3, (2 + 1) * 2 * largest);
  framework.gathers.gathers_ahead = false;
  expect_buffers(&own, &framework, 3, (1 + 1) * 2 * largest);
  attention_job_release(&own);
}

/* FSDP with layers of L parameters in 16 bits, gathered ahead. FSDP 1 gathers two into place and has the gradient of
 * one, cast if it is reduced in another type; FSDP 2 gathers two beside the parameters of one, which are copied out,
 * and always copies the gradient. Of a model that is one unit there is one gradient of all, Psi. */
static void units_of_fsdp(void **state) {
  (void)state;
  attention_job own;
  build(&own, RANKS, 0);
  double layer = attention_job_block(&own, PL_BLOCK_LAYER, 1).parameters;
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  pl_framework framework = pl_framework_ideal;
  framework.update.weights = PL_WEIGHTS_FP32;
  framework.gradients.gradient_dtype = PL_DTYPE_FP32;
  own.job.gbs = 8 * RANKS;
  own.job.bucket_bytes = 1;
  framework.gradients.gradient_path = PL_GRADIENTS_FLAT;
  framework.gradients.reduce_dtype = PL_DTYPE_FP16;
  expect_buffers(&own, &framework, 3, (2 * 2 + 2) * layer);
  framework.gradients.reduce_dtype = PL_DTYPE_FP32;
  expect_buffers(&own, &framework, 3, (2 * 2 + 2 + 4) * layer);
  framework.gradients.gradient_path = PL_GRADIENTS_CHUNKED;
  expect_buffers(&own, &framework, 3, (2 * 2 + 2 + 2 + 4) * layer);
  expect_buffers(&own, &framework, 2, (2 * 2 + 2 + 4) * layer);
  framework.gathers.gathers_ahead = false;
  expect_buffers(&own, &framework, 3, (2 + 2 + 2 + 4) * layer);
  own.job.bucket_bytes = HUGE_VAL;
  expect_buffers(&own, &framework, 3, (2 + 2) * layer + (2 + 4) * psi);
  attention_job_release(&own);
}

/* Copies of queries, keys and values keep nothing, and their launches are in the host's time per layer. */
static void copied_heads(void **state) {
  (void)state;
  attention_job own;
  build(&own, 1, 0);
  pl_framework framework = pl_framework_ideal;
  framework.launch.launch_s = framework.launch.backward_launch_s = 1;
  framework.launch.layer_s = 1;
  own.job.framework = &framework;
  pl_block_program plain = attention_job_block(&own, PL_BLOCK_LAYER, 1);
  double plain_s = simulate(&own, &framework, "pp=1,dp=1,tmp=1,mbs=1").iter_time_s;
  framework.kernels.copies_qkv = true;
  pl_block_program copied = attention_job_block(&own, PL_BLOCK_LAYER, 1);
  assert_true(copied.saved_bytes == plain.saved_bytes);
  assert_int_equal(copied.forward.n_ops, plain.forward.n_ops + 3);
  assert_int_equal(copied.backward.n_ops, plain.backward.n_ops + 4);
  assert_true(copied.forward_peak_bytes >= plain.forward_peak_bytes);
  assert_true(copied.backward_peak_bytes >= plain.backward_peak_bytes);
  expect_time("copies", simulate(&own, &framework, "pp=1,dp=1,tmp=1,mbs=1").iter_time_s, plain_s, 0);
  attention_job_release(&own);
}

/* ZeRO 1 whose gradients are all-reduced at once behind the last pass: twice the bytes of a scatter, nothing hidden,
 * and no buckets. Flat copies of gathered weights come and go with the optimizer. */
static void gradients_reduced_whole(void **state) {
  (void)state;
  attention_job own;
  const double port_Bps = 16e9, n = RANKS;
  char strategy_text[64];
  build(&own, RANKS, port_Bps);
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  pl_framework framework = pl_framework_ideal;
  framework.gradients.bucket_bytes = 1e15;
  framework.gradients.copies_buckets = true;
  const char *text = "pp=1,dp=4,tmp=1,mbs=1,zero=1,overlap=0";
  pl_result_row scattered = simulate(&own, &framework, text);
  framework.gradients.reduces_whole = true;
  pl_result_row whole = simulate(&own, &framework, text);
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  for (int zero = 0; zero <= 1; zero++) {
    snprintf(strategy_text, sizeof strategy_text, "pp=1,dp=4,tmp=1,mbs=1,zero=%d", zero);
    assert_int_equal(pl_strategy_parse(strategy_text, &own.model, &own.arena, &strategy, &error), PL_OK);
    pl_strategy_adopt(&strategy, &own.job);
    assert_true(strategy.overlap == (zero == 0));
  }
  expect_time("the gather half of an all-reduce", whole.iter_time_s - scattered.iter_time_s,
              (n - 1) / n * 2 * psi / port_Bps, 400);
  assert_true((double)(scattered.mem_buffers_bytes - whole.mem_buffers_bytes) == 2 * psi);
  text = "pp=1,dp=4,tmp=1,mbs=1"; /* without ZeRO the switch says nothing */
  pl_result_row plain = simulate(&own, &framework, text);
  framework.gradients.reduces_whole = false;
  expect_time("without ZeRO", plain.iter_time_s, simulate(&own, &framework, text).iter_time_s, 0);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(host_and_device_take_the_longer),
      cmocka_unit_test(waiting_at_sends_costs),
      cmocka_unit_test(unhidden_zero_3),
      cmocka_unit_test(kept_for_the_backward_pass),
      cmocka_unit_test(gathers_per_tensor),
      cmocka_unit_test(collectives_run_beside_products),
      cmocka_unit_test(derivatives_of_splits_run_beside_products),
      cmocka_unit_test(collectives_take_multiprocessors_of_products),
      cmocka_unit_test(copies_of_gradients),
      cmocka_unit_test(copied_heads),
      cmocka_unit_test(gradients_reduced_whole),
      cmocka_unit_test(gathered_by_tensor),
      cmocka_unit_test(units_of_fsdp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
