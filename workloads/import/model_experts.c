/* Mixtures of experts in Hugging Face configurations: how many there are, how wide, in which layers. */
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/system/text_file.h"
#include "workloads/import/model_families.h"

static pl_code read_capacity(const pl_model_reader *in, pl_model *model) {
  const char *key = "expert_capacity_factor";
  model->moe.capacity_factor = 1;
  if (!pl_reader_has(in, key)) return PL_OK;
  PL_TRY(pl_node_number(in->document, in->root, key, &model->moe.capacity_factor, in->error));
  if (model->moe.capacity_factor > 0 && model->moe.capacity_factor <= 1024) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, key), in->error,
                          "'%s' is %g: a factor above 0, at most 1024, is needed", key, model->moe.capacity_factor);
}

static pl_code read_loads(const pl_model_reader *in, const pl_node *list, pl_arena *arena, pl_model *model) {
  double sum = 0;
  double *loads = PL_TAKE(arena, double, model->moe.n_experts);
  if (loads == NULL) return pl_fail_memory(in->error, "the loads of experts");
  if (pl_node_count(list) != (size_t)model->moe.n_experts)
    return pl_document_fail(in->document, list, in->error, "'expert_load' has %zu numbers, and the model %lld experts",
                            pl_node_count(list), (long long)model->moe.n_experts);
  for (int64_t i = 0; i < model->moe.n_experts; i++) {
    const pl_node *at = pl_node_at(list, (size_t)i);
    PL_TRY(pl_node_as_number(in->document, at, &loads[i], in->error));
    if (!(loads[i] >= 0 && loads[i] <= 1e15))
      return pl_document_fail(in->document, at, in->error, "'expert_load': %g is no number of tokens", loads[i]);
    sum += loads[i];
  }
  if (!(sum > 0)) return pl_document_fail(in->document, list, in->error, "'expert_load': no expert has any tokens");
  model->moe.expert_loads = loads;
  return PL_OK;
}

/* Numbers of a text, which ends with NUL, at most `most` of them: between them blanks, commas and line ends; what
 * stands behind # is passed over. Returns how many; *wrong: where something else stands, else NULL. */
static size_t numbers_of(const char *text, double *numbers, size_t most, const char **wrong) {
  size_t n = 0;
  *wrong = NULL;
  for (const char *at = text;;) {
    at += strspn(at, " \t\r\n,");
    if (*at == '#') {
      at += strcspn(at, "\n");
      continue;
    }
    if (*at == '\0') return n;
    char *end;
    double number = strtod(at, &end);
    bool ends = end > at && (*end == '\0' || strchr(" \t\r\n,#", *end) != NULL);
    if (!ends || !(number >= 0 && number <= 1e15)) {
      *wrong = at;
      return n;
    }
    if (n < most) numbers[n] = number;
    n++;
    at = end;
  }
}

static pl_code fail_load_at(const char *path, const char *text, const char *at, pl_error *error) {
  int line = 1, column = 1;
  for (const char *c = text; c < at; c++) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: '%.*s' is no number of tokens", path, line, column,
                 (int)strcspn(at, " \t\r\n,#"), at);
}

/* "loads.txt", beside the model's file: as many numbers as there are experts; with several times as many, those of one
 * layer behind those of another, each expert has the sum of its own. */
static pl_code take_loads(const pl_model_reader *in, const pl_node *at, const char *path, const char *text,
                          pl_arena *arena, pl_model *model) {
  size_t n_experts = (size_t)model->moe.n_experts, most = n_experts * (size_t)model->n_layers;
  double *numbers = PL_TAKE(arena, double, most), *loads = PL_TAKE(arena, double, n_experts), sum = 0;
  const char *wrong;
  if (numbers == NULL || loads == NULL) return pl_fail_memory(in->error, "the loads of experts");
  size_t n = numbers_of(text, numbers, most, &wrong);
  if (wrong != NULL) return fail_load_at(path, text, wrong, in->error);
  if (n == 0 || n > most || n % n_experts != 0)
    return pl_document_fail(in->document, at, in->error,
                            "'expert_load': %s has %zu numbers, and the model %zu experts in at most %d layers", path,
                            n, n_experts, model->n_layers);
  for (size_t i = 0; i < n; i++) {
    loads[i % n_experts] += numbers[i];
    sum += numbers[i];
  }
  if (!(sum > 0))
    return pl_document_fail(in->document, at, in->error, "'expert_load': in %s no expert has any tokens", path);
  model->moe.expert_loads = loads;
  model->digest = pl_hash_bytes(text, strlen(text), model->digest); /* the model is both files */
  return PL_OK;
}

