/* See workloads/onnx/onnx_reader.h. Field numbers are those of onnx.proto. */
#include "workloads/onnx/onnx_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static pl_code broken(const pl_onnx_reader *in, const pl_wire_message *wire, const char *what) {
  return pl_fail(in->error, PL_BAD_INPUT, "%s: byte %td: %s is broken or cut off: not an ONNX file, or not all of it",
                 in->name, wire->at - in->bytes, what);
}

static pl_code no_memory(const pl_onnx_reader *in) {
  return pl_fail_memory(in->error, "an ONNX file");
}

enum { TEXT_MAX = 1 << 16 };

/* Text of a field; a NUL ends it. NULL: no memory, or too long for a name (in->error says so). */
static const char *text_of(pl_onnx_reader *in, const pl_wire_field *field) {
  if (field->size > TEXT_MAX) {
    (void)pl_fail(in->error, PL_BAD_INPUT, "%s: byte %td: a name or text of %zu bytes; at most %d are read", in->name,
                  field->data - in->bytes, field->size, TEXT_MAX);
    return NULL;
  }
  char *text = PL_TAKE(in->arena, char, field->size + 1);
  if (text != NULL) memcpy(text, field->data, field->size);
  for (size_t i = 0; i < field->size; i++)
    in->digest = pl_hash_word(in->digest, field->data[i]);
  return text;
}

static void note(pl_onnx_reader *in, uint64_t word) {
  in->digest = pl_hash_word(in->digest, word);
}

/* ---- values by name ---- */

int32_t pl_onnx_value_of(pl_onnx_reader *in, const char *name) {
  uint64_t hash = pl_hash_text(7, name);
  uint32_t probe = 0;
  for (const pl_onnx_value *at; (at = pl_hash_index_find(&in->by_name, hash, &probe)) != NULL;)
    if (strcmp(at->name, name) == 0) return (int32_t)(at - in->values);
  pl_onnx_value *made = &in->values[in->n_values];
  *made = (pl_onnx_value){.name = name, .node = PL_ONNX_NONE};
  if (!pl_hash_index_put(&in->by_name, hash, made, in->arena)) return PL_ONNX_NONE;
  return in->n_values++;
}

/* ---- ModelProto ---- */

static pl_code read_opset(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_graph *graph) {
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  int64_t version = 0;
  bool standard = true;
  while (pl_wire_next(&wire, &field)) {
    if (field.number == 1 && field.kind == PL_WIRE_BYTES)
      standard = field.size == 0 || (field.size == 7 && memcmp(field.data, "ai.onnx", 7) == 0);
    if (field.number == 2 && field.kind == PL_WIRE_VARINT) version = (int64_t)field.value;
  }
  if (wire.broken) return broken(in, &wire, "an operator set");
  if (standard) graph->opset = version;
  return PL_OK;
}

pl_code pl_onnx_read_model(pl_onnx_reader *in, size_t size, pl_onnx_graph *graph) {
  pl_wire_message wire = pl_wire_of(in->bytes, size);
  pl_wire_field field;
  bool has_graph = false;
  while (pl_wire_next(&wire, &field)) {
    if (field.number == 1 && field.kind == PL_WIRE_VARINT) graph->ir_version = (int64_t)field.value;
    if (field.kind != PL_WIRE_BYTES) continue;
    if (field.number == 2 && (graph->producer = text_of(in, &field)) == NULL) return no_memory(in);
    if (field.number == 7) in->graph = pl_wire_of(field.data, field.size), has_graph = true;
    if (field.number == 8) PL_TRY(read_opset(in, &field, graph));
    if (field.number == 25)
      return pl_fail(in->error, PL_UNSUPPORTED, "%s: the model has functions of its own; write it with those expanded",
                     in->name);
  }
  if (wire.broken) return broken(in, &wire, "the model");
  if (!has_graph) return pl_fail(in->error, PL_BAD_INPUT, "%s: no graph in it: not an ONNX model", in->name);
  if (graph->ir_version < PL_ONNX_IR_FIRST || graph->ir_version > PL_ONNX_IR_LAST)
    return pl_fail(in->error, PL_UNSUPPORTED, "%s: IR version %" PRId64 " of ONNX; %d to %d are read", in->name,
                   graph->ir_version, PL_ONNX_IR_FIRST, PL_ONNX_IR_LAST);
  if (graph->opset < PL_ONNX_OPSET_FIRST || graph->opset > PL_ONNX_OPSET_LAST)
    return pl_fail(in->error, PL_UNSUPPORTED,
                   "%s: operator set %" PRId64 " of ONNX; %d to %d are read (torch.onnx.export: opset_version)",
                   in->name, graph->opset, PL_ONNX_OPSET_FIRST, PL_ONNX_OPSET_LAST);
  return PL_OK;
}

