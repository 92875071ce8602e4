/* What the switches of a framework's profile do to a block: kernels, bytes, launches, gradients and losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

static pl_framework parse(const char *text) {
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  if (pl_framework_parse("f.json", text, strlen(text), &arena, &framework, &error) != PL_OK)
    fail_msg("%s", error.message);
  return framework;
}

static pl_block_program take_sharded(const pl_model *model, pl_block_kind kind, const pl_framework *framework,
                                     bool flash, bool scatters) {
  const pl_block_shard shard = {.tmp = 1,
                                .mbs = 2,
                                .seq = 1024,
                                .dtype = PL_DTYPE_BF16,
                                .flash = flash,
                                .framework = framework,
                                .scatters = scatters};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

static pl_block_program take(const pl_model *model, pl_block_kind kind, const pl_framework *framework, bool flash) {
  return take_sharded(model, kind, framework, flash, false);
}

typedef struct layer_sum {
  double flops, bytes, saved, parameters, peak;
  uint32_t forward, backward;
} layer_sum;

static layer_sum sum_of(const pl_block_program *program) {
  layer_sum sum = {.saved = program->saved_bytes,
                   .parameters = program->parameters,
                   .peak = program->backward_peak_bytes,
                   .forward = program->forward.n_ops,
                   .backward = program->backward.n_ops};
  const pl_op_list lists[] = {program->forward, program->backward};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind == PL_OP_GEMM || op->kind == PL_OP_ATTENTION) sum.flops += op->flops;
      sum.bytes += op->bytes;
    }
  return sum;
}

typedef struct switch_case {
  const char *model, *text; /* profile */
  bool flash;
  int forward_ops, backward_ops; /* more than ideal has */
  double saved_bytes;            /* likewise, in units of b s h */
} switch_case;

/* gpt2-345m: GPT with dropout and biases; llama-2-7b: SwiGLU (f = 11008, h = 4096), RMS norm, rotary. Two bytes an
 * element, masks one. */
