/* Every recipe computes what the model says: the distributed program of a strategy, run with numbers by all its
 * devices, leaves loss, gradients and updated weights of the plain training program, to 1e-10 in fp64. And in fp32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

static const char gpt2[] = "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 16, \"n_head\": 4, \"n_positions\": "
                           "16, \"vocab_size\": 32}";
static const char llama[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 32, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char mixtral[] =
    "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 24, \"vocab_size\": 32, \"max_position_embeddings\": 16, "
    "\"num_local_experts\": 4, \"num_experts_per_tok\": 2}";
static const char bert[] =
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"intermediate_size\": 32, \"vocab_size\": 32, \"max_position_embeddings\": 16, \"type_vocab_size\": 2}";
static const char neox[] = "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 0.5, \"num_hidden_layers\": 2, "
                           "\"hidden_size\": 16, \"num_attention_heads\": 4, "
                           "\"intermediate_size\": 32, \"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char gemma2[] =
    "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"head_dim\": 8, \"intermediate_size\": 32, \"vocab_size\": 32, "
    "\"max_position_embeddings\": 16, \"sliding_window\": 4}";
static const char deepseek[] =
    "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 4, \"q_lora_rank\": 8, \"kv_lora_rank\": 8, \"qk_nope_head_dim\": 4, "
    "\"qk_rope_head_dim\": 4, \"v_head_dim\": 4, \"intermediate_size\": 32, \"moe_intermediate_size\": 8, "
    "\"n_routed_experts\": 4, \"num_experts_per_tok\": 2, \"n_shared_experts\": 1, \"first_k_dense_replace\": 1, "
    "\"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char cnn[] =
    "{\"model_type\": \"cnn\", \"image\": [3, 8, 8], \"norm\": \"none\", \"blocks\": [\"conv 8 3x3\", \"max 2/2\", "
    "\"[conv 4 1x1, conv 8 3x3]\", \"[conv 4 1x1, conv 8 3x3]\", \"(conv 8 1x1 | average 3, conv 8 1x1)\", "
    "\"conv 8 3x3\", \"mean\", \"linear 10\"]}";
static const char mlp[] = "{\"model_type\": \"mlp\", \"num_hidden_layers\": 8, \"hidden_size\": 16}";

typedef struct recipe {
  const char *name, *model, *strategy;
  int64_t gbs, seq;
} recipe;

#define RECIPE(model, strategy)                                                                                        \
  { #model, model, strategy, 8, 8 }
static const recipe recipes[] = {
    RECIPE(gpt2, "pp=1,dp=1,tmp=1,mbs=1"),
    RECIPE(gpt2, "pp=1,dp=2,tmp=2,mbs=2"),
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1"), /* tied embeddings on two stages */
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1"),
    RECIPE(gpt2, "pp=1,dp=2,tmp=2,mbs=1,sp=1,cp=2,recompute=full"),
    RECIPE(gpt2, "pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe"),
    RECIPE(gpt2, "pp=2,dp=1,tmp=1,mbs=1,assign=0:1:4,recompute=selective"), /* uneven */
    RECIPE(llama, "pp=1,dp=1,tmp=2,mbs=1"),
    RECIPE(llama, "pp=1,dp=2,tmp=4,mbs=1,sp=1"), /* fewer key-value heads than ranks */
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=1"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=2"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=3,sp=1"),
    RECIPE(llama, "pp=1,dp=4,tmp=1,mbs=1,zero=3,recompute=full"),
    RECIPE(llama, "pp=1,dp=4,tmp=1,mbs=1,zero=1,shard=2"),
    RECIPE(llama, "pp=1,dp=4,tmp=1,mbs=1,zero=3,shard=2"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,cp=2,sp=1"),
    RECIPE(llama, "pp=1,dp=2,tmp=1,mbs=1,cp=2,cp_comm=gather,zero=2"),
    RECIPE(llama, "pp=1,dp=1,tmp=1,mbs=1,cp=4"),
    RECIPE(llama, "pp=2,dp=1,tmp=2,mbs=1,vpp=2"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,schedule=fifo"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,vpp=2,schedule=breadth-first"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1"),
    RECIPE(llama, "pp=4,dp=1,tmp=1,mbs=1,schedule=zb-h2"),
    RECIPE(llama, "pp=2,dp=1,tmp=2,mbs=1,vpp=2,schedule=zb-v,sp=1"),
    RECIPE(llama, "pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=dualpipe-v"),
    RECIPE(llama, "pp=2,dp=2,tmp=2,mbs=1,cp=2,sp=1,zero=1,recompute=full"),
    RECIPE(mixtral, "pp=1,dp=2,tmp=1,mbs=1,ep=2"),
    RECIPE(mixtral, "pp=1,dp=2,tmp=2,mbs=1,ep=2,sp=1"),
    RECIPE(mixtral, "pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1,zero=1"),
    RECIPE(mixtral, "pp=2,dp=2,tmp=2,mbs=1,ep=4,sp=1,recompute=full"),
    RECIPE(mixtral, "pp=1,dp=4,tmp=1,mbs=1,ep=2,zero=3"),
    RECIPE(bert, "pp=2,dp=2,tmp=2,mbs=1"),
    RECIPE(bert, "pp=1,dp=2,tmp=2,mbs=1,sp=1,zero=2"),
    RECIPE(neox, "pp=2,dp=1,tmp=2,mbs=1,sp=1"),
    RECIPE(gemma2, "pp=2,dp=1,tmp=2,mbs=1"),
    RECIPE(deepseek, "pp=1,dp=2,tmp=1,mbs=1,ep=2"),
    RECIPE(deepseek, "pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1,zero=1"),
    {"cnn", cnn, "pp=1,dp=4,tmp=1,mbs=1,zero=2", 8, 1},
    {"cnn", cnn, "pp=2,dp=2,tmp=1,mbs=1,recompute=full", 8, 1},
    {"mlp", mlp, "pp=1,dp=1,tmp=1,mbs=8", 8, 1},
    {"mlp", mlp, "pp=2,dp=2,tmp=2,mbs=1", 8, 1}, /* DistIR's D, T, P */
};

static pl_code run(const recipe *own, bool single, pl_verification *v, pl_arena *arena, pl_error *error) {
  pl_model model;
  pl_job job = {.gbs = own->gbs, .seq = own->seq, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_strategy strategy;
  pl_ir_module plain, distributed;
  const pl_verify_options options = {.seed = 5, .iterations = 2, .single = single};
  PL_TRY(pl_model_parse(own->name, own->model, strlen(own->model), arena, &model, error));
  PL_TRY(pl_strategy_parse(own->strategy, &model, arena, &strategy, error));
  pl_strategy_adopt(&strategy, &job);
  PL_TRY(pl_strategy_check(&strategy, &model, &job, pl_strategy_n_ranks(&strategy), error));
  PL_TRY(pl_strategy_assign(&strategy, &model, &job, NULL, arena, error));
  PL_TRY(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, &plain, error));
  PL_TRY(pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, &distributed, error));
  PL_TRY(pl_verify(&plain, &distributed, &options, arena, v, error));
  if (!pl_verification_holds(v, &options))
    return pl_fail(error, PL_BAD_INPUT, "loss apart by %.1e, gradients %.1e (%s), weights %.1e (%s), copies %.1e",
                   v->loss_error, v->gradient_error, v->worst_gradient, v->weight_error, v->worst_weight,
                   v->copies_error);
  return PL_OK;
}

static int32_t run_all(bool single) {
  int32_t n_wrong = 0;
  double worst = 0;
  for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_error error = PL_ERROR_INIT;
    pl_verification v = {0};
    if (run(&recipes[i], single, &v, &arena, &error) != PL_OK) {
      printf("%s %s: %s\n", recipes[i].name, recipes[i].strategy, error.message);
      n_wrong++;
    } else if (v.gradient_error > worst) {
      worst = v.gradient_error;
    }
    pl_arena_release(&arena);
  }
  printf("%zu recipes, %d wrong, gradients apart by at most %.1e\n", sizeof(recipes) / sizeof(recipes[0]), n_wrong,
         worst);
  return n_wrong;
}

static void in_double(void **state) {
  (void)state;
  assert_int_equal(run_all(false), 0);
}

static void in_single(void **state) {
  (void)state;
  assert_int_equal(run_all(true), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(in_double), cmocka_unit_test(in_single)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
