/* See workloads/lower/lower_backward.h: the walk, and the kernels of norms, sums and functions of each element. */
#include "workloads/lower/lower_backward.h"

#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/derive/differentiate.h"

static const double norm_flops = 11, pointwise_flops = 12, dropout_flops = 2, unpack_flops = 6;

/* ---- the derivative ---- */

int32_t pl_back_find(const pl_back *d, const pl_tape_node *node, const char *row) {
  for (int32_t op = d->first[node->head]; op != PL_IR_NONE; op = d->next[op])
    if (pl_read_is(&d->own.read, op, row)) return op;
  return PL_IR_NONE;
}

/* Ops that nothing is launched for: what they give is read where it is used. */
static bool is_read(const pl_back *d, int32_t op) {
  uint8_t effect = pl_ir_row_at(pl_read_op(&d->own.read, op)->row)->effect;
  return effect == PL_IR_READS || effect == PL_IR_WRITES;
}

bool pl_back_has(const pl_back *d, const pl_tape_node *node) {
  for (int32_t op = d->first[node->head]; op != PL_IR_NONE; op = d->next[op])
    if (!is_read(d, op)) return true;
  return false;
}

/* Groups of no op of their own, or of ops that only hand a gradient on: a gradient that has come goes through them. */
static bool hands_on(const pl_tape_node *node) {
  return node->rule == PL_RULE_ADD || node->rule == PL_RULE_REDUCE;
}

void pl_back_write_for(pl_back *d, int32_t op) {
  d->tape->writes_for_inputs = op != PL_IR_NONE && d->for_inputs[op];
}

void pl_back_write_for_group(pl_back *d) {
  bool any = hands_on(d->node) && d->tape->input != PL_NONE;
  for (int32_t op = d->first[d->node->head]; op != PL_IR_NONE; op = d->next[op])
    any = any || d->for_inputs[op];
  d->tape->writes_for_inputs = any;
}

/* From the results backwards: an op is for inputs if one that is reads what it makes. The data that a first block is
 * given wants no gradient. */
static void divide(pl_back *d) {
  const pl_ir_function *function = d->own.read.f;
  bool needed[PL_LOWERING_VALUES] = {false};
  if (function == NULL || d->tape->input == PL_NONE) return;
  for (int32_t i = 0; i < function->n_results; i++)
    needed[function->results[i]] = true;
  for (int32_t i = function->n_ops; i-- > 0;) {
    const pl_ir_op *op = &function->ops[i];
    for (int32_t k = 0; k < op->n_outputs; k++)
      d->for_inputs[i] = d->for_inputs[i] || needed[op->first_output + k];
    for (int32_t k = 0; d->for_inputs[i] && k < op->n_inputs; k++)
      needed[op->inputs[k]] = true;
  }
}

/* ---- gradients ---- */

/* A new gradient tensor shaped like activation `of`. */
uint32_t pl_back_fresh(pl_back *d, uint32_t of) {
  pl_tape *tape = d->tape;
  return pl_tape_like(tape, of, tape->tensors[of].name, PL_TENSOR_GRADIENT, (pl_dtype)tape->tensors[of].dtype);
}

static void assign(pl_back *d, uint32_t activation, uint32_t gradient) {
  d->gradient[activation] = gradient;
  d->users[gradient]++;
}

/* `gradient` has arrived for `activation`. */
void pl_back_arrive(pl_back *d, uint32_t activation, uint32_t gradient) {
  pl_tape *tape = d->tape;
  uint32_t old = d->gradient[activation];
  if (old == PL_NONE) {
    assign(d, activation, gradient);
    return;
  }
  double old_bytes = tape->tensors[old].size_bytes, new_bytes = tape->tensors[gradient].size_bytes;
  uint32_t sum = d->users[gradient] == 0 && new_bytes == old_bytes ? gradient
                 : d->users[old] == 1                              ? old
                                                                   : pl_back_fresh(d, activation);
  pl_op *op = pl_tape_sweep(tape, "gradient_add", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, gradient, old, PL_NONE,
                            sum, PL_NONE);
  if (new_bytes < old_bytes) op->bytes = 3 * new_bytes; /* a slice: BERT's pooler */
  if (sum != old) {
    d->users[old]--;
    assign(d, activation, sum);
  }
}