static void test_layer_switches(void **state) {
  (void)state;
  static const double f = 11008.0 / 4096;
  const switch_case cases[] = {
      {"gpt2-345m", "\"fused_softmax\": false", false, 1, 0, 0},
      {"gpt2-345m", "\"fused_scale\": false", false, 1, 1, 0},
      {"gpt2-345m", "\"masks_scores\": false", false, 0, 0, 0},
      {"gpt2-345m", "\"masks_scores\": false, \"fused_softmax\": false", false, 0, 0, 0},
      /* beside the mask's own kernel */
      {"gpt2-345m", "\"fused_softmax\": false, \"mask_kernels\": 2", false, 2, 0, 0},
      {"gpt2-345m", "\"fused_softmax\": false, \"mask_gradients\": 2", false, 1, 2, 0},
      /* tanh, its sum with 1 and x / 2 are kept, each 4 h wide */
      {"gpt2-345m", "\"fused_gelu\": false", false, 7, 10, 2 * 3 * 4},
      {"gpt2-345m", "\"fused_activation\": false", false, 1, 0, 0},
      /* two dropouts of their own; masks are kept either way */
      {"gpt2-345m", "\"fused_residual\": false", false, 2, 0, 0},
      /* of queries, keys and values; what the additions' kernels add, dropouts of their own do not */
      {"gpt2-345m", "\"fused_bias\": false", false, 3, 0, 0},
      {"gpt2-345m", "\"fused_bias\": false, \"fused_residual\": false", false, 7, 0, 0},
      {"gpt2-345m", "\"fused_bias\": false, \"fused_activation\": false", false, 4, 0, 0},
      {"gpt2-345m", "\"fused_accumulation\": false", false, 0, 4, 0},
      {"llama-2-7b", "\"fused_activation\": false", true, 1, 3, 2 * f}, /* silu(gate) is kept */
      /* of queries and of keys: the halves exchanged, the other product, the sum; and what autograd runs for them */
      {"llama-2-7b", "\"fused_rotary\": false", true, 6, 10, 0},
      /* two norms, 8 kernels forward and 15 backward each; fp32 copies are kept, their 16-bit sources are not, and what
         the product with the weight reads is */
      {"llama-2-7b", "\"fused_norm\": false", true, 14, 28, 2 * 4 - 2 * 2 + 2 * 2},
      {"llama-2-7b", "\"fused_accumulation\": false", true, 0, 4, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const switch_case *own = &cases[i];
    pl_model model = load_model("workloads/models", own->model, &arena);
    const char *text = pl_arena_printf(&arena, "{\"name\": \"x\", \"kernels\": {%s}}", own->text);
    pl_framework framework = parse(text);
    pl_block_program with = take(&model, PL_BLOCK_LAYER, &framework, own->flash);
    pl_block_program without = take(&model, PL_BLOCK_LAYER, NULL, own->flash);
    layer_sum a = sum_of(&with), b = sum_of(&without);
    double unit = 2 * 1024 * (double)model.width.hidden;
    if (a.flops != b.flops || a.parameters != b.parameters) fail_msg("%s: changes FLOPs or parameters", own->text);
    if (!(a.bytes > b.bytes)) fail_msg("%s: no more traffic", own->text);
    if ((int)a.forward - (int)b.forward != own->forward_ops || (int)a.backward - (int)b.backward != own->backward_ops)
      fail_msg("%s: %d more forward ops, %d more backward", own->text, (int)a.forward - (int)b.forward,
               (int)a.backward - (int)b.backward);
    if (fabs((a.saved - b.saved) / unit - own->saved_bytes) > 1e-12)
      fail_msg("%s: keeps %g b s h more", own->text, (a.saved - b.saved) / unit);
  }
}

static const pl_op *find_op(const pl_op_list *list, const char *name) {
  for (uint32_t i = 0; i < list->n_ops; i++)
    if (strcmp(list->ops[i].name, name) == 0) return &list->ops[i];
  fail_msg("no op %s", name);
  return NULL;
}

/* In sizes of the activation, S: GELU in one kernel moves 2 S and 3 S; in steps six kernels of 2 S and two of 3 S
 * forward, five of 2 S and six of 3 S backward. A scale of its own moves the scores twice in either pass. */
static void test_eager_traffic(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  pl_framework gelu = parse("{\"name\": \"x\", \"kernels\": {\"fused_gelu\": false}}");
  pl_framework scale = parse("{\"name\": \"x\", \"kernels\": {\"fused_scale\": false}}");
  pl_block_program one = take(&model, PL_BLOCK_LAYER, NULL, false);
  pl_block_program steps = take(&model, PL_BLOCK_LAYER, &gelu, false);
  pl_block_program scaled = take(&model, PL_BLOCK_LAYER, &scale, false);
  double base = sum_of(&one).bytes, s = one.tensors[find_op(&one.forward, "activation")->output].size_bytes;
  double scores = one.tensors[find_op(&one.forward, "scores")->output].size_bytes;
  assert_true(s == 2.0 * (2 * 1024) * 4 * (double)model.width.hidden);
  double more = (6 * 2 + 2 * 3 - 2) + (5 * 2 + 6 * 3 - 3);
  assert_true(fabs((sum_of(&steps).bytes - base) / s - more) < 1e-9);
  assert_true(fabs((sum_of(&scaled).bytes - base) / scores - (2 + 2)) < 1e-9);
  assert_true(find_op(&scaled.backward, "scores_scale_backward")->bytes == 2 * scores);
  /* the half that a causal mask hides is read by nobody, or by everybody */
  pl_framework open = parse("{\"name\": \"x\", \"kernels\": {\"masks_scores\": false}}");
  pl_block_program seen = take(&model, PL_BLOCK_LAYER, &open, false);
  assert_true(find_op(&one.forward, "softmax")->bytes == 1.5 * scores);
  assert_true(find_op(&seen.forward, "softmax")->bytes == 2 * scores);
  pl_model llama = load_model("workloads/models", "llama-2-7b", &arena); /* SwiGLU is none of this */
  pl_block_program gated = take(&llama, PL_BLOCK_LAYER, &gelu, true), plain = take(&llama, PL_BLOCK_LAYER, NULL, true);
  assert_true(sum_of(&gated).bytes == sum_of(&plain).bytes && sum_of(&gated).saved == sum_of(&plain).saved);
}

/* A graph's ops, by what they read and write: of hidden states E, scores A and the MLP's width F, in elements, and of
 * weights W. XLA: two norms with their random numbers, scores, gelu, eight transpositions; fp32 has no casts. */
static void test_graph_traffic(void **state) {
  (void)state;
  const struct {
    const char *switches;
    pl_dtype dtype;
    double hidden, scores, wide, weights;
  } cases[] = {
      {"\"graph\": \"xla\"", PL_DTYPE_FP16, 2 * (17 + 4 + 23) + 8 * 4, 4 + 13 + 11, 4 + 4, 6 + 6 + 2},
      {"\"graph\": \"xla\"", PL_DTYPE_FP32, 2 * (7 + 4 + 11) + 8 * 8, 4 + 11 + 7, 4 + 4, 0},
      {"\"graph\": \"ops\"", PL_DTYPE_FP16, 2 * (68 + 35 + 170 + 21) + (8 + 5) * 4, 26 + 35 + 46 + 15, 4,
       6 + 6 + 8 + 2},
      {"\"graph\": \"ops\"", PL_DTYPE_FP32, 2 * (52 + 25 + 152 + 11) + (8 + 5) * 8, 8 + 25 + 24 + 11, 8, 0},
  };
  pl_model model = load_model("workloads/models", "bert-base", &arena);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int clips = 0; clips < 2; clips++) {
      bool narrow = cases[i].dtype == PL_DTYPE_FP16, xla = strstr(cases[i].switches, "xla") != NULL;
      pl_framework graph =
          parse(pl_arena_printf(&arena, "{\"name\": \"x\", \"kernels\": {%s}, \"state\": {\"clips_microbatches\": %s}}",
                                cases[i].switches, clips ? "true" : "false"));
      pl_framework plain = parse("{\"name\": \"x\"}");
      pl_block_shard shard = {.tmp = 1, .mbs = 2, .seq = 128, .dtype = cases[i].dtype, .framework = &graph};
      pl_block_program with, without;
      pl_error error = PL_ERROR_INIT;
      assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &with, &error), PL_OK);
      shard.framework = &plain;
      assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &without, &error), PL_OK);
      double h = (double)model.width.hidden, tokens = 2 * 128, scores = tokens * 128 * 12;
      double weights = cases[i].weights + (clips ? 12 : 0) + (clips && narrow ? (xla ? 4 : 6) : 0);
      double more =
          tokens * h * (cases[i].hidden + 4 * cases[i].wide) + scores * cases[i].scores + 12 * h * h * weights;
      layer_sum a = sum_of(&with), b = sum_of(&without);
      if (fabs(a.bytes - b.bytes - more) > 1e-9 * more || a.flops != b.flops || a.saved != b.saved)
        fail_msg("%s in %s: %.9g bytes more, not %.9g", cases[i].switches, pl_dtype_name(cases[i].dtype),
                 a.bytes - b.bytes, more);
    }
}

