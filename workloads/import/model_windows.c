/* Sliding windows of attention in Hugging Face configurations: how wide, and in which layers. */
#include <string.h>

#include "workloads/import/model_families.h"

static bool sees_all(const pl_model_reader *in, const pl_node *list, size_t layer) {
  const char *type = NULL;
  return pl_node_as_string(in->document, pl_node_at(list, layer), &type, in->error) == PL_OK &&
         strcmp(type, "full_attention") == 0;
}

/* "layer_types": what each layer is. A period of n is n - 1 layers with a window and one without. */
static pl_code read_types(const pl_model_reader *in, const pl_node *list, pl_model *model) {
  size_t n = pl_node_count(list), period = 0;
  if (n != (size_t)model->n_layers)
    return pl_document_fail(in->document, list, in->error, "'layer_types' has %zu entries for %d layers", n,
                            model->n_layers);
  while (period < n && !sees_all(in, list, period))
    period++;
  if (period == n) { /* all have it */
    model->attention.window_period = 0;
    return PL_OK;
  }
  period++;
  if (period == 1) model->attention.sliding_window = 0;
  for (size_t layer = 0; layer < n; layer++)
    if (sees_all(in, list, layer) != ((layer + 1) % period == 0))
      return pl_document_fail(in->document, pl_node_at(list, layer), in->error,
                              "'layer_types': layers with and without a window in an order that is not periodic, here "
                              "at layer %zu, are not supported",
                              layer);
  model->attention.window_period = (int32_t)period;
  return PL_OK;
}

static pl_code read_period(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  int64_t period = family->window_period;
  const pl_node *types = pl_node_get(in->root, "layer_types");
  if (family->window_period == 0 || model->attention.sliding_window == 0) return PL_OK;
  PL_TRY(pl_reader_optional_integer(in, "sliding_window_pattern", PL_MODEL_LAYERS_MAX, &period));
  model->attention.window_period = (int32_t)period;
  if (period == 1) model->attention.sliding_window = 0; /* every layer sees all */
  return types != NULL && pl_node_is_sequence(types) ? read_types(in, types, model) : PL_OK;
}

/* Mistral and Mixtral: in every layer. Gemma, Cohere and gpt-oss: in all but every so many-th. Qwen: from some layer
 * on, if asked for. */
pl_code pl_model_windows_read(const pl_model_reader *in, const pl_model_family *family, pl_model *model) {
  bool is_qwen = strncmp(family->type, "qwen", 4) == 0;
  if (is_qwen) return pl_reader_refuse(in, "use_sliding_window", "windows in some layers only are not supported");
  if (family->default_window > 0 && !pl_reader_mentions(in, "sliding_window"))
    model->attention.sliding_window = family->default_window;
  if (family->reads_window)
    PL_TRY(pl_reader_optional_integer(in, "sliding_window", pl_model_positions_max, &model->attention.sliding_window));
  return read_period(in, family, model);
}
