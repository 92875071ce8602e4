/* Families of models that descend from others: parameters to the unit, as the published checkpoints of these
 * configurations have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"

static const struct {
  const char *text;
  double parameters;
} published[] = {
    {"{\"model_type\": \"phi3\", \"hidden_size\": 3072, \"num_hidden_layers\": 32, \"num_attention_heads\": 32,"
     " \"num_key_value_heads\": 32, \"intermediate_size\": 8192, \"vocab_size\": 32064, \"max_position_embed"
     "dings\": 4096, \"sliding_window\": 2047}",
     3821079552}, /* Phi-3-mini-4k */
    {"{\"model_type\": \"phi3\", \"hidden_size\": 5120, \"num_hidden_layers\": 40, \"num_attention_heads\": 40,"
     " \"num_key_value_heads\": 10, \"intermediate_size\": 17920, \"vocab_size\": 100352, \"max_position_emb"
     "eddings\": 16384, \"sliding_window\": null}",
     14659507200}, /* Phi-4 */
    {"{\"model_type\": \"glm\", \"hidden_size\": 4096, \"num_hidden_layers\": 40, \"num_attention_heads\": 32, "
     "\"num_key_value_heads\": 2, \"head_dim\": 128, \"intermediate_size\": 13696, \"vocab_size\": 151552, \"a"
     "ttention_bias\": true, \"max_position_embeddings\": 131072}",
     9399951360}, /* glm-4-9b-hf */
    {"{\"model_type\": \"glm4\", \"hidden_size\": 4096, \"num_hidden_layers\": 40, \"num_attention_heads\": 32,"
     " \"num_key_value_heads\": 2, \"head_dim\": 128, \"intermediate_size\": 13696, \"vocab_size\": 151552, \""
     "attention_bias\": true, \"max_position_embeddings\": 32768}",
     9400279040}, /* GLM-4-9B-0414 */
    {"{\"model_type\": \"starcoder2\", \"hidden_size\": 3072, \"num_hidden_layers\": 30, \"num_attention_heads"
     "\": 24, \"num_key_value_heads\": 2, \"intermediate_size\": 12288, \"vocab_size\": 49152, \"max_position"
     "_embeddings\": 16384, \"sliding_window\": 4096, \"hidden_act\": \"gelu_pytorch_tanh\"}",
     3030371328}, /* starcoder2-3b */
    {"{\"model_type\": \"starcoder2\", \"hidden_size\": 4608, \"num_hidden_layers\": 32, \"num_attention_heads"
     "\": 36, \"num_key_value_heads\": 4, \"intermediate_size\": 18432, \"vocab_size\": 49152, \"max_position"
     "_embeddings\": 16384, \"sliding_window\": 4096, \"hidden_act\": \"gelu_pytorch_tanh\"}",
     7173923840}, /* starcoder2-7b */
    {"{\"model_type\": \"internlm2\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\""
     ": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, \"vocab_size\": 92544, \"max_position_"
     "embeddings\": 32768}",
     7737708544}, /* internlm2-7b */
    {"{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\", \"hidden_size\": 5120, \"num"
     "_hidden_layers\": 48, \"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"head_dim\": 128, \"int"
     "ermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"vocab_size\": 202048, \"num_local_experts"
     "\": 16, \"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 1, \"max_position_embeddings\": 104"
     "85760}}",
     107769861120}, /* Llama 4 Scout's language model */
    {"{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\", \"hidden_size\": 5120, \"num"
     "_hidden_layers\": 48, \"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"head_dim\": 128, \"int"
     "ermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"vocab_size\": 202048, \"num_local_experts"
     "\": 128, \"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 2, \"max_position_embeddings\": 10"
     "48576}}",
     400711848960}, /* Llama 4 Maverick's */
    {"{\"model_type\": \"kimi_k2\", \"architectures\": [\"DeepseekV3ForCausalLM\"], \"hidden_size\": 7168, \"num"
     "_hidden_layers\": 61, \"num_attention_heads\": 64, \"num_key_value_heads\": 64, \"intermediate_size\":"
     " 18432, \"moe_intermediate_size\": 2048, \"n_routed_experts\": 384, \"n_shared_experts\": 1, \"num_exp"
     "erts_per_tok\": 8, \"first_k_dense_replace\": 1, \"kv_lora_rank\": 512, \"q_lora_rank\": 1536, \"qk_nop"
     "e_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 163840, \"max_positio"
     "n_embeddings\": 131072}",
     1026408209408}, /* Kimi K2, without the 60 * 384 numbers of its routers' buffers */
    {"{\"model_type\": \"qwen3_vl\", \"tie_word_embeddings\": false, \"text_config\": {\"model_type\": \"qwen3_v"
     "l_text\", \"hidden_size\": 4096, \"num_hidden_layers\": 36, \"num_attention_heads\": 32, \"num_key_valu"
     "e_heads\": 8, \"head_dim\": 128, \"intermediate_size\": 12288, \"vocab_size\": 151936, \"max_position_e"
     "mbeddings\": 262144}}",
     8190735360}, /* Qwen3-VL-8B: its language model is Qwen3-8B */
    {"{\"model_type\": \"opt\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_hea"
     "ds\": 32, \"ffn_dim\": 16384, \"vocab_size\": 50272, \"max_position_embeddings\": 2048, \"word_"
     "embed_proj_dim\": 4096, \"do_layer_norm_before\": true}",
     6658473984}, /* OPT 6.7B */
    {"{\"model_type\": \"opt\", \"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_head"
     "s\": 12, \"ffn_dim\": 3072, \"vocab_size\": 50272, \"max_position_embeddings\": 2048}",
     125239296}, /* OPT 125M */
    {"{\"model_type\": \"bloom\", \"n_embed\": 1024, \"n_layer\": 24, \"num_attention_heads\": 16, \""
     "vocab_size\": 250880}",
     559214592}, /* BLOOM 560M */
    {"{\"model_type\": \"bloom\", \"hidden_size\": 14336, \"n_layer\": 70, \"n_head\": 112, \"vocab_s"
     "ize\": 250880}",
     176247271424}, /* BLOOM */
    {"{\"model_type\": \"mpt\", \"d_model\": 4096, \"n_layers\": 32, \"n_heads\": 32, \"max_seq_len\""
     ": 2048, \"expansion_ratio\": 4, \"vocab_size\": 50432, \"attn_config\": {\"alibi\": true}}",
     6649286656}, /* MPT 7B */
    {"{\"model_type\": \"falcon\", \"hidden_size\": 4544, \"num_hidden_layers\": 32, \"num_attention_"
     "heads\": 71, \"multi_query\": true, \"parallel_attn\": true, \"bias\": false, \"vocab_size\": 6"
     "5024}",
     6921720704}, /* Falcon 7B */
    {"{\"model_type\": \"falcon\", \"hidden_size\": 8192, \"num_hidden_layers\": 60, \"num_attention_"
     "heads\": 128, \"num_kv_heads\": 8, \"new_decoder_architecture\": true, \"bias\": false, \"vocab"
     "_size\": 65024}",
     41303293952}, /* Falcon 40B */
    {"{\"model_type\": \"gptj\", \"n_embd\": 4096, \"n_layer\": 28, \"n_head\": 16, \"n_positions\": "
     "2048, \"rotary_dim\": 64, \"vocab_size\": 50400}",
     6050882784}, /* GPT-J 6B */
    {"{\"model_type\": \"gpt_bigcode\", \"n_embd\": 6144, \"n_layer\": 40, \"n_head\": 48, \"n_inner\""
     ": 24576, \"n_positions\": 8192, \"vocab_size\": 49152}",
     15517456384}, /* StarCoder */
    {"{\"model_type\": \"phi\", \"hidden_size\": 2560, \"num_hidden_layers\": 32, \"num_attention_hea"
     "ds\": 32, \"intermediate_size\": 10240, \"vocab_size\": 51200, \"max_position_embeddings\": 204"
     "8, \"partial_rotary_factor\": 0.4}",
     2779683840}, /* Phi-2 */
    {"{\"model_type\": \"phimoe\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_"
     "heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 6400, \"num_local_experts\": 16"
     ", \"num_experts_per_tok\": 2, \"attention_bias\": true, \"vocab_size\": 32064}",
     41873153344}, /* Phi-3.5-MoE */
    {"{\"model_type\": \"stablelm\", \"hidden_size\": 2560, \"num_hidden_layers\": 32, \"num_attentio"
     "n_heads\": 32, \"intermediate_size\": 6912, \"vocab_size\": 50304}",
     2795443200}, /* StableLM 3B 4E1T */
    {"{\"model_type\": \"cohere\", \"hidden_size\": 8192, \"num_hidden_layers\": 40, \"num_attention_"
     "heads\": 64, \"num_key_value_heads\": 64, \"intermediate_size\": 22528, \"vocab_size\": 256000}",
     34980831232}, /* Command R */
    {"{\"model_type\": \"cohere\", \"hidden_size\": 12288, \"num_hidden_layers\": 64, \"num_attention"
     "_heads\": 96, \"num_key_value_heads\": 8, \"intermediate_size\": 33792, \"use_qk_norm\": true, "
     "\"vocab_size\": 256000}",
     103810674688}, /* Command R+ */
    {"{\"model_type\": \"cohere2\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention"
     "_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, \"sliding_window\": 409"
     "6, \"sliding_window_pattern\": 4, \"vocab_size\": 256000}",
     8028033024}, /* Command R7B */
    {"{\"model_type\": \"gemma3_text\", \"hidden_size\": 1152, \"num_hidden_layers\": 26, \"num_atten"
     "tion_heads\": 4, \"num_key_value_heads\": 1, \"head_dim\": 256, \"intermediate_size\": 6912, \""
     "sliding_window\": 512, \"vocab_size\": 262144}",
     999885952}, /* Gemma 3 1B */
    {"{\"model_type\": \"gpt_oss\", \"hidden_size\": 2880, \"num_hidden_layers\": 24, \"num_attention"
     "_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64, \"intermediate_size\": 2880, \"num_"
     "local_experts\": 32, \"num_experts_per_tok\": 4, \"vocab_size\": 201088}",
     20914757184}, /* gpt-oss-20b */
    {"{\"model_type\": \"gpt_oss\", \"hidden_size\": 2880, \"num_hidden_layers\": 36, \"num_attention"
     "_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64, \"intermediate_size\": 2880, \"num_"
     "local_experts\": 128, \"num_experts_per_tok\": 4, \"vocab_size\": 201088}",
     116829156672}, /* gpt-oss-120b */
    {"{\"model_type\": \"olmo2\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_h"
     "eads\": 32, \"intermediate_size\": 11008, \"vocab_size\": 100352}",
     7298617344}, /* OLMo 2 7B */
    {"{\"model_type\": \"olmoe\", \"hidden_size\": 2048, \"num_hidden_layers\": 16, \"num_attention_h"
     "eads\": 16, \"intermediate_size\": 1024, \"num_experts\": 64, \"num_experts_per_tok\": 8, \"voc"
     "ab_size\": 50304}",
     6919161856}, /* OLMoE 1B-7B */
    {"{\"model_type\": \"seed_oss\", \"hidden_size\": 5120, \"num_hidden_layers\": 64, \"num_attentio"
     "n_heads\": 80, \"num_key_value_heads\": 8, \"head_dim\": 128, \"intermediate_size\": 27648, \"a"
     "ttention_bias\": true, \"attention_out_bias\": false, \"vocab_size\": 155136}",
     36151104512}, /* Seed-OSS 36B */
    {"{\"model_type\": \"granite\", \"hidden_size\": 4096, \"num_hidden_layers\": 40, \"num_attention"
     "_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 12800, \"vocab_size\": 49155, "
     "\"tie_word_embeddings\": true}",
     8170848256}, /* Granite 3.0 8B */
    {"{\"model_type\": \"roberta\", \"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_"
     "heads\": 12, \"intermediate_size\": 3072, \"vocab_size\": 50265, \"max_position_embeddings\": 5"
     "14, \"type_vocab_size\": 1}",
     124697433}, /* RoBERTa base */
};

