/* How onnx_file.c reads messages. Internal to workloads/onnx. */
#ifndef PL_WORKLOADS_ONNX_READER_H
#define PL_WORKLOADS_ONNX_READER_H

#include "core/text/wire.h"
#include "workloads/onnx/onnx_file.h"

typedef struct pl_onnx_reader {
  const char *name; /* of the file */
  const uint8_t *bytes;
  pl_wire_message graph; /* GraphProto */
  pl_arena *arena;
  pl_error *error;
  pl_onnx_value *values;
  int32_t n_values;
  pl_hash_index by_name; /* records are names' entries in `values`, as indices + 1 */
  uint64_t digest;
} pl_onnx_reader;

/* How much of everything there is, before any of it is read. */
typedef struct pl_onnx_lists {
  int32_t n_nodes, n_inputs, n_outputs, n_names;
} pl_onnx_lists;

/* ModelProto: versions, and where the graph lies. */
pl_code pl_onnx_read_model(pl_onnx_reader *in, size_t size, pl_onnx_graph *graph);
pl_code pl_onnx_count(pl_onnx_reader *in, pl_onnx_lists *lists);
pl_code pl_onnx_read_node(pl_onnx_reader *in, const pl_wire_field *field, pl_onnx_node *node);
pl_code pl_onnx_read_tensor(pl_onnx_reader *in, const uint8_t *data, size_t size, pl_onnx_tensor *tensor);
pl_code pl_onnx_read_port(pl_onnx_reader *in, const pl_wire_field *field, pl_onnx_port *port);
/* The value of a name, made if it is new; PL_ONNX_NONE: no memory. */
int32_t pl_onnx_value_of(pl_onnx_reader *in, const char *name);

#endif
