/* See workloads/block/block_tape.h: the forward vocabulary. */
#include "workloads/block/block_tape.h"

#include <string.h>

#include "core/cluster/cluster.h"

/* Vector operations per element; they only matter to the roofline of kernels that memory bounds anyway. */
static const double norm_flops = 5, dropout_flops = 2;

void pl_tape_init(pl_tape *tape, const pl_block_shard *shard) {
  tape->shard = shard;
  tape->framework = pl_framework_or_ideal(shard->framework);
  tape->tmp = shard->tmp;
  tape->ep = shard->ep > 1 ? shard->ep : 1;
  tape->mbs = shard->mbs;
  tape->cp = shard->cp > 1 ? shard->cp : 1;
  tape->model_seq = shard->seq;
  tape->seq = shard->seq / tape->cp;
  tape->sp = shard->sp && shard->tmp > 1;
  tape->seq_local = tape->sp ? tape->seq / shard->tmp : tape->seq;
  tape->layer = tape->overlaps = tape->writes_for_inputs = false;
  tape->n_tensors = tape->n_forward = tape->n_backward = tape->n_nodes = 0;
  tape->input = tape->output = tape->output_gradient = tape->input_gradient = PL_NONE;
  tape->data = tape->tied = PL_NONE;
  tape->model_flops = 0;
  pl_autocast_form form = pl_framework_autocast(tape->framework, shard->dtype);
  tape->stream = form == PL_AUTOCAST_ALL ? PL_DTYPE_FP32 : shard->dtype;
  tape->normed = form != PL_AUTOCAST_OFF ? PL_DTYPE_FP32 : shard->dtype;
}

void pl_tape_retype(pl_tape *tape, uint32_t tensor, pl_dtype dtype) {
  tape->tensors[tensor].size_bytes *= pl_dtype_bytes(dtype) / pl_dtype_bytes((pl_dtype)tape->tensors[tensor].dtype);
  tape->tensors[tensor].dtype = (uint8_t)dtype;
}

uint32_t pl_tape_tensor(pl_tape *tape, const char *name, pl_tensor_kind kind, pl_dtype dtype, const char *dims,
                        const int64_t *extent) {
  PL_ASSERT(tape->n_tensors < PL_TAPE_TENSORS);
  pl_tensor *tensor = &tape->tensors[tape->n_tensors];
  *tensor = (pl_tensor){.name = name, .kind = (uint8_t)kind, .dtype = (uint8_t)dtype};
  tensor->size_bytes = pl_dtype_bytes(dtype);
  for (; dims[tensor->rank] != '\0'; tensor->rank++) {
    PL_DEBUG_ASSERT(tensor->rank < PL_TENSOR_RANK);
    tensor->dims[tensor->rank] = dims[tensor->rank];
    tensor->extent[tensor->rank] = extent[tensor->rank];
    tensor->size_bytes *= (double)extent[tensor->rank];
  }
  return tape->n_tensors++;
}

uint32_t pl_tape_like(pl_tape *tape, uint32_t tensor, const char *name, pl_tensor_kind kind, pl_dtype dtype) {
  PL_ASSERT(tape->n_tensors < PL_TAPE_TENSORS);
  pl_tensor *copy = &tape->tensors[tape->n_tensors];
  *copy = tape->tensors[tensor];
  copy->name = name;
  copy->kind = (uint8_t)kind;
  copy->dtype = (uint8_t)dtype;
  copy->size_bytes = pl_tape_elements(tape, tensor) * pl_dtype_bytes(dtype);
  copy->remade_bytes = 0;
  copy->pieces = 0;
  copy->unread = false;
  return tape->n_tensors++;
}

uint32_t pl_tape_activation(pl_tape *tape, const char *name, int64_t rows, char dim, int64_t width) {
  const char dims[] = {'b', 's', dim, '\0'};
  const int64_t extent[] = {tape->mbs, rows, width};
  return pl_tape_tensor(tape, name, PL_TENSOR_ACTIVATION, tape->shard->dtype, dims, extent);
}