/* Of two forward passes the first is for nothing: kernels and collectives twice, whatever is kept once. */
static void test_forward_runs(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  pl_framework twice = parse("{\"name\": \"x\", \"kernels\": {\"forward_runs\": 2}}"),
               once = parse("{\"name\": \"x\"}");
  pl_block_shard shard = {.tmp = 2, .mbs = 2, .seq = 1024, .dtype = PL_DTYPE_FP16, .framework = &twice};
  pl_block_program with, without;
  pl_error error = PL_ERROR_INIT;
  for (int i = 0; i < 2; i++) {
    pl_block_kind kind = i == 0 ? PL_BLOCK_LAYER : PL_BLOCK_HEAD;
    shard.framework = &twice;
    assert_int_equal(pl_block_program_take(&model, kind, &shard, &arena, &with, &error), PL_OK);
    shard.framework = &once;
    assert_int_equal(pl_block_program_take(&model, kind, &shard, &arena, &without, &error), PL_OK);
    uint32_t times = kind == PL_BLOCK_LAYER ? 2 : 1, n = without.forward.n_ops;
    assert_int_equal(with.forward.n_ops, times * n);
    assert_int_equal(with.backward.n_ops, without.backward.n_ops);
    assert_true(with.saved_bytes == without.saved_bytes && with.parameters == without.parameters);
    for (uint32_t k = 0; k < times * n; k++) {
      const pl_op *a = &with.forward.ops[k], *b = &without.forward.ops[k % n];
      bool alike = a->bytes == b->bytes || k == n - 1; /* what the first run gives nobody reads */
      if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || !alike || a->flops != b->flops)
        fail_msg("op %u is %s of %g bytes, not %s of %g", (unsigned)k, a->name, a->bytes, b->name, b->bytes);
    }
  }
}

