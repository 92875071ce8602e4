/* See workloads/language/ir_latent.h. */
#include "workloads/language/ir_latent.h"

#include <string.h>

#include "workloads/language/ir_table.h"

static bool is(const pl_ir_function *f, int32_t op, const char *row) {
  return op != PL_IR_NONE && pl_ir_op_is(&f->ops[op], row);
}

static int32_t maker(const pl_ir_function *f, int32_t value) {
  return f->values[value].op;
}

/* The nearest op of one of two rows that a value is made by, along first operands; PL_IR_NONE: none. */
static int32_t behind(const pl_ir_function *f, int32_t value, const char *row, const char *other) {
  int32_t op = maker(f, value);
  while (op != PL_IR_NONE && !is(f, op, row) && !is(f, op, other)) {
    if (f->ops[op].n_inputs == 0) return PL_IR_NONE;
    op = maker(f, f->ops[op].inputs[0]);
  }
  return op;
}

/* The norm and the product in front of an expanding product, if it has a compressing one. */
static bool find_compressed(const pl_ir_function *f, int32_t product, int32_t *norm, int32_t *down) {
  int32_t at = maker(f, f->ops[product].inputs[0]);
  while (is(f, at, "all_gather") || is(f, at, "cast"))
    at = maker(f, f->ops[at].inputs[0]);
  *norm = *down = PL_IR_NONE;
  if (!is(f, at, "rms_norm") && !is(f, at, "layer_norm")) return false;
  int32_t before = maker(f, f->ops[at].inputs[0]);
  while (is(f, before, "cast")) /* a norm that works on a copy in another type */
    before = maker(f, f->ops[before].inputs[0]);
  if (!is(f, before, "product")) return false;
  *norm = at;
  *down = before;
  return true;
}

bool pl_ir_latent_find(const pl_ir_function *f, const int32_t operands[3], pl_ir_latent *found) {
  *found = (pl_ir_latent){0};
  int32_t sum = behind(f, operands[1], "add", "product");
  if (!is(f, sum, "add") || is(f, maker(f, f->ops[sum].inputs[1]), "param")) return false;
  found->q = behind(f, operands[0], "product", "product");
  found->v = behind(f, operands[2], "product", "product");
  found->k = behind(f, f->ops[sum].inputs[0], "product", "product");
  found->k_rotary = behind(f, f->ops[sum].inputs[1], "product", "product");
  if (found->q == PL_IR_NONE || found->v == PL_IR_NONE || found->k == PL_IR_NONE || found->k_rotary == PL_IR_NONE)
    return false;
  find_compressed(f, found->q, &found->q_norm, &found->q_down);
  return find_compressed(f, found->k, &found->kv_norm, &found->kv_down);
}
