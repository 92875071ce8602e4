/* Reads a plain multi-layer perceptron: layers of one width, each a matrix product and a ReLU, without biases, under a
 * loss that is a mean over all outputs. DistIR (Santhanam et al. 2021, section 5) searches strategies for training
 * such.
 *
 *   {"model_type": "mlp", "name": "mlp-1b", "num_hidden_layers": 16, "hidden_size": 8192}
 *
 * A sample is one vector, a sequence of one token. Blocks as everywhere: two empty ones, the layers, three empty ones,
 * the loss; so strategies count and cut its layers as those of a transformer. Layers are split over the tensor group by
 * outputs and by inputs in turn, the first one by outputs: their number must be even.
 */
#include <stdlib.h>
#include <string.h>

#include "core/text/document.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

enum { PART_EMPTY = 0, PART_OUT, PART_IN, PART_LOSS, N_PARTS };

static pl_code read_sizes(const pl_document *document, const pl_node *root, pl_model *model, pl_error *error) {
  const int64_t width_max = INT64_C(1) << 22, layers_max = 1 << 16;
  const char *layers_key = "num_hidden_layers";
  int64_t layers;
  PL_TRY(pl_node_integer(document, root, layers_key, 2, layers_max, &layers, error));
  PL_TRY(pl_node_integer(document, root, "hidden_size", 1, width_max, &model->width.hidden, error));
  if (layers % 2 != 0)
    return pl_document_fail(document, pl_node_get(root, layers_key), error,
                            "'%s' = %lld: layers are split in pairs, their number must be even", layers_key,
                            (long long)layers);
  model->n_layers = (int32_t)layers;
  return PL_OK;
}

static void describe(pl_model *model) {
  model->family = "mlp";
  model->architecture = "MLP";
  model->mlp.activation = "relu";
  model->width.ffn_hidden = model->attention.n_heads = model->attention.n_kv_heads =
      model->width.hidden; /* what tmp must divide */
  model->attention.head_size = model->attention.value_size = 1;
  model->width.vocab = model->positions.max_positions = 1;
  model->moe.capacity_factor = 1;
  model->moe.expert_layer_step = 1;
}

static pl_code make_parts(pl_arena *arena, pl_model *model, pl_error *error) {
  static const pl_block_kind kinds[N_PARTS] = {[PART_EMPTY] = PL_BLOCK_IDENTITY,
                                               [PART_OUT] = PL_BLOCK_DENSE_OUT,
                                               [PART_IN] = PL_BLOCK_DENSE_IN,
                                               [PART_LOSS] = PL_BLOCK_MEAN};
  int32_t n_blocks = pl_model_n_blocks(model), first = PL_MODEL_BLOCKS_BEFORE_LAYERS;
  pl_model *layer = PL_TAKE(arena, pl_model, 1);
  pl_model_part *parts = PL_TAKE(arena, pl_model_part, N_PARTS);
  uint8_t *part_of = PL_TAKE(arena, uint8_t, n_blocks);
  if (layer == NULL || parts == NULL || part_of == NULL) return pl_fail_memory(error, "the parts of a model");
  *layer = *model;
  layer->n_layers = 1;
  for (int p = 0; p < N_PARTS; p++)
    parts[p] = (pl_model_part){
        .kind = kinds[p], .model = layer, .windows = 1, .rows = 1, .out_rows = 1, .out_width = model->width.hidden};
  for (int32_t block = 0; block < n_blocks; block++) {
    bool is_layer = block >= first && block < first + model->n_layers;
    part_of[block] = (uint8_t)(is_layer ? PART_OUT + (block - first) % 2 : PART_EMPTY);
  }
  part_of[n_blocks - 1] = PART_LOSS;
  parts[PART_OUT].first_block = first;
  parts[PART_IN].first_block = first + 1;
  parts[PART_LOSS].first_block = n_blocks - 1;
  model->unlike.parts = parts;
  model->unlike.part_of = part_of;
  model->unlike.n_parts = N_PARTS;
  return PL_OK;
}

pl_code pl_model_mlp_read(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  const pl_node *root = pl_document_root(document);
  model->digest = pl_document_digest(document);
  PL_TRY(read_sizes(document, root, model, error));
  PL_TRY(pl_model_read_name(document, arena, model, error));
  describe(model);
  PL_TRY(make_parts(arena, model, error));
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    model->count.trained_parameters += pl_model_block_parameters(model, block);
  model->count.parameters = model->count.trained_parameters;
  return PL_OK;
}
