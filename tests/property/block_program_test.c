/* Block programs of random dense models under random shards: what holds of any block (tests/support/block_checks.h),
 * and the number and volume of collectives per layer of Megatron's scheme, forward and backward. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/block_checks.h"
#include "tests/support/random_block.h"

typedef struct traffic {
  uint32_t n[PL_COLLECTIVE_COUNT];
  double bytes[PL_COLLECTIVE_COUNT];
} traffic;

static traffic count_traffic(pl_op_list list) {
  traffic sum = {{0}, {0}};
  for (uint32_t i = 0; i < list.n_ops; i++) {
    if (list.ops[i].kind != PL_OP_COLLECTIVE) continue;
    assert_int_equal(list.ops[i].group, PL_GROUP_TENSOR);
    sum.n[list.ops[i].collective]++;
    sum.bytes[list.ops[i].collective] += list.ops[i].size_bytes;
  }
  return sum;
}

/* One layer, with r = 1 reduction for a parallel residual and 2 otherwise, of b s h activations each:
 *   tensor     forward r all-reduces, backward 2; full recomputation r more
 *   sequence   forward 2 all-gathers, r reduce-scatters; backward 2 all-gathers of inputs, r of gradients, 2
 * reduce-scatters */
static void check_collectives(const pl_model *model, const pl_block_program *program, pl_block_shard shard) {
  traffic forward = count_traffic(program->forward), backward = count_traffic(program->backward);
  bool split = shard.tmp > 1, sp = split && shard.sp;
  uint32_t r = model->norms.parallel_residual ? 1 : 2, again = shard.recompute == PL_RECOMPUTE_FULL ? 1 : 0;
  /* Every second product: inputs of those are gathered again, keys' and gates', sums are scattered once; sums that stay
   * whole are made again in front of the last product. */
  bool alternates = shard.recompute == PL_RECOMPUTE_ALTERNATE;
  uint32_t gathers = alternates ? (model->mlp.gated_mlp ? 2 : 1) : 2 * again,
           behind = model->norms.post_norm || model->norms.sandwich_norms || model->dropout.hidden_dropout;
  /* The seventh product is kept: its sum in front of norms and biases, its terms in front of dropout. */
  if (model->mlp.gated_mlp && r == 2) behind = model->dropout.hidden_dropout && !model->mlp.mlp_bias;
  assert_int_equal(forward.n[PL_ALL_REDUCE], split && !sp ? r : 0);
  uint32_t sums = alternates ? r - (behind ? 0 : 1) : again * r;
  assert_int_equal(backward.n[PL_ALL_REDUCE], split && !sp ? 2 + sums : 0);
  assert_int_equal(forward.n[PL_ALL_GATHER], sp ? 2 : 0);
  assert_int_equal(forward.n[PL_REDUCE_SCATTER], sp ? r : 0);
  assert_int_equal(backward.n[PL_ALL_GATHER], sp ? 2 + r + gathers : 0);
  assert_int_equal(backward.n[PL_REDUCE_SCATTER], sp ? 2 + again * r : 0);
  double full = pl_dtype_bytes(shard.dtype) * shard.mbs * (double)shard.seq * (double)model->width.hidden;
  for (int kind = 0; kind < PL_COLLECTIVE_COUNT && !shard.fp8; kind++) { /* inputs are gathered in fp8 */
    check_number("forward volume", forward.bytes[kind], full * forward.n[kind]);
    check_number("backward volume", backward.bytes[kind], full * backward.n[kind]);
  }
}

/* The ends: embedding one reduction of its output; head one gather, its conjugate, and the gather for the weight
 * gradient; loss three numbers per token in fp32. */
static void check_end_collectives(const pl_model *model, pl_block_kind kind, const pl_block_program *program,
                                  pl_block_shard shard) {
  traffic forward = count_traffic(program->forward), backward = count_traffic(program->backward);
  bool split = shard.tmp > 1, sp = split && shard.sp, embedding = kind == PL_BLOCK_EMBEDDING,
       head = kind == PL_BLOCK_HEAD, loss = kind == PL_BLOCK_LOSS;
  double tokens = (double)shard.mbs * (double)shard.seq,
         full = pl_dtype_bytes(shard.dtype) * tokens * (double)model->width.hidden;
  assert_int_equal(forward.n[PL_ALL_REDUCE], loss && split ? 3 : embedding && split && !sp ? 1 : 0);
  check_number("all-reduce", forward.bytes[PL_ALL_REDUCE],
               loss ? 4 * tokens * forward.n[PL_ALL_REDUCE] : full * forward.n[PL_ALL_REDUCE]);
  assert_int_equal(forward.n[PL_REDUCE_SCATTER], embedding && sp);
  assert_int_equal(forward.n[PL_ALL_GATHER], head && sp);
  /* A pooler's gradient of the first token, which one rank of a cut sequence has. */
  assert_int_equal(backward.n[PL_ALL_REDUCE], head && split && (!sp || model->ends.pooler));
  assert_int_equal(backward.n[PL_REDUCE_SCATTER], head && sp);
  assert_int_equal(backward.n[PL_ALL_GATHER], (head || embedding) && sp);
}

