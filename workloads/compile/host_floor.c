/* See workloads/compile/host_floor.h. */
#include "workloads/compile/host_floor.h"

#include <math.h>

#include "workloads/cost/op_cost.h"

static const pl_framework *framework_of(const pl_piece_context *context) {
  return pl_framework_or_ideal(context->program->job->framework);
}

static uint32_t class_of(const pl_piece_context *context, const pl_op *op) {
  return context->device->group_class[pl_communication_slot((pl_group_role)op->group)];
}

/* A collective alone; 0 where the plan does not lower it (chunked). */
static double alone_s(const pl_piece_context *context, const pl_op *op) {
  uint32_t class = class_of(context, op);
  if (class == PL_NONE || context->plan->ops == NULL) return 0;
  const pl_group_class *group = &context->plan->group_classes[class];
  const pl_family *family = &context->program->families[group->family];
  for (uint32_t i = 0; i < family->n_ops; i++)
    if (family->ops[i].kind == (pl_collective_kind)op->collective && family->ops[i].size_bytes == op->size_bytes)
      return pl_ticks_to_s(context->plan->ops[group->first_op + i].alone_ticks);
  return 0;
}

/* Of a pair the other pass computes while tokens are exchanged. */
static bool is_hidden_by_pass(const pl_piece_context *context, const pl_op *op) {
  const pl_strategy *strategy = context->program->strategy;
  return op->group == PL_GROUP_EXPERT && pl_strategy_hides_tokens(strategy) &&
         strategy->ep_overlap != PL_EP_OVERLAP_SHARED;
}

/* Of one beside which nothing computes; the others are no time of the device's, or count by themselves. */
static void add_collective(const pl_piece_context *context, const pl_op *op, pl_host_load *load) {
  if (is_hidden_by_pass(context, op))
    load->tokens_s += alone_s(context, op);
  else if (op->overlap == PL_OVERLAP_NONE)
    load->device_s += alone_s(context, op);
}

/* Exchanges of tokens beside which shared experts compute, until what comes with them is awaited. */
typedef struct hidden_exchange {
  double alone_s, since_s; /* and what has been computed meanwhile */
} hidden_exchange;

static bool runs_beside_shared(const pl_piece_context *context, const pl_op *op) {
  return op->kind == PL_OP_COLLECTIVE && op->group == PL_GROUP_EXPERT && op->overlap == PL_OVERLAP_BEGINS &&
         context->program->strategy->ep_overlap == PL_EP_OVERLAP_SHARED;
}

/* What is not hidden of it counts. */
static void hide(const pl_piece_context *context, const pl_op *op, hidden_exchange *hidden, pl_host_load *load) {
  if (runs_beside_shared(context, op)) {
    if (hidden->alone_s == 0) hidden->since_s = load->device_s;
    hidden->alone_s += alone_s(context, op);
  } else if (op->overlap == PL_OVERLAP_AWAITS && hidden->alone_s > 0) {
    load->device_s += fmax(0, hidden->alone_s - (load->device_s - hidden->since_s));
    hidden->alone_s = 0;
  }
}

/* A grouped product is as many calls of a matrix library as there are experts (Transformer Engine's GroupedLinear, on
 * several streams); all else is one kernel, or says how many. */
static double launches_of(const pl_block_program *block, const pl_op *op) {
  const uint32_t touched[] = {op->inputs[1], op->inputs[2], op->output};
  for (int i = 0; i < 3; i++) {
    const pl_tensor *tensor = touched[i] == PL_NONE ? NULL : &block->tensors[touched[i]];
    if (op->kind == PL_OP_GEMM && tensor != NULL && tensor->expert) return (double)op->batch;
  }
  return op->times > 1 ? (double)op->times : 1;
}

double pl_host_s_of_collective(const pl_framework *framework, uint32_t n_ranks) {
  return framework->launch.collective_s + framework->launch.collective_rank_s * n_ranks;
}

double pl_host_s_of_op(const pl_framework *framework, const pl_block_program *block, const pl_op *op, bool backward) {
  PL_ASSERT(op->kind != PL_OP_COLLECTIVE);
  if (op->host_free) return 0;
  bool again = op->category == PL_CATEGORY_RECOMPUTE; /* a forward op in the backward pass */
  return launches_of(block, op) *
         (backward && !again ? framework->launch.backward_launch_s : framework->launch.launch_s);
}

/* `cost`: of the op on the device, without scales. */
static void add_op(const pl_piece_context *context, const pl_block_program *block, const pl_op *op, pl_op_time cost,
                   bool backward, pl_host_load *load) {
  if (op->kind == PL_OP_COLLECTIVE) {
    uint32_t class = class_of(context, op);
    if (class == PL_NONE) return;
    add_collective(context, op, load);
    uint32_t n_ranks = context->program->families[context->plan->group_classes[class].family].group_size;
    load->host_s += pl_host_s_of_collective(framework_of(context), n_ranks);
    return;
  }
  load->device_s += pl_block_scaled_cost(cost, context->scales, block->block_class, op).time_s;
  load->host_s += pl_host_s_of_op(framework_of(context), block, op, backward);
}

