/* What only files of one Hugging Face family turn: keys, defaults and meanings are those of its configuration class. */
#include <string.h>

#include "workloads/import/model_families.h"

pl_code pl_model_turn_gpt2(const pl_model_reader *in, pl_model *model) {
  (void)model;
  return pl_reader_refuse(in, "add_cross_attention", "cross attention is not supported for model_type 'gpt2'");
}

pl_code pl_model_turn_neox(const pl_model_reader *in, pl_model *model) {
  PL_TRY(pl_reader_optional_boolean(in, "use_parallel_residual", &model->norms.parallel_residual));
  PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
  model->attention.output_bias = model->attention.attention_bias;
  return PL_OK;
}

pl_code pl_model_turn_internlm2(const pl_model_reader *in, pl_model *model) {
  (void)model;
  return pl_reader_refuse(in, "bias", "biases of InternLM2 are not supported");
}

pl_code pl_model_turn_starcoder2(const pl_model_reader *in, pl_model *model) {
  (void)model;
  return pl_reader_demand(in, "use_bias", "StarCoder2 without biases is not supported");
}

/* One head of keys and values, unless it says how many, or that there are as many as of queries. */
static pl_code read_multi_query(const pl_model_reader *in, pl_model *model) {
  bool multi = true;
  PL_TRY(pl_reader_optional_boolean(in, "multi_query", &multi));
  model->attention.n_kv_heads = multi ? 1 : model->attention.n_heads;
  return PL_OK;
}

pl_code pl_model_turn_bigcode(const pl_model_reader *in, pl_model *model) {
  return read_multi_query(in, model);
}

/* Falcon 7B: one head of keys and values, and one norm for attention and MLP. The "new decoder architecture" of 40B and
 * 180B has groups and a norm for each, that of 11B groups and one norm. */
pl_code pl_model_turn_falcon(const pl_model_reader *in, pl_model *model) {
  bool bias = false, groups = false;
  int64_t norms = 0;
  model->attention.n_kv_heads = model->attention.n_heads;
  PL_TRY(pl_reader_optional_boolean(in, "new_decoder_architecture", &groups));
  PL_TRY(pl_reader_optional_boolean(in, "parallel_attn", &model->norms.parallel_residual));
  PL_TRY(pl_reader_optional_boolean(in, "bias", &bias));
  PL_TRY(pl_reader_optional_boolean(in, "alibi", &model->positions.alibi));
  PL_TRY(pl_reader_optional_integer(in, "num_ln_in_parallel_attn", 2, &norms));
  if (!groups) {
    PL_TRY(read_multi_query(in, model));
  } else {
    PL_TRY(pl_reader_optional_integer(in, "num_kv_heads", model->attention.n_heads, &model->attention.n_kv_heads));
    PL_TRY(pl_reader_optional_integer(in, "n_head_kv", model->attention.n_heads,
                                      &model->attention.n_kv_heads)); /* of RefinedWeb */
  }
  if (model->attention.n_heads % model->attention.n_kv_heads != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, "num_kv_heads"), in->error,
                            "'num_kv_heads' = %lld does not divide the %lld heads",
                            (long long)model->attention.n_kv_heads, (long long)model->attention.n_heads);
  model->norms.parallel_residual = model->norms.parallel_residual || groups;
  model->norms.shared_norm = model->norms.parallel_residual && (groups ? norms == 1 : true);
  model->attention.attention_bias = model->attention.output_bias = model->mlp.mlp_bias = bias;
  model->positions.rotary = !model->positions.alibi;
  model->positions.alibi_scaled = model->positions.alibi;
  return PL_OK;
}

/* "attn_config" has the traits of attention. */
pl_code pl_model_turn_mpt(const pl_model_reader *in, pl_model *model) {
  bool no_bias = true;
  double ratio = 4;
  const pl_node *attention = pl_node_get(in->root, "attn_config");
  PL_TRY(pl_reader_optional_boolean(in, "no_bias", &no_bias));
  if (!no_bias) return pl_reader_demand(in, "no_bias", "MPT with biases is not supported");
  if (pl_reader_has(in, "expansion_ratio"))
    PL_TRY(pl_node_number(in->document, in->root, "expansion_ratio", &ratio, in->error));
  if (!(ratio >= 1 && ratio <= 1024))
    return pl_document_fail(in->document, pl_node_get(in->root, "expansion_ratio"), in->error,
                            "'expansion_ratio' is %g: a factor from 1 to 1024 is needed", ratio);
  model->width.ffn_hidden = (int64_t)((double)model->width.hidden * ratio);
  if (attention == NULL || !pl_node_is_mapping(attention)) return PL_OK;
  const pl_model_reader own = {in->document, attention, in->error, NULL};
  PL_TRY(pl_reader_demand(&own, "alibi", "MPT without ALiBi is not supported"));
  PL_TRY(pl_reader_refuse(&own, "qk_ln", "norms of whole queries and keys are not supported for model_type 'mpt'"));
  PL_TRY(pl_reader_optional_integer(&own, "kv_n_heads", model->attention.n_heads, &model->attention.n_kv_heads));
  return PL_OK;
}

/* OPT 350M projects embeddings and has its norms behind the sums; no other does. */
pl_code pl_model_turn_opt(const pl_model_reader *in, pl_model *model) {
  int64_t width = model->width.hidden;
  PL_TRY(pl_reader_demand(in, "do_layer_norm_before", "OPT with norms behind the sums is not supported"));
  PL_TRY(pl_reader_demand(in, "enable_bias", "OPT without biases is not supported"));
  PL_TRY(pl_reader_demand(in, "layer_norm_elementwise_affine", "norms without parameters are not supported"));
  PL_TRY(pl_reader_optional_integer(in, "word_embed_proj_dim", PL_MODEL_WIDTH_MAX, &width));
  if (width == model->width.hidden) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, "word_embed_proj_dim"), in->error,
                          "'word_embed_proj_dim' = %lld is not 'hidden_size': projected embeddings are not supported",
                          (long long)width);
}

pl_code pl_model_turn_phi(const pl_model_reader *in, pl_model *model) {
  (void)model;
  return pl_reader_refuse(in, "qk_layernorm", "norms of queries and keys are not supported for model_type 'phi'");
}

pl_code pl_model_turn_stablelm(const pl_model_reader *in, pl_model *model) {
  PL_TRY(pl_reader_optional_boolean(in, "use_parallel_residual", &model->norms.parallel_residual));
  model->norms.shared_norm = model->norms.parallel_residual;
  PL_TRY(pl_reader_optional_boolean(in, "use_qkv_bias", &model->attention.attention_bias));
  return pl_reader_refuse(in, "qk_layernorm", "norms of queries and keys are not supported for model_type 'stablelm'");
}

/* Command R+ alone normalises queries and keys. */
pl_code pl_model_turn_cohere(const pl_model_reader *in, pl_model *model) {
  PL_TRY(pl_reader_optional_boolean(in, "use_qk_norm", &model->attention.qk_norm));
  model->attention.qk_norm_whole = model->attention.qk_norm;
  PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
  model->attention.output_bias = model->attention.attention_bias;
  return PL_OK;
}

pl_code pl_model_turn_glm_moe(const pl_model_reader *in, pl_model *model) {
  return pl_reader_optional_boolean(in, "use_qk_norm", &model->attention.qk_norm);
}

pl_code pl_model_turn_seed_oss(const pl_model_reader *in, pl_model *model) {
  PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
  PL_TRY(pl_reader_optional_boolean(in, "attention_out_bias", &model->attention.output_bias));
  return pl_reader_optional_boolean(in, "mlp_bias", &model->mlp.mlp_bias);
}