/* Products of a gated layer read 3 h + f elements a token, and gradients of 5 h + 2 f, in fp8. A scale of its own reads
 * each once more; a dynamic one casts inputs twice, to one copy each. Over tensor ranks it does not: inputs are
 * gathered in fp8, and so are gradients, each rank casting its own tokens'. A scale a row: each product casts both of
 * its operands, 7 weights among them, with 3 bytes an element, and 5 where it is scaled along the outer dimension, and
 * what is gathered is cast behind it. */
static void test_fp8_scaling(void **state) {
  (void)state;
  static const double f = 11008.0 / 4096;
  const struct {
    const char *scaling;
    int32_t tmp;
    double inputs, gradients; /* bytes an element, beyond delayed scaling */
    int ops;
  } cases[] = {{"delayed", 1, 0, 0, 0},
               {"current", 1, 2, 2, 0},
               {"dynamic", 1, 6, 2, 4},
               {"dynamic", 2, 2, 2, 0},
               {"rowwise", 1, 3 + 5 - 4, 3 + 5 - 4, 2 * 7 + 2 * 4},
               {"rowwise", 2, 3 + 5 - 4, 3 + 5 - 4, 2 * 7 + 2 * 4}};
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *text =
        pl_arena_printf(&arena, "{\"name\": \"x\", \"kernels\": {\"fp8_scaling\": \"%s\"}}", cases[i].scaling);
    pl_framework framework = parse(text);
    pl_block_shard shard = {.tmp = cases[i].tmp,
                            .sp = cases[i].tmp > 1,
                            .mbs = 2,
                            .seq = 1024,
                            .dtype = PL_DTYPE_BF16,
                            .fp8 = true,
                            .flash = true,
                            .framework = &framework};
    pl_block_program with, without;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &with, &error), PL_OK);
    shard.framework = NULL;
    assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &without, &error), PL_OK);
    layer_sum a = sum_of(&with), b = sum_of(&without);
    double unit = 2 * 1024 * (double)model.width.hidden / cases[i].tmp;
    double more = cases[i].inputs * (3 + f) + cases[i].gradients * (5 + 2 * f), h = (double)model.width.hidden;
    if (strcmp(cases[i].scaling, "rowwise") == 0) /* weights; and two inputs and gradients that are gathered first */
      more += (3 + 5) * (h * h * (4 + 3 * f) / cases[i].tmp / unit + (2 + 2) * (cases[i].tmp - 1));
    if (fabs((a.bytes - b.bytes) / unit - more) > 1e-9 || a.flops != b.flops)
      fail_msg("%s, tmp=%d: %.9g bytes more, not %.9g", cases[i].scaling, cases[i].tmp, (a.bytes - b.bytes) / unit,
               more);
    assert_int_equal((int)(a.forward + a.backward) - (int)(b.forward + b.backward), cases[i].ops);
  }
}

/* Copies of what products over a tensor group read: queries, keys, values, gate and up projection each have one of S,
 * and what they are copies of is not kept for them. Two gradients of sums are copied on their way back. */
