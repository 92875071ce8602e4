/* Models as users have them: files in, pl_model out. */
#ifndef PL_WORKLOADS_MODEL_FILE_H
#define PL_WORKLOADS_MODEL_FILE_H

#include "workloads/ir/model.h"

/* Reads a config.json, a file or one that comes with Paceline by its name ("gpt3-175b"). Strings in `arena`. Errors
 * name file and line: a needed key that is missing, a wrong type, an unknown model_type (the message lists those
 * supported), values that do not divide. Keys that are not used are ignored. Models without blocks are refused: ONNX
 * files and recommendation models (dlrm). */
pl_code pl_model_load(const char *path, pl_arena *arena, pl_model *model, pl_error *error);
/* The same, with ONNX files (by their ending, .onnx) and recommendation models, for those who need no more of a model
 * than its program. The blocks of an ONNX model are its @embedding, layers, @head and loss. */
pl_code pl_model_load_any(const char *path, pl_arena *arena, pl_model *model, pl_error *error);
/* Whether the model of this file is its program alone: an ONNX file, a recommendation model. False also of what cannot
 * be read. */
bool pl_model_is_program_alone(const char *path);
/* The names that pl_model_load takes beside paths: of the models that come with Paceline, sorted; NULL ends them. NULL:
 * no memory. */
const char *const *pl_model_names(pl_arena *arena);
/* The same from memory; `name` stands for the path. */
pl_code pl_model_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_model *model,
                       pl_error *error);

/* model_huggingface.c: a file or name as pl_model_load takes it, models without blocks as well. */
pl_code pl_model_load_json(const char *path, pl_arena *arena, pl_model *model, pl_error *error);
/* model_transgan.c: reads a model of model_type "transgan"; *model is zeroed but for family and digest. */
struct pl_document;
pl_code pl_model_transgan_read(const struct pl_document *document, pl_arena *arena, pl_model *model, pl_error *error);
/* model_mlp.c: likewise of model_type "mlp". */
pl_code pl_model_mlp_read(const struct pl_document *document, pl_arena *arena, pl_model *model, pl_error *error);
/* model_types.c: the keys about types and stretched positions, which every model may have. */
pl_code pl_model_types_read(const struct pl_document *document, pl_arena *arena, pl_model *model, pl_error *error);
/* model_name.c: what these three call the model, "name" or else the file without its folder. */
pl_code pl_model_read_name(const struct pl_document *document, pl_arena *arena, pl_model *model, pl_error *error);
/* model_dlrm.c: likewise of model_type "dlrm". */
pl_code pl_model_dlrm_read(const struct pl_document *document, pl_arena *arena, pl_model *model, pl_error *error);
/* model_cnn.c: likewise of model_type "cnn". */
pl_code pl_model_cnn_read(const struct pl_document *document, pl_arena *arena, pl_model *model, pl_error *error);

#endif
