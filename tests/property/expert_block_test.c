/* Block programs of random models with experts under random shards: what holds of any block, and
 *
 *  - exchanges: number and volume of dispatch and combine, forward and backward
 *  - context parallelism: keys and values go round or are gathered
 *  - fp8: all products of a weight are in it, or none */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/support/block_checks.h"
#include "tests/support/random_block.h"

/* Of a layer's products of weights all three are in fp8 (or NVFP4) or none; what goes in has been cast once each way.
 */
static void check_fp8(const pl_block_program *program, pl_block_shard shard) {
  const pl_op_list lists[] = {program->forward, program->backward};
  int products = 0, casts = 0, weights = 0;
  const pl_dtype narrow = shard.fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8;
  for (uint32_t i = 0; i < program->n_tensors; i++)
    weights += program->tensors[i].kind == PL_TENSOR_PARAMETER && program->tensors[i].dims[0] != 'p' &&
               program->tensors[i].rank >= 2 && strcmp(program->tensors[i].name, "router") != 0 &&
               strcmp(program->tensors[i].name, "shared_gate") != 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->category == PL_CATEGORY_RECOMPUTE) continue;
      products += op->kind == PL_OP_GEMM && op->dtype == narrow;
      casts += op->kind == PL_OP_ELEMENTWISE && op->output != PL_NONE && program->tensors[op->output].dtype == narrow;
    }
  assert_int_equal(products, shard.fp8 ? 3 * weights : 0);
  /* What a product that is kept read is made again, and cast again, for the gradient of its weights. */
  if (shard.fp8 && shard.recompute == PL_RECOMPUTE_ALTERNATE)
    assert_in_range(casts, 2 * weights, 3 * weights);
  else
    assert_int_equal(casts, shard.fp8 ? 2 * weights : 0);
}

/* Experts, latent attention and norms per head. Heads, ranks and experts divide, and so do the tokens of an expert. */
static pl_model random_expert_model(uint64_t *state) {
  pl_model model = random_block_model(state);
  model.ends.pooler = model.ends.next_sentence = model.norms.parallel_residual = model.norms.post_norm =
      model.mlp.mlp_bias = false;
  model.ends.lm_transform = model.norms.norm_bias = false;
  model.attention.qk_norm = random_coin(state);
  model.norms.sandwich_norms = random_coin(state);
  if (random_coin(state)) {
    model.attention.kv_rank = 16 * (1 + random_below(state, 32));
    model.attention.q_rank = random_coin(state) ? 0 : 16 * (1 + random_below(state, 32));
    model.attention.rope_size = 1 + random_below(state, (uint32_t)model.attention.head_size - 1);
    model.attention.value_size = 8 * (1 + random_below(state, 16));
    model.attention.n_kv_heads = model.attention.n_heads;
    model.attention.attention_bias = model.attention.output_bias = model.attention.qk_norm = false;
  }
  model.moe.n_experts = random_power(state, 4);
  model.moe.topk = 1 + random_below(state, (uint32_t)model.moe.n_experts);
  model.moe.expert_ffn = 8 * (3 + random_below(state, 100)); /* a rank's part is more than one column */
  model.moe.shared_ffn = random_coin(state) ? 0 : 16 * (2 + random_below(state, 100));
  model.moe.shared_gate = model.moe.shared_ffn > 0 && random_coin(state);
  model.moe.capacity_factor = 1;
  model.moe.first_expert_layer = 1;
  model.moe.expert_layer_step = 1;
  return model;
}

/* Router, dispatch and combine: each rank sends its own tokens times k there and back, forward and backward; and the
 * weights of the answers, a number for each of these vectors, there, and their gradients back. */
