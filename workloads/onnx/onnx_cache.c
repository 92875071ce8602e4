/* Decoders that were exported with a cache of keys and values (inputs past_key_values.0.key ..., past_0 ...), as
 * text-generation exports are. A training step, and the first step of a generation, have all tokens at once: the cache
 * is empty, attention_mask hides nothing, and position_ids count from 0. Then masks and rotations are constants again,
 * as in exports without a cache. All of it is assumed, and said (pl_onnx_model.empty_cache).
 *
 * Besides: frequencies, tables of cosines and sines, and masks that a file has as tensors are no weights.
 */
#include <math.h>
#include <string.h>

#include "workloads/onnx/onnx_data.h"
#include "workloads/onnx/onnx_shape.h"

bool pl_onnx_is_cache(const pl_onnx_graph *graph, const pl_onnx_port *port) {
  return strncmp(graph->values[port->value].name, "past", 4) == 0 && pl_onnx_type_is_real(port->type) && port->rank > 2;
}

bool pl_onnx_has_cache(const pl_onnx_graph *graph) {
  for (int32_t i = 0; i < graph->n_inputs; i++)
    if (pl_onnx_is_cache(graph, &graph->inputs[i])) return true;
  return false;
}

static bool is_named(const pl_onnx_dim *dim, const char *word) {
  return dim->symbol != NULL && strstr(dim->symbol, word) != NULL;
}

void pl_onnx_cache_bind(const pl_onnx_port *port, int64_t batch, pl_onnx_abstract *to) {
  bool named = false;
  for (int32_t k = 0; k < port->rank; k++)
    named = named || is_named(&port->dims[k], "batch");
  for (int32_t k = 0; k < port->rank; k++) {
    const pl_onnx_dim *dim = &port->dims[k];
    bool samples = named ? is_named(dim, "batch") : k == 0;
    to->dims[k] = samples ? batch : dim->extent < 0 ? 0 : dim->extent;
  }
}

bool pl_onnx_cache_input(const pl_onnx_graph *graph, const pl_onnx_port *port, pl_onnx_abstract *to, double *numbers) {
  const char *name = graph->values[port->value].name;
  bool mask = strcmp(name, "attention_mask") == 0, places = strcmp(name, "position_ids") == 0;
  if ((!mask && !places) || port->rank != 2 || !pl_onnx_has_cache(graph)) return false;
  if (places) to->dims[0] = 1; /* the same in all samples */
  for (int64_t i = 0; i < (int64_t)pl_onnx_elements(to) && numbers != NULL; i++)
    numbers[i] = places ? (double)i : 1;
  return true;
}

/* ---- tables of rotations ---- */

/* Rows 0, 1, 2 are cos or sin of 0, a, 2a: cos 2a = 2 cos^2 a - 1, (sin 2a)^2 = 4 sin^2 a (1 - sin^2 a). */
static bool are_turns(const double *rows, int64_t n) {
  const double most = 1e-3;
  bool cosines = true, sines = true, all_one = true;
  for (int64_t i = 0; i < n; i++) {
    double none = rows[i], once = rows[n + i], twice = rows[2 * n + i];
    cosines = cosines && fabs(none - 1) < 1e-6 && fabs(twice - (2 * once * once - 1)) < most;
    sines = sines && fabs(none) < 1e-6 && fabs(once) <= 1 &&
            fabs(twice * twice - 4 * once * once * (1 - once * once)) < most;
    all_one = all_one && (fabs(once - 1) < 1e-6 || fabs(once) < 1e-6); /* a scale or a shift */
  }
  return (cosines || sines) && !all_one;
}

enum { WIDEST = 512 };

/* 1, and less and less from there on: frequencies of pairs. A vector that was trained is not that. */
static bool are_frequencies(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor) {
  double numbers[WIDEST];
  pl_error ignored = PL_ERROR_INIT;
  int32_t wide = 0;
  for (int32_t i = 0; i < tensor->rank; i++)
    wide += tensor->dims[i] > 1;
  if (wide != 1 || tensor->n < 4 || tensor->n > WIDEST || tensor->location != NULL ||
      pl_onnx_tensor_read(graph, tensor, 0, tensor->n, numbers, &ignored) != PL_OK)
    return false;
  for (int64_t i = 1; i < tensor->n; i++)
    if (!(numbers[i] > 0 && numbers[i] < numbers[i - 1])) return false;
  return numbers[0] == 1;
}

