/* See workloads/lower/launched_block.h. */
#include "workloads/lower/launched_block.h"

#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/cost/ir_kernel.h"
#include "workloads/derive/differentiate.h"
#include "workloads/fuse/kernel_wider.h"
#include "workloads/fuse/kernels.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_layer.h"
#include "workloads/lower/launched_kernels.h"

/* ---- what a pass is made of ---- */

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* From the results backwards: an op is for inputs if one that is reads what it makes. What nobody reads is a step of a
 * kernel beside it. What is made again belongs to them, as frameworks run it in one go. */
static void find_for_inputs(pl_launching *own, bool *for_inputs) {
  const pl_ir_function *f = own->f;
  bool *needed = PL_TAKE(own->scratch, bool, f->n_values + 1);
  if (needed == NULL || own->tape->input == PL_NONE) return;
  for (int32_t i = 0; i < f->n_results; i++)
    needed[f->results[i]] = true;
  for (int32_t i = f->n_ops; i-- > 0;) {
    const pl_ir_op *op = &f->ops[i];
    for (int32_t k = 0; k < op->n_outputs; k++)
      for_inputs[i] = for_inputs[i] || needed[op->first_output + k] || own->last[op->first_output + k] == PL_IR_NONE;
    for (int32_t k = 0; for_inputs[i] && k < op->n_inputs; k++)
      needed[op->inputs[k]] = true;
  }
}

static void find_last(pl_launching *own) {
  const pl_ir_function *f = own->f;
  for (int32_t i = 0; i < f->n_values; i++)
    own->last[i] = PL_IR_NONE;
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++)
      own->last[f->ops[i].inputs[k]] = i;
  for (int32_t i = 0; i < f->n_results; i++)
    own->last[f->results[i]] = f->n_ops;
}

static bool adds(const pl_launching *own, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  for (int32_t i = 0; i < of.n; i++)
    if (pl_ir_row_at(of.ops[i].row)->effect == PL_IR_WRITES) return true;
  return false;
}

/* Of a block that is given data no gradient is handed back: what only that would be made of is left out. */
static void find_idle(pl_launching *own, bool *idle) {
  const pl_ir_function *f = own->f;
  bool *read = PL_TAKE(own->scratch, bool, f->n_values + 1);
  for (int32_t i = f->n_ops; read != NULL && i-- > 0;) {
    const pl_ir_op *op = &f->ops[i];
    bool needed = adds(own, op);
    for (int32_t k = 0; k < op->n_outputs; k++)
      needed = needed || read[op->first_output + k];
    idle[i] = !needed;
    for (int32_t k = 0; needed && k < op->n_inputs; k++)
      read[op->inputs[k]] = true;
  }
}

static bool begin_pass(pl_launching *own, const pl_ir_function *f, bool backward) {
  own->f = f;
  own->backward = backward;
  own->last = PL_TAKE(own->scratch, int32_t, f->n_values + 1);
  own->tensor = PL_TAKE(own->scratch, uint32_t, f->n_values + 1);
  own->again = backward ? pl_ir_again_take(f, own->scratch) : PL_TAKE(own->scratch, bool, f->n_ops + 1);
  own->for_inputs = PL_TAKE(own->scratch, bool, f->n_ops + 1);
  own->picked = PL_TAKE(own->scratch, bool, f->n_values + 1);
  own->idle = PL_TAKE(own->scratch, bool, f->n_ops + 1);
  if (own->scratch->failed || !pl_kernel_wider_take(own->kernels, f, own->tape->framework, own->scratch, &own->times))
    return false;
  for (int32_t i = 0; i < f->n_values; i++)
    own->tensor[i] = PL_NONE;
  find_last(own);
  if (backward) find_for_inputs(own, own->for_inputs);
  if (backward && own->tape->input == PL_NONE && f->n_results > 0) find_idle(own, own->idle);
  return !own->scratch->failed;
}

