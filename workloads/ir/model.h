/* Model: a sequence of blocks over named dimensions, read from a Hugging Face config.json as users have it.
 *
 * Families ("model_type"): workloads/MODELS.md lists them. The sequence for a causal model of L layers has
 * L + 6 blocks, in the granularity at which DeepSpeed's and Megatron's pipeline modules (and AMP's assignments) count:
 * embedding, identity, L layers, identity, final norm, head, loss. A layer is dense or holds experts; the two are
 * different kinds of block.
 */
#ifndef PL_WORKLOADS_MODEL_H
#define PL_WORKLOADS_MODEL_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "workloads/ir/op.h"

/* PIXEL: to unit mean square over the channels, without parameters. */
typedef enum pl_norm_kind { PL_NORM_LAYER = 0, PL_NORM_RMS, PL_NORM_PIXEL } pl_norm_kind;

enum { PL_MODEL_PARTS_MAX = 48, PL_MODEL_CLASSES_MAX = PL_MODEL_PARTS_MAX };

/* What a block of kind RESHAPE makes of a picture; no time depends on which it is. */
typedef enum pl_shape_change {
  PL_SHAPE_NONE = 0,
  PL_SHAPE_COPY,
  PL_SHAPE_UPSAMPLE,
  PL_SHAPE_PIXEL_SHUFFLE,
  PL_SHAPE_PARTITION,
  PL_SHAPE_MERGE
} pl_shape_change;

/* What blocks of a model of unlike blocks have in common: a sample reaches them as `windows` sequences of `rows` tokens
 * of model->hidden channels, which attention sees apart, and leaves each with out_rows tokens of out_width channels. */
typedef struct pl_model_part {
  pl_block_kind kind;
  const struct pl_model *model; /* their width, heads, MLP; its own parts are none */
  int64_t windows, rows, out_rows, out_width;
  int32_t first_block;
  const struct pl_chain *chain; /* PL_BLOCK_CHAIN: its layers (workloads/ir/chain.h); else NULL */
} pl_model_part;

/* Numbers that no time depends on, but what is computed does. */
typedef struct pl_model_numbers {
  double norm_epsilon;                                         /* added to the variance */
  double rotary_base, rotary_share;                            /* share of a head, from its front, that is turned */
  double embedding_dropout, attention_dropout, hidden_dropout; /* probabilities */
  double routing_scale;                                        /* of the experts' answers */
  bool normalises_routing;                                     /* weights of a token's experts add up to one */
} pl_model_numbers;

/* Parts that are said of every model, and parts that few have. Booleans are false, and numbers 0, where a family does
 * not say otherwise (workloads/import/model_families.c). */
