/* A graph as one function of the program language, in two walks over its nodes: RELATE says which axes are the same
 * (axes.h), WRITE appends ops. Layers become functions behind that (outline.h). Internal to workloads/onnx.
 */
#ifndef PL_WORKLOADS_ONNX_FLAT_H
#define PL_WORKLOADS_ONNX_FLAT_H

#include "workloads/language/ir_table.h"
#include "workloads/onnx/axes.h"
#include "workloads/onnx/match.h"

struct pl_flat;
struct pl_step;

typedef struct pl_flat_row {
  const char *op;
  pl_code (*relate)(struct pl_flat *own, struct pl_step *step);
  pl_code (*write)(struct pl_flat *own, struct pl_step *step);
} pl_flat_row;

enum { PL_STEP_INPUTS_MAX = 16, PL_FLAT_TABLES_MAX = 256 };

/* A node that is needed, or what it was matched with. */
typedef struct pl_step {
  const pl_onnx_node *node;
  const pl_match *match; /* NULL: the node as it is */
  const pl_flat_row *row;
  const int32_t *in; /* values; PL_ONNX_NONE: left out */
  int32_t n_in, out; /* out: the first output */
  /* Axes that the node's operands do not have under these names: a product's columns, a copy of the operand's where
   * rows have that too; a head's elements where they are several dimensions. */
  int32_t column, depth, values;
  bool irregular;                  /* a reshape that no list of leaves says */
  int32_t taken[PL_ONNX_RANK_MAX]; /* a reshape's: leaves of the operand in each axis of the result */
} pl_step;

typedef struct pl_flat {
  const pl_onnx_inference *inference;
  const pl_onnx_graph *graph;
  pl_match *matches;
  pl_step *steps;
  int32_t n_steps;
  pl_axes axes;
  int32_t *axis; /* PL_ONNX_RANK_MAX by value */
  bool *has_axes;
  bool *weight;          /* by value: made of weights alone */
  int32_t batch, tokens; /* the axes of all inputs; PL_AXIS_NONE */
  /* writing */
  pl_ir_module *module;
  pl_ir_function *function;
  int32_t *made; /* by value of the graph; PL_IR_NONE */
  pl_ir_element element;
  int64_t *below;                           /* by value: integers of it are less; 0: not known */
  const double *tables[PL_FLAT_TABLES_MAX]; /* numbers of "table.0" ... */
  int32_t n_tables;
  const pl_step *writing;
  const struct pl_flat *larger; /* NULL: none */
  pl_error *error;
} pl_flat;

/* Of one batch and sequence length. Memory from the inference's arena. `larger`: the same graph related for more
 * samples, or NULL. Of a single sample extents do not tell which axis of a reshape it belongs to; those of several do.
 */
pl_code pl_flat_relate(pl_flat *own, const pl_onnx_inference *inference, int32_t output, const pl_flat *larger,
                       pl_error *error);
/* Whether the value is what a product with weights, and perhaps a bias, makes: logits. */
bool pl_flat_is_logits(const pl_flat *own, int32_t value);
/* Appends the ops to `function` of `module`. */
pl_code pl_flat_write(pl_flat *own, pl_ir_module *module, pl_ir_function *function, pl_ir_element element);

