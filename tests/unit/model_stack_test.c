/* Models of several kinds of layers: parameters to the unit, as the published checkpoints of these configurations have
 * them, or by the rules of the classes of transformers that are named; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/stack.h"
#include "workloads/language/ir_routing.h"

#define VIT_B                                                                                                          \
  "\"model_type\": \"vit\", \"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_heads\": 12, "            \
  "\"intermediate_size\": 3072"
#define MAMBA2                                                                                                         \
  "\"model_type\": \"mamba2\", \"hidden_size\": 2560, \"num_hidden_layers\": 64, \"num_heads\": 80, \"head_dim\": "    \
  "64, "                                                                                                               \
  "\"n_groups\": 1, \"vocab_size\": 50288"
#define BAMBA                                                                                                          \
  "\"model_type\": \"bamba\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, "         \
  "\"num_key_value_heads\": 8, \"intermediate_size\": 14336, \"vocab_size\": 128256, \"mamba_n_heads\": 128, "         \
  "\"mamba_d_head\": \"auto\", \"mamba_d_state\": 128, \"mamba_n_groups\": 1"
#define NEMOTRON_H                                                                                                     \
  "\"model_type\": \"nemotron_h\", \"hidden_size\": 512, \"num_attention_heads\": 8, \"num_key_value_heads\": 2, "     \
  "\"attention_head_dim\": 128, \"intermediate_size\": 1024, \"vocab_size\": 1000, \"mamba_num_heads\": 16, "          \
  "\"mamba_head_dim\": 64, \"n_groups\": 8, \"ssm_state_size\": 128"

/* Mamba2Mixer: in_proj, conv1d, dt_bias, A_log and D, norm, out_proj. */
static double mixer(double h, double inner, double groups, double state, double heads, bool bias, bool norm) {
  double channels = inner + 2 * groups * state;
  return h * (inner + channels + heads) + channels * 5 + 3 * heads + (norm ? inner : 0) + inner * h +
         (bias ? inner + channels + heads + h : 0);
}

static void expect(const char *text, double parameters, double trained) {
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  char path[] = "/tmp/model_stack_XXXXXX.json";
  int descriptor = mkstemps(path, 5);
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  assert_non_null(file);
  fprintf(file, "{%s}", text);
  fclose(file);
  pl_code code = pl_model_load_any(path, &arena, &model, &error);
  remove(path);
  if (code != PL_OK) fail_msg("%s", error.message);
  if (model.count.parameters != parameters)
    fail_msg("%s: %.0f parameters, not %.0f", text, model.count.parameters, parameters);
  if (model.count.trained_parameters != trained) fail_msg("%s: %.0f trained", text, model.count.trained_parameters);
}

static void test_published_counts(void **state) {
  (void)state;
  const double vit_b = 85798656; /* without pooler and classes */
  expect(VIT_B ", \"num_labels\": 1000", 86567656, 86567656);
  expect(VIT_B ", \"architectures\": [\"ViTModel\"]", 86389248, 86389248 + 2 * 769);
  expect(VIT_B, vit_b + 2 * 769, vit_b + 2 * 769);
  expect(MAMBA2 ", \"tie_word_embeddings\": true", 2702599680, 2702599680);
  expect(MAMBA2, 2702599680 + 50288.0 * 2560, 2702599680 + 50288.0 * 2560);
  expect(MAMBA2 ", \"architectures\": [\"Mamba2Model\"]", 2702599680, 2702599680 + 50288.0 * 2560);
}

#define T5 "\"d_model\": 512, \"d_kv\": 64, \"num_heads\": 8, \"num_layers\": 6, \"vocab_size\": 32128, \"d_ff\": 2048"

static void test_encoders_with_decoders(void **state) {
  (void)state;
  expect("\"model_type\": \"t5\", " T5, 60506624, 60506624); /* t5-small */
  expect(
      "\"model_type\": \"t5\", \"d_model\": 768, \"d_kv\": 64, \"d_ff\": 2048, \"num_layers\": 12, \"num_heads\": 12, "
      "\"vocab_size\": 32128, \"feed_forward_proj\": \"gated-gelu\", \"tie_word_embeddings\": false",
      247577856, 247577856); /* t5-v1_1-base */
  expect(
      "\"model_type\": \"mt5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 1024, \"num_layers\": 8, \"num_heads\": 6, "
      "\"vocab_size\": 250112, \"num_decoder_layers\": 8",
      300176768, 300176768); /* mt5-small */
}

#define QWEN3_NEXT                                                                                                     \
  "\"hidden_size\": 2048, \"num_hidden_layers\": 48, \"num_attention_heads\": 16, \"num_key_value_heads\": 2, "        \
  "\"head_dim\": 256, \"intermediate_size\": 5120, \"vocab_size\": 151936"
#define EXPERTS                                                                                                        \
  ", \"num_experts\": 512, \"num_experts_per_tok\": 10, \"moe_intermediate_size\": 512, "                              \
  "\"shared_expert_intermediate_size\": 512"

