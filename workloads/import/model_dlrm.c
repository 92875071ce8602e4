/* Reads a recommendation model (workloads/ir/dlrm.h).
 *
 *   {"model_type": "dlrm", "name": "dlrm-516m", "bottom_mlp": [128, 512, 512, 512, 64], "top_mlp": [1024, 1024, 1],
 *    "embedding_size": 64, "embedding_rows": [1000000, 1000000], "lookups": 100, "interaction": "dot"}
 *
 * Keys say what the options of facebookresearch/dlrm say: arch-mlp-bot (its first width is that of the dense features),
 * arch-mlp-top (without what the interaction gives), arch-sparse-feature-size, arch-embedding-size,
 * num-indices-per-lookup (1), arch-interaction-op (dot or cat), arch-interaction-itself (false). A sample is a user
 * and an item: its sequence has one token.
 */
#include <string.h>

#include "core/text/document.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/dlrm.h"

typedef struct reader {
  const pl_document *document;
  const pl_node *root;
  pl_dlrm *dlrm;
  pl_error *error;
} reader;

static pl_code read_number(const reader *in, const char *key, const pl_node *node, int64_t most, int64_t *number) {
  double value;
  PL_TRY(pl_node_as_number(in->document, node, &value, in->error));
  if (!(value >= 1 && value <= (double)most) || value != (double)(int64_t)value)
    return pl_document_fail(in->document, node, in->error, "'%s': %g is not from 1 to %lld", key, value,
                            (long long)most);
  *number = (int64_t)value;
  return PL_OK;
}

static pl_code find_list(const reader *in, const char *key, const pl_node **list) {
  *list = pl_node_get(in->root, key);
  if (*list != NULL && pl_node_is_sequence(*list) && pl_node_count(*list) > 0) return PL_OK;
  return pl_document_fail(in->document, *list != NULL ? *list : in->root, in->error,
                          "'%s' must be a list of numbers, like [512, 256, 64]", key);
}

/* `first`: widths that stand in front of the layers' own. */
static pl_code read_layers(const reader *in, const char *key, int32_t first, int64_t *widths, int32_t *n_layers) {
  const pl_node *list;
  PL_TRY(find_list(in, key, &list));
  size_t n = pl_node_count(list);
  if (n + (size_t)first > PL_DLRM_LAYERS_MAX + 1 || n + (size_t)first < 2)
    return pl_document_fail(in->document, list, in->error, "'%s': %zu widths; from %d to %d can be read", key, n,
                            2 - first, PL_DLRM_LAYERS_MAX + 1 - first);
  for (size_t i = 0; i < n; i++)
    PL_TRY(read_number(in, key, pl_node_at(list, i), 1 << 20, &widths[(size_t)first + i]));
  *n_layers = (int32_t)n + first - 1;
  return PL_OK;
}

static pl_code read_tables(const reader *in) {
  pl_dlrm *dlrm = in->dlrm;
  const char *key = "embedding_rows";
  const pl_node *list;
  PL_TRY(find_list(in, key, &list));
  if (pl_node_count(list) > 1 << 12)
    return pl_document_fail(in->document, list, in->error, "'%s': more than %d tables", key, 1 << 12);
  for (size_t i = 0; i < pl_node_count(list); i++) {
    int64_t rows = 0;
    PL_TRY(read_number(in, key, pl_node_at(list, i), INT64_C(1) << 31, &rows));
    pl_dlrm_group *last = dlrm->n_groups > 0 ? &dlrm->groups[dlrm->n_groups - 1] : NULL;
    if (last != NULL && last->rows == rows) {
      last->tables++;
      continue;
    }
    if (dlrm->n_groups == PL_DLRM_GROUPS_MAX)
      return pl_document_fail(
          in->document, pl_node_at(list, i), in->error,
          "'%s': rows change more than %d times; let tables of as many rows stand beside each other", key,
          PL_DLRM_GROUPS_MAX - 1);
    dlrm->groups[dlrm->n_groups++] = (pl_dlrm_group){.tables = 1, .rows = rows};
  }
  return PL_OK;
}

static pl_code read_interaction(const reader *in) {
  const char *key = "interaction", *kind = "dot";
  if (pl_node_get(in->root, key) != NULL) PL_TRY(pl_node_string(in->document, in->root, key, &kind, in->error));
  in->dlrm->concatenates = strcmp(kind, "cat") == 0;
  if (!in->dlrm->concatenates && strcmp(kind, "dot") != 0)
    return pl_document_fail(in->document, pl_node_get(in->root, key), in->error,
                            "'%s' is '%.64s'; supported are dot and cat", key, kind);
  if (pl_node_get(in->root, "interaction_itself") == NULL) return PL_OK;
  return pl_node_boolean(in->document, in->root, "interaction_itself", &in->dlrm->itself, in->error);
}

static pl_code read_dlrm(const reader *in) {
  pl_dlrm *dlrm = in->dlrm;
  PL_TRY(pl_node_integer(in->document, in->root, "embedding_size", 1, 1 << 20, &dlrm->width, in->error));
  dlrm->lookups = 1;
  if (pl_node_get(in->root, "lookups") != NULL)
    PL_TRY(pl_node_integer(in->document, in->root, "lookups", 1, 1 << 20, &dlrm->lookups, in->error));
  PL_TRY(read_layers(in, "bottom_mlp", 0, dlrm->bottom, &dlrm->n_bottom));
  PL_TRY(read_tables(in));
  PL_TRY(read_interaction(in));
  PL_TRY(read_layers(in, "top_mlp", 1, dlrm->top, &dlrm->n_top));
  dlrm->top[0] = pl_dlrm_interaction_width(dlrm);
  if (dlrm->bottom[dlrm->n_bottom] != dlrm->width)
    return pl_document_fail(in->document, pl_node_get(in->root, "bottom_mlp"), in->error,
                            "'bottom_mlp' ends with %lld, and embeddings are %lld wide: vectors that meet are of one "
                            "width",
                            (long long)dlrm->bottom[dlrm->n_bottom], (long long)dlrm->width);
  if (dlrm->top[dlrm->n_top] == 1) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, "top_mlp"), in->error,
                          "'top_mlp' ends with %lld; what is predicted is one number: 1",
                          (long long)dlrm->top[dlrm->n_top]);
}

pl_code pl_model_dlrm_read(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  pl_dlrm *dlrm = PL_TAKE(arena, pl_dlrm, 1);
  if (dlrm == NULL) return pl_fail_memory(error, "a model");
  const reader in = {.document = document, .root = pl_document_root(document), .dlrm = dlrm, .error = error};
  PL_TRY(read_dlrm(&in));
  PL_TRY(pl_model_read_name(document, arena, model, error));
  model->family = "dlrm";
  model->architecture = "DLRM";
  model->mlp.activation = "relu";
  model->digest = pl_document_digest(document);
  model->attention.head_size = model->attention.value_size = 1;
  model->positions.max_positions = 1;
  model->moe.capacity_factor = 1;
  model->moe.expert_layer_step = 1;
  model->program.dlrm = dlrm;
  model->count.parameters = model->count.trained_parameters = pl_dlrm_parameters(dlrm);
  return PL_OK;
}
