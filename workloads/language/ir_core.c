/* See workloads/language/ir_core.h. */
#include "workloads/language/ir_core.h"

#include <string.h>

#include "workloads/language/ir_table.h"

static bool is(const pl_ir_function *function, int32_t op, const char *row) {
  return op != PL_IR_NONE && pl_ir_op_is(&function->ops[op], row);
}

static int32_t made(const pl_ir_function *function, int32_t op) {
  return function->values[function->ops[op].inputs[0]].op;
}

bool pl_ir_core_find(const pl_ir_function *function, int32_t context, pl_ir_core *core) {
  *core = (pl_ir_core){.context = context,
                       .dropout = PL_IR_NONE,
                       .softmax = PL_IR_NONE,
                       .added = PL_IR_NONE,
                       .mask = PL_IR_NONE,
                       .scale = PL_IR_NONE,
                       .scores = PL_IR_NONE};
  const struct {
    const char *row;
    int32_t *op;
    bool must;
  } steps[] = {{"dropout", &core->dropout, false}, {"softmax", &core->softmax, true}, {"mask", &core->mask, false},
               {"add", &core->added, false},       {"scale", &core->scale, false},    {"product", &core->scores, true}};
  if (!is(function, context, "product")) return false;
  int32_t at = made(function, context);
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    bool there = is(function, at, steps[i].row);
    if (!there && steps[i].must) return false;
    if (!there) continue;
    *steps[i].op = at;
    at = made(function, at);
  }
  return true;
}

bool pl_ir_core_has(const pl_ir_core *core, int32_t op) {
  return op == core->context || op == core->dropout || op == core->softmax || op == core->added || op == core->mask ||
         op == core->scale || op == core->scores;
}

bool pl_ir_core_operands(const pl_ir_function *function, int32_t op, int32_t operands[3]) {
  pl_ir_core core;
  const int32_t *inputs = function->ops[op].inputs;
  if (is(function, op, "attention") || is(function, op, "ring_attention")) {
    for (int i = 0; i < 3; i++)
      operands[i] = inputs[i];
    return true;
  }
  if (!pl_ir_core_find(function, op, &core)) return false;
  operands[0] = function->ops[core.scores].inputs[0];
  operands[1] = function->ops[core.scores].inputs[1];
  operands[2] = inputs[1];
  return true;
}