/* Qwen3NextGatedDeltaNet: in_proj_qkvz, in_proj_ba, conv1d, dt_bias and A_log, norm, out_proj. Qwen3NextAttention:
 * twice the queries, norms of heads. A router, experts, a shared one and its gate; or an MLP. */
static void test_linear_attention_by_the_rules_of_its_class(void **state) {
  (void)state;
  double h = 2048, delta = h * (2 * 2048 + 2 * 4096) + h * 64 + 8192 * 4 + 64 + 128 + 4096 * h;
  double attention = h * (2 * 4096 + 2 * 512) + 2 * 256 + 4096 * h, mlp = 3 * h * 5120;
  double experts = 512 * h + 513 * 3 * h * 512 + h, ends = 2 * 151936 * h + h + 48 * 2 * h;
  double next = ends + 36 * delta + 12 * attention + 48 * experts;
  expect("\"model_type\": \"qwen3_next\", " QWEN3_NEXT EXPERTS, next, next);
  assert_true(next == 79674391296); /* Qwen3-Next-80B-A3B without its layer for multi-token prediction */
  double dense = ends + 36 * delta + 12 * attention + 48 * mlp;
  expect("\"model_type\": \"qwen3_5_text\", " QWEN3_NEXT, dense, dense);
  double other = ends + 47 * delta + attention + 48 * mlp - 24 * (mlp - experts);
  char text[2048], types[1024] = "\"full_attention\"";
  for (int i = 1; i < 48; i++)
    strcat(types, ", \"linear_attention\"");
  snprintf(text, sizeof text,
           "\"model_type\": \"qwen3_5_moe_text\", " QWEN3_NEXT EXPERTS
           ", \"decoder_sparse_step\": 2, \"layer_types\": [%s]",
           types);
  expect(text, other, other);
}

/* Of 8 experts 2 are chosen: of rows of experts a quarter is there, of what has no width or no tokens all. */
static void test_sparse_choices(void **state) {
  (void)state;
  pl_ir_module module;
  pl_ir_module_init(&module, &arena, "m", PL_IR_MODEL);
  pl_ir_function *f = pl_ir_function_add(&module, "f");
  assert_true(pl_ir_routing_of(&module).share == 1);
  const pl_ir_dim b = {pl_ir_name_of("b"), 3}, s = {pl_ir_name_of("s"), 10}, x = {pl_ir_name_of("x"), 8},
                  h = {pl_ir_name_of("h"), 4};
  const pl_ir_type all = pl_ir_type_of(PL_IR_F32, 3, (const pl_ir_dim[]){b, s, x});
  const pl_ir_type rows = pl_ir_type_of(PL_IR_F32, 4, (const pl_ir_dim[]){x, b, s, h});
  const pl_ir_type weights = pl_ir_type_of(PL_IR_F32, 2, (const pl_ir_dim[]){x, h});
  int32_t p = pl_ir_argument(&module, f, "p", &all);
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &x.name), pl_ir_integer("k", 2),
                                        pl_ir_integer("sparse", 1)};
  (void)pl_ir_op_infer(&module, f, "top_k", "w", 1, &p, 2, attributes);
  assert_true(pl_ir_routing_of(&module).share == 1);
  (void)pl_ir_op_infer(&module, f, "top_k", "w", 1, &p, 3, attributes);
  const pl_ir_routing routing = pl_ir_routing_of(&module);
  assert_true(pl_ir_routed_share(&routing, &rows) == 0.25);
  assert_true(pl_ir_routed_share(&routing, &all) == 1 && pl_ir_routed_share(&routing, &weights) == 1);
  assert_int_equal(pl_ir_routed_part(&routing, &rows).dims[2].extent, 3); /* of 10, rounded up */
}

/* Rows beyond an even choice: padding is everywhere, the fullest device only where experts lie on several; and what the
 * model computes depends on neither. Of loads 6, 2, 1, 1, 2, 2, 1, 1 on 4 devices 8 of 16 are on one. */