static void test_copied_inputs(void **state) {
  (void)state;
  static const struct {
    const char *model;
    int copies;
  } cases[] = {{"llama-2-7b", 5}, {"gpt2-345m", 4}};
  pl_framework framework = parse("{\"name\": \"x\", \"kernels\": {\"copies_inputs\": true}}");
  for (size_t i = 0; i < 2; i++) {
    pl_model model = load_model("workloads/models", cases[i].model, &arena);
    double s = 2.0 * (2 * 1024) * (double)model.width.hidden;
    layer_sum sums[2][2];
    for (int sp = 0; sp < 2; sp++)
      for (int copies = 0; copies < 2; copies++) {
        const pl_block_shard shard = {.tmp = 2,
                                      .mbs = 2,
                                      .seq = 1024,
                                      .dtype = PL_DTYPE_BF16,
                                      .flash = true,
                                      .sp = sp == 1,
                                      .framework = copies == 1 ? &framework : NULL};
        pl_block_program program;
        pl_error error = PL_ERROR_INIT;
        if (pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error) != PL_OK)
          fail_msg("%s", error.message);
        sums[sp][copies] = sum_of(&program);
      }
    assert_true(fabs((sums[0][1].saved - sums[0][0].saved) / s - (cases[i].copies - 2)) < 1e-9);
    assert_true(fabs((sums[0][1].bytes - sums[0][0].bytes) / s - (2 * cases[i].copies + 2 * 2)) < 1e-9);
    assert_true(sums[1][1].saved == sums[1][0].saved && sums[1][1].bytes == sums[1][0].bytes);
  }
}

/* New tensors of libraries' kernels are filled beforehand, buffers that gradients are added into are not. */
static void test_deterministic(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  pl_framework framework = parse("{\"name\": \"x\", \"kernels\": {\"deterministic\": true}}");
  pl_block_program with = take(&model, PL_BLOCK_LAYER, &framework, true);
  pl_block_program without = take(&model, PL_BLOCK_LAYER, NULL, true);
  assert_int_equal(with.forward.n_ops, without.forward.n_ops);
  const pl_op *qkv = find_op(&with.forward, "qkv"), *wgrad = find_op(&with.backward, "qkv_wgrad");
  assert_true(qkv->filled_bytes == with.tensors[qkv->output].size_bytes && qkv->filled_bytes > 0);
  assert_true(wgrad->filled_bytes == 0 && find_op(&without.forward, "qkv")->filled_bytes == 0);
  assert_true(find_op(&with.forward, "rotary")->filled_bytes == 0);
  assert_true(find_op(&with.backward, "attention_backward")->deterministic);
}

/* 16 heads on 3 ranks (and a width that 3 does not divide): 6, 5 and 5, and six heads are what a layer waits for. */
static void test_uneven_heads(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  model.width.ffn_hidden = 3 * model.width.hidden;
  pl_framework framework = parse("{\"name\": \"x\", \"kernels\": {\"uneven_heads\": true}}");
  pl_block_shard shard = {.tmp = 3, .mbs = 2, .seq = 1024, .dtype = PL_DTYPE_BF16};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "does not divide the 16 attention heads"));
  shard.framework = &framework;
  error = (pl_error)PL_ERROR_INIT;
  assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error), PL_OK);
  assert_int_equal(find_op(&program.forward, "qkv")->n, 3 * 6 * 64);
  assert_int_equal(find_op(&program.forward, "scores")->batch, 2 * 6);
  assert_int_equal(find_op(&program.forward, "attention_out")->k, 6 * 64);
  shard.tmp = 17; /* a rank without heads */
  assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error), PL_BAD_INPUT);
  shard.tmp = 4; /* where the heads divide nothing changes */
  assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error), PL_OK);
  assert_int_equal(find_op(&program.forward, "qkv")->n, 3 * 4 * 64);
}

static double forward_traffic(const pl_block_program *program) {
  double bytes = 0;
  for (uint32_t i = 0; i < program->forward.n_ops; i++)
    bytes += program->forward.ops[i].bytes;
  return bytes;
}

static double backward_traffic(const pl_block_program *program) {
  double bytes = 0;
  for (uint32_t i = 0; i < program->backward.n_ops; i++)
    bytes += program->backward.ops[i].bytes;
  return bytes;
}