/* ---- counting ---- */

static int32_t count_names(const pl_wire_field *node) {
  pl_wire_message wire = pl_wire_of(node->data, node->size);
  pl_wire_field field;
  int32_t n = 0;
  while (pl_wire_next(&wire, &field))
    n += field.number == 1 || field.number == 2;
  return n;
}

pl_code pl_onnx_count(pl_onnx_reader *in, pl_onnx_lists *lists) {
  pl_wire_message wire = in->graph;
  pl_wire_field field;
  int64_t nodes = 0, names = 0, ports[2] = {0, 0};
  const int64_t names_max = (int64_t)8 * PL_ONNX_NODES_MAX;
  while (pl_wire_next(&wire, &field)) {
    if (field.kind != PL_WIRE_BYTES) continue;
    nodes += field.number == 1;
    if (nodes > PL_ONNX_NODES_MAX) continue;
    if (field.number == 1) names += count_names(&field);
    names += field.number == 5 || field.number == 11 || field.number == 12;
    if (field.number == 11 || field.number == 12) ports[field.number - 11]++;
  }
  if (wire.broken) return broken(in, &wire, "the graph");
  if (nodes > PL_ONNX_NODES_MAX || names > names_max)
    return pl_fail(in->error, PL_BAD_INPUT,
                   "%s: %" PRId64 " nodes with %" PRId64 " names; at most %d with %" PRId64 " are read", in->name,
                   nodes, names, PL_ONNX_NODES_MAX, names_max);
  *lists = (pl_onnx_lists){(int32_t)nodes, (int32_t)ports[0], (int32_t)ports[1], (int32_t)names};
  return PL_OK;
}

/* ---- TensorProto ---- */

static int64_t number_of(const char *text) {
  char *end;
  long long value = strtoll(text, &end, 10);
  return *end == 0 && value >= 0 ? (int64_t)value : -1;
}

static pl_code read_external(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_tensor *tensor) {
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  const char *key = "", *value = "";
  while (pl_wire_next(&wire, &field))
    if (field.kind == PL_WIRE_BYTES && (field.number == 1 || field.number == 2)) {
      const char *text = text_of(in, &field);
      if (text == NULL) return no_memory(in);
      *(field.number == 1 ? &key : &value) = text;
    }
  if (wire.broken) return broken(in, &wire, "a tensor's place");
  if (strcmp(key, "location") == 0) tensor->location = value;
  if (strcmp(key, "offset") == 0) tensor->offset = number_of(value);
  if (strcmp(key, "length") == 0) tensor->length = number_of(value);
  return PL_OK;
}

static pl_code push_dim(const pl_onnx_reader *in, pl_onnx_tensor *tensor, uint64_t extent) {
  if (tensor->rank == PL_ONNX_RANK_MAX || extent > (uint64_t)INT64_MAX ||
      __builtin_mul_overflow(tensor->n, (int64_t)extent, &tensor->n))
    return pl_fail(in->error, PL_BAD_INPUT, "%s: a tensor has more than %d dimensions, or more elements than fit",
                   in->name, PL_ONNX_RANK_MAX);
  tensor->dims[tensor->rank++] = (int64_t)extent;
  return PL_OK;
}

static pl_code read_dims(pl_onnx_reader *in, const pl_wire_field *field, pl_onnx_tensor *tensor) {
  if (field->kind == PL_WIRE_VARINT) return push_dim(in, tensor, field->value);
  pl_wire_message wire = pl_wire_of(field->data, field->size);
  uint64_t extent;
  while (wire.at != wire.end) {
    if (!pl_wire_varint(&wire, &extent)) return broken(in, &wire, "a tensor's shape");
    PL_TRY(push_dim(in, tensor, extent));
  }
  return PL_OK;
}

static bool is_data(uint32_t number) {
  return number == 4 || number == 5 || number == 7 || number == 9 || number == 10 || number == 11;
}

