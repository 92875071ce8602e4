/* Reads Hugging Face config.json files (see workloads/ir/model.h).
 */
#include <stdio.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/system/data_folder.h"
#include "workloads/import/model_families.h"
#include "workloads/import/model_file.h"
#include "workloads/import/model_stack.h"
#include "workloads/ir/model.h"
#include "workloads/onnx/onnx_file.h"

/* Types that transformers has and that are of another kind than any family here: what they are, and the nearest. */
static const struct {
  const char *type, *what, *nearest;
} other_kinds[] = {{"bart", "an encoder with a decoder", "t5"},
                   {"umt5", "an encoder with a decoder", "t5"},
                   {"whisper", "an encoder with a decoder", "t5"},
                   {"clip", "pictures and text side by side", "bert"},
                   {"mamba", "a state space of the first kind", "mamba2"},
                   {"falcon_mamba", "a state space of the first kind", "mamba2"},
                   {"jamba", "state spaces of the first kind between layers of attention", "bamba"},
                   {"zamba2", "state spaces and layers of attention that share weights", "bamba"},
                   {"clip_vision_model", "pictures in patches", "vit"},
                   {"siglip_vision_model", "pictures in patches", "vit"},
                   {"deit", "pictures in patches", "vit"}};

/* The supported family that has most in common with a file of an unknown one. */
static const char *nearest_family(const pl_model_reader *in) {
  if (pl_reader_has(in, "kv_lora_rank")) return "deepseek_v3";
  if (pl_reader_has(in, "moe_intermediate_size")) return "qwen3_moe";
  if (pl_reader_has(in, "num_experts") || pl_reader_has(in, "num_local_experts") ||
      pl_reader_has(in, "n_routed_experts"))
    return "mixtral";
  if (pl_reader_has(in, "n_embd")) return "gpt2";
  if (pl_reader_has(in, "layer_norm_eps") || pl_reader_has(in, "layer_norm_epsilon"))
    return pl_reader_has(in, "rope_theta") ? "gpt_neox" : "bert";
  return "llama";
}

static bool is_called(const pl_model_family *family, const char *type) {
  if (strcmp(family->type, type) == 0) return true;
  for (size_t i = 0; i < sizeof family->also / sizeof family->also[0] && family->also[i] != NULL; i++)
    if (strcmp(family->also[i], type) == 0) return true;
  return false;
}

static pl_code find_family(const pl_model_reader *in, const pl_model_family **found) {
  const char *type;
  PL_TRY(pl_node_string(in->document, in->root, "model_type", &type, in->error));
  for (size_t i = 0; i < pl_model_n_families; i++)
    if (is_called(&pl_model_families[i], type)) {
      *found = &pl_model_families[i];
      return PL_OK;
    }
  char text_bytes[PL_WORDS_BYTES];
  pl_word_list list = pl_word_list_begin(text_bytes, sizeof text_bytes);
  for (size_t i = 0; i < pl_model_n_families; i++)
    pl_word_list_add(&list, pl_model_families[i].type);
  for (size_t i = 0; i < pl_stack_n_families; i++)
    pl_word_list_add(&list, pl_stack_families[i].type);
  const char *nearest = nearest_family(in), *what = NULL;
  for (size_t i = 0; i < sizeof other_kinds / sizeof other_kinds[0]; i++)
    if (strcmp(other_kinds[i].type, type) == 0) {
      nearest = other_kinds[i].nearest;
      what = other_kinds[i].what;
    }
  return pl_document_fail(in->document, pl_node_get(in->root, "model_type"), in->error,
                          "model_type '%.64s'%s%s%s is not supported; the nearest that is seems to be %s, of %s, "
                          "transgan, cnn, mlp and dlrm",
                          type, what != NULL ? " (" : "", what != NULL ? what : "", what != NULL ? ")" : "", nearest,
                          pl_word_list_end(&list));
}