/* ---- relating ---- */
const pl_onnx_abstract *pl_flat_shape(const pl_flat *own, int32_t value);
/* Axes of a value; those of constants and weights are made when first asked for. */
int32_t *pl_flat_axes(pl_flat *own, int32_t value);
pl_onnx_op pl_flat_op(const pl_flat *own, const pl_step *step); /* as the shape rules see it */
pl_code pl_flat_fail(const pl_flat *own, const pl_step *step, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool pl_flat_is_weight(const pl_flat *own, int32_t value);
bool pl_flat_is_constant(const pl_flat *own, int32_t value); /* its numbers are known */
bool pl_flat_scalar(const pl_flat *own, int32_t value, double *number);
/* The value that this one is under another shape or type: an input, as a rule. */
int32_t pl_flat_source(const pl_flat *own, int32_t value);
/* Leaves of all axes of a value from `first` on, `n` axes; false: too many. */
bool pl_flat_leaves(pl_flat *own, int32_t value, int32_t first, int32_t n, pl_axis_list *list);

/* ---- writing ---- */
/* The value as it was written; a weight, table or input is written where it is first read. PL_IR_NONE: none. */
pl_code pl_flat_value(pl_flat *own, const pl_step *step, int32_t value, int32_t *made);
const pl_ir_type *pl_flat_type(const pl_flat *own, int32_t made);
bool pl_flat_has(const pl_flat *own, int32_t made, int32_t leaf); /* its dimension is there, by name */
int32_t pl_flat_rename(pl_flat *own, int32_t made, pl_ir_name from, pl_ir_name to);
/* `value`, its dimensions along axis `from` called as those of axis `to` are. */
pl_code pl_flat_conform(pl_flat *own, const pl_step *step, int32_t from, int32_t to, int32_t *made);
/* All axes of `value`, aligned at the last, as those of the step's output. */
pl_code pl_flat_conformed(pl_flat *own, const pl_step *step, int32_t value, int32_t *made);
/* pl_ir_op_infer and pl_ir_op_typed, of operands that may not fit: PL_IR_NONE, and the error names the node. */
int32_t pl_flat_infer(pl_flat *own, const char *row, const char *name, int32_t n_inputs, const int32_t *inputs,
                      int32_t n_attributes, const pl_ir_attribute *attributes);
int32_t pl_flat_typed(pl_flat *own, const char *row, const char *name, const char *path, int32_t n_inputs,
                      const int32_t *inputs, const pl_ir_type *type, int32_t n_attributes,
                      const pl_ir_attribute *attributes);
int32_t pl_flat_op1(pl_flat *own, const char *row, const char *name, int32_t a, int32_t n,
                    const pl_ir_attribute *attributes);
int32_t pl_flat_op2(pl_flat *own, const char *row, const char *name, int32_t a, int32_t b, int32_t n,
                    const pl_ir_attribute *attributes);
int32_t pl_flat_over(pl_flat *own, const char *row, const char *name, int32_t a, const pl_axis_list *over);
int32_t pl_flat_scale(pl_flat *own, int32_t a, double by);
/* The dimensions of these leaves as one of this name, outermost first; nothing where it has none of them. */
pl_code pl_flat_join(pl_flat *own, const pl_step *step, const pl_axis_list *leaves, pl_ir_name name, int32_t *made);
/* The other way: dimension `name` as those of the leaves. */
pl_code pl_flat_split(pl_flat *own, const pl_step *step, pl_ir_name name, const pl_axis_list *leaves, int32_t *made);
/* a with all dimensions that b has. */
int32_t pl_flat_spread(pl_flat *own, int32_t a, int32_t b);
/* Operands of an elementwise op with broadcasting: a has what b has. */
int32_t pl_flat_pair(pl_flat *own, const char *row, const char *name, int32_t a, int32_t b);
int32_t pl_flat_constant(pl_flat *own, double number, int32_t like);
int32_t pl_flat_add_number(pl_flat *own, int32_t a, double number);
pl_ir_dim pl_flat_dim(const pl_flat *own, int32_t leaf);
/* As many names as there are leaves that `made` has; 0: none. */
int32_t pl_flat_names(const pl_flat *own, int32_t made, const pl_axis_list *leaves, pl_ir_name *names);
const char *pl_flat_name(const pl_flat *own, const pl_step *step);
void pl_flat_set(pl_flat *own, const pl_step *step, int32_t made);
/* Places first .. first + count - 1 of axis `from`, which the result has as axis `to` (PL_AXIS_NONE: one place). */
pl_code pl_flat_cut(pl_flat *own, const pl_step *step, int32_t from, int32_t to, int64_t first, int64_t count,
                    int32_t *made);
/* The weight that a value is, or is a copy of, as one of its own. */
pl_code pl_flat_weight(pl_flat *own, int32_t value, int32_t *made);
/* A table of numbers of the file, or made of them: data that is read, and not trained. */
pl_code pl_flat_table(pl_flat *own, int32_t value, int32_t *made);
/* Integers of the file that rows of a weight are looked up by. */
pl_code pl_flat_list(pl_flat *own, int32_t value, int32_t *made);

extern const pl_flat_row pl_flat_pointwise[], pl_flat_places[], pl_flat_picks[], pl_flat_products[], pl_flat_pictures[],
    pl_flat_pads[], pl_flat_resizes[];

/* An axis that several ops share code for. */
pl_code pl_flat_relate_same(pl_flat *own, pl_step *step);
pl_code pl_flat_relate_elementwise(pl_flat *own, pl_step *step);
pl_code pl_flat_relate_attention(pl_flat *own, pl_step *step);
pl_code pl_flat_write_attention(pl_flat *own, pl_step *step);
/* Behind all relating, in front of names. */
pl_code pl_flat_settle_attention(pl_flat *own, pl_step *step);

#endif
