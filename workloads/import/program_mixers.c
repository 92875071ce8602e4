/* What mixes tokens in place of attention, in the program language, in whole values: the state space of Mamba 2 (Dao
 * and Gu 2024, section 7) and the gated delta rule of Qwen3-Next (Yang et al. 2024). The projections that classes pack
 * into one matrix are apart, by what they make; kernels are packed again (workloads/fuse/kernel_products.c). */
#include <math.h>

#include "workloads/import/program_write.h"
#include "workloads/ir/stack.h"

static void set_extents(pl_program_writer *to, const char *letters, const int64_t *extents) {
  for (int i = 0; letters[i] != '\0'; i++)
    to->extent[letters[i] - 'a'] = extents[i];
}

/* Each channel along the tokens up to its own, and silu. `dims`: what counts channels. */
static int32_t convolved(pl_program_writer *to, const char *name, int32_t x, const char *dims) {
  static const pl_ir_name window = {"s"}, kernel = {"w"};
  pl_arena *arena = to->module->arena;
  const pl_stack *stack = to->model->program.stack;
  const char *weight = pl_arena_printf(arena, "mixer.convolution.%s.weight", name);
  const char *bias = pl_arena_printf(arena, "mixer.convolution.%s.bias", name),
             *all = pl_arena_printf(arena, "%sw", dims);
  const char *taps = pl_arena_printf(arena, "%lld", (long long)stack->taps - 1);
  if (arena->failed || x == PL_IR_NONE) return PL_IR_NONE;
  const pl_ir_attribute attributes[] = {pl_ir_names("window", 1, &window), pl_ir_names("kernel", 1, &kernel),
                                        pl_ir_text("padding", taps), pl_ir_text("padding_after", "0")};
  const int32_t inputs[] = {x, pl_write_param(to, weight, all)};
  int32_t y = pl_ir_op_infer(to->module, to->function, "convolution", name, 2, inputs, 4, attributes);
  if (stack->convolution_bias) y = pl_write_bias(to, bias, y, dims);
  return pl_write_one(to, "silu", name, y);
}

/* softplus(linear(x) + bias), and minus the exponential of a parameter: how fast a head's state decays. */
static int32_t step_of(pl_program_writer *to, int32_t x, bool bias) {
  int32_t step = pl_write_linear(to, "mixer.step", x, "hgr", "h", bias);
  return pl_write_one(to, "softplus", "step", pl_write_bias(to, "mixer.step_bias", step, "gr"));
}

static int32_t rate_of(pl_program_writer *to) {
  return pl_write_scale(to, "rate", pl_write_one(to, "exp", "rate", pl_write_param(to, "mixer.rate", "gr")), -1);
}

static int32_t scan(pl_program_writer *to, const char *row, int32_t n, const int32_t *inputs) {
  static const pl_ir_name over = {"s"};
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over),
                                        pl_ir_integer("chunk", to->model->program.stack->chunk)};
  return pl_ir_op_infer(to->module, to->function, row, "scan", n, inputs, 2, attributes);
}

int32_t pl_program_state_space(pl_program_writer *to, int32_t x) {
  const pl_stack *stack = to->model->program.stack;
  int64_t saved[26];
  for (int i = 0; i < 26; i++)
    saved[i] = to->extent[i];
  set_extents(to, "grdnw",
              (const int64_t[]){stack->state_groups, stack->state_heads / stack->state_groups, stack->state_head_size,
                                stack->state_size, stack->taps});
  int32_t gate = pl_write_linear(to, "mixer.gate", x, "hgrd", "h", stack->in_bias);
  const int32_t inputs[] = {convolved(to, "x", pl_write_linear(to, "mixer.x", x, "hgrd", "h", stack->in_bias), "grd"),
                            step_of(to, x, stack->in_bias),
                            rate_of(to),
                            convolved(to, "b", pl_write_linear(to, "mixer.b", x, "hgn", "h", stack->in_bias), "gn"),
                            convolved(to, "c", pl_write_linear(to, "mixer.c", x, "hgn", "h", stack->in_bias), "gn"),
                            pl_write_param(to, "mixer.skip", "gr")};
  int32_t y = scan(to, "state_space_scan", 6, inputs);
  y = pl_write_two(to, "multiply", "gated", y, pl_write_one(to, "silu", "gate", gate));
  if (stack->gated_norm) y = pl_write_norm_of(to, "mixer.norm", y, stack->norm_by_group ? "rd" : "grd", "grd");
  y = pl_write_linear(to, "mixer.out", y, "grdh", "grd", false);
  if (stack->out_bias) y = pl_write_bias(to, "mixer.out.bias", y, "h");
  for (int i = 0; i < 26; i++)
    to->extent[i] = saved[i];
  return y;
}

/* x / |x| along d: the mean square is the sum over d's extent of them. */
static int32_t unit(pl_program_writer *to, const char *name, int32_t x) {
  static const pl_ir_name over = {"d"};
  const double least = 1e-6;
  double d = (double)to->extent['d' - 'a'];
  const int32_t inputs[] = {x, pl_write_constant(to, 1, "d")};
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over), pl_ir_real("epsilon", least / d)};
  return pl_write_scale(to, name, pl_ir_op_infer(to->module, to->function, "rms_norm", name, 2, inputs, 2, attributes),
                        1 / sqrt(d));
}

int32_t pl_program_delta_rule(pl_program_writer *to, int32_t x) {
  const pl_stack *stack = to->model->program.stack;
  int64_t saved[26];
  for (int i = 0; i < 26; i++)
    saved[i] = to->extent[i];
  set_extents(to, "grdew",
              (const int64_t[]){stack->key_heads, stack->value_heads / stack->key_heads, stack->key_size,
                                stack->value_size, stack->taps});
  int32_t q = convolved(to, "q", pl_write_linear(to, "mixer.q", x, "hgd", "h", false), "gd");
  int32_t k = convolved(to, "k", pl_write_linear(to, "mixer.k", x, "hgd", "h", false), "gd");
  int32_t v = convolved(to, "v", pl_write_linear(to, "mixer.v", x, "hgre", "h", false), "gre");
  int32_t gate = pl_write_linear(to, "mixer.gate", x, "hgre", "h", false);
  int32_t step = step_of(to, x, false);
  int32_t beta = pl_write_one(to, "sigmoid", "beta", pl_write_linear(to, "mixer.beta", x, "hgr", "h", false));
  const int32_t inputs[] = {pl_write_scale(to, "queries", unit(to, "queries", q), 1 / sqrt((double)stack->key_size)),
                            unit(to, "keys", k), v, pl_write_two(to, "multiply", "decay", step, rate_of(to)), beta};
  int32_t y = pl_write_norm(to, "mixer.norm", scan(to, "delta_rule_scan", 5, inputs), "e");
  y = pl_write_two(to, "multiply", "gated", y, pl_write_one(to, "silu", "gate", gate));
  y = pl_write_linear(to, "mixer.out", y, "greh", "gre", false);
  for (int i = 0; i < 26; i++)
    to->extent[i] = saved[i];
  return y;
}