static pl_code read_architecture(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
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

static pl_code dimension(const pl_model_reader *in, const char *key, int64_t highest, int64_t otherwise,
                         int64_t *value) {
  key = pl_reader_dimension(in, key);
  *value = otherwise;
  return otherwise > 0 ? pl_reader_optional_integer(in, key, highest, value)
                       : pl_reader_integer(in, key, highest, value);
}

/* "ffn_hidden_size" is ours, for architectures that no class has, and Falcon's. */
static pl_code read_widths(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  int64_t layers;
  PL_TRY(dimension(in, family->layers, PL_MODEL_LAYERS_MAX, 0, &layers));
  model->n_layers = (int32_t)layers;
  PL_TRY(dimension(in, family->hidden, PL_MODEL_WIDTH_MAX, 0, &model->width.hidden));
  PL_TRY(dimension(in, family->heads, PL_MODEL_HEADS_MAX, family->default_heads, &model->attention.n_heads));
  PL_TRY(dimension(in, "vocab_size", PL_MODEL_VOCAB_MAX, family->default_vocab, &model->width.vocab));
  if (pl_reader_has(in, "ffn_hidden_size"))
    return pl_reader_integer(in, "ffn_hidden_size", PL_MODEL_WIDTH_MAX, &model->width.ffn_hidden);
  model->width.ffn_hidden = 4 * model->width.hidden;
  if (family->ffn == NULL) return PL_OK;
  int64_t otherwise = family->ffn_is_optional ? model->width.ffn_hidden : 0;
  return dimension(in, family->ffn, family->ffn_is_optional ? 4 * PL_MODEL_WIDTH_MAX : PL_MODEL_WIDTH_MAX, otherwise,
                   &model->width.ffn_hidden);
}

/* Latent attention: every head has keys and values of its own, of sizes of their own. */
static pl_code read_latent(const pl_model_reader *in, pl_model *model) {
  int64_t plain = 0;
  PL_TRY(pl_reader_integer(in, "kv_lora_rank", PL_MODEL_WIDTH_MAX, &model->attention.kv_rank));
  PL_TRY(pl_reader_integer(in, "qk_nope_head_dim", PL_MODEL_HEADS_MAX, &plain));
  PL_TRY(pl_reader_integer(in, "qk_rope_head_dim", PL_MODEL_HEADS_MAX, &model->attention.rope_size));
  PL_TRY(pl_reader_integer(in, "v_head_dim", PL_MODEL_HEADS_MAX, &model->attention.value_size));
  model->attention.head_size = plain + model->attention.rope_size;
  if (!pl_reader_mentions(in, "q_lora_rank")) model->attention.q_rank = 1536; /* null: queries are not compressed */
  PL_TRY(pl_reader_optional_integer(in, "q_lora_rank", PL_MODEL_WIDTH_MAX, &model->attention.q_rank));
  return pl_reader_refuse(in, "attention_bias", "biases of latent attention are not supported");
}

static pl_code read_head_size(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  model->attention.head_size = family->default_head_size;
  if (family->grouped && pl_reader_has(in, "head_dim"))
    return pl_reader_integer(in, "head_dim", PL_MODEL_HEADS_MAX, &model->attention.head_size);
  if (model->attention.head_size > 0) return PL_OK;
  if (model->width.hidden % model->attention.n_heads != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, family->hidden), in->error,
                            "'%s' = %lld is not a multiple of '%s' = %lld", family->hidden,
                            (long long)model->width.hidden, family->heads, (long long)model->attention.n_heads);
  model->attention.head_size = model->width.hidden / model->attention.n_heads;
  return PL_OK;
}

static pl_code read_heads(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  const char *kv_key = "num_key_value_heads";
  model->attention.n_kv_heads = model->attention.n_heads;
  if (family->latent) return read_latent(in, model);
  if (family->default_kv_heads > 0 && !pl_reader_mentions(in, kv_key))
    model->attention.n_kv_heads = family->default_kv_heads;
  if (family->grouped) PL_TRY(pl_reader_optional_integer(in, kv_key, PL_MODEL_HEADS_MAX, &model->attention.n_kv_heads));
  if (model->attention.n_heads % model->attention.n_kv_heads != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, pl_reader_has(in, kv_key) ? kv_key : family->heads),
                            in->error, "'%s' = %lld does not divide '%s' = %lld", kv_key,
                            (long long)model->attention.n_kv_heads, family->heads, (long long)model->attention.n_heads);
  PL_TRY(read_head_size(in, family, model));
  model->attention.value_size = model->attention.head_size;
  return PL_OK;
}

