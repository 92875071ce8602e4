/* See workloads/onnx/flat.h: which nodes are needed, how their axes hang together, what is cut. */
#include "workloads/onnx/flat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

pl_code pl_flat_fail(const pl_flat *own, const pl_step *step, const char *format, ...) {
  char text[512];
  va_list rest;
  va_start(rest, format);
  vsnprintf(text, sizeof(text), format, rest);
  va_end(rest);
  return pl_fail(own->error, PL_UNSUPPORTED, "%s: node '%s' (%s): %s", own->graph->path, step->node->name,
                 step->node->op, text);
}

const pl_onnx_abstract *pl_flat_shape(const pl_flat *own, int32_t value) {
  return &own->inference->values[value];
}

bool pl_flat_is_constant(const pl_flat *own, int32_t value) {
  return pl_flat_shape(own, value)->numbers != NULL;
}

bool pl_flat_is_weight(const pl_flat *own, int32_t value) {
  return own->weight[value];
}

bool pl_flat_scalar(const pl_flat *own, int32_t value, double *number) {
  const pl_onnx_abstract *shape = pl_flat_shape(own, value);
  if (shape->numbers == NULL || pl_onnx_elements(shape) != 1) return false;
  *number = shape->numbers[0];
  return true;
}

pl_onnx_op pl_flat_op(const pl_flat *own, const pl_step *step) {
  pl_onnx_op op = {.node = step->node, .n_in = step->n_in};
  for (int32_t k = 0; k < step->n_in; k++)
    op.in[k] = step->in[k] == PL_ONNX_NONE ? NULL : pl_flat_shape(own, step->in[k]);
  op.out = *pl_flat_shape(own, step->out);
  return op;
}

int32_t pl_flat_source(const pl_flat *own, int32_t value) {
  static const char *const views[] = {"Reshape",   "Flatten",  "Squeeze", "Unsqueeze", "Expand",
                                      "Transpose", "Identity", "Cast",    NULL};
  for (;;) {
    if (own->graph->values[value].node == PL_ONNX_NONE) return value;
    const pl_onnx_node *node = &own->graph->nodes[own->graph->values[value].node];
    bool view = false;
    for (int i = 0; views[i] != NULL; i++)
      view = view || strcmp(node->op, views[i]) == 0;
    if (!view || node->n_inputs == 0 || node->inputs[0] == PL_ONNX_NONE) return value;
    value = node->inputs[0];
  }
}

/* ---- axes of values ---- */

/* Axes of one weight are never one: a square matrix has rows and columns. */
static void keep_apart(pl_flat *own, const int32_t *axes, int32_t rank) {
  for (int32_t i = 1; i < rank; i++)
    for (int32_t k = 0; k < i; k++)
      pl_axis_keep_apart(&own->axes, axes[i], axes[k]);
}

int32_t *pl_flat_axes(pl_flat *own, int32_t value) {
  int32_t *axes = &own->axis[(size_t)value * PL_ONNX_RANK_MAX];
  const pl_onnx_abstract *shape = pl_flat_shape(own, value);
  if (own->has_axes[value]) return axes;
  own->has_axes[value] = true;
  for (int32_t i = 0; i < shape->rank; i++)
    axes[i] = shape->dims[i] == 1 ? PL_AXIS_NONE : pl_axis_new(&own->axes, shape->dims[i]);
  if (shape->numbers == NULL) keep_apart(own, axes, shape->rank);
  return axes;
}

bool pl_flat_leaves(pl_flat *own, int32_t value, int32_t first, int32_t n, pl_axis_list *list) {
  const int32_t *axes = pl_flat_axes(own, value);
  for (int32_t i = first; i < first + n; i++)
    if (!pl_axis_leaves(&own->axes, axes[i], list)) return false;
  return true;
}