/* ---- collectives ---- */

static pl_collective_kind collective_of(const pl_ir_op *op) {
  return is(op, "all_reduce")       ? PL_ALL_REDUCE
         : is(op, "reduce_scatter") ? PL_REDUCE_SCATTER
         : is(op, "all_to_all")     ? PL_ALL_TO_ALL
                                    : PL_ALL_GATHER;
}

static pl_group_role group_of(const pl_launching *own, const pl_ir_op *op) {
  const char *axis = pl_ir_text_of(op, "over");
  bool shared = strcmp(axis, "tpr") == 0 && pl_ir_mesh_find(&own->kernels->mesh, pl_ir_name_of("tp")) >= 0;
  return axis[0] == 'c'   ? PL_GROUP_CONTEXT
         : axis[0] == 'e' ? PL_GROUP_EXPERT
         : shared         ? PL_GROUP_HEADS
                          : PL_GROUP_TENSOR;
}

static bool is_of_split(const pl_launching *own, const pl_ir_op *op) {
  return group_of(own, op) == PL_GROUP_TENSOR && pl_ir_is_of_split(own->kernels, own->f, own->again, op);
}

/* Beside products in layers that have them so: what a product's output is scattered by has begun with it. */
static pl_op_overlap overlap_of(const pl_launching *own, const pl_ir_op *op, bool forward) {
  bool one = is(op, "all_gather") || is(op, "reduce_scatter");
  if (own->tape->shard->token_order != PL_TOKENS_AS_MADE && is(op, "all_to_all")) return PL_OVERLAP_BEGINS;
  if (own->tape->overlaps_split && own->backward && is_of_split(own, op)) return PL_OVERLAP_BEGINS;
  if (!own->tape->overlaps || !one || group_of(own, op) != PL_GROUP_TENSOR) return PL_OVERLAP_NONE;
  return forward && is(op, "reduce_scatter") ? PL_OVERLAP_BEGAN : PL_OVERLAP_BEGINS;
}

/* What a number of a token's vector takes on its way to experts. */
static double token_bytes(const pl_block_shard *shard) {
  bool narrow = shard->fp8 && pl_framework_or_ideal(shard->framework)->pipeline.sends_tokens_fp8;
  return narrow ? PL_FP8_TOKEN_BYTES : pl_dtype_bytes(shard->dtype);
}

/* Of tokens on their way to experts, and back, what is there of them; to experts perhaps in 8 bits. */
static double bytes_of_collective(const pl_launching *own, const pl_ir_op *op) {
  const pl_ir_type *type = &own->f->values[op->inputs[0]].type;
  bool to_experts = is(op, "all_to_all") && pl_ir_op_has_name(op, "to", own->routing.experts);
  double bytes = pl_ir_collective_bytes(&own->kernels->mesh, own->f, op) * pl_ir_moved_share(&own->routing, op, type);
  if (to_experts && pl_ir_is_routed(&own->routing, type))
    bytes *= token_bytes(own->tape->shard) / pl_ir_element_bytes((pl_ir_element)type->element);
  return bytes;
}

/* Of `alternate`, what was scattered over the tensor group is kept: reduce_scatter_tensor is on torchtitan's list
 * (_save_list). In the order in which it is asked for again. */
static bool is_kept(pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  bool scatters = is(op, "reduce_scatter") && group_of(own, op) == PL_GROUP_TENSOR;
  if (!scatters || own->tape->shard->recompute != PL_RECOMPUTE_ALTERNATE || !own->backward || !own->again[index])
    return false;
  if (own->n_asked == own->n_scattered) return false;
  own->tensor[op->first_output] = own->scattered[own->n_asked++];
  return true;
}