/* ---- kernels ---- */

static void max_pool(pl_back *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_back_fresh(d, node->input);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->input, node->output,
                dx, PL_NONE);
  pl_back_arrive(d, node->input, dx);
}

/* One memory-bound op from g and up to one kept tensor to the gradient of the input. */
void pl_back_sweep(pl_back *d, const pl_tape_node *node, pl_op_kind kind, double flops, uint32_t g, uint32_t kept) {
  uint32_t dx = pl_back_fresh(d, node->input);
  pl_tape_sweep(d->tape, node->names.backward, kind, PL_CATEGORY_BACKWARD, flops, g, kept, PL_NONE, dx, PL_NONE);
  pl_back_arrive(d, node->input, dx);
}

/* Where the op multiplied by a second activation, the same kernel makes that one's gradient too. */
static void pointwise(pl_back *d, const pl_tape_node *node, uint32_t g) {
  if (node->second == PL_NONE) {
    pl_back_sweep(d, node, PL_OP_ELEMENTWISE, pointwise_flops, g, node->input);
    return;
  }
  uint32_t dx = pl_back_fresh(d, node->input), dsecond = pl_back_fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, pointwise_flops, g, node->input,
                node->second, dx, dsecond);
  pl_back_arrive(d, node->input, dx);
  pl_back_arrive(d, node->second, dsecond);
}

static void add(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_back_arrive(d, node->input, g);
  pl_back_arrive(d, node->second, g);
}

static void copy(pl_back *d, const pl_tape_node *node, uint32_t g) {
  uint32_t own = d->tape->n_backward;
  pl_back_sweep(d, node, PL_OP_ELEMENTWISE, 1, g, PL_NONE);
  d->tape->backward[own].host_free = d->tape->forward[node->op].host_free;
  d->tape->backward[own].plain = d->tape->forward[node->op].plain;
  if (node->times > 1) { /* of each product's cast, and what comes of them added up */
    double wide = d->tape->tensors[node->input].size_bytes, n = node->times;
    double narrow = wide * pl_dtype_bytes(d->tape->shard->dtype) / pl_dtype_bytes(PL_DTYPE_FP32);
    d->tape->backward[own].bytes = n * (narrow + wide) + 3 * (n - 1) * wide;
  }
}

static void tangent(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_back_sweep(d, node, PL_OP_ELEMENTWISE, pointwise_flops, g, node->output);
}

static void relu(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_back_sweep(d, node, PL_OP_ELEMENTWISE, 1, g, node->output);
}

static void dropout(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_back_sweep(d, node, PL_OP_ELEMENTWISE, dropout_flops, g, node->auxiliary);
}

/* What was laid side by side, taken apart again. */
static void unpack(pl_back *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_back_fresh(d, node->input), dsecond = pl_back_fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, unpack_flops, g, PL_NONE,
                PL_NONE, dx, dsecond);
  pl_back_arrive(d, node->input, dx);
  pl_back_arrive(d, node->second, dsecond);
}

/* Mean and variance first: two passes. */
static void batch_norm(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_back_norm(d, node, g);
  pl_op *kernel = &d->tape->backward[d->tape->n_backward - 1];
  kernel->bytes += 2 * d->tape->tensors[g].size_bytes;
  kernel->plain = true;
}

/* One kernel: the gradient of what was added is what the ReLU lets through, written beside the input's. Signs of the
 * output, a bit each, are not counted. */
static void batch_norm_relu(pl_back *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_back_fresh(d, node->input), dw = pl_back_parameter_gradient(d, node->weight);
  uint32_t passed = node->second != PL_NONE ? pl_back_fresh(d, node->second) : PL_NONE;
  pl_op *op = pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, norm_flops, g,
                            node->input, node->weight, dx, passed);
  op->bytes += d->tape->tensors[dw].size_bytes;
  pl_back_arrive(d, node->input, dx);
  if (passed != PL_NONE) pl_back_arrive(d, node->second, passed);
}