pl_code pl_onnx_read_tensor(pl_onnx_reader *in, const uint8_t *data, size_t size, pl_onnx_tensor *tensor) {
  *tensor = (pl_onnx_tensor){.name = "", .n = 1, .length = -1};
  pl_wire_message wire = pl_wire_of(data, size);
  pl_wire_field field;
  bool external = false;
  while (pl_wire_next(&wire, &field)) {
    if (field.number == 1) PL_TRY(read_dims(in, &field, tensor));
    if (field.number == 2) tensor->type = (int32_t)(field.value & 0xff);
    if (field.number == 14) external = field.value == 1;
    if (field.number == 8 && field.kind == PL_WIRE_BYTES) tensor->name = text_of(in, &field);
    if (field.number == 13 && field.kind == PL_WIRE_BYTES) PL_TRY(read_external(in, &field, tensor));
    if (!is_data(field.number)) continue;
    if (tensor->field != 0 || field.kind != PL_WIRE_BYTES)
      return pl_fail(in->error, PL_UNSUPPORTED, "%s: numbers of tensor '%s' lie in several pieces", in->name,
                     tensor->name != NULL ? tensor->name : "");
    tensor->field = field.number;
    tensor->data = field.data;
    tensor->size = field.size;
  }
  if (wire.broken) return broken(in, &wire, "a tensor");
  if (tensor->name == NULL) return no_memory(in);
  if (external && tensor->location == NULL)
    return pl_fail(in->error, PL_BAD_INPUT, "%s: tensor '%s' is in another file, which it does not name", in->name,
                   tensor->name);
  if (!external) tensor->location = NULL;
  note(in, (uint64_t)tensor->type);
  for (int32_t i = 0; i < tensor->rank; i++)
    note(in, (uint64_t)tensor->dims[i]);
  return PL_OK;
}

/* ---- NodeProto ---- */

static pl_code push_integer(pl_onnx_reader *in, pl_onnx_attribute *attribute, int64_t **room, uint64_t value) {
  enum { MOST = 64 };
  if (*room == NULL) *room = PL_TAKE(in->arena, int64_t, MOST);
  if (*room == NULL) return no_memory(in);
  if (attribute->n_integers == MOST)
    return pl_fail(in->error, PL_UNSUPPORTED, "%s: an attribute lists more than %d integers", in->name, MOST);
  (*room)[attribute->n_integers++] = (int64_t)value;
  attribute->integers = *room;
  note(in, value);
  return PL_OK;
}

static pl_code read_integers(pl_onnx_reader *in, const pl_wire_field *field, pl_onnx_attribute *attribute,
                             int64_t **room) {
  if (field->kind == PL_WIRE_VARINT) return push_integer(in, attribute, room, field->value);
  pl_wire_message wire = pl_wire_of(field->data, field->size);
  uint64_t value;
  while (wire.at != wire.end) {
    if (!pl_wire_varint(&wire, &value)) return broken(in, &wire, "an attribute");
    PL_TRY(push_integer(in, attribute, room, value));
  }
  return PL_OK;
}

static pl_code read_attribute(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_attribute *attribute) {
  *attribute = (pl_onnx_attribute){.name = ""};
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  int64_t *room = NULL;
  while (pl_wire_next(&wire, &field)) {
    bool bytes = field.kind == PL_WIRE_BYTES;
    if (field.number == 1 && bytes && (attribute->name = text_of(in, &field)) == NULL) return no_memory(in);
    if (field.number == 2 && field.kind == PL_WIRE_FIXED32) {
      attribute->real = (double)pl_wire_float(field.value);
      note(in, field.value);
    }
    if (field.number == 3 && field.kind == PL_WIRE_VARINT) {
      attribute->integer = (int64_t)field.value;
      note(in, field.value);
    }
    if (field.number == 4 && bytes && (attribute->text = text_of(in, &field)) == NULL) return no_memory(in);
    if (field.number == 5 && bytes) {
      pl_onnx_tensor *tensor = PL_TAKE(in->arena, pl_onnx_tensor, 1);
      if (tensor == NULL) return no_memory(in);
      PL_TRY(pl_onnx_read_tensor(in, field.data, field.size, tensor));
      attribute->tensor = tensor;
    }
    attribute->has_graph = attribute->has_graph || field.number == 6;
    if (field.number == 8) PL_TRY(read_integers(in, &field, attribute, &room));
  }
  return wire.broken ? broken(in, &wire, "an attribute") : PL_OK;
}

static pl_code count_in_node(const pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_node *node) {
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    node->n_inputs += field.number == 1;
    node->n_outputs += field.number == 2;
    node->n_attributes += field.number == 5;
  }
  return wire.broken ? broken(in, &wire, "a node") : PL_OK;
}