static pl_arena arena;

static pl_code parse(const char *text, pl_model *model, pl_error *error) {
  return pl_model_parse("config.json", text, strlen(text), &arena, model, error);
}

static void parameters_are_those_of_the_checkpoints(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    if (parse(published[i].text, &model, &error) != PL_OK) fail_msg("%s", error.message);
    if (model.count.parameters != published[i].parameters)
      fail_msg("%s: %.0f, not %.0f", model.family, model.count.parameters, published[i].parameters);
  }
}

static void a_language_model_is_taken_out_of_what_sees(void **state) {
  (void)state;
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(
      parse("{\"model_type\": \"qwen3_vl\", \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\", "
            "\"vision_config\": {\"hidden_size\": 7}, \"text_config\": {\"model_type\": \"qwen3_vl_text\", "
            "\"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
            "\"num_key_value_heads\": 2, \"intermediate_size\": 128, \"vocab_size\": 256}}",
            &model, &error),
      PL_OK);
  assert_true(model.is_text_part && model.ends.tied_embeddings && model.attention.qk_norm);
  assert_string_equal(model.types.dtype_name, "bfloat16");
  assert_string_equal(model.family, "qwen3");
}

static void refuses(const char *text, const char *says) {
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(parse(text, &model, &error), PL_BAD_INPUT);
  if (strstr(error.message, says) == NULL) fail_msg("'%s' lacks '%s'", error.message, says);
}

