/* See tests/support/block_checks.h. */
#include "tests/support/block_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

enum { TENSORS = 256 };

pl_block_program block_taken(const pl_model *model, pl_block_kind kind, pl_block_shard shard, pl_arena *arena) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(model, kind, &shard, arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

/* Of what attention computes back, how much its derivative is: scores are made once more, as wide as queries and keys
 * are, as their gradients; two are as wide as values. */
static double derivative_of_attention(const pl_model *model) {
  double d = (double)model->attention.head_size;
  double e = model->attention.kv_rank > 0 ? (double)model->attention.value_size : d;
  return 2 * (d + e) / (3 * d + 2 * e);
}

/* Products of weights that are split, and of the attention; BERT's transform, pooler and classifier are replicated. */
static double products(pl_op_list list, int category, double derivative) {
  double flops = 0;
  for (uint32_t i = 0; i < list.n_ops; i++) {
    const pl_op *op = &list.ops[i];
    if (op->kind != PL_OP_GEMM && op->kind != PL_OP_ATTENTION) continue;
    if (strncmp(op->name, "transform", 9) == 0 || strncmp(op->name, "pooler", 6) == 0 ||
        strncmp(op->name, "next", 4) == 0 || strncmp(op->name, "shared_gate", 11) == 0 ||
        strncmp(op->name, "router", 6) == 0)
      continue; /* of a gate's number, or of one expert, the gradient goes back as fast as memory */
    if (op->category == category)
      flops += op->flops * (op->kind == PL_OP_ATTENTION && category == PL_CATEGORY_BACKWARD ? derivative : 1);
  }
  return flops;
}

void check_number(const char *what, double value, double wanted) {
  if (fabs(value - wanted) > 1e-12 * fabs(wanted)) fail_msg("%s: %.17g, not %.17g", what, value, wanted);
}

void check_block_products(const pl_model *model, const pl_block_program *split, const pl_block_program *whole,
                          pl_block_kind kind, pl_block_shard shard) {
  double derivative = derivative_of_attention(model);
  double forward = products(whole->forward, PL_CATEGORY_FORWARD, derivative);
  double ranks = shard.tmp * (shard.cp > 1 ? shard.cp : 1);
  check_number("forward, all ranks", ranks * products(split->forward, PL_CATEGORY_FORWARD, derivative), forward);
  check_number("backward is twice forward", ranks * products(split->backward, PL_CATEGORY_BACKWARD, derivative),
               2 * forward);
  double again = ranks * products(split->backward, PL_CATEGORY_RECOMPUTE, derivative);
  bool layer = kind == PL_BLOCK_LAYER || (kind == PL_BLOCK_EXPERT_LAYER && model->moe.n_experts > 0);
  if (!layer || shard.recompute == PL_RECOMPUTE_NONE)
    check_number("no recomputation", again, 0);
  else if (shard.recompute == PL_RECOMPUTE_FULL)
    check_number("full recomputation", again, forward);
  else
    assert_true(again > 0 && again < forward);
  check_number("model flops", split->model_flops, whole->model_flops);
}

double block_tensor_elements(const pl_tensor *tensor) {
  double product = 1;
  for (uint8_t i = 0; i < tensor->rank; i++)
    product *= (double)tensor->extent[i];
  return product;
}

void check_block_parameters(const pl_block_program *split, const pl_block_program *whole, pl_block_shard shard) {
  double count = 0, experts = 0, tied = split->tied_parameters;
  for (uint32_t i = 0; i < split->n_tensors; i++) {
    if (split->tensors[i].kind != PL_TENSOR_PARAMETER) continue;
    uint32_t j = 0;
    while (j < whole->n_tensors && (whole->tensors[j].kind != PL_TENSOR_PARAMETER ||
                                    strcmp(whole->tensors[j].name, split->tensors[i].name) != 0))
      j++;
    if (j == whole->n_tensors) fail_msg("the whole block has no %s", split->tensors[i].name);
    double mine = block_tensor_elements(&split->tensors[i]), all = block_tensor_elements(&whole->tensors[j]);
    if (split->tensors[i].expert) {
      assert_true(mine * (shard.ep > 1 ? shard.ep : 1) * (shard.etp > 1 ? shard.etp : 1) == all);
      experts += mine;
    } else {
      if (mine * shard.tmp != all && mine != all)
        fail_msg("%s: %g elements on each of %d tensor ranks, %g in all", split->tensors[i].name, mine, shard.tmp, all);
    }
    count += mine;
  }
  assert_true(experts == split->expert_parameters);
  assert_true(count == split->parameters + tied);
}

static bool in_place(const pl_op *op, uint32_t tensor) {
  for (int i = 0; i < PL_OP_INPUTS; i++)
    if (op->inputs[i] == tensor) return true;
  return false;
}

/* `there` on entry: what exists before the list. */
static void check_flow(const pl_block_program *program, pl_op_list list, bool *there, bool *fresh) {
  for (uint32_t i = 0; i < list.n_ops; i++) {
    const pl_op *op = &list.ops[i];
    for (int j = 0; j < PL_OP_INPUTS; j++)
      if (op->inputs[j] != PL_NONE && !there[op->inputs[j]])
        fail_msg("%s reads %s, which does not exist", op->name, program->tensors[op->inputs[j]].name);
    const uint32_t made[] = {op->output, op->auxiliary, op->third};
    for (int j = 0; j < 3; j++) {
      if (made[j] == PL_NONE) continue;
      assert_true(made[j] < program->n_tensors);
      /* The last step back of attention over several ranks' keys adds to what the others made, but cannot say so. */
      bool adds = strcmp(op->name, "attention_backward_last") == 0 || in_place(op, made[j]);
      if (fresh[made[j]] && !adds) fail_msg("%s makes %s twice", op->name, program->tensors[made[j]].name);
      there[made[j]] = fresh[made[j]] = true;
    }
    static const uint8_t categories[] = {[PL_GROUP_TENSOR] = PL_CATEGORY_TENSOR,
                                         [PL_GROUP_HEADS] = PL_CATEGORY_TENSOR,
                                         [PL_GROUP_CONTEXT] = PL_CATEGORY_CONTEXT,
                                         [PL_GROUP_EXPERT] = PL_CATEGORY_EXPERT};
    assert_true(op->kind == PL_OP_COLLECTIVE ? op->size_bytes > 0 && op->category == categories[op->group]
                                             : op->bytes > 0);
    assert_true(op->flops >= 0 && isfinite(op->flops));
  }
}

static bool is_persistent(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_PARAMETER || tensor->kind == PL_TENSOR_PARAMETER_GRADIENT;
}

void check_block_data_flow(const pl_block_program *program) {
  bool there[TENSORS] = {false}, fresh[TENSORS] = {false};
  assert_true(program->n_tensors <= TENSORS);
  for (uint32_t i = 0; i < program->n_tensors; i++)
    there[i] = is_persistent(&program->tensors[i]) || i == program->input;
  check_flow(program, program->forward, there, fresh);
  if (program->output != PL_NONE) assert_true(there[program->output]);
  memset(fresh, 0, sizeof fresh);
  for (uint32_t i = 0; i < program->n_tensors; i++) {
    const pl_tensor *tensor = &program->tensors[i];
    assert_true(!tensor->saved || ((tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK ||
                                    tensor->kind == PL_TENSOR_SIGNS) &&
                                   there[i]));
    there[i] = is_persistent(tensor) || tensor->saved || i == program->output_gradient;
  }
  check_flow(program, program->backward, there, fresh);
  /* The gradient that was handed in serves several readers (an addition passes it on to both its inputs): nobody may
   * add to it. */
  if (program->output_gradient != PL_NONE && program->n_tensors > 2) assert_false(fresh[program->output_gradient]);
  if (program->input != PL_NONE) {
    assert_true(there[program->input_gradient]);
    check_number("gradient of the input", program->tensors[program->input_gradient].size_bytes,
                 program->tensors[program->input].size_bytes);
  }
}

void check_block_gradients(const pl_block_program *program) {
  uint32_t parameters = 0, gradients = 0, written = 0;
  for (uint32_t i = 0; i < program->n_tensors; i++) {
    parameters += program->tensors[i].kind == PL_TENSOR_PARAMETER;
    gradients += program->tensors[i].kind == PL_TENSOR_PARAMETER_GRADIENT;
  }
  for (uint32_t i = 0; i < program->backward.n_ops; i++) {
    const pl_op *op = &program->backward.ops[i];
    const uint32_t made[] = {op->output, op->auxiliary, op->third};
    for (int j = 0; j < 3; j++)
      written += made[j] != PL_NONE && program->tensors[made[j]].kind == PL_TENSOR_PARAMETER_GRADIENT;
  }
  assert_int_equal(gradients, parameters);
  assert_int_equal(written, parameters);
}

static bool touches(const pl_op *op, uint32_t tensor) {
  return in_place(op, tensor) || op->output == tensor || op->auxiliary == tensor || op->third == tensor;
}

/* Alive during op i: touched before or at i (or there from the start), and needed at i or later (or kept). */
static double slow_peak(const pl_block_program *program, pl_op_list list, uint32_t given, uint32_t kept,
                        bool backward) {
  double peak = given == PL_NONE ? 0 : program->tensors[given].size_bytes;
  for (uint32_t i = 0; i < list.n_ops; i++) {
    double live = 0;
    for (uint32_t t = 0; t < program->n_tensors; t++) {
      const pl_tensor *tensor = &program->tensors[t];
      if (is_persistent(tensor)) continue;
      bool before = t == given || (backward && tensor->saved), later = t == kept || (!backward && tensor->saved);
      bool touched = false;
      for (uint32_t j = 0; j <= i; j++)
        touched = touched || touches(&list.ops[j], t);
      before = before || touched;
      for (uint32_t j = i; j < list.n_ops; j++)
        later = later || touches(&list.ops[j], t);
      double given_up = backward && tensor->saved ? tensor->remade_bytes : 0; /* until it is made again */
      if (before && later) live += tensor->size_bytes - (touched ? 0 : given_up);
      if (backward && tensor->saved) live -= tensor->size_bytes - given_up; /* was there before the pass */
    }
    if (live > peak) peak = live;
  }
  return peak;
}

void check_block_memory(const pl_block_program *program) {
  double saved = 0;
  for (uint32_t i = 0; i < program->n_tensors; i++)
    if (program->tensors[i].saved) saved += program->tensors[i].size_bytes - program->tensors[i].remade_bytes;
  check_number("saved", program->saved_bytes, saved);
  check_number("forward peak", program->forward_peak_bytes,
               slow_peak(program, program->forward, program->input, program->output, false));
  check_number("backward peak", program->backward_peak_bytes,
               slow_peak(program, program->backward, program->output_gradient, program->input_gradient, true));
  check_number("output", program->output_bytes,
               program->output == PL_NONE ? 0 : program->tensors[program->output].size_bytes);
}

void check_block_gradient_traffic(const pl_block_program *program, pl_dtype dtype) {
  double size = dtype == PL_DTYPE_FP16 ? 2 : 4;
  for (uint32_t i = 0; i < program->n_tensors; i++)
    if (program->tensors[i].kind == PL_TENSOR_PARAMETER_GRADIENT)
      check_number("gradient buffer", program->tensors[i].size_bytes,
                   size * block_tensor_elements(&program->tensors[i]));
  for (uint32_t i = 0; i < program->backward.n_ops; i++) {
    const pl_op *op = &program->backward.ops[i];
    if (op->kind != PL_OP_GEMM || op->output == PL_NONE ||
        program->tensors[op->output].kind != PL_TENSOR_PARAMETER_GRADIENT)
      continue;
    double m = (double)op->m, n = (double)op->n, k = (double)op->k;
    double factor = pl_dtype_bytes((pl_dtype)op->dtype); /* fp8, or the type of everything */
    assert_true(op->dtype == dtype || op->dtype == PL_DTYPE_FP8 || op->dtype == PL_DTYPE_FP4);
    check_number("traffic", op->bytes, (double)op->batch * (factor * (m * k + k * n) + 2 * size * m * n));
  }
}