static void test_random(void **state) {
  (void)state;
  uint64_t random = test_seed(20240607);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint64_t round = 0, n = test_cases(3000); round < n; round++) {
    pl_arena_reset(&arena);
    pl_model model = random_block_model(&random);
    pl_block_shard shard = random_block_shard(&random), one = shard;
    one.tmp = 1;
    one.sp = false;
    for (int i = 0; i < PL_BLOCK_KIND_COUNT; i++) {
      pl_block_kind kind = (pl_block_kind)i;
      pl_block_program split = block_taken(&model, kind, shard, &arena), whole = block_taken(&model, kind, one, &arena);
      check_block_products(&model, &split, &whole, kind, shard);
      check_block_parameters(&split, &whole, shard);
      check_block_data_flow(&split);
      check_block_gradients(&split);
      check_block_memory(&split);
      check_block_gradient_traffic(&split, shard.dtype);
      if (kind == PL_BLOCK_LAYER)
        check_collectives(&model, &split, shard);
      else
        check_end_collectives(&model, kind, &split, shard);
    }
  }
  pl_arena_release(&arena);
}

/* The same arguments give the same program, byte for byte where it counts, whatever was in the arena. */
static void test_repeatable(void **state) {
  (void)state;
  uint64_t random = test_seed(7);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (int round = 0; round < 100; round++) {
    pl_model model = random_block_model(&random);
    pl_block_shard shard = random_block_shard(&random);
    pl_block_program first = block_taken(&model, PL_BLOCK_LAYER, shard, &arena),
                     second = block_taken(&model, PL_BLOCK_LAYER, shard, &arena);
    assert_int_equal(first.n_tensors, second.n_tensors);
    assert_int_equal(first.backward.n_ops, second.backward.n_ops);
    for (uint32_t i = 0; i < first.backward.n_ops; i++) {
      const pl_op *a = &first.backward.ops[i], *b = &second.backward.ops[i];
      assert_true(a->name == b->name && a->flops == b->flops && a->bytes == b->bytes && a->output == b->output);
    }
    assert_true(first.saved_bytes == second.saved_bytes && first.backward_peak_bytes == second.backward_peak_bytes);
  }
  pl_arena_release(&arena);
}

/* Ranks that share a key-value head, of 16: keys and values, b s d each, are gathered among them as often as the layer
 * runs forward, and their gradients are scattered once. Weights are cut evenly all the same. */
static void test_shared_heads(void **state) {
  (void)state;
  uint64_t random = test_seed(20260611);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint64_t round = 0, n = test_cases(300); round < n; round++) {
    pl_arena_reset(&arena);
    pl_model model = random_block_model(&random);
    pl_block_shard shard = random_block_shard(&random), one;
    model.attention.n_kv_heads = 2 << random_below(&random, 3);
    model.attention.attention_bias = false; /* which each of them has whole */
    shard.tmp = 16;
    shard.fp8 = shard.fp4 = false;
    shard.recompute = random_coin(&random) ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_NONE;
    one = shard;
    one.tmp = 1;
    one.sp = false;
    const pl_block_program split = block_taken(&model, PL_BLOCK_LAYER, shard, &arena),
                           whole = block_taken(&model, PL_BLOCK_LAYER, one, &arena);
    const pl_op_list lists[] = {split.forward, split.backward};
    int gathers = 0, scatters = 0;
    for (int pass = 0; pass < 2; pass++)
      for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
        const pl_op *op = &lists[pass].ops[i];
        if (op->kind != PL_OP_COLLECTIVE || op->group != PL_GROUP_HEADS) continue;
        gathers += op->collective == PL_ALL_GATHER;
        scatters += op->collective == PL_REDUCE_SCATTER && pass == 1;
        check_number("keys or values", op->size_bytes,
                     pl_dtype_bytes(shard.dtype) * shard.mbs * (double)shard.seq * (double)model.attention.head_size);
      }
    assert_int_equal(gathers, shard.recompute == PL_RECOMPUTE_FULL ? 4 : 2);
    assert_int_equal(scatters, 2);
    double weights[2] = {0};
    for (int k = 0; k < 2; k++)
      for (uint32_t i = 0; i < (k == 0 ? &split : &whole)->n_tensors; i++) {
        const pl_tensor *tensor = &(k == 0 ? &split : &whole)->tensors[i];
        if (tensor->kind == PL_TENSOR_PARAMETER && tensor->rank >= 2 && tensor->dims[0] != 'p')
          weights[k] += block_tensor_elements(tensor);
      }
    check_number("weights", weights[0], weights[1] / 16);
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_shared_heads),
                                     cmocka_unit_test(test_repeatable)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
