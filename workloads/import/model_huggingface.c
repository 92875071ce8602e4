/* Reads Hugging Face config.json files (see workloads/ir/model.h).
 */
#include <stdio.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/system/data_folder.h"
#include "core/text/document.h"
#include "workloads/import/model_families.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

typedef struct reader {
  const pl_document *document;
  const pl_node *root;
  pl_error *error;
} reader;

/* Far above any model, and low enough that no product of two overflows. */
static const int64_t layers_max = 100000, width_max = INT64_C(1) << 22, heads_max = INT64_C(1) << 16,
                     vocab_max = INT64_C(1) << 30, positions_max = INT64_C(1) << 31;

static bool has(const reader *in, const char *key) {
  return pl_node_get(in->root, key) != NULL;
}

/* Written in the file, be it as null: where a class's default differs from what null means to it. */
static bool mentions(const reader *in, const char *key) {
  for (size_t i = 0; i < pl_node_count(in->root); i++) {
    const char *name = NULL;
    pl_node_entry(in->document, in->root, i, &name);
    if (name != NULL && strcmp(name, key) == 0) return true;
  }
  return false;
}

static pl_code integer(const reader *in, const char *key, int64_t highest, int64_t *value) {
  return pl_node_integer(in->document, in->root, key, 1, highest, value, in->error);
}

static pl_code optional_integer(const reader *in, const char *key, int64_t highest, int64_t *value) {
  return has(in, key) ? integer(in, key, highest, value) : PL_OK;
}

static pl_code optional_boolean(const reader *in, const char *key, bool *value) {
  return has(in, key) ? pl_node_boolean(in->document, in->root, key, value, in->error) : PL_OK;
}

/* A probability: what matters here is only whether it is above zero. */
static pl_code probability(const reader *in, const char *key, double otherwise, bool *positive) {
  double value = otherwise;
  if (key != NULL && has(in, key)) {
    PL_TRY(pl_node_number(in->document, in->root, key, &value, in->error));
    if (!(value >= 0 && value <= 1))
      return pl_document_fail(in->document, pl_node_get(in->root, key), in->error,
                              "'%s' is %g: a probability from 0 to 1 is needed", key, value);
  }
  *positive = value > 0;
  return PL_OK;
}

/* Texts are names: what would move a terminal's cursor is not one. */
static pl_code text(const reader *in, const char *key, const char *otherwise, pl_arena *arena, const char **value) {
  const char *found = otherwise;
  if (has(in, key)) PL_TRY(pl_node_name(in->document, in->root, key, &found, in->error));
  *value = pl_arena_strdup(arena, found);
  return *value != NULL ? PL_OK : pl_fail_memory(in->error, "the model's strings");
}

static pl_code refuse(const reader *in, const char *key, const char *why) {
  bool set = false;
  PL_TRY(optional_boolean(in, key, &set));
  return set ? pl_document_fail(in->document, pl_node_get(in->root, key), in->error, "'%s': %s", key, why) : PL_OK;
}

static pl_code find_family(const reader *in, const pl_model_family **found) {
  const char *type;
  PL_TRY(pl_node_string(in->document, in->root, "model_type", &type, in->error));
  for (size_t i = 0; i < pl_model_n_families; i++)
    if (strcmp(pl_model_families[i].type, type) == 0) {
      *found = &pl_model_families[i];
      return PL_OK;
    }
  char text_bytes[PL_WORDS_BYTES];
  pl_word_list list = pl_word_list_begin(text_bytes, sizeof text_bytes);
  for (size_t i = 0; i < pl_model_n_families; i++)
    pl_word_list_add(&list, pl_model_families[i].type);
  return pl_document_fail(in->document, pl_node_get(in->root, "model_type"), in->error,
                          "model_type '%.64s' is not supported; supported are %s, transgan, cnn and mlp", type,
                          pl_word_list_end(&list));
}