static void launch_collective(pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  if (is_kept(own, index)) return;
  uint32_t input = own->tensor[op->inputs[0]], output = input;
  if (own->picked[op->inputs[0]]) { /* they lie on the rank that has the token: adding them up is not counted */
    own->tensor[op->first_output] = input;
    return;
  }
  if (!is(op, "all_reduce") && input != PL_NONE)
    output = pl_launching_make(own, op->first_output, own->tape->tensors[input].name);
  own->tensor[op->first_output] = output;
  if (input == PL_NONE || output == PL_NONE) return;
  if (!own->backward && is(op, "reduce_scatter") && own->n_scattered < PL_LAUNCHED_HELD)
    own->scattered[own->n_scattered++] = output;
  pl_tape_group_collective(own->tape, pl_launching_collective_name(own, index), collective_of(op), group_of(own, op),
                           own->backward, bytes_of_collective(own, op), input, output);
  pl_op *made =
      own->backward ? &own->tape->backward[own->tape->n_backward - 1] : &own->tape->forward[own->tape->n_forward - 1];
  made->overlap = (uint8_t)overlap_of(own, op, !own->backward || own->again[index]);
}

/* ---- ops ---- */

/* Sums of a loss in steps, which has divided its exponentials by them. */
static bool is_in_softmax(const pl_launching *own, const pl_ir_op *kept) {
  if (own->block->kind != PL_BLOCK_LOSS || pl_loss_is_one_kernel(own->tape->framework->kernels.loss)) return false;
  return pl_ir_type_find(&own->f->values[kept->first_output].type, pl_ir_name_of("v")) < 0;
}

/* Of a pass that is made again; what is gathered for a weight's gradient alone is not. */
static bool is_for_pass(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  if (!own->again[index] || own->tape->input == PL_NONE) return false;
  if (pl_ir_row_at(op->row)->effect != PL_IR_COLLECTIVE) return true;
  for (int32_t i = index + 1; i < own->f->n_ops; i++)
    for (int32_t k = 0; own->again[i] && k < own->f->ops[i].n_inputs; k++)
      if (own->f->ops[i].inputs[k] == op->first_output) return true;
  return false;
}

static void launch_op(pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  const pl_ir_row *row = pl_ir_row_at(op->row);
  bool parts = own->tape->framework->gradients.gradient_path != PL_GRADIENTS_ADDED;
  own->tape->writes_for_inputs = own->for_inputs[index] || is_for_pass(own, index);
  if (is(op, "param")) {
    own->tensor[op->first_output] = pl_launching_parameter_of(own, op);
  } else if (is(op, "keep")) {
    pl_launching_keep(own, op->path, own->tensor[op->inputs[0]]);
  } else if (is(op, "kept")) {
    uint32_t kept = own->tensor[op->first_output] = is_in_softmax(own, op) ? PL_NONE : pl_launching_kept(own, op->path);
    if (kept != PL_NONE && own->last[op->first_output] == PL_IR_NONE && own->n_unread < PL_LAUNCHED_HELD)
      own->unread[own->n_unread++] = kept;
  } else if (row->effect == PL_IR_COLLECTIVE && !pl_ir_row_is_ring(row)) {
    if (is(op, "cut") || pl_launching_defers(own, op))
      pl_launching_share(own, index);
    else
      launch_collective(own, index);
  } else if (!own->backward && is(op, "place") && pl_launching_only_picks(own, op)) {
    own->tensor[op->first_output] = PL_NONE; /* where the rows are is known */
  } else if (!own->backward && is(op, "product") && pl_launching_is_placed(own, op->inputs[0])) {
    pl_launching_pick_rows(own, index);
  } else if (own->backward && parts && pl_launching_only_adds(own, op)) {
    pl_launching_hand_over(own, op);
  } else {
    pl_launching_kernel(own, index);
  }
}

