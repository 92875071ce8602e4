/* See workloads/lower/launched_kernels.h. */
#include "workloads/lower/launched_kernels.h"

#include "core/cluster/cluster.h"
#include "workloads/cost/ir_kernel.h"
#include "workloads/ir/chain.h"
#include "workloads/layout/layout_rules.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- kernels ---- */

pl_op *pl_launching_append(pl_launching *own, const pl_op *kernel) {
  pl_tape *tape = own->tape;
  if (!own->backward) {
    PL_ASSERT(tape->n_forward < PL_TAPE_FORWARD_OPS);
    tape->forward[tape->n_forward] = *kernel;
    return &tape->forward[tape->n_forward++];
  }
  PL_ASSERT(tape->n_backward < PL_TAPE_BACKWARD_OPS);
  tape->for_inputs[tape->n_backward] = tape->writes_for_inputs;
  tape->backward[tape->n_backward] = *kernel;
  return &tape->backward[tape->n_backward++];
}

static void clear_tensors(pl_op *op) {
  for (int i = 0; i < PL_OP_INPUTS; i++)
    op->inputs[i] = PL_NONE;
  op->output = op->auxiliary = op->third = PL_NONE;
}

/* Parameters and their gradients stay: an op names as many as it has room for. */
bool pl_launching_must_name(const pl_launching *own, uint32_t tensor) {
  uint8_t kind = own->tape->tensors[tensor].kind;
  return kind != PL_TENSOR_PARAMETER && kind != PL_TENSOR_PARAMETER_GRADIENT;
}

void pl_launching_read(const pl_launching *own, pl_op *op, uint32_t tensor) {
  if (tensor == PL_NONE) return;
  for (int i = 0; i < PL_OP_INPUTS; i++) {
    if (op->inputs[i] == tensor) return;
    if (op->inputs[i] != PL_NONE) continue;
    op->inputs[i] = tensor;
    return;
  }
  PL_ASSERT(!pl_launching_must_name(own, tensor));
}

/* In the first place that is free. */
void pl_launching_write(const pl_launching *own, pl_op *op, uint32_t tensor) {
  uint32_t *const places[] = {&op->output, &op->auxiliary, &op->third};
  if (tensor == PL_NONE) return;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (*places[i] == tensor) return;
    if (*places[i] != PL_NONE) continue;
    *places[i] = tensor;
    return;
  }
  PL_ASSERT(!pl_launching_must_name(own, tensor));
}

/* ---- gradients ---- */

static bool is_launched(const pl_ir_launched_ops *of, const char *row) {
  for (int32_t i = 0; i < of->n; i++)
    if (is(&of->ops[i], row)) return true;
  return false;
}

static bool is_added(const pl_launching *own, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  return is_launched(&of, "accumulate");
}

/* Casts and additions to buffers alone. */
bool pl_launching_only_adds(const pl_launching *own, const pl_ir_op *op) {
  static const char *const rows[] = {"accumulate", "cast", "copy", "scale", "rename", NULL};
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  for (int32_t i = 0; i < of.n; i++) {
    bool one = false;
    for (const char *const *row = rows; *row != NULL; row++)
      one = one || is(&of.ops[i], *row);
    if (!one) return false;
  }
  return is_added(own, op);
}

/* Of a framework that reduces a block's gradients together: they are handed over, and shards of them are added up
 * later. Of a weight with two uses autograd adds the two first. */
void pl_launching_hand_over(pl_launching *own, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  for (int32_t i = 0; i < of.n; i++) {
    if (!is(&of.ops[i], "accumulate")) continue;
    uint32_t weight = pl_launching_parameter(own, of.ops[i].path);
    double elements = pl_ir_type_local_elements(&own->kernels->mesh, &of.f->values[of.ops[i].inputs[0]].type);
    if (weight == PL_NONE || weight != own->tape->tied)
      own->unsharded += elements;
    else
      pl_tape_sweep(own->tape, "gradient_add", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, weight, PL_NONE, PL_NONE,
                    PL_NONE, PL_NONE)
          ->bytes = 3 * own->tape->tensors[weight].size_bytes;
  }
}

/* Of a table, a dense gradient that is made and handed over: not added to a buffer here. */
static void hand_table_over(pl_launching *own, const pl_ir_op *op, pl_op *kernel) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  const pl_ir_op *added = NULL, *made = NULL;
  for (int32_t i = 0; i < of.n; i++) {
    if (is(&of.ops[i], "accumulate")) added = &of.ops[i];
    if (is(&of.ops[i], "embedding_backward")) made = &of.ops[i];
  }
  if (kernel->kind != PL_OP_EMBEDDING || added == NULL || made == NULL) return;
  const pl_ir_mesh *mesh = &own->kernels->mesh;
  kernel->bytes -= 2 * pl_ir_type_local_bytes(mesh, &of.f->values[added->inputs[0]].type) +
                   pl_ir_type_local_bytes(mesh, &of.f->values[made->first_output].type);
  pl_launching_hand_over(own, op);
}

