/* The table of Hugging Face model families that workloads/import/model_huggingface.c reads. Internal.
 *
 * A family is a row of a table: the keys under which its configuration class keeps each dimension, the class's defaults
 * for what may be absent, and the fixed traits of its architecture. Keys, defaults and traits are those of the classes
 * of transformers 4.x (GPT2Config, GPTNeoXConfig, BertConfig, LlamaConfig ...); a dimension for which a
 * class has a default is nevertheless required when it decides the size of the model, because a file without it is
 * nearly always a mistake. One trait per family that the file can turn (parallel residual, biases, tied embeddings,
 * dropout) is read; everything else in the file (token ids, initialisation, versions ...) is ignored.
 */
#ifndef PL_WORKLOADS_MODEL_FAMILIES_H
#define PL_WORKLOADS_MODEL_FAMILIES_H

#include "workloads/ir/model.h"

typedef struct pl_model_family {
  const char *type, *title;
  const char *hidden, *layers, *heads, *ffn, *positions, *activation;
  const char *embedding_dropout, *attention_dropout, *hidden_dropout; /* NULL = the class has none */
  const char *default_activation;
  double default_dropout;
  int64_t default_kv_heads, default_head_size, default_window; /* 0 = as many as heads; hidden / heads; none */
  bool ffn_is_optional, tied, gated, learned_positions, norm_bias, attention_bias, output_bias, mlp_bias;
  bool grouped;      /* knows num_key_value_heads and head_dim */
  bool reads_biases; /* attention_bias and mlp_bias */
  bool qk_norm, sandwich_norms, latent;
  const char *experts, *expert_ffn; /* keys of their number and width; NULL = no experts, or intermediate_size */
  pl_norm_kind norm;
  const char *classes[4]; /* the default first */
} pl_model_family;

extern const pl_model_family pl_model_families[];
extern const size_t pl_model_n_families;

/* model_numbers.c: numbers of a model whose traits have been read. */
struct pl_document;
pl_code pl_model_numbers_read(const struct pl_document *document, const pl_model_family *family, pl_model *model,
                              pl_error *error);

#endif