static pl_code read_load_file(const pl_model_reader *in, const pl_node *at, const char *name, pl_arena *arena,
                              pl_model *model) {
  enum { MOST_BYTES = 1 << 26 };
  const char *of = pl_document_name(in->document), *slash = strrchr(of, '/');
  int folder = name[0] == '/' || slash == NULL ? 0 : (int)(slash - of) + 1;
  const char *path = pl_arena_printf(arena, "%.*s%s", folder, of, name);
  char *text;
  size_t size;
  pl_error reason = PL_ERROR_INIT;
  if (path == NULL) return pl_fail_memory(in->error, "the loads of experts");
  pl_code code = pl_text_file_load(path, MOST_BYTES, &text, &size, &reason);
  if (code != PL_OK) return pl_document_fail(in->document, at, in->error, "'expert_load': %s", reason.message);
  code = pl_text_check(path, text, size, in->error);
  if (code == PL_OK) code = take_loads(in, at, path, text, arena, model);
  free(text);
  return code;
}

/* A factor, a number of tokens for each expert, or a file of these. */
static pl_code read_load(const pl_model_reader *in, pl_arena *arena, pl_model *model) {
  const char *key = "expert_load";
  const pl_node *at = pl_node_get(in->root, key);
  if (at == NULL || !pl_reader_has(in, key)) return PL_OK;
  if (pl_node_is_sequence(at)) return read_loads(in, at, arena, model);
  double number;
  const char *name;
  if (pl_node_as_number(in->document, at, &number, NULL) != PL_OK &&
      pl_node_as_string(in->document, at, &name, NULL) == PL_OK)
    return read_load_file(in, at, name, arena, model);
  PL_TRY(pl_node_number(in->document, in->root, key, &model->moe.expert_load, in->error));
  if (model->moe.expert_load >= 1 && model->moe.expert_load <= 1024) return PL_OK;
  return pl_document_fail(
      in->document, at, in->error,
      "'%s' is %g: tokens of the fullest device over the mean, from 1 to 1024, or a list of as many "
      "numbers as there are experts, or the name of a file of them",
      key, model->moe.expert_load);
}

/* Which layers hold experts. */
static pl_code read_expert_layers(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  const pl_node *dense = pl_node_get(in->root, "mlp_only_layers");
  int64_t first = 0, step = 1, phase = 0;
  if (family->latent || family->dense_first) {
    if (pl_reader_has(in, "first_k_dense_replace"))
      PL_TRY(
          pl_node_integer(in->document, in->root, "first_k_dense_replace", 0, PL_MODEL_LAYERS_MAX, &first, in->error));
    PL_TRY(pl_reader_optional_integer(in, "moe_layer_freq", PL_MODEL_LAYERS_MAX, &step));
    PL_TRY(pl_reader_optional_integer(in, "moe_layer_phase", step - 1, &phase)); /* a key of our own */
  } else {
    PL_TRY(pl_reader_optional_integer(in, "decoder_sparse_step", PL_MODEL_LAYERS_MAX, &step));
    phase = step - 1;
    if (dense != NULL && pl_node_is_sequence(dense) && pl_node_count(dense) > 0)
      return pl_document_fail(in->document, dense, in->error,
                              "'mlp_only_layers' must be empty: dense layers in between "
                              "are not supported");
  }
  model->moe.first_expert_layer = (int32_t)first;
  model->moe.expert_layer_step = (int32_t)step;
  model->moe.expert_layer_phase = (int32_t)phase;
  return PL_OK;
}

