/* See workloads/language/ir_checking.h: ops behind calls, one after the other, without recursion. */
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_checking.h"
#include "workloads/language/ir_table.h"

const pl_ir_picked *pl_ir_inside_pick(const pl_ir_checking *checking, bool (*is_asked)(const pl_ir_row *row)) {
  const pl_ir_module *module = checking->module;
  pl_ir_picked *picked = PL_TAKE(checking->scratch, pl_ir_picked, module->n_functions + 1);
  int64_t n_ops = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    n_ops += module->functions[f]->n_ops;
  int32_t *list = PL_TAKE(checking->scratch, int32_t, n_ops + 1);
  if (picked == NULL || list == NULL) return NULL;
  for (int32_t f = 0; f < module->n_functions; f++) { /* callees before callers */
    picked[f].ops = list;
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      bool leads = op->callee != PL_IR_NONE ? picked[op->callee].n > 0 : is_asked(pl_ir_row_at(op->row));
      if (leads) list[picked[f].n++] = i;
    }
    list += picked[f].n;
  }
  return picked;
}

static void enter(pl_ir_inside *walk, int32_t function, const char *instance, pl_ir_piece piece) {
  size_t length = walk->depth > 0 ? walk->frames[walk->depth - 1].prefix_length : 0;
  PL_ASSERT(walk->depth < PL_IR_DEPTH_MAX);
  if (instance != NULL && instance[0] != '\0') {
    size_t more = strlen(instance), room = sizeof walk->prefix - 2 - length;
    if (more > room) more = room; /* what is too long has no path inside: nothing reads it */
    memcpy(walk->prefix + length, instance, more);
    walk->prefix[length + more] = '.';
    length += more + 1;
    walk->prefix[length] = '\0';
  }
  walk->frames[walk->depth++] = (pl_ir_frame){.function = walk->module->functions[function],
                                              .picked = &walk->picked[function],
                                              .prefix_length = length,
                                              .piece = piece};
}

void pl_ir_inside_begin(pl_ir_inside *walk, const pl_ir_module *module, const pl_ir_picked *picked, int32_t function) {
  walk->module = module;
  walk->picked = picked;
  walk->alike = NULL;
  walk->depth = 0;
  walk->prefix[0] = '\0';
  if (function != PL_IR_NONE) enter(walk, function, NULL, (pl_ir_piece){0, 1});
}

const pl_ir_op *pl_ir_inside_next(pl_ir_inside *walk) {
  while (walk->depth > 0) {
    pl_ir_frame *frame = &walk->frames[walk->depth - 1];
    if (frame->at == frame->picked->n) {
      walk->depth--;
      continue;
    }
    const pl_ir_op *op = &frame->function->ops[frame->picked->ops[frame->at++]];
    if (op->callee == PL_IR_NONE) return op;
    if (walk->alike != NULL && walk->depth == 1 && pl_ir_is_spoken_for(walk->alike, op)) continue;
    enter(walk, op->callee, op->path, pl_ir_piece_inside(frame->piece, op));
  }
  return NULL;
}

const char *pl_ir_inside_path(pl_ir_inside *walk, const pl_ir_op *op) {
  const pl_ir_frame *frame = &walk->frames[walk->depth - 1];
  size_t most = sizeof walk->path - 1, length = strlen(op->path);
  size_t prefix = frame->prefix_length < most ? frame->prefix_length : most;
  if (length > most - prefix) length = most - prefix; /* what is too long is cut off */
  memcpy(walk->path, walk->prefix, prefix);
  memcpy(walk->path + prefix, op->path, length);
  walk->path[prefix + length] = '\0';
  return walk->path;
}

const char *pl_ir_inside_kept(pl_ir_inside *walk, const pl_ir_op *op) {
  const pl_ir_piece piece = walk->frames[walk->depth - 1].piece;
  const char *path = pl_ir_inside_path(walk, op);
  if (piece.of <= 1) return path;
  snprintf(walk->kept, sizeof walk->kept, "%s of piece %lld", path, (long long)piece.index);
  return walk->kept;
}