uint32_t pl_tape_parameter(pl_tape *tape, const char *name, const char *dims, int64_t first, int64_t second) {
  const int64_t extent[] = {first, second};
  return pl_tape_tensor(tape, name, PL_TENSOR_PARAMETER, tape->shard->dtype, dims, extent);
}

double pl_tape_elements(const pl_tape *tape, uint32_t tensor) {
  const pl_tensor *entry = &tape->tensors[tensor];
  double elements = 1;
  for (uint8_t i = 0; i < entry->rank; i++)
    elements *= (double)entry->extent[i];
  return elements;
}

static pl_op *append(pl_tape *tape, bool backward) {
  if (!backward) {
    PL_ASSERT(tape->n_forward < PL_TAPE_FORWARD_OPS);
    return &tape->forward[tape->n_forward++];
  }
  PL_ASSERT(tape->n_backward < PL_TAPE_BACKWARD_OPS);
  tape->for_inputs[tape->n_backward] = tape->writes_for_inputs;
  return &tape->backward[tape->n_backward++];
}

/* What the output of a library's kernel has written to it beforehand in deterministic runs: all of a new tensor,
 * nothing of a buffer that is added to. */
static double filled(const pl_tape *tape, uint32_t output) {
  if (output == PL_NONE || tape->tensors[output].kind == PL_TENSOR_PARAMETER_GRADIENT) return 0;
  return tape->tensors[output].size_bytes;
}

pl_op *pl_tape_op(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, uint32_t first,
                  uint32_t second, uint32_t third, uint32_t output) {
  pl_op *op = append(tape, category != PL_CATEGORY_FORWARD);
  bool deterministic = pl_framework_or_ideal(tape->shard->framework)->kernels.deterministic;
  *op = (pl_op){.name = name,
                .kind = (uint8_t)kind,
                .category = (uint8_t)category,
                .dtype = (uint8_t)tape->shard->dtype,
                .batch = 1,
                .deterministic = deterministic,
                .inputs = {first, second, third, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE},
                .output = output,
                .auxiliary = PL_NONE,
                .third = PL_NONE};
  if (deterministic && pl_op_allocates(op)) op->filled_bytes = filled(tape, output);
  return op;
}

pl_op *pl_tape_gemm(pl_tape *tape, const char *name, pl_category category, int64_t batch, int64_t m, int64_t n,
                    int64_t k, uint32_t first, uint32_t second, uint32_t third, uint32_t output) {
  pl_op *op = pl_tape_op(tape, name, PL_OP_GEMM, category, first, second, third, output);
  /* A buffer of gradients that the product reads is added to: read and written, in its own type. */
  bool accumulates = output != PL_NONE && third == output && tape->tensors[output].kind == PL_TENSOR_PARAMETER_GRADIENT;
  double element = pl_dtype_bytes(tape->shard->dtype),
         out = accumulates ? 2 * pl_dtype_bytes((pl_dtype)tape->tensors[output].dtype) : element;
  pl_op_set_product(op, batch, m, n, k, element, out);
  return op;
}

void pl_tape_as_convolution(const pl_tape *tape, pl_op *op, const struct pl_chain_step *step,
                            pl_convolution_pass pass) {
  const pl_tensor *output = &tape->tensors[op->output];
  pl_op_set_convolution(op, step, tape->mbs, pass);
  op->bytes = tape->tensors[op->inputs[0]].size_bytes + tape->tensors[op->inputs[1]].size_bytes +
              output->size_bytes * (output->kind == PL_TENSOR_PARAMETER_GRADIENT ? 2 : 1);
}

/* The type of the products that are narrower than all else. */
static pl_dtype narrow_dtype(const pl_tape *tape) {
  return tape->shard->fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8;
}

void pl_tape_in_fp8(const pl_tape *tape, pl_op *op) {
  double saved = pl_dtype_bytes(tape->shard->dtype) - pl_dtype_bytes(narrow_dtype(tape));
  op->bytes -= saved * (double)op->batch * ((double)op->m * (double)op->k + (double)op->k * (double)op->n);
  op->dtype = (uint8_t)narrow_dtype(tape);
}

