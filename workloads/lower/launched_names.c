/* Names of a block's kernels (launched_tensors.h): what frameworks call those around a parameter or a sum
 * (kernel_names.c), found by the op of the block's function that an op is, or was derived from; else the name of a row.
 */
#include <string.h>

#include "workloads/language/ir_table.h"
#include "workloads/lower/kernel_names.h"
#include "workloads/lower/launched_tensors.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* In the second run of a layer (forward_runs) names have a number behind them. */
static int32_t find_run(const pl_launching *own, const char *value) {
  const pl_ir_function *function = own->block->function;
  int32_t at = value != NULL ? pl_ir_value_find(function, value) : PL_IR_NONE;
  const char *end = value != NULL ? strrchr(value, '.') : NULL;
  bool runs_again = own->tape->framework->kernels.forward_runs > 1 && !own->backward;
  if (at != PL_IR_NONE || !runs_again || end == NULL || strspn(end + 1, "0123456789") != strlen(end + 1)) return at;
  for (int32_t i = 0; i < function->n_values; i++) {
    const char *name = function->values[i].name;
    if (strncmp(name, value, (size_t)(end - value)) == 0 && name[end - value] == '\0') return i;
  }
  return PL_IR_NONE;
}

/* Of the op of the block's function that makes a value of this name. */
static const pl_kernel_names *names_by(const pl_launching *own, const char *value) {
  const pl_ir_function *function = own->block->function;
  int32_t at = find_run(own, value);
  return at != PL_IR_NONE && function->values[at].op != PL_IR_NONE ? own->block->names[function->values[at].op] : NULL;
}

static const pl_kernel_names *names_of(const pl_launching *own, const pl_ir_launched_ops *of, const pl_ir_op *op) {
  const char *made = op->n_outputs > 0 ? of->f->values[op->first_output].name : NULL;
  if (strstr(pl_ir_row_at(op->row)->name, "attention") != NULL) return NULL; /* in one kernel: its row's */
  return names_by(own, own->backward ? op->origin : made);
}

/* The op that gives a kernel its name: a product, a norm, the choice of experts, else the last that has one. */
static const pl_ir_op *head_of(const pl_launching *own, const pl_ir_launched_ops *of, const pl_kernel_names **names) {
  const pl_ir_op *head = NULL;
  *names = NULL;
  for (int32_t i = 0; i < of->n; i++) {
    const pl_ir_op *op = &of->ops[i];
    const pl_kernel_names *found = names_of(own, of, op);
    if (found == NULL) continue;
    head = op;
    *names = found;
    const char *row = pl_ir_row_at(op->row)->name;
    if (is(op, "product") || strstr(row, "norm") != NULL || strncmp(row, "top_k", 5) == 0) break;
  }
  return head;
}

static const char *role_of(const pl_ir_launched_ops *of, const pl_ir_op *head, const pl_kernel_names *names) {
  if (is(head, "product")) return pl_ir_launched_is_of_weights(of, head) ? names->wgrad : names->backward;
  bool of_experts = is(head, "sum") && pl_ir_op_has_name(head, "over", pl_ir_name_of("x"));
  if (is(head, "sum") && !of_experts) return names->bias_grad;
  if (is(head, "accumulate") || is(head, "cast")) return NULL;
  return names->backward;
}

/* The first that computes; of additions to buffers these. */
static const char *row_of(const pl_ir_launched_ops *of) {
  static const char *const beside[] = {"constant", "cut", "rename", "cast", "accumulate", NULL};
  const char *added = NULL;
  for (int32_t i = 0; i < of->n; i++) {
    bool none = false;
    for (const char *const *row = beside; *row != NULL; row++)
      none = none || is(&of->ops[i], *row);
    if (!none) return pl_ir_row_at(of->ops[i].row)->name;
    if (is(&of->ops[i], "accumulate")) added = pl_ir_row_at(of->ops[i].row)->name;
  }
  return added != NULL ? added : of->n > 0 ? pl_ir_row_at(of->ops[0].row)->name : "kernel";
}

/* The first that reads a value, or what is gathered of it, and does not keep it; PL_IR_NONE: nobody does. */
static int32_t reader_of(const pl_launching *own, int32_t value) {
  for (int32_t i = own->f->values[value].op + 1; i < own->f->n_ops; i++)
    for (int32_t k = 0; k < own->f->ops[i].n_inputs; k++) {
      const pl_ir_op *op = &own->f->ops[i];
      if (op->inputs[k] != value || is(op, "keep")) continue;
      return pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE ? reader_of(own, op->first_output) : i;
    }
  return PL_IR_NONE;
}

/* Of a cast to the type of products: of a gradient it is handed first. NULL: it is none. */
static const char *cast_name(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  const pl_kernel_names *names;
  bool casts =
      op->n_outputs > 0 && pl_ir_element_is_narrow((pl_ir_element)own->f->values[op->first_output].type.element);
  int32_t reader = casts ? reader_of(own, op->first_output) : PL_IR_NONE;
  if (reader == PL_IR_NONE) return NULL;
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, &own->f->ops[reader]);
  if (head_of(own, &of, &names) == NULL) return NULL;
  if (!own->backward || own->again[index]) return names->cast;
  int32_t maker = own->f->values[op->inputs[0]].op;
  bool is_forward = maker != PL_IR_NONE && (own->again[maker] || own->f->ops[maker].n_inputs == 0);
  return is_forward ? names->cast_again : names->grad_cast;
}

