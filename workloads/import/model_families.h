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

#include "workloads/import/model_reader.h"
#include "workloads/ir/model.h"

typedef struct pl_model_family {
  const char *type, *title;
  const char *also[5]; /* other model_types whose configurations say the same in the same keys */
  const char *hidden, *layers, *heads, *ffn, *positions, *activation;
  const char *embedding_dropout, *attention_dropout, *hidden_dropout; /* NULL = the class has none */
  const char *default_activation;
  double default_dropout, default_attention_dropout;
  int64_t default_kv_heads, default_head_size, default_window; /* 0 = as many as heads; hidden / heads; none */
  int64_t default_heads, default_vocab;                        /* 0 = required */
  int32_t window_period; /* every so many-th layer has no window, if the file does not say otherwise; 0 = no such */
  int64_t position_offset;
  bool ffn_is_optional, tied, gated, learned_positions, norm_bias, attention_bias, output_bias, mlp_bias;
  bool grouped;        /* knows num_key_value_heads and head_dim */
  bool reads_biases;   /* attention_bias and mlp_bias */
  bool reads_qkv_bias; /* attention_bias, of queries, keys and values alone */
  bool reads_window;   /* sliding_window */
  bool is_encoder;     /* BERT and its like: vectors of both sides, a head that transforms them, no final norm */
  bool parallel, shared_norm, norms_behind, embedding_norm, alibi, sinks, head_bias, router_bias;
  bool qk_norm, qk_norm_whole, sandwich_norms, latent;
  bool dense_first;                 /* first_k_dense_replace: how many layers in front hold no experts */
  bool shares_expert;               /* one expert more, as wide as the others, that sees every token */
  const char *experts, *expert_ffn; /* keys of their number and width; NULL = no experts, or intermediate_size */
  /* More that files of this family turn, after all else was read; NULL: nothing. model_turns.c. */
  pl_code (*turn)(const pl_model_reader *in, pl_model *model);
  pl_norm_kind norm;
  const char *classes[4]; /* the default first */
} pl_model_family;

extern const pl_model_family pl_model_families[];
extern const size_t pl_model_n_families;

/* model_numbers.c: numbers of a model whose traits have been read. */
struct pl_document;
struct pl_node;
pl_code pl_model_numbers_read(const struct pl_document *document, const struct pl_node *root,
                              const pl_model_family *family, pl_model *model, pl_error *error);
/* model_turns.c: what only one family has. */
pl_code pl_model_turn_falcon(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_bigcode(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_mpt(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_opt(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_phi(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_stablelm(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_cohere(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_glm_moe(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_seed_oss(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_neox(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_internlm2(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_starcoder2(const pl_model_reader *in, pl_model *model);
pl_code pl_model_turn_gpt2(const pl_model_reader *in, pl_model *model);

/* model_windows.c: which layers see a window. */
pl_code pl_model_windows_read(const pl_model_reader *in, const pl_model_family *family, pl_model *model);
/* model_traits.c: what the file turns. */
pl_code pl_model_traits_read(const pl_model_reader *in, const pl_model_family *family, pl_arena *arena,
                             pl_model *model);
/* model_experts.c: a mixture's experts, after the widths. */
pl_code pl_model_experts_read(const pl_model_reader *in, const pl_model_family *family, pl_arena *arena,
                              pl_model *model);

#endif