uint32_t pl_tape_cast(pl_tape *tape, const char *name, pl_category category, uint32_t input, int n_copies) {
  uint32_t output = pl_tape_like(tape, input, tape->tensors[input].name, (pl_tensor_kind)tape->tensors[input].kind,
                                 narrow_dtype(tape));
  pl_op *op = pl_tape_sweep(tape, name, PL_OP_ELEMENTWISE, category, 1, input, PL_NONE, PL_NONE, output, PL_NONE);
  op->bytes += (n_copies - 1) * tape->tensors[output].size_bytes;
  if (tape->framework->kernels.fp8_scaling != PL_FP8_DELAYED) op->bytes += tape->tensors[input].size_bytes;
  return output;
}

static double size_of(const pl_tape *tape, uint32_t tensor) {
  return tensor == PL_NONE ? 0 : tape->tensors[tensor].size_bytes;
}

pl_op *pl_tape_sweep(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, double flops_per_element,
                     uint32_t first, uint32_t second, uint32_t third, uint32_t output, uint32_t auxiliary) {
  pl_op *op = pl_tape_op(tape, name, kind, category, first, second, third, output);
  const pl_tensor *widest = &tape->tensors[first]; /* reductions have small outputs */
  double elements = pl_tape_elements(tape, first);
  op->n = widest->extent[widest->rank - 1];
  op->m = (int64_t)(elements / (double)op->n);
  op->flops = flops_per_element * elements;
  op->auxiliary = auxiliary;
  op->bytes = size_of(tape, first) + size_of(tape, second) + size_of(tape, third) + size_of(tape, output) +
              size_of(tape, auxiliary);
  return op;
}

static pl_category category_of(pl_group_role group) {
  return group == PL_GROUP_CONTEXT  ? PL_CATEGORY_CONTEXT
         : group == PL_GROUP_EXPERT ? PL_CATEGORY_EXPERT
                                    : PL_CATEGORY_TENSOR;
}

void pl_tape_collective(pl_tape *tape, const char *name, pl_collective_kind kind, bool backward, double size_bytes,
                        uint32_t input, uint32_t output) {
  pl_tape_group_collective(tape, name, kind, PL_GROUP_TENSOR, backward, size_bytes, input, output);
}

void pl_tape_group_collective(pl_tape *tape, const char *name, pl_collective_kind kind, pl_group_role group,
                              bool backward, double size_bytes, uint32_t input, uint32_t output) {
  pl_op *op = append(tape, backward);
  *op = (pl_op){.name = name,
                .kind = PL_OP_COLLECTIVE,
                .category = (uint8_t)category_of(group),
                .dtype = tape->tensors[input].dtype,
                .collective = (uint8_t)kind,
                .group = (uint8_t)group,
                .size_bytes = size_bytes,
                .inputs = {input, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE},
                .output = output,
                .auxiliary = PL_NONE,
                .third = PL_NONE};
}

pl_tape_node *pl_tape_note(pl_tape *tape, pl_tape_rule rule, pl_tape_names names, uint32_t input, uint32_t output) {
  PL_ASSERT(tape->n_nodes < PL_TAPE_NODES);
  pl_tape_node *node = &tape->nodes[tape->n_nodes++];
  *node = (pl_tape_node){.names = names,
                         .rule = (uint8_t)rule,
                         .first_op = tape->n_forward - 1,
                         .op = tape->n_forward - 1,
                         .input = input,
                         .second = PL_NONE,
                         .weight = PL_NONE,
                         .bias = PL_NONE,
                         .output = output,
                         .auxiliary = PL_NONE,
                         .quantised = PL_NONE,
                         .head = tape->head,
                         .of = tape->of};
  return node;
}

