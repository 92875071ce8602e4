/* Saved activations per layer against Korthikanti et al. 2022 (arXiv 2205.05198), in bytes per microbatch and rank,
 * 16-bit activations, dropout, unfused attention; s sequence, b microbatch, h hidden, a heads, t tensor-parallel
 * degree:
 *
 *   table 2   no parallelism          s b h (34 + 5 a s/h)
 *             tensor                  s b h (10 + 24/t + 5 a s/(h t))
 *             tensor + sequence       s b h/t (34 + 5 a s/h)
 *             tensor + selective      s b h (10 + 24/t)
 *             ... + sequence          s b h/t 34
 *             full                    2 s b h             (its input; split over the sequence where that is)
 *   section 4.3: embedding dropout s b h/t, final norm 2 s b h/t, head input 2 s b h/t, fp32 logits 4 s b v/t (with
 * sequence parallelism).
 *
 * Each formula is a sum over what the ops of the layer read again in the backward pass: nothing in the program says
 * these numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/lower/block_program.h"

static pl_model model;

static void load(const char *name) {
  model = load_model("workloads/models", name, &arena);
}

static pl_block_program take(pl_block_kind kind, pl_block_shard shard) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

static void expect(const char *what, double bytes, double formula) {
  if (bytes != formula) fail_msg("%s: %.17g, formula %.17g", what, bytes, formula);
}

static const char *const gpts[] = {"gpt2-345m", "megatron-1.7b", "megatron-18.4b", "gpt3-175b", "megatron-1008b"};

static void test_korthikanti(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof gpts / sizeof gpts[0]; i++)
    for (int32_t t = 1; t <= 8; t *= 2)
      for (int32_t mbs = 1; mbs <= 4; mbs *= 4) {
        load(gpts[i]);
        int64_t seq = model.positions.max_positions;
        double s = (double)seq, b = mbs, h = (double)model.width.hidden, a = (double)model.attention.n_heads;
        pl_block_shard shard = {.tmp = t, .mbs = mbs, .seq = seq, .dtype = PL_DTYPE_FP16};
        expect("tensor", take(PL_BLOCK_LAYER, shard).saved_bytes,
               s * b * h * 10 + s * b * h * 24 / t + 5 * a * s * s * b / t);
        shard.recompute = PL_RECOMPUTE_SELECTIVE;
        expect("selective", take(PL_BLOCK_LAYER, shard).saved_bytes, s * b * h * 10 + s * b * h * 24 / t);
        shard.recompute = PL_RECOMPUTE_FULL;
        expect("full", take(PL_BLOCK_LAYER, shard).saved_bytes, 2 * s * b * h);
        shard.sp = true;
        expect("full, sequence", take(PL_BLOCK_LAYER, shard).saved_bytes, 2 * s * b * h / t);
        shard.recompute = PL_RECOMPUTE_SELECTIVE;
        expect("selective, sequence", take(PL_BLOCK_LAYER, shard).saved_bytes, s * b * h * 34 / t);
        shard.recompute = PL_RECOMPUTE_NONE;
        expect("sequence", take(PL_BLOCK_LAYER, shard).saved_bytes, s * b * h * 34 / t + 5 * a * s * s * b / t);
      }
}

static void test_ends(void **state) {
  (void)state;
  load("gpt3-175b");
  double s = 2048, b = 2, h = 12288, v = 51200;
  for (int32_t t = 1; t <= 8; t *= 2) {
    pl_block_shard shard = {.tmp = t, .sp = true, .mbs = 2, .seq = 2048, .dtype = PL_DTYPE_BF16};
    expect("embedding", take(PL_BLOCK_EMBEDDING, shard).saved_bytes, s * b * h / t);
    expect("final norm", take(PL_BLOCK_FINAL_NORM, shard).saved_bytes, 2 * s * b * h / t);
    expect("head", take(PL_BLOCK_HEAD, shard).saved_bytes, 2 * s * b * h / t);
    expect("loss", take(PL_BLOCK_LOSS, shard).saved_bytes, 4 * s * b * v / t);
    expect("identity", take(PL_BLOCK_IDENTITY, shard).saved_bytes, 0);
    expect("send", take(PL_BLOCK_LAYER, shard).output_bytes, 2 * s * b * h / t);
  }
}

/* Post-norm BERT keeps the same 34 s b h: its norms keep the sums, QKV and the first MLP matrix keep the norms'
 * outputs. */