static void relate_inputs(pl_flat *own) {
  own->batch = own->tokens = PL_AXIS_NONE;
  for (int32_t i = 0; i < own->graph->n_inputs; i++) {
    const pl_onnx_port *port = &own->graph->inputs[i];
    int32_t *axes = &own->axis[(size_t)port->value * PL_ONNX_RANK_MAX];
    const pl_onnx_abstract *shape = pl_flat_shape(own, port->value);
    if (shape->numbers != NULL || pl_onnx_is_cache(own->graph, port)) continue; /* nobody reads them */
    own->has_axes[port->value] = true;
    for (int32_t k = 0; k < shape->rank; k++) {
      bool tokens = pl_onnx_counts_tokens(port, k);
      bool batch = pl_onnx_counts_samples(port, k);
      int32_t *shared = batch ? &own->batch : &own->tokens;
      axes[k] = PL_AXIS_NONE;
      if (batch || tokens) {
        if (*shared == PL_AXIS_NONE) *shared = pl_axis_new(&own->axes, shape->dims[k]);
        axes[k] = *shared;
        if (axes[k] != PL_AXIS_NONE)
          pl_axis_mark(&own->axes, axes[k], PL_AXIS_FIXED | (batch ? PL_AXIS_BATCH : PL_AXIS_TOKENS));
      } else if (shape->dims[k] > 1) {
        axes[k] = pl_axis_new(&own->axes, shape->dims[k]);
      }
    }
  }
}

/* ---- which nodes ---- */

static const pl_flat_row *find_row(const char *op) {
  static const pl_flat_row *const tables[] = {pl_flat_pointwise, pl_flat_places, pl_flat_picks,  pl_flat_products,
                                              pl_flat_pictures,  pl_flat_pads,   pl_flat_resizes};
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
    for (const pl_flat_row *row = tables[t]; row->op != NULL; row++)
      if (strcmp(row->op, op) == 0) return row;
  return NULL;
}

static const char *matched_name(pl_match_kind kind) {
  static const char *const names[] = {[PL_MATCH_NONE] = "",
                                      [PL_MATCH_LAYER_NORM] = "LayerNormalization",
                                      [PL_MATCH_RMS_NORM] = "RMSNormalization",
                                      [PL_MATCH_GELU] = "Gelu",
                                      [PL_MATCH_EXACT_GELU] = "Gelu",
                                      [PL_MATCH_SILU] = "Swish",
                                      [PL_MATCH_ROTARY] = "RotaryEmbedding",
                                      [PL_MATCH_ATTENTION] = "Attention"};
  return names[kind];
}

static pl_step step_of(const pl_flat *own, int32_t node) {
  const pl_onnx_node *of = &own->graph->nodes[node];
  const pl_match *match = own->matches[node].kind != PL_MATCH_NONE ? &own->matches[node] : NULL;
  const int32_t *handed_on = &own->inference->handed_on[node];
  if (match == NULL && *handed_on != PL_ONNX_NONE)
    return (pl_step){.node = of,
                     .row = find_row("Dropout"), /* does nothing */
                     .in = handed_on,
                     .n_in = 1,
                     .out = of->outputs[0],
                     .column = PL_AXIS_NONE,
                     .depth = PL_AXIS_NONE,
                     .values = PL_AXIS_NONE};
  return (pl_step){.node = of,
                   .match = match,
                   .row = find_row(match != NULL ? matched_name(match->kind) : of->op),
                   .in = match != NULL ? match->in : of->inputs,
                   .n_in = match != NULL ? match->n_in : of->n_inputs,
                   .out = of->n_outputs > 0 ? of->outputs[0] : PL_ONNX_NONE,
                   .column = PL_AXIS_NONE,
                   .depth = PL_AXIS_NONE,
                   .values = PL_AXIS_NONE};
}

/* Operands that are read for their numbers alone (shapes, axes) have no axes. */
static pl_code choose_nodes(pl_flat *own, int32_t output) {
  bool *needed = PL_TAKE(own->axes.arena, bool, own->graph->n_values + 1);
  if (needed == NULL) return pl_fail_memory(own->error, "an ONNX graph");
  needed[output] = true;
  int32_t first = own->graph->n_nodes;
  for (int32_t i = own->graph->n_nodes - 1; i >= 0; i--) {
    const pl_onnx_node *node = &own->graph->nodes[i];
    bool is_needed = false;
    for (int32_t k = 0; k < node->n_outputs; k++)
      is_needed = is_needed || (node->outputs[k] != PL_ONNX_NONE && needed[node->outputs[k]] &&
                                !pl_flat_is_constant(own, node->outputs[k]));
    if (!is_needed) continue;
    pl_step step = step_of(own, i);
    if (step.row == NULL)
      return pl_flat_fail(own, &step, "is understood on constants only, and its operands follow from data");
    for (int32_t k = 0; k < step.n_in; k++)
      if (step.in[k] != PL_ONNX_NONE) needed[step.in[k]] = true;
    own->steps[--first] = step;
  }
  own->n_steps = own->graph->n_nodes - first;
  memmove(own->steps, own->steps + first, (size_t)own->n_steps * sizeof(*own->steps));
  return PL_OK;
}

