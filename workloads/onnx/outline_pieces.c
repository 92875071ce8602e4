/* See workloads/onnx/outline_pieces.h. */
#include "workloads/onnx/outline_pieces.h"

#include <string.h>

pl_code pl_outline_no_memory(const pl_outliner *own) {
  return pl_fail_memory(own->error, "the program of an ONNX graph");
}

bool pl_outline_is_row(const pl_ir_op *op, const char *name) {
  return pl_ir_op_is(op, name);
}

bool pl_outline_is_spine(const pl_outliner *own, const pl_ir_op *op) {
  return op->n_outputs > 0 && own->made_of[op->first_output] == (PL_OF_DATA | PL_OF_WEIGHTS);
}

/* ---- which ops, and where they are cut ---- */

void pl_outline_find_spine(pl_outliner *own) {
  for (int32_t i = 0; i < own->from->n_ops; i++) {
    const pl_ir_op *op = &own->from->ops[i];
    uint8_t of = pl_outline_is_row(op, "input")   ? PL_OF_DATA
                 : pl_outline_is_row(op, "param") ? PL_OF_WEIGHTS
                                                  : PL_OF_NOTHING;
    for (int32_t k = 0; k < op->n_inputs; k++)
      of |= own->made_of[op->inputs[k]];
    for (int32_t k = 0; k < op->n_outputs; k++)
      own->made_of[op->first_output + k] = of;
    if (pl_outline_is_spine(own, op)) own->spine[own->n_spine++] = i;
  }
}

static bool multiplies(const pl_outliner *own, const pl_ir_op *op) {
  if (!pl_outline_is_row(op, "product") && !pl_outline_is_row(op, "convolution") && !pl_outline_is_row(op, "embedding"))
    return false;
  return own->made_of[op->inputs[0]] == PL_OF_WEIGHTS || own->made_of[op->inputs[1]] == PL_OF_WEIGHTS;
}

pl_code pl_outline_find_pieces(pl_outliner *own, int32_t result) {
  int32_t *last = PL_TAKE(own->arena, int32_t, own->from->n_values + 1),
          *ending = PL_TAKE(own->arena, int32_t, own->n_spine + 2);
  own->pieces = PL_TAKE(own->arena, pl_outline_piece, own->n_spine + 1);
  if (last == NULL || ending == NULL || own->pieces == NULL) return pl_outline_no_memory(own);
  for (int32_t v = 0; v < own->from->n_values; v++)
    last[v] = PL_IR_NONE;
  for (int32_t i = 0; i < own->n_spine; i++) {
    const pl_ir_op *op = &own->from->ops[own->spine[i]];
    for (int32_t k = 0; k < op->n_inputs; k++)
      last[op->inputs[k]] = i;
  }
  last[result] = own->n_spine;
  int32_t live = 0, first = 0;
  bool any = false;
  for (int32_t i = 0; i < own->n_spine; i++) {
    const pl_ir_op *op = &own->from->ops[own->spine[i]];
    any = any || multiplies(own, op);
    for (int32_t k = 0; k < op->n_outputs; k++) {
      int32_t until = last[op->first_output + k];
      if (until == PL_IR_NONE || until <= i) continue;
      live++;
      if (until <= own->n_spine) ending[until]++;
    }
    live -= ending[i];
    if (live > 1 && i + 1 < own->n_spine) continue;
    own->pieces[own->n_pieces++] = (pl_outline_piece){first, i + 1 - first, any};
    first = i + 1;
    any = false;
  }
  return PL_OK;
}

/* ---- signs: what pieces that are alike have in common ---- */

typedef struct seen {
  int32_t *place; /* by value: 1 + when it was first read in this piece; 0: not yet */
  int32_t *list;
  int32_t n;
} seen;

static uint64_t hash_type(uint64_t hash, const pl_ir_type *type) {
  hash = pl_hash_word(pl_hash_word(hash, type->element), type->rank);
  for (int32_t i = 0; i < type->rank; i++)
    hash = pl_hash_word(pl_hash_text(hash, type->dims[i].name.text), (uint64_t)type->dims[i].extent);
  return hash;
}

static uint64_t hash_attributes(uint64_t hash, const pl_ir_op *op) {
  for (int32_t i = 0; i < op->n_attributes; i++) {
    const pl_ir_attribute *a = &op->attributes[i];
    uint64_t bits;
    memcpy(&bits, &a->real, sizeof(bits));
    hash = pl_hash_word(pl_hash_text(hash, a->name.text), (uint64_t)a->kind);
    hash = pl_hash_word(pl_hash_word(hash, (uint64_t)a->integer), a->kind == PL_IR_REAL ? bits : 0);
    if (a->kind == PL_IR_TEXT) hash = pl_hash_text(hash, a->text);
    for (int32_t k = 0; k < a->n_names; k++)
      hash = pl_hash_text(hash, a->names[k].text);
  }
  return hash;
}

/* A value as the piece reads it: the how manieth it is, and when it is first read, how it is made if it floats. */
static uint64_t hash_value(const pl_outliner *own, seen *known, uint64_t hash, int32_t value, int depth) {
  if (known->place[value] != 0) return pl_hash_word(hash, (uint64_t)known->place[value]);
  known->place[value] = known->n + 1;
  known->list[known->n++] = value;
  const pl_ir_op *op = &own->from->ops[own->from->values[value].op];
  hash = hash_type(pl_hash_word(hash, 0x5eed), &own->from->values[value].type);
  if (pl_outline_is_spine(own, op)) return hash;
  hash = hash_attributes(pl_hash_word(hash, op->row), op);
  if (pl_outline_is_row(op, "input")) hash = pl_hash_text(hash, op->path);
  for (int32_t k = 0; k < op->n_inputs && depth < 64; k++)
    hash = hash_value(own, known, hash, op->inputs[k], depth + 1);
  return hash;
}

pl_code pl_outline_take_signs(pl_outliner *own) {
  seen known = {.place = PL_TAKE(own->arena, int32_t, own->from->n_values + 1),
                .list = PL_TAKE(own->arena, int32_t, own->from->n_values + 1)};
  own->signs = PL_TAKE(own->arena, uint64_t, own->n_pieces + 1);
  if (known.place == NULL || known.list == NULL || own->signs == NULL) return pl_outline_no_memory(own);
  for (int32_t p = 0; p < own->n_pieces; p++) {
    uint64_t hash = 17;
    for (int32_t i = 0; i < own->pieces[p].n; i++) {
      const pl_ir_op *op = &own->from->ops[own->spine[own->pieces[p].first + i]];
      hash = hash_attributes(pl_hash_word(hash, op->row), op);
      for (int32_t k = 0; k < op->n_inputs; k++)
        hash = hash_value(own, &known, hash, op->inputs[k], 0);
      for (int32_t k = 0; k < op->n_outputs; k++)
        hash = hash_value(own, &known, hash, op->first_output + k, 0);
    }
    own->signs[p] = hash;
    while (known.n > 0)
      known.place[known.list[--known.n]] = 0;
  }
  return PL_OK;
}
