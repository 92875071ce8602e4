/* config.json files as users have them, with all the keys that are not used, and files that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/import/model_file.h"
#include "workloads/lower/block_program.h"

static pl_model load(const char *file) {
  return load_model("tests/unit/models", file, &arena);
}

static pl_code parse(const char *text, pl_model *model, pl_error *error) {
  *error = PL_ERROR_INIT;
  return pl_model_parse("config.json", text, strlen(text), &arena, model, error);
}

static void test_gpt2(void **state) {
  (void)state;
  pl_model model = load("gpt2-medium");
  assert_string_equal(model.name, "gpt2-medium");
  assert_string_equal(model.family, "gpt2");
  assert_string_equal(model.mlp.activation, "gelu_new");
  assert_int_equal(model.width.ffn_hidden, 4096);
  assert_int_equal(model.attention.head_size, 64);
  assert_true(model.ends.tied_embeddings && model.positions.learned_positions && !model.positions.rotary &&
              model.attention.causal);
  assert_true(model.dropout.embedding_dropout && model.dropout.attention_dropout && model.dropout.hidden_dropout);
  assert_true(model.count.parameters == 354823168);
}

/* AMP's assignment units: 0:9:15:21:30 cuts 30 blocks. */
static void test_blocks(void **state) {
  (void)state;
  pl_model model = load("gpt2-medium");
  assert_int_equal(pl_model_n_blocks(&model), 30);
  int count[PL_BLOCK_KIND_COUNT] = {0};
  for (int32_t block = 0; block < 30; block++)
    count[pl_model_block_kind(&model, block)]++;
  assert_int_equal(count[PL_BLOCK_LAYER], 24);
  assert_int_equal(count[PL_BLOCK_IDENTITY], 2);
  const pl_block_kind ends[] = {PL_BLOCK_EMBEDDING, PL_BLOCK_IDENTITY, PL_BLOCK_LAYER};
  const pl_block_kind tail[] = {PL_BLOCK_LAYER, PL_BLOCK_IDENTITY, PL_BLOCK_FINAL_NORM, PL_BLOCK_HEAD, PL_BLOCK_LOSS};
  for (int32_t i = 0; i < 3; i++)
    assert_int_equal(pl_model_block_kind(&model, i), ends[i]);
  for (int32_t i = 0; i < 5; i++)
    assert_int_equal(pl_model_block_kind(&model, 25 + i), tail[i]);
}

static void test_gpt_neox(void **state) {
  (void)state;
  pl_model model = load("gpt-neox-20b");
  assert_true(model.norms.parallel_residual && model.positions.rotary && !model.positions.learned_positions &&
              !model.ends.tied_embeddings);
  assert_true(!model.dropout.hidden_dropout && !model.dropout.attention_dropout && model.attention.output_bias);
  assert_int_equal(model.attention.head_size, 96);
  assert_true(model.count.parameters == 20554567680);
}

static void test_bert(void **state) {
  (void)state;
  pl_model model = load("bert-base-uncased");
  assert_true(!model.attention.causal && model.norms.post_norm && model.norms.embedding_norm &&
              model.ends.lm_transform && !model.ends.pooler && !model.norms.final_norm);
  assert_string_equal(model.architecture, "BertForMaskedLM");
  model = load("bert-pretraining");
  assert_true(model.ends.pooler && model.ends.next_sentence);
}

static void test_llama(void **state) {
  (void)state;
  pl_model model = load("llama-2-7b-hf");
  assert_string_equal(model.name, "meta-llama/Llama-2-7b-hf");
  assert_true(model.mlp.gated_mlp && model.norms.norm == PL_NORM_RMS && !model.norms.norm_bias &&
              !model.attention.attention_bias && !model.mlp.mlp_bias);
  assert_true(model.count.parameters == 6738415616);
  model = load("llama-3.2-1b");
  assert_int_equal(model.attention.head_size, 64);
  assert_int_equal(model.attention.n_kv_heads, 8);
  assert_true(model.ends.tied_embeddings);
}

static void test_mistral(void **state) {
  (void)state;
  pl_model model = load("mistral-7b");
  assert_int_equal(model.attention.n_kv_heads, 8);
  assert_int_equal(model.attention.sliding_window, 4096);
  assert_true(model.count.parameters == 7241732096);
}

