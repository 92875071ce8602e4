/* See workloads/memory/pass_requests.h. */
#include "workloads/memory/pass_requests.h"

#include "workloads/block/block_lifetimes.h"

typedef struct maker {
  const pl_block_program *block;
  pl_pass_requests *to;
  bool begins_backward, makes_weights;
  bool marked[PL_TAPE_TENSORS], given[PL_TAPE_TENSORS];
} maker;

bool pl_tensor_may_be_held(const pl_block_program *block, uint32_t tensor) {
  return pl_tensor_comes_and_goes(&block->tensors[tensor]) || tensor == block->input || tensor == block->output ||
         tensor == block->input_gradient || tensor == block->output_gradient;
}

static void add(maker *own, pl_request request) {
  request.n_launches = own->to->n_ops;
  own->to->all[own->to->n++] = request;
}

static bool is_gathered(const maker *own, const pl_op *op, uint32_t tensor) {
  return own->block->kind != PL_BLOCK_EMBEDDING && op->kind == PL_OP_COLLECTIVE && op->collective == PL_ALL_GATHER &&
         op->group == PL_GROUP_TENSOR && tensor == op->output && tensor != op->inputs[0];
}

static void touch(void *context, const pl_op *op, uint32_t tensor, bool first) {
  maker *own = context;
  const pl_tensor *touched = &own->block->tensors[tensor];
  own->marked[tensor] = own->marked[tensor] || op->kind == PL_OP_COLLECTIVE;
  bool remade = own->begins_backward && touched->saved && touched->remade_bytes > 0;
  bool held = pl_tensor_comes_and_goes(touched);
  if (!first || (!remade && !held)) return;
  add(own, (pl_request){.kind = PL_REQUEST_TAKE,
                        .tensor = tensor,
                        .size_bytes = pl_tensor_held_bytes(touched),
                        .remade = remade,
                        .held = held,
                        .gathered = is_gathered(own, op, tensor)});
}

static void run(void *context, const pl_op *op) {
  maker *own = context;
  own->to->n_ops++;
  if (!own->makes_weights || op->output == PL_NONE) return;
  bool in_buffer = own->block->tensors[op->output].kind == PL_TENSOR_PARAMETER_GRADIENT;
  if (op->kind == PL_OP_GEMM ? in_buffer || op->transposed : in_buffer && op->kind == PL_OP_ELEMENTWISE)
    add(own,
        (pl_request){.kind = op->kind == PL_OP_GEMM ? PL_REQUEST_PRODUCT : PL_REQUEST_ADDED, .tensor = op->output});
}

static void give_back(void *context, uint32_t tensor) {
  maker *own = context;
  if (own->given[tensor] || !pl_tensor_may_be_held(own->block, tensor)) return;
  own->given[tensor] = true;
  add(own, (pl_request){.kind = PL_REQUEST_GIVE, .tensor = tensor, .marked = own->marked[tensor]});
}

bool pl_pass_requests_take(const pl_block_program *block, pl_block_pass pass, pl_arena *arena,
                           pl_pass_requests *requests) {
  static const pl_lifetime_visitor visitor = {.touch = touch, .run = run, .give_back = give_back};
  const pl_lifetime_tensors of = {block->tensors, block->n_tensors, block->output, block->input_gradient};
  const pl_op_list *list = pl_block_ops(block, pass);
  maker own = {.block = block,
               .to = requests,
               .begins_backward = pass == PL_PASS_BACKWARD || pass == PL_PASS_INPUTS,
               .makes_weights = pass == PL_PASS_BACKWARD || pass == PL_PASS_WEIGHTS};
  *requests = (pl_pass_requests){.all = PL_TAKE(arena, pl_request, 2 * (size_t)block->n_tensors + list->n_ops + 1)};
  if (requests->all == NULL) return false;
  pl_lifetimes_walk(&of, pass, list->ops, list->n_ops, &visitor, &own);
  return true;
}