static void run_pass(pl_launching *own) {
  for (int32_t i = 0; i < own->f->n_ops; i++) {
    const pl_ir_op *op = &own->f->ops[i];
    bool picks = is(op, "product") && pl_launching_is_placed(own, op->inputs[0]);
    for (int32_t k = 0; !own->backward && k < op->n_outputs && op->n_inputs > 0; k++)
      own->picked[op->first_output + k] = picks || own->picked[op->inputs[0]];
    if (!own->idle[i]) launch_op(own, i);
  }
}

/* ---- the block ---- */

/* Under autocast what goes from block to block may be wider than all else. */
static void widen_stream(pl_tape *tape, uint32_t tensor) {
  if (tensor != PL_NONE) pl_tape_retype(tape, tensor, tape->stream);
}

static bool is_among_kept(const pl_launching *own, uint32_t tensor) {
  for (int32_t i = 0; i < own->kept.n; i++)
    if (own->kept.entries[i].tensor == tensor) return true;
  return false;
}

/* Of `alternate`, where a checkpoint's cache holds what its list names whether somebody reads it backward or not: the
 * output of the layer's last product too. A compiler drops it. */
static void keep_unread(pl_launching *own) {
  const pl_ir_function *function = own->block->function;
  bool compiled = own->tape->framework->kernels.fuses_residual;
  if (compiled || !own->tape->layer || own->tape->shard->recompute != PL_RECOMPUTE_ALTERNATE) return;
  bool *again = PL_TAKE(own->scratch, bool, function->n_ops + 1);
  if (again == NULL) return; /* the arena says so */
  pl_recompute_alternate(function, pl_framework_attends_again(own->tape->framework), again);
  int32_t last = function->n_ops - 1;
  while (last >= 0 && !is(&function->ops[last], "product"))
    last--;
  if (last < 0 || again[last]) return;
  int32_t value = pl_ir_value_find(own->f, function->values[function->ops[last].first_output].name);
  uint32_t tensor = value != PL_IR_NONE ? own->tensor[value] : PL_NONE;
  if (tensor != PL_NONE && !is_among_kept(own, tensor)) own->tape->tensors[tensor].unread = true;
}

static void forward_pass(pl_launching *own) {
  pl_tape *tape = own->tape;
  for (int32_t i = 0; i < own->f->n_arguments; i++) {
    const char *name = strcmp(own->f->values[i].name, "x") == 0 ? "input" : own->f->values[i].name;
    own->tensor[i] = pl_launching_make(own, i, strcmp(name, "logits") == 0 ? "logits" : "input");
  }
  if (own->f->n_arguments > 0 && own->block->kind != PL_BLOCK_LATENT) /* whose vectors come from the data loader, too */
    *(own->block->takes_data ? &tape->data : &tape->input) = own->tensor[0];
  run_pass(own);
  keep_unread(own);
  if (own->f->n_results > 0) tape->output = own->tensor[own->f->results[0]];
  if (own->block->kind == PL_BLOCK_EMBEDDING) widen_stream(tape, tape->output);
  if (own->block->kind == PL_BLOCK_FINAL_NORM) widen_stream(tape, tape->input);
  /* PyTorch's allocator: the room of the 16-bit logits, given up in front of the backward pass, is half of what each of
   * the two fp32 gradients needs, and the copy's takes but one of them. */
  bool strands = own->block->kind == PL_BLOCK_LOSS && tape->framework->kernels.loss == PL_LOSS_COPIES;
  if (strands && pl_dtype_bytes(tape->shard->dtype) < pl_dtype_bytes(PL_DTYPE_FP32))
    tape->tensors[tape->input].unread = true;
}

static bool reads(const pl_op *op, uint32_t tensor) {
  for (int i = 0; i < PL_OP_INPUTS; i++)
    if (op->inputs[i] == tensor) return true;
  return false;
}

/* Whoever first reads what comes with an exchange that runs beside others waits for it. Where that is no computing, or
 * is not said, everything does. */
