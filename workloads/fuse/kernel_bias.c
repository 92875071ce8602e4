/* What experts add to their answers, in PyTorch ops (`fused_expert_bias` of a profile): expert by expert the bias times
 * the token's weight, in fp32, the sum, all of them put together, and cast back; back the gradient in fp32, once more
 * in 16 bits and put together, and both factors of the product times it and summed up. By Megatron Core's experts.py
 * (_apply_bias) 28 bytes an element forward and 40 back. The addition itself stands for one of them, as the sum of the
 * bias's gradient does, which reads 16 bits here (so 38); the others say what is moved, and compute nothing that
 * anybody reads. Its kernels are as many as for one expert. See workloads/fuse/kernel_stepping.h.
 */
#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_operands.h"

static const char *const reason = "answers' bias in steps";

static int32_t cast(pl_kernel_stepping *own, const char *name, int32_t value, uint8_t element) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = own->function->values[value].type;
  type.element = element;
  return pl_step_append(own, "cast", 1, &value, name, &type, reason);
}

/* Reads it, and writes one as large. */
static int32_t sweep(pl_kernel_stepping *own, const char *name, int32_t value) {
  const int32_t pair[] = {value, value};
  if (value == PL_IR_NONE) return PL_IR_NONE;
  const pl_ir_type type = own->function->values[value].type;
  return pl_step_append(own, "multiply", 2, pair, name, &type, reason);
}

static void add(pl_kernel_stepping *own, const char *name, int32_t a, int32_t b) {
  const int32_t pair[] = {a, b};
  if (a == PL_IR_NONE || b == PL_IR_NONE) return;
  const pl_ir_type type = own->function->values[a].type;
  pl_step_append(own, "add", 2, pair, name, &type, reason);
}

void pl_step_sum(pl_kernel_stepping *own, int32_t value, const char *name, const char *why) {
  if (value == PL_IR_NONE) return;
  const pl_ir_name hidden = pl_ir_name_of("h");
  const pl_ir_attribute over = pl_ir_names("over", 1, &hidden);
  const pl_ir_type *of = &own->function->values[value].type;
  pl_ir_type type = pl_ir_type_without_dim(of, hidden);
  for (int32_t axis = 0; axis < own->to->mesh.n_axes; axis++)
    type.on[axis] = of->on[axis] >= 0 ? (int8_t)pl_ir_type_find(&type, of->dims[of->on[axis]].name) : of->on[axis];
  pl_ir_op_add(own->to, own->function,
               &(pl_ir_making){.row = pl_ir_row_of("sum"),
                               .n_inputs = 1,
                               .n_outputs = 1,
                               .n_attributes = 1,
                               .inputs = &value,
                               .attributes = &over,
                               .output_names = &name,
                               .output_types = &type,
                               .reason = why,
                               .callee = PL_IR_NONE});
}

void pl_step_expert_bias(pl_kernel_stepping *own, int32_t index) {
  if (!pl_read_is_bias_in_steps(&own->finding.read, index, own->options->framework)) return;
  int32_t answers = own->map[pl_read_op(&own->finding.read, index)->inputs[0]];
  int32_t weighted = cast(own, "bias.weighted", answers, PL_IR_F32);
  add(own, "bias.added", weighted, cast(own, "bias.together", answers, PL_IR_F32));
}

/* Whether it sums up the gradient of such a bias: of all tokens, a vector an expert. */
static bool sums_bias(const pl_kernel_stepping *own, int32_t index) {
  if (own->options->framework->kernels.fuses_expert_bias || !pl_step_is(own, index, "sum")) return false;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  const pl_ir_type *made = pl_read_type(&own->finding.read, op->first_output);
  return pl_read_is_of_experts(pl_read_type(&own->finding.read, op->inputs[0])) && made->rank == 2 &&
         pl_ir_type_find(made, pl_ir_name_of("x")) >= 0 && pl_ir_type_find(made, pl_ir_name_of("h")) >= 0;
}

void pl_step_expert_bias_backward(pl_kernel_stepping *own, int32_t index) {
  if (!sums_bias(own, index)) return;
  int32_t gradient = own->map[pl_read_op(&own->finding.read, index)->inputs[0]];
  if (gradient == PL_IR_NONE) return;
  uint8_t element = own->function->values[gradient].type.element;
  int32_t wide = cast(own, "dbias.wide", gradient, PL_IR_F32);
  sweep(own, "dbias.together", cast(own, "dbias.narrow", wide, element));
  sweep(own, "dbias.times.weight", wide);
  pl_step_sum(own, sweep(own, "dbias.times.bias", wide), "dbias.weight", reason); /* a number a token */
}
