/* See workloads/onnx/onnx_infer.h. */
#include "workloads/onnx/onnx_infer.h"
#include "workloads/onnx/onnx_shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/onnx/onnx_data.h"

double pl_onnx_elements(const pl_onnx_abstract *value) {
  double n = 1;
  for (int32_t i = 0; i < value->rank; i++)
    n *= (double)value->dims[i];
  return n;
}

const char *pl_onnx_shape_text(const pl_onnx_abstract *value, char text[PL_ONNX_SHAPE_TEXT_BYTES]) {
  int at = snprintf(text, PL_ONNX_SHAPE_TEXT_BYTES, "[");
  for (int32_t i = 0; i < value->rank; i++)
    at += snprintf(text + at, (size_t)(PL_ONNX_SHAPE_TEXT_BYTES - at), "%s%" PRId64, i > 0 ? ", " : "", value->dims[i]);
  snprintf(text + at, (size_t)(PL_ONNX_SHAPE_TEXT_BYTES - at), "]");
  return text;
}

pl_code pl_onnx_op_fail(const pl_onnx_op *op, const char *format, ...) {
  char text[512];
  va_list rest;
  va_start(rest, format);
  vsnprintf(text, sizeof(text), format, rest);
  va_end(rest);
  return pl_fail(op->own->error, PL_BAD_INPUT, "%s: node '%s' (%s): %s", op->own->graph->path, op->node->name,
                 op->node->op, text);
}

/* ---- inputs ---- */

bool pl_onnx_counts_samples(const pl_onnx_port *port, int32_t k) {
  return k == 0 && port->rank > 1;
}

bool pl_onnx_counts_tokens(const pl_onnx_port *port, int32_t k) {
  if (k != 1) return false;
  return pl_onnx_type_is_real(port->type) ? port->rank > 2 && port->dims[k].extent < 0 : port->rank == 2;
}

pl_onnx_openness pl_onnx_openness_of(const pl_onnx_graph *graph) {
  pl_onnx_openness made = {0};
  for (int32_t i = 0; i < graph->n_inputs; i++) {
    const pl_onnx_port *port = &graph->inputs[i];
    for (int32_t k = 0; k < port->rank && !pl_onnx_is_cache(graph, port); k++) {
      bool open = port->dims[k].extent < 0, batch = pl_onnx_counts_samples(port, k);
      bool tokens = pl_onnx_counts_tokens(port, k);
      if (batch && open) made.open_batch = true;
      if (batch && !open) made.batch = port->dims[k].extent;
      if (!tokens) continue;
      made.has_seq = true;
      if (open) made.open_seq = true;
      if (!open) made.seq = port->dims[k].extent;
    }
  }
  return made;
}

static pl_code bind_dim(const pl_onnx_inference *own, const pl_onnx_port *port, int32_t k, bool is_one, int64_t bound,
                        const char *what, const char *way, int64_t *extent) {
  const pl_onnx_dim *dim = &port->dims[k];
  *extent = dim->extent < 0 || is_one ? bound : dim->extent;
  if (*extent == bound) return PL_OK;
  return pl_fail(own->error, PL_BAD_INPUT,
                 "%s: input '%s' has %" PRId64 " %s, and the job has %" PRId64
                 ": the file was exported for one size only; %s, or export it with dynamic_axes",
                 own->graph->path, own->graph->values[port->value].name, dim->extent, what, bound, way);
}

static pl_code bind_input(pl_onnx_inference *own, int32_t index, const pl_onnx_binding *binding) {
  const pl_onnx_port *port = &own->graph->inputs[index];
  const char *name = own->graph->values[port->value].name;
  pl_onnx_abstract *to = &own->values[port->value];
  if (port->rank < 0 || port->type == 0)
    return pl_fail(own->error, PL_UNSUPPORTED, "%s: input '%s' has no shape, or is no tensor", own->graph->path, name);
  to->type = port->type;
  to->rank = port->rank;
  if (pl_onnx_is_cache(own->graph, port)) {
    pl_onnx_cache_bind(port, binding->batch, to);
    return PL_OK;
  }
  for (int32_t k = 0; k < port->rank; k++) {
    const pl_onnx_dim *dim = &port->dims[k];
    if (pl_onnx_counts_samples(port, k)) {
      PL_TRY(bind_dim(own, port, k, own->exported != NULL, binding->batch, "samples",
                      "choose dp * mbs so (or --gbs without a strategy)", &to->dims[k]));
    } else if (pl_onnx_counts_tokens(port, k)) {
      PL_TRY(bind_dim(own, port, k, false, binding->seq, "tokens", "choose --seq so", &to->dims[k]));
    } else if (dim->extent < 0) {
      return pl_fail(own->error, PL_BAD_INPUT,
                     "%s: dimension %d of input '%s' (%s) is open: only the first one, samples, and the second one, "
                     "tokens, follow from the job; export the others with their size",
                     own->graph->path, k + 1, name, dim->symbol != NULL ? dim->symbol : "without a name");
    } else {
      to->dims[k] = dim->extent;
    }
  }
  return PL_OK;
}