static pl_code read_architecture(const reader *in, const pl_model_family *family, pl_model *model) {
  model->architecture = family->classes[0];
  const pl_node *list = pl_node_get(in->root, "architectures");
  if (list == NULL) return PL_OK;
  const char *name;
  if (!pl_node_is_sequence(list))
    return pl_document_fail(in->document, list, in->error, "'architectures' must be a list of class names");
  if (pl_node_count(list) == 0) return PL_OK;
  PL_TRY(pl_node_as_string(in->document, pl_node_at(list, 0), &name, in->error));
  for (size_t i = 0; i < 4 && family->classes[i] != NULL; i++)
    if (strcmp(family->classes[i], name) == 0) {
      model->architecture = family->classes[i];
      return PL_OK;
    }
  return pl_document_fail(in->document, pl_node_at(list, 0), in->error,
                          "architecture '%s' is not supported for model_type '%s'; supported are %s, %s%s%s", name,
                          family->type, family->classes[0], family->classes[1], family->classes[2] ? ", " : "",
                          family->classes[2] ? family->classes[2] : "");
}

/* "ffn_hidden_size" is ours, for architectures that no class has. */
static pl_code read_widths(const reader *in, const pl_model_family *family, pl_model *model) {
  int64_t layers;
  PL_TRY(integer(in, family->layers, layers_max, &layers));
  model->n_layers = (int32_t)layers;
  PL_TRY(integer(in, family->hidden, width_max, &model->hidden));
  PL_TRY(integer(in, family->heads, heads_max, &model->n_heads));
  PL_TRY(integer(in, "vocab_size", vocab_max, &model->vocab));
  if (has(in, "ffn_hidden_size")) return integer(in, "ffn_hidden_size", width_max, &model->ffn_hidden);
  model->ffn_hidden = 4 * model->hidden;
  if (family->ffn_is_optional) return optional_integer(in, family->ffn, 4 * width_max, &model->ffn_hidden);
  return integer(in, family->ffn, width_max, &model->ffn_hidden);
}

/* Latent attention: every head has keys and values of its own, of sizes of their own. */
static pl_code read_latent(const reader *in, pl_model *model) {
  int64_t plain = 0;
  PL_TRY(integer(in, "kv_lora_rank", width_max, &model->kv_rank));
  PL_TRY(integer(in, "qk_nope_head_dim", heads_max, &plain));
  PL_TRY(integer(in, "qk_rope_head_dim", heads_max, &model->rope_size));
  PL_TRY(integer(in, "v_head_dim", heads_max, &model->value_size));
  model->head_size = plain + model->rope_size;
  if (!mentions(in, "q_lora_rank")) model->q_rank = 1536; /* null: queries are not compressed */
  PL_TRY(optional_integer(in, "q_lora_rank", width_max, &model->q_rank));
  return refuse(in, "attention_bias", "biases of latent attention are not supported");
}

static pl_code read_head_size(const reader *in, const pl_model_family *family, pl_model *model) {
  model->head_size = family->default_head_size;
  if (family->grouped && has(in, "head_dim")) return integer(in, "head_dim", heads_max, &model->head_size);
  if (model->head_size > 0) return PL_OK;
  if (model->hidden % model->n_heads != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, family->hidden), in->error,
                            "'%s' = %lld is not a multiple of '%s' = %lld", family->hidden, (long long)model->hidden,
                            family->heads, (long long)model->n_heads);
  model->head_size = model->hidden / model->n_heads;
  return PL_OK;
}

static pl_code read_heads(const reader *in, const pl_model_family *family, pl_model *model) {
  const char *kv_key = "num_key_value_heads";
  model->n_kv_heads = model->n_heads;
  if (family->latent) return read_latent(in, model);
  if (family->default_kv_heads > 0 && !mentions(in, kv_key)) model->n_kv_heads = family->default_kv_heads;
  if (family->grouped) PL_TRY(optional_integer(in, kv_key, heads_max, &model->n_kv_heads));
  if (model->n_heads % model->n_kv_heads != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, has(in, kv_key) ? kv_key : family->heads), in->error,
                            "'%s' = %lld does not divide '%s' = %lld", kv_key, (long long)model->n_kv_heads,
                            family->heads, (long long)model->n_heads);
  PL_TRY(read_head_size(in, family, model));
  model->value_size = model->head_size;
  return PL_OK;
}

/* Rotary models have no table of positions: their limit is not needed. GPT-2 files of old call it n_ctx. */
static pl_code read_positions(const reader *in, const pl_model_family *family, pl_model *model) {
  const char *key = family->positions;
  if (strcmp(family->type, "gpt2") == 0 && !has(in, key) && has(in, "n_ctx")) key = "n_ctx";
  model->learned_positions = family->learned_positions;
  model->rotary = !family->learned_positions;
  return family->learned_positions ? integer(in, key, positions_max, &model->max_positions)
                                   : optional_integer(in, key, positions_max, &model->max_positions);
}