static void test_uneven_choices(void **state) {
  (void)state;
  static const char loads[] = "6,2,1,1,2,2,1,1";
  const pl_ir_dim b = {pl_ir_name_of("b"), 8}, x = {pl_ir_name_of("x"), 8}, h = {pl_ir_name_of("h"), 4};
  const pl_ir_attribute capacity = pl_ir_real("capacity", 1.25), load = pl_ir_real("load", 3),
                        tokens = pl_ir_text("tokens", loads);
  const struct {
    pl_ir_attribute says;
    bool cut;
    double load;
  } cases[] = {{capacity, false, 1.25}, {capacity, true, 1.25}, {load, false, 1},
               {load, true, 3},         {tokens, false, 1},     {tokens, true, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_ir_module module;
    pl_ir_module_init(&module, &arena, "m", PL_IR_DISTRIBUTED);
    module.mesh.axes[module.mesh.n_axes++] = (pl_ir_axis){pl_ir_name_of("ep"), 4};
    pl_ir_function *f = pl_ir_function_add(&module, "f");
    const pl_ir_type all = pl_ir_type_of(PL_IR_F32, 2, (const pl_ir_dim[]){b, x});
    pl_ir_type rows = pl_ir_type_of(PL_IR_F32, 3, (const pl_ir_dim[]){x, b, h}), weight = rows;
    if (cases[i].cut) rows.on[0] = 0;
    weight = pl_ir_type_of(PL_IR_F32, 2, (const pl_ir_dim[]){h, x}); /* a shard of weights has no tokens */
    weight.on[0] = 1;
    int32_t p = pl_ir_argument(&module, f, "p", &all);
    (void)pl_ir_argument(&module, f, "rows", &rows);
    (void)pl_ir_argument(&module, f, "weight", &weight);
    const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &x.name), pl_ir_integer("k", 8),
                                          pl_ir_integer("sparse", 1), cases[i].says};
    (void)pl_ir_op_infer(&module, f, "top_k", "w", 1, &p, 4, attributes);
    const pl_ir_routing routing = pl_ir_routing_of(&module), even = pl_ir_routing_even(&module);
    assert_true(routing.load == cases[i].load && pl_ir_routed_share(&routing, &rows) == cases[i].load);
    assert_true(even.share == 1 && pl_ir_is_routed(&even, &rows) && !pl_ir_is_routed(&even, &weight));
  }
}

static void test_hybrids_by_the_rules_of_their_classes(void **state) {
  (void)state;
  double h = 4096, mlp = 3 * h * 14336, attention = 2 * h * h + 2 * h * 1024;
  double bamba =
      2 * 128256 * h + h + 32 * (mlp + 2 * h) + 3 * attention + 29 * mixer(h, 8192, 1, 128, 128, false, true);
  expect(BAMBA ", \"attn_layer_indices\": [9, 18, 27]", bamba, bamba);
  h = 512;
  double nemotron = 2 * 1000 * h + h + 6 * h + 3 * mixer(h, 1024, 8, 128, 16, false, true) + 2 * 2 * h * 1024 +
                    h * (2 * 1024 + 2 * 256);
  expect(NEMOTRON_H ", \"num_hidden_layers\": 6, \"hybrid_override_pattern\": \"M-M*-M\"", nemotron, nemotron);
  h = 1024;
  double falcon = 2 * 32784 * h + h +
                  36 * (2 * h + 3 * h * 2048 + h * 64 * (8 + 2 * 2 + 8) + mixer(h, 1536, 1, 128, 24, false, false));
  expect("\"model_type\": \"falcon_h1\", \"hidden_size\": 1024, \"num_hidden_layers\": 36, \"num_attention_heads\": 8, "
         "\"num_key_value_heads\": 2, \"head_dim\": 64, \"intermediate_size\": 2048, \"vocab_size\": 32784, "
         "\"mamba_d_ssm\": 1536, \"mamba_n_heads\": 24, \"mamba_d_head\": 64, \"mamba_d_state\": 128",
         falcon, falcon);
}

static void test_refuses(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {VIT_B ", \"patch_size\": 15", "'patch_size' = 15x15 does not divide 'image_size' = 224x224"},
      {VIT_B ", \"image_size\": [224]", "'image_size' must be a number, or height and width"},
      {VIT_B ", \"architectures\": [\"ViTForMaskedImageModeling\"]", "architecture 'ViTForMaskedImageModeling'"},
      {MAMBA2 ", \"expand\": 4", "are not the 10240 channels of the state space"},
      {"\"model_type\": \"mamba2\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_heads\": 4, \"head_dim\": 32, "
       "\"n_groups\": 3, \"vocab_size\": 8",
       "'n_groups' = 3 does not divide 'num_heads' = 4"},
      {BAMBA ", \"attn_layer_indices\": [32]", "32 is no layer from 0 to 31"},
      {NEMOTRON_H ", \"num_hidden_layers\": 3, \"hybrid_override_pattern\": \"M-\"", "has 2 letters"},
      {NEMOTRON_H ", \"num_hidden_layers\": 2, \"hybrid_override_pattern\": \"MX\"", "letter 2 is 'X'"},
      {"\"model_type\": \"t5\", " T5 ", \"relative_attention_num_buckets\": 7", "must be even, at least 4"},
      {"\"model_type\": \"jamba\"", "the nearest that is seems to be bamba"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[1024];
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    snprintf(text, sizeof text, "{%s}", cases[i].text);
    assert_int_equal(pl_model_parse("m.json", text, strlen(text), &arena, &model, &error), PL_BAD_INPUT);
    if (strstr(error.message, cases[i].says) == NULL) fail_msg("%s: %s", cases[i].text, error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_published_counts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_encoders_with_decoders, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_linear_attention_by_the_rules_of_its_class, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sparse_choices, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_uneven_choices, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_hybrids_by_the_rules_of_their_classes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
