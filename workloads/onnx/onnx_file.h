/* An ONNX file (onnx.ai, IR versions 3 to 10, opsets 9 to 21 of the standard operators) as a graph: nodes in an order
 * in which values are made before they are read, tensors by name. Numbers of tensors stay in the file, which is mapped
 * and not copied; weights in files of their own are named and not opened (onnx_data.h reads both).
 */
#ifndef PL_WORKLOADS_ONNX_FILE_H
#define PL_WORKLOADS_ONNX_FILE_H

#include "core/base/arena.h"
#include "core/base/hash_index.h"
#include "core/base/status.h"

enum {
  PL_ONNX_RANK_MAX = 8,
  PL_ONNX_NODES_MAX = 200000, /* a transformer of 128 layers has some 20,000 */
  PL_ONNX_IR_FIRST = 3,
  PL_ONNX_IR_LAST = 10,
  PL_ONNX_OPSET_FIRST = 9,
  PL_ONNX_OPSET_LAST = 21,
  PL_ONNX_NONE = -1
};

/* TensorProto.DataType's numbers. */
typedef enum pl_onnx_type {
  PL_ONNX_FLOAT = 1,
  PL_ONNX_UINT8 = 2,
  PL_ONNX_INT8 = 3,
  PL_ONNX_UINT16 = 4,
  PL_ONNX_INT16 = 5,
  PL_ONNX_INT32 = 6,
  PL_ONNX_INT64 = 7,
  PL_ONNX_BOOL = 9,
  PL_ONNX_FLOAT16 = 10,
  PL_ONNX_DOUBLE = 11,
  PL_ONNX_UINT32 = 12,
  PL_ONNX_UINT64 = 13,
  PL_ONNX_BFLOAT16 = 16
} pl_onnx_type;

bool pl_onnx_type_is_real(int32_t type); /* float, float16, bfloat16, double */

/* Numbers that the file has: of an initializer, or of an attribute. */
typedef struct pl_onnx_tensor {
  const char *name;
  int32_t type, rank;
  int64_t dims[PL_ONNX_RANK_MAX];
  int64_t n; /* elements */
  /* One of these: bytes in the file, as little-endian elements (raw) or as the packed list of field `field`; or a file
   * beside it. */
  const uint8_t *data;
  size_t size;
  uint32_t field;       /* 9: raw */
  const char *location; /* relative to the model's folder; NULL: in this file */
  int64_t offset, length;
} pl_onnx_tensor;

typedef struct pl_onnx_attribute {
  const char *name, *text; /* text: of a string; else NULL */
  int64_t integer;
  double real;
  int32_t n_integers;
  const int64_t *integers;
  const pl_onnx_tensor *tensor;
  bool has_graph; /* a body of If, Loop, Scan */
} pl_onnx_attribute;

typedef struct pl_onnx_node {
  const char *op, *name, *domain; /* name: "" = none */
  int32_t n_inputs, n_outputs, n_attributes;
  const int32_t *inputs; /* values; PL_ONNX_NONE: an optional one that is left out */
  const int32_t *outputs;
  const pl_onnx_attribute *attributes;
} pl_onnx_node;

typedef struct pl_onnx_dim {
  int64_t extent;     /* -1: open */
  const char *symbol; /* "batch"; NULL: none */
} pl_onnx_dim;

typedef struct pl_onnx_port {
  int32_t value;
  int32_t type, rank; /* rank -1: not said */
  pl_onnx_dim dims[PL_ONNX_RANK_MAX];
} pl_onnx_port;

typedef struct pl_onnx_value {
  const char *name;
  int32_t node;                      /* that makes it; PL_ONNX_NONE: an input or an initializer */
  const pl_onnx_tensor *initializer; /* NULL: none */
} pl_onnx_value;

typedef struct pl_onnx_graph {
  const char *path, *producer;
  uint64_t digest; /* of the file's structure: all of it but the tensors' numbers */
  int64_t ir_version, opset;
  pl_onnx_node *nodes; /* sorted */
  pl_onnx_value *values;
  pl_onnx_port *inputs, *outputs; /* inputs without initializers */
  int32_t n_nodes, n_values, n_inputs, n_outputs, n_initializers;
  void *map; /* of the file; NULL: memory of the caller's */
  size_t map_bytes;
} pl_onnx_graph;

/* Whether a path is that of an ONNX file, by its ending. */
bool pl_onnx_is_path(const char *path);
/* Memory from `arena`, which the graph lives in; the map stays until pl_onnx_graph_close. PL_BAD_INPUT, as
 * "FILE: what": no such file, not an ONNX file or cut off (with the byte), another version, a cycle, a value that
 * nobody makes or two make, too many nodes. O(file), but for tensors' numbers, which are passed over. */
pl_code pl_onnx_graph_open(const char *path, pl_arena *arena, pl_onnx_graph *graph, pl_error *error);
void pl_onnx_graph_close(pl_onnx_graph *graph);
/* The same from memory, which outlives the graph; `name` stands for the path. */
pl_code pl_onnx_graph_parse(const char *name, const void *data, size_t size, pl_arena *arena, pl_onnx_graph *graph,
                            pl_error *error);

/* NULL: the node has none of this name. */
const pl_onnx_attribute *pl_onnx_attribute_find(const pl_onnx_node *node, const char *name);
int64_t pl_onnx_integer_of(const pl_onnx_node *node, const char *name, int64_t otherwise);
double pl_onnx_real_of(const pl_onnx_node *node, const char *name, double otherwise);

#endif