pl_code pl_onnx_read_node(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_node *node) {
  *node = (pl_onnx_node){.op = "", .name = "", .domain = ""};
  PL_TRY(count_in_node(in, of, node));
  int32_t *inputs = PL_TAKE(in->arena, int32_t, node->n_inputs + 1), n_inputs = 0, n_outputs = 0, n_attributes = 0;
  int32_t *outputs = PL_TAKE(in->arena, int32_t, node->n_outputs + 1);
  pl_onnx_attribute *attributes = PL_TAKE(in->arena, pl_onnx_attribute, node->n_attributes + 1);
  if (inputs == NULL || outputs == NULL || attributes == NULL) return no_memory(in);
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    if (field.kind != PL_WIRE_BYTES) {
      if (field.number == 1 || field.number == 2 || field.number == 5) return broken(in, &wire, "a node");
      continue;
    }
    if (field.number == 5) {
      PL_TRY(read_attribute(in, &field, &attributes[n_attributes++]));
      continue;
    }
    const char *text = field.number <= 7 && field.number != 6 ? text_of(in, &field) : "";
    if (text == NULL) return no_memory(in);
    if (field.number == 3) node->name = text;
    if (field.number == 4) node->op = text;
    if (field.number == 7) node->domain = text;
    if (field.number > 2) continue;
    int32_t value = text[0] == 0 ? PL_ONNX_NONE : pl_onnx_value_of(in, text);
    if (value == PL_ONNX_NONE && text[0] != 0) return no_memory(in);
    *(field.number == 1 ? &inputs[n_inputs++] : &outputs[n_outputs++]) = value;
  }
  node->inputs = inputs;
  node->outputs = outputs;
  node->attributes = attributes;
  return PL_OK;
}

/* ---- ValueInfoProto ---- */

static pl_code read_dim(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_dim *dim) {
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  *dim = (pl_onnx_dim){.extent = -1};
  while (pl_wire_next(&wire, &field)) {
    if (field.number == 1 && field.kind == PL_WIRE_VARINT)
      dim->extent = field.value > 0 && field.value < (UINT64_C(1) << 53) ? (int64_t)field.value : -1;
    if (field.number == 2 && field.kind == PL_WIRE_BYTES && field.size > 0 &&
        (dim->symbol = text_of(in, &field)) == NULL)
      return no_memory(in);
  }
  note(in, (uint64_t)dim->extent);
  return wire.broken ? broken(in, &wire, "a dimension") : PL_OK;
}

static pl_code read_shape(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_port *port) {
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  port->rank = 0;
  while (pl_wire_next(&wire, &field)) {
    if (field.number != 1 || field.kind != PL_WIRE_BYTES) continue;
    if (port->rank == PL_ONNX_RANK_MAX)
      return pl_fail(in->error, PL_BAD_INPUT, "%s: an input or output has more than %d dimensions", in->name,
                     PL_ONNX_RANK_MAX);
    PL_TRY(read_dim(in, &field, &port->dims[port->rank++]));
  }
  return wire.broken ? broken(in, &wire, "a shape") : PL_OK;
}

/* TypeProto, whose first field is a tensor's type; sequences and maps have no shape here. */
static pl_code read_type(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_port *port, int depth) {
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    if (depth == 0 && field.number == 1 && field.kind == PL_WIRE_BYTES) PL_TRY(read_type(in, &field, port, 1));
    if (depth == 1 && field.number == 1 && field.kind == PL_WIRE_VARINT) port->type = (int32_t)(field.value & 0xff);
    if (depth == 1 && field.number == 2 && field.kind == PL_WIRE_BYTES) PL_TRY(read_shape(in, &field, port));
  }
  return wire.broken ? broken(in, &wire, "a type") : PL_OK;
}

pl_code pl_onnx_read_port(pl_onnx_reader *in, const pl_wire_field *of, pl_onnx_port *port) {
  *port = (pl_onnx_port){.value = PL_ONNX_NONE, .rank = -1};
  pl_wire_message wire = pl_wire_of(of->data, of->size);
  pl_wire_field field;
  while (pl_wire_next(&wire, &field)) {
    if (field.kind != PL_WIRE_BYTES) continue;
    if (field.number == 2) PL_TRY(read_type(in, &field, port, 0));
    if (field.number != 1) continue;
    const char *name = text_of(in, &field);
    port->value = name != NULL ? pl_onnx_value_of(in, name) : PL_ONNX_NONE;
    if (port->value == PL_ONNX_NONE) return no_memory(in);
  }
  if (wire.broken) return broken(in, &wire, "an input or output");
  if (port->value == PL_ONNX_NONE)
    return pl_fail(in->error, PL_BAD_INPUT, "%s: an input or output has no name", in->name);
  return PL_OK;
}