/* The whole sequence of an activation that is split over it; `input` itself where it is not. */
static uint32_t gather(pl_tape *tape, const char *name, uint32_t input) {
  if (!tape->sp) return input;
  const pl_tensor *shard = &tape->tensors[input];
  uint32_t full = pl_tape_activation(tape, shard->name, tape->seq, 'h', shard->extent[shard->rank - 1]);
  tape->tensors[full].dtype = shard->dtype;
  tape->tensors[full].size_bytes = pl_tape_elements(tape, full) * pl_dtype_bytes((pl_dtype)shard->dtype);
  pl_tape_collective(tape, name, PL_ALL_GATHER, false, tape->tensors[full].size_bytes, input, full);
  if (tape->overlaps) tape->forward[tape->n_forward - 1].overlap = PL_OVERLAP_BEGINS;
  return full;
}

bool pl_tape_copies_inputs(const pl_tape *tape) {
  return tape->framework->kernels.copies_inputs && tape->tmp > 1 && !tape->sp;
}

/* One copy for each of the products that are one kernel here, all in one tensor. */
static uint32_t copied(pl_tape *tape, const pl_linear *linear, uint32_t input) {
  if (!pl_tape_copies_inputs(tape)) return input;
  uint32_t copies =
      pl_tape_like(tape, input, "input_copies", PL_TENSOR_ACTIVATION, (pl_dtype)tape->tensors[input].dtype);
  double n = linear->n_products > 1 ? linear->n_products : 1;
  pl_tape_sweep(tape, "input_copies", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 0, input, PL_NONE, PL_NONE, copies,
                PL_NONE)
      ->bytes = 2 * n * tape->tensors[copies].size_bytes;
  tape->tensors[copies].size_bytes *= n;
  return copies;
}

bool pl_tape_casts_again(const pl_tape *tape) {
  return tape->framework->kernels.fp8_scaling == PL_FP8_DYNAMIC && tape->shard->tmp == 1;
}

uint32_t pl_tape_cast_input(pl_tape *tape, const char *name, uint32_t input) {
  return pl_tape_cast(tape, name, PL_CATEGORY_FORWARD, input, pl_tape_casts_again(tape) ? 1 : 2);
}

uint32_t pl_tape_autocast(pl_tape *tape, uint32_t input, int n) {
  static const pl_tape_names names = PL_OP_NAMES("autocast");
  if (tape->normed == tape->shard->dtype || tape->tensors[input].dtype != PL_DTYPE_FP32) return input;
  uint32_t narrow = pl_tape_like(tape, input, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE,
                            narrow, PL_NONE);
  op->bytes *= n;
  op->plain = true;
  tape->tensors[narrow].size_bytes *= n;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_CAST, names, input, narrow);
  node->times = (uint8_t)n;
  return narrow;
}

/* A weight in fp32, cast where it is used: autocast's cache is of leaves, which views of a flat parameter are none of,
 * and is dropped behind the forward pass. */
static void autocast_weight(pl_tape *tape, uint32_t weight) {
  if (tape->stream == tape->shard->dtype) return;
  pl_op *op =
      pl_tape_op(tape, "weight_autocast", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, PL_NONE, PL_NONE, PL_NONE, PL_NONE);
  double elements = pl_tape_elements(tape, weight);
  op->m = 1;
  op->n = (int64_t)elements;
  op->flops = elements;
  op->bytes = elements * (pl_dtype_bytes(PL_DTYPE_FP32) + pl_dtype_bytes(tape->shard->dtype));
  op->plain = true;
}