/* Experts, latent attention and what else the newer families have. */
static void test_experts(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "mixtral-8x7b", &arena);
  assert_true(model.moe.n_experts == 8 && model.moe.topk == 2 && model.moe.expert_ffn == 14336 &&
              model.moe.shared_ffn == 0);
  assert_int_equal(pl_model_count_blocks(&model, PL_BLOCK_EXPERT_LAYER), 32);
  assert_int_equal(pl_model_count_blocks(&model, PL_BLOCK_LAYER), 0);
  /* 12.9 billion active (Jiang et al. 2024, table 1) */
  assert_true(pl_model_active_parameters(&model) == 12879925248);
  model = load_model("workloads/models", "qwen3-30b-a3b", &arena);
  assert_true(model.attention.head_size == 128 &&
              model.attention.n_heads * model.attention.head_size == 2 * model.width.hidden && model.attention.qk_norm);
  model = load("qwen1.5-moe-a2.7b");
  assert_true(model.moe.shared_ffn == 5632 && model.moe.shared_gate && model.attention.attention_bias &&
              !model.attention.output_bias);
  model = load_model("workloads/models", "deepseek-v3", &arena);
  assert_true(model.attention.q_rank == 1536 && model.attention.kv_rank == 512 && model.attention.head_size == 192 &&
              model.attention.value_size == 128);
  assert_int_equal(pl_model_block_kind(&model, 4), PL_BLOCK_LAYER);
  assert_int_equal(pl_model_block_kind(&model, 5), PL_BLOCK_EXPERT_LAYER);
  assert_int_equal(pl_model_count_blocks(&model, PL_BLOCK_EXPERT_LAYER), 58);
  model = load_model("workloads/models", "deepseek-v2-lite", &arena);
  assert_true(model.attention.q_rank == 0 && model.moe.shared_ffn == 2 * 1408);
  model = load_model("workloads/models", "nemotron-4-15b", &arena);
  assert_true(!model.mlp.gated_mlp && model.attention.n_kv_heads == 8 && model.norms.norm_bias &&
              model.positions.rotary);
  model = load("gemma-2-9b");
  assert_true(model.norms.sandwich_norms && model.attention.window_period == 2 &&
              model.attention.sliding_window == 4096 && model.attention.head_size == 256);
  assert_string_equal(model.mlp.activation, "gelu_pytorch_tanh");
}

#define LLAMA                                                                                                          \
  "\"model_type\": \"llama\", \"hidden_size\": 512, \"intermediate_size\": 1024, \"num_hidden_layers\": 4,"            \
  " \"num_attention_heads\": 8, \"vocab_size\": 1000"
#define GPT2                                                                                                           \
  "\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 32, \"vocab_size\": 100"

#define SHAPE                                                                                                          \
  "\"hidden_size\": 512, \"intermediate_size\": 1024, \"num_hidden_layers\": 4, \"num_attention_heads\": 8,"           \
  " \"num_key_value_heads\": 4, \"vocab_size\": 1000"
#define MIXTRAL "\"model_type\": \"mixtral\", " SHAPE
#define QWEN3_MOE                                                                                                      \
  "\"model_type\": \"qwen3_moe\", \"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": "         \
  "64, " SHAPE
#define DEEPSEEK                                                                                                       \
  "\"model_type\": \"deepseek_v3\", \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, "                             \
  "\"moe_intermediate_size\": 64, \"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, "          \
  "\"v_head_dim\": 32, " SHAPE