typedef struct pl_model {
  const char *name;         /* "name" or "_name_or_path" of the file, else the file's base name */
  const char *family;       /* model_type */
  const char *architecture; /* class whose parameters are counted: the first of "architectures", else the family's class
                               with a language-model head */
  uint64_t digest;          /* of the file */
  int32_t n_layers;
  bool is_text_part;  /* of a model that also sees or hears: its text_config alone; the rest is left out */
  bool of_one_sample; /* the file says 1, taken for any number of them */
  pl_model_numbers numbers;
  struct {
    int64_t hidden, ffn_hidden, vocab, type_vocab;
  } width;
  struct {
    bool gated_mlp, mlp_bias;
    const char *activation; /* for display */
  } mlp;
  struct {
    int64_t n_heads, n_kv_heads;
    int64_t head_size;  /* of queries and keys */
    int64_t value_size; /* of one head's values and context; head_size but for latent attention */
    /* Multi-head latent attention (DeepSeek-V2, section 2.1): ranks of the compressed queries (0 = not compressed) and
     * key-values (0 = ordinary attention), and the rotary share of a head. */
    int64_t q_rank, kv_rank, rope_size;
    int64_t sliding_window; /* keys that a query sees; 0 = all */
    int32_t window_period;  /* n > 1: every n-th layer sees all keys, and each is given the mean work of both kinds */
    bool causal;
    bool attention_bias, output_bias; /* of the projections to queries, keys and values; of the one behind */
    bool qk_norm;                     /* queries and keys are normalised per head */
    bool qk_norm_whole;               /* with weights for each head, or over all of them (Cohere, OLMo 2) */
    bool qk_norm_joint;               /* then one mean over all of them (OLMo 2), not one for each head (Cohere) */
    bool attention_sinks;             /* a number per head in the softmax that no key stands for (gpt-oss) */
  } attention;
  struct {
    int64_t max_positions;
    int64_t original_positions; /* max_positions before the rotary encoding was stretched; 0: it was not */
    int64_t position_offset;    /* rows of the table of positions in front of the first one (OPT) */
    int64_t relative_window;    /* side of the square of tokens that a table of relative positions covers, per head;
                                   0 = none */
    bool learned_positions, rotary;
    bool alibi;        /* scores get a penalty that is linear in the distance; no other positions */
    bool alibi_scaled; /* the penalty is scaled as the scores are (Falcon) */
  } positions;
  /* Mixture of experts; n_experts = 0: none. Every token goes to `topk` experts of width expert_ffn and through shared
   * experts of shared_ffn together (0 = none). Routing is taken as balanced: each expert gets the same number of
   * tokens, times capacity_factor (1: as many as dropless routing has on average). */
  struct {
    int64_t n_experts, topk, expert_ffn, shared_ffn;
    /* A token chooses its experts out of `topk_groups` of n_groups groups of neighbours (DeepSeek); both 0: out of all.
     */
    int64_t n_groups, topk_groups;
    int64_t group_best; /* a group is as good as so many of its best experts together: 1 in DeepSeek-V2, 2 since V3 */
    double capacity_factor;
    /* Routing that is not balanced: tokens of the fullest device of an expert group over the mean (0: as many), or of
     * each of the n_experts how many go to it, in any unit (NULL: not said). */
    double expert_load;
    const double *expert_loads;
    /* Layer i holds experts from the first on where i mod step is the phase (below step). */
    int32_t first_expert_layer, expert_layer_step, expert_layer_phase;
    bool router_bias;
    bool shared_gate; /* the shared experts' output is scaled by a gate per token (Qwen2-MoE) */
  } moe;
  struct {
    pl_norm_kind norm;
    bool norm_bias;
    bool sandwich_norms;    /* norms behind attention and MLP too (Gemma 2) */
    bool norms_behind;      /* norms behind attention and MLP only, in front of the sum (OLMo 2) */
    bool post_norm;         /* BERT: norms behind the residual additions */
    bool embedding_norm;    /* BERT */
    bool final_norm;        /* all but BERT */
    bool parallel_residual; /* GPT-NeoX: attention and MLP read the same input and share one all-reduce */
    bool shared_norm; /* of a parallel residual: attention and MLP read the same norm too (GPT-J, Phi, Falcon 7B) */
  } norms;
  /* The table of tokens, the head and what is behind the layers. */
  struct {
    bool tied_embeddings, head_bias;
    bool pooler, lm_transform; /* BERT */
    bool next_sentence;        /* BertForPreTraining: the head of two classes behind the pooler */
    int64_t
        predictions; /* BERT: masked tokens of a sequence, whose vectors alone the head and the loss read; 0 = all */
    int32_t n_predictions; /* modules of multi-token prediction behind the layers; in programs, and no blocks of them */
  } ends;
  struct {
    bool embedding_dropout, attention_dropout, hidden_dropout; /* probability above 0 in the file */
  } dropout;
  /* A model of unlike blocks (workloads/import/model_transgan.c): n_layers is then its blocks but the first two and the
   * last four, for which other models have their ends, and what is said of widths is said of its first layers. */
  struct {
    const pl_model_part *parts; /* NULL: all layers are alike */
    const uint8_t *part_of;     /* of each block */
    const uint8_t *changes;     /* of each block, pl_shape_change; NULL: none reshapes */
    int32_t n_parts;
  } unlike;
  /* Models that have a program, and neither widths nor blocks that are priced; NULL: not this one. */
  struct {
    const struct pl_onnx_model *onnx; /* of an ONNX file (workloads/onnx/onnx_program.h) */
    const struct pl_dlrm *dlrm;       /* recommendation (workloads/ir/dlrm.h) */
    const struct pl_stack *stack;     /* layers of several kinds (workloads/ir/stack.h) */
  } program;
  /* What the file says of the types of its numbers (workloads/import/model_types.c); jobs have it for a default. */
  struct {
    const char *dtype_key, *dtype_name; /* "torch_dtype", "bfloat16"; NULL: nothing */
    const char *quantization;           /* method of its quantization_config, "unnamed" without one; NULL: none */
  } types;
  struct {
    double parameters; /* exact count of `architecture` as Hugging Face builds it (unpadded vocabulary) */
    /* What is trained: the sum over the blocks. It differs from `parameters` only for a bare BertModel, LlamaModel ...:
     * training needs a language-model head, which the bare class lacks. */
    double trained_parameters;
  } count;
} pl_model;