/* What is made of weights and constants alone, a weight among them. */
static void find_weights(pl_flat *own) {
  for (int32_t v = 0; v < own->graph->n_values; v++)
    own->weight[v] = own->graph->values[v].initializer != NULL && !pl_flat_is_constant(own, v);
  for (int32_t i = 0; i < own->n_steps; i++) {
    bool all = true, any = false;
    for (int32_t k = 0; k < own->steps[i].n_in; k++) {
      int32_t in = own->steps[i].in[k];
      if (in == PL_ONNX_NONE) continue;
      any = any || own->weight[in];
      all = all && (own->weight[in] || pl_flat_is_constant(own, in));
    }
    if (own->steps[i].out != PL_ONNX_NONE) own->weight[own->steps[i].out] = any && all;
  }
}

/* ---- what tensor parallelism cuts ---- */

/* Columns of a product with weights are cut where they are not the rows of all others; rows then follow. The outermost
 * leaf is: heads, of which each has several elements. */
static void mark_cuts(pl_flat *own) {
  for (int32_t i = 0; i < own->n_steps; i++) {
    const pl_step *step = &own->steps[i];
    bool gemm = strcmp(step->row->op, "Gemm") == 0;
    if (!gemm && strcmp(step->row->op, "MatMul") != 0) continue;
    if (!pl_flat_is_weight(own, step->in[1])) continue;
    const int32_t *b = pl_flat_axes(own, step->in[1]);
    int32_t rank = pl_flat_shape(own, step->in[1])->rank;
    bool turned = gemm && pl_onnx_integer_of(step->node, "transB", 0) != 0;
    pl_axis_list rows = {0}, columns = {0};
    (void)pl_axis_leaves(&own->axes, b[turned ? 1 : rank - 2], &rows);
    (void)pl_axis_leaves(&own->axes, b[turned ? 0 : rank - 1], &columns);
    bool cut = false;
    for (int32_t k = 0; k < rows.n; k++)
      cut = cut || pl_axis_is(&own->axes, rows.leaf[k], PL_AXIS_CUT);
    for (int32_t k = 0; k < columns.n; k++) {
      int32_t leaf = columns.leaf[k];
      if (cut) pl_axis_mark(&own->axes, leaf, PL_AXIS_FIXED);
      if (cut || pl_axis_is(&own->axes, leaf, PL_AXIS_FIXED)) continue;
      pl_axis_mark(&own->axes, leaf, PL_AXIS_CUT | (k + 1 < columns.n ? PL_AXIS_HEADS : 0));
      for (k++; k < columns.n; k++)
        pl_axis_mark(&own->axes, columns.leaf[k], PL_AXIS_FIXED | (k + 1 < columns.n ? PL_AXIS_QUERIES : 0));
    }
  }
}

/* ---- names ---- */

static bool push_new(const pl_flat *own, int32_t leaf, pl_axis_list *list) {
  for (int32_t i = 0; i < list->n; i++)
    if (pl_axis_group(&own->axes, list->leaf[i]) == pl_axis_group(&own->axes, leaf)) return true;
  if (list->n == PL_AXIS_LEAVES_MAX) return false;
  list->leaf[list->n++] = leaf;
  return true;
}

static bool push_all(const pl_flat *own, int32_t axis, pl_axis_list *list) {
  pl_axis_list of = {0};
  bool all = pl_axis_leaves(&own->axes, axis, &of);
  for (int32_t i = 0; i < of.n && all; i++)
    all = push_new(own, of.leaf[i], list);
  return all;
}

/* All leaves that an op sees at once. */
static bool sees(pl_flat *own, const pl_step *step, pl_axis_list *list) {
  const int32_t extra[] = {step->column, step->depth, step->values};
  for (int32_t k = 0; k <= step->n_in; k++) {
    int32_t value = k < step->n_in ? step->in[k] : step->out;
    if (value == PL_ONNX_NONE || !own->has_axes[value]) continue;
    for (int32_t i = 0; i < pl_flat_shape(own, value)->rank; i++)
      if (!push_all(own, pl_flat_axes(own, value)[i], list)) return false;
  }
  for (int32_t i = 0; i < 3; i++)
    if (!push_all(own, extra[i], list)) return false;
  return true;
}

