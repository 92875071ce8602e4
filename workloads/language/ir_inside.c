/* See workloads/language/ir_checking.h: ops behind calls, one after the other, without recursion. */
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_checking.h"

static void enter(pl_ir_inside *walk, int32_t function, const char *instance, pl_ir_piece piece) {
  size_t length = walk->depth > 0 ? walk->frames[walk->depth - 1].prefix_length : 0;
  PL_ASSERT(walk->depth < PL_IR_DEPTH_MAX);
  if (instance != NULL && instance[0] != '\0') {
    int more = snprintf(walk->prefix + length, sizeof walk->prefix - length, "%s.", instance);
    length += (size_t)more; /* what is too long has no path inside: nothing reads it */
    if (length > sizeof walk->prefix - 1) length = sizeof walk->prefix - 1;
  }
  walk->frames[walk->depth++] =
      (pl_ir_frame){.function = walk->module->functions[function], .prefix_length = length, .piece = piece};
}

void pl_ir_inside_begin(pl_ir_inside *walk, const pl_ir_module *module, int32_t function) {
  walk->module = module;
  walk->depth = 0;
  walk->prefix[0] = '\0';
  if (function != PL_IR_NONE) enter(walk, function, NULL, (pl_ir_piece){0, 1});
}

const pl_ir_op *pl_ir_inside_next(pl_ir_inside *walk) {
  while (walk->depth > 0) {
    pl_ir_frame *frame = &walk->frames[walk->depth - 1];
    if (frame->at == frame->function->n_ops) {
      walk->depth--;
      continue;
    }
    const pl_ir_op *op = &frame->function->ops[frame->at++];
    if (op->callee == PL_IR_NONE) return op;
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
