/* What a model's file says of the types that its numbers are in, and of how long its sequences were: keys of Hugging
 * Face's PretrainedConfig that are no part of the network (see workloads/ir/model.h). A job takes them as its defaults
 * (workloads/strategy/job_defaults.h). */
#include <string.h>

#include "core/text/document.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

static const int64_t positions_max = INT64_C(1) << 31;

static pl_code take_string(const pl_document *document, const pl_node *from, const char *key, pl_arena *arena,
                           const char **text, pl_error *error) {
  const char *found;
  PL_TRY(pl_node_string(document, from, key, &found, error));
  for (const char *c = found; *c != '\0'; c++)
    if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
      return pl_document_fail(document, pl_node_get(from, key), error, "'%s' must be a word of plain characters", key);
  *text = pl_arena_strdup(arena, found);
  return *text != NULL ? PL_OK : pl_fail_memory(error, "the model's strings");
}

/* "dtype" since transformers 4.56, "torch_dtype" before; "auto" is what a file without them means. */
static pl_code read_type(const pl_document *document, const pl_node *root, pl_arena *arena, pl_model *model,
                         pl_error *error) {
  static const char *const keys[] = {"dtype", "torch_dtype"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const char *name = "";
    if (pl_node_get(root, keys[i]) == NULL) continue;
    PL_TRY(take_string(document, root, keys[i], arena, &name, error));
    if (strcmp(name, "auto") == 0) continue;
    if (model->types.dtype_name != NULL && strcmp(model->types.dtype_name, name) != 0)
      return pl_document_fail(document, pl_node_get(root, keys[i]), error,
                              "'%s' is '%s', but '%s' is '%s': leave one out", keys[i], name, model->types.dtype_key,
                              model->types.dtype_name);
    if (model->types.dtype_name != NULL) continue;
    model->types.dtype_key = keys[i];
    model->types.dtype_name = name;
  }
  return PL_OK;
}

static pl_code read_quantization(const pl_document *document, const pl_node *root, pl_arena *arena, pl_model *model,
                                 pl_error *error) {
  const pl_node *config = pl_node_get(root, "quantization_config");
  if (config == NULL) return PL_OK;
  if (!pl_node_is_mapping(config))
    return pl_document_fail(document, config, error, "'quantization_config' must be an object");
  model->types.quantization = "unnamed";
  if (pl_node_get(config, "quant_method") == NULL) return PL_OK;
  return take_string(document, config, "quant_method", arena, &model->types.quantization, error);
}

/* Positions before they were stretched: beside max_position_embeddings (Phi-3), or among the parameters of the rotary
 * encoding, which are called rope_parameters since transformers 5. */
static pl_code read_original_positions(const pl_document *document, const pl_node *root, pl_model *model,
                                       pl_error *error) {
  static const char *const groups[] = {"rope_scaling", "rope_parameters"};
  const char *key = "original_max_position_embeddings";
  const pl_node *from = pl_node_get(root, key) != NULL ? root : NULL;
  for (size_t i = 0; from == NULL && i < sizeof groups / sizeof *groups; i++) {
    const pl_node *group = pl_node_get(root, groups[i]);
    if (group != NULL && pl_node_is_mapping(group) && pl_node_get(group, key) != NULL) from = group;
  }
  if (from == NULL) return PL_OK;
  return pl_node_integer(document, from, key, 1, positions_max, &model->positions.original_positions, error);
}

pl_code pl_model_types_read(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  const pl_node *root = pl_document_root(document), *text = pl_node_get(root, "text_config");
  PL_TRY(read_type(document, root, arena, model, error));
  PL_TRY(read_quantization(document, root, arena, model, error));
  if (!model->is_text_part) return read_original_positions(document, root, model, error);
  if (model->types.dtype_name == NULL) PL_TRY(read_type(document, text, arena, model, error));
  return read_original_positions(document, text, model, error);
}