static pl_code name_axes(pl_flat *own) {
  pl_axis_list *lists = PL_TAKE(own->axes.arena, pl_axis_list, own->n_steps + 1);
  if (lists == NULL) return pl_fail_memory(own->error, "an ONNX graph");
  for (int32_t i = 0; i < own->n_steps; i++)
    if (!sees(own, &own->steps[i], &lists[i]))
      return pl_flat_fail(own, &own->steps[i], "its operands have too many dimensions");
  pl_axes_name_all(&own->axes, own->n_steps, lists);
  return own->axes.arena->failed ? pl_fail_memory(own->error, "an ONNX graph") : PL_OK;
}

static const pl_step *maker(const pl_flat *own, int32_t value) {
  for (int32_t i = own->n_steps - 1; i >= 0; i--)
    if (own->steps[i].out == value) return &own->steps[i];
  return NULL;
}

bool pl_flat_is_logits(const pl_flat *own, int32_t value) {
  const pl_step *step = maker(own, value);
  while (step != NULL && (strcmp(step->row->op, "Cast") == 0 || strcmp(step->row->op, "Identity") == 0))
    step = maker(own, step->in[0]);
  for (int32_t k = 0; step != NULL && strcmp(step->row->op, "Add") == 0 && step->n_in == 2; k++) {
    if (k == 2) return false;
    if (pl_flat_is_weight(own, step->in[k])) step = maker(own, step->in[1 - k]);
  }
  bool product = step != NULL && (strcmp(step->row->op, "MatMul") == 0 || strcmp(step->row->op, "Gemm") == 0);
  return product && pl_flat_is_weight(own, step->in[1]) && pl_flat_shape(own, value)->rank >= 2;
}

pl_code pl_flat_relate(pl_flat *own, const pl_onnx_inference *inference, int32_t output, const pl_flat *larger,
                       pl_error *error) {
  const pl_onnx_graph *graph = inference->graph;
  pl_arena *arena = inference->arena;
  *own = (pl_flat){.inference = inference, .graph = graph, .axes = {.arena = arena}, .error = error};
  own->axis = PL_TAKE(arena, int32_t, (size_t)graph->n_values * PL_ONNX_RANK_MAX + 1);
  own->has_axes = PL_TAKE(arena, bool, graph->n_values + 1);
  own->weight = PL_TAKE(arena, bool, graph->n_values + 1);
  own->made = PL_TAKE(arena, int32_t, graph->n_values + 1);
  own->below = PL_TAKE(arena, int64_t, graph->n_values + 1);
  own->steps = PL_TAKE(arena, pl_step, graph->n_nodes + 1);
  if (arena->failed) return pl_fail_memory(error, "an ONNX graph");
  PL_TRY(pl_onnx_match(inference, arena, &own->matches, error));
  PL_TRY(choose_nodes(own, output));
  if (larger != NULL && larger->n_steps == own->n_steps) own->larger = larger;
  find_weights(own);
  relate_inputs(own);
  for (int32_t i = 0; i < own->n_steps; i++) {
    PL_TRY(own->steps[i].row->relate(own, &own->steps[i]));
    if (own->steps[i].out != PL_ONNX_NONE) own->has_axes[own->steps[i].out] = true;
    if (arena->failed) return pl_fail_memory(error, "an ONNX graph");
  }
  for (int32_t i = 0; i < own->n_steps; i++)
    if (strcmp(own->steps[i].row->op, "Attention") == 0) PL_TRY(pl_flat_settle_attention(own, &own->steps[i]));
  if (pl_flat_is_logits(own, output))
    pl_axis_mark(&own->axes, pl_flat_axes(own, output)[pl_flat_shape(own, output)->rank - 1], PL_AXIS_VOCABULARY);
  mark_cuts(own);
  return name_axes(own);
}

pl_code pl_flat_write(pl_flat *own, pl_ir_module *module, pl_ir_function *function, pl_ir_element element) {
  own->module = module;
  own->function = function;
  own->element = element;
  for (int32_t v = 0; v < own->graph->n_values; v++)
    own->made[v] = PL_IR_NONE;
  for (int32_t i = 0; i < own->n_steps; i++) {
    own->writing = &own->steps[i];
    PL_TRY(own->steps[i].row->write(own, &own->steps[i]));
    if (own->error->code != PL_OK) return own->error->code;
    if (module->arena->failed) return pl_fail_memory(own->error, "the program of an ONNX graph");
  }
  return PL_OK;
}