/* The type in which a gradient travels to its reduction: as it is made, where that is as wide. */
static double sent_bytes(const pl_launching *own, double elements, uint8_t made, double kept_bytes) {
  int reduced = pl_framework_reduce_dtype(own->tape->framework, (pl_dtype)made);
  return reduced < 0 ? kept_bytes : elements * pl_dtype_bytes((pl_dtype)reduced);
}

/* Gradients of which shards are kept (ZeRO-2 and 3) are not added to a buffer here: whoever reduces them adds the
 * shard. They are written into what is reduced, by the product that makes them or by a kernel of its own. Of learned
 * positions (which a sum makes, no lookup in a table) only the rows of a pass are touched, in a buffer or in that. */
static void scatter_gradients(const pl_launching *own, const pl_ir_op *op, pl_op *kernel) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  const pl_block_shard *shard = own->tape->shard;
  if (kernel->kind != PL_OP_EMBEDDING && is_launched(&of, "embedding_backward")) return;
  for (int32_t i = 0; i < of.n; i++) {
    const pl_ir_op *added = &of.ops[i];
    if (!is(added, "accumulate")) continue;
    const pl_ir_type *kept = &of.f->values[added->inputs[0]].type, *made = kept;
    int32_t maker = of.f->values[added->inputs[0]].op;
    if (maker != PL_IR_NONE && is(&of.f->ops[maker], "cast")) made = &of.f->values[of.f->ops[maker].inputs[0]].type;
    if (!(pl_layout_is_of_experts(added->path, kept) ? shard->scatters_experts : shard->scatters)) continue;
    double elements = pl_ir_type_local_elements(&own->kernels->mesh, kept),
           kept_bytes = pl_ir_type_local_bytes(&own->kernels->mesh, kept);
    kernel->bytes += sent_bytes(own, elements, made->element, kept_bytes) - 2 * kept_bytes;
  }
}

/* ---- what the caller's variables hold ---- */

static bool copies_heads(const pl_ir_launched_ops *of) {
  for (int32_t i = 0; i < of->n; i++)
    if (is(&of->ops[i], "copy") && pl_ir_integer_of(&of->ops[i], "heads", 0) > 0) return true;
  return false;
}

static bool adds_values(const pl_ir_launched_ops *of) {
  for (int32_t i = 0; i < of->n; i++)
    if (is(&of->ops[i], "add") &&
        pl_ir_type_same_shape(&of->f->values[of->ops[i].inputs[0]].type, &of->f->values[of->ops[i].inputs[1]].type))
      return true;
  return false;
}

static void hold(pl_launching *own, uint32_t tensor) {
  if (tensor == PL_NONE || own->n_held == PL_LAUNCHED_HELD) return;
  own->held[own->n_held++] = tensor;
}

/* Where a profile copies queries, keys and values on their way to attention, the product that they are of is held until
 * attention has run, and what attention gives until the layer's second sum (`copies_qkv`). */
static void note_held(pl_launching *own, int32_t index, pl_op *kernel) {
  const pl_ir_op *op = &own->f->ops[index];
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  if (own->backward || !own->tape->framework->kernels.copies_qkv) return;
  if (copies_heads(&of) && !own->copies) {
    own->copies = true;
    for (int32_t i = 0; i < op->n_inputs; i++)
      hold(own, own->tensor[op->inputs[i]]);
  }
  bool attends = kernel->kind == PL_OP_ATTENTION, adds = own->copies && adds_values(&of);
  for (int32_t i = 0; (attends || (adds && own->n_held > 0)) && i < own->n_held; i++)
    pl_launching_read(own, kernel, own->held[i]);
  if (attends || adds) own->n_held = 0;
  for (int32_t i = 0; adds && i < op->n_inputs; i++) {
    uint32_t tensor = own->tensor[op->inputs[i]];
    if (tensor != PL_NONE && tensor != own->tape->input && pl_launching_must_name(own, tensor)) hold(own, tensor);
  }
}

/* Work of attention with a sliding window w, of s w - w^2 / 2 pairs where all keys are half of s^2: where every so
 * many-th layer of the class sees all keys, each is given the mean of both kinds. */
static double mean_of_windows(const pl_launching *own, const pl_ir_op *op) {
  double window = (double)pl_ir_integer_of(op, "window", 0), seq = (double)own->tape->model_seq;
  double period = own->block->window_period;
  if (period < 2 || window <= 0 || window >= seq) return 1;
  double pairs = seq * window - window * window / 2;
  return (period - 1 + seq * seq / 2 / pairs) / period;
}

