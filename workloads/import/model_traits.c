/* What the architectures of Hugging Face's classes have besides widths: norms, biases, positions, windows, residuals.
 * Fixed traits stand in the table of families; here are those that a file turns. */
#include <string.h>

#include "workloads/import/model_families.h"

/* BERT, RoBERTa. */
static pl_code read_encoder(const pl_model_reader *in, pl_model *model) {
  const char *positions = "absolute";
  model->attention.causal = false;
  model->norms.post_norm = model->norms.embedding_norm = model->ends.lm_transform = true;
  model->norms.final_norm = false;
  model->ends.next_sentence = strcmp(model->architecture, "BertForPreTraining") == 0;
  model->ends.pooler =
      model->ends.next_sentence || strcmp(model->architecture + strlen(model->architecture) - 5, "Model") == 0;
  model->width.type_vocab = 2;
  PL_TRY(pl_reader_optional_integer(in, "type_vocab_size", PL_MODEL_VOCAB_MAX, &model->width.type_vocab));
  PL_TRY(pl_reader_optional_integer(in, "max_predictions_per_seq", pl_model_positions_max, &model->ends.predictions));
  if (pl_reader_has(in, "position_embedding_type"))
    PL_TRY(pl_node_string(in->document, in->root, "position_embedding_type", &positions, in->error));
  if (strcmp(positions, "absolute") != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, "position_embedding_type"), in->error,
                            "'position_embedding_type' is '%s'; only 'absolute' is supported", positions);
  return pl_reader_refuse(in, "is_decoder", "only encoders are supported for model_type 'bert'");
}

pl_code pl_model_traits_read(const pl_model_reader *in, const pl_model_family *family, pl_arena *arena,
                             pl_model *model) {
  model->norms.norm = family->norm;
  model->norms.norm_bias = family->norm_bias;
  model->mlp.gated_mlp = family->gated;
  model->ends.tied_embeddings = family->tied;
  model->attention.attention_bias = family->attention_bias;
  model->attention.output_bias = family->output_bias;
  model->mlp.mlp_bias = family->mlp_bias;
  model->norms.parallel_residual = family->parallel;
  model->norms.shared_norm = family->shared_norm;
  model->norms.norms_behind = family->norms_behind;
  model->norms.embedding_norm = family->embedding_norm;
  model->attention.attention_sinks = family->sinks;
  model->moe.router_bias = family->router_bias;
  model->ends.head_bias = family->head_bias;
  model->attention.causal = model->norms.final_norm = true;
  const pl_model_reader ties = {in->document, in->outer != NULL ? in->outer : in->root, in->error, NULL};
  PL_TRY(pl_reader_optional_boolean(&ties, "tie_word_embeddings", &model->ends.tied_embeddings));
  if (family->is_encoder) return read_encoder(in, model);
  PL_TRY(pl_model_windows_read(in, family, model));
  model->attention.qk_norm = family->qk_norm;
  model->attention.qk_norm_whole = model->attention.qk_norm_joint = family->qk_norm_whole;
  model->norms.sandwich_norms = family->sandwich_norms;
  if (family->experts != NULL) PL_TRY(pl_model_experts_read(in, family, arena, model));
  if (family->reads_qkv_bias)
    PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
  if (family->reads_biases) {
    PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
    model->attention.output_bias = model->attention.attention_bias;
    if (!family->qk_norm)
      PL_TRY(pl_reader_optional_boolean(in, "mlp_bias", &model->mlp.mlp_bias)); /* Qwen3's has none */
  }
  int64_t n = 0;
  if (pl_reader_has(in, "num_nextn_predict_layers"))
    PL_TRY(pl_node_integer(in->document, in->root, "num_nextn_predict_layers", 0, PL_MODEL_PREDICTIONS_MAX, &n,
                           in->error));
  model->ends.n_predictions = (int32_t)n;
  return family->turn != NULL ? family->turn(in, model) : PL_OK;
}
