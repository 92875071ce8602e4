/* See workloads/run/launched_ahead.h. */
#include "workloads/run/launched_ahead.h"

#include <math.h>

#include "workloads/block/block_lifetimes.h"
#include "workloads/compile/host_floor.h"
#include "workloads/memory/buffer_memory.h"
#include "workloads/program/program_making.h"

/* A walk over the ops of a forward pass. */
typedef struct letting_go {
  const pl_block_program *block;
  bool keeps_gathered;
  bool touched[PL_TAPE_TENSORS]; /* by a collective, in this block */
  int64_t n_launches, n_skipped; /* so far; those that the device has passed when the last one is launched */
  double bytes;
} letting_go;

/* What is gathered into a buffer that stays is never freed. */
static bool is_marked(const letting_go *own, const pl_op *op, uint32_t tensor) {
  if (op->kind != PL_OP_COLLECTIVE) return false;
  bool gathers = op->collective == PL_ALL_GATHER && op->group == PL_GROUP_TENSOR;
  return !(own->keeps_gathered && gathers && tensor == op->output && tensor != op->inputs[0]);
}

static void touch(void *context, const pl_op *op, uint32_t tensor, bool first) {
  letting_go *own = context;
  if (first) own->touched[tensor] = false;
  own->touched[tensor] |= is_marked(own, op, tensor);
}

static void run(void *context, const pl_op *op) {
  letting_go *own = context;
  (void)op;
  own->n_launches++;
}

static void give_back(void *context, uint32_t tensor) {
  letting_go *own = context;
  const pl_tensor *given = &own->block->tensors[tensor];
  if (!own->touched[tensor] || !pl_tensor_comes_and_goes(given)) return;
  own->touched[tensor] = false; /* an op that names it twice gives it back twice */
  if (own->n_launches > own->n_skipped) own->bytes += pl_tensor_held_bytes(given);
}

/* `n_skipped` launches of it are passed over. */
static double walk(const pl_program *program, uint32_t class, int64_t n_skipped, int64_t *n_launches) {
  static const pl_lifetime_visitor visitor = {.touch = touch, .run = run, .give_back = give_back};
  const pl_block_program *block = &program->blocks[class];
  const pl_lifetime_tensors of = {block->tensors, block->n_tensors, block->output, block->input_gradient};
  const pl_op_list *list = pl_block_ops(block, PL_PASS_FORWARD);
  letting_go own = {.block = block,
                    .keeps_gathered = pl_framework_or_ideal(program->job->framework)->memory.keeps_gathered,
                    .n_skipped = n_skipped};
  pl_lifetimes_walk(&of, PL_PASS_FORWARD, list->ops, list->n_ops, &visitor, &own);
  *n_launches = own.n_launches;
  return own.bytes;
}

/* Parameters of a block that ZeRO-3 gathers. */
static double gathered_of(const pl_program *program, int32_t block) {
  if (program->strategy->zero < 3) return 0;
  double experts = pl_making_held_experts(program, block), dense = pl_making_held_parameters(program, block) - experts;
  return (pl_program_shards(program, false) > 1 ? dense : 0) + (pl_program_shards(program, true) > 1 ? experts : 0);
}

/* What a pass lets go of in its last launches, from block to block backwards. */
static double pass_bytes(const pl_piece_context *context, const pl_pass *pass, pl_let_go *let_go) {
  const pl_program *program = context->program;
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  int64_t room = (int64_t)framework->launch.ops_ahead;
  double largest = program->stages[context->device->stage].largest_block_parameters;
  double gathered = 0, bytes = 0;
  double kept = pl_kept_gathered(framework, largest, pl_strategy_multiplies_again(program->strategy));
  for (uint32_t i = pass->n; i-- > 0 && room > 0;) {
    if (pass->instructions[i].kind != PL_INSTRUCTION_BLOCK) continue;
    uint32_t class = (uint32_t)pl_model_block_class(program->model, pass->instructions[i].block);
    double held = fmax(gathered - kept, 0);
    gathered += gathered_of(program, pass->instructions[i].block);
    int64_t *n = &let_go->n_launches[class];
    if (*n == 0) let_go->bytes[class] = walk(program, class, 0, n);
    bytes += *n <= room ? let_go->bytes[class] : walk(program, class, *n - room, n);
    if (*n <= room) bytes += (fmax(gathered - kept, 0) - held) * program->training.gathered_bytes;
    room -= *n;
  }
  return bytes;
}

/* The share of a forward pass that the device has before it when the host has launched all of it. */
static double share_ahead(const pl_piece_context *context, const pl_stage_program *stage, int32_t chunk) {
  const pl_framework *framework = pl_framework_or_ideal(context->program->job->framework);
  if (framework->launch.host_window == PL_HOST_KERNEL) return 0;
  pl_host_load forward = pl_host_load_of(context, &stage->forward[chunk]), before = {0, 0, 0};
  bool goes_on = context->program->strategy->pp == 1 && context->program->n_microbatches > 1;
  if (goes_on) before = pl_host_load_of(context, &stage->backward[chunk]);
  double ahead_s = fmax(before.device_s - before.host_s, 0) + forward.device_s - forward.host_s;
  return forward.device_s > 0 ? fmin(fmax(ahead_s / forward.device_s, 0), 1) : 0;
}

double pl_launched_ahead_bytes(const pl_piece_context *context, pl_let_go *let_go) {
  const pl_program *program = context->program;
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  const pl_stage_program *stage = &program->stages[context->device->stage];
  double most = 0;
  if (!framework->memory.records_streams) return 0;
  for (int32_t chunk = 0; chunk < program->strategy->vpp; chunk++) {
    double bytes = pass_bytes(context, &stage->forward[chunk], let_go);
    if (bytes > 0) most = fmax(most, bytes * share_ahead(context, stage, chunk));
  }
  return most;
}