static pl_code read_dropout(const reader *in, const pl_model_family *family, pl_model *model) {
  double otherwise = family->default_dropout;
  PL_TRY(probability(in, family->embedding_dropout, otherwise, &model->embedding_dropout));
  PL_TRY(probability(in, family->attention_dropout, otherwise, &model->attention_dropout));
  return probability(in, family->hidden_dropout, otherwise, &model->hidden_dropout);
}

static pl_code read_bert(const reader *in, pl_model *model) {
  const char *positions = "absolute";
  model->causal = false;
  model->post_norm = model->embedding_norm = model->lm_transform = true;
  model->final_norm = false;
  model->next_sentence = strcmp(model->architecture, "BertForPreTraining") == 0;
  model->pooler = model->next_sentence || strcmp(model->architecture, "BertModel") == 0;
  model->type_vocab = 2;
  PL_TRY(optional_integer(in, "type_vocab_size", vocab_max, &model->type_vocab));
  PL_TRY(optional_integer(in, "max_predictions_per_seq", positions_max, &model->predictions));
  if (has(in, "position_embedding_type"))
    PL_TRY(pl_node_string(in->document, in->root, "position_embedding_type", &positions, in->error));
  if (strcmp(positions, "absolute") != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, "position_embedding_type"), in->error,
                            "'position_embedding_type' is '%s'; only 'absolute' is supported", positions);
  return refuse(in, "is_decoder", "only encoders are supported for model_type 'bert'");
}

/* Mistral and Mixtral: in every layer. Gemma 2: in every other one. Qwen: from some layer on, if asked for. */
static pl_code read_window(const reader *in, const pl_model_family *family, pl_model *model) {
  bool is_qwen = strncmp(family->type, "qwen", 4) == 0, is_gemma2 = strcmp(family->type, "gemma2") == 0;
  if (is_qwen) return refuse(in, "use_sliding_window", "windows in some layers only are not supported");
  if (family->default_window > 0 && !mentions(in, "sliding_window")) model->sliding_window = family->default_window;
  model->alternating_window = is_gemma2;
  if (!is_gemma2 && strncmp(family->type, "mi", 2) != 0) return PL_OK;
  return optional_integer(in, "sliding_window", positions_max, &model->sliding_window);
}

static pl_code read_capacity(const reader *in, pl_model *model) {
  const char *key = "expert_capacity_factor";
  model->capacity_factor = 1;
  if (!has(in, key)) return PL_OK;
  PL_TRY(pl_node_number(in->document, in->root, key, &model->capacity_factor, in->error));
  if (model->capacity_factor > 0 && model->capacity_factor <= 1024) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, key), in->error,
                          "'%s' is %g: a factor above 0, at most 1024, is needed", key, model->capacity_factor);
}

/* Which layers hold experts. */
static pl_code read_expert_layers(const reader *in, const pl_model_family *family, pl_model *model) {
  const pl_node *dense = pl_node_get(in->root, "mlp_only_layers");
  int64_t first = 0, step = 1;
  if (family->latent) {
    if (has(in, "first_k_dense_replace"))
      PL_TRY(pl_node_integer(in->document, in->root, "first_k_dense_replace", 0, layers_max, &first, in->error));
    PL_TRY(optional_integer(in, "moe_layer_freq", layers_max, &step));
    if (step != 1)
      return pl_document_fail(in->document, pl_node_get(in->root, "moe_layer_freq"), in->error,
                              "'moe_layer_freq' is %lld; only 1 is supported", (long long)step);
  } else {
    PL_TRY(optional_integer(in, "decoder_sparse_step", layers_max, &step));
    if (dense != NULL && pl_node_is_sequence(dense) && pl_node_count(dense) > 0)
      return pl_document_fail(in->document, dense, in->error,
                              "'mlp_only_layers' must be empty: dense layers in between "
                              "are not supported");
  }
  model->first_expert_layer = (int32_t)first;
  model->expert_layer_step = (int32_t)step;
  return PL_OK;
}

