/* Model programs and training programs when the k-th take of the arena fails, for every k: one clean status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "workloads/derive/differentiate.h"
#include "workloads/import/model_file.h"
#include "workloads/import/program_build.h"

#define COMMON                                                                                                         \
  "\"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 12, "              \
  "\"vocab_size\": 11, \"max_position_embeddings\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6"

static const char *const models[] = {
    "{\"model_type\": \"bert\", \"architectures\": [\"BertForPreTraining\"], \"max_predictions_per_seq\": 2, " COMMON
    "}",
    "{\"model_type\": \"deepseek_v3\", \"q_lora_rank\": 5, \"kv_lora_rank\": 4, \"qk_nope_head_dim\": 4, "
    "\"qk_rope_head_dim\": 2, \"v_head_dim\": 3, \"n_routed_experts\": 4, \"n_shared_experts\": 2, "
    "\"first_k_dense_replace\": 1, " COMMON "}",
    "{\"model_type\": \"mlp\", \"num_hidden_layers\": 2, \"hidden_size\": 8}"};

static pl_code make(const pl_model *model, pl_arena *arena, bool trains, pl_error *error) {
  const pl_model_program_options job = pl_model_program_defaults(4, 2, 4);
  const pl_recompute_choice choice = {.function = "layer", .recompute = PL_RECOMPUTE_FULL};
  pl_differentiate_options options = pl_differentiate_defaults();
  pl_ir_module forward, training;
  PL_TRY(pl_model_program_build(model, &job, arena, &forward, error));
  if (!trains) return PL_OK;
  options.choices = &choice;
  options.n_choices = pl_ir_function_find(&forward, "layer") != PL_IR_NONE;
  options.splits_weights = true;
  return pl_ir_differentiate(&forward, &options, arena, &training, error);
}

static void test_programs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    pl_arena own, scarce;
    pl_model model;
    pl_arena_init(&own, 0);
    assert_int_equal(pl_model_parse("tiny.json", models[i], strlen(models[i]), &own, &model, NULL), PL_OK);
    for (int64_t takes = 0;; takes++) {
      pl_error error = PL_ERROR_INIT;
      pl_arena_init(&scarce, 0);
      scarce.fail_after = takes;
      pl_code code = make(&model, &scarce, true, &error);
      pl_arena_release(&scarce);
      if (code == PL_OK) break;
      assert_int_equal(code, PL_NO_MEMORY);
      assert_int_equal(error.code, PL_NO_MEMORY);
    }
    pl_arena_release(&own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
