/* Mixture of experts in the program language, in whole values.
 *
 * Dense in memory, exact in meaning: every expert is given every token, and the weights of those that a token is not
 * sent to are zero. %dispatch is where tokens go to the experts and the sum over x is where answers come back: cut on x
 * behind them and on tokens in front, these are the two all-to-alls. How many tokens an expert really works on is for
 * the cost to say.
 *
 * The weight of an expert's answer multiplies what the last product reads (Megatron Core's weighted activations), which
 * is the same without a bias behind it: the answers themselves are not kept then.
 */
#include <stdio.h>

#include "core/base/units.h"
#include "workloads/import/program_write.h"

/* "6,2,1,1"; NULL: no memory. */
static const char *text_of(pl_arena *arena, const double *loads, int64_t n) {
  char *text = PL_TAKE(arena, char, (size_t)n *PL_UNIT_TEXT_BYTES + 1), one[PL_UNIT_TEXT_BYTES];
  size_t used = 0;
  for (int64_t i = 0; text != NULL && i < n; i++)
    used += (size_t)sprintf(text + used, "%s%s", i > 0 ? "," : "", pl_format_exact(loads[i], one));
  return text;
}

/* What the model says of rows of its experts, beyond an even choice (workloads/language/ir_routing.h). */
static int32_t put_loads(const pl_program_writer *to, pl_ir_attribute *attributes) {
  const pl_model *model = to->model;
  const double *loads = model->moe.expert_loads;
  const char *text = loads != NULL ? text_of(to->module->arena, loads, model->moe.n_experts) : NULL;
  int32_t n = 0;
  if (model->moe.capacity_factor > 0 && model->moe.capacity_factor != 1)
    attributes[n++] = pl_ir_real("capacity", model->moe.capacity_factor);
  if (text != NULL) attributes[n++] = pl_ir_text("tokens", text);
  if (loads == NULL && model->moe.expert_load > 1) attributes[n++] = pl_ir_real("load", model->moe.expert_load);
  return n;
}

static int32_t routing(pl_program_writer *to, int32_t x) {
  int32_t logits = pl_write_linear(to, "router", x, "hx", "h", to->model->moe.router_bias);
  int32_t all = pl_write_over(to, "softmax", "probabilities", logits, "x");
  const pl_ir_name over = pl_ir_name_of("x");
  const pl_model *model = to->model;
  bool is_limited = model->moe.n_groups > 0;
  pl_ir_attribute attributes[PL_IR_ATTRIBUTES_MAX] = {pl_ir_names("over", 1, &over),
                                                      pl_ir_integer("k", model->moe.topk),
                                                      pl_ir_integer("normalise", model->numbers.normalises_routing),
                                                      pl_ir_integer("sparse", 1),
                                                      pl_ir_integer("groups", model->moe.n_groups),
                                                      pl_ir_integer("chosen_groups", model->moe.topk_groups),
                                                      pl_ir_integer("best", model->moe.group_best)};
  int32_t n = is_limited ? 7 : 4;
  n += put_loads(to, &attributes[n]);
  return pl_ir_op_infer(to->module, to->function, "top_k", "routing", 1, &all, n, attributes);
}

static int32_t routed(pl_program_writer *to, int32_t x) {
  const pl_model *model = to->model;
  int32_t weights = routing(to, x);
  int32_t sent = pl_write_spread(to, "dispatch", x, "xbsh");
  to->extent['f' - 'a'] = model->moe.expert_ffn;
  int32_t y = pl_write_linear(to, "experts.up", sent, "xhf", "h", false);
  if (model->mlp.mlp_bias) y = pl_write_bias(to, "experts.up.bias", y, "xf");
  if (model->mlp.gated_mlp) {
    int32_t gate = pl_write_linear(to, "experts.gate", sent, "xhf", "h", false);
    if (model->mlp.mlp_bias) gate = pl_write_bias(to, "experts.gate.bias", gate, "xf");
    y = pl_write_two(to, "multiply", "active", pl_write_activation(to, "active", gate), y);
  } else {
    y = pl_write_activation(to, "active", y);
  }
  if (model->mlp.mlp_bias) {
    y = pl_write_bias(to, "experts.down.bias", pl_write_linear(to, "experts.down", y, "xfh", "f", false), "xh");
    y = pl_write_product(to, "combined", weights, y, "x");
  } else {
    y = pl_write_linear(to, "experts.down", pl_write_two(to, "multiply", "weighted", y, weights), "xfh", "f", false);
    y = pl_write_over(to, "sum", "combined", y, "x");
  }
  return model->numbers.routing_scale != 1 ? pl_write_scale(to, "combined", y, model->numbers.routing_scale) : y;
}

/* Of Qwen2-MoE: a sigmoid, 1 / (1 + exp(-z)). */
static int32_t gate_of(pl_program_writer *to, int32_t x) {
  int32_t z = pl_write_scale(to, "gate", pl_write_linear(to, "shared.expert_gate", x, "h", "h", false), -1);
  int32_t sum = pl_write_two(to, "add", "gate", pl_write_one(to, "exp", "gate", z), pl_write_constant(to, 1, "bs"));
  return pl_write_one(to, "reciprocal", "gate", sum);
}

int32_t pl_program_experts(pl_program_writer *to, int32_t x) {
  const pl_model *model = to->model;
  int32_t y = routed(to, x);
  if (model->moe.shared_ffn == 0) return y;
  /* The gate's gradient, whole on each tensor rank, is added behind the sums of partial ones. */
  int32_t gate = model->moe.shared_gate ? gate_of(to, x) : PL_IR_NONE;
  int32_t shared = pl_program_mlp(to, "shared", x, model->moe.shared_ffn);
  if (model->mlp.mlp_bias) shared = pl_write_bias(to, "shared.down.bias", shared, "h");
  if (gate != PL_IR_NONE) shared = pl_write_two(to, "multiply", "shared", shared, gate);
  return pl_write_two(to, "add", "sum", y, shared);
}