/* Llama 4: every so many layers, or a list that says the same. */
static pl_code read_interleaved(const pl_model_reader *in, pl_model *model) {
  int64_t step = 1;
  PL_TRY(pl_reader_optional_integer(in, "interleave_moe_layer_step", PL_MODEL_LAYERS_MAX, &step));
  const pl_node *list = pl_node_get(in->root, "moe_layers");
  bool same = list == NULL || pl_node_count(list) == (size_t)(model->n_layers / step);
  for (size_t i = 0; same && i < pl_node_count(list); i++) {
    double layer;
    PL_TRY(pl_node_as_number(in->document, pl_node_at(list, i), &layer, in->error));
    same = layer == (double)(step * ((int64_t)i + 1) - 1);
  }
  if (!same)
    return pl_document_fail(in->document, list, in->error,
                            "'moe_layers' is not every layer that 'interleave_moe_layer_step' names: other orders are "
                            "not supported");
  model->moe.first_expert_layer = 0;
  model->moe.expert_layer_step = (int32_t)step;
  model->moe.expert_layer_phase = (int32_t)step - 1;
  return PL_OK;
}

/* Groups of neighbouring experts of which a token chooses some first; a choice of all of them limits nothing. */
static pl_code read_groups(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  int64_t n_groups = 1, chosen = 1, n_experts = model->moe.n_experts, k = model->moe.topk;
  PL_TRY(pl_reader_optional_integer(in, "n_group", n_experts, &n_groups));
  PL_TRY(pl_reader_optional_integer(in, "topk_group", n_experts, &chosen));
  const pl_node *at = pl_node_get(in->root, pl_reader_has(in, "topk_group") ? "topk_group" : "n_group");
  if (n_experts % n_groups != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, "n_group"), in->error,
                            "'n_group' = %lld does not divide the %lld experts", (long long)n_groups,
                            (long long)n_experts);
  if (chosen > n_groups)
    return pl_document_fail(in->document, at, in->error, "'topk_group' = %lld exceeds 'n_group' = %lld",
                            (long long)chosen, (long long)n_groups);
  if (chosen * (n_experts / n_groups) < k)
    return pl_document_fail(
        in->document, at, in->error,
        "'topk_group' = %lld of %lld groups of %lld experts hold fewer than the %lld experts that a "
        "token goes to",
        (long long)chosen, (long long)n_groups, (long long)(n_experts / n_groups), (long long)k);
  if (chosen == n_groups) return PL_OK;
  model->moe.n_groups = n_groups;
  model->moe.topk_groups = chosen;
  model->moe.group_best = strcmp(family->type, "deepseek_v2") == 0 || n_experts / n_groups == 1 ? 1 : 2;
  return PL_OK;
}

pl_code pl_model_experts_read(const pl_model_reader *in, const pl_model_family *family, pl_arena *arena,
                              pl_model *model) {
  const int64_t experts_max = 1 << 16;
  int64_t shared = 0;
  model->moe.expert_layer_step = 1;
  if (family->latent && pl_reader_mentions(in, family->experts) && !pl_reader_has(in, family->experts))
    return PL_OK; /* null: all layers are dense */
  PL_TRY(pl_reader_integer(in, family->experts, experts_max, &model->moe.n_experts));
  PL_TRY(pl_reader_integer(in, "num_experts_per_tok", experts_max, &model->moe.topk));
  if (model->moe.topk > model->moe.n_experts)
    return pl_document_fail(in->document, pl_node_get(in->root, "num_experts_per_tok"), in->error,
                            "'num_experts_per_tok' = %lld exceeds '%s' = %lld", (long long)model->moe.topk,
                            family->experts, (long long)model->moe.n_experts);
  model->moe.expert_ffn = model->width.ffn_hidden;
  if (family->expert_ffn != NULL)
    PL_TRY(pl_reader_integer(in, family->expert_ffn, PL_MODEL_WIDTH_MAX, &model->moe.expert_ffn));
  if (pl_reader_has(in, "n_shared_experts"))
    PL_TRY(pl_node_integer(in->document, in->root, "n_shared_experts", 0, experts_max, &shared, in->error));
  model->moe.shared_ffn = (family->shares_expert ? 1 : shared) * model->moe.expert_ffn;
  model->moe.shared_gate = strcmp(family->type, "qwen2_moe") == 0;
  if (model->moe.shared_gate)
    PL_TRY(pl_reader_integer(in, "shared_expert_intermediate_size", PL_MODEL_WIDTH_MAX, &model->moe.shared_ffn));
  PL_TRY(read_groups(in, family, model));
  PL_TRY(read_capacity(in, model));
  PL_TRY(read_load(in, arena, model));
  return family->shares_expert ? read_interleaved(in, model) : read_expert_layers(in, family, model);
}