/* ---- tokens on their way to experts and back ---- */

static bool is_routed(const pl_launching *own, int32_t value) {
  return pl_ir_is_routed(&own->routing, &own->f->values[value].type);
}

/* Copies by their expert of what has come, and by the device that they go to of answers. NULL: another kernel. */
static const char *sorting_name(const pl_launching *own, const pl_ir_op *op) {
  if (!is(op, "copy") || !is_routed(own, op->first_output)) return NULL;
  int32_t maker = own->f->values[op->inputs[0]].op;
  bool came = maker != PL_IR_NONE && pl_ir_row_at(own->f->ops[maker].row)->effect == PL_IR_COLLECTIVE;
  bool forward = !own->backward || own->again[op - own->f->ops];
  if (forward) return came ? "sort" : "unsort";
  return came ? "unsort_backward" : "sort_backward";
}

/* NULL: no exchange between the devices that hold experts. */
static const char *exchange_name(const pl_launching *own, const pl_ir_op *op) {
  if (!is(op, "all_to_all")) return NULL;
  bool to = pl_ir_op_has_name(op, "to", pl_ir_name_of("x")), from = pl_ir_op_has_name(op, "from", pl_ir_name_of("x"));
  bool forward = !own->backward || own->again[op - own->f->ops];
  if (!to && !from) return NULL;
  if (!is_routed(own, op->inputs[0])) return forward ? "routing_exchange" : "routing_exchange_backward";
  if (forward) return to ? "dispatch" : "combine";
  return to ? "combine_backward" : "dispatch_backward";
}

/* ---- pictures ---- */

/* The usual filters have names of their own; NULL: no convolution. */
static const pl_kernel_names *convolution_names(const pl_ir_launched_ops *of) {
  static const struct {
    int64_t height, width;
    pl_kernel_names names;
  } known[] = {{1, 1, PL_LINEAR_NAMES("conv1x1")}, {3, 3, PL_LINEAR_NAMES("conv3x3")},
               {5, 5, PL_LINEAR_NAMES("conv5x5")}, {7, 7, PL_LINEAR_NAMES("conv7x7")},
               {1, 7, PL_LINEAR_NAMES("conv1x7")}, {7, 1, PL_LINEAR_NAMES("conv7x1")},
               {1, 3, PL_LINEAR_NAMES("conv1x3")}, {3, 1, PL_LINEAR_NAMES("conv3x1")}};
  static const pl_kernel_names other = PL_LINEAR_NAMES("conv");
  for (int32_t i = 0; i < of->n; i++) {
    const pl_ir_op *op = &of->ops[i];
    if (strncmp(pl_ir_row_at(op->row)->name, "convolution", 11) != 0) continue;
    bool weights = is(op, "convolution_backward_weights");
    const pl_ir_type *weight = &of->f->values[weights ? op->first_output : op->inputs[1]].type;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
      if (known[k].height == pl_ir_type_extent(weight, "i") && known[k].width == pl_ir_type_extent(weight, "j"))
        return &known[k].names;
    return &other;
  }
  return NULL;
}

static const char *convolution_name(const pl_launching *own, int32_t index, const pl_ir_launched_ops *of) {
  const pl_kernel_names *names = convolution_names(of);
  if (names == NULL) return NULL;
  if (!own->backward || own->again[index]) return names->forward;
  for (int32_t i = 0; i < of->n; i++)
    if (is(&of->ops[i], "convolution_backward_weights")) return names->wgrad;
  return names->backward;
}

/* ---- kernels and collectives ---- */

const char *pl_launching_name(const pl_launching *own, int32_t index) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, &own->f->ops[index]);
  const pl_kernel_names *names;
  const char *cast = cast_name(own, index);
  if (cast != NULL) return cast;
  const pl_ir_op *head = head_of(own, &of, &names);
  const char *row = row_of(&of), *name = NULL;
  bool forward = !own->backward || own->again[index];
  const char *sorting = sorting_name(own, &own->f->ops[index]);
  if (sorting != NULL) return sorting;
  const char *convolution = convolution_name(own, index, &of);
  if (convolution != NULL) return convolution;
  if (!forward && of.n == 1 && is(&of.ops[0], "add")) return "gradient_add";
  if (head != NULL) name = forward ? names->forward : role_of(&of, head, names);
  return name != NULL ? name : row;
}

const char *pl_launching_bias_name(const pl_launching *own, int32_t index) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, &own->f->ops[index]);
  const pl_kernel_names *names;
  return head_of(own, &of, &names) != NULL ? names->bias : NULL;
}