/* The convolution of the block's chain that is so, which outlives the block's program. */
static const pl_chain_step *step_of_chain(const pl_launching *own, const pl_chain_step *step) {
  const pl_chain *chain = own->block->chain;
  for (uint32_t i = 0; chain != NULL && i < chain->n_steps; i++) {
    const pl_chain_step *is = &chain->steps[i];
    if (is->kind == PL_STEP_CONVOLUTION && is->filter_height == step->filter_height &&
        is->filter_width == step->filter_width && is->stride == step->stride && pl_picture_equal(is->in, step->in) &&
        pl_picture_equal(is->out, step->out))
      return is;
  }
  PL_NEVER("a convolution is of its chain");
}

void pl_launching_kernel(pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  pl_tape *tape = own->tape;
  pl_category category = !own->backward      ? PL_CATEGORY_FORWARD
                         : own->again[index] ? PL_CATEGORY_RECOMPUTE
                                             : PL_CATEGORY_BACKWARD;
  pl_op kernel, beside;
  pl_chain_step step;
  if (!pl_ir_launched(own->kernels, &own->routing, own->f, op, tape->framework, category, &kernel, &step)) {
    pl_launching_share(own, index);
    return;
  }
  kernel.name = pl_launching_name(own, index);
  if (kernel.convolution != NULL) kernel.convolution = step_of_chain(own, &step);
  if (kernel.kind == PL_OP_ATTENTION) {
    kernel.attention_kernel = (uint8_t)tape->shard->attention_kernel;
    kernel.flops *= mean_of_windows(own, op);
  }
  clear_tensors(&kernel);
  for (int32_t i = 0; i < op->n_inputs; i++) {
    uint32_t tensor = own->tensor[op->inputs[i]];
    bool later = tensor != PL_NONE && op->n_inputs > PL_OP_INPUTS && !pl_launching_must_name(own, tensor);
    if (!later) pl_launching_read(own, &kernel, tensor);
  }
  note_held(own, index, &kernel);
  pl_launching_note_outputs(own, index, kernel.name, &kernel);
  if (own->backward && own->tape->framework->gradients.gradient_path != PL_GRADIENTS_ADDED)
    hand_table_over(own, op, &kernel);
  else if (own->backward)
    scatter_gradients(own, op, &kernel);
  pl_launching_note_beside(own, index, &kernel);
  if (pl_ir_launched_beside(own->kernels, &own->routing, own->f, op, &beside)) {
    beside.name = "gradient_add";
    clear_tensors(&beside);
    pl_launching_read(own, &beside, kernel.output);
    beside.output = kernel.output;
    pl_launching_append(own, &kernel);
    pl_launching_append(own, &beside);
    return;
  }
  bool in_steps = kernel.kind == PL_OP_ATTENTION && pl_launching_context(own, index, &kernel);
  if (!in_steps) pl_launching_append(own, &kernel);
}

/* ---- rows that are picked ---- */

/* Rows that hold a single one, and products with them: rows are picked. */
bool pl_launching_is_placed(const pl_launching *own, int32_t value) {
  int32_t maker = own->f->values[value].op;
  while (maker != PL_IR_NONE && is(&own->f->ops[maker], "cut"))
    maker = own->f->values[own->f->ops[maker].inputs[0]].op;
  return maker != PL_IR_NONE && is(&own->f->ops[maker], "place");
}

bool pl_launching_only_picks(const pl_launching *own, const pl_ir_op *place) {
  for (int32_t i = 0; i < own->f->n_ops; i++)
    for (int32_t k = 0; k < own->f->ops[i].n_inputs; k++) {
      bool reads = own->f->ops[i].inputs[k] == place->first_output;
      if (reads && !is(&own->f->ops[i], "product") && !is(&own->f->ops[i], "cut")) return false;
    }
  return true;
}

/* The rows are read and written. */
void pl_launching_pick_rows(pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  pl_op kernel;
  pl_chain_step step; /* of no convolution */
  if (!pl_ir_launched(own->kernels, &own->routing, own->f, op, own->tape->framework, PL_CATEGORY_FORWARD, &kernel,
                      &step))
    return;
  kernel.kind = PL_OP_ELEMENTWISE;
  kernel.name = "picked";
  kernel.flops = 0;
  kernel.bytes = 2 * pl_launching_bytes(own, op->first_output);
  kernel.transposed = false;
  clear_tensors(&kernel);
  pl_launching_read(own, &kernel, own->tensor[op->inputs[1]]);
  pl_launching_note_outputs(own, index, kernel.name, &kernel);
  pl_launching_append(own, &kernel);
}