static void test_defaults_and_extras(void **state) {
  (void)state;
  pl_model model;
  pl_error error;
  assert_int_equal(parse("{" LLAMA "}", &model, &error), PL_OK);
  assert_int_equal(model.attention.n_kv_heads, 8);
  assert_string_equal(model.name, "config");
  assert_string_equal(model.architecture, "LlamaForCausalLM");
  assert_int_equal(
      parse("{" LLAMA ", \"num_key_value_heads\": null, \"architectures\": null, \"head_dim\": 128}", &model, &error),
      PL_OK);
  assert_int_equal(model.attention.head_size, 128);
  /* attention_bias covers q, k, v and the output; mlp_bias all three matrices */
  double plain = 4 * (4.0 * 512 * 512 + 3 * 512 * 1024 + 2 * 512) + 512 + 2 * 512000.0;
  assert_int_equal(parse("{" LLAMA ", \"attention_bias\": true, \"mlp_bias\": true}", &model, &error), PL_OK);
  assert_true(model.count.parameters == plain + 4 * (4 * 512 + 2 * 1024 + 512));
  /* a bare class is counted without the head that training adds */
  assert_int_equal(parse("{" LLAMA ", \"architectures\": [\"LlamaModel\"]}", &model, &error), PL_OK);
  assert_true(model.count.trained_parameters == plain && model.count.parameters == plain - 512000);
  assert_int_equal(
      parse("{" GPT2 ", \"ffn_hidden_size\": 100, \"name\": \"mine\", \"resid_pdrop\": 0}", &model, &error), PL_OK);
  assert_int_equal(model.width.ffn_hidden, 100);
  assert_string_equal(model.name, "mine");
  assert_true(!model.dropout.hidden_dropout && model.dropout.attention_dropout);
  assert_int_equal(parse("{" GPT2 ", \"n_inner\": 100, \"_name_or_path\": \"./gpt\"}", &model, &error), PL_OK);
  assert_int_equal(model.width.ffn_hidden, 100);
  assert_string_equal(model.name, "config");
  assert_int_equal(
      parse(
          "{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"n_ctx\": 32, \"vocab_size\": 9}",
          &model, &error),
      PL_OK);
  assert_int_equal(model.positions.max_positions, 32);
}

/* MistralConfig differs: 8 key-value heads and a window of 4096 when the keys are absent, all heads and none when they
 * are null. */
static void test_mistral_defaults(void **state) {
  (void)state;
  pl_model model;
  pl_error error;
#define MISTRAL                                                                                                        \
  "\"model_type\": \"mistral\", \"hidden_size\": 512, \"intermediate_size\": 1024, \"num_hidden_layers\": 4,"          \
  " \"num_attention_heads\": 16, \"vocab_size\": 1000"
  assert_int_equal(parse("{" MISTRAL "}", &model, &error), PL_OK);
  assert_true(model.attention.n_kv_heads == 8 && model.attention.sliding_window == 4096);
  assert_int_equal(parse("{" MISTRAL ", \"num_key_value_heads\": null, \"sliding_window\": null}", &model, &error),
                   PL_OK);
  assert_true(model.attention.n_kv_heads == 16 && model.attention.sliding_window == 0);
}