/* ---- numbers ---- */

int64_t pl_onnx_integer(double number) {
  if (!(number > -0x1p62)) return -(INT64_C(1) << 62);
  return number < 0x1p62 ? (int64_t)number : INT64_C(1) << 62;
}

typedef struct number_set {
  int64_t n;
  const double *numbers;
} number_set;

/* Keeps numbers, those that are there already once; NULL: too many, or no memory. */
static const double *keep(pl_onnx_inference *own, const double *numbers, int64_t n) {
  uint64_t hash = pl_hash_word(11, (uint64_t)n);
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof(bits));
    hash = pl_hash_word(hash, bits);
  }
  uint32_t probe = 0;
  for (const number_set *at; (at = pl_hash_index_find(&own->numbers, hash, &probe)) != NULL;)
    if (at->n == n && memcmp(at->numbers, numbers, (size_t)n * sizeof(double)) == 0) return at->numbers;
  if (own->n_numbers + n > PL_ONNX_ALL_NUMBERS_MAX) return NULL;
  number_set *made = PL_TAKE(own->arena, number_set, 1);
  double *copy = PL_TAKE(own->arena, double, n + 1);
  if (made == NULL || copy == NULL) return NULL;
  memcpy(copy, numbers, (size_t)n * sizeof(double));
  *made = (number_set){n, copy};
  own->n_numbers += n;
  return pl_hash_index_put(&own->numbers, hash, made, own->arena) ? copy : NULL;
}

static pl_code read_numbers(pl_onnx_inference *own, const pl_onnx_tensor *tensor, const double **numbers) {
  *numbers = NULL;
  if (tensor->n > PL_ONNX_NUMBERS_MAX) return PL_OK;
  double *all = malloc((size_t)(tensor->n + 1) * sizeof(double));
  if (all == NULL) return pl_fail_memory(own->error, "a tensor");
  pl_code code = pl_onnx_tensor_read(own->graph, tensor, 0, tensor->n, all, own->error);
  if (code == PL_OK) *numbers = keep(own, all, tensor->n);
  free(all);
  return code;
}

/* Mask and places beside an empty cache. */
static pl_code take_cache_input(pl_onnx_inference *own, const pl_onnx_port *port) {
  pl_onnx_abstract *to = &own->values[port->value];
  if (!pl_onnx_cache_input(own->graph, port, to, NULL) || pl_onnx_elements(to) > PL_ONNX_NUMBERS_MAX) return PL_OK;
  int64_t n = (int64_t)pl_onnx_elements(to);
  double *numbers = malloc((size_t)(n + 1) * sizeof *numbers);
  if (numbers == NULL) return pl_fail_memory(own->error, "an input");
  (void)pl_onnx_cache_input(own->graph, port, to, numbers);
  to->numbers = keep(own, numbers, n);
  free(numbers);
  return PL_OK;
}

static void take_tensor(const pl_onnx_tensor *tensor, pl_onnx_abstract *to) {
  to->type = tensor->type;
  to->rank = tensor->rank;
  memcpy(to->dims, tensor->dims, sizeof(to->dims));
}

/* Integers and single numbers are constants; larger real tensors are weights, whose numbers stay where they are. */
static pl_code take_initializers(pl_onnx_inference *own) {
  for (int32_t i = 0; i < own->graph->n_values; i++) {
    const pl_onnx_tensor *tensor = own->graph->values[i].initializer;
    if (tensor == NULL) continue;
    take_tensor(tensor, &own->values[i]);
    own->values[i].weight = tensor;
    if (pl_onnx_type_is_real(tensor->type) && tensor->n != 1 && !pl_onnx_is_rotation(own->graph, tensor) &&
        !pl_onnx_is_mask(own->graph, tensor))
      continue;
    PL_TRY(read_numbers(own, tensor, &own->values[i].numbers));
  }
  return PL_OK;
}