static void check_exchanges(const pl_model *model, const pl_block_program *program, pl_block_shard shard) {
  const pl_op_list lists[] = {program->forward, program->backward};
  double tokens = (double)shard.mbs * (double)shard.seq / (shard.tmp * shard.cp) * (double)model->moe.topk;
  for (int pass = 0; pass < 2; pass++) {
    int n = 0, n_weights = 0;
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind != PL_OP_COLLECTIVE || op->group != PL_GROUP_EXPERT) continue;
      bool weights = strncmp(op->name, "routing", 7) == 0;
      assert_int_equal(op->collective, PL_ALL_TO_ALL);
      check_number("exchange", op->size_bytes,
                   tokens * (weights ? 1 : (double)model->width.hidden) * pl_dtype_bytes(shard.dtype));
      *(weights ? &n_weights : &n) += 1;
    }
    bool again = pass == 1 && shard.recompute >= PL_RECOMPUTE_FULL;
    bool read = model->norms.sandwich_norms || model->dropout.hidden_dropout; /* answers that are made again */
    int back = shard.recompute == PL_RECOMPUTE_ALTERNATE && !read ? 0 : 1;
    assert_int_equal(n, shard.ep > 1 ? 2 + (again ? 1 + back : 0) : 0);
    assert_int_equal(n_weights, shard.ep > 1 ? 1 + again : 0);
  }
}

/* Context parallelism: keys and values (the local heads') of the whole sequence go round once forward and, with their
 * gradients, once backward, beside the kernel of cp - 1 steps; or they are gathered, gathered again and reduced. */
static void check_ring(const pl_model *model, const pl_block_program *program, pl_block_shard shard) {
  const pl_op_list lists[] = {program->forward, program->backward};
  int64_t kv_heads = model->attention.n_kv_heads > shard.tmp ? model->attention.n_kv_heads / shard.tmp : 1;
  double width = (double)(2 * kv_heads * model->attention.head_size);
  int64_t heads = model->attention.n_heads / shard.tmp;
  if (model->attention.kv_rank > 0)
    width = (double)(heads * (model->attention.head_size + model->attention.value_size));
  double bytes = shard.mbs * (double)shard.seq * width * pl_dtype_bytes(shard.dtype);
  bool repeats = shard.recompute == PL_RECOMPUTE_SELECTIVE || shard.recompute == PL_RECOMPUTE_FULL;
  for (int pass = 0; pass < 2; pass++) {
    double sum = 0;
    int begun = 0, awaited = 0;
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind == PL_OP_COLLECTIVE && op->group == PL_GROUP_CONTEXT) sum += op->size_bytes;
      begun += op->overlap == PL_OVERLAP_BEGINS;
      awaited += op->overlap == PL_OVERLAP_AWAITS;
      assert_true(begun - awaited == 0 || begun - awaited == 1);
    }
    bool ring = shard.cp > 1 && !shard.cp_gather;
    check_number("keys and values", sum, shard.cp > 1 ? bytes * (pass == 0 ? 1 : repeats ? 3 : 2) : 0);
    assert_int_equal(begun, awaited);
    assert_int_equal(begun, !ring ? 0 : pass == 1 && repeats ? 2 : 1);
  }
}

static void test_experts(void **state) {
  (void)state;
  uint64_t random = test_seed(20250101);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint64_t round = 0, n = test_cases(3000); round < n; round++) {
    pl_arena_reset(&arena);
    pl_model model = random_expert_model(&random);
    pl_block_shard shard = random_block_shard(&random), one;
    shard.seq = 256 * (1 + random_below(&random, 8));
    shard.sp = shard.tmp > 1;
    shard.ep = (int32_t)(model.moe.n_experts / (INT64_C(1) << random_below(&random, 5)));
    shard.etp = model.moe.expert_ffn % shard.tmp == 0 && random_coin(&random) ? shard.tmp : 1;
    shard.cp = random_coin(&random) ? 1 + (int32_t)random_below(&random, 4) : 1;
    shard.seq *= shard.cp;
    shard.cp_gather = random_coin(&random);
    shard.flash = shard.flash || shard.cp > 1;
    one = shard;
    one.tmp = one.ep = one.etp = one.cp = 1;
    one.sp = false;
    pl_block_program split = block_taken(&model, PL_BLOCK_EXPERT_LAYER, shard, &arena),
                     whole = block_taken(&model, PL_BLOCK_EXPERT_LAYER, one, &arena);
    check_block_products(&model, &split, &whole, PL_BLOCK_EXPERT_LAYER, shard);
    check_block_parameters(&split, &whole, shard);
    check_number("parameters", whole.parameters, pl_model_block_parameters(&model, 3));
    check_block_data_flow(&split);
    check_block_gradients(&split);
    check_block_memory(&split);
    check_block_gradient_traffic(&split, shard.dtype);
    check_exchanges(&model, &split, shard);
    check_ring(&model, &split, shard);
    check_fp8(&split, shard);
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