/* Whether it has blocks that are priced one by one; else it is its program alone. */
static inline bool pl_model_has_blocks(const pl_model *model) {
  return model->program.onnx == NULL && model->program.dlrm == NULL && model->program.stack == NULL;
}

/* Blocks in front of and behind the layers: embedding, identity; identity, final norm, head, loss. */
enum { PL_MODEL_BLOCKS_BEFORE_LAYERS = 2, PL_MODEL_BLOCKS_AFTER_LAYERS = 4 };

static inline int32_t pl_model_n_blocks(const pl_model *model) {
  return PL_MODEL_BLOCKS_BEFORE_LAYERS + model->n_layers + PL_MODEL_BLOCKS_AFTER_LAYERS;
}
/* Whether layer `layer` (0 is the first) holds experts. */
static inline bool pl_model_has_experts(const pl_model *model, int32_t layer) {
  return model->moe.n_experts > 0 && layer >= model->moe.first_expert_layer &&
         layer % model->moe.expert_layer_step == model->moe.expert_layer_phase;
}
/* In the header, as the two below: loops over blocks do little else. */
static inline pl_block_kind pl_model_block_kind(const pl_model *model, int32_t block) {
  PL_ASSERT(block >= 0 && block < pl_model_n_blocks(model));
  if (model->unlike.parts != NULL) return model->unlike.parts[model->unlike.part_of[block]].kind;
  int32_t layer = block - PL_MODEL_BLOCKS_BEFORE_LAYERS, behind = layer - model->n_layers;
  if (layer < 0) return block == 0 ? PL_BLOCK_EMBEDDING : PL_BLOCK_IDENTITY;
  if (behind < 0) return pl_model_has_experts(model, layer) ? PL_BLOCK_EXPERT_LAYER : PL_BLOCK_LAYER;
  return behind == 0   ? PL_BLOCK_IDENTITY
         : behind == 1 ? PL_BLOCK_FINAL_NORM
         : behind == 2 ? PL_BLOCK_HEAD
                       : PL_BLOCK_LOSS;
}
/* How many of the model's blocks are of this kind. O(layers). */
int32_t pl_model_count_blocks(const pl_model *model, pl_block_kind kind);
/* Tensor ranks that share each key-value head: more than one where there are fewer heads than ranks. */
int32_t pl_model_head_sharers(const pl_model *model, int32_t tmp);

/* Classes of equal blocks: the kinds of an ordinary model, the parts of one of unlike blocks. */
static inline int32_t pl_model_n_classes(const pl_model *model) {
  return model->unlike.parts != NULL ? model->unlike.n_parts : (int32_t)PL_BLOCK_LATENT;
}
static inline int32_t pl_model_block_class(const pl_model *model, int32_t block) {
  return model->unlike.parts != NULL ? model->unlike.part_of[block] : (int32_t)pl_model_block_kind(model, block);
}
pl_block_kind pl_model_class_kind(const pl_model *model, int32_t class_of_blocks);
int32_t pl_model_count_class(const pl_model *model, int32_t class_of_blocks);
/* Whether `tmp` cuts the MLPs that tensor parallelism splits into equal parts: those of dense layers and the shared
 * experts. `width` is the one that it does not divide. */
bool pl_model_splits_mlp(const pl_model *model, int32_t tmp, int64_t *width);

/* Parameters of one block, unsharded and with the vocabulary unpadded (tied head: counted once, in the embedding). */
double pl_model_block_parameters(const pl_model *model, int32_t block);
/* Entries per head of its table of relative positions: (2 w - 1)^2; 0 without one. */
double pl_model_relative_positions(const pl_model *model);
/* Tokens of the fullest of `ep` devices that the experts are spread over, over the mean: all exchange and wait for it.
 * Each has n_experts / ep neighbours. */
double pl_model_expert_load(const pl_model *model, int32_t ep);
/* Those of the modules of multi-token prediction alone, without the embedding and the head that they share: not among
 * `parameters`, which are those of the class. */
double pl_model_prediction_parameters(const pl_model *model);
/* Parameters that a token meets: all but those of the experts that it is not sent to. */
double pl_model_active_parameters(const pl_model *model);

#endif