/* ---- nodes ---- */

bool pl_onnx_op_integers(const pl_onnx_op *op, int32_t k, const char *name, int64_t values[PL_ONNX_RANK_MAX * 8],
                         int32_t *n) {
  const pl_onnx_attribute *attribute = pl_onnx_attribute_find(op->node, name);
  const pl_onnx_abstract *in = k >= 0 && k < op->n_in ? op->in[k] : NULL;
  *n = 0;
  if (in != NULL) {
    if (in->numbers == NULL || in->rank > 1 || pl_onnx_elements(in) > PL_ONNX_RANK_MAX * 8) return false;
    *n = (int32_t)pl_onnx_elements(in);
    for (int32_t i = 0; i < *n; i++)
      values[i] = pl_onnx_integer(in->numbers[i]);
    return true;
  }
  if (attribute == NULL) return false;
  *n = attribute->n_integers;
  memcpy(values, attribute->integers, (size_t)*n * sizeof(*values));
  return true;
}

/* What can be done about an op that many files have. */
static const char *way_out_of(const char *op) {
  if (strcmp(op, "If") == 0)
    return "; a decoder that was merged from two (with and without a cache): take one of those, or export it without "
           "merging";
  if (strcmp(op, "LSTM") == 0 || strcmp(op, "GRU") == 0 || strcmp(op, "RNN") == 0)
    return "; of recurrent layers every token waits for the one before, which no op here does: leave them out, or put "
           "a convolution or attention in their place";
  if (strcmp(op, "Loop") == 0 || strcmp(op, "Scan") == 0)
    return "; loops are not read: export it with them unrolled (torch.onnx without scripting does)";
  return "";
}

static pl_code unknown(const pl_onnx_inference *own, int32_t index) {
  const pl_onnx_node *node = &own->graph->nodes[index];
  int32_t known = 0;
  for (int32_t i = 0; i < own->graph->n_nodes; i++)
    known += pl_onnx_shape_rule_of(own->graph->nodes[i].op) != NULL && own->graph->nodes[i].domain[0] == 0;
  return pl_fail(own->error, PL_UNSUPPORTED,
                 "%s: node '%s': op %s%s%s is not known; %d of the %d nodes are understood%s", own->graph->path,
                 node->name, node->domain, node->domain[0] != 0 ? "." : "", node->op, known, own->graph->n_nodes,
                 way_out_of(node->op));
}

/* Weights take part in arithmetic of constants where those have several numbers (tables of frequencies times
 * positions): then they are a table, and nothing that is trained. */
static bool is_table(const pl_onnx_inference *own, const pl_onnx_node *node) {
  static const char *const ops[] = {"Einsum", "Mul", "MatMul", "Cos", "Sin", NULL};
  bool arithmetic = false, constant = false;
  for (int i = 0; ops[i] != NULL; i++)
    arithmetic = arithmetic || strcmp(node->op, ops[i]) == 0;
  for (int32_t k = 0; arithmetic && k < node->n_inputs; k++) {
    if (node->inputs[k] == PL_ONNX_NONE) continue;
    const pl_onnx_abstract *in = &own->values[node->inputs[k]];
    constant = constant || (in->numbers != NULL && pl_onnx_elements(in) > 1) || node->n_inputs == 1;
    if (in->numbers == NULL && in->weight == NULL) return false;
  }
  return arithmetic && constant;
}

static pl_code take_inputs(pl_onnx_inference *own, pl_onnx_op *op) {
  enum { MOST = sizeof(op->in) / sizeof(op->in[0]) };
  bool table = is_table(own, op->node);
  bool scales = strcmp(op->node->op, "Resize") == 0 || strcmp(op->node->op, "Upsample") == 0; /* behind the picture */
  op->n_in = op->node->n_inputs;
  if (op->n_in > MOST) return pl_onnx_op_fail(op, "%d operands; at most %d are read", op->n_in, MOST);
  for (int32_t k = 0; k < op->n_in; k++) {
    int32_t value = op->node->inputs[k];
    op->in[k] = value == PL_ONNX_NONE ? NULL : &own->values[value];
    if (!(table || (scales && k > 0)) || op->in[k] == NULL || op->in[k]->numbers != NULL) continue;
    if (own->values[value].weight == NULL) continue;
    PL_TRY(read_numbers(own, own->values[value].weight, &own->values[value].numbers));
  }
  return PL_OK;
}

