/* See workloads/onnx/onnx_file.h: messages of onnx.proto3, read field by field. */
#include "workloads/onnx/onnx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workloads/onnx/onnx_reader.h"

bool pl_onnx_type_is_real(int32_t type) {
  return type == PL_ONNX_FLOAT || type == PL_ONNX_FLOAT16 || type == PL_ONNX_BFLOAT16 || type == PL_ONNX_DOUBLE;
}

bool pl_onnx_is_path(const char *path) {
  size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

const pl_onnx_attribute *pl_onnx_attribute_find(const pl_onnx_node *node, const char *name) {
  for (int32_t i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
  return NULL;
}

int64_t pl_onnx_integer_of(const pl_onnx_node *node, const char *name, int64_t otherwise) {
  const pl_onnx_attribute *found = pl_onnx_attribute_find(node, name);
  return found != NULL ? found->integer : otherwise;
}

double pl_onnx_real_of(const pl_onnx_node *node, const char *name, double otherwise) {
  const pl_onnx_attribute *found = pl_onnx_attribute_find(node, name);
  return found != NULL ? found->real : otherwise;
}

/* ---- the graph: who makes what, and in which order ---- */

static pl_code read_ports(pl_onnx_reader *in, const pl_onnx_lists *lists, pl_onnx_graph *graph) {
  graph->inputs = PL_TAKE(in->arena, pl_onnx_port, lists->n_inputs + 1);
  graph->outputs = PL_TAKE(in->arena, pl_onnx_port, lists->n_outputs + 1);
  if (graph->inputs == NULL || graph->outputs == NULL) return pl_fail_memory(in->error, "an ONNX file");
  pl_wire_message wire = in->graph;
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    if (field.kind != PL_WIRE_BYTES || (field.number != 11 && field.number != 12)) continue;
    pl_onnx_port port;
    PL_TRY(pl_onnx_read_port(in, &field, &port));
    if (field.number == 12) {
      graph->outputs[graph->n_outputs++] = port;
    } else if (graph->values[port.value].initializer == NULL) {
      graph->inputs[graph->n_inputs++] = port;
    }
  }
  return PL_OK;
}

static pl_code read_nodes(pl_onnx_reader *in, const pl_onnx_lists *lists, pl_onnx_graph *graph) {
  graph->nodes = PL_TAKE(in->arena, pl_onnx_node, lists->n_nodes + 1);
  if (graph->nodes == NULL) return pl_fail_memory(in->error, "an ONNX file");
  pl_wire_message wire = in->graph;
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    if (field.kind != PL_WIRE_BYTES || field.number != 1) continue;
    pl_onnx_node *node = &graph->nodes[graph->n_nodes];
    PL_TRY(pl_onnx_read_node(in, &field, node));
    for (int32_t i = 0; i < node->n_outputs; i++) {
      if (node->outputs[i] == PL_ONNX_NONE) continue;
      pl_onnx_value *value = &in->values[node->outputs[i]];
      if (value->node != PL_ONNX_NONE || value->initializer != NULL)
        return pl_fail(in->error, PL_BAD_INPUT, "%s: '%s' is made twice, the second time by node '%s' (%s)", in->name,
                       value->name, node->name, node->op);
      value->node = graph->n_nodes;
    }
    graph->n_nodes++;
  }
  return PL_OK;
}

static pl_code read_initializers(pl_onnx_reader *in, pl_onnx_graph *graph) {
  pl_wire_message wire = in->graph;
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    if (field.kind != PL_WIRE_BYTES || field.number != 5) continue;
    pl_onnx_tensor *tensor = PL_TAKE(in->arena, pl_onnx_tensor, 1);
    if (tensor == NULL) return pl_fail_memory(in->error, "an ONNX file");
    PL_TRY(pl_onnx_read_tensor(in, field.data, field.size, tensor));
    int32_t value = pl_onnx_value_of(in, tensor->name);
    if (value == PL_ONNX_NONE) return pl_fail_memory(in->error, "an ONNX file");
    if (in->values[value].initializer != NULL)
      return pl_fail(in->error, PL_BAD_INPUT, "%s: initializer '%s' is there twice", in->name, tensor->name);
    in->values[value].initializer = tensor;
    graph->n_initializers++;
  }
  return PL_OK;
}

/* Every value that a node reads, or the graph hands out, comes from somewhere. */
static pl_code check_makers(const pl_onnx_reader *in, const pl_onnx_graph *graph) {
  bool *is_input = PL_TAKE(in->arena, bool, graph->n_values + 1);
  if (is_input == NULL) return pl_fail_memory(in->error, "an ONNX file");
  for (int32_t i = 0; i < graph->n_inputs; i++)
    is_input[graph->inputs[i].value] = true;
  for (int32_t i = 0; i < graph->n_nodes; i++)
    for (int32_t k = 0; k < graph->nodes[i].n_inputs; k++) {
      int32_t value = graph->nodes[i].inputs[k];
      if (value == PL_ONNX_NONE || is_input[value]) continue;
      const pl_onnx_value *read = &graph->values[value];
      if (read->node == PL_ONNX_NONE && read->initializer == NULL)
        return pl_fail(in->error, PL_BAD_INPUT,
                       "%s: node '%s' (%s) reads '%s', which is no input, no initializer and no node's output",
                       in->name, graph->nodes[i].name, graph->nodes[i].op, read->name);
    }
  for (int32_t i = 0; i < graph->n_outputs; i++) {
    const pl_onnx_value *out = &graph->values[graph->outputs[i].value];
    if (out->node == PL_ONNX_NONE && out->initializer == NULL && !is_input[graph->outputs[i].value])
      return pl_fail(in->error, PL_BAD_INPUT, "%s: output '%s' is made by no node", in->name, out->name);
  }
  return PL_OK;
}