static pl_code read_experts(const reader *in, const pl_model_family *family, pl_model *model) {
  const int64_t experts_max = 1 << 16;
  int64_t shared = 0;
  PL_TRY(integer(in, family->experts, experts_max, &model->n_experts));
  PL_TRY(integer(in, "num_experts_per_tok", experts_max, &model->topk));
  if (model->topk > model->n_experts)
    return pl_document_fail(in->document, pl_node_get(in->root, "num_experts_per_tok"), in->error,
                            "'num_experts_per_tok' = %lld exceeds '%s' = %lld", (long long)model->topk, family->experts,
                            (long long)model->n_experts);
  model->expert_ffn = model->ffn_hidden;
  if (family->expert_ffn != NULL) PL_TRY(integer(in, family->expert_ffn, width_max, &model->expert_ffn));
  if (has(in, "n_shared_experts"))
    PL_TRY(pl_node_integer(in->document, in->root, "n_shared_experts", 0, experts_max, &shared, in->error));
  model->shared_ffn = shared * model->expert_ffn;
  model->shared_gate = strcmp(family->type, "qwen2_moe") == 0;
  if (model->shared_gate) PL_TRY(integer(in, "shared_expert_intermediate_size", width_max, &model->shared_ffn));
  PL_TRY(read_capacity(in, model));
  return read_expert_layers(in, family, model);
}

static pl_code read_traits(const reader *in, const pl_model_family *family, pl_model *model) {
  model->norm = family->norm;
  model->norm_bias = family->norm_bias;
  model->gated_mlp = family->gated;
  model->tied_embeddings = family->tied;
  model->attention_bias = family->attention_bias;
  model->output_bias = family->output_bias;
  model->mlp_bias = family->mlp_bias;
  model->causal = model->final_norm = true;
  PL_TRY(optional_boolean(in, "tie_word_embeddings", &model->tied_embeddings));
  if (strcmp(family->type, "bert") == 0) return read_bert(in, model);
  if (strcmp(family->type, "gpt2") == 0)
    return refuse(in, "add_cross_attention", "cross attention is not supported for model_type 'gpt2'");
  if (strcmp(family->type, "gpt_neox") == 0) {
    model->parallel_residual = true;
    PL_TRY(optional_boolean(in, "use_parallel_residual", &model->parallel_residual));
    PL_TRY(optional_boolean(in, "attention_bias", &model->attention_bias));
    model->output_bias = model->attention_bias;
    return probability(in, "rotary_pct", 0.25, &model->rotary);
  }
  PL_TRY(read_window(in, family, model));
  model->qk_norm = family->qk_norm;
  model->sandwich_norms = family->sandwich_norms;
  if (strcmp(family->type, "nemotron") == 0) PL_TRY(probability(in, "partial_rotary_factor", 0.5, &model->rotary));
  if (family->experts != NULL) PL_TRY(read_experts(in, family, model));
  if (!family->reads_biases) return PL_OK;
  PL_TRY(optional_boolean(in, "attention_bias", &model->attention_bias));
  model->output_bias = model->attention_bias;
  return family->qk_norm ? PL_OK : optional_boolean(in, "mlp_bias", &model->mlp_bias); /* Qwen3's MLP has none */
}

/* "name", else "_name_or_path" unless it is a path on somebody's disk, else the file's name without folder and ".json".
 */
static pl_code read_name(const reader *in, pl_arena *arena, pl_model *model) {
  const char *path = pl_document_name(in->document), *slash = strrchr(path, '/'), *hub = "";
  char *base = pl_printable_strdup(arena, slash ? slash + 1 : path);
  if (base == NULL) return pl_fail_memory(in->error, "the model's name");
  size_t length = strlen(base);
  if (length > 5 && strcmp(base + length - 5, ".json") == 0) base[length - 5] = '\0';
  if (has(in, "name")) return text(in, "name", base, arena, &model->name);
  if (has(in, "_name_or_path")) PL_TRY(text(in, "_name_or_path", base, arena, &hub));
  model->name = hub[0] == '\0' || hub[0] == '.' || hub[0] == '/' ? base : hub;
  return PL_OK;
}

