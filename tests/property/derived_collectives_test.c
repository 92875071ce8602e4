/* The collectives that predictions are made with are those of a program that is proven right: the ones that a
 * block alone is lowered with (workloads/lower), and the ones that partition derives for the whole program and
 * pl_verify holds (verify_recipes_test), are the same, one after another, kind and bytes, forward and backward, block
 * by block.
 *
 * Not compared: recomputation, where frameworks run the whole forward pass again and a derived program only what the
 * backward pass reads of it, which spares the last reduction; experts, whose exchange is dense in a derived program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/cost/ir_cost.h"
#include "workloads/import/model_file.h"
#include "workloads/lower/block_program.h"
#include "workloads/passes/program_of.h"

static const char gpt2[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 8, "
                           "\"n_positions\": 64, \"vocab_size\": 1024}";
static const char llama[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 96, \"vocab_size\": 1024, \"max_position_embeddings\": 64}";
static const char gemma2[] =
    "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 4, \"head_dim\": 8, \"intermediate_size\": 96, \"vocab_size\": 1024, "
    "\"max_position_embeddings\": 64, \"sliding_window\": 16}";
static const char neox[] =
    "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 8, "
    "\"intermediate_size\": 96, \"vocab_size\": 1024, \"max_position_embeddings\": 64}";
static const char *const models[][2] = {{"gpt2", gpt2}, {"llama", llama}, {"gemma2", gemma2}, {"gpt_neox", neox}};
static const char *const strategies[] = {"pp=1,dp=1,tmp=2,mbs=2",      "pp=1,dp=1,tmp=4,mbs=1",
                                         "pp=1,dp=1,tmp=2,mbs=2,sp=1", "pp=1,dp=1,tmp=4,mbs=1,sp=1",
                                         "pp=1,dp=2,tmp=2,mbs=2,sp=1", "pp=2,dp=1,tmp=2,mbs=1,sp=1"};

typedef struct moved {
  pl_collective_kind kind;
  double bytes;
  const char *name;
} moved;
enum { MOVES_MAX = 64 };

static uint32_t by_hand(const pl_op_list *list, moved *moves, uint32_t n) {
  for (uint32_t i = 0; i < list->n_ops && n < MOVES_MAX; i++)
    if (list->ops[i].kind == PL_OP_COLLECTIVE)
      moves[n++] = (moved){(pl_collective_kind)list->ops[i].collective, list->ops[i].size_bytes, list->ops[i].name};
  return n;
}

static uint32_t derived(const pl_ir_module *module, const char *function, moved *moves, uint32_t n) {
  static const char *const rows[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all"};
  static const pl_collective_kind kinds[] = {PL_ALL_REDUCE, PL_REDUCE_SCATTER, PL_ALL_GATHER, PL_ALL_TO_ALL};
  int32_t index = pl_ir_function_find(module, function);
  if (index == PL_IR_NONE) return n;
  const pl_ir_function *f = module->functions[index];
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int k = 0; k < 4; k++)
      if (strcmp(pl_ir_row_at(f->ops[i].row)->name, rows[k]) == 0 && n < MOVES_MAX)
        moves[n++] = (moved){kinds[k], pl_ir_collective_bytes(&module->mesh, f, &f->ops[i]),
                             f->values[f->ops[i].first_output].name};
  return n;
}

static bool same(const char *what, const char *block, const moved *a, uint32_t n_a, const moved *b, uint32_t n_b) {
  bool equal = n_a == n_b;
  for (uint32_t i = 0; i < n_a && equal; i++)
    equal = a[i].kind == b[i].kind && a[i].bytes == b[i].bytes;
  if (equal) return true;
  printf("%s, %s: by hand", what, block);
  for (uint32_t i = 0; i < n_a; i++)
    printf(" %s (%s %.0f)", pl_collective_name(a[i].kind), a[i].name, a[i].bytes);
  printf("; derived");
  for (uint32_t i = 0; i < n_b; i++)
    printf(" %s (%s %.0f)", pl_collective_name(b[i].kind), b[i].name, b[i].bytes);
  printf("\n");
  return false;
}

static uint32_t compare(const char *name, const char *text, const char *strategy_text, uint32_t *n_wrong) {
  static const struct {
    pl_block_kind kind;
    const char *function;
  } blocks[] = {{PL_BLOCK_EMBEDDING, "embedding"},
                {PL_BLOCK_LAYER, "layer"},
                {PL_BLOCK_FINAL_NORM, "final_norm"},
                {PL_BLOCK_HEAD, "head"},
                {PL_BLOCK_LOSS, "loss"}};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model;
  pl_job job = {.gbs = 8, .seq = 32, .dtype = PL_DTYPE_FP16, .flash = true};
  pl_strategy strategy;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse(name, text, strlen(text), &arena, &model, &error), PL_OK);
  assert_int_equal(pl_strategy_parse(strategy_text, &model, &arena, &strategy, &error), PL_OK);
  pl_strategy_adopt(&strategy, &job);
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error), PL_OK);
  if (pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &arena, &module, &error) != PL_OK)
    fail_msg("%s %s: %s", name, strategy_text, error.message);
  const pl_block_shard shard = pl_strategy_shard(&strategy, &job);
  uint32_t n_moves = 0;
  for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
    /* Over a sequence that is cut the loss's sums of a token are scattered, which is half of the all-reduce by hand. */
    if (blocks[i].kind == PL_BLOCK_LOSS && strategy.sp) continue;
    pl_block_program block;
    moved a[MOVES_MAX], b[MOVES_MAX];
    char what[128], backward[64];
    snprintf(what, sizeof(what), "%s %s", name, strategy_text);
    snprintf(backward, sizeof(backward), "%s.backward", blocks[i].function);
    assert_int_equal(pl_block_program_take(&model, blocks[i].kind, &shard, &arena, &block, &error), PL_OK);
    uint32_t n_a = by_hand(&block.backward, a, by_hand(&block.forward, a, 0));
    uint32_t n_b = derived(&module, backward, b, derived(&module, blocks[i].function, b, 0));
    *n_wrong += !same(what, blocks[i].function, a, n_a, b, n_b);
    n_moves += n_a;
  }
  pl_arena_release(&arena);
  return n_moves;
}

static void they_are_the_same(void **state) {
  (void)state;
  uint32_t n_wrong = 0, n_moves = 0;
  for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
      n_moves += compare(models[m][0], models[m][1], strategies[s], &n_wrong);
  printf("%u collectives, %u blocks differ\n", n_moves, n_wrong);
  assert_true(n_moves > 200);
  assert_int_equal(n_wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(they_are_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