static void test_bad_input(void **state) {
  (void)state;
  static const struct {
    const char *text, *message; /* what the message must contain, after its file:line */
  } cases[] = {
      {"", "config.json"},
      {"[]", "config.json"},
      {"{\"model_type\": \"llama\"", "config.json"},
      {"{}", "model_type"},
      {"{\"model_type\": \"bart\"}",
       "'bart' (an encoder with a decoder) is not supported; the nearest that is seems to be t5, of gpt2"},
      {"{\"model_type\": 7}", "model_type"},
      {"{\"model_type\": \"llama\"}", "num_hidden_layers"},
      {"{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_head\": 4, \"vocab_size\": 9}", "n_embd"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"vocab_size\": 9}", "n_positions"},
      {"{" LLAMA ", \"hidden_size\": 512}", "hidden_size"}, /* twice */
      {"{" LLAMA "} x", "config.json"},
      {"{" LLAMA ", \"num_key_value_heads\": 3}", "does not divide"},
      {"{" MIXTRAL ", \"num_local_experts\": 8}", "num_experts_per_tok"},
      {"{" MIXTRAL ", \"num_experts_per_tok\": 2}", "num_local_experts"},
      {"{" MIXTRAL ", \"num_local_experts\": 2, \"num_experts_per_tok\": 3}", "exceeds 'num_local_experts' = 2"},
      {"{" MIXTRAL ", \"num_local_experts\": 2, \"num_experts_per_tok\": 2, \"expert_capacity_factor\": 0}", "above 0"},
      {"{" QWEN3_MOE ", \"mlp_only_layers\": [1]}", "dense layers in between"},
      {"{" QWEN3_MOE ", \"use_sliding_window\": true}", "some layers only"},
      {"{" DEEPSEEK ", \"attention_bias\": true}", "latent attention"},
      {"{" DEEPSEEK ", \"moe_layer_freq\": 0}", "moe_layer_freq"},
      {"{" LLAMA ", \"num_key_value_heads\": 0}", "num_key_value_heads"},
      {"{" LLAMA ", \"num_key_value_heads\": 16}", "does not divide"},
      {"{" LLAMA ", \"head_dim\": -64}", "head_dim"},
      {"{" LLAMA ", \"head_dim\": 64.5}", "head_dim"},
      {"{" LLAMA ", \"tie_word_embeddings\": \"yes\"}", "tie_word_embeddings"},
      {"{" LLAMA ", \"attention_dropout\": 1.5}", "probability"},
      {"{" LLAMA ", \"attention_dropout\": \"0.1\"}", "attention_dropout"},
      {"{" LLAMA ", \"architectures\": [\"LlamaForSequenceClassification\"]}", "supported are LlamaForCausalLM"},
      {"{" LLAMA ", \"architectures\": \"LlamaForCausalLM\"}", "list"},
      {"{" LLAMA ", \"architectures\": [7]}", "config.json"},
      {"{" LLAMA ", \"name\": 7}", "name"},
      {"{" LLAMA ", \"hidden_act\": 7}", "hidden_act"},
      {"{" GPT2 ", \"add_cross_attention\": true}", "cross attention"},
      {"{" GPT2 ", \"n_inner\": 0}", "n_inner"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 65, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 8, \"vocab_size\": "
       "9}",
       "'n_embd' = 65 is not a multiple of 'n_head' = 4"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": \"64\", \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 8, "
       "\"vocab_size\": 9}",
       "n_embd"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 0, \"n_head\": 4, \"n_positions\": 8, \"vocab_size\": "
       "9}",
       "n_layer"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": -1, \"n_head\": 4, \"n_positions\": 8, \"vocab_size\": "
       "9}",
       "n_layer"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 1e18, \"n_head\": 4, \"n_positions\": 8, "
       "\"vocab_size\": 9}",
       "n_layer"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 99999999999999999999, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": "
       "8, \"vocab_size\": 9}",
       "n_embd"},
      {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 0, \"n_positions\": 8, \"vocab_size\": "
       "9}",
       "n_head"},
      {"{\"model_type\": \"bert\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
       "\"intermediate_size\": 8,"
       " \"max_position_embeddings\": 8, \"vocab_size\": 9, \"position_embedding_type\": \"relative_key\"}",
       "absolute"},
      {"{\"model_type\": \"bert\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
       "\"intermediate_size\": 8,"
       " \"max_position_embeddings\": 8, \"vocab_size\": 9, \"is_decoder\": true}",
       "encoders"},
      {"{\"model_type\": \"gpt_neox\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
       "\"intermediate_size\": 8,"
       " \"vocab_size\": 9, \"rotary_pct\": -1}",
       "rotary_pct"},
      {"{\"model_type\": \"mistral\", \"num_key_value_heads\": 2, \"hidden_size\": 64, \"num_hidden_layers\": 2, "
       "\"num_attention_heads\": 4, "
       "\"intermediate_size\": 8,"
       " \"vocab_size\": 9, \"sliding_window\": 0}",
       "sliding_window"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_model model;
    pl_error error;
    pl_code code = parse(cases[i].text, &model, &error);
    if (code != PL_BAD_INPUT) fail_msg("accepted or wrong code %d: %s", code, cases[i].text);
    if (strncmp(error.message, "config.json:", 12) != 0 || strstr(error.message, cases[i].message) == NULL)
      fail_msg("%s\n-> %s\nlacks '%s'", cases[i].text, error.message, cases[i].message);
    assert_true(model.name == NULL && model.width.hidden == 0 && model.family == NULL); /* nothing half read */
  }
}

static void test_bad_files(void **state) {
  (void)state;
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_load("/nonexistent/config.json", &arena, &model, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "/nonexistent/config.json"));
  error = PL_ERROR_INIT;
  assert_int_not_equal(pl_model_load(PACELINE_SOURCE_DIR, &arena, &model, &error), PL_OK);
}