/* Of a measured backward pass, that of one of its halves: by what its ops take on the device. */
static double share_of_pass(const pl_piece_context *context, const pl_block_program *block, pl_block_pass pass) {
  double sums[2] = {0, 0};
  if (pass != PL_PASS_INPUTS && pass != PL_PASS_WEIGHTS) return 1;
  for (int half = 0; half < 2; half++)
    for (uint32_t i = 0; i < block->halves[half].n_ops; i++)
      sums[half] += context->prices->times[block->block_class][PL_PASS_INPUTS + half][i].time_s;
  double sum = sums[0] + sums[1];
  return sum > 0 ? sums[pass - PL_PASS_INPUTS] / sum : 0;
}

pl_host_load pl_host_load_of_instruction(const pl_piece_context *context, const pl_instruction *instruction) {
  pl_host_load load = {0, 0, 0};
  if (instruction->kind != PL_INSTRUCTION_BLOCK) return load;
  const pl_block_program *block =
      &context->program->blocks[pl_model_block_class(context->program->model, instruction->block)];
  pl_block_pass pass = pl_instruction_pass(instruction);
  const pl_op_list *list = pl_block_ops(block, pass);
  const pl_op_time *times = context->prices->times[block->block_class][pass];
  hidden_exchange hidden = {0, 0};
  for (uint32_t i = 0; i < list->n_ops; i++) {
    hide(context, &list->ops[i], &hidden, &load);
    add_op(context, block, &list->ops[i], times[i], instruction->backward, &load);
  }
  bool is_layer = block->kind == PL_BLOCK_LAYER || block->kind == PL_BLOCK_EXPERT_LAYER;
  if (is_layer && pass != PL_PASS_WEIGHTS) /* the calls around the ops are those of the first half */
    load.host_s += framework_of(context)->launch.layer_s;
  if (context->scales != NULL) {
    double floor_s = context->scales[block->block_class][instruction->backward].floor_s;
    load.host_s = fmax(load.host_s, floor_s * share_of_pass(context, block, pass));
  }
  return load;
}

pl_host_load pl_host_load_of(const pl_piece_context *context, const pl_pass *pass) {
  pl_host_load sum = {0, 0, 0};
  for (uint32_t i = 0; i < pass->n; i++) {
    pl_host_load load = pl_host_load_of_instruction(context, &pass->instructions[i]);
    sum.device_s += load.device_s;
    sum.tokens_s += load.tokens_s;
    sum.host_s += load.host_s;
  }
  return sum;
}

bool pl_host_is_in_time(const pl_program *program) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  return program->job->op_profile == NULL && framework->launch.launch_s <= 0 &&
         framework->launch.backward_launch_s <= 0 && framework->launch.collective_s <= 0 &&
         framework->launch.collective_rank_s <= 0 && framework->launch.layer_s <= 0;
}

void pl_host_floors(const pl_piece_context *context, const pl_pass *const *passes, int n, double *late_s) {
  const pl_framework *framework = framework_of(context);
  pl_host_load loads[PL_HOST_PASSES];
  double host_s = 0;
  PL_ASSERT(n <= PL_HOST_PASSES);
  for (int i = 0; i < n; i++)
    late_s[i] = 0;
  if (pl_host_is_in_time(context->program)) return;
  double device_s = 0, tokens_s = 0;
  for (int i = 0; i < n; i++) {
    loads[i] = pl_host_load_of(context, passes[i]);
    device_s += loads[i].device_s;
    tokens_s += loads[i].tokens_s;
  }
  for (int i = 0; i < n; i++) {
    if (tokens_s > device_s) loads[i].device_s += (tokens_s - device_s) * loads[i].tokens_s / tokens_s;
    host_s += loads[i].host_s;
    late_s[i] = framework->launch.host_window == PL_HOST_KERNEL ? loads[i].host_s
                                                                : fmax(0, loads[i].host_s - loads[i].device_s);
  }
  bool waits = framework->launch.host_window == PL_HOST_PASS && context->program->strategy->pp > 1;
  if (waits || framework->launch.host_window == PL_HOST_KERNEL) return; /* with KERNEL nothing is launched ahead */
  double rest = host_s;                                                 /* that no device time covers */
  for (int i = 0; i < n; i++)
    rest -= loads[i].device_s;
  rest = fmax(0, rest);
  for (int i = 0; i + 1 < n; i++) {
    late_s[i] = fmin(late_s[i], rest);
    rest -= late_s[i];
  }
  late_s[n - 1] = rest;
}
