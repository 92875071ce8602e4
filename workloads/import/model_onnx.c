/* ONNX files as models: what a job's checks ask of one. */
#include "workloads/import/model_file.h"
#include "workloads/onnx/onnx_file.h"
#include "workloads/onnx/onnx_program.h"

static pl_code read_onnx(const char *path, pl_arena *arena, pl_model *model, pl_error *error) {
  pl_onnx_model *onnx = PL_TAKE(arena, pl_onnx_model, 1);
  if (onnx == NULL) return pl_fail_memory(error, "a model");
  PL_TRY(pl_onnx_model_load(path, arena, onnx, error));
  *model = (pl_model){.name = onnx->name,
                      .family = "onnx",
                      .architecture = "ONNX graph",
                      .mlp.activation = "",
                      .digest = onnx->digest,
                      .n_layers = onnx->n_layers,
                      .attention.head_size = 1,
                      .attention.value_size = 1,
                      .moe.capacity_factor = 1,
                      .moe.expert_layer_step = 1,
                      .ends.tied_embeddings = onnx->tied,
                      .positions.learned_positions = onnx->rows > 0 && onnx->seq == 0,
                      .positions.max_positions = onnx->seq > 0    ? onnx->seq
                                                 : onnx->rows > 0 ? onnx->rows
                                                                  : !onnx->has_seq,
                      .program.onnx = onnx,
                      .of_one_sample = onnx->one_sample && onnx->batch == 0,
                      .count.parameters = onnx->parameters,
                      .count.trained_parameters = onnx->parameters};
  return PL_OK;
}

pl_code pl_model_load_any(const char *path, pl_arena *arena, pl_model *model, pl_error *error) {
  *model = (pl_model){0};
  return pl_onnx_is_path(path) ? read_onnx(path, arena, model, error) : pl_model_load_json(path, arena, model, error);
}

bool pl_model_is_program_alone(const char *path) {
  pl_model model;
  pl_arena arena;
  if (pl_onnx_is_path(path)) return true;
  pl_arena_init(&arena, 0);
  bool is = pl_model_load_json(path, &arena, &model, NULL) == PL_OK && !pl_model_has_blocks(&model);
  pl_arena_release(&arena);
  return is;
}