/* Rotary models have no table of positions: their limit is not needed. */
static pl_code read_positions(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  const char *key = pl_reader_dimension(in, family->positions);
  model->positions.learned_positions = family->learned_positions;
  model->positions.alibi = family->alibi;
  model->positions.position_offset = family->position_offset;
  model->positions.rotary = !family->learned_positions && !family->alibi;
  return family->learned_positions
             ? pl_reader_integer(in, key, pl_model_positions_max, &model->positions.max_positions)
             : pl_reader_optional_integer(in, key, pl_model_positions_max, &model->positions.max_positions);
}

static pl_code read_dropout(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  double otherwise = family->default_dropout;
  PL_TRY(pl_reader_probability(in, family->embedding_dropout, otherwise, &model->dropout.embedding_dropout));
  PL_TRY(pl_reader_probability(in, family->attention_dropout, family->default_attention_dropout,
                               &model->dropout.attention_dropout));
  return pl_reader_probability(in, family->hidden_dropout, otherwise, &model->dropout.hidden_dropout);
}

/* "name", else "_name_or_path" unless it is a path on somebody's disk, else the file's name without folder and ".json".
 */
static pl_code read_name(const pl_model_reader *in, pl_arena *arena, pl_model *model) {
  const char *path = pl_document_name(in->document), *slash = strrchr(path, '/'), *hub = "";
  char *base = pl_printable_strdup(arena, slash ? slash + 1 : path);
  if (base == NULL) return pl_fail_memory(in->error, "the model's name");
  size_t length = strlen(base);
  if (length > 5 && strcmp(base + length - 5, ".json") == 0) base[length - 5] = '\0';
  if (pl_reader_has(in, "name")) return pl_reader_text(in, "name", base, arena, &model->name);
  if (pl_reader_has(in, "_name_or_path")) PL_TRY(pl_reader_text(in, "_name_or_path", base, arena, &hub));
  model->name = hub[0] == '\0' || hub[0] == '.' || hub[0] == '/' ? base : hub;
  return PL_OK;
}

static void count_parameters(pl_model *model) {
  model->count.trained_parameters = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    model->count.trained_parameters += pl_model_block_parameters(model, block);
  model->count.parameters = model->count.trained_parameters;
  size_t length = strlen(model->architecture);
  bool has_head = strcmp(model->architecture, "GPT2LMHeadModel") == 0 || length < 5 ||
                  strcmp(model->architecture + length - 5, "Model") != 0;
  if (has_head) return;
  model->count.parameters -= pl_model_block_parameters(model, model->n_layers + 4);
  if (model->ends.pooler) model->count.parameters += (double)model->width.hidden * (double)(model->width.hidden + 1);
}

static bool is_of_type(const pl_model_reader *in, const char *wanted) {
  const char *type = NULL;
  return pl_reader_has(in, "model_type") &&
         pl_node_as_string(in->document, pl_node_get(in->root, "model_type"), &type, NULL) == PL_OK &&
         strcmp(type, wanted) == 0;
}

/* Of a model that also sees or hears: what its text_config says, which is a configuration of its own. */
static void take_language_model(pl_model_reader *in, pl_model *model) {
  const pl_node *text = pl_node_get(in->root, "text_config");
  if (!pl_node_is_mapping(text) || pl_reader_has(in, "hidden_size") || pl_node_get(text, "model_type") == NULL) return;
  if (!pl_reader_has(in, "tie_word_embeddings") || pl_node_get(text, "tie_word_embeddings") != NULL)
    in->outer = NULL;
  else
    in->outer = in->root;
  in->root = text;
  model->is_text_part = true;
}

static pl_code read_stack(const pl_model_reader *in, const pl_stack_family *family, pl_arena *arena, pl_model *model) {
  model->digest = pl_document_digest(in->document);
  PL_TRY(read_name(in, arena, model));
  return pl_model_stack_read(in, family, arena, model);
}