static void await_tokens(pl_op *ops, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (ops[i].kind != PL_OP_COLLECTIVE || ops[i].group != PL_GROUP_EXPERT || ops[i].overlap != PL_OVERLAP_BEGINS)
      continue;
    uint32_t reader = i + 1;
    while (reader < n && !reads(&ops[reader], ops[i].output))
      reader++;
    if (reader < n && ops[reader].kind != PL_OP_COLLECTIVE)
      ops[reader].overlap = PL_OVERLAP_AWAITS;
    else
      ops[i].overlap = PL_OVERLAP_NONE;
  }
}

static void backward_pass(pl_launching *own) {
  pl_tape *tape = own->tape;
  if (tape->output != PL_NONE && own->f->n_arguments > 0) {
    tape->output_gradient = own->tensor[0] =
        pl_tape_like(tape, tape->output, tape->tensors[tape->output].name, PL_TENSOR_GRADIENT,
                     (pl_dtype)tape->tensors[tape->output].dtype);
  }
  run_pass(own);
  tape->writes_for_inputs = false;
  pl_block_pass_gradients(tape, own->unsharded);
  if (tape->input != PL_NONE && own->f->n_results > 0) tape->input_gradient = own->tensor[own->f->results[0]];
  if (own->block->kind == PL_BLOCK_FINAL_NORM) widen_stream(tape, tape->input_gradient);
}

static const pl_ir_function *function_of(const pl_block_function *block, const pl_ir_module *kernels,
                                         const pl_ir_function *of) {
  int32_t index = of != NULL ? pl_ir_function_find(&block->launches, of->name) : PL_IR_NONE;
  return index != PL_IR_NONE ? kernels->functions[index] : NULL;
}

pl_code pl_launch_kernels(const pl_block_shard *shard, pl_arena *arena, pl_block_function *block, pl_error *error) {
  /* Of a framework that reduces a block's gradients together each is made by itself, and handed over. */
  pl_framework own = *pl_framework_or_ideal(shard->framework);
  own.pipeline.token_order = (pl_token_order)shard->token_order;
  if (own.gradients.gradient_path != PL_GRADIENTS_ADDED) {
    own.gradients.gradient_path = PL_GRADIENTS_ADDED;
    own.kernels.fuses_accumulation = false;
  }
  const pl_kernels_options options = {.framework = &own, .whole = true};
  return pl_ir_kernels(&block->module, &options, arena, &block->launches, error);
}

static pl_code launch(const pl_block_function *block, pl_tape *tape, pl_arena *scratch, pl_error *error) {
  pl_ir_module kernels;
  if (block->function == NULL) return PL_OK;
  if (!pl_launching_scale(&block->launches, tape->mbs, scratch, &kernels))
    return pl_fail_memory(error, "the program of a block");
  pl_launching own = {
      .block = block, .kernels = &kernels, .routing = pl_ir_routing_of(&kernels), .tape = tape, .scratch = scratch};
  own.routing.gathers = tape->framework->kernels.permutation == PL_PERMUTATION_GATHERED;
  const pl_ir_function *forward = function_of(block, &kernels, block->function),
                       *backward = function_of(block, &kernels, block->backward);
  if (!begin_pass(&own, forward, false)) return pl_fail_memory(error, "the program of a block");
  pl_launching_find_packs(&own);
  forward_pass(&own);
  await_tokens(tape->forward, tape->n_forward);
  if (backward != NULL) {
    if (!begin_pass(&own, backward, true)) return pl_fail_memory(error, "the program of a block");
    backward_pass(&own);
    await_tokens(tape->backward, tape->n_backward);
  }
  return scratch->failed ? pl_fail_memory(error, "the program of a block") : PL_OK;
}

pl_code pl_launch_block(const pl_block_function *block, pl_tape *tape, pl_error *error) {
  pl_arena scratch;
  pl_arena_init(&scratch, 1 << 16);
  pl_code code = launch(block, tape, &scratch, error);
  pl_arena_release(&scratch);
  return code;
}
