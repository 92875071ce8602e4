/* GELU's form with tanh in PyTorch ops (`fused_gelu` of a profile): 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))),
 * 8 kernels forward and 11 backward, of which the op itself stands for the last. Autograd keeps the tanh and both
 * factors of the last product beside x. Under autocast the cube, all that is made of it and its derivative are fp32,
 * and the casts are here that products around it make (kernel_autocast.c). See workloads/fuse/kernel_stepping.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_groups.h"
#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_again.h"

static const char *const reason = "gelu in steps";
static const char *const part_names[PL_GELU_PARTS] = {"half", "sum", "tanh"};

/* Of operands in two types the second is said to be the first: a program has no kernels of both. */
static int32_t step(pl_kernel_stepping *own, const char *name, int32_t a, int32_t b) {
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  const pl_ir_type type = own->function->values[a].type;
  const int32_t pair[] = {a, own->function->values[b].type.element == type.element ? b : a};
  return pl_step_append(own, a == b ? "multiply" : "add", 2, pair, name, &type, reason);
}

static int32_t square(pl_kernel_stepping *own, const char *name, int32_t a) {
  return step(own, name, a, a);
}

static bool is_wide(const pl_kernel_stepping *own, int32_t value) {
  pl_dtype dtype = (pl_dtype)own->finding.read.f->values[value].type.element;
  bool graph = own->options->framework->kernels.graph == PL_GRAPH_OPS && pl_dtype_bytes(dtype) == 2;
  return graph || pl_framework_autocast(own->options->framework, dtype) != PL_AUTOCAST_OFF;
}

static int32_t widened(pl_kernel_stepping *own, const char *name, int32_t value) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = own->function->values[value].type;
  type.element = PL_IR_F32;
  return pl_step_append(own, "cast", 1, &value, name, &type, reason);
}

static bool is_in_steps(const pl_kernel_stepping *own, int32_t value) {
  return !own->options->framework->kernels.fuses_gelu && value != PL_IR_NONE;
}

static bool is_gated(const pl_ir_function *f, const pl_ir_op *gelu) {
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if (!pl_ir_op_is(op, "multiply")) continue;
    if (op->inputs[0] == gelu->first_output || op->inputs[1] == gelu->first_output) return true;
  }
  return false;
}

/* Whether f has steps for its gelu of `value`: of as many as there is room for. PL_IR_NONE: for any. */
static bool has_steps(const pl_ir_function *f, int32_t value) {
  int32_t n = 0;
  for (int32_t i = 0; i < f->n_ops && n < PL_GELUS_MAX; i++) {
    if (!pl_ir_op_is(&f->ops[i], "gelu") || is_gated(f, &f->ops[i])) continue;
    if (value == PL_IR_NONE || f->ops[i].inputs[0] == value) return true;
    n++;
  }
  return false;
}

static pl_gelu_parts *parts_of(pl_kernel_stepping *own, int32_t value) {
  for (int32_t i = 0; i < own->n_gelus; i++)
    if (own->gelus[i].value == value) return &own->gelus[i];
  return NULL;
}

void pl_step_gelu(pl_kernel_stepping *own, int32_t index) {
  int32_t value = pl_read_op(&own->finding.read, index)->inputs[0], x = own->map[value];
  if (!is_in_steps(own, x) || !has_steps(own->finding.read.f, value) || own->n_gelus == PL_GELUS_MAX) return;
  bool wide = is_wide(own, value);
  int32_t of = wide ? widened(own, "gelu.autocast", x) : x;
  int32_t inner = square(own, "gelu.cube.scaled", square(own, "gelu.cube", of));
  inner = square(own, "gelu.inner.scaled", step(own, "gelu.inner", inner, x));
  int32_t tangent = square(own, "gelu.tanh", inner), half = square(own, "gelu.half", x);
  int32_t sum = wide ? square(own, "gelu.sum", tangent) : step(own, "gelu.sum", tangent, x);
  for (int i = 0; i < 2 && wide; i++) /* what the last product gives more, and its cast for the next one */
    widened(own, "gelu.result", x);
  own->gelus[own->n_gelus++] = (pl_gelu_parts){value, {half, sum, tangent}};
}

/* Beside `keep`, which is written: what else is kept of a gelu whose operand it keeps. */
void pl_step_keep_gelu(pl_kernel_stepping *own, const pl_ir_op *keep) {
  const pl_gelu_parts *parts = parts_of(own, keep->inputs[0]);
  for (int i = 0; parts != NULL && i < PL_GELU_PARTS; i++)
    pl_step_keep_part(own, keep, part_names[i], parts->values[i]);
}

/* What is kept of x's gelu, or made here again; x itself where nobody knows. */
static void take_parts(pl_kernel_stepping *own, int32_t value, int32_t made[PL_GELU_PARTS]) {
  const pl_gelu_parts *parts = parts_of(own, value);
  int32_t maker = pl_read_maker(&own->finding.read, value);
  const pl_ir_op *kept = pl_step_is(own, maker, "kept") ? pl_read_op(&own->finding.read, maker) : NULL;
  pl_ir_type type = own->map[value] != PL_IR_NONE ? own->function->values[own->map[value]].type : (pl_ir_type){0};
  for (int i = 0; i < PL_GELU_PARTS; i++) {
    pl_ir_type part = type;
    if (i > 0 && is_wide(own, value)) part.element = PL_IR_F32; /* not the half of x */
    made[i] = parts != NULL  ? parts->values[i]
              : kept != NULL ? pl_step_kept_part(own, kept, part_names[i], &part)
                             : own->map[value];
  }
}

static bool was_in_steps(const pl_kernel_stepping *own, int32_t value) {
  const pl_ir_function *f = own->finding.read.f, *forward = pl_ir_forward_of(own->from, f->name);
  int32_t maker = pl_read_maker(&own->finding.read, value);
  if (has_steps(f, value)) return true;
  if (forward == NULL) return false;
  if (!pl_step_is(own, maker, "kept")) return has_steps(forward, PL_IR_NONE);
  for (int32_t i = 0; i < forward->n_ops; i++) {
    const pl_ir_op *op = &forward->ops[i];
    if (pl_ir_op_is(op, "keep") && strcmp(op->path, f->ops[maker].path) == 0) return has_steps(forward, op->inputs[0]);
  }
  return false;
}

/* The last product's two derivatives, tanh's, the factors', the cube's (a square, a factor, a product), and two sums of
 * what comes to x on its three ways. */
void pl_step_gelu_backward(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  int32_t dy = own->map[op->inputs[1]], x = own->map[op->inputs[0]], parts[PL_GELU_PARTS];
  if (!is_in_steps(own, dy) || x == PL_IR_NONE || !was_in_steps(own, op->inputs[0])) return;
  take_parts(own, op->inputs[0], parts);
  bool wide = is_wide(own, op->inputs[0]);
  if (wide) {
    square(own, "gelu.result", dy);
    dy = widened(own, "gelu.autocast", dy);
  }
  int32_t inner = step(own, "gelu.dsum", dy, parts[0]), dx = step(own, "gelu.dhalf", dy, parts[1]);
  dx = square(own, "gelu.dhalf.scaled", dx);
  inner = square(own, "gelu.dinner", step(own, "gelu.dtanh", inner, parts[2]));
  step(own, "gelu.dadd", dx, inner);
  int32_t cube = square(own, "gelu.dcube", inner),
          power = wide ? widened(own, "gelu.square", x) : square(own, "gelu.square", x),
          factor = square(own, "gelu.square.scaled", power);
  step(own, "gelu.dx", cube, factor);
}