uint32_t pl_tape_linear(pl_tape *tape, const pl_linear *linear, uint32_t input, uint32_t weight, uint32_t output) {
  int n_casts = linear->n_products > 1 ? linear->n_products : 1;
  uint32_t wide = input;
  input = pl_tape_autocast(tape, input, n_casts);
  uint32_t first_op = tape->n_forward;
  int64_t rows = linear->m;
  if (weight == PL_NONE) weight = pl_tape_parameter(tape, linear->names.forward, "io", linear->in, linear->out);
  uint32_t bias = linear->bias ? pl_tape_parameter(tape, linear->names.bias, "o", linear->out, 0) : PL_NONE;
  autocast_weight(tape, weight);
  bool fp8 = tape->shard->fp8 && tape->layer && !linear->keeps_precision;
  if (fp8 && input != wide) tape->tensors[input].size_bytes /= n_casts; /* one copy in 8 bits is made of them */
  uint32_t given = fp8 ? pl_tape_cast_input(tape, linear->names.cast, input) : input;
  bool column = linear->parallel == PL_PARALLEL_COLUMN;
  uint32_t full = column ? copied(tape, linear, gather(tape, linear->names.gather, given)) : given;
  pl_op *op = pl_tape_gemm(tape, linear->names.forward, PL_CATEGORY_FORWARD, 1, rows, linear->out, linear->in, full,
                           weight, bias, output);
  if (fp8) pl_tape_in_fp8(tape, op);
  tape->model_flops += 2 * linear->model_rows * linear->model_in * linear->model_out;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_LINEAR, linear->names, input, output);
  node->first_op = first_op;
  node->parallel = (uint8_t)linear->parallel;
  node->weight = weight;
  node->bias = bias;
  if (fp8) node->quantised = given;
  memcpy(node->products, linear->products, sizeof node->products);
  node->n_products = linear->n_products;
  return output;
}

uint32_t pl_tape_reduce(pl_tape *tape, pl_tape_names names, uint32_t partial) {
  if (tape->tmp == 1) return partial;
  double size_bytes = tape->tensors[partial].size_bytes;
  if (!tape->sp) {
    pl_tape_collective(tape, names.all_reduce, PL_ALL_REDUCE, false, size_bytes, partial, partial);
    return partial; /* in place; its derivative is the identity, so there is no node */
  }
  uint32_t sum =
      pl_tape_activation(tape, tape->tensors[partial].name, tape->seq_local, 'h', tape->tensors[partial].extent[2]);
  pl_tape_collective(tape, names.reduce_scatter, PL_REDUCE_SCATTER, false, size_bytes, partial, sum);
  if (tape->overlaps) tape->forward[tape->n_forward - 1].overlap = PL_OVERLAP_BEGAN;
  pl_tape_note(tape, PL_RULE_REDUCE, names, partial, sum);
  return sum;
}

/* What a norm under autocast reads. */
static uint32_t widened(pl_tape *tape, uint32_t input, uint32_t output) {
  static const pl_tape_names names = PL_OP_NAMES("norm_autocast");
  if (tape->tensors[output].dtype == tape->tensors[input].dtype) return input;
  uint32_t wide = pl_tape_like(tape, input, names.forward, PL_TENSOR_ACTIVATION, (pl_dtype)tape->tensors[output].dtype);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE, wide, PL_NONE)
      ->plain = true;
  pl_tape_note(tape, PL_RULE_CAST, names, input, wide);
  return wide;
}

uint32_t pl_tape_norm_to(pl_tape *tape, pl_tape_names names, uint32_t input, int64_t vectors, int64_t width,
                         uint32_t output) {
  input = widened(tape, input, output);
  uint32_t weight = vectors > 0 ? pl_tape_parameter(tape, names.forward, "ph", vectors, width) : PL_NONE;
  pl_tape_sweep(tape, names.forward, PL_OP_NORM, PL_CATEGORY_FORWARD, norm_flops, input, weight, PL_NONE, output,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_NORM, names, input, output)->weight = weight;
  return output;
}

static uint32_t mask_of(pl_tape *tape, const char *name, uint32_t tensor) {
  uint32_t mask = pl_tape_like(tape, tensor, name, PL_TENSOR_MASK, tape->shard->dtype);
  tape->tensors[mask].size_bytes = pl_tape_elements(tape, mask);
  return mask;
}

uint32_t pl_tape_dropout(pl_tape *tape, pl_tape_names names, uint32_t input) {
  uint32_t output =
      pl_tape_like(tape, input, names.forward, PL_TENSOR_ACTIVATION, (pl_dtype)tape->tensors[input].dtype);
  uint32_t mask = mask_of(tape, names.forward, output);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, dropout_flops, input, PL_NONE, PL_NONE,
                output, mask);
  pl_tape_note(tape, PL_RULE_DROPOUT, names, input, output)->auxiliary = mask;
  return output;
}