/* Queries and keys of b s h elements each: fused they are read and written; in steps x cos 2, -x2 1, cat 2, its product
 * 2, the sum 3; back the products 4, -x2 1, of either half zeros and its copy 2, their sum 3, that of both ways 3 (the
 * operators that PyTorch 1.13 runs for Hugging Face's apply_rotary_pos_emb). */
static void test_traffic_of_eager_rotary(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  pl_framework framework = parse("{\"name\": \"x\", \"kernels\": {\"fused_rotary\": false}}");
  pl_block_program with = take(&model, PL_BLOCK_LAYER, &framework, true);
  pl_block_program without = take(&model, PL_BLOCK_LAYER, NULL, true);
  double both = 2 * 2.0 * 2 * 1024 * (double)model.width.hidden;
  assert_true(forward_traffic(&with) - forward_traffic(&without) == (10 - 2) * both);
  assert_true(backward_traffic(&with) - backward_traffic(&without) == (15 - 2) * both);
}

/* SwiGLU of b s f elements: fused it reads two halves and writes one tensor; apart, silu reads and writes one, the
 * product reads two and writes one. */
static void test_traffic_of_eager_swiglu(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  pl_framework framework = parse("{\"name\": \"x\", \"kernels\": {\"fused_activation\": false}}");
  pl_block_program with = take(&model, PL_BLOCK_LAYER, &framework, true);
  pl_block_program without = take(&model, PL_BLOCK_LAYER, NULL, true);
  double half = 2.0 * 2 * 1024 * (double)model.width.ffn_hidden;
  assert_true(forward_traffic(&with) - forward_traffic(&without) == 2 * half);
}

/* Of the vocabulary's loss: kept from forward to backward, the most at a time in the forward pass, and what the
 * backward pass needs beside what is kept (copies: the scattered gradient, the softmax's); bytes per logit. */
static void test_loss_forms(void **state) {
  (void)state;
  static const struct {
    const char *form;
    double saved, forward_peak, backward_peak;
  } forms[] = {{"in_place", 4, 6, 2}, {"copy", 4, 8, 2}, {"copies", 6, 10, 8}, {"fused", 2, 2, 2}};
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  double logits = 2 * 1024 * (double)model.width.vocab; /* 32,000 is a multiple of 128 */
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    pl_framework framework =
        parse(pl_arena_printf(&arena, "{\"name\": \"x\", \"kernels\": {\"loss\": \"%s\"}}", forms[i].form));
    pl_block_program loss = take(&model, PL_BLOCK_LOSS, &framework, true);
    double saved = loss.saved_bytes / logits, peak = loss.forward_peak_bytes / logits;
    double back = loss.backward_peak_bytes / logits;
    if (fabs(saved - forms[i].saved) > 0.01 || fabs(peak - forms[i].forward_peak) > 0.01 ||
        fabs(back - forms[i].backward_peak) > 0.01)
      fail_msg("%s: %g kept, %g at the peak of the forward pass, %g of the backward pass", forms[i].form, saved, peak,
               back);
  }
}

/* BERT's head and loss of 20 tokens out of 1024: the products of the transform and the logits, and what the loss keeps,
 * shrink in that proportion. */
static void test_masked_tokens(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "bert-large", &arena);
  model.positions.max_positions = 1024;
  pl_framework framework = parse("{\"name\": \"x\"}");
  pl_block_program whole = take(&model, PL_BLOCK_HEAD, &framework, true);
  pl_block_program loss = take(&model, PL_BLOCK_LOSS, &framework, true);
  double per_token = loss.saved_bytes / 1024;
  int64_t rows = find_op(&whole.forward, "logits")->m;
  model.ends.predictions = 20;
  pl_block_program picked = take(&model, PL_BLOCK_HEAD, &framework, true);
  assert_int_equal(find_op(&picked.forward, "logits")->m * 1024, rows * 20);
  assert_int_equal(find_op(&picked.forward, "transform")->m * 1024, rows * 20);
  loss = take(&model, PL_BLOCK_LOSS, &framework, true);
  assert_true(fabs(loss.saved_bytes - 20 * per_token) <= 1e-6 * loss.saved_bytes);
  model.ends.predictions = 4096; /* more than there are */
  picked = take(&model, PL_BLOCK_HEAD, &framework, true);
  assert_int_equal(find_op(&picked.forward, "logits")->m, rows);
}