static void what_is_not_supported_names_the_nearest(void **state) {
  (void)state;
  refuses("{\"model_type\": \"new\", \"kv_lora_rank\": 8}", "'new' is not supported; the nearest that is seems to be "
                                                            "deepseek_v3");
  refuses("{\"model_type\": \"new\", \"num_experts\": 8}", "seems to be mixtral");
  refuses("{\"model_type\": \"internlm2\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
          "\"intermediate_size\": 128, \"vocab_size\": 256, \"bias\": true}",
          "biases of InternLM2");
  refuses(
      "{\"model_type\": \"llama4_text\", \"hidden_size\": 64, \"num_hidden_layers\": 4, \"num_attention_heads\": 8, "
      "\"intermediate_size\": 128, \"intermediate_size_mlp\": 128, \"vocab_size\": 256, \"num_local_experts\": 4, "
      "\"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 2, \"moe_layers\": [0, 2]}",
      "'moe_layers' is not every layer");
}

static int begin(void **state) {
  (void)state;
  pl_arena_init(&arena, 0);
  return 0;
}

static int end(void **state) {
  (void)state;
  pl_arena_release(&arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parameters_are_those_of_the_checkpoints),
                                     cmocka_unit_test(a_language_model_is_taken_out_of_what_sees),
                                     cmocka_unit_test(what_is_not_supported_names_the_nearest)};
  return cmocka_run_group_tests(tests, begin, end);
}