static bool knows_all(const pl_onnx_op *op) {
  bool any = false;
  for (int32_t k = 0; k < op->n_in; k++) {
    if (op->in[k] == NULL) continue;
    any = true;
    if (op->in[k]->numbers == NULL) return false;
  }
  return any;
}

/* Ops whose numbers follow from shapes alone. */
static bool knows_enough(const pl_onnx_op *op) {
  return strcmp(op->node->op, "Shape") == 0 || strcmp(op->node->op, "Size") == 0 || knows_all(op);
}

static pl_code evaluate(pl_onnx_inference *own, pl_onnx_op *op) {
  double n = pl_onnx_elements(&op->out);
  if (!knows_enough(op) || n > PL_ONNX_NUMBERS_MAX) return PL_OK;
  double *numbers = malloc(((size_t)n + 1) * sizeof(double));
  if (numbers == NULL) return pl_fail_memory(own->error, "a constant");
  if (pl_onnx_evaluate(op, numbers)) op->out.numbers = keep(own, numbers, (int64_t)n);
  free(numbers);
  return own->arena->failed ? pl_fail_memory(own->error, "a constant") : PL_OK;
}

/* Parts of Split are known part by part; all else has one output that matters. */
static pl_code infer_split(pl_onnx_inference *own, pl_onnx_op *op) {
  int64_t sizes[PL_ONNX_RANK_MAX * 8] = {0}, at = 0;
  int32_t n, axis = pl_onnx_axis(pl_onnx_integer_of(op->node, "axis", 0), op->in[0]->rank);
  if (axis < 0 || op->node->n_outputs == 0) return pl_onnx_op_fail(op, "its axis is out of range");
  int64_t whole = op->in[0]->dims[axis], parts = op->node->n_outputs, each = (whole + parts - 1) / parts;
  bool said = pl_onnx_op_integers(op, 1, "split", sizes, &n);
  if (said && n != op->node->n_outputs) return pl_onnx_op_fail(op, "%d sizes for %d parts", n, op->node->n_outputs);
  for (int32_t i = 0; i < op->node->n_outputs; i++) {
    int64_t size = said ? sizes[i] : whole - at < each ? whole - at : each;
    if (size < 0 || size > whole - at) return pl_onnx_op_fail(op, "its parts do not fit into %" PRId64, whole);
    at += size;
    if (op->node->outputs[i] == PL_ONNX_NONE) continue;
    pl_onnx_abstract *to = &own->values[op->node->outputs[i]];
    *to = (pl_onnx_abstract){.type = op->in[0]->type, .rank = op->in[0]->rank};
    memcpy(to->dims, op->in[0]->dims, sizeof(to->dims));
    to->dims[axis] = size;
  }
  return PL_OK;
}

static pl_code infer_constant(pl_onnx_inference *own, pl_onnx_op *op) {
  const pl_onnx_attribute *value = pl_onnx_attribute_find(op->node, "value");
  const pl_onnx_attribute *real = pl_onnx_attribute_find(op->node, "value_float");
  const pl_onnx_attribute *integer = pl_onnx_attribute_find(op->node, "value_int");
  const pl_onnx_attribute *integers = pl_onnx_attribute_find(op->node, "value_ints");
  if (value != NULL && value->tensor != NULL) {
    take_tensor(value->tensor, &op->out);
    return read_numbers(own, value->tensor, &op->out.numbers);
  }
  double numbers[64] = {real != NULL ? real->real : integer != NULL ? (double)integer->integer : 0};
  int32_t n = 1;
  for (int32_t i = 0; integers != NULL && i < (n = integers->n_integers); i++)
    numbers[i] = (double)integers->integers[i];
  if (real == NULL && integer == NULL && integers == NULL) return pl_onnx_op_fail(op, "its value is no tensor");
  op->out = (pl_onnx_abstract){.type = real != NULL ? PL_ONNX_FLOAT : PL_ONNX_INT64, .rank = integers != NULL};
  op->out.dims[0] = n;
  op->out.numbers = keep(own, numbers, n);
  return PL_OK;
}