static void test_bert(void **state) {
  (void)state;
  load("bert-large");
  double s = 512, b = 4, h = 1024, a = 16;
  pl_block_shard shard = {.tmp = 1, .mbs = 4, .seq = 512, .dtype = PL_DTYPE_FP16};
  expect("bert", take(PL_BLOCK_LAYER, shard).saved_bytes, s * b * h * 34 + 5 * a * s * s * b);
}

/* Flash attention keeps no s x s tensor but the fp32 log-sum-exp of every row: s b h (10 + 24/t) + 4 a s b/t. Without
 * dropout (Llama), with gate and k key-value heads: norms 4 and inputs of QKV and MLP 4 outside; q, context 4, k and v
 * 4 k/a, gate and up 4 f/h, product 2 f/h inside. */
static void test_flash(void **state) {
  (void)state;
  load("gpt3-175b");
  double s = 2048, b = 1, h = 12288, a = 96, t = 8;
  pl_block_shard shard = {.tmp = 8, .mbs = 1, .seq = 2048, .dtype = PL_DTYPE_BF16, .flash = true};
  expect("gpt flash", take(PL_BLOCK_LAYER, shard).saved_bytes, s * b * h * 10 + s * b * h * 24 / t + 4 * a * s * b / t);
  load("llama-3-70b");
  shard.seq = 8192;
  s = 8192, h = 8192, a = 64;
  double f = 28672, kv = 8;
  expect("llama flash", take(PL_BLOCK_LAYER, shard).saved_bytes,
         s * b * (8 * h + (4 * h + 4 * h * kv / a + 6 * f) / t) + 4 * a * s * b / t);
}

/* Peaks, by hand, for the smallest case: final norm of one GPU (n = 2 s b h bytes per tensor).
 *   forward: input (kept) and output alive: 2 n. backward: the output's gradient was handed in, the input's is made: 2
 * n, then the kept input goes. Head: forward input (kept) + logits: n + L. backward: gradient of logits + gradient of
 * input: L + n. Loss (l = fp32 logits): forward: logits + l, then l + per-token numbers; backward: l in place, then the
 * fp16 gradient: L. */
static void test_peaks(void **state) {
  (void)state;
  load("gpt2-345m");
  pl_block_shard shard = {.tmp = 1, .mbs = 4, .seq = 1024, .dtype = PL_DTYPE_FP16};
  double n = 2.0 * 1024 * 4 * 1024, L = 2.0 * 1024 * 4 * 50304;
  pl_block_program program = take(PL_BLOCK_FINAL_NORM, shard);
  expect("norm forward", program.forward_peak_bytes, 2 * n);
  expect("norm backward", program.backward_peak_bytes, 2 * n);
  program = take(PL_BLOCK_HEAD, shard);
  expect("head forward", program.forward_peak_bytes, n + L);
  expect("head backward", program.backward_peak_bytes, n + L);
  program = take(PL_BLOCK_LOSS, shard);
  expect("loss forward", program.forward_peak_bytes, 3 * L);
  expect("loss backward", program.backward_peak_bytes, L);
  program = take(PL_BLOCK_IDENTITY, shard);
  expect("identity forward", program.forward_peak_bytes, n);
  expect("identity backward", program.backward_peak_bytes, n);
  /* Full recomputation: the backward pass needs what an ordinary forward keeps, beyond the input that was kept. */
  pl_block_program none = take(PL_BLOCK_LAYER, shard);
  shard.recompute = PL_RECOMPUTE_FULL;
  pl_block_program full = take(PL_BLOCK_LAYER, shard);
  assert_true(full.backward_peak_bytes >= none.saved_bytes - full.saved_bytes);
  assert_true(full.forward_peak_bytes < none.forward_peak_bytes);
  assert_true(none.forward_peak_bytes >= none.saved_bytes + none.output_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_korthikanti), cmocka_unit_test(test_ends),  cmocka_unit_test(test_bert),
      cmocka_unit_test(test_flash),       cmocka_unit_test(test_peaks),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