bool pl_onnx_is_rotation(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor) {
  double rows[3 * WIDEST];
  pl_error ignored = PL_ERROR_INIT;
  if (are_frequencies(graph, tensor)) return true;
  int64_t width = tensor->rank > 1 ? tensor->dims[tensor->rank - 1] : 0;
  if (width < 4 || width % 2 != 0 || width > WIDEST || tensor->location != NULL) return false;
  for (int32_t i = 0; i < tensor->rank - 2; i++)
    if (tensor->dims[i] != 1) return false;
  if (tensor->dims[tensor->rank - 2] < 3 || tensor->n > PL_ONNX_NUMBERS_MAX) return false;
  return pl_onnx_tensor_read(graph, tensor, 0, 3 * width, rows, &ignored) == PL_OK && are_turns(rows, width);
}

/* ---- masks ---- */

static const double HIDES = -50; /* what is added to scores: e^-50 of a probability is left */

bool pl_onnx_is_mask(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor) {
  double numbers[WIDEST], hidden = 0;
  pl_error ignored = PL_ERROR_INIT;
  if (tensor->rank < 2 || tensor->n > PL_ONNX_NUMBERS_MAX || tensor->location != NULL) return false;
  for (int64_t first = 0; first < tensor->n; first += WIDEST) {
    int64_t n = tensor->n - first < WIDEST ? tensor->n - first : WIDEST;
    if (pl_onnx_tensor_read(graph, tensor, first, n, numbers, &ignored) != PL_OK) return false;
    for (int64_t i = 0; i < n; i++) {
      if (numbers[i] != 0 && !(numbers[i] <= HIDES && (hidden == 0 || hidden == numbers[i]))) return false;
      if (numbers[i] != 0) hidden = numbers[i];
    }
  }
  return hidden != 0;
}

/* ---- nodes that hand an operand on ---- */

static bool is_empty(const pl_onnx_abstract *value) {
  return value != NULL && value->rank >= 0 && pl_onnx_elements(value) == 0;
}

/* Of several parts one that is not empty. */
static int32_t only_part(const pl_onnx_op *op) {
  int32_t found = PL_ONNX_NONE;
  for (int32_t k = 0; k < op->n_in; k++) {
    if (is_empty(op->in[k])) continue;
    if (found != PL_ONNX_NONE) return PL_ONNX_NONE;
    found = op->node->inputs[k];
  }
  return op->n_in > 1 ? found : PL_ONNX_NONE;
}

/* Where(IsNaN(x), 0, x), which rows of a softmax with no key to see are made zero by: there are none. */
static int32_t without_nan(const pl_onnx_op *op) {
  const pl_onnx_graph *graph = op->own->graph;
  int32_t maker = op->n_in == 3 && op->in[0] != NULL ? graph->values[op->node->inputs[0]].node : PL_ONNX_NONE;
  if (maker == PL_ONNX_NONE || strcmp(graph->nodes[maker].op, "IsNaN") != 0) return PL_ONNX_NONE;
  return graph->nodes[maker].inputs[0] == op->node->inputs[2] ? op->node->inputs[2] : PL_ONNX_NONE;
}

int32_t pl_onnx_handed_on(const pl_onnx_op *op) {
  int32_t found = PL_ONNX_NONE;
  if (op->out.numbers != NULL || is_empty(&op->out)) return PL_ONNX_NONE;
  if (strcmp(op->node->op, "Concat") == 0) found = only_part(op);
  if (strcmp(op->node->op, "Where") == 0) found = without_nan(op);
  if (found == PL_ONNX_NONE) return found;
  const pl_onnx_abstract *of = &op->own->values[found];
  bool same = of->rank == op->out.rank && memcmp(of->dims, op->out.dims, (size_t)of->rank * sizeof of->dims[0]) == 0;
  return same ? found : PL_ONNX_NONE; /* else it is spread */
}