/* What a shard must satisfy. */
static void test_bad_shards(void **state) {
  (void)state;
  pl_model gpt2 = load("gpt2-medium"), llama = load("llama-3.2-1b");
  static const struct {
    bool is_llama;
    pl_block_shard shard;
    pl_code code;
    const char *message;
  } cases[] = {
      {false, {.tmp = 3, .mbs = 1, .seq = 1024, .dtype = PL_DTYPE_FP16}, PL_BAD_INPUT, "16 attention heads"},
      {false, {.tmp = 0, .mbs = 1, .seq = 1024, .dtype = PL_DTYPE_FP16}, PL_BAD_INPUT, "tmp=0"},
      {false, {.tmp = 1, .mbs = -1, .seq = 1024, .dtype = PL_DTYPE_FP16}, PL_BAD_INPUT, "mbs=-1"},
      {false, {.tmp = 1, .mbs = 1, .seq = 0, .dtype = PL_DTYPE_FP16}, PL_BAD_INPUT, "seq=0"},
      {false, {.tmp = 1, .mbs = 1, .seq = 2048, .dtype = PL_DTYPE_FP16}, PL_BAD_INPUT, "1024 learned positions"},
      {false,
       {.tmp = 4, .sp = true, .mbs = 1, .seq = 1022, .dtype = PL_DTYPE_FP16},
       PL_BAD_INPUT,
       "sequence parallelism"},
      {false, {.tmp = 1, .mbs = 1, .seq = 1024, .dtype = PL_DTYPE_FP8}, PL_UNSUPPORTED, "fp8"},
      {true, {.tmp = 16, .mbs = 1, .seq = 131072, .dtype = PL_DTYPE_BF16}, PL_OK, ""}, /* key-value heads twice */
      {true, {.tmp = 64, .mbs = 1, .seq = 1024, .dtype = PL_DTYPE_BF16}, PL_BAD_INPUT, "32 attention heads"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_block_program program;
    pl_error error = PL_ERROR_INIT;
    pl_code code = pl_block_program_take(cases[i].is_llama ? &llama : &gpt2, PL_BLOCK_LAYER, &cases[i].shard, &arena,
                                         &program, &error);
    if (code != cases[i].code || strstr(error.message, cases[i].message) == NULL)
      fail_msg("%zu: %d %s", i, code, error.message);
    assert_true(code == PL_OK || program.n_tensors == 0);
  }
}

/* The largest of everything that is accepted: sizes stay finite and positive, no product overflows (the sanitizers
 * watch); what takes more bytes than integers count is refused. */
static void test_largest(void **state) {
  (void)state;
  int n_refused = 0;
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_load(PACELINE_SOURCE_DIR "/tests/fuzz/corpus/model/largest.json", &arena, &model, &error),
                   PL_OK);
  for (int i = 0; i < 2 * PL_BLOCK_KIND_COUNT; i++) {
    pl_block_shard shard = {
        .tmp = i % 2 ? 65536 : 1, .sp = i % 2, .mbs = 4096, .seq = 16777216, .dtype = PL_DTYPE_BF16, .flash = i % 3};
    pl_block_program program;
    if (pl_block_program_take(&model, (pl_block_kind)(i / 2), &shard, &arena, &program, &error) != PL_OK) {
      assert_non_null(strstr(error.message, "more than can be counted"));
      n_refused++;
      continue;
    }
    for (uint32_t j = 0; j < program.backward.n_ops; j++) {
      const pl_op *op = &program.backward.ops[j];
      assert_true(op->m >= 0 && op->n >= 0 && op->k >= 0 && op->flops >= 0 && op->bytes >= 0);
    }
    assert_true(program.saved_bytes >= 0 && program.backward_peak_bytes >= 0);
  }
  print_message("%d of %d refused\n", n_refused, 2 * PL_BLOCK_KIND_COUNT);
  assert_in_range(n_refused, 0, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gpt2),
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_gpt_neox),
      cmocka_unit_test(test_bert),
      cmocka_unit_test(test_llama),
      cmocka_unit_test(test_mistral),
      cmocka_unit_test(test_experts),
      cmocka_unit_test(test_defaults_and_extras),
      cmocka_unit_test(test_mistral_defaults),
      cmocka_unit_test(test_bad_input),
      cmocka_unit_test(test_bad_files),
      cmocka_unit_test(test_bad_shards),
      cmocka_unit_test(test_largest),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