/* ---- the walk ---- */

static const pl_backs kernels[] = {[PL_RULE_LINEAR] = pl_back_linear,
                                   [PL_RULE_REDUCE] = pl_back_reduce,
                                   [PL_RULE_NORM] = pl_back_norm,
                                   [PL_RULE_ADD] = add,
                                   [PL_RULE_POINTWISE] = pointwise,
                                   [PL_RULE_CAST] = copy,
                                   [PL_RULE_TANH] = tangent,
                                   [PL_RULE_DROPOUT] = dropout,
                                   [PL_RULE_PACK] = unpack,
                                   [PL_RULE_PERMUTE] = copy,
                                   [PL_RULE_CONVOLUTION] = pl_back_convolution,
                                   [PL_RULE_BATCH_NORM] = batch_norm,
                                   [PL_RULE_BATCH_NORM_RELU] = batch_norm_relu,
                                   [PL_RULE_RELU] = relu,
                                   [PL_RULE_MAX_POOL] = max_pool};

static void run_group(pl_back *d, const pl_tape_node *node) {
  uint32_t g = node->output == PL_NONE ? PL_NONE : d->gradient[node->output];
  if (node->output != PL_NONE && g == PL_NONE) return; /* nothing depends on it: the pooler of a bare BertModel */
  PL_ASSERT(hands_on(node) || pl_back_has(d, node));
  d->node = node;
  pl_back_write_for_group(d);
  kernels[node->rule](d, node, g);
}

static void note_ops(pl_back *d) {
  const pl_block_function *block = d->forward->block;
  for (int32_t i = 0; i < block->function->n_ops; i++)
    d->first[i] = PL_IR_NONE;
  for (int32_t i = d->own.read.f != NULL ? d->own.read.f->n_ops : 0; i-- > 0;) {
    if (block->derived_from[i] == PL_IR_NONE) continue;
    int32_t *first = &d->first[d->forward->head[block->derived_from[i]]];
    d->next[i] = *first;
    *first = i;
  }
}

/* Field by field, and of arrays what is used: setting all of it to zero was a quarter of what lowering takes. */
static void begin(pl_back *d, const pl_lowering *to) {
  const pl_ir_function *function = to->block->backward;
  d->tape = to->tape;
  d->forward = to;
  d->own.tape = to->tape;
  d->own.block = to->block;
  d->own.read.mesh = to->read.mesh;
  d->own.read.f = function;
  d->own.read.n_users = d->own.read.user = NULL; /* asked of the forward pass only */
  d->node = NULL;
  d->unsharded = 0;
  PL_ASSERT(function == NULL || (function->n_ops <= PL_LOWERING_VALUES && function->n_values <= PL_LOWERING_VALUES));
  memset(d->for_inputs, 0, function != NULL ? (size_t)function->n_ops : 0);
  memset(d->gradient, 0xff, sizeof d->gradient);
  memset(d->users, 0, sizeof d->users);
}

void pl_lower_backward(const pl_lowering *to) {
  pl_tape *tape = to->tape;
  pl_back d;
  begin(&d, to);
  note_ops(&d);
  divide(&d);
  if (tape->output != PL_NONE) {
    tape->output_gradient = pl_back_fresh(&d, tape->output);
    assign(&d, tape->output, tape->output_gradient);
  }
  tape->writes_for_inputs = tape->input != PL_NONE;
  pl_lower_recompute(to);
  for (uint32_t i = tape->n_nodes; i-- > 0;)
    run_group(&d, &tape->nodes[i]);
  pl_back_write_for(&d, PL_IR_NONE);
  pl_block_pass_gradients(tape, d.unsharded);
  if (tape->input != PL_NONE) tape->input_gradient = d.gradient[tape->input];
}