static pl_code read_document(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  pl_model_reader in = {document, pl_document_root(document), error, NULL};
  const pl_model_family *family = NULL;
  if (in.root == NULL || !pl_node_is_mapping(in.root))
    return pl_document_fail(document, in.root, error, "a model is a JSON object, as in Hugging Face's config.json");
  if (is_of_type(&in, "transgan")) return pl_model_transgan_read(document, arena, model, error);
  if (is_of_type(&in, "cnn")) return pl_model_cnn_read(document, arena, model, error);
  if (is_of_type(&in, "mlp")) return pl_model_mlp_read(document, arena, model, error);
  if (is_of_type(&in, "dlrm")) return pl_model_dlrm_read(document, arena, model, error);
  take_language_model(&in, model);
  const char *type = "";
  (void)pl_node_string(document, in.root, "model_type", &type, NULL);
  const pl_stack_family *stack = pl_stack_family_find(type);
  if (stack != NULL) return read_stack(&in, stack, arena, model);
  PL_TRY(find_family(&in, &family));
  PL_ASSERT(family != NULL);
  model->family = family->type;
  model->digest = pl_document_digest(document);
  PL_TRY(read_architecture(&in, family, model));
  PL_TRY(read_widths(&in, family, model));
  PL_TRY(read_heads(&in, family, model));
  PL_TRY(read_positions(&in, family, model));
  PL_TRY(read_dropout(&in, family, model));
  PL_TRY(pl_model_traits_read(&in, family, arena, model));
  PL_TRY(pl_model_numbers_read(document, in.root, family, model, error));
  bool is_gemma = strncmp(family->type, "gemma", 5) == 0 && pl_reader_has(&in, "hidden_activation");
  const char *activation = is_gemma ? "hidden_activation" : family->activation;
  PL_TRY(pl_reader_text(&in, activation, family->default_activation, arena, &model->mlp.activation));
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
  if (code == PL_OK && pl_model_has_blocks(model)) code = check_size(document, model, error);
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

/* Of a model that was read: it has blocks. */
static pl_code demand_blocks(const char *path, pl_model *model, pl_error *error) {
  if (pl_model_has_blocks(model)) return PL_OK;
  const char *family = model->family;
  *model = (pl_model){0};
  return pl_fail(
      error, PL_UNSUPPORTED,
      "%s: a model of model_type '%s' is its program, and has no blocks that are priced one by one, which this "
      "needs; 'paceline simulate', 'explain', 'sweep', 'search', 'verify', 'strategy', 'program' and 'model "
      "show' read it",
      path, family);
}

pl_code pl_model_load_json(const char *path, pl_arena *arena, pl_model *model, pl_error *error) {
  pl_document *document = NULL;
  const char *found;
  *model = (pl_model){0};
  PL_TRY(pl_data_choose(path, "models", ".json", arena, &found, error));
  if (found == NULL) return refuse_name(path, arena, error);
  PL_TRY(pl_document_load(found, &document, error));
  return finish(document, arena, model, error);
}

pl_code pl_model_load(const char *path, pl_arena *arena, pl_model *model, pl_error *error) {
  *model = (pl_model){0};
  if (pl_onnx_is_path(path))
    return pl_fail(
        error, PL_UNSUPPORTED,
        "%s: an ONNX file says a program, and no blocks that are priced one by one, which this needs; 'paceline "
        "simulate', 'verify', 'program' and 'model show' read it",
        path);
  PL_TRY(pl_model_load_json(path, arena, model, error));
  return demand_blocks(path, model, error);
}

pl_code pl_model_parse(const char *name, const char *text_bytes, size_t size, pl_arena *arena, pl_model *model,
                       pl_error *error) {
  pl_document *document = NULL;
  *model = (pl_model){0};
  PL_TRY(pl_document_parse(name, text_bytes, size, true, &document, error));
  PL_TRY(finish(document, arena, model, error));
  return demand_blocks(name, model, error);
}