/* Of a gradient that of the value that it is one of: "dmlp.up.2" of mlp.up. */
const char *pl_launching_value_name(const pl_launching *own, int32_t value, const char *otherwise) {
  enum { STEM = 64 };
  char stem[STEM];
  const pl_ir_function *function = own->block->function;
  const char *name = own->f->values[value].name;
  if (!own->backward || name[0] != 'd' || strlen(name) >= STEM) return otherwise;
  memcpy(stem, name + 1, strlen(name));
  for (;;) {
    if (strcmp(stem, "x") == 0) return "input";
    const pl_kernel_names *names = names_by(own, stem);
    int32_t at = pl_ir_value_find(function, stem), maker = at != PL_IR_NONE ? function->values[at].op : PL_IR_NONE;
    if (names != NULL) return names->forward;
    while (maker != PL_IR_NONE && (is(&function->ops[maker], "rename") || is(&function->ops[maker], "cut")))
      maker = function->values[function->ops[maker].inputs[0]].op;
    if (maker != PL_IR_NONE && is(&function->ops[maker], "param")) {
      uint32_t of = pl_launching_parameter(own, function->ops[maker].path);
      return of != PL_NONE ? own->tape->tensors[of].name : otherwise;
    }
    if (maker != PL_IR_NONE && own->block->names[maker] != NULL) return own->block->names[maker]->forward;
    if (maker != PL_IR_NONE) return pl_ir_row_at(function->ops[maker].row)->name;
    char *last = strrchr(stem, '.');
    if (last == NULL || last[1] < '0' || last[1] > '9') return otherwise;
    *last = '\0';
  }
}

/* By the op of the block's function that reads it. */
const char *pl_launching_parameter_name(const pl_launching *own, const char *path) {
  const pl_ir_function *function = own->block->function;
  for (int32_t i = 0; i < function->n_ops; i++)
    for (int32_t k = 0; k < function->ops[i].n_inputs; k++) {
      int32_t maker = function->values[function->ops[i].inputs[k]].op;
      bool reads =
          maker != PL_IR_NONE && is(&function->ops[maker], "param") && strcmp(function->ops[maker].path, path) == 0;
      const pl_ir_launched_ops of = {function, &function->ops[i], 1};
      const pl_kernel_names *names = own->block->names[i], *convolution = reads ? convolution_names(&of) : NULL;
      if (convolution != NULL) return convolution->forward;
      if (reads && names != NULL && is(&function->ops[i], "add") && names->bias != NULL) return names->bias;
      if (reads) return names != NULL ? names->forward : pl_ir_row_at(function->ops[i].row)->name;
    }
  return "parameter";
}

/* The op whose partial sums those of a value are: what has handed them on is passed. */
static int32_t partial_of(const pl_launching *own, int32_t value) {
  for (int32_t op = own->f->values[value].op; op != PL_IR_NONE;) {
    const pl_ir_op *is_one = &own->f->ops[op];
    const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, is_one);
    for (int32_t i = 0; i < of.n; i++)
      if (is(&of.ops[i], "product") || is(&of.ops[i], "embedding")) return op;
    int32_t next = PL_IR_NONE;
    for (int32_t i = 0; i < is_one->n_inputs; i++) {
      int32_t maker = own->f->values[is_one->inputs[i]].op;
      bool reads = maker == PL_IR_NONE || own->f->ops[maker].n_inputs == 0;
      if (!reads && (!own->backward || !own->again[maker])) next = maker;
    }
    op = next;
  }
  return own->f->values[value].op;
}

/* Of keys and values, and of their gradients. */
static const char *context_name(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  int32_t reader = own->last[op->first_output];
  if (!is(op, "all_gather")) return "keys_values_reduce_scatter";
  bool forward = !own->backward || (reader != PL_IR_NONE && reader < own->f->n_ops && own->again[reader]);
  return forward ? "keys_values_exchange" : "keys_values_regather";
}

/* Of the op that makes what is summed, or reads what is gathered. */
const char *pl_launching_collective_name(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  const char *row = pl_ir_row_at(op->row)->name, *name = NULL;
  const char *exchange = exchange_name(own, op);
  if (exchange != NULL) return exchange;
  bool gathers = is(op, "all_gather");
  if (pl_ir_text_of(op, "over")[0] == 'c') return context_name(own, index);
  int32_t of = gathers ? own->last[op->first_output] : partial_of(own, op->inputs[0]);
  if (of == PL_IR_NONE || of >= own->f->n_ops) return row;
  const pl_ir_launched_ops ops = pl_ir_launched_by(own->kernels, own->f, &own->f->ops[of]);
  const pl_kernel_names *names;
  if (head_of(own, &ops, &names) == NULL) return row;
  bool forward = !own->backward || own->again[of];
  if (gathers)
    name = forward ? names->gather : own->again[index] ? names->regather : names->grad_all_gather;
  else if (is(op, "all_reduce"))
    name = forward ? names->all_reduce : names->input_all_reduce;
  else if (is(op, "reduce_scatter"))
    name = forward ? names->reduce_scatter : names->input_reduce_scatter;
  return name != NULL ? name : row;
}
