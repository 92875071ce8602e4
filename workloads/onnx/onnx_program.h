/* An ONNX file as a model: what is known of it at once, and its model program for a job.
 *
 * The file says a forward pass. A loss is put behind its first real output: where that is made by a product with
 * weights (and a bias), it is taken for logits, cross entropy over its last dimension; else the mean over all of its
 * elements. All other outputs are left out. Batch norms are those of training: over the samples of a microbatch.
 */
#ifndef PL_WORKLOADS_ONNX_PROGRAM_H
#define PL_WORKLOADS_ONNX_PROGRAM_H

#include "workloads/language/ir_module.h"
#include "workloads/onnx/outline.h"

#define PL_ONNX_EMPTY_CACHE                                                                                            \
  "of keys and values: empty; attention_mask hides nothing, position_ids count from 0, assumed"

typedef struct pl_onnx_model {
  const char *path, *name, *producer;
  uint64_t digest;
  int64_t opset;
  int32_t n_nodes, n_layers, n_functions;
  double parameters;
  bool has_seq;       /* inputs have tokens */
  int64_t batch, seq; /* where the file is for one size only; 0: any */
  bool one_sample;    /* it was exported for one; batch 0: any number of them goes through its nodes */
  bool empty_cache;   /* inputs are a decoder's cache: without keys and values, all tokens seen, in order */
  int64_t rows;       /* of the smallest table of positions that tokens' places are looked up in; 0: none is */
  bool tied, cross_entropy;
  const char *output; /* what has the loss */
  int32_t n_outputs;
} pl_onnx_model;

typedef struct pl_onnx_job {
  int64_t gbs, batch, seq;
  int32_t n_microbatches;
  pl_ir_element element; /* of weights and activations; the loss is made in fp32 */
} pl_onnx_job;

/* Reads a file. Memory from `arena`; the file is closed again. */
pl_code pl_onnx_model_load(const char *path, pl_arena *arena, pl_onnx_model *model, pl_error *error);
/* The same of bytes. */
pl_code pl_onnx_model_parse(const char *name, const void *data, size_t size, pl_arena *arena, pl_onnx_model *model,
                            pl_error *error);
/* The model program: @embedding, @layer ..., @head, @loss, @main. The class is the caller's to add. `outlined` (may be
 * NULL) says where each weight lies in the file. */
pl_code pl_onnx_program_build(const pl_onnx_model *model, const pl_onnx_job *job, pl_arena *arena, pl_ir_module *module,
                              pl_outlined *outlined, pl_error *error);

/* The file's weights by their paths in a program: opened once, for all of them. */
typedef struct pl_onnx_weights pl_onnx_weights;
/* Nothing of them is read yet. The caller destroys *weights. */
pl_code pl_onnx_weights_open(const pl_onnx_model *model, pl_onnx_weights **weights, pl_error *error);
void pl_onnx_weights_destroy(pl_onnx_weights *weights);
/* All n elements of a weight; what pl_data_source asks for, `context` being the weights. */
pl_code pl_onnx_weights_read(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error);
/* The name that the file has for a weight; NULL: there is none of this path. */
const char *pl_onnx_weights_source(const pl_onnx_weights *weights, const char *path);

#endif