static void count_parameters(pl_model *model) {
  model->trained_parameters = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    model->trained_parameters += pl_model_block_parameters(model, block);
  model->parameters = model->trained_parameters;
  size_t length = strlen(model->architecture);
  bool has_head = strcmp(model->architecture, "GPT2LMHeadModel") == 0 || length < 5 ||
                  strcmp(model->architecture + length - 5, "Model") != 0;
  if (has_head) return;
  model->parameters -= pl_model_block_parameters(model, model->n_layers + 4);
  if (model->pooler) model->parameters += (double)model->hidden * (double)(model->hidden + 1);
}

static bool is_of_type(const reader *in, const char *wanted) {
  const char *type = NULL;
  return has(in, "model_type") &&
         pl_node_as_string(in->document, pl_node_get(in->root, "model_type"), &type, NULL) == PL_OK &&
         strcmp(type, wanted) == 0;
}

static pl_code read_document(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  const reader in = {document, pl_document_root(document), error};
  const pl_model_family *family = NULL;
  if (in.root == NULL || !pl_node_is_mapping(in.root))
    return pl_document_fail(document, in.root, error, "a model is a JSON object, as in Hugging Face's config.json");
  if (is_of_type(&in, "transgan")) return pl_model_transgan_read(document, arena, model, error);
  if (is_of_type(&in, "cnn")) return pl_model_cnn_read(document, arena, model, error);
  if (is_of_type(&in, "mlp")) return pl_model_mlp_read(document, arena, model, error);
  PL_TRY(find_family(&in, &family));
  PL_ASSERT(family != NULL);
  model->family = family->type;
  model->digest = pl_document_digest(document);
  PL_TRY(read_architecture(&in, family, model));
  PL_TRY(read_widths(&in, family, model));
  PL_TRY(read_heads(&in, family, model));
  PL_TRY(read_positions(&in, family, model));
  PL_TRY(read_dropout(&in, family, model));
  PL_TRY(read_traits(&in, family, model));
  PL_TRY(pl_model_numbers_read(document, family, model, error));
  bool is_gemma = strncmp(family->type, "gemma", 5) == 0 && has(&in, "hidden_activation");
  const char *activation = is_gemma ? "hidden_activation" : family->activation;
  PL_TRY(text(&in, activation, family->default_activation, arena, &model->activation));
  PL_TRY(read_name(&in, arena, model));
  count_parameters(model);
  return PL_OK;
}

/* Widths within their limits may still multiply to what no counter of bytes holds. */
static pl_code check_size(const pl_document *document, const pl_model *model, pl_error *error) {
  const double most = 0x1p57; /* bytes beside each: below 2^5 */
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++) {
    double own = pl_model_block_parameters(model, block);
    if (own > most)
      return pl_document_fail(document, pl_document_root(document), error,
                              "the dimensions make a block of %.3g parameters; at most %.3g can be simulated", own,
                              most);
  }
  return PL_OK;
}

static pl_code finish(pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  *model = (pl_model){0};
  pl_code code = read_document(document, arena, model, error);
  if (code == PL_OK) code = check_size(document, model, error);
  if (code == PL_OK) code = pl_model_types_read(document, arena, model, error);
  if (code != PL_OK) *model = (pl_model){0};
  pl_document_destroy(document);
  return code;
}

const char *const *pl_model_names(pl_arena *arena) {
  pl_data_names list = {0};
  const char *folder = pl_data_path("models", arena);
  if (folder != NULL) pl_data_names_add(&list, folder, ".json", arena);
  pl_data_names_end(&list, arena);
  return arena->failed ? NULL : list.names;
}

static pl_code refuse_name(const char *name, pl_arena *arena, pl_error *error) {
  const char *const *names = pl_model_names(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of models");
  return pl_data_refuse(name, "a model", names, "paceline list models", error);
}

pl_code pl_model_load(const char *path, pl_arena *arena, pl_model *model, pl_error *error) {
  pl_document *document = NULL;
  *model = (pl_model){0};
  const char *found;
  PL_TRY(pl_data_choose(path, "models", ".json", arena, &found, error));
  if (found == NULL) return refuse_name(path, arena, error);
  PL_TRY(pl_document_load(found, &document, error));
  return finish(document, arena, model, error);
}

pl_code pl_model_parse(const char *name, const char *text_bytes, size_t size, pl_arena *arena, pl_model *model,
                       pl_error *error) {
  pl_document *document = NULL;
  *model = (pl_model){0};
  PL_TRY(pl_document_parse(name, text_bytes, size, true, &document, error));
  return finish(document, arena, model, error);
}