static pl_code infer_node(pl_onnx_inference *own, int32_t index) {
  pl_onnx_op op = {.own = own, .node = &own->graph->nodes[index], .out = {.rank = -1}};
  pl_onnx_shape_rule rule = pl_onnx_shape_rule_of(op.node->op);
  bool standard = op.node->domain[0] == 0 || strcmp(op.node->domain, "ai.onnx") == 0;
  if (rule == NULL || !standard) return unknown(own, index);
  PL_TRY(take_inputs(own, &op));
  if (strcmp(op.node->op, "Constant") == 0) {
    PL_TRY(infer_constant(own, &op));
  } else {
    if (op.n_in == 0 || op.in[0] == NULL) return pl_onnx_op_fail(&op, "it has no operand");
    if (strcmp(op.node->op, "Split") == 0) return infer_split(own, &op);
    PL_TRY(rule(&op));
    op.out.weight = strcmp(op.node->op, "Identity") == 0 ? op.in[0]->weight : NULL;
    pl_onnx_samples_follow(&op);
    for (int32_t i = 0; i < op.out.rank; i++)
      if (op.out.dims[i] < 0) return pl_onnx_op_fail(&op, "dimension %d of its result is negative", i + 1);
    if (pl_onnx_elements(&op.out) > 0x1p53) return pl_onnx_op_fail(&op, "its result has too many elements to count");
    PL_TRY(evaluate(own, &op));
    own->handed_on[index] = pl_onnx_handed_on(&op);
  }
  if (op.node->n_outputs > 0 && op.node->outputs[0] != PL_ONNX_NONE) own->values[op.node->outputs[0]] = op.out;
  for (int32_t i = 1; i < op.node->n_outputs; i++) /* masks of Dropout, statistics of norms: nobody may read them */
    if (op.node->outputs[i] != PL_ONNX_NONE) own->values[op.node->outputs[i]].rank = -1;
  return PL_OK;
}

static pl_code check_read(pl_onnx_inference *own, const pl_onnx_node *node) {
  for (int32_t k = 0; k < node->n_inputs; k++)
    if (node->inputs[k] != PL_ONNX_NONE && own->values[node->inputs[k]].rank < 0)
      return pl_fail(own->error, PL_UNSUPPORTED,
                     "%s: node '%s' (%s) reads '%s', a second output that has no value here", own->graph->path,
                     node->name, node->op, own->graph->values[node->inputs[k]].name);
  return PL_OK;
}

static pl_code infer(const pl_onnx_graph *graph, const pl_onnx_binding *binding, const pl_onnx_abstract *exported,
                     pl_arena *arena, pl_onnx_inference *own, pl_error *error) {
  *own = (pl_onnx_inference){.graph = graph, .arena = arena, .exported = exported, .error = error};
  own->values = PL_TAKE(arena, pl_onnx_abstract, graph->n_values + 1);
  own->handed_on = PL_TAKE(arena, int32_t, graph->n_nodes + 1);
  if (arena->failed) return pl_fail_memory(error, "the shapes of a graph");
  for (int32_t i = 0; i < graph->n_nodes; i++)
    own->handed_on[i] = PL_ONNX_NONE;
  for (int32_t i = 0; i < graph->n_values; i++)
    own->values[i].rank = -1;
  for (int32_t i = 0; i < graph->n_inputs; i++)
    PL_TRY(bind_input(own, i, binding));
  for (int32_t i = 0; i < graph->n_inputs; i++)
    PL_TRY(take_cache_input(own, &graph->inputs[i]));
  PL_TRY(take_initializers(own));
  for (int32_t i = 0; i < graph->n_nodes; i++) {
    PL_TRY(check_read(own, &graph->nodes[i]));
    PL_TRY(infer_node(own, i));
  }
  return PL_OK;
}

pl_code pl_onnx_infer(const pl_onnx_graph *graph, const pl_onnx_binding *binding, pl_arena *arena,
                      pl_onnx_inference *own, pl_error *error) {
  pl_onnx_openness open = pl_onnx_openness_of(graph);
  if (open.open_batch || open.batch != 1 || binding->batch == 1) return infer(graph, binding, NULL, arena, own, error);
  pl_error why = PL_ERROR_INIT;
  PL_TRY(infer(graph, &(pl_onnx_binding){1, binding->seq}, NULL, arena, own, error));
  pl_code code = infer(graph, binding, own->values, arena, own, &why);
  own->error = error;
  return code == PL_OK ? code
                       : pl_fail(error, code,
                                 "%s; the file was exported for one sample, and the job has %" PRId64
                                 ": choose dp * mbs so, or export it with dynamic_axes",
                                 why.message, binding->batch);
}