/* Nodes behind those that make what they read; else as they stand in the file. */
static pl_code sort_nodes(const pl_onnx_reader *in, pl_onnx_graph *graph) {
  int32_t n = graph->n_nodes, *stack = PL_TAKE(in->arena, int32_t, n + 1), depth, n_sorted = 0;
  int32_t *next = PL_TAKE(in->arena, int32_t, n + 1);  /* input to look at */
  uint8_t *state = PL_TAKE(in->arena, uint8_t, n + 1); /* 1: on the stack, 2: sorted */
  int32_t *place = PL_TAKE(in->arena, int32_t, n + 1); /* of a node of the file */
  pl_onnx_node *sorted = PL_TAKE(in->arena, pl_onnx_node, n + 1);
  if (stack == NULL || next == NULL || state == NULL || place == NULL || sorted == NULL)
    return pl_fail_memory(in->error, "an ONNX file");
  for (int32_t i = 0; i < n; i++) {
    if (state[i] != 0) continue;
    stack[0] = i;
    state[i] = 1;
    depth = 1;
    while (depth > 0) {
      int32_t at = stack[depth - 1];
      const pl_onnx_node *node = &graph->nodes[at];
      if (next[at] == node->n_inputs) {
        state[at] = 2;
        place[at] = n_sorted;
        sorted[n_sorted++] = *node;
        depth--;
        continue;
      }
      int32_t value = node->inputs[next[at]++], maker = value == PL_ONNX_NONE ? value : graph->values[value].node;
      if (maker == PL_ONNX_NONE || state[maker] == 2) continue;
      if (state[maker] == 1)
        return pl_fail(in->error, PL_BAD_INPUT, "%s: node '%s' (%s) reads what is made of its own output: a cycle",
                       in->name, graph->nodes[maker].name, graph->nodes[maker].op);
      state[maker] = 1;
      stack[depth++] = maker;
    }
  }
  graph->nodes = sorted;
  for (int32_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].node != PL_ONNX_NONE) graph->values[v].node = place[graph->values[v].node];
  return PL_OK;
}

static pl_code read_graph(pl_onnx_reader *in, pl_onnx_graph *graph) {
  pl_onnx_lists lists;
  PL_TRY(pl_onnx_count(in, &lists));
  in->values = PL_TAKE(in->arena, pl_onnx_value, lists.n_names + 1);
  if (in->values == NULL) return pl_fail_memory(in->error, "an ONNX file");
  PL_TRY(read_initializers(in, graph));
  PL_TRY(read_nodes(in, &lists, graph));
  graph->values = in->values;
  PL_TRY(read_ports(in, &lists, graph));
  graph->n_values = in->n_values;
  if (graph->n_nodes == 0 || graph->n_outputs == 0)
    return pl_fail(in->error, PL_BAD_INPUT, "%s: its graph has %d nodes and %d outputs: there is nothing to run",
                   in->name, graph->n_nodes, graph->n_outputs);
  PL_TRY(check_makers(in, graph));
  return sort_nodes(in, graph);
}

pl_code pl_onnx_graph_parse(const char *name, const void *data, size_t size, pl_arena *arena, pl_onnx_graph *graph,
                            pl_error *error) {
  *graph = (pl_onnx_graph){.path = pl_arena_strdup(arena, name)};
  pl_onnx_reader in = {.name = name, .bytes = (const uint8_t *)data, .arena = arena, .error = error};
  PL_TRY(pl_onnx_read_model(&in, size, graph));
  PL_TRY(read_graph(&in, graph));
  graph->digest = in.digest;
  return arena->failed ? pl_fail_memory(error, "an ONNX file") : PL_OK;
}

pl_code pl_onnx_graph_open(const char *path, pl_arena *arena, pl_onnx_graph *graph, pl_error *error) {
  *graph = (pl_onnx_graph){.path = NULL};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return pl_fail(error, PL_BAD_INPUT, "cannot open %s: %s", path, strerror(errno));
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
    close(file);
    return pl_fail(error, PL_BAD_INPUT, "%s: not a file, or empty: no ONNX model", path);
  }
  size_t size = (size_t)status.st_size;
  void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (map == MAP_FAILED) return pl_fail(error, PL_IO, "cannot map %s: %s", path, strerror(errno));
  pl_code code = pl_onnx_graph_parse(path, map, size, arena, graph, error);
  graph->map = map;
  graph->map_bytes = size;
  if (code != PL_OK) pl_onnx_graph_close(graph);
  return code;
}

void pl_onnx_graph_close(pl_onnx_graph *graph) {
  if (graph->map != NULL) munmap(graph->map, graph->map_bytes);
  graph->map = NULL;
}
