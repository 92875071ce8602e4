/* Model: a sequence of blocks over named dimensions, read from a Hugging Face config.json as users have it.
 *
 * Families: gpt2, gpt_neox, bert, llama, mistral ("model_type"). The sequence for a causal model of L layers has L + 6 blocks, in the
 * granularity at which DeepSpeed's and Megatron's pipeline modules (and AMP's assignments) count: embedding, identity, L layers, identity,
 * final norm, head, loss.
 */
#ifndef PL_WORKLOADS_MODEL_H
#define PL_WORKLOADS_MODEL_H

#include "core/arena.h"
#include "core/status.h"
#include "workloads/op.h"

typedef enum pl_norm_kind { PL_NORM_LAYER = 0, PL_NORM_RMS } pl_norm_kind;

typedef struct pl_model {
  const char *name;   /* "_name_or_path" / "name" of the file, else the file's base name */
  const char *family; /* model_type */
  uint64_t digest;    /* of the file */
  int32_t n_layers;
  int64_t hidden, ffn_hidden, n_heads, n_kv_heads, head_size, vocab, max_positions, type_vocab;
  pl_norm_kind norm;
  bool gated_mlp, causal, tied_embeddings, learned_positions, rotary;
  bool attention_bias, output_bias, mlp_bias; /* q,k,v projections; attention output; MLP */
  bool norm_bias;
  bool final_norm, pooler, lm_transform; /* BERT: no final norm, pooler, MLM transform */
  bool embedding_norm;                   /* BERT */
  double parameters;                     /* exact count of the whole model, as the HF class of the architecture has it */
} pl_model;

/* Strings in `arena`. `vocab_multiple` > 1 pads the vocabulary (Megatron's make-vocab-size-divisible-by) where ops use it. Errors name file and
 * line: a needed key that is missing, an unknown architecture, values that do not divide. */
pl_code pl_model_load(const char *path, pl_arena *arena, pl_model *model, pl_error *error);

static inline int32_t pl_model_n_blocks(const pl_model *model) { return model->n_layers + 6; }
pl_block_kind pl_model_block_kind(const pl_model *model, int32_t block);

/* Parameters of one block, unsharded (tied head: counted once, in the embedding). */
double pl_model_block_parameters(const pl_model *model, int32_t block);

/* FLOPs of forward + backward for one sequence of length `seq`, without recomputation (Megatron SC21, eq. 3 without its recompute factor; exact,
 * from the ops). */
double pl_model_flops_per_sequence(const pl_model *model, int64_t seq);

/* Op lists of a block under a shard; memory from `arena`. Fails if tmp does not divide heads, kv heads may be replicated (tmp a multiple of
 * n_kv_heads or the reverse), ffn or padded vocabulary. The vocabulary is padded to a multiple of 128 * tmp as Megatron does. */
pl_code pl_block_program_take(const pl_model *model, pl_block_kind kind, const pl_block_shard *shard, pl_arena *arena,
                              pl_block_program *program, pl_error *error);

#endif