static double bytes_of(const pl_block_program *program, const char *name) {
  return find_op(&program->backward, name)->bytes;
}

/* FSDP's gradients: no addition per matrix, but kernels over all of the block's: bytes per element in and out. */
static void test_gradient_paths(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  double h = (double)model.width.hidden, elements = 12 * h * h;
  const char *form = "{\"name\": \"x\", \"kernels\": {\"fused_accumulation\": false}, \"state\": "
                     "{\"gradient_path\": \"%s\"}, \"communication\": {\"reduce_dtype\": \"%s\"}}";
  pl_framework added = parse(pl_arena_printf(&arena, form, "added", "fp32"));
  pl_framework flat = parse(pl_arena_printf(&arena, form, "flat", "fp32"));
  pl_framework narrow = parse(pl_arena_printf(&arena, form, "flat", "bf16"));
  pl_framework chunked = parse(pl_arena_printf(&arena, form, "chunked", "fp32"));
  pl_block_program a = take(&model, PL_BLOCK_LAYER, &added, true),
                   f = take_sharded(&model, PL_BLOCK_LAYER, &flat, true, true);
  assert_int_equal(f.backward.n_ops, a.backward.n_ops - 4 + 3);
  assert_true(bytes_of(&f, "gradients_flattened") == (2 + 2) * elements);
  assert_true(bytes_of(&f, "gradients_cast") == (2 + 4) * elements);
  assert_true(bytes_of(&f, "gradients_divided") == (4 + 4) * elements);
  f = take_sharded(&model, PL_BLOCK_LAYER, &narrow, true, true);
  assert_int_equal(f.backward.n_ops, a.backward.n_ops - 4 + 2);
  assert_true(bytes_of(&f, "gradients_divided") == (2 + 2) * elements);
  f = take_sharded(&model, PL_BLOCK_LAYER, &chunked, true, true);
  assert_int_equal(f.backward.n_ops, a.backward.n_ops - 4 + 1);
  assert_true(bytes_of(&f, "gradients_chunked") == (2 + 4) * elements);
  /* Below ZeRO-2 whole gradients are read, added to those that are kept in fp32 and written. */
  const pl_framework *whole[] = {&flat, &narrow, &chunked};
  for (int i = 0; i < 3; i++) {
    f = take(&model, PL_BLOCK_LAYER, whole[i], true);
    assert_int_equal(f.backward.n_ops, a.backward.n_ops - 4 + 1);
    assert_true(bytes_of(&f, "gradients_added") == (2 + 4 + 4) * elements);
  }
  /* A tied table is handed on once, by the embedding; the head's share of it is added to that. */
  pl_block_program ends = take_sharded(&model, PL_BLOCK_EMBEDDING, &flat, true, true);
  double table = 50304.0 * h;
  assert_true(bytes_of(&ends, "gradients_divided") == 8 * table);
  ends = take_sharded(&model, PL_BLOCK_HEAD, &flat, true, true);
  assert_true(bytes_of(&ends, "gradient_add") == 3 * 2 * table);
  for (uint32_t i = 0; i < ends.backward.n_ops; i++)
    assert_null(strstr(ends.backward.ops[i].name, "gradients_"));
}

static void test_vocabulary(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena); /* 50,257 */
  pl_framework unpadded = parse("{\"name\": \"x\", \"kernels\": {\"vocab_multiple\": 1}}");
  double with = take(&model, PL_BLOCK_HEAD, NULL, true).tied_parameters;
  double without = take(&model, PL_BLOCK_HEAD, &unpadded, true).tied_parameters;
  assert_true(with == 50304.0 * 1024 && without == 50257.0 * 1024);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_layer_switches, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_graph_traffic, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_forward_runs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_eager_traffic, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_fp8_scaling, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_copied_inputs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_uneven_heads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_deterministic, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_traffic_of_eager_rotary, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_traffic_of_eager_swiglu, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_loss_forms, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_masked_tokens, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_gradient_paths, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_vocabulary, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
