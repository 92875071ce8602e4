/* Weights of a file (workloads/onnx/onnx_program.h), where somebody asks for their numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/onnx/onnx_data.h"
#include "workloads/onnx/onnx_program.h"

struct pl_onnx_weights {
  pl_arena arena;
  pl_onnx_graph graph;
  pl_outlined outlined;
};

/* The tensor, or what it is a copy of. */
static const pl_onnx_tensor *tensor_of(const pl_onnx_graph *graph, const char *source) {
  for (int32_t v = 0; v < graph->n_values; v++) {
    if (strcmp(graph->values[v].name, source) != 0) continue;
    if (graph->values[v].initializer != NULL) return graph->values[v].initializer;
    const pl_onnx_node *node = graph->values[v].node != PL_ONNX_NONE ? &graph->nodes[graph->values[v].node] : NULL;
    bool copy =
        node != NULL && strcmp(node->op, "Identity") == 0 && node->n_inputs == 1 && node->inputs[0] != PL_ONNX_NONE;
    return copy ? graph->values[node->inputs[0]].initializer : NULL;
  }
  return NULL;
}

/* Paths do not depend on the job: the smallest one that the file allows. */
static pl_code find_paths(pl_onnx_weights *own, const pl_onnx_model *model, pl_error *error) {
  int64_t batch = model->batch > 0 ? model->batch : 2;
  const pl_onnx_job job = {
      .gbs = batch, .batch = batch, .seq = model->seq > 0 ? model->seq : 8, .n_microbatches = 1, .element = PL_IR_F32};
  pl_ir_module module;
  PL_TRY(pl_onnx_program_build(model, &job, &own->arena, &module, &own->outlined, error));
  return pl_onnx_graph_open(model->path, &own->arena, &own->graph, error);
}

pl_code pl_onnx_weights_open(const pl_onnx_model *model, pl_onnx_weights **weights, pl_error *error) {
  pl_onnx_weights *own = calloc(1, sizeof(*own));
  *weights = own;
  if (own == NULL) return pl_fail_memory(error, "weights");
  pl_arena_init(&own->arena, 0);
  pl_code code = find_paths(own, model, error);
  if (code == PL_OK) return PL_OK;
  pl_onnx_weights_destroy(own);
  *weights = NULL;
  return code;
}

void pl_onnx_weights_destroy(pl_onnx_weights *weights) {
  if (weights == NULL) return;
  pl_onnx_graph_close(&weights->graph);
  pl_arena_release(&weights->arena);
  free(weights);
}

const char *pl_onnx_weights_source(const pl_onnx_weights *weights, const char *path) {
  for (int32_t i = 0; i < weights->outlined.n_weights; i++)
    if (strcmp(weights->outlined.weights[i].path, path) == 0) return weights->outlined.weights[i].source;
  return NULL;
}

pl_code pl_onnx_weights_read(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error) {
  const pl_onnx_weights *own = context;
  const char *source = pl_onnx_weights_source(own, path);
  const pl_onnx_tensor *tensor = source != NULL ? tensor_of(&own->graph, source) : NULL;
  *given = tensor != NULL;
  if (tensor == NULL) return PL_OK;
  if (tensor->n != n)
    return pl_fail(error, PL_BAD_INPUT, "%s: weight '%s' has %" PRId64 " elements, not %" PRId64, own->graph.path,
                   source, tensor->n, n);
  return pl_onnx_tensor_read(&own->graph, tensor, 0, n, whole, error);
}
